"""Blocking calls made for coroutines."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["run_in_thread"]

_Result = TypeVar("_Result")


async def run_in_thread(call: Callable[[], _Result], unclaimed: Callable[[_Result], object]) -> _Result:
    """The result of a call that blocks, made in a thread that no loop and no interpreter waits for at its end.

    What it returns after this was cancelled goes to `unclaimed`, in a thread as well. A loop of a simulated world has
    one thread for all, and makes the call itself.
    """
    loop = asyncio.get_running_loop()
    if getattr(loop, "calls_in_place", False):
        return call()
    future: asyncio.Future[_Result] = loop.create_future()

    def fail(error: Exception) -> None:
        if not future.done():
            future.set_exception(error)

    def leave(result: _Result) -> None:
        threading.Thread(target=unclaimed, args=(result,), daemon=True).start()

    def give(result: _Result) -> None:
        if future.done():
            leave(result)
        else:
            future.set_result(result)

    def run() -> None:
        try:
            result = call()
        except Exception as error:
            report: Callable[[], object] = functools.partial(fail, error)
            late = None
        else:
            report = functools.partial(give, result)
            late = functools.partial(unclaimed, result)
        try:
            loop.call_soon_threadsafe(report)
        except RuntimeError:
            # The loop is closed, so it was cancelled.
            if late is not None:
                late()

    threading.Thread(target=run, name="headrace-aio", daemon=True).start()
    try:
        return await future
    except asyncio.CancelledError:
        # The result may have come before this was cancelled, in the same turn of the loop.
        if not future.cancelled() and future.exception() is None:
            leave(future.result())
        raise
