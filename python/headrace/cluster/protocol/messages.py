"""The messages of a cluster: bytes to values and back, by the schema beside this file."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from headrace._base.exceptions import HeadraceError
from headrace.cluster.protocol.consensus import CONSENSUS
from headrace.cluster.protocol.control import CONTROL
from headrace.cluster.protocol.log import LOG
from headrace.cluster.protocol.session import SESSION
from headrace.cluster.protocol.snapshots import SNAPSHOTS
from headrace.sbe import Schema
from headrace.sbe._dataclasses import MessageClasses

__all__ = ["SCHEMA_ID", "MessageError", "decode", "encode", "schema"]

SCHEMA_ID = 111


class MessageError(HeadraceError):
    """Bytes that are no message of a cluster; the text says why."""


@cache
def schema() -> Schema:
    """The schema, with the fields' names in snake case."""
    with resources.as_file(resources.files("headrace.cluster.protocol") / "schemas" / "cluster.xml") as path:
        return Schema.from_file(path, snake_case=True)


_KINDS = (*SESSION, *LOG, *CONTROL, *CONSENSUS, *SNAPSHOTS)
_MESSAGES = MessageClasses(schema, SCHEMA_ID, _KINDS, lambda text, *_: MessageError(text))


def encode(message: Any) -> bytes:
    """The bytes of a message of the classes beside this file."""
    return _MESSAGES.encode(message)


def decode(data: bytes | memoryview) -> Any:
    """The message that some bytes begin with; ``None`` for a template that the schema does not have, which is ignored.

    Application data follows a :class:`SessionMessageHeader`, which is 32 bytes long, and is not looked at.

    Raises:
        MessageError: The bytes are of another schema, are truncated, or hold values that the schema does not have.
    """
    return _MESSAGES.decode(data)
