"""What ``pyspark_headrace`` hands to Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.spark._batch import RecordingBatchReader
from headrace.spark._columns import check_columns, source_columns
from headrace.spark._options import ReadOptions
from headrace.spark._sink import BatchSink, StreamSink
from headrace.spark._sink_options import SinkOptions
from headrace.spark._stream import RecordingStreamReader
from headrace.spark._table_options import commented, created_with, read_with

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["reader", "schema", "stream_reader", "stream_writer", "writer"]


def schema(options: Mapping[str, str]) -> str:
    """The columns of a source."""
    of_table = created_with(options)
    if of_table is None:
        return ", ".join(source_columns(ReadOptions.parse(options)))
    return ", ".join(commented(source_columns(ReadOptions.parse(of_table)), of_table))


def reader(options: Mapping[str, str], columns: StructType) -> RecordingBatchReader:
    """The batch source."""
    return RecordingBatchReader(_checked(options, columns), columns)


def stream_reader(options: Mapping[str, str], columns: StructType) -> RecordingStreamReader:
    """The streaming source."""
    return RecordingStreamReader(_checked(options, columns), columns)


def _checked(options: Mapping[str, str], columns: StructType) -> ReadOptions:
    parsed = ReadOptions.parse(read_with(options, columns))
    check_columns(parsed, columns)
    return parsed


def writer(options: Mapping[str, str], columns: StructType, overwrite: bool) -> BatchSink:
    """The sink of data frames."""
    return BatchSink(SinkOptions.parse(options, columns), overwrite)


def stream_writer(options: Mapping[str, str], columns: StructType) -> StreamSink:
    """The sink of streaming queries. Its output mode is Spark's business: rows are published as they come."""
    return StreamSink(SinkOptions.parse(options, columns))
