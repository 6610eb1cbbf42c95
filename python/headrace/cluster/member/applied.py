"""What the entries of the log have made: sessions, timers, messages of services. Cluster specification 4.6, 5.9."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cluster.member.pending_messages import PendingMessages
from headrace.cluster.member.sessions import Session, Sessions
from headrace.cluster.member.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace._base.states import EventSink
    from headrace.cluster.member.states import ModuleState

__all__ = ["Applied"]


class Applied:
    """What a snapshot holds. The leader changes it as it appends, and undoes what is not committed."""

    def __init__(self, service_count: int, events: EventSink) -> None:
        self.sessions = Sessions(events)
        self.timers = Timers()
        self.pending = [PendingMessages(service_id) for service_id in range(service_count)]
        # The module's state before each action that is appended and not committed.
        self._states: list[tuple[int, ModuleState]] = []
        # What is to be done once an entry is committed that was appended.
        self._awaited: list[tuple[int, Callable[[], object]]] = []

    def acted(self, log_position: int, before: ModuleState) -> None:
        """An action was appended; the module was in this state before."""
        self._states.append((log_position, before))

    def when_committed(self, log_position: int, do: Callable[[], object]) -> None:
        """Do something once an entry that was appended is committed; never, if it is not."""
        self._awaited.append((log_position, do))

    def committed(self, log_position: int) -> None:
        """The log is agreed upon up to a position."""
        self.sessions.committed(log_position)
        self.timers.committed(log_position)
        for pending in self.pending:
            pending.committed(log_position)
        while self._states and self._states[0][0] <= log_position:
            self._states.pop(0)
        while self._awaited and self._awaited[0][0] <= log_position:
            self._awaited.pop(0)[1]()

    def restore_uncommitted(self, log_position: int) -> tuple[list[Session], ModuleState | None]:
        """Undo what is after the last committed position.

        Returns:
            The sessions whose opening is undone, and the state that the module goes back to, if that changes.
        """
        self.committed(log_position)
        gone = self.sessions.restore_uncommitted(log_position)
        self.timers.restore_uncommitted()
        for pending in self.pending:
            pending.restore_uncommitted()
        state = self._states[0][1] if self._states else None
        self._states.clear()
        self._awaited.clear()
        return gone, state
