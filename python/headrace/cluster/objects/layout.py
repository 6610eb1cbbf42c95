"""The messages between clients of an object and its service, as MessagePack: arrays, in the order of the fields."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Any

from headrace._base.extras import needs

with needs("objects"):
    import msgspec

__all__ = [
    "CLIENT_ID_LENGTH",
    "WINDOW",
    "Answer",
    "AnswerKind",
    "Request",
    "RequestKind",
    "Terms",
    "decode_answer",
    "decode_request",
    "decode_terms",
    "decode_value",
]

CLIENT_ID_LENGTH = 16
WINDOW = 1000
"""How far a call may be ahead of the oldest one of its client that has no answer."""
_VERSION = 1
_Id = Annotated[int, msgspec.Meta(ge=0)]


class RequestKind(IntEnum):
    """The kinds of requests."""

    OPEN = 0
    """To be known from now on."""
    CALL = 1
    """A command."""
    CLOSE = 2
    """To be forgotten. Nothing answers."""
    COMMANDS = 3
    """From the service itself, and not from a client: what decides on calls from this entry of the log on."""


class AnswerKind(IntEnum):
    """The outcomes of requests."""

    OK = 0
    """Carried out; the value is what the command returned."""
    RAISED = 1
    """The command raised; the value is the name of the exception's class, and its text."""
    REFUSED = 2
    """Not carried out; the value says why."""
    FORGOTTEN = 3
    """The service does not know the client any more, nor what it has carried out for it."""


class Request(msgspec.Struct, array_like=True, frozen=True):
    """A message of a client.

    Attributes:
        version: The version of this layout.
        kind: The kind of request.
        client_id: The client's id.
        command_id: The number of the call, ascending from 1.
        oldest_id: The client has the answers to all calls before this one.
        name: The command's name.
        arguments: The arguments of the call, as MessagePack.
    """

    kind: RequestKind
    client_id: Annotated[bytes, msgspec.Meta(min_length=CLIENT_ID_LENGTH, max_length=CLIENT_ID_LENGTH)]
    command_id: _Id = 0
    oldest_id: _Id = 0
    name: str = ""
    arguments: bytes = b""
    version: Annotated[int, msgspec.Meta(ge=_VERSION, le=_VERSION)] = _VERSION


class Terms(msgspec.Struct, array_like=True, frozen=True):
    """The rules by which a call is carried out, refused or forgotten, as the leader announces them in the log.

    Attributes:
        kind: The name of the object's class.
        commands: The digest of each command's arguments, by name.
        clients_max: The most clients whose answers are kept.
    """

    kind: str
    commands: dict[str, bytes]
    clients_max: Annotated[int, msgspec.Meta(ge=1)]


class Answer(msgspec.Struct, array_like=True, frozen=True):
    """A message of the service.

    Attributes:
        kind: The outcome of the request.
        client_id: The id of the client that sent it.
        command_id: The number of the call; 0 for an ``OPEN``.
        value: The result or the error, as MessagePack.
    """

    kind: AnswerKind
    client_id: bytes
    command_id: _Id
    value: bytes


# A text that is no UTF-8 is no error of msgspec's own, nor are arrays in arrays without an end.
_WRONG = (msgspec.MsgspecError, ValueError, RecursionError)
_REQUESTS = msgspec.msgpack.Decoder(Request)
_ANSWERS = msgspec.msgpack.Decoder(Answer)
_TERMS = msgspec.msgpack.Decoder(Terms)


def decode_request(data: bytes) -> Request | None:
    """Decode a request; ``None`` for bytes that are not a request."""
    try:
        return _REQUESTS.decode(data)
    except _WRONG:
        return None


def decode_terms(data: bytes) -> Terms | None:
    """Decode an announcement; ``None`` for bytes that are not an announcement."""
    try:
        return _TERMS.decode(data)
    except _WRONG:
        return None


def decode_answer(data: bytes) -> Answer | None:
    """Decode an answer; ``None`` for bytes that are not an answer."""
    try:
        return _ANSWERS.decode(data)
    except _WRONG:
        return None


def decode_value(data: bytes) -> Any:
    """What an answer says beside a result."""
    return msgspec.msgpack.decode(data)
