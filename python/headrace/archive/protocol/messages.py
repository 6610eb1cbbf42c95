"""The messages of the archive's control protocol and events, by the schema beside this file."""

from __future__ import annotations

import struct
from functools import cache
from importlib import resources

from headrace._base.exceptions import HeadraceError
from headrace.archive.protocol.answers import ANSWERS, EVENTS, Answer, Event, Ping
from headrace.archive.protocol.requests import (
    REQUESTS,
    AuthConnectRequest,
    CloseSessionRequest,
    Request,
)
from headrace.sbe import Schema
from headrace.sbe._dataclasses import MessageClasses

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


class MessageError(HeadraceError):
    """Bytes that are not a message of the protocol; the text says why.

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


def _error(text: str, data: bytes | memoryview, name: str | None) -> MessageError:
    return MessageError(text, None if name is None else _ids(data, name))


_MESSAGES = MessageClasses(schema, SCHEMA_ID, (*REQUESTS, *ANSWERS, *EVENTS), _error)


def encode(message: Message) -> bytes:
    """The bytes of a message."""
    return _MESSAGES.encode(message)


def decode(data: bytes) -> Message | None:
    """Decode a message; ``None`` for a template that is unknown or has no class, which is ignored.

    Raises:
        MessageError: The bytes are of another schema, are truncated, or hold values that the schema does not have.
    """
    message: Message | None = _MESSAGES.decode(data)
    return message


def template_id_of(message: Message) -> int:
    """The template id of a message."""
    template_id: int = schema()[type(message).__name__].template_id
    return template_id


def header_of(name: str) -> bytes:
    """The header of a message whose block and texts are already bytes."""
    return schema()[name].header_bytes


def _ids(data: bytes | memoryview, name: str) -> tuple[int, int] | None:
    """Control session and correlation id of a message whose later bytes are damaged."""
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
    """The correlation id of an encoded answer."""
    return int(_IDS.unpack_from(data, _HEADER_LENGTH)[1])
