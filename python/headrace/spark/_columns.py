"""The columns of a source, and the Arrow record batches that go to Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headrace.spark._codecs import make_codec
from headrace.spark._decoding import DecodedBatch, decode, payload_array
from headrace.spark._json_codec import JsonCodec
from headrace.spark._option_values import refuse
from headrace.spark._reading import opened
from headrace.spark._worker import freeze_imports

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from headrace.client import FragmentBatch
    from headrace.spark._decoded import Codec
    from headrace.spark._options import ReadOptions
    from headrace.spark._ranges import RangeTask, RecordingRange

__all__ = ["batches", "check_columns", "source_columns"]

_FIXED = {
    "recording_id": "bigint",
    "position": "bigint",
    "session_id": "int",
    "stream_id": "int",
    "reserved_value": "bigint",
}
# Beside decoded columns, for whoever asks for them.
_RAW = {"payload": "binary", "bad": "boolean", "error": "string"}
_TIMESTAMP = "timestamp"
_NS_PER_US = 1000


def source_columns(options: ReadOptions) -> list[str]:
    """The columns that the options ask for, each as ``name type``.

    Raises:
        ConfigError: An option names an unknown column.
    """
    there = dict(_FIXED)
    if options.timestamp_unit_ns is not None:
        there[_TIMESTAMP] = "timestamp"
    for name, kind in make_codec(options.codec).types().items():
        if name in there:
            refuse("payloadSchema", name, "is the name of a column of the source")
        there[name] = kind
    default = list(there)
    there = {**_RAW, **there}
    for name in options.columns or ():
        if name not in there:
            refuse("columns", name, f"no such column; known are {', '.join(there)}")
    return [f"`{name}` {there[name]}" for name in options.columns or default]


def check_columns(options: ReadOptions, schema: StructType) -> None:
    """Refuse columns that no task could make.

    Raises:
        ConfigError: The codec makes nothing of that type.
    """
    codec = make_codec(options.codec)
    if isinstance(codec, JsonCodec):
        codec.check(_decoded_schema(codec, _arrow_schema(schema)))


def batches(task: RangeTask, options: ReadOptions, schema: StructType) -> Iterator[pa.RecordBatch]:
    """Everything in a task's ranges, in the columns and the order of ``schema``."""
    wanted = _arrow_schema(schema)
    codec = make_codec(options.codec)
    freeze_imports()
    for part in task.ranges:
        yield from _of_range(part, options, codec, wanted)


def _arrow_schema(schema: StructType) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def _decoded_schema(codec: Codec, wanted: pa.Schema) -> pa.Schema:
    """The columns that the codec makes."""
    decodable = codec.types()
    return pa.schema([field for field in wanted if field.name in decodable])


def _of_range(
    part: RecordingRange, options: ReadOptions, codec: Codec, wanted: pa.Schema
) -> Iterator[pa.RecordBatch]:
    decoded = _decoded_schema(codec, wanted)
    raw = {name for name in wanted.names if name in _RAW and name not in decoded.names}
    # These codecs pick messages by their payload, wanted or not.
    needs_payload = bool(decoded.names or raw) or options.codec["kind"] in ("sbe", "cluster-log")
    nulls = options.codec["on_bad_payload"] == "null"
    with opened(part, options, with_payload=needs_payload) as reader:
        for batch in reader.batches(options.rows_per_batch):
            made = (
                decode(codec, batch, decoded, recording_id=part.recording_id, nulls=nulls)
                if needs_payload
                else DecodedBatch({}, None, {})
            )
            count = len(batch) if made.rows is None else len(made.rows)
            columns = made.columns | {name: _raw(name, batch, made, count) for name in raw}
            arrays = [
                columns[field.name]
                if field.name in columns
                else _fixed(field, batch, made.rows, count, part, options)
                for field in wanted
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _raw(name: str, batch: FragmentBatch, made: DecodedBatch, count: int) -> pa.Array:
    """The payload of each row as it is, whether it is bad, and why."""
    if name == "payload":
        payloads = payload_array(batch)
        return payloads if made.rows is None else payloads.take(pa.array(made.rows))
    if name == "bad":
        bad = np.zeros(count, np.bool_)
        bad[list(made.errors)] = True
        return pa.array(bad)
    return pa.array([made.errors.get(row) for row in range(count)], pa.string())


def _fixed(
    field: pa.Field, batch: FragmentBatch, rows: Any, count: int, part: RecordingRange, options: ReadOptions
) -> pa.Array:
    name = field.name
    if name == "recording_id":
        values: Any = np.full(count, part.recording_id, np.int64)
    elif name == "stream_id":
        values = np.full(count, part.stream_id, np.int32)
    elif name == _TIMESTAMP and options.timestamp_unit_ns is not None:
        unit = options.timestamp_unit_ns
        reserved = _picked(batch.reserved_values, rows)
        times = reserved // (_NS_PER_US // unit) if unit < _NS_PER_US else reserved * (unit // _NS_PER_US)
        # Nobody stamped it: its time is not known, and not 1970.
        return pa.array(times, mask=reserved == 0).cast(field.type)
    elif name in _FIXED:
        values = _picked(getattr(batch, f"{name}s"), rows)
    else:
        refuse("columns", name, "no such column")
    if field.type.bit_width == values.dtype.itemsize * 8:
        return pa.Array.from_buffers(field.type, count, [None, pa.py_buffer(np.ascontiguousarray(values))])
    return pa.array(values).cast(field.type)


def _picked(column: Any, rows: Any) -> Any:
    return column if rows is None else column[rows]
