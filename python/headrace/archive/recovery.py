"""Where a recording ended whose archive died: found by walking the frames of its last segment file.

Frames are written in order, so what ends the walk is the first place without a length. After a kill only the last
frame can be torn, and only if it reaches into a page of the file that was never written. Three things tell: its
checksum, a word in each further page that is not zero, and whether the file system knows the page as a hole. A torn
last frame was never acknowledged to anybody; it is cut off.

When the machine stopped, pages of the last block may be missing in any order, and a block lies within a term. So the
frames of the last term are looked at as well. One that is torn among them may also be a disk gone bad: the archive
refuses to start, by name, and `headrace archive verify --repair` cuts the recording there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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

_ADVICE = "look at it with `headrace archive verify`, which can cut the recording there with --repair"
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
    is_repair: bool = False,
) -> int:
    """The position after the last whole frame of a recording; a torn frame after it is cut off.

    Args:
        storage: The archive's files.
        descriptor: The recording.
        checksum: What frames may carry.
        on_note: Told what was cut off.
        may_cut: Change the file; otherwise the position is found and nothing done.
        is_repair: Also cut where a torn frame is followed by others.

    Raises:
        SegmentError: A frame before the last is torn, or whether the last one is cannot be told.
    """
    bases = segment_positions(storage, descriptor.recording_id)
    geometry = descriptor.geometry
    if not bases:
        return descriptor.start_position
    base = bases[-1]
    name = segment_name(descriptor.recording_id, base)
    path = storage.describe(name)
    if base < 0:
        raise SegmentError(f"{path}: a segment cannot begin at position={base}")
    file = storage.open(name, read_only=not may_cut)
    try:
        start = geometry.term_offset(descriptor.start_position) if base == geometry.first_segment else 0
        limit = min(descriptor.segment_file_length, file.length())
        end, last = start, None
        for offset, frame in _frames(file, start, limit):
            end, last = offset + frame.span, offset
        if last is not None:
            term = max(start, last - last % geometry.term_length)
            torn = _first_torn(file, term, end, checksum, descriptor.session_id, path)
            if torn is not None:
                if torn < last and not is_repair:
                    raise SegmentError(
                        f"{path}: the frame at offset={torn} is torn, and others follow; {_ADVICE}"
                    )
                on_note(f"cut {end - torn} bytes off {name} at offset={torn}, where a torn frame begins")
                end = torn
                if may_cut:
                    length = file.length()
                    file.set_length(end)
                    file.set_length(length)
        return max(base + end, descriptor.start_position)
    finally:
        file.close()


def _frames(file: StorageFile, start: int, limit: int) -> Iterator[tuple[int, Frame]]:
    """Each frame and its offset, until one has no length."""
    offset = start
    while offset + HEADER_LENGTH <= limit:
        block = file.read(offset, min(_READ_LENGTH, limit - offset))
        length = 0
        for at, frame in frames_in(block):
            length = at + frame.span
            yield offset + at, frame
        if length == 0:
            return
        offset += length


def _first_torn(
    file: StorageFile, start: int, end: int, checksum: Checksum | None, session_id: int, path: str
) -> int | None:
    """Offset of the first frame between two offsets that was not written whole."""
    has_checksums = False
    for offset, frame in _frames(file, start, end):
        if frame.is_padding:
            continue
        after = offset + frame.span
        if checksum is not None:
            body = file.read(offset + HEADER_LENGTH, frame.span - HEADER_LENGTH)
            if checksum(body) == frame.session_id:
                has_checksums = True
                continue
            # Recordings may begin without checksums and go on with them, or the other way round.
            if has_checksums and frame.session_id != session_id:
                return offset
        if after > file.length() or not _is_in_all_pages(file, offset, after, path, is_last=after == end):
            return offset
    return None


def _is_in_all_pages(file: StorageFile, offset: int, end: int, path: str, *, is_last: bool) -> bool:
    """Whether every page that a frame reaches into was written, as far as that can be told."""
    pages = range((offset // _PAGE_LENGTH + 1) * _PAGE_LENGTH, end, _PAGE_LENGTH)
    if all(any(file.read(page, min(_PAGE_LENGTH, end - page))) for page in pages):
        return True
    written = file.is_written(offset, end - offset)
    if written is None and is_last:
        text = (
            f"{path}: whether the last frame, at offset={offset}, was written whole cannot be told; {_ADVICE}"
        )
        raise SegmentError(text)
    return written is not False
