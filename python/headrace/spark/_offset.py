"""How far a streaming query has read, as Spark keeps it: text that outlives the query.

``{"<recording id>": position, ..., "ended": [<recording id>, ...], "began": {"<recording id>": position, ...},
"unfinished": {"<recording id>": position, ...}}``. Everything before a recording's position was read, and no message
lies across it. Each of the other three is left out when it is empty:

``ended`` names the recordings of which nothing is left to read. Nothing of them is missing if they are purged, also
when the archive does not tell where they ended.

``began`` says from where recordings are read that the offset before does not have. Versions before had no such entry.

``unfinished`` says where recordings stopped within a message, which begins at their position.
"""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet
from typing import Any, NoReturn

from headrace._base.exceptions import HeadraceError

__all__ = ["Offset", "Positions", "began", "ended", "offset_of", "positions", "unfinished"]

Offset = dict[str, Any]
Positions = dict[str, int]

_ENDED = "ended"
_BEGAN = "began"
_UNFINISHED = "unfinished"
_BY_RECORDING = (_BEGAN, _UNFINISHED)


def positions(offset: Offset) -> Positions:
    """The positions, by the text of recording ids.

    Raises:
        HeadraceError: It is no offset of this source.
    """
    _check(offset)
    return {key: position for key, position in offset.items() if key not in (_ENDED, *_BY_RECORDING)}


def ended(offset: Offset) -> set[str]:
    """The recordings that were read to where they ended; none for an offset of before there was such an entry.

    Raises:
        HeadraceError: It is no offset of this source.
    """
    _check(offset)
    return {str(recording_id) for recording_id in offset.get(_ENDED, ())}


def began(offset: Offset) -> Positions:
    """From where the recordings are read that came with this offset; of some that an older version wrote, nothing.

    Raises:
        HeadraceError: It is no offset of this source.
    """
    _check(offset)
    return dict(offset.get(_BEGAN, {}))


def unfinished(offset: Offset) -> Positions:
    """Where recordings stopped of which only the beginning of a message is not read.

    Raises:
        HeadraceError: It is no offset of this source.
    """
    _check(offset)
    return dict(offset.get(_UNFINISHED, {}))


def _check(offset: object) -> None:
    """Refuse what this source has not written: it comes from a file that other programs can write."""
    if not isinstance(offset, dict):
        _refuse(offset, "is not a JSON object")
    for key, value in offset.items():
        if key == _ENDED:
            if not (isinstance(value, list) and all(map(_is_count, value))):
                _refuse(
                    offset,
                    f"{_ENDED}={json.dumps(value)} must be a list of recording ids, [] or left out for none",
                )
        elif key in _BY_RECORDING:
            _check_positions(offset, key, value)
        elif not key.isdecimal():
            names = ", ".join(map(json.dumps, (_ENDED, *_BY_RECORDING)))
            _refuse(offset, f"the key {json.dumps(key)} must be a recording id, or {names}")
        elif not _is_count(value):
            _refuse(
                offset,
                f"the position of recording {key}, {json.dumps(value)}, must be an integer of at least 0",
            )


def _check_positions(offset: object, name: str, value: object) -> None:
    if not (
        isinstance(value, dict)
        and all(key.isdecimal() and _is_count(position) for key, position in value.items())
    ):
        _refuse(
            offset,
            f"{name}={json.dumps(value)} must be an object of recording ids and positions, left out for none",
        )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _refuse(offset: object, rule: str) -> NoReturn:
    raise HeadraceError(
        f"the offset in the query's checkpoint is not one of this source: {rule}; offset={json.dumps(offset)}. "
        "Restore the checkpoint, or start the query with a new one"
    )


def offset_of(
    read: Positions,
    ended_keys: AbstractSet[str] = frozenset(),
    *,
    began_at: Positions | None = None,
    unfinished_to: Positions | None = None,
) -> Offset:
    """The offset of some positions. Spark compares offsets as text, so equal ones are equal texts."""
    offset: Offset = _sorted(read)
    if ended_keys:
        offset[_ENDED] = sorted(map(int, ended_keys))
    if began_at:
        offset[_BEGAN] = _sorted(began_at)
    if unfinished_to:
        offset[_UNFINISHED] = _sorted(unfinished_to)
    return offset


def _sorted(by_recording: Positions) -> dict[str, int]:
    return {key: by_recording[key] for key in sorted(by_recording, key=int)}
