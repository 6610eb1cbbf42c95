"""Long-lived things and their states: one enum and one table of transitions for each kind, and one place of change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

__all__ = ["EventSink", "Life", "NoEvents", "StateTable", "name_of"]

S = TypeVar("S", bound=Enum)


@dataclass(frozen=True, slots=True)
class StateTable(Generic[S]):
    """The states of one kind of thing, which begins in the first.

    Attributes:
        kind: Name of the kind in events.
        about: What the kind is.
        meanings: What each state means.
        transitions: Which states may follow each.
    """

    kind: str
    about: str
    meanings: Mapping[S, str]
    transitions: Mapping[S, tuple[S, ...]]


class EventSink(Protocol):
    """Hears of each change, and of a change that a table does not have, which is a defect."""

    def changed(
        self,
        kind: str,
        id: int,
        old: str,
        new: str,
        reason: str,
        *,
        parent_id: int | None,
        stream_id: int | None,
        session_id: int | None,
        detail: str,
        is_fault: bool,
    ) -> None:
        """A thing went from one state to another, or began in one."""

    def defect(self, text: str) -> None:
        """A change was refused."""


class NoEvents:
    """A sink for what no one is to hear of, such as changes that a test makes."""

    def changed(self, kind: str, id: int, old: str, new: str, reason: str, **further: object) -> None:
        """See :class:`EventSink`."""

    def defect(self, text: str) -> None:
        """See :class:`EventSink`."""


class Life(Generic[S]):
    """The state of one thing. It changes only here."""

    def __init__(self, table: StateTable[S]) -> None:
        self._table = table
        self._sink: EventSink | None = None
        self.state: S = next(iter(table.meanings))

    def begin(
        self,
        sink: EventSink,
        reason: str,
        id: int,
        *,
        parent_id: int | None = None,
        stream_id: int | None = None,
        session_id: int | None = None,
        detail: str = "",
    ) -> None:
        """Tell of the thing from now on: which it is, and why it is there."""
        self.go_on(
            self.state,
            sink,
            id,
            parent_id=parent_id,
            stream_id=stream_id,
            session_id=session_id,
            detail=detail,
        )
        self._tell("", reason, is_fault=False)

    def go_on(
        self,
        state: S,
        sink: EventSink,
        id: int,
        *,
        parent_id: int | None = None,
        stream_id: int | None = None,
        session_id: int | None = None,
        detail: str = "",
    ) -> None:
        """Tell from now on of a thing that was there before, and is in this state."""
        self.state, self._sink, self._id = state, sink, id
        self._parent_id, self._stream_id, self._session_id = parent_id, stream_id, session_id
        self._detail = detail

    def enter(self, new: S, reason: str, *, is_fault: bool = False) -> None:
        """Go to another state, for a reason. A change that the table does not have is refused, as a defect.

        Args:
            new: The state.
            reason: Why.
            is_fault: It is not the normal course of things: a person may want to look.
        """
        old = self.state
        if new is old:
            return
        if new not in self._table.transitions[old]:
            if self._sink is not None:
                which = f"{self._table.kind} {self._id}"
                self._sink.defect(f"{which} must not go from {name_of(old)} to {name_of(new)}: {reason}")
            return
        self.state = new
        self._tell(name_of(old), reason, is_fault=is_fault)

    def _tell(self, old: str, reason: str, *, is_fault: bool) -> None:
        if self._sink is not None:
            self._sink.changed(
                self._table.kind,
                self._id,
                old,
                name_of(self.state),
                reason,
                parent_id=self._parent_id,
                stream_id=self._stream_id,
                session_id=self._session_id,
                detail=self._detail,
                is_fault=is_fault,
            )


def name_of(state: Enum) -> str:
    """A state as events and the documentation name it."""
    return state.name.capitalize()
