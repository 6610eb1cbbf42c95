"""The service of the demo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from headrace.cluster import ClientSession, Cluster, ClusteredService


class Ledger(ClusteredService):
    """Counts commands by their number, and answers each with how often it has had it: `17 1`."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        """Read the counts back."""
        for message in snapshot or ():
            number, count = message.split()
            self.counts[int(number)] = int(count)

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        """Count, and answer."""
        number = int(message)
        self.counts[number] += 1
        if session is not None:
            session.offer(b"%d %d" % (number, self.counts[number]))

    def on_take_snapshot(self) -> Iterable[bytes]:
        """Write the counts."""
        for number, count in self.counts.items():
            yield b"%d %d" % (number, count)
