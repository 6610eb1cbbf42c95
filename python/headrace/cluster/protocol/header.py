"""The 32 bytes that stand before each application message, for code that runs once per message.

0  u16 block length 24 | u16 template 1 | u16 schema 111 | u16 version
8  i64 leadership term id | i64 cluster session id | i64 timestamp
"""

from __future__ import annotations

import struct

__all__ = ["HEADER_LENGTH", "SESSION_MESSAGE", "pack_header", "template_of", "unpack_header"]

HEADER_LENGTH = 32
SESSION_MESSAGE = 1
"""The template of :class:`headrace.cluster.protocol.session.SessionMessageHeader`."""
_SCHEMA_ID, _SCHEMA_VERSION = 111, 17
_HEADER = struct.Struct("<HHHHqqq")
_FIELDS = struct.Struct("<qqq")
_IDS = struct.Struct("<HH")
_FIELDS_OFFSET = 8


def pack_header(leadership_term_id: int, cluster_session_id: int, timestamp: int) -> bytes:
    """The header of a message."""
    return _HEADER.pack(
        24, SESSION_MESSAGE, _SCHEMA_ID, _SCHEMA_VERSION, leadership_term_id, cluster_session_id, timestamp
    )


def unpack_header(message: bytes | memoryview) -> tuple[int, int, int]:
    """Term, session and timestamp of a message that begins with such a header."""
    return _FIELDS.unpack_from(message, _FIELDS_OFFSET)


def template_of(message: bytes | memoryview) -> int:
    """Which message of the cluster's schema some bytes are; -1 when they are of another schema, or too short.

    A message of an application that is shorter than its header is none either.
    """
    if len(message) < _FIELDS_OFFSET:
        return -1
    template, schema = _IDS.unpack_from(message, 2)
    if schema != _SCHEMA_ID or (template == SESSION_MESSAGE and len(message) < HEADER_LENGTH):
        return -1
    return int(template)
