"""Recovery and repair keep the bytes that they truncate from a recording, in files that no archive reads.

``<recording id>-<position>.cut`` has the bytes that followed the position in the recording's segment file. A second
file of the same position is called ``<recording id>-<position>.2.cut``. Purging the recording deletes them.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.positions import segment_name

if TYPE_CHECKING:
    from headrace._agent.storage import Storage, StorageFile

__all__ = ["CUT_SUFFIXES", "clear_from", "set_segment_aside"]

_CUT_SUFFIX = ".cut"
_PART_SUFFIX = f"{_CUT_SUFFIX}.part"
CUT_SUFFIXES = (_CUT_SUFFIX, _PART_SUFFIX)
"""How files end that are kept aside, and those that a kill left while they were written."""
_READ_LENGTH = 1 << 20
_FULL_SYNC = 2


def clear_from(
    storage: Storage, recording_id: int, base: int, offset: int, length: int, *, is_dry_run: bool = False
) -> str | None:
    """Zero a segment file from an offset on. Returns what was done, in words; ``None`` if all bytes were zeros.

    After a kill the bytes are in the segment file, in the `.cut` file, or in both; the next call continues from there.
    A dry run changes nothing, and returns what would be done.

    Raises:
        OSError: The disk refuses; the segment file is as it was, or was truncated at the offset.
    """
    name = segment_name(recording_id, base)
    file = storage.open(name, read_only=is_dry_run)
    try:
        if is_dry_run:
            end = max((at + len(data) for at, data in _written(file, offset)), default=offset)
            what = (
                f"{end - offset} bytes after position={base + offset} of {name} would be moved to a .cut file"
            )
            return what if end > offset else None
        kept = _keep(storage, file, recording_id, base + offset, offset)
        if kept is not None:
            file.set_length(offset)
        if file.length() != length:
            file.set_length(length)
    finally:
        file.close()
    if kept is None:
        return None
    count, cut_name = kept
    return f"{count} bytes after position={base + offset} of {name} were moved to {cut_name}"


def set_segment_aside(storage: Storage, recording_id: int, base: int) -> str:
    """Rename a segment file that is not of the recording; returns a text about it.

    Raises:
        OSError: The disk refuses.
    """
    name = segment_name(recording_id, base)
    cut_name = next(one for one in _cut_names(recording_id, base) if storage.length(one) is None)
    storage.rename(name, cut_name)
    return f"{name} does not belong to the recording and was renamed to {cut_name}"


def _cut_names(recording_id: int, position: int) -> Iterator[str]:
    yield f"{recording_id}-{position}{_CUT_SUFFIX}"
    for number in itertools.count(2):
        yield f"{recording_id}-{position}.{number}{_CUT_SUFFIX}"


def _keep(
    storage: Storage, file: StorageFile, recording_id: int, position: int, offset: int
) -> tuple[int, str] | None:
    """Copy the bytes of a file from an offset on; returns their number without trailing zeros, and the new file."""
    if next(_written(file, offset), None) is None:
        return None
    part_name = f"{recording_id}-{position}{_PART_SUFFIX}"
    part = storage.create(part_name, 0, may_exist=True)
    try:
        count = 0
        for at, data in _written(file, offset):
            part.write(at - offset, data)
            count = at - offset + len(data)
        part.sync(_FULL_SYNC)
        for name in _cut_names(recording_id, position):
            if storage.length(name) is None:
                storage.rename(part_name, name)
                storage.sync()
                return count, name
            if _is_same(storage, name, part, count):
                # From a start that was killed before it had truncated the segment file.
                storage.delete(part_name)
                return count, name
    except OSError:
        # On a full disk a part of a copy is of no use, and takes the last room from all else.
        with contextlib.suppress(OSError):
            storage.delete(part_name)
        raise
    finally:
        part.close()
    raise AssertionError("names do not end")


def _written(file: StorageFile, offset: int) -> Iterator[tuple[int, bytes]]:
    """Pieces of a file from an offset on that are not all zeros, each up to its last byte that is not zero."""
    while (found := file.next_data(offset)) is not None:
        offset = found
        data = file.read(offset, _READ_LENGTH)
        if not data:
            return
        if piece := data.rstrip(b"\0"):
            yield offset, piece
        offset += len(data)


def _is_same(storage: Storage, name: str, part: StorageFile, length: int) -> bool:
    if storage.length(name) != length:
        return False
    file = storage.open(name, read_only=True)
    try:
        offsets = range(0, length, _READ_LENGTH)
        return all(file.read(at, _READ_LENGTH) == part.read(at, _READ_LENGTH) for at in offsets)
    finally:
        file.close()
