"""When the archive's thread should hurry, and when it should rest.

A turn costs microseconds however few bytes it moves, and one that found work is followed by the next at once. A slow
stream has a message ready in each of those turns: they would keep a core, and the driver's thread waits for its turn
behind them. So what trickles does not count as work. Turns then come less and less often, until what has gathered
between two of them is a run that counts, or the longest pause is reached.
"""

from __future__ import annotations

__all__ = ["haste"]

_RUN_LENGTH = 16 * 1024
# What gathers at most is two runs, as pauses double: half of the window that a publisher has within a term.
_RUNS_A_TERM = 8


def haste(byte_count: int, term_length: int) -> int:
    """The work count of a turn that moved so many bytes of a stream: 0 when it was a trickle."""
    return byte_count if byte_count >= min(_RUN_LENGTH, term_length // _RUNS_A_TERM) else 0
