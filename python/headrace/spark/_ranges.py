"""Ranges of recordings, and the tasks that read them.

A range owns the messages that begin in ``[start, stop)``. One that is longer than a task should read is split where
segment files begin, or at powers of two inside them, so a piece reads one file, or whole files, and at most the
beginning of one more to finish a message. Pieces that are replayed are no shorter than a term. Short ranges share a
task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from headrace.archive.files import checksum_named
from headrace.client import MessageFilter, RecordedFrames, RecordingReader
from headrace.spark._archive_options import ArchiveFiles

if TYPE_CHECKING:
    from headrace.archive import RecordingDescriptor
    from headrace.client import Image
    from headrace.spark._options import ReadOptions

__all__ = ["RangeTask", "RecordingRange", "tasks_of"]

_INT64 = (-(1 << 63), (1 << 63) - 1)
# A task costs some 60 ms of a Python worker. One that reads less than this takes longer to start than to read.
_LEAST_SHARE = 4 << 20
# So many tasks share short ranges, if there is enough to read: enough for the cores of a small cluster.
_SHARING_TASKS = 32
# How many bytes are read in the time that it takes to begin a range: to open a file, or to ask for a replay.
_OPENING_A_FILE = 64 << 10
_OPENING_A_REPLAY = 1 << 20


@dataclass(frozen=True)
class RecordingRange:
    """A part of a recording, with all it takes to read it: executors see no catalog."""

    recording_id: int
    start_position: int
    initial_term_id: int
    term_length: int
    segment_length: int
    stream_id: int
    session_id: int
    start: int
    stop: int
    limit: int
    is_frame_at_start: bool = False

    @classmethod
    def of(
        cls,
        descriptor: RecordingDescriptor,
        start: int,
        stop: int,
        limit: int,
        *,
        is_frame_at_start: bool = False,
    ) -> RecordingRange:
        """A range of a recording that the catalog describes."""
        return cls(
            recording_id=descriptor.recording_id,
            start_position=descriptor.start_position,
            initial_term_id=descriptor.initial_term_id,
            term_length=descriptor.term_buffer_length,
            segment_length=descriptor.segment_file_length,
            stream_id=descriptor.stream_id,
            session_id=descriptor.session_id,
            start=start,
            stop=stop,
            limit=limit,
            is_frame_at_start=is_frame_at_start,
        )

    @property
    def first(self) -> int:
        """Where reading begins: at a frame, from which the reader walks to :attr:`start`."""
        if self.is_frame_at_start:
            return self.start
        return max(self.start_position, self.start - self.start % self.term_length)

    def reader(
        self, image: Image | None, options: ReadOptions, *, with_payload: bool, is_filtered: bool
    ) -> RecordingReader:
        """A reader of this range from files, or from the image of a replay.

        ``is_filtered`` applies the options' session, times and checksum.
        """
        archive, checksum = options.archive, None
        if isinstance(archive, ArchiveFiles):
            source: str | Image = archive.directory
            stream_id = self.stream_id
            if is_filtered:
                checksum = checksum_named(archive.record_checksum)
        else:
            assert image is not None, "an archive that is no directory replays"
            source, stream_id = image, archive.replay_stream_id
        frames = RecordedFrames(
            self.recording_id,
            start_position=self.start_position,
            initial_term_id=self.initial_term_id,
            term_length=self.term_length,
            segment_length=self.segment_length,
            stream_id=stream_id,
            # Frames of files have it themselves, unless a checksum took its place.
            session_id=None if source is not image and checksum is None else self.session_id,
            checksum=checksum,
        )
        return RecordingReader(
            source,
            frames,
            start=self.start,
            stop=self.stop,
            limit=self.limit,
            is_frame_at_start=self.is_frame_at_start,
            filter=filter_of(options) if is_filtered else None,
            with_payload=with_payload,
        )

    def pieces(self, length: int) -> Iterator[RecordingRange]:
        """The same range, split into parts of about ``length`` bytes if it is longer."""
        if self.stop - self.start <= length:
            yield self
            return
        step = length // self.segment_length * self.segment_length or 1 << (length.bit_length() - 1)
        origin = self.start_position - self.start_position % self.term_length
        start = self.start
        while start < self.stop:
            stop = min(self.stop, origin + ((start - origin) // step + 1) * step)
            is_first = start == self.start
            yield RecordingRange(
                **{
                    **vars(self),
                    "start": start,
                    "stop": stop,
                    "is_frame_at_start": is_first and self.is_frame_at_start,
                }
            )
            start = stop


def reserved_bounds(options: ReadOptions) -> tuple[int, int]:
    """Least and greatest reserved value that the options' times allow; the first is greater where none is."""
    unit = options.timestamp_unit_ns
    least, greatest = _INT64
    if unit is None:
        return least, greatest
    low, high = least, greatest
    if options.start_time_ns is not None:
        low = -(-options.start_time_ns // unit)
    if options.end_time_ns is not None:
        high = -(-options.end_time_ns // unit) - 1
    if low > greatest or high < least:
        return greatest, least
    return max(low, least), min(high, greatest)


def filter_of(options: ReadOptions) -> MessageFilter:
    """The messages that the options' session and times allow."""
    low, high = reserved_bounds(options)
    return MessageFilter(session_id=options.session_id, reserved_value_min=low, reserved_value_max=high)


@dataclass
class RangeTask(InputPartition):
    """What one task reads: ranges, one after another."""

    ranges: tuple[RecordingRange, ...]


def tasks_of(ranges: list[RecordingRange], options: ReadOptions) -> list[RangeTask]:
    """The tasks that read some ranges: long ones in several, many short ones in one."""
    length = max(32, options.bytes_per_partition)
    reads_files = isinstance(options.archive, ArchiveFiles)
    # A walk from the term's beginning costs a look at headers in files; a replay sends everything.
    pieces = [
        piece
        for each in ranges
        for piece in each.pieces(length if reads_files else max(length, each.term_length))
    ]
    opening = _OPENING_A_FILE if reads_files else _OPENING_A_REPLAY
    total = sum(piece.stop - piece.start + opening for piece in pieces)
    share = min(length, max(_LEAST_SHARE, total // _SHARING_TASKS))
    tasks: list[RangeTask] = []
    together: list[RecordingRange] = []
    load = 0
    for piece in pieces:
        cost = piece.stop - piece.start + opening
        if together and load + cost > share:
            tasks.append(RangeTask(tuple(together)))
            together, load = [], 0
        together.append(piece)
        load += cost
    return [*tasks, RangeTask(tuple(together))] if together else tasks
