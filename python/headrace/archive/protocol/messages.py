"""The messages of the archive's control protocol and events: bytes to values and back, by the schema beside this file.

A sender of another version may have a shorter block, whose missing fields read as "not given", or a longer one, whose
end is skipped.
"""

from __future__ import annotations

import struct
from functools import cache
from importlib import resources
from typing import Any

from headrace._exceptions import HeadraceError
from headrace.positions import NULL_VALUE
from headrace.sbe import DecodeError, Schema

__all__ = [
    "PROTOCOL_VERSION",
    "Message",
    "MessageError",
    "correlation_id_of",
    "decode",
    "encode",
    "header_of",
]

SCHEMA_ID = 101
PROTOCOL_VERSION = 1 << 16 | 12 << 8
"""Semantic version 1.12.0 of the protocol."""

_HEADER_LENGTH = 8
_IDS = struct.Struct("<qq")
# What the absence of a field in an older message means, where it is not -1.
_ABSENT: dict[str, Any] = {
    "version": 0,
    "encodedCredentials": b"",
    "clientInfo": "",
    "srcResponseChannel": "",
}


class MessageError(HeadraceError):
    """Bytes that are no message of the protocol; the text says why.

    Attributes:
        ids: Control session and correlation id if the bytes have them, because the client waits for an answer.
    """

    def __init__(self, text: str, ids: tuple[int, int] | None = None) -> None:
        super().__init__(text)
        self.ids = ids


class Message:
    """A decoded message: its name, and its fields as attributes."""

    __slots__ = ("_record", "name")

    def __init__(self, name: str, record: Any) -> None:
        self.name = name
        self._record = record

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._record, name)
        return _ABSENT.get(name, NULL_VALUE) if value is None else value

    def get(self, name: str, default: Any = None) -> Any:
        """A field, or something else where the message has no such field."""
        return getattr(self, name) if hasattr(self._record, name) else default

    def __repr__(self) -> str:
        return repr(self._record)


@cache
def _schema() -> Schema:
    with resources.as_file(resources.files("headrace.archive.protocol") / "schemas" / "archive.xml") as path:
        return Schema.from_file(path)


def encode(name: str, **values: Any) -> bytes:
    """The bytes of a message."""
    data: bytes = _schema()[name].encode(**values)
    return data


def header_of(name: str) -> bytes:
    """The header of a message whose block and texts are already bytes."""
    return _schema()[name].header_bytes


def decode(data: bytes) -> Message | None:
    """Decode a message; ``None`` for a template that the schema does not have, which is to be ignored.

    Raises:
        MessageError: The bytes are of another schema, are truncated, or hold values that the schema does not have.
    """
    if len(data) < _HEADER_LENGTH:
        raise MessageError(f"length={len(data)} is below the 8 bytes of a message header")
    schema_id = int.from_bytes(data[4:6], "little")
    if schema_id != SCHEMA_ID:
        raise MessageError(f"schema_id={schema_id} where {SCHEMA_ID} is expected")
    codec = _schema().template(int.from_bytes(data[2:4], "little"))
    if codec is None:
        return None
    try:
        return Message(codec.name, codec.decode(data))
    except DecodeError as wrong:
        raise MessageError(str(wrong), _ids(data, codec.name)) from None


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
        message.name: [field.name for field in message.body.fields[:2]]
        for message in _schema().model.messages
    }
    return frozenset(
        name for name, fields in beginnings.items() if fields == ["controlSessionId", "correlationId"]
    )


def correlation_id_of(data: bytes) -> int:
    """The request that a message to a client, which this module has encoded, answers."""
    return int(_IDS.unpack_from(data, _HEADER_LENGTH)[1])
