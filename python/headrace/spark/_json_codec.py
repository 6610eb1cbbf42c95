"""JSON payloads as columns.

Many payloads are parsed as one text, a line each. A payload may be anything, also half an object, two of them, or one
that closes the brackets of its line and goes on. So each line marks its payload's object: a field at the object's end
has the payload's number, under a name that no payload can know, as it is a digest of all of them. Each payload is one
object if the marks of all lines are where they belong.
"""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.spark._decoded import Decoded, Unreadable
from headrace.spark._option_values import refuse

__all__ = ["JsonCodec"]

_SPACE = b" \t\r\n"


class JsonCodec:
    """One JSON object a message. Fields it lacks are null; fields that the schema lacks are left out.

    Args:
        types: The columns, by name.
    """

    def __init__(self, types: dict[str, str]) -> None:
        self._types = types

    def types(self) -> dict[str, str]:
        return self._types

    def check(self, wanted: pa.Schema) -> None:
        """Refuse columns of types that are not made of JSON.

        Raises:
            ConfigError: There is one.
        """
        for field in wanted:
            try:
                _parsed([b"{}"], pa.schema([field]), "mark")
            except pa.ArrowNotImplementedError:
                rule = (
                    "codec=json does not decode maps or intervals: leave the field out, or use codec=python"
                )
                refuse("payloadSchema", f"{field.name} {self._types[field.name]}", rule)

    def decode(self, payloads: pa.BinaryArray, wanted: pa.Schema) -> Decoded:
        texts = payloads.to_pylist()
        mark = hashlib.blake2b(b"".join(texts), digest_size=16).hexdigest()
        try:
            values = _parsed(texts, wanted, mark)
            columns = {name: values.field(name) for name in wanted.names}
            # Arrow takes strings for UTF-8 unseen, and so does Spark.
            for column in columns.values():
                column.validate(full=True)
        except pa.ArrowInvalid:
            raise Unreadable(self._reason(payloads)) from None
        if not _are_numbered(values, mark, len(payloads)):
            raise Unreadable(self._reason(payloads))
        return columns, None

    def _reason(self, payloads: pa.BinaryArray) -> str:
        if len(payloads) > 1:
            return "they are not one JSON object a message"
        try:
            value = json.loads(payloads[0].as_py())
        except ValueError as error:
            return str(error)
        except RecursionError:
            return "it is nested too deeply"
        if not isinstance(value, dict):
            return "it is not a JSON object"
        return f"it does not fit {', '.join(f'{name} {kind}' for name, kind in self._types.items())}"


def _parsed(payloads: list[bytes], wanted: pa.Schema, mark: str) -> pa.StructArray:
    """An array of structs of payloads, with their marks.

    Raises:
        pyarrow.ArrowInvalid: There is a payload that is no JSON, or does not fit.
    """
    from pyarrow import json as arrow_json

    end = b'"%b":' % mark.encode()
    text = b"\n".join([_line(payload, end, number) for number, payload in enumerate(payloads)])
    marked = pa.struct([*wanted, pa.field(mark, pa.int64())])
    options = arrow_json.ParseOptions(
        explicit_schema=pa.schema([("value", marked)]),
        newlines_in_values=True,
        unexpected_field_behavior="ignore",
    )
    reading = arrow_json.ReadOptions(block_size=len(text) + 1, use_threads=False)
    table = arrow_json.read_json(io.BytesIO(text), read_options=reading, parse_options=options)
    values: Any = table.column("value").combine_chunks()
    return values.chunk(0) if isinstance(values, pa.ChunkedArray) else values


def _line(payload: bytes, end: bytes, number: int) -> bytes:
    """An object with the payload's in it, at whose end is the payload's number."""
    value = payload.rstrip(_SPACE)
    if value[-1:] != b"}":
        raise pa.ArrowInvalid("a payload is not a JSON object")
    fields = value[:-1]
    comma = b"" if fields.rstrip(_SPACE)[-1:] == b"{" else b","
    return b'{"value":%b%b%b%d}}' % (fields, comma, end, number)


def _are_numbered(values: pa.StructArray, mark: str, count: int) -> bool:
    """Whether each payload is one object: there are as many, and each has its own mark."""
    marks = values.field(mark)
    if values.null_count or marks.null_count or len(values) != count:
        return False
    return bool(np.array_equal(marks.to_numpy(), np.arange(count)))
