"""The frames in segment files: data header and walk.

    0        4    5    6    8        12       16       20       24               32
    | length | v  | fl | ty | offset | sessn  | stream | term   | reserved value | payload, padded to 32

Little endian. ``length`` counts the header; 0 where nothing was recorded. ``ty`` is 0 for padding, 1 for data.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headrace.archive.positions import FRAME_ALIGNMENT, HEADER_LENGTH, align

__all__ = ["FLAGS_BEGIN", "FLAGS_END", "Frame", "frames_in", "read_frame", "walk"]

FLAGS_BEGIN = 0x80
FLAGS_END = 0x40
TYPE_PADDING = 0
TYPE_DATA = 1
TERM_OFFSET_OFFSET = 8
SESSION_ID_OFFSET = 12
STREAM_ID_OFFSET = 16
_HEADER = struct.Struct("<iBBHiiiiq")
_LENGTH = struct.Struct("<i")
_LENGTH_AND_TYPE = struct.Struct("<i2xH")
_SESSION_AND_STREAM = struct.Struct("<ii")
_EQUAL_FRAMES_MIN = 8


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame's header."""

    length: int
    version: int
    flags: int
    type: int
    term_offset: int
    session_id: int
    stream_id: int
    term_id: int
    reserved_value: int

    @property
    def is_padding(self) -> bool:
        """True for filler, of which only the header is stored."""
        return self.type == TYPE_PADDING

    @property
    def span(self) -> int:
        """Bytes of stream it occupies."""
        return align(self.length, FRAME_ALIGNMENT)


def read_frame(buffer: bytes | bytearray | memoryview, offset: int = 0) -> Frame:
    """The header at an offset."""
    return Frame(*_HEADER.unpack_from(buffer, offset))


def frames_in(buffer: bytes | bytearray | memoryview, start: int = 0) -> Iterator[tuple[int, Frame]]:
    """Each frame that begins in the buffer and its offset, until one has no length."""
    offset = start
    while offset + HEADER_LENGTH <= len(buffer):
        frame = read_frame(buffer, offset)
        if frame.length <= 0:
            return
        yield offset, frame
        offset += frame.span


@dataclass(frozen=True, slots=True)
class Walk:
    """What a walk over a run of frames found."""

    length: int
    """Bytes of whole data frames from the beginning."""

    padding: int
    """Length in the padding frame that follows them; 0 when there is none."""

    broken: bool
    """True when it ended at a frame without a length."""


def walk(block: bytearray | memoryview, limit: int, session_id: int, stream_id: int) -> Walk:
    """Give the whole data frames that begin before ``limit`` another session and stream, for replaying them.

    Runs of equally long frames, which are what most streams are made of, are done by the column.
    """
    offset, end = 0, len(block)
    while offset < limit and offset + HEADER_LENGTH <= end:
        length, kind = _LENGTH_AND_TYPE.unpack_from(block, offset)
        if length <= 0:
            return Walk(offset, 0, True)
        if kind == TYPE_PADDING:
            return Walk(offset, length, False)
        span = align(length, FRAME_ALIGNMENT)
        if offset + span > end:
            break
        count = _equal_frames(block, offset, min(limit, end), length, span)
        if count > 1:
            rows = np.frombuffer(block, dtype="<i4", count=count * span // 4, offset=offset)
            columns = rows.reshape(count, span // 4)
            columns[:, SESSION_ID_OFFSET // 4] = session_id
            columns[:, STREAM_ID_OFFSET // 4] = stream_id
            offset += count * span
        else:
            _SESSION_AND_STREAM.pack_into(block, offset + SESSION_ID_OFFSET, session_id, stream_id)
            offset += span
    return Walk(offset, 0, False)


def _equal_frames(block: bytearray | memoryview, offset: int, end: int, length: int, span: int) -> int:
    """How many frames from an offset on have the length of the first and are data."""
    most = (end - offset) // span
    if most < _EQUAL_FRAMES_MIN:
        return 1
    # One look ahead before any column is made: streams of mixed lengths would pay for it at every frame.
    if _LENGTH_AND_TYPE.unpack_from(block, offset + span) != (length, TYPE_DATA):
        return 1
    rows = np.frombuffer(block, dtype="<i4", count=most * span // 4, offset=offset).reshape(most, span // 4)
    first_word = rows[0, 1] & np.int32(-65536)
    same = (rows[:, 0] == length) & ((rows[:, 1] & np.int32(-65536)) == first_word)
    different = int(np.argmin(same))
    return most if same[different] else max(1, different)
