"""The 32 bytes that stand before each application message, for code that runs once per message.

0  u16 block length 24 | u16 template 1 | u16 schema 111 | u16 version
8  i64 leadership term id | i64 cluster session id | i64 timestamp
"""

from __future__ import annotations

import struct
from typing import Any

__all__ = [
    "HEADER_LENGTH",
    "SESSION_MESSAGE",
    "pack_header",
    "template_of",
    "unpack_header",
    "with_header",
]

HEADER_LENGTH = 32
SESSION_MESSAGE = 1
"""The template of :class:`headrace.cluster.protocol.session.SessionMessageHeader`."""
_SCHEMA_ID, _SCHEMA_VERSION = 111, 17
_HEADER = struct.Struct("<HHHHqqq")
_FIELDS = struct.Struct("<qqq")
_IDS = struct.Struct("<HH")
_FIELDS_OFFSET = 8
# Up to here a copy costs less than an offer of two pieces.
_JOINED_MAX = 4096


def pack_header(leadership_term_id: int, cluster_session_id: int, timestamp: int) -> bytes:
    """The header of a message."""
    return _HEADER.pack(
        24, SESSION_MESSAGE, _SCHEMA_ID, _SCHEMA_VERSION, leadership_term_id, cluster_session_id, timestamp
    )


def with_header(header: bytes, message: Any) -> Any:
    """The arguments to offer, so that a message is sent behind its header.

    Args:
        header: The header.
        message: A bytes-like object, or a tuple or list of them sent as one message.
    """
    if type(message) is bytes and len(message) <= _JOINED_MAX:
        return header + message
    if isinstance(message, (tuple, list)):
        return (header, *message)
    return (header, message)


def unpack_header(message: bytes | memoryview) -> tuple[int, int, int]:
    """Term, session and timestamp of a message that begins with such a header."""
    return _FIELDS.unpack_from(message, _FIELDS_OFFSET)


def template_of(message: bytes | memoryview) -> int:
    """The template of a message; -1 if it is of another schema, or too short.

    It is also -1 for a message of an application that is shorter than its header.
    """
    if len(message) < _FIELDS_OFFSET:
        return -1
    template, schema = _IDS.unpack_from(message, 2)
    if schema != _SCHEMA_ID or (template == SESSION_MESSAGE and len(message) < HEADER_LENGTH):
        return -1
    return int(template)
