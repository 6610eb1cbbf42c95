"""Settings of an archive, by keyword, property name or environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from headrace._agent.mark_file import HEADER_LENGTH
from headrace._agent.rules import AUTHENTICATOR, AUTHORISATION, IDLE_STRATEGY
from headrace._settings.declared import DeclaredConfig, check, duration, flag, number, size, stream_id, text
from headrace._settings.rules import (
    DIRECTORY,
    INT_MAX,
    LONG_MAX,
    MTU,
    Rule,
    accepts,
    channel,
    one_of,
    optional,
    power_of_two,
    whole,
)
from headrace.archive.files.checksum import checksum_named
from headrace.security import Authenticator, AuthorisationService

__all__ = ["ArchiveConfig"]

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
# Properties of the specification for what is not built here, with the values that this archive does have. Any other
# value is an error, so that no setting is lost silently.
_ALIKE = "the threads of the archive are alike"
_NOT_BUILT = {
    "aeron.archive.recorder.cycle.threshold": (
        f"{_ALIKE}: set aeron.archive.conductor.cycle.threshold",
        (),
    ),
    "aeron.archive.replayer.cycle.threshold": (
        f"{_ALIKE}: set aeron.archive.conductor.cycle.threshold",
        (),
    ),
    "aeron.archive.recorder.idle.strategy": (f"{_ALIKE}: set aeron.archive.idle.strategy", ()),
    "aeron.archive.replayer.idle.strategy": (f"{_ALIKE}: set aeron.archive.idle.strategy", ()),
    "aeron.archive.max.catalog.entries": (
        "has no effect in Aeron either: the catalog grows from aeron.archive.catalog.capacity",
        (),
    ),
    "aeron.secure.random.algorithm": ("replay tokens come from the random numbers of the system", ()),
}

_CHECKSUM = Rule(
    "CRC-32 or CRC-32C, or a class of Aeron with one of them",
    lambda value: isinstance(value, str) and accepts(checksum_named, value),
)


@dataclass(frozen=True, kw_only=True)
class ArchiveConfig(DeclaredConfig):
    """Settings of an archive.

    Lengths are bytes, durations carry their unit in the name. A wrong value raises :class:`headrace.ConfigError`
    naming the setting, the value and the rule, before anything is started. The page ``docs/reference/settings.md`` says
    what each setting means.
    """

    _owner: ClassVar[str] = "the archive"
    _name: ClassVar[str] = "headrace.archive.ArchiveConfig"
    _environment_prefix: ClassVar[str] = "AERON_ARCHIVE_"
    _others: ClassVar[tuple[str, ...]] = (
        "config",
        "properties",
        "driver",
        "is_invoked",
        "clock",
        "storage",
        "on_error",
        "on_event",
    )
    _not_built: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = _NOT_BUILT

    archive_directory: str | os.PathLike[str] = text(
        "archive.dir", "aeron-archive", DIRECTORY, "Where catalog and recordings are kept."
    )
    mark_file_directory: str | os.PathLike[str] | None = text(
        "archive.mark.file.dir",
        None,
        optional(DIRECTORY),
        "Where the mark file is kept; unset: with the recordings.",
    )
    directory_delete_on_start: bool = flag(
        "archive.dir.delete.on.start",
        False,
        "Delete every recording in the directory at the start. They cannot be restored.",
    )
    aeron_directory: str | os.PathLike[str] | None = text(
        "dir", None, optional(DIRECTORY), "The driver's directory; unset: the default one."
    )
    archive_id: int = number(
        "archive.id",
        -1,
        whole(-LONG_MAX - 1, LONG_MAX),
        "Number of this archive among those on one driver; -1: the archive chooses.",
    )
    control_channel_enabled: bool = flag(
        "archive.control.channel.enabled", True, "Whether clients on other drivers may send requests."
    )
    control_channel: str | None = text(
        "archive.control.channel",
        None,
        optional(channel("udp")),
        "Where clients on other drivers send requests.",
    )
    control_stream_id: int = stream_id(
        "archive.control.stream.id", 10, "Stream id of requests on the control channel."
    )
    local_control_channel: str = text(
        "archive.local.control.channel",
        "aeron:ipc?term-length=64k",
        channel("ipc"),
        "Where clients on the archive's own driver send requests.",
    )
    local_control_stream_id: int = stream_id(
        "archive.local.control.stream.id", 10, "Stream id of requests on the local control channel."
    )
    control_term_buffer_sparse: bool = flag(
        "archive.control.term.buffer.sparse",
        True,
        "Whether log files of answers take memory only as they are written.",
    )
    control_term_buffer_length: int = size(
        "archive.control.term.buffer.length",
        64 * _KIB,
        power_of_two(64 * _KIB, _GIB),
        "Term length of answers to clients.",
    )
    control_mtu_length: int = size("archive.control.mtu.length", 1408, MTU, "MTU of answers to clients.")
    recording_events_enabled: bool = flag(
        "archive.recording.events.enabled", False, "Whether the archive publishes the progress of recordings."
    )
    recording_events_channel: str | None = text(
        "archive.recording.events.channel",
        None,
        optional(channel("")),
        "Where the archive publishes the progress of recordings.",
    )
    recording_events_stream_id: int = stream_id(
        "archive.recording.events.stream.id", 30, "Stream id of the progress of recordings."
    )
    replication_channel: str | None = text(
        "archive.replication.channel",
        None,
        optional(channel("")),
        "Where the archive receives recordings that it replicates, if the request names no channel; with port 0 the "
        "system chooses.",
    )
    segment_file_length: int = size(
        "archive.segment.file.length",
        128 * _MIB,
        power_of_two(64 * _KIB, _GIB),
        "Length of a segment file, for new recordings.",
    )
    file_io_max_length: int = size(
        "archive.file.io.max.length",
        _MIB,
        power_of_two(64 * _KIB, _GIB),
        "Most bytes written or read at once; at least a frame.",
    )
    file_sync_level: int = number(
        "archive.file.sync.level",
        0,
        one_of(0, 1, 2),
        "What the archive forces to the disk before a position counts as recorded: nothing (0), data (1), data and "
        "metadata (2).",
    )
    catalog_file_sync_level: int = number(
        "archive.catalog.file.sync.level",
        0,
        one_of(0, 1, 2),
        "What the archive forces to the disk after a change of the catalog: new recordings alone (0), data (1), data "
        "and metadata (2). At least `file_sync_level`.",
    )
    catalog_capacity: int = size(
        "archive.catalog.capacity",
        _MIB,
        whole(32, INT_MAX, "of bytes"),
        "First size of the catalog; it grows.",
    )
    low_storage_space_threshold: int = size(
        "archive.low.storage.space.threshold",
        128 * _MIB,
        whole(0, LONG_MAX, "of bytes"),
        "With less free space than this the archive starts and extends no recording.",
    )
    max_concurrent_recordings: int = number(
        "archive.max.concurrent.recordings",
        20,
        whole(1, INT_MAX),
        "How many recordings may run at once, with those that wait for a publisher.",
    )
    max_concurrent_replays: int = number(
        "archive.max.concurrent.replays", 20, whole(1, INT_MAX), "How many replays may run at once."
    )
    event_limit: int = number(
        "archive.event.limit",
        1024,
        whole(0, 1 << 20),
        "How many of the newest changes of state the archive's event log keeps, 256 bytes each; 0: no event log. "
        "Headrace only.",
    )
    max_control_sessions: int = number(
        "archive.max.control.sessions",
        1000,
        whole(1, INT_MAX),
        "How many clients may be connected at once. Headrace only.",
    )
    authenticator: str | Authenticator | None = text(
        "archive.authenticator.supplier",
        None,
        optional(AUTHENTICATOR),
        "Decides who a client is; unset: the archive accepts every client.",
    )
    authorisation: str | AuthorisationService = text(
        "archive.authorisation.service.supplier",
        "ALLOW_ALL",
        AUTHORISATION,
        "Decides which requests a client may send.",
    )
    connect_timeout_ns: int = duration(
        "archive.connect.timeout",
        5_000_000_000,
        "How long a client may take to connect, and the subscriber of a replay to appear.",
    )
    session_liveness_check_interval_ns: int = duration(
        "archive.session.liveness.check.interval",
        1_000_000_000,
        "How often the archive checks that a client to which it sends nothing is still there.",
    )
    replay_linger_timeout_ns: int = duration(
        "archive.replay.linger.timeout",
        5_000_000_000,
        "How long the stream of a finished replay stays open for a slow reader.",
    )
    conductor_cycle_threshold_ns: int = duration(
        "archive.conductor.cycle.threshold", 100_000_000, "The archive counts turns that take longer."
    )
    threading_mode: str = text(
        "archive.threading.mode",
        "DEDICATED",
        one_of("DEDICATED", "SHARED"),
        "One thread (SHARED), or a second one that writes what is recorded, so that a slow disk delays no answer "
        "(DEDICATED). With `is_invoked=True` of `ArchiveServer` the program's thread does all the work.",
    )
    idle_strategy: str = text(
        "archive.idle.strategy",
        "backoff",
        IDLE_STRATEGY,
        "How the archive's threads wait for work.",
    )
    error_buffer_length: int = size(
        "archive.error.buffer.length",
        _MIB,
        whole(_MIB, INT_MAX - HEADER_LENGTH, "of bytes"),
        "Room for distinct errors in the mark file.",
    )
    record_checksum: str | None = text(
        "archive.record.checksum",
        None,
        optional(_CHECKSUM),
        "Checksum written into each recorded frame; unset: none.",
    )
    replay_checksum: str | None = text(
        "archive.replay.checksum", None, optional(_CHECKSUM), "Checksum that replays check; unset: none."
    )
    # The protocol's value, which others read too; so it has no property.
    mark_file_liveness_timeout_ms: int = field(
        default=10_000,
        metadata={
            "rule": whole(0, LONG_MAX, "of milliseconds"),
            "meaning": "How long no other archive starts in the directory of a killed one that held no lock, such as "
            "Aeron's.",
        },
    )

    def check(self) -> None:
        """Check all values, also against each other.

        Raises:
            ConfigError: One is wrong; the text names it, its value and the rule.
        """
        super().check()
        check(
            self.control_channel_enabled <= bool(self.control_channel),
            "control_channel",
            self.control_channel,
            "is required; set it to a UDP channel, or control_channel_enabled=False for local clients only",
        )
        check(
            self.recording_events_enabled <= bool(self.recording_events_channel),
            "recording_events_channel",
            self.recording_events_channel,
            "is required when recording_events_enabled is set",
        )
        check(
            self.catalog_file_sync_level >= self.file_sync_level,
            "catalog_file_sync_level",
            self.catalog_file_sync_level,
            f"must be at least file_sync_level={self.file_sync_level}",
        )
