"""Checks recordings on disk against the catalog, frame by frame. Changes nothing unless asked to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.archive.errors import ArchiveFileError, SegmentError
from headrace.archive.files.catalog import STATE_DELETED, STATE_NAMES, STATE_VALID, Catalog, CatalogEntry
from headrace.archive.files.cut_files import clear_from
from headrace.archive.files.frames import Frame, frames_in, read_frame
from headrace.archive.files.pending_operations import Purge, segment_files
from headrace.archive.files.segment_frames import SegmentFrames
from headrace.archive.files.stop_position import check_entry, recovered_stop_position
from headrace.archive.protocol.descriptor import DescriptorError, RecordingDescriptor
from headrace.positions import FRAME_ALIGNMENT, HEADER_LENGTH, segment_name

if TYPE_CHECKING:
    from headrace._agent.storage import Storage
    from headrace.archive.files.checksum import Checksum

__all__ = ["VerifyResult", "check_frame", "frames_of", "verify"]

_READ_LENGTH = 1 << 20


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """The finding about one recording."""

    recording_id: int
    is_ok: bool
    text: str


def verify(
    catalog: Catalog,
    storage: Storage,
    *,
    recording_id: int | None = None,
    is_thorough: bool = False,
    checksum: Checksum | None = None,
    is_repaired: bool = False,
    is_dry_run: bool = False,
    now_ms: int = 0,
) -> Iterator[VerifyResult]:
    """Check one recording, or all.

    Args:
        catalog: The catalog, opened for writing if ``is_repaired``.
        storage: The archive's files.
        recording_id: Only this one.
        is_thorough: Walk all segment files and not only the last.
        checksum: Also check the checksums of entries and frames.
        is_repaired: If frames in a recording's last segment file are torn or damaged, truncate the recording after the
            last whole frame before them, and move the bytes after that to a `.cut` file; write the stop positions, and
            mark recordings without damage as valid, also those with files that the catalog marks as deleted. A
            recording that cannot be repaired stays as it is, and its finding says why.
        is_dry_run: With `is_repaired`, change nothing; the findings say what would be done.
        now_ms: Time for stop timestamps.
    """
    entries = [entry for entry in catalog.entries() if recording_id in (None, entry.recording_id)]
    if recording_id is not None and not entries:
        yield VerifyResult(recording_id, False, "unknown recording")
    for entry in entries:
        if entry.state == STATE_DELETED:
            files = segment_files(storage, entry.recording_id)
            if not files or storage.length(Purge(entry.recording_id).name) is not None:
                yield VerifyResult(entry.recording_id, True, "skipped: deleted")
                continue
            if not is_repaired:
                text = f"marked as deleted, but no purge was begun and it has {len(files)} segment files"
                yield VerifyResult(entry.recording_id, False, text)
                continue
        notes: list[str] = []
        try:
            stop = _verify_entry(
                catalog, storage, entry, is_thorough, checksum, is_repaired, is_dry_run, notes.append
            )
        except (ArchiveFileError, OSError) as wrong:
            yield VerifyResult(entry.recording_id, False, str(wrong))
            continue
        if is_repaired and is_dry_run:
            notes += _would_change(entry, stop)
        elif is_repaired:
            if entry.descriptor.stop_position != stop:
                catalog.stopped(entry.recording_id, stop, now_ms)
            if entry.state != STATE_VALID:
                catalog.set_state(entry.recording_id, STATE_VALID)
        sound = f"OK, {stop - entry.descriptor.start_position} bytes"
        yield VerifyResult(entry.recording_id, True, "; ".join((sound, *notes)))


def _would_change(entry: CatalogEntry, stop: int) -> Iterator[str]:
    if entry.descriptor.stop_position != stop:
        yield f"would stop at position={stop}"
    if entry.state != STATE_VALID:
        yield f"would be {STATE_NAMES[STATE_VALID]}"


def _verify_entry(
    catalog: Catalog,
    storage: Storage,
    entry: CatalogEntry,
    is_thorough: bool,
    checksum: Checksum | None,
    is_repaired: bool,
    is_dry_run: bool,
    on_note: Callable[[str], object],
) -> int:
    """The end of a recording; damage is an error, unless it is repaired."""
    descriptor = entry.descriptor
    descriptor.check()
    if checksum is not None and entry.checksum != catalog.checksum_of(entry, checksum):
        raise DescriptorError(f"checksum of the catalog entry at offset={entry.offset} is wrong")
    stop = descriptor.stop_position
    if descriptor.is_active:
        if not is_repaired:
            check_entry(catalog, storage, entry)
        stop = recovered_stop_position(
            storage,
            descriptor,
            checksum,
            on_note,
            may_truncate=is_repaired,
            is_repair=is_repaired,
            is_dry_run=is_dry_run,
        )
    bases = _bases(storage, descriptor, stop)
    for base in bases if is_thorough else bases[-1:]:
        end = _verify_segment(storage, descriptor, base, stop, checksum)
        if end is None:
            continue
        position, fault = end
        name = segment_name(descriptor.recording_id, base)
        if base != bases[-1] or not is_repaired:
            rule = f"stop_position={stop}" if base == bases[-1] else f"{name} goes on"
            raise DescriptorError(
                f"{storage.describe(name)}: whole frames end at position={position}, but {rule}: {fault}"
            )
        done = clear_from(
            storage,
            descriptor.recording_id,
            base,
            position - base,
            descriptor.segment_file_length,
            is_dry_run=is_dry_run,
        )
        truncated = "would be truncated" if is_dry_run else "truncated"
        on_note(f"{truncated} at position={position}, where {fault}")
        if done is not None:
            on_note(done)
        return position
    return stop


def _bases(storage: Storage, descriptor: RecordingDescriptor, stop: int) -> list[int]:
    """Bases of the segment files that a recording must have."""
    start, geometry = descriptor.start_position, descriptor.geometry
    if stop == start:
        return []
    bases = list(geometry.segment_bases(start, stop - FRAME_ALIGNMENT))
    for base in bases:
        name = segment_name(descriptor.recording_id, base)
        if storage.length(name) is None:
            raise SegmentError(f"missing segment file: {storage.describe(name)}")
    return bases


def _verify_segment(
    storage: Storage, descriptor: RecordingDescriptor, base: int, stop: int, checksum: Checksum | None
) -> tuple[int, str] | None:
    """The position and the reason where the frames of a segment file end early; ``None`` if they do not."""
    with SegmentFrames(storage, descriptor, base, checksum) as frames:
        due = min(stop, base + descriptor.segment_file_length)
        end, last, fault = frames.walk(frames.start, due)
        contradiction = frames.contradiction(end) if end < due else None
        if contradiction is not None:
            raise SegmentError(f"{frames.path}: {contradiction}")
        if end > due and last is not None:
            return last, f"the last frame goes on to position={end}"
        if end < due:
            return end, fault or "the file ends"
        if checksum is not None:
            wrong = frames.first_wrong(frames.start, end, checksum)
            if wrong is not None:
                raise DescriptorError(
                    f"{frames.path}: checksum of the frame at position={wrong} is wrong; it was left as it is"
                )
    return None


def check_frame(descriptor: RecordingDescriptor, position: int, frame: Frame) -> None:
    """Check that a frame belongs at a position.

    Raises:
        DescriptorError: It does not.
    """
    geometry = descriptor.geometry
    expected = geometry.term_offset(position), geometry.term_id(position), descriptor.stream_id
    found = frame.term_offset, frame.term_id, frame.stream_id
    if found != expected:
        names = "(term_offset, term_id, stream_id)"
        raise DescriptorError(
            f"the frame at position={position} has {names}={found} where {expected} belongs"
        )


def frames_of(
    storage: Storage, descriptor: RecordingDescriptor, start: int, stop: int
) -> Iterator[tuple[int, Frame, bytes]]:
    """Each frame from one position to another: its position, its header, and the bytes after the header.

    Raises:
        DescriptorError: The frames end before the position.
        FileNotFoundError: A segment file is missing.
    """
    geometry, position = descriptor.geometry, start
    while position < stop:
        base = geometry.segment_base(position)
        name = segment_name(descriptor.recording_id, base)
        end = min(stop, base + geometry.segment_length)
        file = storage.open(name, read_only=True)
        try:
            while position < end:
                block = file.read(position - base, min(_READ_LENGTH, end - position))
                consumed = 0
                for offset, frame in frames_in(block):
                    if offset + frame.span > len(block) and not frame.is_padding:
                        break
                    body = block[offset + HEADER_LENGTH : offset + frame.span]
                    consumed = offset + frame.span
                    yield position + offset, frame, body
                if consumed == 0:
                    _refuse_end(file.read(position - base, HEADER_LENGTH), position, storage.describe(name))
                position += consumed
        finally:
            file.close()


def _refuse_end(header: bytes, position: int, path: str) -> None:
    if len(header) < HEADER_LENGTH:
        raise DescriptorError(f"{path}: truncated: there is no frame at position={position}")
    length = read_frame(header).length
    raise DescriptorError(f"{path}: the frame at position={position} has length={length} and ends outside")
