"""The frames in segment files.

    0        4    5    6    8        12       16       20       24               32
    | length | v  | fl | ty | offset | sessn  | stream | term   | reserved value | payload, padded to 32

Little endian. ``length`` counts the header; 0 where nothing was recorded. ``ty`` is 0 for padding, 1 for data.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from headrace.positions import FRAME_ALIGNMENT, HEADER_LENGTH, align

__all__ = ["FLAGS_BEGIN", "FLAGS_END", "Frame", "frames_in", "read_frame"]

FLAGS_BEGIN = 0x80
FLAGS_END = 0x40
TYPE_PADDING = 0
_HEADER = struct.Struct("<iBBHiiiiq")


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
    def payload_length(self) -> int:
        """Bytes of payload, padding not included."""
        return self.length - HEADER_LENGTH

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
