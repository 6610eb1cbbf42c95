"""A member of a cluster of pysyncobj; with messages in flight, it sends commands and counts those that are answered.

usage: syncobj_peer.py IN_FLIGHT WINDOWS OWN_ADDRESS ADDRESS ...
"""

import sys
import threading
import time

from pysyncobj import SyncObj, SyncObjConf, replicated

PAYLOAD = "0" * 100
WINDOW_S = 1.0


class Echo(SyncObj):
    """Answers with what it was sent."""

    @replicated
    def echo(self, message: str) -> str:
        """The message."""
        return message


def main(in_flight: int, windows: int, own: str, *others: str) -> None:
    """Prints `count nanoseconds` for each window."""
    conf = SyncObjConf(appendEntriesUseBatch=True, commandsQueueSize=in_flight + 1)
    member = Echo(own, list(others), conf=conf)
    member.waitReady()
    if in_flight == 0:
        threading.Event().wait()
    answered = 0
    room = threading.Semaphore(in_flight)

    def take(_: object, error: object) -> None:
        nonlocal answered
        answered += error == 0
        room.release()

    for _ in range(windows):
        start, before = time.perf_counter_ns(), answered
        while time.perf_counter_ns() - start < WINDOW_S * 1e9:
            room.acquire()
            member.echo(PAYLOAD, callback=take)
        print(answered - before, time.perf_counter_ns() - start, flush=True)


if len(sys.argv) < 5:
    sys.exit(__doc__)
main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
