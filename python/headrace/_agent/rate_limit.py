"""Limits how often a log repeats a text: a stranger who can cause it with each message must not cause a line each."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.clock import Clock

__all__ = ["RateLimit"]

_NS_PER_S = 1_000_000_000
_TOLD_A_SECOND = 20
# More than the code has; some texts have the id of a recording.
_TEXTS_MAX = 1000


@dataclass(slots=True)
class _Second:
    end_ns: int
    told: int = 0
    untold: int = 0


class RateLimit:
    """Lets each text through some twenty times a second. Thread-safe.

    Of more than a thousand texts it forgets those that came before, so that it does not grow without end.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seconds: dict[str, _Second] = {}
        self._lock = threading.Lock()

    def take(self, text: str) -> int | None:
        """``None`` if a text is not to be told now; else how many times it was not told before."""
        with self._lock:
            now_ns = self._clock.monotonic_ns()
            second = self._seconds.get(text)
            untold = 0
            if second is None or now_ns >= second.end_ns:
                untold = second.untold if second is not None else 0
                if second is None and len(self._seconds) >= _TEXTS_MAX:
                    self._seconds.clear()
                second = self._seconds[text] = _Second(now_ns + _NS_PER_S)
            if second.told == _TOLD_A_SECOND:
                second.untold += 1
                return None
            second.told += 1
            return untold
