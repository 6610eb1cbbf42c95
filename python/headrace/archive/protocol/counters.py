"""The archive's counters as tools see them: their types, and the key of a recording's position.

The key: i64 recording id | i32 session id | i32 length of source | source | i64 archive id
"""

from __future__ import annotations

import struct

__all__ = [
    "RECORDING_POSITION",
    "archive_id_of",
    "archive_id_of_errors",
    "recording_id_of",
    "recording_position_key",
    "session_id_of",
]

SUBSCRIBER_POSITION = 4
CLIENT_HEARTBEAT = 11
RECORDING_POSITION = 100
ERRORS = 101
CONTROL_SESSIONS = 102
MAX_CYCLE_TIME = 103
CYCLE_TIME_EXCEEDED = 104
MAX_WRITE_TIME = 105
TOTAL_WRITE_BYTES = 106
TOTAL_WRITE_TIME = 107
MAX_READ_TIME = 108
TOTAL_READ_BYTES = 109
TOTAL_READ_TIME = 110
RECORDING_SESSIONS = 111
REPLAY_SESSIONS = 112
CONTROL_SESSION = 113
_ID = struct.Struct("<q")
_POSITION_KEY = struct.Struct("<qii")
_IDENTITY_MAX = 88


def recording_position_key(
    recording_id: int, session_id: int, source_identity: str, archive_id: int
) -> bytes:
    """The key of the counter that shows how far a recording is stored."""
    identity = source_identity.encode("ascii", "replace")[:_IDENTITY_MAX]
    return _POSITION_KEY.pack(recording_id, session_id, len(identity)) + identity + _ID.pack(archive_id)


def recording_id_of(key: bytes) -> int:
    """The recording that a recording position counter belongs to."""
    recording_id: int = _ID.unpack_from(key)[0]
    return recording_id


def session_id_of(key: bytes) -> int:
    """The session that a recording position counter, or a subscriber's, belongs to."""
    session_id: int = _POSITION_KEY.unpack_from(key)[1]
    return session_id


def archive_id_of_errors(key: bytes) -> int:
    """The archive that a counter of errors belongs to."""
    archive_id: int = _ID.unpack_from(key)[0]
    return archive_id


def archive_id_of(key: bytes) -> int:
    """The archive that a recording position counter belongs to."""
    _, _, length = _POSITION_KEY.unpack_from(key)
    offset = _POSITION_KEY.size + length
    archive_id: int = _ID.unpack_from(key, offset)[0] if offset + _ID.size <= len(key) else -1
    return archive_id
