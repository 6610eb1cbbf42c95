"""As archive_peer.py, and in steps that are timed: ``turns_peer.py DIR ARCHIVE_DIR``.

At SIGTERM it prints the percentiles 50, 99 and 99.9 of the turns that did work, and the longest turn, in nanoseconds.
"""

import signal
import sys
import time

import numpy as np

import headrace
from headrace.archive import ArchiveServer


def main(directory: str, archive_directory: str) -> None:
    """Says READY when clients can connect."""
    is_asked_to_stop = False

    def stop(*_: object) -> None:
        nonlocal is_asked_to_stop
        is_asked_to_stop = True

    signal.signal(signal.SIGTERM, stop)
    properties = {
        "aeron.dir": directory,
        "aeron.threading.mode": "SHARED",
        "aeron.dir.delete.on.shutdown": "true",
    }
    turns = []
    with (
        headrace.MediaDriver(properties=properties) as driver,
        ArchiveServer(
            driver=driver,
            is_invoked=True,
            aeron_directory=directory,
            archive_directory=archive_directory,
            max_concurrent_recordings=256,
            max_concurrent_replays=64,
            control_channel_enabled=False,
            replication_channel="aeron:udp?endpoint=127.0.0.1:0",
        ) as archive,
    ):
        print("READY", flush=True)
        idle = headrace.IdleStrategy("backoff")
        while not is_asked_to_stop:
            start = time.perf_counter_ns()
            work_count = archive.do_work()
            if work_count:
                turns.append(time.perf_counter_ns() - start)
            idle.idle(work_count)
    print(*np.percentile(turns, [50, 99, 99.9, 100]).astype(int), flush=True)


if len(sys.argv) != 3:
    sys.exit(__doc__)
main(*sys.argv[1:])
