"""Time, as an argument: that of the machine, or one that a test moves.

No part of Headrace asks the machine for the time by itself. Each part that waits or writes down a time takes a clock as
an argument, and gives it to the parts that it uses: an archive's client has the clock of its :class:`headrace.Client`,
a client on a node of a simulated world has the clock of the node. Tests bring :class:`headrace.testing.ManualClock`, or
a whole world.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Protocol

from headrace._base.checks import check_timeout

__all__ = ["SYSTEM_CLOCK", "Clock", "Deadline", "SystemClock"]

_NS_PER_S = 1_000_000_000
_NS_PER_MS = 1_000_000
# What is not over in the lifetime of a clock of 64 bits is never over.
_ENDLESS_S = (1 << 63) / _NS_PER_S


class Clock(Protocol):
    """The time of day, for timestamps; a time that never goes back, for time-outs; and a way to wait.

    Subclass it and give it the first three methods; the others follow from them.
    """

    @abstractmethod
    def monotonic_ns(self) -> int:
        """Nanoseconds since a fixed moment. Never goes back."""

    @abstractmethod
    def epoch_ns(self) -> int:
        """Nanoseconds since 1970-01-01 UTC. May jump."""

    @abstractmethod
    def sleep(self, duration_s: float) -> None:
        """Return when ``duration_s`` seconds have passed on this clock."""

    def epoch_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC. May jump."""
        return self.epoch_ns() // _NS_PER_MS

    def deadline(self, timeout_s: float | None) -> Deadline:
        """The moment at which a time-out that begins now is over; ``None`` for one that never is.

        Raises:
            ConfigError: The time-out is negative or not a number.
        """
        return Deadline(self, timeout_s)


class Deadline:
    """The end of a time-out on a clock, made by :meth:`Clock.deadline`."""

    __slots__ = ("__weakref__", "_clock", "end_ns")

    def __init__(self, clock: Clock, timeout_s: float | None) -> None:
        check_timeout("timeout_s", timeout_s)
        self._clock = clock
        self.end_ns: int | None = None
        # Infinity, too, is never over.
        if timeout_s is not None and timeout_s < _ENDLESS_S:
            self.end_ns = clock.monotonic_ns() + round(timeout_s * _NS_PER_S)

    def left_s(self) -> float | None:
        """Seconds until it is over, at least 0; ``None`` when it never is."""
        if self.end_ns is None:
            return None
        return max(0, self.end_ns - self._clock.monotonic_ns()) / _NS_PER_S

    @property
    def is_over(self) -> bool:
        """True from the end of the time-out on."""
        return self.end_ns is not None and self._clock.monotonic_ns() >= self.end_ns

    def __repr__(self) -> str:
        left_s = self.left_s()
        return "Deadline(never)" if left_s is None else f"Deadline(in {left_s:g} s)"


class SystemClock(Clock):
    """The clocks of the machine."""

    def monotonic_ns(self) -> int:
        """See :class:`Clock`."""
        return time.monotonic_ns()

    def epoch_ns(self) -> int:
        """See :class:`Clock`."""
        return time.time_ns()

    def sleep(self, duration_s: float) -> None:
        """See :class:`Clock`. Releases the GIL."""
        time.sleep(duration_s)

    def __repr__(self) -> str:
        return "SystemClock()"


SYSTEM_CLOCK = SystemClock()
"""The clock of every part that is given none."""
