"""Counts messages in windows of time, the same way for every program that is measured."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable


def expect(payload: bytes, length: int) -> None:
    """Ends the program unless a message is what every publisher here sends."""
    if payload != b"x" * length:
        sys.exit(f"a message of {length} times 'x' came as {payload!r}")


def spend(windows: int, window_s: float, receive: Callable[[], int]) -> None:
    """Calls `receive` for the given windows and prints `count nanoseconds` for each.

    `receive` returns how many messages it took. The clock is read once per call, so `receive` should do a few
    hundred messages' worth of work or wait a little.
    """
    while receive() == 0:
        pass
    for _ in range(windows):
        count = 0
        start = time.perf_counter_ns()
        deadline = start + int(window_s * 1e9)
        now = start
        while now < deadline:
            count += receive()
            now = time.perf_counter_ns()
        print(count, now - start, flush=True)


async def spend_async(
    windows: int, window_s: float, in_flight: int, call: Callable[[], Awaitable[object]]
) -> None:
    """As `spend`, for calls that as many coroutines repeat."""
    done = 0
    is_over = False

    async def repeat() -> None:
        nonlocal done
        while not is_over:
            await call()
            done += 1

    callers = [asyncio.ensure_future(repeat()) for _ in range(in_flight)]
    for _ in range(windows):
        before, start = done, time.perf_counter_ns()
        await asyncio.sleep(window_s)
        print(done - before, time.perf_counter_ns() - start, flush=True)
    is_over = True
    await asyncio.gather(*callers)


def round_trips(samples: int, warm_up: int, ping: Callable[[], None]) -> None:
    """Times `ping` and prints one duration in nanoseconds per line."""
    for _ in range(warm_up):
        ping()
    durations = []
    clock = time.perf_counter_ns
    for _ in range(samples):
        start = clock()
        ping()
        durations.append(clock() - start)
    sys.stdout.write("\n".join(map(str, durations)) + "\n")
