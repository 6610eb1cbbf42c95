"""A service that echoes and counts, for members of the reference's."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.cluster import ClientSession, Cluster, ClusteredService, Role

__all__ = ["Echo"]


class Echo(ClusteredService):
    """Sends each message back; its state is how many there were, and the last one of each session."""

    def __init__(self) -> None:
        self.count = 0
        self.last: dict[int, bytes] = {}
        self.refused: list[object] = []
        self.timers = 0
        self.self_messages: list[bytes] = []
        self.cluster: Cluster | None = None
        self.role: Role | None = None
        self.restored = 0

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        self.cluster = cluster
        for number, message in enumerate(snapshot or ()):
            if number == 0:
                self.count = self.restored = int.from_bytes(message, "little")
            else:
                self.last[int.from_bytes(message[:8], "little")] = message[8:]

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        if session is None:
            self.self_messages.append(message)
            return
        assert self.cluster is not None
        self.count += 1
        self.last[session.id] = message
        result = session.offer(message)
        if not result > 0:
            self.refused.append(result)
        if self.count % 100 == 0:
            self.cluster.schedule_timer(self.count, timestamp + 1)
            self.cluster.offer(self.count.to_bytes(8, "little"))

    def on_timer_event(self, correlation_id: int, timestamp: int) -> None:
        self.timers += 1

    def on_take_snapshot(self) -> Iterable[bytes]:
        yield self.count.to_bytes(8, "little")
        for session_id, message in self.last.items():
            yield session_id.to_bytes(8, "little") + message

    def on_role_change(self, role: Role) -> None:
        self.role = role
