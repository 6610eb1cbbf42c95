"""A clock that stands still until a test moves it."""

from __future__ import annotations

import weakref

from headrace.clock import Clock, Deadline

__all__ = ["ManualClock"]

_NS_PER_S = 1_000_000_000
# Where monotonic time begins, so that nothing subtracted from it is negative.
_MONOTONIC_START_NS = 3_600 * _NS_PER_S
# 2026-01-01 UTC, where simulated worlds begin as well.
_EPOCH_START_NS = 1_767_225_600 * _NS_PER_S


class ManualClock(Clock):
    """Stands still until it is told to go on; a sleep moves it, since nothing else would.

    ::

        clock = ManualClock()
        client = headrace.connect(driver=driver, use_invoker=True, clock=clock)
        ...
        clock.advance(10)      # ten seconds later
        clock.jump()           # at the end of the time-out that is over next

    Not thread-safe.

    Args:
        epoch_ns: Nanoseconds since 1970 at the start.
    """

    def __init__(self, *, epoch_ns: int = _EPOCH_START_NS) -> None:
        self._monotonic_ns = _MONOTONIC_START_NS
        self._epoch_ns = epoch_ns
        # Of those that are still held by who waits for them.
        self._deadlines: weakref.WeakSet[Deadline] = weakref.WeakSet()

    def monotonic_ns(self) -> int:
        """See :class:`headrace.clock.Clock`."""
        return self._monotonic_ns

    def epoch_ns(self) -> int:
        """See :class:`headrace.clock.Clock`."""
        return self._epoch_ns

    def sleep(self, duration_s: float) -> None:
        """Move the clock by so many seconds."""
        self.advance(duration_s)

    def deadline(self, timeout_s: float | None) -> Deadline:
        """See :class:`headrace.clock.Clock`. The clock can :meth:`jump` to it."""
        deadline = Deadline(self, timeout_s)
        self._deadlines.add(deadline)
        return deadline

    def advance(self, duration_s: float) -> None:
        """Move both clocks forward by so many seconds."""
        self.advance_ns(round(duration_s * _NS_PER_S))

    def advance_ns(self, duration_ns: int) -> None:
        """Move both clocks forward by so many nanoseconds.

        Raises:
            ValueError: The number is negative; a clock does not go back.
        """
        if duration_ns < 0:
            raise ValueError(f"duration_ns={duration_ns}: must be at least 0")
        self._monotonic_ns += duration_ns
        self._epoch_ns += duration_ns

    def set_epoch_ns(self, epoch_ns: int) -> None:
        """Let the clock of the day jump, forward or back. Time-outs do not go by it."""
        self._epoch_ns = epoch_ns

    def jump(self) -> bool:
        """Move to the next deadline, of those that are not over yet.

        Returns:
            False when there is none: the clock stays where it is.
        """
        ends = [each.end_ns for each in self._deadlines if each.end_ns is not None]
        later = [end_ns for end_ns in ends if end_ns > self._monotonic_ns]
        if later:
            self.advance_ns(min(later) - self._monotonic_ns)
        return bool(later)

    def __repr__(self) -> str:
        return f"ManualClock(monotonic_ns={self._monotonic_ns}, epoch_ns={self._epoch_ns})"
