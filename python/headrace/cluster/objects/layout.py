"""What clients of an object and its service say to each other, as MessagePack: arrays, in the order of the fields."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Any

from headrace._extras import needs

with needs("objects"):
    import msgspec

__all__ = [
    "CLIENT_ID_LENGTH",
    "WINDOW",
    "Answer",
    "AnswerKind",
    "Request",
    "RequestKind",
    "decode_answer",
    "decode_request",
    "decode_value",
]

CLIENT_ID_LENGTH = 16
WINDOW = 1000
"""How far a call may be ahead of the oldest one of its client that has no answer."""
_VERSION = 1
_Id = Annotated[int, msgspec.Meta(ge=0)]


class RequestKind(IntEnum):
    """What a client wants."""

    OPEN = 0
    """To be known from now on."""
    CALL = 1
    """A command."""
    CLOSE = 2
    """To be forgotten. Nothing answers."""


class AnswerKind(IntEnum):
    """What became of it."""

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
        version: Of this layout.
        kind: What it wants.
        client_id: Who it is.
        command_id: Which of its calls; ascending from 1.
        oldest_id: All calls before this one have their answers.
        name: Of the command.
        arguments: Of the call, as MessagePack.
    """

    kind: RequestKind
    client_id: Annotated[bytes, msgspec.Meta(min_length=CLIENT_ID_LENGTH, max_length=CLIENT_ID_LENGTH)]
    command_id: _Id = 0
    oldest_id: _Id = 0
    name: str = ""
    arguments: bytes = b""
    version: Annotated[int, msgspec.Meta(ge=_VERSION, le=_VERSION)] = _VERSION


class Answer(msgspec.Struct, array_like=True, frozen=True):
    """A message of the service.

    Attributes:
        kind: What became of the call.
        client_id: Of whom.
        command_id: Which call; 0 for an ``OPEN``.
        value: As MessagePack.
    """

    kind: AnswerKind
    client_id: bytes
    command_id: _Id
    value: bytes


# A text that is no UTF-8 is no error of msgspec's own, nor are arrays in arrays without an end.
_WRONG = (msgspec.MsgspecError, ValueError, RecursionError)
_REQUESTS = msgspec.msgpack.Decoder(Request)
_ANSWERS = msgspec.msgpack.Decoder(Answer)


def decode_request(data: bytes) -> Request | None:
    """A request; ``None`` for bytes that are none."""
    try:
        return _REQUESTS.decode(data)
    except _WRONG:
        return None


def decode_answer(data: bytes) -> Answer | None:
    """An answer; ``None`` for bytes that are none."""
    try:
        return _ANSWERS.decode(data)
    except _WRONG:
        return None


def decode_value(data: bytes) -> Any:
    """What an answer says beside a result."""
    return msgspec.msgpack.decode(data)
