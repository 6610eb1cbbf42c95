"""Checks recordings on disk against what the catalog says, frame by frame. Changes nothing unless asked to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.archive.catalog import STATE_DELETED, STATE_INVALID, STATE_VALID, Catalog, CatalogEntry
from headrace.archive.descriptor import DescriptorError, RecordingDescriptor
from headrace.archive.errors import ArchiveFileError
from headrace.archive.frames import Frame, frames_in, read_frame
from headrace.archive.positions import HEADER_LENGTH, NULL_VALUE, segment_name
from headrace.archive.recovery import recovered_stop_position, segment_positions

if TYPE_CHECKING:
    from headrace.archive.checksum import Checksum
    from headrace.archive.storage import Storage

__all__ = ["Finding", "check_frame", "frames_of", "verify"]

_READ_LENGTH = 1 << 20


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one recording."""

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
    now_ms: int = 0,
) -> Iterator[Finding]:
    """Look at one recording, or all.

    Args:
        catalog: The catalog, opened for writing if ``is_repaired``.
        storage: The archive's files.
        recording_id: Only this one.
        is_thorough: Walk all segment files and not only the last.
        checksum: Also check the checksums of entries and frames.
        is_repaired: Cut torn frames off recordings that were never stopped, write found stop positions, and mark what
            is damaged as invalid.
        now_ms: Time for stop timestamps.
    """
    entries = [entry for entry in catalog.entries() if recording_id in (None, entry.recording_id)]
    if recording_id is not None and not entries:
        yield Finding(recording_id, False, "unknown recording")
    for entry in entries:
        if entry.state == STATE_DELETED:
            yield Finding(entry.recording_id, True, "skipped: deleted")
            continue
        try:
            stop = _verify_entry(catalog, storage, entry, is_thorough, checksum, is_repaired)
        except (ArchiveFileError, OSError) as wrong:
            if is_repaired and entry.state == STATE_VALID:
                catalog.set_state(entry.recording_id, STATE_INVALID)
            yield Finding(entry.recording_id, False, str(wrong))
            continue
        if is_repaired:
            if entry.descriptor.stop_position != stop:
                catalog.stopped(entry.recording_id, stop, now_ms)
            if entry.state == STATE_INVALID:
                catalog.set_state(entry.recording_id, STATE_VALID)
        yield Finding(entry.recording_id, True, f"OK, {stop - entry.descriptor.start_position} bytes")


def _verify_entry(
    catalog: Catalog,
    storage: Storage,
    entry: CatalogEntry,
    is_thorough: bool,
    checksum: Checksum | None,
    is_repaired: bool,
) -> int:
    descriptor = entry.descriptor
    descriptor.check()
    if checksum is not None and entry.checksum != catalog.checksum_of(entry, checksum):
        raise DescriptorError(f"checksum of the catalog entry at offset={entry.offset} is wrong")
    bases = segment_positions(storage, descriptor.recording_id)
    # One that was stopped is whole or damaged, and never half written: what is behind the damage is left where it is.
    is_active = descriptor.is_active
    stop = recovered_stop_position(
        storage,
        descriptor,
        checksum,
        lambda text: None,
        may_cut=is_repaired and is_active,
        is_repair=is_repaired or not is_active,
    )
    recorded_stop = descriptor.stop_position
    if recorded_stop != NULL_VALUE and stop < recorded_stop:
        raise DescriptorError(f"stop_position={recorded_stop} but whole frames end at position={stop}")
    if recorded_stop != NULL_VALUE and not bases and recorded_stop != descriptor.start_position:
        raise DescriptorError(f"stop_position={recorded_stop} but there are no segment files")
    first = descriptor.start_position
    if not is_thorough and bases:
        first = max(first, bases[-1])
    for position, frame, body in frames_of(storage, descriptor, first, stop):
        check_frame(descriptor, position, frame)
        if checksum is not None and not frame.is_padding and checksum(body) != frame.session_id:
            raise DescriptorError(f"checksum of the frame at position={position} is wrong")
    return stop


def check_frame(descriptor: RecordingDescriptor, position: int, frame: Frame) -> None:
    """Look whether a frame is the one that belongs at a position.

    Raises:
        DescriptorError: It is not.
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
    """Each frame from one position to another: its position, header, and what follows the header in its space.

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
