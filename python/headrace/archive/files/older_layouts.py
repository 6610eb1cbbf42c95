"""Converts directories of archives before version 3 of the format to today's layout.

    0.x   <id>-<n>.rec   the n-th segment file, from 0
    1.x   <id>-<p>.rec   the first has the multiple of the segment length that is not above the start position
    2.x   <id>-<p>.rec   as today

    all   archive.catalog: a header and entries of 1024 bytes each: i32 version | i32 1024; an entry is
          i32 length of the description | i8 whether it is valid | zeros to 32 | description
          archive-mark.dat: today's fields from offset 0, without a message header

The frames of a file decide where it belongs; if its name contradicts them, the directory is refused. A note marks the
beginning. From then on only this module and an archive of ours continue with the directory: the mark file has the new
version, and the catalog, which decides, has the old one until all files have their names.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.archive.errors import CatalogError, SegmentError
from headrace.archive.files.catalog import CATALOG_NAME, STATE_INVALID, STATE_VALID, VERSION, new_catalog
from headrace.archive.files.frames import read_frame
from headrace.archive.files.mark_file import upgrade_mark
from headrace.archive.files.pending_notes import begin_note, end_note, note_name
from headrace.archive.protocol.descriptor import DescriptorError, RecordingDescriptor
from headrace.positions import HEADER_LENGTH, segment_name, segment_position, version_text

if TYPE_CHECKING:
    from headrace._agent.storage import Storage, StorageFile
    from headrace.positions import Geometry

__all__ = ["Upgrade", "finish_upgrade", "is_upgrade_begun", "planned_upgrade", "upgrade"]

_NOTE = note_name("upgrade")
_FRAME_LENGTH = 1024
_ENTRY_HEADER_LENGTH = 32
_HEADER = struct.Struct("<iiqi")
_ENTRY = struct.Struct("<ib")
_POSITIONS_MAJOR, _TODAY_MAJOR = 1, 2
# No index of a file is as high, and no position but 0 is as low.
_INDEX_LIMIT = 1 << 16
_FULL_SYNC = 2


@dataclass(frozen=True, slots=True)
class Upgrade:
    """An upgrade, made or planned.

    Attributes:
        from_version: Version of the directory.
        to_version: Version afterwards.
        recording_ids: All recordings of the catalog.
        renamed: Old and new names of the renamed segment files.
    """

    from_version: int
    to_version: int
    recording_ids: tuple[int, ...]
    renamed: tuple[tuple[str, str], ...]


def is_upgrade_begun(storage: Storage) -> bool:
    """Whether a program was killed while it converted the directory."""
    return storage.length(_NOTE) is not None


def upgrade(storage: Storage) -> None:
    """Convert a directory to today's layout. After a kill the next call, or the start of an archive, finishes it.

    Raises:
        CatalogError: The catalog is damaged, or of a version that cannot be read.
        SegmentError: The name of a segment file contradicts its frames. Nothing is changed.
        OSError: The disk refuses. The next call continues.
    """
    planned_upgrade(storage)
    begin_note(_NOTE, storage, _FULL_SYNC)
    upgrade_mark(storage)
    finish_upgrade(storage)


def finish_upgrade(storage: Storage) -> None:
    """Do the steps after the mark file, which a starting archive has taken over already."""
    version, entries = _read_catalog(storage)
    if version >> 16 < VERSION >> 16:
        for old, new in list(_renamed(storage, version, entries)):
            storage.rename(old, new)
        storage.sync()
        new_catalog(storage, [(_state(is_valid), _of_today(one)) for is_valid, one in entries])
    end_note(_NOTE, storage, _FULL_SYNC)


def planned_upgrade(storage: Storage) -> Upgrade | None:
    """The upgrade that :func:`upgrade` would make; ``None`` for a directory of today's layout.

    Raises:
        CatalogError, SegmentError, OSError: As for :func:`upgrade`.
    """
    version, entries = _read_catalog(storage)
    if version >> 16 == VERSION >> 16 and not is_upgrade_begun(storage):
        return None
    recording_ids = tuple(one.recording_id for _, one in entries)
    return Upgrade(version, VERSION, recording_ids, tuple(_renamed(storage, version, entries)))


def _read_catalog(storage: Storage) -> tuple[int, list[tuple[bool, RecordingDescriptor]]]:
    """The version, and the entries if it is an old one."""
    path = storage.describe(CATALOG_NAME)
    try:
        file = storage.open(CATALOG_NAME, read_only=True)
    except FileNotFoundError:
        raise CatalogError(f"there is no catalog: {path}") from None
    try:
        header = file.read(0, _HEADER.size)
        if len(header) < _HEADER.size:
            raise CatalogError(
                f"{path}: length={len(header)} is below the {_HEADER.size} bytes of its header"
            )
        version, length, _, alignment = _HEADER.unpack(header)
        major = version >> 16
        if major == VERSION >> 16:
            return version, []
        if not 0 <= major < VERSION >> 16:
            raise CatalogError(
                f"{path}: the catalog has version {version_text(version)}; versions from 0.x to 2.x can be brought to "
                f"{version_text(VERSION)}"
            )
        if length != _FRAME_LENGTH or alignment not in (0, _FRAME_LENGTH):
            raise CatalogError(
                f"{path}: version {version_text(version)} with length={length} alignment={alignment}, and not 1024 "
                "and 0: the catalog is damaged; restore it from a copy"
            )
        return version, list(_entries(file, path))
    finally:
        file.close()


def _entries(file: StorageFile, path: str) -> Iterator[tuple[bool, RecordingDescriptor]]:
    offset, last_id = _FRAME_LENGTH, -1
    while len(entry := file.read(offset, _FRAME_LENGTH)) == _FRAME_LENGTH:
        length, is_valid = _ENTRY.unpack_from(entry)
        if length <= 0:
            return
        try:
            one = RecordingDescriptor.decode(entry[_ENTRY_HEADER_LENGTH : _ENTRY_HEADER_LENGTH + length])
            if is_valid:
                _of_today(one).check()
        except DescriptorError as wrong:
            raise CatalogError(f"{path}: damaged entry at offset={offset}: {wrong}; restore it") from wrong
        if one.recording_id <= last_id:
            raise CatalogError(
                f"{path}: damaged entry at offset={offset}: recording_id={one.recording_id} follows {last_id}; "
                "restore it"
            )
        last_id = one.recording_id
        yield bool(is_valid), one
        offset += _FRAME_LENGTH


def _state(is_valid: bool) -> int:
    return STATE_VALID if is_valid else STATE_INVALID


def _of_today(one: RecordingDescriptor) -> RecordingDescriptor:
    """The description with the length of segment files, at least a term, which old archives did not store."""
    return one.replace(segment_file_length=max(one.segment_file_length, one.term_buffer_length))


def _renamed(
    storage: Storage, version: int, entries: list[tuple[bool, RecordingDescriptor]]
) -> Iterator[tuple[str, str]]:
    """Files with old names, and their new ones; leaves out files that an upgrade renamed before it was killed."""
    if version >> 16 >= _TODAY_MAJOR:
        return
    by_owner: dict[str, list[str]] = {}
    for name in storage.names():
        by_owner.setdefault(name.partition("-")[0], []).append(name)
    for _, one in entries:
        descriptor = _of_today(one)
        for name in by_owner.get(str(descriptor.recording_id), ()):
            number = segment_position(name, descriptor.recording_id)
            if number is None:
                continue
            base = _base(number, version, descriptor.geometry)
            _check_frames(storage, name, base, descriptor.geometry)
            if base != number:
                yield name, segment_name(descriptor.recording_id, base)


def _base(number: int, version: int, geometry: Geometry) -> int:
    """The position at which a file begins whose name has this number."""
    first = geometry.first_segment
    if version >> 16 < _POSITIONS_MAJOR:
        return first + number * geometry.segment_length if number < _INDEX_LIMIT else number
    # Where they differ at all, no old number is a new one: they have other remainders of the segment length.
    is_new = (number - first) % geometry.segment_length == 0
    return number if is_new else number + first % geometry.segment_length


def _check_frames(storage: Storage, name: str, base: int, geometry: Geometry) -> None:
    """Check that the first frame of a file, if it has one, fits the file's name.

    Raises:
        SegmentError: It does not.
    """
    offset = max(geometry.start_position - base, 0)
    file = storage.open(name, read_only=True)
    try:
        header = file.read(offset, HEADER_LENGTH)
    finally:
        file.close()
    if not any(header):
        return
    position = base + offset
    expected = geometry.term_id(position), geometry.term_offset(position)
    first = read_frame(header)
    if (first.term_id, first.term_offset) != expected:
        raise SegmentError(
            f"{storage.describe(name)}: its first frame has term_id={first.term_id} term_offset={first.term_offset}, "
            f"and term_id={expected[0]} term_offset={expected[1]} belongs there by its name: it belongs to "
            "another archive or version; move it away, or restore it"
        )
