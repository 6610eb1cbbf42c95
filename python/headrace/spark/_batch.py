"""Reads recordings once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from headrace.spark._columns import batches
from headrace.spark._option_values import refuse
from headrace.spark._ranges import RangeTask, RecordingRange, tasks_of
from headrace.spark._recordings import refuse_patterns_without_match, refuse_unknown, select, still_recorded

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
        """Tasks for all recordings, each of which is read up to where it is recorded now."""
        options = self._options
        ranges = []
        chosen = select(options)
        refuse_unknown(options, chosen)
        if not chosen:
            refuse_patterns_without_match(options)
        for selected in chosen:
            if selected.end is None:
                raise still_recorded(selected)
            descriptor = selected.descriptor
            if options.recordings is not None and options.start_position > selected.end:
                rule = f"is after the end of recording {descriptor.recording_id}, position={selected.end}"
                refuse("startPosition", options.start_position, rule)
            start = max(descriptor.start_position, options.start_position)
            end = selected.end if options.end_position is None else min(options.end_position, selected.end)
            if start < end:
                ranges.append(RecordingRange.of(descriptor, start, end, selected.end))
        return tasks_of(ranges, options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of one task's ranges."""
        # Where there is no partition at all, Spark makes one of its own.
        if isinstance(partition, RangeTask):
            yield from batches(partition, self._options, self._schema)
