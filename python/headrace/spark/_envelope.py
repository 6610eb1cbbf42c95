"""What marked delivery puts before each row, and the marker that ends a batch.

    0       4        6      8                  24             32            40             48
    | magic | version| kind | query id, a UUID | batch id i64 | attempt u64 | number i64   | payload or attempts

Little endian. A row has kind 1, the attempt that published it, and its place among that attempt's rows in ``number``.
A marker has kind 2, attempt 0, and in ``number`` how many attempts make up the batch; after the header it names each
of them and the number of its rows, as u64 and i64, in the order of partitions.

An attempt is one run of one task. Its number is random, so a task or a batch that runs again publishes under other
numbers, and the marker says which of them Spark took.
"""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from headrace._base.exceptions import HeadraceError

__all__ = [
    "Attempt",
    "EnvelopeError",
    "Marker",
    "Row",
    "marker_message",
    "new_attempt",
    "row_messages",
    "unpack",
]

KIND_ROW = 1
KIND_MARKER = 2
_MAGIC = 0x53_42_52_48  # "HRBS" in memory
_VERSION = 2
_HEADER = struct.Struct("<IHH16sqQq")
_ATTEMPT = struct.Struct("<Qq")
_HEADERS = np.dtype(
    [
        ("magic", "<u4"),
        ("version", "<u2"),
        ("kind", "<u2"),
        ("query", "V16"),
        ("batch", "<i8"),
        ("attempt", "<u8"),
        ("number", "<i8"),
    ]
)
assert _HEADER.size == _HEADERS.itemsize == 48, "one layout in two notations"


class EnvelopeError(HeadraceError, ValueError):
    """A message is not of marked delivery: another program publishes on this stream."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of one task, and how many rows it published."""

    number: int
    count: int


@dataclass(frozen=True, slots=True)
class Row:
    """A row of marked delivery: number ``row`` of those that an attempt published."""

    query_id: uuid.UUID
    batch_id: int
    attempt: int
    row: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Marker:
    """Says which attempts make up a batch, in the order of partitions."""

    query_id: uuid.UUID
    batch_id: int
    attempts: tuple[Attempt, ...]


def new_attempt() -> int:
    """A number for an attempt that no other has."""
    return uuid.uuid4().int >> 64


def row_messages(
    payloads: pa.Array, query_id: uuid.UUID, batch_id: int, attempt: int, first_row: int
) -> pa.Array:
    """Payloads with their headers before them."""
    headers = np.zeros(len(payloads), _HEADERS)
    headers["magic"], headers["version"], headers["kind"] = _MAGIC, _VERSION, KIND_ROW
    headers["query"] = np.void(query_id.bytes)
    headers["batch"], headers["attempt"] = batch_id, attempt
    headers["number"] = np.arange(first_row, first_row + len(payloads))
    fixed = pa.Array.from_buffers(pa.binary(_HEADERS.itemsize), len(payloads), [None, pa.py_buffer(headers)])
    return compute.binary_join_element_wise(fixed.cast(pa.binary()), payloads, pa.scalar(b"", pa.binary()))


def marker_message(query_id: uuid.UUID, batch_id: int, attempts: list[Attempt]) -> bytes:
    """The message that says a batch is whole, and which attempts' rows are in it."""
    header = _HEADER.pack(_MAGIC, _VERSION, KIND_MARKER, query_id.bytes, batch_id, 0, len(attempts))
    return header + b"".join(_ATTEMPT.pack(each.number, each.count) for each in attempts)


def unpack(message: bytes) -> Row | Marker:
    """Take a message apart.

    Raises:
        EnvelopeError: It is neither a row nor a marker.
    """
    if len(message) < _HEADER.size:
        raise EnvelopeError(
            f"a message of {len(message)} bytes has no room for the header of marked delivery"
        )
    magic, version, kind, query, batch_id, attempt, number = _HEADER.unpack_from(message)
    if magic != _MAGIC or version != _VERSION or kind not in (KIND_ROW, KIND_MARKER):
        raise EnvelopeError(f"no header of marked delivery: magic={magic:#x} version={version} kind={kind}")
    query_id, rest = uuid.UUID(bytes=query), message[_HEADER.size :]
    if kind == KIND_ROW:
        if number < 0:
            raise EnvelopeError(f"row {number} of attempt {attempt}: rows are numbered from 0 on")
        return Row(query_id, batch_id, attempt, number, rest)
    if number < 0 or len(rest) != _ATTEMPT.size * number:
        raise EnvelopeError(f"a marker of {number} attempts has {len(rest)} bytes to name them")
    attempts = tuple(Attempt(*values) for values in _ATTEMPT.iter_unpack(rest))
    if any(each.count < 1 for each in attempts):
        raise EnvelopeError("a marker names an attempt that published no row")
    named = set()
    for each in attempts:
        if each.number in named:
            raise EnvelopeError(f"a marker names attempt {each.number} twice")
        named.add(each.number)
    return Marker(query_id, batch_id, attempts)
