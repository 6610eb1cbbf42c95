"""How much of what a duty cycle moved counts as work, so that slow streams do not keep the archive's thread busy.

A duty cycle costs microseconds however few bytes it moves, and one that found work is followed by the next at once. A
slow stream has a message ready in each of them: they would keep a core busy and delay the driver's thread. So a few
bytes do not count as work. The idle strategy then pauses longer and longer, until the bytes that arrive during one
pause are enough to count, or until the pause has its greatest length.
"""

from __future__ import annotations

__all__ = ["work_count"]

_RUN_LENGTH = 16 * 1024
# Pauses double, so at most two runs arrive during one: half of the window that a publisher has within a term.
_RUNS_A_TERM = 8


def work_count(byte_count: int, term_length: int) -> int:
    """The work count of a duty cycle that moved ``byte_count`` bytes of a stream: 0 when they are few."""
    return byte_count if byte_count >= min(_RUN_LENGTH, term_length // _RUNS_A_TERM) else 0
