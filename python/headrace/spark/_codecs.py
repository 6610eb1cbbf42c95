"""From payloads to columns, inside the source: several times faster than decoding after it.

Every codec says which columns it makes, as Spark types, and fills those that are wanted, a batch at a time.
"""

from __future__ import annotations

import base64
import importlib
import pickle
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from headrace.spark._cluster_log import ClusterLogCodec
from headrace.spark._decoded import Codec, Decoded, Unreadable
from headrace.spark._json_codec import JsonCodec
from headrace.spark._option_values import refuse

__all__ = ["columns_of", "make_codec", "packed"]

_PICKLED = "pickle:"


def make_codec(settings: dict[str, Any]) -> Codec:
    """The codec that the options describe.

    Raises:
        ConfigError: The schema or the function is not there, or is not what it should be.
    """
    kind = settings["kind"]
    if kind == "json":
        return JsonCodec(columns_of(settings["payloadSchema"]))
    if kind == "sbe":
        return _SbeCodec(settings["sbeSchema"], settings["sbeMessage"])
    if kind == "cluster-log":
        return ClusterLogCodec()
    if kind == "python":
        return _PythonCodec(settings["decoder"], settings["payloadSchema"])
    return _BinaryCodec()


def columns_of(schema: str) -> dict[str, str]:
    """Names and types of columns written as ``name type, name type``, as SQL does."""
    parts, depth, begin = [], 0, 0
    for index, character in enumerate(schema):
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            parts.append(schema[begin:index])
            begin = index + 1
    parts.append(schema[begin:])
    columns = {}
    for part in parts:
        name, _, kind = part.strip().partition(" ")
        name = name.strip("`")
        if not name or not kind.strip() or name in columns:
            refuse("payloadSchema", schema, "must be names and SQL types, such as id bigint, price double")
        columns[name] = kind.strip()
    return columns


def packed(function: Callable[[pa.BinaryArray], Any]) -> str:
    """A function as text for ``option("decoder", ...)``, so that it need not be in an installed module."""
    from pyspark.cloudpickle import dumps

    pickled: bytes = dumps(function)  # type: ignore[no-untyped-call]
    return _PICKLED + base64.b64encode(pickled).decode("ascii")


class _BinaryCodec:
    def types(self) -> dict[str, str]:
        return {"payload": "binary"}

    def decode(self, payloads: pa.BinaryArray, wanted: pa.Schema) -> Decoded:
        return {"payload": payloads} if wanted.names else {}, None


class _SbeCodec:
    """One message of an SBE schema; recorded messages of its other templates are left out."""

    def __init__(self, path: str, message: str) -> None:
        from headrace import sbe

        try:
            schema = sbe.Schema.from_file(path)
        except OSError as error:
            refuse("sbeSchema", path, f"cannot be read: {error.strerror}")
        except sbe.SchemaError as error:
            refuse("sbeSchema", path, str(error))
        if message not in schema:
            refuse("sbeMessage", message, f"{path} has no such message; known are {', '.join(schema)}")
        self._codec = schema[message]

    def types(self) -> dict[str, str]:
        from pyspark.sql.pandas.types import from_arrow_type

        schema = self._codec.arrow_schema(enums="name")
        return {field.name: from_arrow_type(_spark_arrow(field.type)).simpleString() for field in schema}

    def decode(self, payloads: pa.BinaryArray, wanted: pa.Schema) -> Decoded:
        from headrace.sbe import DecodeError

        try:
            selection = self._codec.select(payloads)
            if len(selection.foreign_rows):
                raise Unreadable(f"its header does not name the schema {self._codec.schema.schema_id}")
            made = selection.to_arrow(enums="name", names=wanted.names) if wanted.names else None
        except DecodeError as error:
            where = ".".join(filter(None, (error.template or "message", error.field)))
            raise Unreadable(f"{where} at offset {error.offset}: {error.reason}") from error
        rows = None if len(selection) == len(payloads) else selection.rows
        if made is None:
            return {}, rows
        return {field.name: made.column(field.name).cast(field.type) for field in wanted}, rows


class _PythonCodec:
    """A user's function from an Arrow array of payloads to columns."""

    def __init__(self, decoder: str, schema: str) -> None:
        self._types = columns_of(schema)
        self._function = _load(decoder)

    def types(self) -> dict[str, str]:
        return self._types

    def decode(self, payloads: pa.BinaryArray, wanted: pa.Schema) -> Decoded:
        try:
            made = self._function(payloads)
        except Exception as error:
            raise Unreadable(f"the decoder raised {type(error).__name__}: {error}") from error
        columns = {}
        for field in wanted:
            try:
                column = made[field.name]
            except KeyError:
                refuse("decoder", "", f"its result has no column {field.name}, which payloadSchema names")
            array = _one_chunk(column) if isinstance(column, pa.ChunkedArray) else column
            try:
                array = array if isinstance(array, pa.Array) else pa.array(array, from_pandas=True)
                array = array if array.type == field.type else array.cast(field.type)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                raise Unreadable(
                    f"the decoder made a {field.name} that is not of type {field.type}: {error}"
                ) from error
            if len(array) != len(payloads):
                refuse(
                    "decoder", "", f"made {len(array)} values of {field.name} from {len(payloads)} messages"
                )
            columns[field.name] = array
        return columns, None


def _load(decoder: str) -> Callable[[pa.BinaryArray], Any]:
    if decoder.startswith(_PICKLED):
        function = pickle.loads(base64.b64decode(decoder.removeprefix(_PICKLED)))
    else:
        module, _, name = decoder.partition(":")
        try:
            function = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            refuse(
                "decoder", decoder, f"must be module:function, or headrace.spark.packed(function): {error}"
            )
    if not callable(function):
        refuse("decoder", decoder, "is not a function")
    return function  # type: ignore[no-any-return]


def _spark_arrow(kind: pa.DataType) -> pa.DataType:
    """The type in which Spark can hold every value: it has no unsigned numbers and no fixed-size binary."""
    wider = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
    if kind in wider:
        return wider[kind]
    if kind == pa.uint64():
        return pa.decimal128(20, 0)
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _spark_arrow(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(_spark_arrow(kind.value_type))
    return kind


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined
