"""Long-lived things and their states: one enum and one table of transitions for each kind, one place of change.

A change that the table does not have raises, in the product as in tests: it is a defect, and acting on would make two.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Generic, Protocol, TypedDict, TypeVar

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["EventSink", "Ids", "Life", "LoggedEvents", "NoEvents", "StateError", "StateTable", "name_of"]

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


class StateError(AssertionError):
    """A change of state that its table does not have: a defect of this package."""


class Ids(TypedDict, total=False):
    """Besides its own id, the ids that tell a thing from others."""

    parent_id: int | None
    stream_id: int | None
    session_id: int | None
    detail: str


class EventSink(Protocol):
    """Called with each change."""

    def changed(
        self,
        kind: str,
        id: int,
        old: str,
        new: str,
        reason: str,
        *,
        is_fault: bool,
        **ids: Unpack[Ids],
    ) -> None:
        """A thing went from one state to another, or began in one."""


class NoEvents:
    """A sink for what no one is to hear of, such as changes that a test makes."""

    def changed(self, kind: str, id: int, old: str, new: str, reason: str, **further: object) -> None:
        """See :class:`EventSink`."""


class LoggedEvents:
    """A sink for what a client has: it keeps no event log, and the program's log has the changes."""

    def __init__(self, logger: logging.Logger, level: int = logging.DEBUG) -> None:
        self._logger = logger
        self._level = level

    def changed(self, kind: str, id: int, old: str, new: str, reason: str, **further: object) -> None:
        """See :class:`EventSink`."""
        change = f"{old} -> {new}" if old else new
        self._logger.log(self._level, "%s %d: %s: %s", kind, id, change, reason)


class Life(Generic[S]):
    """The state of one thing. It changes only here, once :meth:`begin` or :meth:`go_on` has said who listens."""

    def __init__(self, table: StateTable[S]) -> None:
        self._table = table
        self._sink: EventSink | None = None
        self.state: S = next(iter(table.meanings))

    def begin(self, sink: EventSink, reason: str, id: int, **ids: Unpack[Ids]) -> None:
        """Report to a sink from now on that the thing began, and each change."""
        self.go_on(self.state, sink, id, **ids)
        self._report("", reason, is_fault=False)

    def go_on(self, state: S, sink: EventSink, id: int, **ids: Unpack[Ids]) -> None:
        """Report the changes of a thing that was there before, and is in this state."""
        self.state, self._sink, self._id, self._ids = state, sink, id, ids

    def enter(self, new: S, reason: str, *, is_fault: bool = False) -> None:
        """Go to another state, for a reason.

        Args:
            new: The state.
            reason: Why.
            is_fault: It is not the normal course of things: a person may want to look.

        Raises:
            StateError: The table does not have the change, or the life has not begun.
        """
        old = self.state
        if self._sink is None:
            raise StateError(f"{self._table.kind} has not begun, and must not go to {name_of(new)}: {reason}")
        if new is old:
            return
        if new not in self._table.transitions[old]:
            which = f"{self._table.kind} {self._id}"
            raise StateError(f"{which} must not go from {name_of(old)} to {name_of(new)}: {reason}")
        self.state = new
        self._report(name_of(old), reason, is_fault=is_fault)

    def _report(self, old: str, reason: str, *, is_fault: bool) -> None:
        assert self._sink is not None
        new = name_of(self.state)
        self._sink.changed(self._table.kind, self._id, old, new, reason, is_fault=is_fault, **self._ids)


def name_of(state: Enum) -> str:
    """A state as events and the documentation name it."""
    return state.name.capitalize()
