"""The service of members that are killed; their processes need nothing else of the tests."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.cli.cluster.demo.ledger import Ledger
from headrace.cluster import ClientSession, Cluster


class HashedLedger(Ledger):
    """A ledger whose members compare its state, so that one that has lost some of it is found out."""

    def __init__(self) -> None:
        super().__init__()
        self._hash = 0

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        super().on_start(cluster, snapshot)
        self._hash = sum(_mixed(number) * count for number, count in self.counts.items())

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        super().on_session_message(session, timestamp, message, position)
        self._hash += _mixed(int(message))

    def state_hash(self) -> int:
        return self._hash % (1 << 63)


def _mixed(number: int) -> int:
    return (number + 1) * 0x9E3779B97F4A7C15 % (1 << 63)
