"""Exponential backoff between attempts: none before the first, then from 16 ms, doubling to 500 ms."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.clock import Clock

__all__ = ["Backoff"]

_FIRST_S = 0.016
_LONGEST_S = 0.5


class Backoff:
    """When the next attempt may be made."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        """Note that an attempt succeeded: the next one may be made at once."""
        self._next_s = _FIRST_S
        self._deadline = self._clock.deadline(0)

    def begin(self) -> None:
        """Note that an attempt failed."""
        self._deadline = self._clock.deadline(self._next_s)
        self._next_s = min(2 * self._next_s, _LONGEST_S)

    @property
    def is_over(self) -> bool:
        """Whether it is time for the next attempt."""
        return self._deadline.is_over
