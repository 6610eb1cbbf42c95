"""The header of each request and each answer: version, kind, correlation id."""

from __future__ import annotations

import struct
from enum import IntEnum

__all__ = ["HEADER_LENGTH", "Kind", "header", "parse"]

_VERSION = 1
_HEADER = struct.Struct("<BB6xq")
HEADER_LENGTH = _HEADER.size


class Kind(IntEnum):
    """The kind of a message."""

    REQUEST = 1
    ANSWER = 2
    ERROR = 3


def header(kind: Kind, correlation_id: int) -> bytes:
    """The bytes before the body of a message."""
    return _HEADER.pack(_VERSION, kind, correlation_id)


def parse(message: bytes) -> tuple[int, int] | None:
    """Kind and correlation id of a message; ``None`` if it has another layout."""
    if len(message) < HEADER_LENGTH:
        return None
    version, kind, correlation_id = _HEADER.unpack_from(message)
    return (kind, correlation_id) if version == _VERSION else None
