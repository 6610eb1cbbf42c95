"""How far a streaming query has read, as Spark keeps it: text that outlives the query.

``{"<recording id>": position, ..., "ended": [<recording id>, ...]}``. Everything before a recording's position was
read, and no message lies across it. ``ended`` names the recordings that had stopped at their position. Nothing of them
is missing if they are purged, also when the archive does not tell where they ended. It is left out when it is empty.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

__all__ = ["Offset", "Positions", "ended", "offset_of", "positions"]

Offset = dict[str, Any]
Positions = dict[str, int]

_ENDED = "ended"


def positions(offset: Offset) -> Positions:
    """The positions, by the text of recording ids."""
    return {key: position for key, position in offset.items() if key != _ENDED}


def ended(offset: Offset) -> set[str]:
    """The recordings that were read to where they ended; none for an offset of before there was such an entry."""
    return {str(recording_id) for recording_id in offset.get(_ENDED, ())}


def offset_of(read: Positions, ended_keys: AbstractSet[str]) -> Offset:
    """The offset of some positions. Spark compares offsets as text, so equal ones are equal texts."""
    offset: Offset = {key: read[key] for key in sorted(read, key=int)}
    if ended_keys:
        offset[_ENDED] = sorted(map(int, ended_keys))
    return offset
