"""The messages of the archive's control protocol and events: bytes to values and back, by the schema beside this file.

A sender of another version may have a shorter block, whose missing fields have the defaults of their class, or a longer
one, whose end is skipped.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

from headrace._exceptions import HeadraceError
from headrace.archive.protocol.answers import ANSWERS, EVENTS, Answer, Event, Ping
from headrace.archive.protocol.codes import RecordingSignal, Response, SourceLocation
from headrace.archive.protocol.requests import (
    REQUESTS,
    AuthConnectRequest,
    CloseSessionRequest,
    Request,
)
from headrace.sbe import DecodeError, Schema

__all__ = [
    "PROTOCOL_VERSION",
    "SCHEMA_ID",
    "Message",
    "MessageError",
    "correlation_id_of",
    "decode",
    "encode",
    "header_of",
    "schema",
    "template_id_of",
]

SCHEMA_ID = 101
PROTOCOL_VERSION = 1 << 16 | 12 << 8
"""Semantic version 1.12.0 of the protocol."""

Message = AuthConnectRequest | CloseSessionRequest | Request | Answer | Ping | Event
"""Whatever clients and archives send each other."""

_HEADER_LENGTH = 8
_IDS = struct.Struct("<qq")
_CLASSES: dict[str, type[Message]] = {kind.__name__: kind for kind in (*REQUESTS, *ANSWERS, *EVENTS)}
_FIELDS = {kind: [field.name for field in dataclasses.fields(kind)] for kind in _CLASSES.values()}
_REQUIRED = {
    kind: [field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING]
    for kind in _FIELDS
}
_TYPES: dict[str, Callable[[Any], object]] = {
    "source_location": SourceLocation,
    "signal": RecordingSignal,
    "code": Response,
    "auto_stop": bool,
    "apply_stream_id": bool,
}


class MessageError(HeadraceError):
    """Bytes that are no message of the protocol; the text says why.

    Attributes:
        ids: Control session and correlation id if the bytes have them, because the client waits for an answer.
    """

    def __init__(self, text: str, ids: tuple[int, int] | None = None) -> None:
        super().__init__(text)
        self.ids = ids


@cache
def schema() -> Schema:
    """The schema, with the fields' names in snake case."""
    with resources.as_file(resources.files("headrace.archive.protocol") / "schemas" / "archive.xml") as path:
        return Schema.from_file(path, snake_case=True)


def encode(message: Message) -> bytes:
    """The bytes of a message."""
    kind = type(message)
    values = {name: getattr(message, name) for name in _FIELDS[kind]}
    plain = {name: int(value) if isinstance(value, int) else value for name, value in values.items()}
    data: bytes = schema()[kind.__name__].encode(**plain)
    return data


def template_id_of(message: Message) -> int:
    """The number of the kind of a message."""
    template_id: int = schema()[type(message).__name__].template_id
    return template_id


def header_of(name: str) -> bytes:
    """The header of a message whose block and texts are already bytes."""
    return schema()[name].header_bytes


def decode(data: bytes) -> Message | None:
    """Decode a message; ``None`` for a template that the schema does not have, or that is not sent, which is ignored.

    Raises:
        MessageError: The bytes are of another schema, are truncated, or hold values that the schema does not have.
    """
    if len(data) < _HEADER_LENGTH:
        raise MessageError(f"length={len(data)} is below the 8 bytes of a message header")
    schema_id = int.from_bytes(data[4:6], "little")
    if schema_id != SCHEMA_ID:
        raise MessageError(f"schema_id={schema_id} where {SCHEMA_ID} is expected")
    codec = schema().template(int.from_bytes(data[2:4], "little"))
    if codec is None:
        return None
    try:
        record = codec.decode(data)
    except DecodeError as wrong:
        raise MessageError(str(wrong), _ids(data, codec.name)) from None
    return _message(codec.name, record, data)


def _message(name: str, record: Any, data: bytes) -> Message | None:
    kind: Any = _CLASSES.get(name)
    if kind is None:
        return None
    values = {}
    for field in _FIELDS[kind]:
        value = getattr(record, field)
        if value is not None:
            convert = _TYPES.get(field)
            values[field] = value if convert is None else convert(value)
    for field in _REQUIRED[kind]:
        if field not in values:
            raise MessageError(f"{name}.{field} is not given", _ids(data, name))
    message: Message = kind(**values)
    return message


def _ids(data: bytes, name: str) -> tuple[int, int] | None:
    """Control session and correlation id of a message that is damaged further on."""
    is_long_enough = len(data) >= _HEADER_LENGTH + _IDS.size
    if not (is_long_enough and int.from_bytes(data[:2], "little") >= _IDS.size and name in _with_ids()):
        return None
    ids: tuple[int, int] = _IDS.unpack_from(data, _HEADER_LENGTH)
    return ids


@cache
def _with_ids() -> frozenset[str]:
    """Messages that begin with the ids of control session and request."""
    beginnings = {
        message.name: [field.name for field in message.body.fields[:2]] for message in schema().model.messages
    }
    return frozenset(
        name for name, fields in beginnings.items() if fields == ["controlSessionId", "correlationId"]
    )


def correlation_id_of(data: bytes) -> int:
    """The request that a message to a client, which this module has encoded, answers."""
    return int(_IDS.unpack_from(data, _HEADER_LENGTH)[1])
