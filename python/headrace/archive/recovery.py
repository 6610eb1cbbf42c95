"""Where a recording ended whose archive died: found by walking the frames of its last segment file.

Frames are written in order, so what ends the walk is the first place without a length. Only the last frame can be
torn, and only if it reaches into a page of the file that was never written. Three things tell: its checksum, a word
in each further page that is not zero, and whether the file system knows the page as a hole. A torn frame was never
acknowledged to anybody; it is cut off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.archive.errors import SegmentError
from headrace.archive.frames import Frame, frames_in
from headrace.archive.positions import HEADER_LENGTH, segment_name, segment_position

if TYPE_CHECKING:
    from headrace.archive.catalog import Catalog
    from headrace.archive.checksum import Checksum
    from headrace.archive.descriptor import RecordingDescriptor
    from headrace.archive.storage import Storage, StorageFile

__all__ = ["recover", "recovered_stop_position", "segment_positions"]

_PAGE_LENGTH = 4096
_READ_LENGTH = 1 << 20


def segment_positions(storage: Storage, recording_id: int) -> list[int]:
    """Bases of a recording's segment files, in order."""
    found = (segment_position(name, recording_id) for name in storage.names())
    return sorted(base for base in found if base is not None)


def recover(
    catalog: Catalog,
    storage: Storage,
    checksum: Checksum | None,
    now_ms: int,
    on_note: Callable[[str], object],
) -> None:
    """Give every recording that was active when the archive died its stop position.

    Raises:
        SegmentError: A file is damaged in a way that no death explains.
    """
    for entry in list(catalog):
        if entry.descriptor.is_active:
            stop = recovered_stop_position(storage, entry.descriptor, checksum, on_note)
            catalog.stopped(entry.recording_id, stop, now_ms)
            on_note(f"recovered recording_id={entry.recording_id} stop_position={stop}")


def recovered_stop_position(
    storage: Storage,
    descriptor: RecordingDescriptor,
    checksum: Checksum | None,
    on_note: Callable[[str], object],
    *,
    may_cut: bool = True,
) -> int:
    """The position after the last whole frame of a recording; a torn frame after it is cut off."""
    bases = segment_positions(storage, descriptor.recording_id)
    geometry = descriptor.geometry
    if not bases:
        return descriptor.start_position
    base = bases[-1]
    name = segment_name(descriptor.recording_id, base)
    if base < 0:
        raise SegmentError(f"{storage.describe(name)}: a segment cannot begin at position={base}")
    file = storage.open(name, read_only=not may_cut)
    try:
        start = geometry.term_offset(descriptor.start_position) if base == geometry.first_segment else 0
        end, last = _walk(file, start, min(descriptor.segment_file_length, file.length()))
        if last is not None and not _is_whole(file, *last, checksum, storage.describe(name)):
            on_note(f"cut a torn frame of length={last[1].length} off {name} at offset={last[0]}")
            end = last[0]
            if may_cut:
                length = file.length()
                file.set_length(end)
                file.set_length(length)
        return max(base + end, descriptor.start_position)
    finally:
        file.close()


def _walk(file: StorageFile, start: int, limit: int) -> tuple[int, tuple[int, Frame] | None]:
    """Where the frames end, and the last of them."""
    offset, last = start, None
    while offset + HEADER_LENGTH <= limit:
        block = file.read(offset, min(_READ_LENGTH, limit - offset))
        length = 0
        for at, frame in frames_in(block):
            length = at + frame.span
            last = offset + at, frame
        if length == 0:
            break
        offset += length
    return offset, last


def _is_whole(file: StorageFile, offset: int, frame: Frame, checksum: Checksum | None, path: str) -> bool:
    end = offset + frame.span
    next_page = (offset // _PAGE_LENGTH + 1) * _PAGE_LENGTH
    if end > file.length():
        return False
    if frame.is_padding or next_page >= end:
        return True
    body = file.read(offset + HEADER_LENGTH, frame.span - HEADER_LENGTH)
    if checksum is not None and checksum(body) == frame.session_id:
        return True
    pages = range(next_page, end, _PAGE_LENGTH)
    starts = (page - offset - HEADER_LENGTH for page in pages)
    if all(any(body[max(start, 0) : start + _PAGE_LENGTH]) for start in starts):
        return True
    written = file.is_written(offset, end - offset)
    if written is None:
        text = (
            f"{path}: whether the last frame, at offset={offset} length={frame.length}, was written whole cannot "
            f"be told; look at it with `headrace archive verify`, which can cut it off"
        )
        raise SegmentError(text)
    return written
