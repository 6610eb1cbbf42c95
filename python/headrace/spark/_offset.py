"""How far a streaming query has read, as Spark keeps it: text that outlives the query.

``{"<recording id>": position, ..., "ended": [<recording id>, ...]}``. Everything before a recording's position was
read, and no message lies across it. ``ended`` names the recordings that had stopped at their position. Nothing of them
is missing if they are purged, also when the archive does not tell where they ended. It is left out when it is empty.
"""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet
from typing import Any, NoReturn

from headrace._exceptions import HeadraceError

__all__ = ["Offset", "Positions", "ended", "offset_of", "positions"]

Offset = dict[str, Any]
Positions = dict[str, int]

_ENDED = "ended"


def positions(offset: Offset) -> Positions:
    """The positions, by the text of recording ids.

    Raises:
        HeadraceError: It is no offset of this source.
    """
    _check(offset)
    return {key: position for key, position in offset.items() if key != _ENDED}


def ended(offset: Offset) -> set[str]:
    """The recordings that were read to where they ended; none for an offset of before there was such an entry.

    Raises:
        HeadraceError: It is no offset of this source.
    """
    _check(offset)
    return {str(recording_id) for recording_id in offset.get(_ENDED, ())}


def _check(offset: object) -> None:
    """Refuse what this source has not written: it comes from a file that other programs can write."""
    if not isinstance(offset, dict):
        _refuse(offset, "is no JSON object")
    for key, value in offset.items():
        if key == _ENDED:
            if not (isinstance(value, list) and all(map(_is_count, value))):
                _refuse(
                    offset,
                    f"{_ENDED}={json.dumps(value)} must be a list of recording ids, [] or left out for none",
                )
        elif not key.isdecimal():
            _refuse(offset, f"the key {json.dumps(key)} must be a recording id, or {json.dumps(_ENDED)}")
        elif not _is_count(value):
            _refuse(
                offset,
                f"the position of recording {key}, {json.dumps(value)}, must be an integer of at least 0",
            )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _refuse(offset: object, rule: str) -> NoReturn:
    raise HeadraceError(
        f"the offset in the query's checkpoint is none of this source: {rule}; offset={json.dumps(offset)}. "
        "Restore the checkpoint, or start the query with a new one"
    )


def offset_of(read: Positions, ended_keys: AbstractSet[str]) -> Offset:
    """The offset of some positions. Spark compares offsets as text, so equal ones are equal texts."""
    offset: Offset = {key: read[key] for key in sorted(read, key=int)}
    if ended_keys:
        offset[_ENDED] = sorted(map(int, ended_keys))
    return offset
