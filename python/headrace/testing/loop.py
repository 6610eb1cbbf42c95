"""An event loop of asyncio in the time of a simulated world."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

__all__ = ["WorldEventLoop"]

_NS_PER_S = 1_000_000_000
_END_OF_TIME_NS = 2**63 - 1

_R = TypeVar("_R")


class Stepped(Protocol):
    """What an event loop needs of a world."""

    @property
    def now_ns(self) -> int: ...

    @property
    def now_s(self) -> float: ...

    def _step(self, end_ns: int) -> int: ...


class _WorldSelector(selectors.DefaultSelector):
    """Where other loops sleep, this one steps the world, not beyond the time at which the loop has something to do."""

    def __init__(self, world: Stepped) -> None:
        super().__init__()
        self._world = world
        self._has_raised = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # Also when the loop has callbacks that are ready: each turn of the loop is a step of the world, so that a
        # coroutine that asks again and again sees the world go on.
        left_ns = _END_OF_TIME_NS if timeout is None or timeout <= 0 else round(timeout * _NS_PER_S)
        try:
            self._world._step(min(self._world.now_ns + left_ns, _END_OF_TIME_NS))
        except Exception:
            # The first ends the run. After it the loop only cancels its tasks, which may still take their time.
            if not self._has_raised:
                self._has_raised = True
                raise
        return super().select(0)


class WorldEventLoop(asyncio.SelectorEventLoop):
    """The loop of :meth:`World.run_async`: its time is that of the world, and each of its turns a step of the world.

    What other loops do in a thread, it does at once, on the thread of the world. The call makes the world go on while
    it waits; other coroutines stand still until it returns.
    """

    calls_in_place = True
    """For :mod:`headrace.aio`, which would make a thread otherwise."""

    def __init__(self, world: Stepped) -> None:
        super().__init__(_WorldSelector(world))
        self._world = world

    def time(self) -> float:
        """Virtual seconds since the world began."""
        return self._world.now_s

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., _R], *args: Any
    ) -> asyncio.Future[_R]:
        """Call `func` now."""
        future: asyncio.Future[_R] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future
