"""The entries of a cluster's log as columns. Cluster specification 4: what may stand in the log.

Each kind of entry is decoded by itself, many at a time; then the kinds are put together in the order of the log.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.cluster.protocol.header import HEADER_LENGTH
from headrace.cluster.protocol.messages import MessageError, decode, schema
from headrace.sbe import DecodeError
from headrace.spark._decoded import Decoded, Unreadable

__all__ = ["ClusterLogCodec"]

_MESSAGE = "SessionMessageHeader"
_KINDS = {
    _MESSAGE: "message",
    "TimerEvent": "timer",
    "SessionOpenEvent": "session-open",
    "SessionCloseEvent": "session-close",
    "ClusterActionRequest": "action",
    "NewLeadershipTermEvent": "term",
}
# Columns whose names here say more than those of the protocol, which the source has for other things.
_FIELDS = {"cluster_time": "timestamp", "principal": "encoded_principal"}
_TYPES = {
    "kind": "string",
    "leadership_term_id": "bigint",
    "cluster_session_id": "bigint",
    "correlation_id": "bigint",
    "cluster_time": "bigint",
    "payload": "binary",
    "response_channel": "string",
    "principal": "binary",
    "close_reason": "string",
    "action": "string",
    "leader_member_id": "int",
    "time_unit": "string",
    "app_version": "int",
}


class ClusterLogCodec:
    """Entries of a cluster's log, by kind. What an entry has no field for is null."""

    def types(self) -> dict[str, str]:
        return dict(_TYPES)

    def decode(self, payloads: pa.BinaryArray, wanted: pa.Schema) -> Decoded:
        try:
            parts = list(self._parts(payloads, wanted))
        except DecodeError as error:
            where = ".".join(filter(None, (error.template or "entry", error.field)))
            raise Unreadable(f"{where} at offset {error.offset}: {error.reason}") from error
        rows = np.concatenate([rows for rows, _ in parts])
        self._check_others(payloads, rows)
        order = pa.array(np.argsort(rows))
        columns = {
            field.name: pa.concat_arrays([part[field.name] for _, part in parts]).take(order)
            for field in wanted
        }
        return columns, None if len(rows) == len(payloads) else np.sort(rows)

    def _parts(
        self, payloads: pa.BinaryArray, wanted: pa.Schema
    ) -> Iterator[tuple[np.ndarray[tuple[int], np.dtype[np.intp]], dict[str, pa.Array]]]:
        """Of each kind of entry, which payloads are of it, and its columns."""
        for template, kind in _KINDS.items():
            codec = schema()[template]
            there = set(codec.arrow_schema(enums="name").names)
            selection = codec.select(payloads)
            count = len(selection)
            fields = {field.name: _FIELDS.get(field.name, field.name) for field in wanted}
            fields = {name: field for name, field in fields.items() if field in there}
            made = selection.to_arrow(enums="name", names=set(fields.values())) if fields else None
            columns = {}
            for field in wanted:
                if field.name == "kind":
                    values = pa.array([kind]).take(pa.array(np.zeros(count, np.int64)))
                elif field.name == "payload" and template == _MESSAGE:
                    values = pc.binary_slice(payloads.take(pa.array(selection.rows)), HEADER_LENGTH, None)
                elif made is not None and field.name in fields:
                    values = made.column(fields[field.name])
                else:
                    values = pa.nulls(count)
                columns[field.name] = values.cast(field.type)
            yield selection.rows, columns

    def _check_others(
        self, payloads: pa.BinaryArray, rows: np.ndarray[tuple[int], np.dtype[np.intp]]
    ) -> None:
        """Later versions may have entries that this one does not know, and leaves out; what is no entry is an error."""
        others = np.setdiff1d(np.arange(len(payloads)), rows)
        for index in others:
            try:
                decode(payloads[int(index)].as_py())
            except MessageError as error:
                raise Unreadable(f"it is not an entry of a cluster's log: {error}") from error
