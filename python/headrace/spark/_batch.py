"""Reads recordings once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from headrace.spark._columns import batches
from headrace.spark._option_values import refuse
from headrace.spark._ranges import RecordingRange, cut
from headrace.spark._recordings import select, still_recorded

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from headrace.spark._options import ReadOptions

__all__ = ["RecordingBatchReader"]


class RecordingBatchReader(DataSourceReader):
    """Everything that matches the options and is recorded when the query is planned."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges of all recordings, each up to where it is recorded now."""
        options = self._options
        ranges = []
        for selected in select(options):
            if selected.end is None:
                raise still_recorded(selected)
            descriptor = selected.descriptor
            if options.recordings is not None and options.start_position > selected.end:
                rule = f"is behind the end of recording {descriptor.recording_id}, position={selected.end}"
                refuse("startPosition", options.start_position, rule)
            start = max(descriptor.start_position, options.start_position)
            end = selected.end if options.end_position is None else min(options.end_position, selected.end)
            if start < end:
                ranges.append(RecordingRange.of(descriptor, start, end, selected.end))
        return cut(ranges, options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of one range."""
        # Where there is no partition at all, Spark makes one of its own.
        if isinstance(partition, RecordingRange):
            yield from batches(partition, self._options, self._schema)
