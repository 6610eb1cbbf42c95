"""Finds the end of a recording whose archive died, by walking the frames of its last segment file.

Blocks are written with their first header last (``segment_writer.py``), so a kill leaves whole frames, and after them
perhaps a part of a block without its first header. The walk ends at the first header that does not fit its place: with
another term, offset or stream, or missing. The bytes after that were never acknowledged; they are kept aside in a
separate file (``cut_files.py``) and replaced by zeros.

Other archives write a block from its beginning, and if the machine stopped, any pages of the last block may be missing.
A block lies within a term. So the data frames of the last term are checked: a frame is torn if its checksum is wrong,
or if a page of it is empty and the file system knows that as a hole. A torn last frame is kept aside like all bytes
after the end. A torn frame before others may also come from a bad disk, or from a copy of the directory that left zeros
out: the archive skips and names the recording, and `headrace archive verify --repair` truncates it there.

A catalog entry may be damaged as well, and would make whole frames look wrong. So the checksum of an entry that has one
must be right, and files that contradict an entry stay as they are: the archive skips and names the recording, until a
person has looked at it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from headrace.archive.errors import SegmentError
from headrace.archive.files.cut_files import clear_from
from headrace.archive.files.segment_frames import SegmentFrames
from headrace.archive.protocol.descriptor import DescriptorError
from headrace.positions import segment_name, segment_position

if TYPE_CHECKING:
    from headrace._agent.storage import Storage
    from headrace.archive.files.catalog import Catalog, CatalogEntry
    from headrace.archive.files.checksum import Checksum
    from headrace.archive.protocol.descriptor import RecordingDescriptor

__all__ = ["check_entry", "recovered_stop_position", "segment_bases"]


def check_entry(catalog: Catalog, storage: Storage, entry: CatalogEntry) -> None:
    """Check that the entry of an active recording can be trusted: it decides which of its frames are whole.

    A recording without files has nothing to lose; its entry may have been cut short while it was added.

    Raises:
        DescriptorError: The entry carries a checksum that is wrong.
    """
    if catalog.has_wrong_checksum(entry) and segment_bases(storage).get(entry.recording_id):
        raise DescriptorError(f"the checksum of its catalog entry at offset={entry.offset} is wrong")


def recovered_stop_position(
    storage: Storage,
    descriptor: RecordingDescriptor,
    checksum: Checksum | None,
    on_note: Callable[[str], object],
    *,
    bases: Collection[int] | None = None,
    may_truncate: bool = True,
    is_repair: bool = False,
    is_dry_run: bool = False,
) -> int:
    """Find the position after the last whole frame of a recording, and keep the bytes after it aside.

    Args:
        storage: The archive's files.
        descriptor: The recording.
        checksum: The checksum that frames may carry.
        on_note: Called with a text about bytes that are kept aside, and files that are not of the recording.
        bases: The bases of its segment files, by :func:`segment_bases`; by default the directory is searched.
        may_truncate: Truncate the segment file there; otherwise only find the position.
        is_repair: Also truncate where other frames follow a torn frame, or a gap.
        is_dry_run: Change nothing; ``on_note`` is called with what would be kept aside.

    Raises:
        SegmentError: The files contradict the description, or a frame before the last is torn. Nothing was changed.
    """
    if bases is None:
        bases = segment_bases(storage).get(descriptor.recording_id, ())
    base = _last_segment(storage, descriptor, checksum, on_note, set(bases), is_repair=is_repair)
    if base is None:
        return descriptor.start_position
    with SegmentFrames(storage, descriptor, base, checksum) as frames:
        end, last, _ = frames.walk(frames.start)
        contradiction = frames.contradiction(end)
        if contradiction is not None:
            raise SegmentError(f"{frames.path}: {contradiction}")
        later = frames.first_term_after(end)
        if later is not None and not is_repair:
            raise SegmentError(
                f"{frames.path}: frames are missing at position={end}, and the term at position={later} goes on; "
                "`headrace archive verify --repair` truncates the recording there"
            )
        if last is not None:
            term = max(frames.start, last - last % descriptor.term_buffer_length)
            torn = frames.first_torn(term, end)
            if torn is not None and torn < last and not is_repair:
                raise SegmentError(
                    f"{frames.path}: the frame at offset={torn - base} is torn, and others follow; "
                    "`headrace archive verify --repair` truncates the recording there"
                )
            end = end if torn is None else torn
    if may_truncate:
        _clear(storage, descriptor, base, end, on_note, is_dry_run=is_dry_run)
    return max(end, descriptor.start_position)


def segment_bases(storage: Storage) -> dict[int, set[int]]:
    """The bases in the names of all segment files, by recording, with one look at the directory."""
    found: dict[int, set[int]] = {}
    for name in storage.names():
        owner = name.partition("-")[0]
        base = segment_position(name, int(owner)) if owner.isdecimal() else None
        if base is not None and base >= 0:
            found.setdefault(int(owner), set()).add(base)
    return found


def _last_segment(
    storage: Storage,
    descriptor: RecordingDescriptor,
    checksum: Checksum | None,
    on_note: Callable[[str], object],
    found: set[int],
    *,
    is_repair: bool,
) -> int | None:
    """Base of the last segment file that continues the recording without a gap; ``None`` without files.

    Files before the recording were detached. Other files outside it are noted and left as they are.
    """

    def path(base: int) -> str:
        return storage.describe(segment_name(descriptor.recording_id, base))

    def has_frames(base: int) -> bool:
        with SegmentFrames(storage, descriptor, base, checksum) as frames:
            return frames.has_frame_at(frames.start)

    def is_full(base: int) -> bool:
        end = base + length
        with SegmentFrames(storage, descriptor, base, checksum) as frames:
            return frames.walk(max(frames.start, end - descriptor.term_buffer_length))[0] == end

    first, length = descriptor.geometry.first_segment, descriptor.segment_file_length
    if not found:
        return None
    if first not in found:
        if max(found) == first - length and descriptor.start_position == first:
            return None  # All was detached, and nothing was recorded since.
        raise SegmentError(f"the first segment file is missing, and others are there: {path(first)}")
    last = first
    while last + length in found:
        last += length
    while last > first and not is_full(last - length):
        if has_frames(last) and not is_repair:
            raise SegmentError(
                f"frames are missing at the end of {path(last - length)}, and {path(last)} goes on; "
                "`headrace archive verify --repair` truncates the recording there"
            )
        last -= length
    for base in sorted(found - set(range(first % length, last + 1, length))):
        if base > first and (base - first) % length and has_frames(base):
            raise SegmentError(f"{path(base)} has frames of the recording where no segment file begins")
        on_note(
            f"{path(base)} does not continue recording_id={descriptor.recording_id} and is left as it is: "
            f"the recording ends in {path(last)}"
        )
    if (storage.length(segment_name(descriptor.recording_id, last)) or 0) > length:
        raise SegmentError(f"{path(last)} is longer than segment_file_length={length}")
    return last


def _clear(
    storage: Storage,
    descriptor: RecordingDescriptor,
    base: int,
    end: int,
    on_note: Callable[[str], object],
    *,
    is_dry_run: bool,
) -> None:
    recording_id, length = descriptor.recording_id, descriptor.segment_file_length
    try:
        done = clear_from(storage, recording_id, base, end - base, length, is_dry_run=is_dry_run)
    except OSError as refusal:
        # The stop position is right all the same. A later extension of the recording tries again before it writes.
        done = f"cannot move the bytes of recording_id={recording_id} after position={end} to a .cut file: {refusal}"
    if done is not None:
        on_note(done)
