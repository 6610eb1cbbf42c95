"""The service of `java/CounterService.java` in Python: the same state from the same log, and the same snapshot.

usage: python -m tests.interop.counter_service DIRECTORY ENDPOINT CLOCK

A whole node that serves clients at ENDPOINT until it is told to end. Prints READY and the directory of its driver.
"""

from __future__ import annotations

import signal
import struct
import sys
import threading
from collections.abc import Iterable

from headrace.cluster import ClientSession, Cluster, ClusteredService, ClusterNode, ClusterTimeUnit

__all__ = ["LATER", "Counter", "mixed"]

_STATE = struct.Struct("<4q")
_EVERY = 50
_PER_MS = {ClusterTimeUnit.MILLIS: 1, ClusterTimeUnit.MICROS: 1000, ClusterTimeUnit.NANOS: 1_000_000}
LATER = 1_000_000_000
"""What ids of timers begin with that a client asks for; they are due after 6 s."""


def mixed(hash: int, value: int, factor: int = 31) -> int:
    """What comes of a hash and the next number, as Java's 64 bits have it."""
    return (hash * factor + value + (1 << 63)) % (1 << 64) - (1 << 63)


class Counter(ClusteredService):
    """Echoes and counts."""

    def __init__(self) -> None:
        self.count = self.hash = self.timers = self.self_messages = 0
        self.started_with = ""
        self.cluster: Cluster | None = None
        self.refused: list[object] = []

    @property
    def state(self) -> str:
        """The state as text."""
        return f"{self.count} {self.hash} {self.timers} {self.self_messages}"

    def _in_unit(self, milliseconds: int) -> int:
        assert self.cluster is not None
        return milliseconds * _PER_MS[self.cluster.time_unit]

    def _mix(self, value: int) -> None:
        self.hash = mixed(self.hash, value)

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        self.cluster = cluster
        for message in snapshot or ():
            self.count, self.hash, self.timers, self.self_messages = _STATE.unpack(message)
        self.started_with = self.state

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        assert self.cluster is not None
        if session is None:
            self.self_messages += 1
            self._mix(int.from_bytes(message, "little"))
        elif message == b"state?":
            self._expect(session.offer(f"{self.state} {len(self.cluster.sessions)}".encode()))
        elif message == b"later!":
            self._expect(self.cluster.schedule_timer(LATER + self.count, timestamp + self._in_unit(6000)))
        elif message == b"close!":
            session.close()
        else:
            self.count += 1
            for byte in message:
                self._mix(byte - 256 if byte > 127 else byte)
            self._expect(session.offer(message))
            if self.count % _EVERY == 0:
                self._expect(self.cluster.schedule_timer(self.count, timestamp + self._in_unit(1)))
                self._expect(self.cluster.offer(self.count.to_bytes(8, "little")))

    def _expect(self, result: object) -> None:
        if not (isinstance(result, int) and result > 0):
            self.refused.append(result)

    def on_timer_event(self, correlation_id: int, timestamp: int) -> None:
        self.timers += 1
        if correlation_id < LATER:
            self._mix(correlation_id)
        else:
            # Those that fell due while no node ran fire in no order.
            self.hash = mixed(self.hash, correlation_id, 1)

    def on_take_snapshot(self) -> Iterable[bytes]:
        yield _STATE.pack(self.count, self.hash, self.timers, self.self_messages)


def main(directory: str, endpoint: str, clock: str) -> None:
    """A node, until a signal."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with ClusterNode(
        Counter(),
        directory=directory,
        ingress_endpoint=endpoint,
        authorisation="ALLOW_ALL",
        cluster_clock=clock,
    ) as node:
        node.wait_until_leader(None)
        print("READY", node.driver.directory, flush=True)
        ended.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
