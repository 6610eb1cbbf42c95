"""How much of what a duty cycle moved counts as work, so that slow streams do not keep the archive's thread busy.

A duty cycle costs microseconds however few bytes it moves, and one that found work is followed by the next at once. A
slow stream has a message ready in each of them: they would keep a core busy and delay the driver's thread. So a few
bytes do not count as work. The idle strategy then pauses longer and longer, until the bytes that arrive during one
pause are enough to count, or until the pause has its greatest length.

And how much a duty cycle moves at most, so that many fast streams do not keep clients waiting for their answers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

__all__ = ["Rotation", "work_count"]

T = TypeVar("T")

_RUN_LENGTH = 16 * 1024
# Pauses double, so at most two runs arrive during one: half of the window that a publisher has within a term.
_RUNS_A_TERM = 8
_CYCLE_LENGTH = 4 * 1024 * 1024


def work_count(byte_count: int, term_length: int) -> int:
    """The work count of a duty cycle that moved ``byte_count`` bytes of a stream: 0 when they are few."""
    return byte_count if byte_count >= min(_RUN_LENGTH, term_length // _RUNS_A_TERM) else 0


class Rotation:
    """Steps sessions in turn: all in a duty cycle, or as many as move 4 MiB; the next cycle goes on after those.

    A disk of 2 GB/s takes 4 MiB in two milliseconds. A session moves one block, so a cycle may exceed that by a block.
    """

    def __init__(self) -> None:
        self._first = 0

    def do_work(self, sessions: Collection[T], step: Callable[[T], int]) -> int:
        """The work count of the duty cycle. `step` gives that of one session, and may take sessions away."""
        in_order = [*sessions][self._first :] + [*sessions][: self._first]
        total = 0
        for number, session in enumerate(in_order, 1):
            total += step(session)
            if total >= _CYCLE_LENGTH:
                self._first = (self._first + number) % len(in_order)
                return total
        return total
