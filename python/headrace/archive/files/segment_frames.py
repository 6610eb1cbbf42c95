"""The frames of one segment file, walked from header to header without decoding them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from headrace.archive.files.frames import read_frame
from headrace.archive.protocol.descriptor import TERM_LENGTHS
from headrace.client import FrameWalk
from headrace.positions import FRAME_ALIGNMENT, HEADER_LENGTH, segment_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace._agent.storage import Storage, StorageFile
    from headrace.archive.files.checksum import Checksum
    from headrace.archive.protocol.descriptor import RecordingDescriptor

__all__ = ["SegmentFrames"]

# Half of what a core's second cache holds, or less: the walk then finds in it what the kernel has just copied.
_READ_LENGTH = 1 << 17


class SegmentFrames:
    """The frames of one segment file, walked and not decoded. Positions are those of the stream.

    A context manager that closes the file.
    """

    def __init__(
        self, storage: Storage, descriptor: RecordingDescriptor, base: int, checksum: Checksum | None
    ) -> None:
        name = segment_name(descriptor.recording_id, base)
        self.path = storage.describe(name)
        self._file: StorageFile = storage.open(name, read_only=True)
        self._base = base
        self._has_checksum = checksum is not None
        self._descriptor = descriptor
        geometry = descriptor.geometry
        self.start = descriptor.start_position if base == geometry.first_segment else base
        self.length = self._file.length()
        self.limit = base + min(descriptor.segment_file_length, self.length)
        self._walk = FrameWalk(
            descriptor.recording_id,
            start_position=descriptor.start_position,
            initial_term_id=descriptor.initial_term_id,
            term_length=descriptor.term_buffer_length,
            stream_id=descriptor.stream_id,
            session_id=descriptor.session_id,
            checksum=checksum,
        )
        self._buffer = bytearray(_READ_LENGTH)

    def __enter__(self) -> SegmentFrames:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _read(self, position: int, length: int) -> memoryview:
        if length > len(self._buffer):
            self._buffer = bytearray(length)
        block = memoryview(self._buffer)[:length]
        return block[: self._file.read_into(position - self._base, block)]

    def walk(self, start: int, limit: int | None = None) -> tuple[int, int | None, str | None]:
        """Walk from header to header; returns the position after the last frame, its position, and what ended the walk.

        What ended the walk is ``None`` at the limit, which by default is the end of the file.
        """
        limit = self.limit if limit is None else min(limit, self.limit)
        position, last = start, None
        while position < limit:
            block = self._read(position, min(_READ_LENGTH, limit - position))
            end, last_here, fault = self._walk.walk(block, position, limit)
            last = last_here if last_here is not None else last
            if fault is not None:
                return end, last, fault
            if end == position:
                return end, last, "the file ends"
            position = end
        return position, last, None

    def blocks(self, start: int, end: int) -> Iterator[tuple[int, memoryview]]:
        """Runs of whole frames between two positions, each with its position. The frames must have been walked before.

        A run is valid until the next one is taken.
        """
        position, length = start, _READ_LENGTH
        while position < end:
            block = self._read(position, min(length, end - position))
            after, last, _ = self._walk.walk(block, position, end)
            whole = after if after <= position + len(block) or last is None else last
            if whole > position:
                yield position, block[: whole - position]
                position, length = whole, _READ_LENGTH
            elif len(block) < length:
                return
            else:
                length *= 2

    def first_torn(self, start: int, end: int) -> int | None:
        """Position of the first torn frame between two positions, which must have been walked before."""
        if not self._has_checksum and not self._file.has_hole(start - self._base, end - start):
            return None  # Nothing else shows a torn frame, and so nothing need be read once more.
        position, length = start, _READ_LENGTH
        while position < end:
            block = self._read(position, min(length, end - position))
            after, doubts = self._walk.doubts(block, position)
            for at, until, is_wrong in doubts:
                if is_wrong or self._file.has_hole(at - self._base, until - at):
                    return at
            if after > position:
                position, length = after, _READ_LENGTH
            elif len(block) < length:
                return None
            else:
                length *= 2
        return None

    def first_wrong(self, start: int, end: int, checksum: Checksum) -> int | None:
        """Position of the first data frame with a wrong checksum between two positions, walked before."""
        for position, block in self.blocks(start, end):
            wrong = checksum.first_wrong(block, len(block))
            if wrong is not None:
                return position + wrong
        return None

    def has_frame_at(self, position: int) -> bool:
        """Whether the header at a position is one of the recording."""
        return self._walk.walk(self._read(position, HEADER_LENGTH), position, self.limit)[1] is not None

    def first_term_after(self, end: int) -> int | None:
        """The beginning of the file's first later term with frames.

        A block lies within a term and is written before the next, so no kill leaves a gap between terms.
        """
        length = self._descriptor.term_buffer_length
        term = end - end % length + length
        while term < self.limit and (written := self._file.next_data(term - self._base)) is not None:
            term = max(term, self._base + written - written % length)
            if self.has_frame_at(term):
                return term
            term += length
        return None

    def first_frame(self) -> int | None:
        """Position of the first frame, which is in the file's first term; ``None`` if the first header is not valid.

        A recording may begin anywhere in a term, after zeros.
        """
        at, end = 0, self._descriptor.term_buffer_length
        while (found := self._file.next_data(at)) is not None and found < end:
            data = self._file.read(found, min(_READ_LENGTH, end - found))
            zeros = len(data) - len(data.lstrip(b"\0"))
            if zeros < len(data):
                offset = found + zeros
                position = self._base + offset - offset % FRAME_ALIGNMENT
                return position if self.has_frame_at(position) else None
            if not data:
                return None
            at = found + len(data)
        return None

    def is_full_after(self, position: int) -> bool:
        """Whether the frames fill the file. Walks only the last term: terms are written one after another."""
        end = self._base + self._descriptor.segment_file_length
        term = end - self._descriptor.term_buffer_length
        return self.limit == end and self.walk(max(position, term))[0] == end

    def contradiction(self, end: int) -> str | None:
        """The contradiction to the recording's description where a walk from the start ended, in words.

        A kill or a power cut leaves zeros in the place of a header, but never a header of another place.
        """
        header = bytes(self._read(end, HEADER_LENGTH))
        if end == self.start and any(header) and not self.has_frame_at(end):
            return f"the bytes at position={end} are not a frame of the recording"
        if self._base < self.start and self._has_bytes_before(self.start - self._base):
            return f"the recording has frames before start_position={self._descriptor.start_position}"
        length = self._other_term_length(header, end)
        if length is not None:
            return f"the frame at position={end} is of a recording with term_buffer_length={length}"
        return None

    def _has_bytes_before(self, end: int) -> bool:
        at = 0
        while (found := self._file.next_data(at)) is not None and found < end:
            data = self._file.read(found, min(_READ_LENGTH, end - found))
            if any(data) or not data:
                return bool(data)
            at = found + len(data)
        return False

    def _other_term_length(self, header: bytes, position: int) -> int | None:
        """The term length with which a header would fit its place, if there is one."""
        frame = read_frame(header) if len(header) == HEADER_LENGTH else None
        if frame is None or frame.length < HEADER_LENGTH or frame.stream_id != self._descriptor.stream_id:
            return None
        geometry, place = self._descriptor.geometry, (frame.term_id, frame.term_offset)
        if place == (geometry.term_id(position), geometry.term_offset(position)):
            return None
        others = (dataclasses.replace(geometry, term_length=length) for length in TERM_LENGTHS)
        fitting = (one for one in others if place == (one.term_id(position), one.term_offset(position)))
        return next((one.term_length for one in fitting), None)
