"""The counters of an archive, which every tool on its driver can read."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from headrace._base.exceptions import ConfigError
from headrace._base.labels import printable
from headrace.archive.protocol.counters import (
    CONTROL_SESSION,
    CONTROL_SESSIONS,
    CYCLE_TIME_EXCEEDED,
    ERRORS,
    MAX_CYCLE_TIME,
    MAX_READ_TIME,
    MAX_WRITE_TIME,
    RECORDING_POSITION,
    RECORDING_SESSIONS,
    REPLAY_SESSIONS,
    TOTAL_READ_BYTES,
    TOTAL_READ_TIME,
    TOTAL_WRITE_BYTES,
    TOTAL_WRITE_TIME,
    recording_position_key,
)
from headrace.client import __commit__, __version__

if TYPE_CHECKING:
    from headrace.client import Client, Counter, Pending

__all__ = ["ArchiveCounters", "request_control_session", "request_recording_position"]

_ID = struct.Struct("<q")
_LABEL_MAX = 380


class ArchiveCounters:
    """The counters of one archive.

    Raises:
        ConfigError: Another archive on the driver has the same id.
    """

    def __init__(self, client: Client, archive_id: int, threshold: str, mode: str) -> None:
        self._client = client
        self._archive_id = archive_id
        self._added: list[Counter] = []
        self.errors = self._add(ERRORS, "Archive Errors", f" version={__version__} commit={__commit__}")
        self._check_alone()
        self.control_sessions = self._add(CONTROL_SESSIONS, "Archive Control Sessions")
        self.max_cycle_time = self._add(MAX_CYCLE_TIME, f"archive-conductor max cycle time in ns: {mode}")
        self.cycle_time_exceeded = self._add(
            CYCLE_TIME_EXCEEDED,
            f"archive-conductor work cycle time exceeded count: threshold={threshold} {mode}",
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
        label = f"{name}{_archive_suffix(self._archive_id)}{suffix}"
        counter = self._client.add_counter(type_id, _ID.pack(self._archive_id), label)
        self._added.append(counter)
        return counter

    def close(self) -> None:
        """Free all counters, so that an archive with the same id can start at once."""
        for counter in self._added:
            counter.close()

    def _check_alone(self) -> None:
        # After its own is there: of two archives that start at once, the driver has put one before the other.
        key = _ID.pack(self._archive_id)
        for one in self._client.counters:
            is_first = one.registration_id < self.errors.registration_id
            if one.type_id == ERRORS and one.key.startswith(key) and is_first:
                self.close()
                rule = (
                    "is the id of another archive on this driver: choose another; if that archive was killed, "
                    "wait until the driver has noticed (client_liveness_timeout_ns)"
                )
                text = f"archive_id={self._archive_id}: {rule}"
                raise ConfigError(text, "archive_id", str(self._archive_id), rule)

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


def request_recording_position(
    client: Client,
    archive_id: int,
    recording_id: int,
    session_id: int,
    stream_id: int,
    stripped_channel: str,
    source_identity: str,
) -> Pending[Counter]:
    """Ask for the counter with the position up to which a recording is stored."""
    key = recording_position_key(recording_id, session_id, source_identity, archive_id)
    label = _label(
        f"rec-pos: {recording_id} {session_id} {stream_id} ", stripped_channel, _archive_suffix(archive_id)
    )
    return client.request_counter(RECORDING_POSITION, key, label)


def request_control_session(
    client: Client, archive_id: int, control_session_id: int, client_info: str, source: str, session_id: int
) -> Pending[Counter]:
    """Ask for the counter that shows a control session; its value is the session's id."""
    info = f"{client_info} " if client_info else ""
    label = _label(
        "control-session: ",
        info,
        f"sourceIdentity={source} sessionId={session_id}{_archive_suffix(archive_id)}",
    )
    key = _ID.pack(archive_id) + _ID.pack(control_session_id)
    return client.request_counter(CONTROL_SESSION, key, label)


def _archive_suffix(archive_id: int) -> str:
    return f" - archiveId={archive_id}"


def _label(start: str, text: str, end: str) -> str:
    """A label, whose middle part, chosen by a client, is shortened until the label fits."""
    label = start + text[: _LABEL_MAX - len(start) - len(end)] + end
    return printable(label)
