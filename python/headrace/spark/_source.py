"""What ``pyspark_headrace`` hands to Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.spark._batch import RecordingBatchReader
from headrace.spark._columns import schema_text
from headrace.spark._options import ReadOptions
from headrace.spark._sink import BatchSink, StreamSink
from headrace.spark._sink_options import SinkOptions
from headrace.spark._stream import RecordingStreamReader

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["reader", "schema", "stream_reader", "stream_writer", "writer"]


def schema(options: Mapping[str, str]) -> str:
    """The columns of a source."""
    return schema_text(ReadOptions.parse(options))


def reader(options: Mapping[str, str], columns: StructType) -> RecordingBatchReader:
    """The batch source."""
    return RecordingBatchReader(ReadOptions.parse(options), columns)


def stream_reader(options: Mapping[str, str], columns: StructType) -> RecordingStreamReader:
    """The streaming source."""
    return RecordingStreamReader(ReadOptions.parse(options), columns)


def writer(options: Mapping[str, str], columns: StructType, overwrite: bool) -> BatchSink:
    """The sink of data frames."""
    return BatchSink(SinkOptions.parse(options, columns), overwrite)


def stream_writer(options: Mapping[str, str], columns: StructType) -> StreamSink:
    """The sink of streaming queries. Its output mode is Spark's business: rows are published as they come."""
    return StreamSink(SinkOptions.parse(options, columns))
