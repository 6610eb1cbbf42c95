"""Procedures that take many turns: generators, which yield while they cannot go on; their agent's turns resume them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from headrace._base.exceptions import HeadraceError

if TYPE_CHECKING:
    from headrace.client import ExclusivePublication, Pending, Publication, Subscription
    from headrace.clock import Deadline

__all__ = ["RunningTask", "Task", "added", "until", "within"]

R = TypeVar("R")
T = TypeVar("T", "Subscription", "Publication", "ExclusivePublication")

Task = Generator[None, None, R]
"""A procedure that gives an ``R`` at its end."""


def until(is_true: Callable[[], object]) -> Task[None]:
    """Goes on once a condition is true."""
    while not is_true():
        yield


def within(
    deadline: Deadline, is_true: Callable[[], object], failure: Callable[[], HeadraceError]
) -> Task[None]:
    """Goes on once a condition is true.

    Raises:
        HeadraceError: What `failure` gives, when the time is over before.
    """
    while not is_true():
        if deadline.is_over:
            raise failure()
        yield


def added(pending: Pending[T]) -> Task[T]:
    """What was asked of the driver, once it has added it; given up if the task is."""
    try:
        while (done := pending.poll()) is None:
            yield
    except GeneratorExit:
        pending.cancel()
        raise
    return done


class RunningTask:
    """The task that an agent is on, if it is on one."""

    def __init__(self) -> None:
        self._task: Task[Any] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether there is none."""
        return self._task is None

    def begin(self, task: Task[Any]) -> None:
        """Begin one; the one before must have ended."""
        assert self._task is None, "one task at a time"
        self._task = task

    def step(self) -> int:
        """Resume it; gives 1 when it has ended. What it raises ends it too, and comes out of here."""
        task = self._task
        if task is None:
            return 0
        try:
            next(task)
        except BaseException as end:
            self._task = None
            if not isinstance(end, StopIteration):
                raise
            return 1
        return 0

    def close(self) -> None:
        """Give it up."""
        task, self._task = self._task, None
        if task is not None:
            task.close()
