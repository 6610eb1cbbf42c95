"""The rules for changes of a recording's segment files, checked before anything changes.

The archive checks them before it carries out a request, and so does an operator's dry run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.archive.errors import SegmentError
from headrace.archive.files.frames import read_frame
from headrace.archive.files.pending_segments import Migration
from headrace.archive.files.segment_frames import SegmentFrames
from headrace.positions import FRAME_ALIGNMENT, HEADER_LENGTH, segment_name

if TYPE_CHECKING:
    from headrace._agent.storage import Storage
    from headrace.archive.files.checksum import Checksum
    from headrace.archive.protocol.descriptor import RecordingDescriptor

__all__ = ["attached_start", "check_moves", "check_new_start", "check_truncation", "planned_migration"]

# What two recordings must share for one to become a part of the other.
_SHARED = ("segment_file_length", "term_buffer_length", "initial_term_id", "stream_id", "mtu_length")


def check_new_start(descriptor: RecordingDescriptor, position: int, end: int) -> None:
    """Check that a recording that ends at `end` may begin in a later segment file.

    Raises:
        SegmentError: No file begins there, only the first does, or none does yet.
    """
    geometry, recording = descriptor.geometry, f"for recording {descriptor.recording_id}"
    base = geometry.segment_base(position)
    if position != base:
        raise SegmentError(
            f"newStartPosition={position} is not where a segment file begins {recording}: that begins at {base}"
        )
    least = geometry.first_segment + geometry.segment_length
    if position < least:
        raise SegmentError(
            f"newStartPosition={position} is in the first segment file {recording}: the next begins at {least}"
        )
    most = geometry.segment_base(end)
    if position > most:
        raise SegmentError(
            f"newStartPosition={position} is after the last segment file {recording}, which begins at {most}"
        )


def check_truncation(storage: Storage, descriptor: RecordingDescriptor, position: int) -> None:
    """Check that a stopped recording may end at a position.

    Raises:
        SegmentError: The position is outside of the recording, or no frame begins there.
        OSError: The file with the position cannot be read.
    """
    start, stop, geometry = descriptor.start_position, descriptor.stop_position, descriptor.geometry
    if not start <= position <= stop or position % FRAME_ALIGNMENT:
        raise SegmentError(
            f"invalid position {position}: start={start} stop={stop} alignment={FRAME_ALIGNMENT}"
        )
    offset = geometry.segment_offset(position)
    if position in (start, stop) or offset == 0:
        return
    file = storage.open(
        segment_name(descriptor.recording_id, geometry.segment_base(position)), read_only=True
    )
    try:
        header = file.read(offset, HEADER_LENGTH)
    finally:
        file.close()
    frame = read_frame(header) if len(header) == HEADER_LENGTH else None
    found = (frame.term_id, frame.term_offset, frame.stream_id) if frame else None
    if found != (geometry.term_id(position), geometry.term_offset(position), descriptor.stream_id):
        raise SegmentError(
            f"{position} position not aligned to a data header of recording {descriptor.recording_id}"
        )


def attached_start(
    storage: Storage, descriptor: RecordingDescriptor, checksum: Checksum | None
) -> int | None:
    """Where a recording begins once it has the file before its first one; ``None`` without such a file.

    Raises:
        SegmentError: The file has a wrong length, or wrong or missing frames.
    """
    start, length = descriptor.start_position, descriptor.segment_file_length
    base = start - length
    is_at_base = start == descriptor.geometry.first_segment
    if not is_at_base or base < 0 or storage.length(segment_name(descriptor.recording_id, base)) is None:
        return None
    with SegmentFrames(storage, descriptor.replace(start_position=base), base, checksum) as frames:
        if frames.length != length:
            raise SegmentError(f"{frames.path} has length={frames.length}, not segment_file_length={length}")
        first = frames.first_frame()
        if first is None:
            rule = f"term and stream_id={descriptor.stream_id} of its position"
            raise SegmentError(f"the first frame of {frames.path} does not have the {rule}, or is missing")
        if not frames.is_full_after(first):
            raise SegmentError(f"frames are missing at the end of {frames.path}: restore it from a copy")
    return first


def planned_migration(source: RecordingDescriptor, destination: RecordingDescriptor) -> Migration:
    """The migration of a whole recording to another one, by their descriptions in the catalog.

    Raises:
        SegmentError: They are the same, differ, or do not join, or the source is active.
    """
    pair = f"of source recording {source.recording_id} and destination recording {destination.recording_id}"
    if source.recording_id == destination.recording_id:
        raise SegmentError(f"cannot migrate recording {source.recording_id} to itself")
    if source.is_active:
        raise SegmentError(f"cannot migrate active source recording {source.recording_id}: stop it first")
    for name in _SHARED:
        found, wanted = getattr(source, name), getattr(destination, name)
        if found != wanted:
            raise SegmentError(f"{name} {pair} differ: {found} and {wanted}")
    is_before = source.stop_position == destination.start_position
    if not is_before and source.start_position != destination.stop_position:
        raise SegmentError(
            f"the positions {pair} do not join: start={source.start_position} stop={source.stop_position} and "
            f"start={destination.start_position} stop={destination.stop_position}"
        )
    position = source.stop_position if is_before else source.start_position
    for one in (source, destination):
        base = one.geometry.segment_base(position)
        if base != position:
            raise SegmentError(
                f"no segment file of recording {one.recording_id} begins at the joining position={position}: "
                f"the one with it begins at {base}"
            )
    return Migration(
        is_before,
        source.recording_id,
        destination.recording_id,
        source.start_position,
        source.stop_position,
    )


def check_moves(storage: Storage, migration: Migration, source: RecordingDescriptor) -> None:
    """Check that each file of a migration exists, and that its new name is free.

    Raises:
        SegmentError: A file does not exist, or a name is taken.
    """
    for name, new_name in migration.moves(source.geometry):
        if storage.length(name) is None:
            raise SegmentError(f"missing source segment file: {storage.describe(name)}")
        if storage.length(new_name) is not None:
            advice = (
                "if it is detached, delete it or move it away; if it is empty, truncate at the stop position"
            )
            raise SegmentError(
                f"destination segment file is there already: {storage.describe(new_name)}; {advice}"
            )
