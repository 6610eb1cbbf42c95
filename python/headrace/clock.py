"""Time, as an argument: of the system, or moved by a test."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """Two clocks in one: of the day, for timestamps, and one that only goes forward, for time-outs."""

    def now_ms(self) -> int:
        """Milliseconds since 1970."""

    def now_ns(self) -> int:
        """Nanoseconds since some moment."""


class SystemClock:
    """The clocks of the system."""

    def now_ms(self) -> int:
        """See :class:`Clock`."""
        return time.time_ns() // 1_000_000

    def now_ns(self) -> int:
        """See :class:`Clock`."""
        return time.monotonic_ns()
