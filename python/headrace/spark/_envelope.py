"""What marked delivery puts before each row, and the marker that ends a batch.

    0       4        6      8                  24             32          36       40          48
    | magic | version| kind | query id, a UUID | batch id i64 | partition | count  | row i64   | payload or counts

Little endian. A row has kind 1 and its place in its partition in ``row``. A marker has kind 2, the number of
partitions in ``count``, and after the header the number of rows of each of them as i64.
"""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from headrace._exceptions import HeadraceError

__all__ = ["Envelope", "EnvelopeError", "marker", "rows", "unpack"]

KIND_ROW = 1
KIND_MARKER = 2
_MAGIC = 0x53_42_52_48  # "HRBS" in memory
_VERSION = 1
_HEADER = struct.Struct("<IHH16sqiiq")
_HEADERS = np.dtype(
    [
        ("magic", "<u4"),
        ("version", "<u2"),
        ("kind", "<u2"),
        ("query", "V16"),
        ("batch", "<i8"),
        ("partition", "<i4"),
        ("count", "<i4"),
        ("row", "<i8"),
    ]
)
assert _HEADER.size == _HEADERS.itemsize == 48, "one layout in two notations"


class EnvelopeError(HeadraceError, ValueError):
    """A message is not of marked delivery: another program publishes on this stream."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message of marked delivery, taken apart."""

    kind: int
    query_id: uuid.UUID
    batch_id: int
    partition: int
    row: int
    payload: bytes
    counts: tuple[int, ...] = ()


def rows(payloads: pa.Array, query_id: uuid.UUID, batch_id: int, partition: int, first_row: int) -> pa.Array:
    """Payloads with their headers before them."""
    headers = np.zeros(len(payloads), _HEADERS)
    headers["magic"], headers["version"], headers["kind"] = _MAGIC, _VERSION, KIND_ROW
    headers["query"] = np.void(query_id.bytes)
    headers["batch"], headers["partition"] = batch_id, partition
    headers["row"] = np.arange(first_row, first_row + len(payloads))
    fixed = pa.Array.from_buffers(pa.binary(_HEADERS.itemsize), len(payloads), [None, pa.py_buffer(headers)])
    return compute.binary_join_element_wise(fixed.cast(pa.binary()), payloads, pa.scalar(b"", pa.binary()))


def marker(query_id: uuid.UUID, batch_id: int, counts: list[int]) -> bytes:
    """The message that says a batch is whole, and how many rows each of its partitions has."""
    header = _HEADER.pack(_MAGIC, _VERSION, KIND_MARKER, query_id.bytes, batch_id, 0, len(counts), 0)
    return header + struct.pack(f"<{len(counts)}q", *counts)


def unpack(message: bytes) -> Envelope:
    """Take a message apart.

    Raises:
        EnvelopeError: It is none of these.
    """
    if len(message) < _HEADER.size:
        raise EnvelopeError(
            f"a message of {len(message)} bytes has no room for the header of marked delivery"
        )
    magic, version, kind, query, batch_id, partition, count, row = _HEADER.unpack_from(message)
    if magic != _MAGIC or version != _VERSION or kind not in (KIND_ROW, KIND_MARKER):
        raise EnvelopeError(f"no header of marked delivery: magic={magic:#x} version={version} kind={kind}")
    rest = message[_HEADER.size :]
    counts: tuple[int, ...] = ()
    if kind == KIND_MARKER:
        if count < 0 or len(rest) != 8 * count:
            raise EnvelopeError(f"a marker of {count} partitions with {len(rest)} bytes of counts")
        counts = struct.unpack(f"<{count}q", rest)
    return Envelope(kind, uuid.UUID(bytes=query), batch_id, partition, row, rest, counts)
