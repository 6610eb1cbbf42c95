"""Whether what clients of a replicated service were answered can have happened one after another: linearizability.

A client notes when it calls, when the answer came, and the log position in the answer. The calls happened in the order
of these positions if that order respects the time between an answer and a later call, and if each answer is that of the
model after the calls before it. A call without an answer may have happened at any moment after it was made, or never:
the log says where it has it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

__all__ = ["Call", "NotLinearizableError", "check_history"]

_END_OF_TIME_NS = 1 << 63

Model = Callable[[Any, Any], tuple[Any, Any]]


class NotLinearizableError(AssertionError):
    """The order of the log does not explain the answers."""


@dataclass(eq=False, slots=True)
class Call:
    """One call of a client.

    Attributes:
        session: Which stream of calls it belongs to: those of one stream happen in the order in which they are made,
            and none happens without those before it.
        key: Which object it is for. Objects do not depend on each other.
        command: What the model is given.
        called_ns: When the client made it.
        returned_ns: When the answer came; ``None`` without one.
        position: The log position in the answer. Without one, where the log has it; 0 if the log does not.
        answer: What the model must give.
    """

    session: Any
    key: Any
    command: Any
    called_ns: int
    returned_ns: int | None = None
    position: int = 0
    answer: Any = None

    def __str__(self) -> str:
        what = f"{self.command!r} of session {self.session}, called at {self.called_ns}, log position {self.position}"
        if self.returned_ns is None:
            return f"{what}, unanswered"
        return f"{what}, answered {self.answer!r} at {self.returned_ns}"


def check_history(calls: Iterable[Call], model: Model, state: Any) -> None:
    """Look whether calls are linearizable in the order of their log positions.

    Args:
        calls: In the order in which each session made them.
        model: Gives the state of an object after a command, and the answer.
        state: Of each object at first.

    Raises:
        NotLinearizableError: They are not. The text has the calls that contradict each other.
    """
    calls = list(calls)
    _check_sessions(calls)
    happened = sorted((one for one in calls if one.position), key=lambda one: one.position)
    _check_time(happened)
    states: dict[Any, Any] = {}
    for one in happened:
        states[one.key], answer = model(states.get(one.key, state), one.command)
        if one.returned_ns is not None and one.answer != answer:
            raise NotLinearizableError(f"{one}: where the calls before it in the log give {answer!r}")


def _check_sessions(calls: list[Call]) -> None:
    by_session: dict[Any, list[Call]] = defaultdict(list)
    for one in calls:
        if one.returned_ns is not None and not one.position:
            raise NotLinearizableError(f"answered without a place in the log: {one}")
        by_session[one.session].append(one)
    for of_session in by_session.values():
        for before, after in pairwise(of_session):
            if after.position and not before.position:
                raise NotLinearizableError(f"a call is left out: {before}; and then {after}")
            if after.position and after.position <= before.position:
                raise NotLinearizableError(f"calls of a session have changed places: {before}; {after}")


def _check_time(happened: list[Call]) -> None:
    """What was answered before another was called has the lower position."""
    for before, after in pairwise(happened):
        if before.position == after.position:
            raise NotLinearizableError(f"two calls at one log position: {before}; {after}")
    latest: Call | None = None
    for one in happened:
        returned_ns = _END_OF_TIME_NS if one.returned_ns is None else one.returned_ns
        if latest is not None and returned_ns < latest.called_ns:
            raise NotLinearizableError(f"answered before a call that the log has before it: {one}; {latest}")
        if latest is None or one.called_ns > latest.called_ns:
            latest = one
