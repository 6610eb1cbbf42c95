"""Follows recordings, micro-batch by micro-batch.

An offset is ``{"<recording id>": position}``: everything before the position was read, and no message lies across it.
What a batch reads follows from its two offsets alone, so reading it again gives the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from headrace.archive.errors import ArchiveFileError
from headrace.spark._columns import batches
from headrace.spark._ranges import RecordingRange, cut
from headrace.spark._reading import opened
from headrace.spark._recordings import Selected, select

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from headrace.spark._options import ReadOptions

__all__ = ["RecordingStreamReader"]

Offset = dict[str, int]


class RecordingStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """New messages of all recordings that match the options, those that begin later included."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._target: Offset | None = None

    def initialOffset(self) -> Offset:
        """Nothing read of anything: a recording that is missing in an offset is read from its beginning."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        """``maxBytesPerTrigger``."""
        return ReadMaxBytes(self._options.max_bytes_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:
        """Stop at what is recorded now."""
        self._target = {str(each.recording_id): self._end(each) for each in select(self._options)}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Where the next batch ends: behind whole messages, within the limit."""
        backlog = {}
        for selected in select(self._options):
            key = str(selected.recording_id)
            position = self._position(selected, start)
            end = self._end(selected)
            if self._target is not None:
                end = min(end, self._target.get(key, position))
            if end > position:
                backlog[key] = selected, position, end
        budgets = _shared({key: end - position for key, (_, position, end) in backlog.items()}, limit)
        latest = dict(start)
        for key, (selected, position, end) in backlog.items():
            if budgets[key] > 0:
                stop = min(end, position + budgets[key])
                boundary = self._boundary(selected, position, stop, is_frame_at_start=key in start)
                if boundary > position:
                    latest[key] = boundary
        # Spark compares offsets as text.
        return {key: latest[key] for key in sorted(latest, key=int)}

    def reportLatestOffset(self) -> Offset:
        """How far everything is recorded, from which Spark reports the lag."""
        ends = {each.recording_id: self._end(each) for each in select(self._options)}
        return {str(recording_id): ends[recording_id] for recording_id in sorted(ends)}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The ranges between two offsets."""
        known = {str(each.recording_id): each for each in select(self._options)}
        ranges = []
        for key, stop in end.items():
            selected = known.get(key)
            if selected is None:
                text = f"recording_id={key} is in the checkpoint and not in {self._options.archive} any more"
                raise ArchiveFileError(text)
            position = self._position(selected, start)
            if stop > position:
                # The message before `stop` is whole, so nothing behind it is needed.
                ranges.append(
                    RecordingRange.of(
                        selected.descriptor,
                        position,
                        stop,
                        stop,
                        is_frame_at_start=key in start or position == selected.descriptor.start_position,
                    )
                )
        return cut(ranges, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of one range."""
        if isinstance(partition, RecordingRange):
            yield from batches(partition, self._options, self._schema)

    def _position(self, selected: Selected, start: Offset) -> int:
        """Where a recording is to be read on."""
        descriptor, key = selected.descriptor, str(selected.recording_id)
        position = start.get(key, max(descriptor.start_position, self._options.start_position))
        if position < descriptor.start_position:
            text = (
                f"recording_id={key} was to be read on from position={position}, but begins at "
                f"start_position={descriptor.start_position} now: what lay between was deleted"
            )
            raise ArchiveFileError(text)
        if selected.end is not None and key in start and position > selected.end:
            text = (
                f"recording_id={key} was read up to position={position}, but ends at position={selected.end} now: "
                "it was truncated, and may have gone on with other messages"
            )
            raise ArchiveFileError(text)
        return position

    def _end(self, selected: Selected) -> int:
        """How far a recording may be read now."""
        start = selected.descriptor.start_position
        if selected.end is None:
            return start
        if self._options.end_position is None:
            return selected.end
        return max(start, min(selected.end, self._options.end_position))

    def _boundary(self, selected: Selected, position: int, stop: int, *, is_frame_at_start: bool) -> int:
        """The end of the last whole message that begins before ``stop``."""
        assert selected.end is not None, "only asked for recordings with something to read"
        # No message lies across terms, so the last term tells.
        term_begin = stop - stop % selected.descriptor.term_buffer_length
        if term_begin > position:
            position, is_frame_at_start = term_begin, True
        if position >= stop:
            return position
        part = RecordingRange.of(
            selected.descriptor, position, stop, selected.end, is_frame_at_start=is_frame_at_start
        )
        with opened(part, self._options, with_payload=False, filtered=False) as reader:
            return max(position, reader.boundary())


def _shared(backlog: dict[str, int], limit: ReadLimit) -> dict[str, int]:
    """How many bytes of each backlog go into a batch: everybody the same, unless they have less."""
    if isinstance(limit, ReadAllAvailable) or not isinstance(limit, ReadMaxBytes):
        return backlog
    shares, left = {}, limit.max_bytes
    for index, key in enumerate(sorted(backlog, key=lambda key: backlog[key])):
        shares[key] = min(backlog[key], max(32, left // (len(backlog) - index)))
        left = max(0, left - shares[key])
    return shares
