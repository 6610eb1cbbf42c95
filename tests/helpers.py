"""What several tests of streams need."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import headrace

# How long a test waits for what must come. Only a test that fails takes so long, and a machine may have ten times the
# work that it can do.
TIMEOUT_S = 200.0


def await_true(condition: Callable[[], object], timeout_s: float = TIMEOUT_S) -> None:
    """Waits until a condition holds; fails the test when it does not in time."""
    deadline = time.monotonic() + timeout_s
    idle = headrace.BackoffIdleStrategy()
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        idle.idle()


def rounds(usual: int) -> int:
    """How often a test of chance does what it does: HEADRACE_ROUNDS times as often as usual. See `make soak`."""
    return usual * int(os.environ.get("HEADRACE_ROUNDS", "1"))


def take(subscription: headrace.Subscription, count: int, **options: bool) -> list[bytes]:
    """Polls until `count` messages have come."""
    taken: list[bytes] = []

    def keep(payload: bytes, header: headrace.Header) -> None:
        taken.append(bytes(payload))

    def enough() -> bool:
        subscription.poll(keep, count - len(taken), **options)
        return len(taken) >= count

    await_true(enough)
    return taken
