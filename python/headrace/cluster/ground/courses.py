"""Procedures that take many turns: generators, which yield while they cannot go on; their agent's turns resume them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from headrace._exceptions import HeadraceError

if TYPE_CHECKING:
    from headrace.client import ExclusivePublication, Pending, Publication, Subscription
    from headrace.clock import Deadline

__all__ = ["Course", "Running", "added", "until", "within"]

R = TypeVar("R")
T = TypeVar("T", "Subscription", "Publication", "ExclusivePublication")

Course = Generator[None, None, R]
"""A procedure that gives an ``R`` at its end."""


def until(is_true: Callable[[], object]) -> Course[None]:
    """Goes on once a condition is true."""
    while not is_true():
        yield


def within(
    deadline: Deadline, is_true: Callable[[], object], failure: Callable[[], HeadraceError]
) -> Course[None]:
    """Goes on once a condition is true.

    Raises:
        HeadraceError: What `failure` gives, when the time is over before.
    """
    while not is_true():
        if deadline.is_over:
            raise failure()
        yield


def added(pending: Pending[T]) -> Course[T]:
    """What was asked of the driver, once it has added it; given up if the course is."""
    try:
        while (done := pending.poll()) is None:
            yield
    except GeneratorExit:
        pending.cancel()
        raise
    return done


class Running:
    """The course that an agent is on, if it is on one."""

    def __init__(self) -> None:
        self._course: Course[Any] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether there is none."""
        return self._course is None

    def begin(self, course: Course[Any]) -> None:
        """Begin one; the one before must have ended."""
        assert self._course is None, "one course at a time"
        self._course = course

    def step(self) -> int:
        """Resume it; gives 1 when it has ended. What it raises ends it too, and comes out of here."""
        course = self._course
        if course is None:
            return 0
        try:
            next(course)
        except BaseException as end:
            self._course = None
            if not isinstance(end, StopIteration):
                raise
            return 1
        return 0

    def close(self) -> None:
        """Give it up."""
        course, self._course = self._course, None
        if course is not None:
            course.close()
