"""Settings of an archive, by keyword, property name or environment."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace._checks import check_kind, check_names, did_you_mean, excerpt, nearest
from headrace._exceptions import ConfigError
from headrace.archive.server.rules import (
    AUTHENTICATOR,
    AUTHORISATION,
    BOOLEAN,
    CHECKSUM,
    DIRECTORY,
    IDLE_STRATEGY,
    INT_MAX,
    LONG_MAX,
    MTU,
    Rule,
    channel,
    one_of,
    optional,
    power_of_two,
    whole,
)
from headrace.channel import parse_duration_ns, parse_size
from headrace.security import Authenticator, AuthorisationService

if TYPE_CHECKING:
    from typing import Unpack

    from headrace.archive.server.keywords import ArchiveSettings

__all__ = ["ArchiveConfig"]

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
_HEADER_LENGTH = 8192
_NO_SETTING = "is not a setting of the archive"
_ENVIRONMENT_PREFIX = "AERON_ARCHIVE_"
# What else an archive takes, for a misspelt name.
_OTHERS = ("config", "properties", "driver", "is_invoked", "clock", "storage", "on_error", "on_event")

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


def _setting(name: str, default: Any, kind: str, rule: Rule, meaning: str) -> Any:
    metadata = {"property": f"aeron.{name}", "kind": kind, "rule": rule, "meaning": meaning}
    return field(default=default, metadata=metadata)


def _text(name: str, default: str | None, rule: Rule, meaning: str) -> Any:
    return _setting(name, default, "text", rule, meaning)


def _flag(name: str, default: bool, meaning: str) -> Any:
    return _setting(name, default, "boolean", BOOLEAN, meaning)


def _number(name: str, default: int, rule: Rule, meaning: str) -> Any:
    return _setting(name, default, "number", rule, meaning)


def _stream_id(name: str, default: int, meaning: str) -> Any:
    return _number(name, default, whole(-INT_MAX - 1, INT_MAX), meaning)


def _size(name: str, default: int, rule: Rule, meaning: str) -> Any:
    return _setting(name, default, "size", rule, meaning)


def _duration(name: str, default: int, meaning: str) -> Any:
    return _setting(name, default, "duration", whole(0, LONG_MAX, "of nanoseconds"), meaning)


@dataclass(frozen=True, kw_only=True)
class ArchiveConfig:
    """Settings of an archive.

    Lengths are bytes, durations carry their unit in the name. A wrong value raises :class:`headrace.ConfigError`
    naming the setting, the value and the rule, before anything is started. The page ``docs/reference/settings.md`` says
    what each setting means.
    """

    archive_directory: str | os.PathLike[str] = _text(
        "archive.dir", "aeron-archive", DIRECTORY, "Where catalog and recordings are kept."
    )
    mark_file_directory: str | os.PathLike[str] | None = _text(
        "archive.mark.file.dir",
        None,
        optional(DIRECTORY),
        "Where the mark file is kept; unset: with the recordings.",
    )
    directory_delete_on_start: bool = _flag(
        "archive.dir.delete.on.start",
        False,
        "Delete every recording in the directory before starting. The recordings cannot be restored.",
    )
    aeron_directory: str | os.PathLike[str] | None = _text(
        "dir", None, optional(DIRECTORY), "The driver's directory; unset: the default one."
    )
    archive_id: int = _number(
        "archive.id",
        -1,
        whole(-LONG_MAX - 1, LONG_MAX),
        "Number that tells archives on one driver apart; -1: chosen at the start.",
    )
    control_channel_enabled: bool = _flag(
        "archive.control.channel.enabled", True, "Whether clients on other drivers may send requests."
    )
    control_channel: str | None = _text(
        "archive.control.channel",
        None,
        optional(channel("udp")),
        "Where clients on other drivers send requests: a UDP channel of this machine.",
    )
    control_stream_id: int = _stream_id(
        "archive.control.stream.id", 10, "Stream id of requests on the control channel."
    )
    local_control_channel: str = _text(
        "archive.local.control.channel",
        "aeron:ipc?term-length=64k",
        channel("ipc"),
        "Where clients on the archive's own driver send requests.",
    )
    local_control_stream_id: int = _stream_id(
        "archive.local.control.stream.id", 10, "Stream id of requests on the local control channel."
    )
    control_term_buffer_sparse: bool = _flag(
        "archive.control.term.buffer.sparse",
        True,
        "Whether logs of answers take memory only as they are written.",
    )
    control_term_buffer_length: int = _size(
        "archive.control.term.buffer.length",
        64 * _KIB,
        power_of_two(64 * _KIB, _GIB),
        "Term length of answers to clients.",
    )
    control_mtu_length: int = _size("archive.control.mtu.length", 1408, MTU, "MTU of answers to clients.")
    recording_events_enabled: bool = _flag(
        "archive.recording.events.enabled", False, "Whether the archive publishes the progress of recordings."
    )
    recording_events_channel: str | None = _text(
        "archive.recording.events.channel",
        None,
        optional(channel("")),
        "Where the archive publishes the progress of recordings.",
    )
    recording_events_stream_id: int = _stream_id(
        "archive.recording.events.stream.id", 30, "Stream id of the progress of recordings."
    )
    replication_channel: str | None = _text(
        "archive.replication.channel",
        None,
        optional(channel("")),
        "Where recordings of other archives are received, for requests to replicate that do not say; port 0 lets the "
        "system choose one.",
    )
    segment_file_length: int = _size(
        "archive.segment.file.length",
        128 * _MIB,
        power_of_two(64 * _KIB, _GIB),
        "Length of a file of a recording, for recordings made from now on.",
    )
    file_io_max_length: int = _size(
        "archive.file.io.max.length",
        _MIB,
        power_of_two(64 * _KIB, _GIB),
        "Most bytes written or read at once; not less than a frame.",
    )
    file_sync_level: int = _number(
        "archive.file.sync.level",
        0,
        one_of(0, 1, 2),
        "What the archive forces to the disk before a position counts as recorded: 0 nothing; 1 the "
        "data; 2 the data and the file's metadata.",
    )
    catalog_file_sync_level: int = _number(
        "archive.catalog.file.sync.level",
        0,
        one_of(0, 1, 2),
        "What the archive forces to the disk when it has changed the catalog: 0 nothing; 1 the "
        "data; 2 the data and the file's metadata. Not less than `file_sync_level`.",
    )
    catalog_capacity: int = _size(
        "archive.catalog.capacity",
        _MIB,
        whole(32, INT_MAX, "of bytes"),
        "First size of the catalog; it grows.",
    )
    low_storage_space_threshold: int = _size(
        "archive.low.storage.space.threshold",
        128 * _MIB,
        whole(0, LONG_MAX, "of bytes"),
        "With less free space than this the archive starts and extends no recording.",
    )
    max_concurrent_recordings: int = _number(
        "archive.max.concurrent.recordings",
        20,
        whole(1, INT_MAX),
        "How many recordings may run at once. It counts those that run, and those that wait for a publisher.",
    )
    max_concurrent_replays: int = _number(
        "archive.max.concurrent.replays", 20, whole(1, INT_MAX), "How many replays may run at once."
    )
    event_limit: int = _number(
        "archive.event.limit",
        1024,
        whole(0, 1 << 20),
        "How many changes of state the archive's event log keeps, the newest: 256 bytes each. 0: no event log. Only "
        "Headrace's archive has this property.",
    )
    max_control_sessions: int = _number(
        "archive.max.control.sessions",
        1000,
        whole(1, INT_MAX),
        "How many clients may be connected at once. Only Headrace's archive has this property.",
    )
    authenticator: str | Authenticator | None = _text(
        "archive.authenticator.supplier",
        None,
        optional(AUTHENTICATOR),
        "What decides who a client is; unset: every client is accepted.",
    )
    authorisation: str | AuthorisationService = _text(
        "archive.authorisation.service.supplier",
        "ALLOW_ALL",
        AUTHORISATION,
        "What decides which requests a client may send.",
    )
    connect_timeout_ns: int = _duration(
        "archive.connect.timeout",
        5_000_000_000,
        "How long a client may take to connect, and the subscriber of a replay to appear.",
    )
    session_liveness_check_interval_ns: int = _duration(
        "archive.session.liveness.check.interval",
        1_000_000_000,
        "How often an archive that sends nothing to a client asks whether the client is still there.",
    )
    replay_linger_timeout_ns: int = _duration(
        "archive.replay.linger.timeout",
        5_000_000_000,
        "How long the stream of a finished replay stays open for a slow reader.",
    )
    conductor_cycle_threshold_ns: int = _duration(
        "archive.conductor.cycle.threshold", 100_000_000, "The archive counts turns that take longer."
    )
    threading_mode: str = _text(
        "archive.threading.mode",
        "SHARED",
        one_of("DEDICATED", "SHARED"),
        "How many threads the archive's work is done on. SHARED: one. DEDICATED: what is recorded is written by a "
        "second one, so that a slow disk keeps no client waiting for an answer. With `is_invoked=True` of "
        "`ArchiveServer` the program's thread does all the work.",
    )
    idle_strategy: str = _text(
        "archive.idle.strategy",
        "backoff",
        IDLE_STRATEGY,
        "What a thread of the archive does when a turn found no work.",
    )
    error_buffer_length: int = _size(
        "archive.error.buffer.length",
        _MIB,
        whole(_MIB, INT_MAX - _HEADER_LENGTH, "of bytes"),
        "Room for distinct errors in the mark file.",
    )
    record_checksum: str | None = _text(
        "archive.record.checksum",
        None,
        optional(CHECKSUM),
        "Checksum written into each recorded frame; unset: none.",
    )
    replay_checksum: str | None = _text(
        "archive.replay.checksum", None, optional(CHECKSUM), "Checksum that replays check; unset: none."
    )
    # The protocol's value, which others read too; so it has no property.
    mark_file_liveness_timeout_ms: int = field(
        default=10_000,
        metadata={
            "rule": whole(0, LONG_MAX, "of milliseconds"),
            "meaning": "How long after an archive that holds no lock, such as that of Aeron, was killed no "
            "other starts on its directory.",
        },
    )

    @classmethod
    def of(
        cls,
        config: ArchiveConfig | None = None,
        properties: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        **settings: Unpack[ArchiveSettings],
    ) -> ArchiveConfig:
        """Settings from the environment, overridden by a config, by properties and by keywords, and checked.

        Raises:
            ConfigError: A setting is wrong or unknown.
        """
        rule = f"{_NO_SETTING}, see headrace.archive.ArchiveConfig"
        check_names(settings, cls.__dataclass_fields__, rule, others=_OTHERS)
        values = (
            {}
            if config is not None
            else _from_environment(os.environ if environment is None else environment)
        )
        values |= _from_properties(properties or {})
        values |= {name: value for name, value in settings.items() if value is not None}
        check_kind("config", config, ArchiveConfig, "must be a headrace.archive.ArchiveConfig")
        result = dataclasses.replace(config or cls(), **values)
        result.check()
        return result

    def check(self) -> None:
        """Look for values that are wrong, or at odds.

        Raises:
            ConfigError: There is one; the text names it, its value and the rule.
        """
        for item in dataclasses.fields(self):
            rule: Rule = item.metadata["rule"]
            value = getattr(self, item.name)
            _check(rule.is_kept(value), item.name, value, f"must be {rule.text}")
        _check(
            self.control_channel_enabled <= bool(self.control_channel),
            "control_channel",
            self.control_channel,
            "is required; set it to a UDP channel, or control_channel_enabled=False for local clients only",
        )
        _check(
            self.recording_events_enabled <= bool(self.recording_events_channel),
            "recording_events_channel",
            self.recording_events_channel,
            "is required when recording_events_enabled is set",
        )
        _check(
            self.catalog_file_sync_level >= self.file_sync_level,
            "catalog_file_sync_level",
            self.catalog_file_sync_level,
            f"must be at least file_sync_level={self.file_sync_level}",
        )


def _check(is_right: bool, name: str, value: object, rule: str) -> None:
    if not is_right:
        raise ConfigError(f"{name}={value!r}: {rule}", name, repr(value), rule)


def _by_property() -> dict[str, dataclasses.Field[Any]]:
    fields = dataclasses.fields(ArchiveConfig)
    return {item.metadata["property"]: item for item in fields if "property" in item.metadata}


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    names = {_variable(name): name for name in (*_by_property(), *_NOT_BUILT)}
    return _from_properties({names[name]: text for name, text in environment.items() if name in names})


def environment_doubts(environment: Mapping[str, str]) -> list[str]:
    """What to tell of variables that look like settings of an archive and are none, as the driver does of its own."""
    variables = [_variable(name) for name in (*_by_property(), *_NOT_BUILT)]
    # By what tells them apart.
    known = {name.removeprefix(_ENVIRONMENT_PREFIX).lower(): name for name in variables}
    doubts = []
    for name in sorted(environment):
        if name.startswith(_ENVIRONMENT_PREFIX) and name not in variables:
            near = nearest(name.removeprefix(_ENVIRONMENT_PREFIX), known)
            if near is not None:
                doubts.append(
                    f"{excerpt(name)}={excerpt(environment[name])} has no effect: no setting has this name, "
                    f"did you mean {known[near]}?"
                )
    return doubts


def _variable(name: str) -> str:
    return name.upper().replace(".", "_")


def _from_properties(properties: Mapping[str, str]) -> dict[str, Any]:
    known = _by_property()
    values = {}
    for name, text in properties.items():
        if name in _NOT_BUILT:
            rule, accepted = _NOT_BUILT[name]
            if text.strip() not in accepted:
                raise ConfigError(f"{name}={text}: {rule}", name, text, rule)
            continue
        if name not in known:
            rule = _NO_SETTING + did_you_mean(name, [*known, *_NOT_BUILT])
            raise ConfigError(f"{name}={text}: {rule}", name, text, rule)
        item = known[name]
        values[item.name] = _parse(item.metadata["kind"], name, text)
    return values


def _parse(kind: str, name: str, text: str) -> Any:
    text = text.strip()
    if kind == "boolean":
        _check(text.lower() in ("true", "false"), name, text, "must be true or false")
        return text.lower() == "true"
    if kind == "size":
        return parse_size(text, name)
    if kind == "duration":
        return parse_duration_ns(text, name)
    if kind == "number":
        return (
            parse_size(text, name)
            if text.lstrip("-").isdigit()
            else _check(False, name, text, "must be a whole number")
        )
    return text or None
