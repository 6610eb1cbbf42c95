"""The counters that an archive shows to every tool on its driver."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.client import Client, Counter

__all__ = ["RECORDING_POSITION", "ArchiveCounters", "add_control_session", "add_recording_position"]

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
_LABEL_MAX = 380
_MODE = "SHARED"


class ArchiveCounters:
    """The counters of one archive, closed with its client."""

    def __init__(self, client: Client, archive_id: int, version: str, threshold: str) -> None:
        self._client = client
        self._archive_id = archive_id
        self.errors = self._add(ERRORS, "Archive Errors", f" version={version}")
        self.control_sessions = self._add(CONTROL_SESSIONS, "Archive Control Sessions")
        self.max_cycle_time = self._add(MAX_CYCLE_TIME, f"archive-conductor max cycle time in ns: {_MODE}")
        self.cycle_time_exceeded = self._add(
            CYCLE_TIME_EXCEEDED,
            f"archive-conductor work cycle time exceeded count: threshold={threshold} {_MODE}",
        )
        self.max_write_time = self._add(MAX_WRITE_TIME, "archive-recorder max write time in ns")
        self.total_write_bytes = self._add(TOTAL_WRITE_BYTES, "archive-recorder total write bytes")
        self.total_write_time = self._add(TOTAL_WRITE_TIME, "archive-recorder total write time in ns")
        self.max_read_time = self._add(MAX_READ_TIME, "archive-replayer max read time in ns")
        self.total_read_bytes = self._add(TOTAL_READ_BYTES, "archive-replayer total read bytes")
        self.total_read_time = self._add(TOTAL_READ_TIME, "archive-replayer total read time in ns")
        self.recording_sessions = self._add(RECORDING_SESSIONS, "Archive Recording Sessions")
        self.replay_sessions = self._add(REPLAY_SESSIONS, "Archive Replay Sessions")

    def _add(self, type_id: int, name: str, suffix: str = "") -> Counter:
        label = f"{name} - archiveId={self._archive_id}{suffix}"
        return self._client.add_counter(type_id, _ID.pack(self._archive_id), label)

    def wrote(self, byte_count: int, duration_ns: int) -> None:
        """Note one write."""
        self.total_write_bytes.get_and_add(byte_count)
        self.total_write_time.get_and_add(duration_ns)
        if duration_ns > self.max_write_time.value:
            self.max_write_time.value = duration_ns

    def read(self, byte_count: int, duration_ns: int) -> None:
        """Note one read."""
        self.total_read_bytes.get_and_add(byte_count)
        self.total_read_time.get_and_add(duration_ns)
        if duration_ns > self.max_read_time.value:
            self.max_read_time.value = duration_ns


def add_recording_position(
    client: Client,
    archive_id: int,
    recording_id: int,
    session_id: int,
    stream_id: int,
    stripped_channel: str,
    source_identity: str,
) -> Counter:
    """The counter with the position up to which a recording is stored."""
    identity = source_identity.encode("ascii", "replace")[:_IDENTITY_MAX]
    key = _POSITION_KEY.pack(recording_id, session_id, len(identity)) + identity + _ID.pack(archive_id)
    start, end = f"rec-pos: {recording_id} {session_id} {stream_id} ", f" - archiveId={archive_id}"
    label = start + stripped_channel[: _LABEL_MAX - len(start) - len(end)] + end
    return client.add_counter(RECORDING_POSITION, key, label)


def add_control_session(
    client: Client, archive_id: int, control_session_id: int, client_info: str, source: str, session_id: int
) -> Counter:
    """The counter that shows a control session."""
    info = f"{client_info} " if client_info else ""
    label = f"control-session: {info}sourceIdentity={source} sessionId={session_id} - archiveId={archive_id}"
    key = _ID.pack(archive_id) + _ID.pack(control_session_id)
    counter = client.add_counter(CONTROL_SESSION, key, label[:_LABEL_MAX])
    counter.value = control_session_id
    return counter


def recording_id_of(key: bytes) -> int:
    """The recording that a recording position counter belongs to."""
    recording_id: int = _ID.unpack_from(key)[0]
    return recording_id


def archive_id_of(key: bytes) -> int:
    """The archive that a recording position counter belongs to."""
    _, _, length = _POSITION_KEY.unpack_from(key)
    offset = _POSITION_KEY.size + length
    archive_id: int = _ID.unpack_from(key, offset)[0] if offset + _ID.size <= len(key) else -1
    return archive_id
