"""A recording's description, as the catalog stores it and the control protocol sends it.

0  i64 control session id     32  i64 stop timestamp, ms    60  i32 segment file length   80  u32 + stripped channel
8  i64 correlation id         40  i64 start position        64  i32 term buffer length    ..  u32 + original channel
16 i64 recording id           48  i64 stop position         68  i32 MTU                   ..  u32 + source identity
24 i64 start timestamp, ms    56  i32 initial term id       72  i32 session, 76 i32 stream
"""

from __future__ import annotations

import dataclasses
import struct
from dataclasses import dataclass

from headrace._base.exceptions import ConfigError
from headrace.archive.errors import ArchiveFileError
from headrace.archive.protocol.retention import Retention
from headrace.positions import FRAME_ALIGNMENT, NULL_VALUE, Geometry

__all__ = ["BLOCK_LENGTH", "TERM_LENGTHS", "DescriptorError", "RecordingDescriptor"]

_BLOCK = struct.Struct("<qqqqqqqiiiiii")
_LENGTH = struct.Struct("<I")
_STRING_COUNT = 3
TERM_LENGTHS = tuple(1 << bits for bits in range(16, 31))
"""All that a term may have, 64 KiB to 1 GiB; segment files too."""
BLOCK_LENGTH = _BLOCK.size
assert BLOCK_LENGTH == 80, "the specification's block"


class DescriptorError(ArchiveFileError):
    """The bytes are not a description of a recording; the text says why."""


@dataclass(frozen=True, slots=True)
class RecordingDescriptor:
    """The description of a recording.

    ``stop_position`` and ``stop_timestamp`` are -1 while it is being recorded. Timestamps are milliseconds since 1970.
    """

    control_session_id: int
    correlation_id: int
    recording_id: int
    start_timestamp: int
    stop_timestamp: int
    start_position: int
    stop_position: int
    initial_term_id: int
    segment_file_length: int
    term_buffer_length: int
    mtu_length: int
    session_id: int
    stream_id: int
    stripped_channel: str
    original_channel: str
    source_identity: str

    @property
    def is_active(self) -> bool:
        """True while it is being recorded."""
        return self.stop_position == NULL_VALUE

    @property
    def geometry(self) -> Geometry:
        """The geometry of its terms and segment files."""
        return Geometry(
            self.start_position, self.initial_term_id, self.term_buffer_length, self.segment_file_length
        )

    @property
    def retention(self) -> Retention | None:
        """How long it keeps its segment files; ``None`` for forever, also if its channel has an invalid retention."""
        try:
            return Retention.of(self.original_channel)
        except ConfigError:
            return None

    def encode(self) -> bytes:
        """Encode it, without padding."""
        values = tuple(getattr(self, name) for name in FIELD_NAMES)
        parts = [_BLOCK.pack(*values[:-_STRING_COUNT])]
        for text in values[-_STRING_COUNT:]:
            data = text.encode("ascii", "replace")
            parts += _LENGTH.pack(len(data)), data
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes | memoryview) -> RecordingDescriptor:
        """Decode the description at the beginning of some bytes.

        Raises:
            DescriptorError: They are too short, or a length in them is too great.
        """
        if len(data) < BLOCK_LENGTH:
            raise DescriptorError(f"length={len(data)} is below the {BLOCK_LENGTH} bytes of a description")
        values = _BLOCK.unpack_from(data)
        offset, texts = BLOCK_LENGTH, []
        for _ in range(_STRING_COUNT):
            if offset + _LENGTH.size > len(data):
                raise DescriptorError(f"a string is missing at offset={offset}")
            (length,) = _LENGTH.unpack_from(data, offset)
            offset += _LENGTH.size
            if length > len(data) - offset:
                raise DescriptorError(f"a string of length={length} at offset={offset} ends outside")
            texts.append(bytes(data[offset : offset + length]).decode("ascii", "replace"))
            offset += length
        return cls(*values, *texts)

    def defect(self) -> str | None:
        """A value that no recording can have, in words; ``None`` when there is none."""
        for name in ("term_buffer_length", "segment_file_length"):
            value = getattr(self, name)
            if value not in TERM_LENGTHS:
                return f"{name}={value} is not a power of two from 64 KiB to 1 GiB"
        if self.segment_file_length < self.term_buffer_length:
            return f"segment_file_length={self.segment_file_length} is below one term"
        start, stop = self.start_position, self.stop_position
        if start < 0 or start % FRAME_ALIGNMENT:
            return f"start_position={start} is not a multiple of 32 from 0 up"
        if stop != NULL_VALUE and (stop < start or stop % FRAME_ALIGNMENT):
            return f"stop_position={stop} is not a multiple of 32 from start_position={start} up"
        if not 0 < self.mtu_length <= self.term_buffer_length:
            return f"mtu_length={self.mtu_length} is not from 1 to one term"
        return None

    def check(self) -> None:
        """Check for values that no recording can have.

        Raises:
            DescriptorError: It has one; the text names it.
        """
        defect = self.defect()
        if defect is not None:
            raise DescriptorError(defect)

    def replace(self, **changes: object) -> RecordingDescriptor:
        """A copy with some values changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]


FIELD_NAMES = tuple(field.name for field in dataclasses.fields(RecordingDescriptor))
