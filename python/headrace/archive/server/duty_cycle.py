"""Which work of a duty cycle counts, so that slow streams do not keep the archive's thread busy.

A duty cycle costs microseconds however few bytes it moves, and after a cycle with work the next one follows at once. A
slow stream has a message ready in each cycle: the cycles would keep a core busy and delay the driver's thread. So a few
bytes do not count as work. The idle strategy then pauses longer and longer, until enough bytes to count arrive during
one pause, or until the pause has its greatest length.

A limit of the bytes that a duty cycle moves keeps many fast streams from delaying the answers to clients.
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
    """The work count of a duty cycle that moved ``byte_count`` bytes of a stream: 0 if these are few."""
    return byte_count if byte_count >= min(_RUN_LENGTH, term_length // _RUNS_A_TERM) else 0


class Rotation:
    """Steps sessions in turn: all in a duty cycle, or until they have moved 4 MiB; the next cycle goes on from there.

    A disk of 2 GB/s takes 4 MiB in two milliseconds. A session moves one block, so a cycle may exceed that by a block.
    """

    def __init__(self) -> None:
        self._first = 0

    def do_work(self, sessions: Collection[T], step: Callable[[T], int]) -> int:
        """Step sessions; returns the work count. `step` returns that of one session, and may remove sessions."""
        in_order = [*sessions][self._first :] + [*sessions][: self._first]
        total = 0
        for number, session in enumerate(in_order, 1):
            total += step(session)
            if total >= _CYCLE_LENGTH:
                self._first = (self._first + number) % len(in_order)
                return total
        return total
