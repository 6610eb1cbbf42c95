"""Arithmetic of stream positions, terms and segment files."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FRAME_ALIGNMENT", "HEADER_LENGTH", "NULL_VALUE", "Geometry", "align", "version_text"]

NULL_VALUE = -1
"""What the archive's protocol and files write for "not given"."""

HEADER_LENGTH = 32
FRAME_ALIGNMENT = 32
_TERM_ID_MASK = 0xFFFF_FFFF


def version_text(version: int) -> str:
    """The version of a file, as people write it."""
    return f"{version >> 16}.{version >> 8 & 255}.{version & 255}"


def align(value: int, alignment: int) -> int:
    """The next multiple of ``alignment``, a power of two."""
    return (value + alignment - 1) & -alignment


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where the bytes of one recording lie: in which term, which segment file, and where in it.

    Segment files begin at the start of the term in which the recording begins, and not at multiples of their length.
    """

    start_position: int
    initial_term_id: int
    term_length: int
    segment_length: int

    @property
    def first_segment(self) -> int:
        """Position at which the first segment file begins."""
        return self.start_position - self.start_position % self.term_length

    def segment_base(self, position: int) -> int:
        """Position at which the segment file with this position begins."""
        first = self.first_segment
        return first + (position - first) // self.segment_length * self.segment_length

    def segment_offset(self, position: int) -> int:
        """Offset of a position in its segment file."""
        return position - self.segment_base(position)

    def term_id(self, position: int) -> int:
        """Term of a position. Term ids wrap at 32 bits."""
        return signed_32(self.initial_term_id + position // self.term_length)

    def term_offset(self, position: int) -> int:
        """Offset of a position in its term."""
        return position % self.term_length

    def segment_bases(self, from_position: int, to_position: int) -> range:
        """Bases of the files with positions from one to the other, both included."""
        return range(
            self.segment_base(from_position), self.segment_base(to_position) + 1, self.segment_length
        )


def signed_32(value: int) -> int:
    """The lowest 32 bits as a signed number."""
    value &= _TERM_ID_MASK
    return value - (1 << 32) if value & 0x8000_0000 else value


def segment_name(recording_id: int, base: int) -> str:
    """Name of a segment file."""
    return f"{recording_id}-{base}.rec"


def segment_position(name: str, recording_id: int) -> int | None:
    """The base in a segment file's name; ``None`` when it is not a segment of the recording."""
    prefix = f"{recording_id}-"
    if not (name.startswith(prefix) and name.endswith(".rec")):
        return None
    try:
        base = int(name[len(prefix) : -len(".rec")])
    except ValueError:
        return None
    # Not of `0-+64.rec` or `0-6_4.rec`: what opens a file by its base would not find it.
    return base if name == segment_name(recording_id, base) else None
