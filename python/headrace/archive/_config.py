"""Settings of an archive, by keyword, property name or environment."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace._exceptions import ConfigError
from headrace.archive.channels import ChannelUri, parse_duration_ns, parse_size
from headrace.archive.checksum import checksum_named
from headrace.archive.positions import FRAME_ALIGNMENT

__all__ = ["ArchiveConfig"]

_SEGMENT_MIN = 64 * 1024
_SEGMENT_MAX = 1024 * 1024 * 1024
_CATALOG_MAX = (1 << 31) - 1
_ERROR_BUFFER_MIN = 1024 * 1024
_MTU_MAX = 65504
_SYNC_LEVEL_MAX = 2

# Properties of the specification for what is not built here. Setting one is an error and not a setting silently lost.
_NOT_BUILT = {
    "aeron.archive.authenticator.supplier": "authentication is not built; every client is accepted",
    "aeron.archive.authorisation.service.supplier": "authorisation is not built; every request is allowed",
    "aeron.archive.threading.mode": "the archive has one thread, and runs in yours with ArchiveServer.do_work",
}


def _setting(name: str, default: Any, kind: str = "text") -> Any:
    return field(default=default, metadata={"property": f"aeron.{name}", "kind": kind})


@dataclass(frozen=True, kw_only=True)
class ArchiveConfig:
    """Settings of an archive.

    Lengths are bytes, durations carry their unit in the name. A wrong value raises :class:`headrace.ConfigError`
    naming the setting, the value and the rule, before anything is started.
    """

    archive_directory: str | os.PathLike[str] = _setting("archive.dir", "aeron-archive")
    mark_file_directory: str | os.PathLike[str] | None = _setting("archive.mark.file.dir", None)
    directory_delete_on_start: bool = _setting("archive.dir.delete.on.start", False, "boolean")
    aeron_directory: str | os.PathLike[str] | None = _setting("dir", None)
    archive_id: int = _setting("archive.id", -1, "number")
    control_channel_enabled: bool = _setting("archive.control.channel.enabled", True, "boolean")
    control_channel: str | None = _setting("archive.control.channel", None)
    control_stream_id: int = _setting("archive.control.stream.id", 10, "number")
    local_control_channel: str = _setting("archive.local.control.channel", "aeron:ipc?term-length=64k")
    local_control_stream_id: int = _setting("archive.local.control.stream.id", 10, "number")
    control_term_buffer_sparse: bool = _setting("archive.control.term.buffer.sparse", True, "boolean")
    control_term_buffer_length: int = _setting("archive.control.term.buffer.length", 64 * 1024, "size")
    control_mtu_length: int = _setting("archive.control.mtu.length", 1408, "size")
    recording_events_enabled: bool = _setting("archive.recording.events.enabled", False, "boolean")
    recording_events_channel: str | None = _setting("archive.recording.events.channel", None)
    recording_events_stream_id: int = _setting("archive.recording.events.stream.id", 30, "number")
    replication_channel: str | None = _setting("archive.replication.channel", None)
    segment_file_length: int = _setting("archive.segment.file.length", 128 * 1024 * 1024, "size")
    file_io_max_length: int = _setting("archive.file.io.max.length", 1024 * 1024, "size")
    file_sync_level: int = _setting("archive.file.sync.level", 0, "number")
    catalog_file_sync_level: int = _setting("archive.catalog.file.sync.level", 0, "number")
    catalog_capacity: int = _setting("archive.catalog.capacity", 1024 * 1024, "size")
    low_storage_space_threshold: int = _setting(
        "archive.low.storage.space.threshold", 128 * 1024 * 1024, "size"
    )
    max_concurrent_recordings: int = _setting("archive.max.concurrent.recordings", 20, "number")
    max_concurrent_replays: int = _setting("archive.max.concurrent.replays", 20, "number")
    connect_timeout_ns: int = _setting("archive.connect.timeout", 5_000_000_000, "duration")
    session_liveness_check_interval_ns: int = _setting(
        "archive.session.liveness.check.interval", 1_000_000_000, "duration"
    )
    replay_linger_timeout_ns: int = _setting("archive.replay.linger.timeout", 5_000_000_000, "duration")
    conductor_cycle_threshold_ns: int = _setting("archive.conductor.cycle.threshold", 100_000_000, "duration")
    idle_strategy: str = _setting("archive.idle.strategy", "backoff")
    error_buffer_length: int = _setting("archive.error.buffer.length", 1024 * 1024, "size")
    record_checksum: str | None = _setting("archive.record.checksum", None)
    replay_checksum: str | None = _setting("archive.replay.checksum", None)
    mark_file_liveness_timeout_ms: int = 10_000
    """How long a directory of an archive that was killed is left alone. The protocol's value; others read it too."""

    @classmethod
    def of(
        cls,
        config: ArchiveConfig | None = None,
        properties: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> ArchiveConfig:
        """Settings from the environment, overridden by a config, by properties and by keywords, and checked.

        Raises:
            ConfigError: A setting is wrong or unknown.
        """
        known = {item.name: item for item in dataclasses.fields(cls)}
        for name, value in settings.items():
            if name not in known:
                rule = "is not a setting of the archive; see headrace.archive.ArchiveConfig"
                raise ConfigError(f"{name}: {rule}", name, repr(value), rule)
        values = (
            {}
            if config is not None
            else _from_environment(os.environ if environment is None else environment)
        )
        values |= _from_properties(properties or {})
        values |= {name: value for name, value in settings.items() if value is not None}
        result = dataclasses.replace(config or cls(), **values)
        result.check()
        return result

    def check(self) -> None:
        """Look for values that are wrong, or at odds."""
        self._check_kinds()
        _check(
            self.control_channel_enabled <= bool(self.control_channel),
            "control_channel",
            self.control_channel,
            "is required; set it to a UDP channel, or control_channel_enabled=False for local clients only",
        )
        if self.control_channel_enabled:
            _check_media("control_channel", self.control_channel, "udp")
        _check_media("local_control_channel", self.local_control_channel, "ipc")
        _check(
            self.recording_events_enabled <= bool(self.recording_events_channel),
            "recording_events_channel",
            self.recording_events_channel,
            "is required when recording_events_enabled is set",
        )
        for name in ("segment_file_length", "control_term_buffer_length"):
            value = getattr(self, name)
            _check(
                _SEGMENT_MIN <= value <= _SEGMENT_MAX and not value & (value - 1),
                name,
                value,
                "must be a power of two from 65536 to 1073741824",
            )
        io_length = self.file_io_max_length
        _check(
            io_length >= _SEGMENT_MIN and not io_length & (io_length - 1),
            "file_io_max_length",
            io_length,
            "must be a power of two from 65536 up",
        )
        _check(
            FRAME_ALIGNMENT < self.control_mtu_length <= _MTU_MAX
            and self.control_mtu_length % FRAME_ALIGNMENT == 0,
            "control_mtu_length",
            self.control_mtu_length,
            "must be a multiple of 32 above 32 up to 65504",
        )
        for name in ("file_sync_level", "catalog_file_sync_level"):
            _check(
                0 <= getattr(self, name) <= _SYNC_LEVEL_MAX, name, getattr(self, name), "must be 0, 1 or 2"
            )
        _check(
            self.catalog_file_sync_level >= self.file_sync_level,
            "catalog_file_sync_level",
            self.catalog_file_sync_level,
            f"must be at least file_sync_level={self.file_sync_level}",
        )
        _check(
            32 <= self.catalog_capacity <= _CATALOG_MAX,
            "catalog_capacity",
            self.catalog_capacity,
            "must be from 32 to 2147483647",
        )
        _check(
            _ERROR_BUFFER_MIN <= self.error_buffer_length <= _CATALOG_MAX - 8192,
            "error_buffer_length",
            self.error_buffer_length,
            "must be from 1048576 to 2147475455",
        )
        checksum_named(self.record_checksum, "record_checksum")
        checksum_named(self.replay_checksum, "replay_checksum")

    def _check_kinds(self) -> None:
        for item in dataclasses.fields(self):
            value, kind = getattr(self, item.name), item.metadata.get("kind", "number")
            if kind == "boolean":
                _check(isinstance(value, bool), item.name, value, "must be a boolean")
            elif kind != "text":
                _check(
                    isinstance(value, int) and not isinstance(value, bool),
                    item.name,
                    value,
                    "must be a whole number",
                )
                if kind in ("size", "duration"):
                    _check(value >= 0, item.name, value, "must be at least 0")
        for name in ("max_concurrent_recordings", "max_concurrent_replays"):
            _check(getattr(self, name) > 0, name, getattr(self, name), "must be at least 1")


def _check(is_right: bool, name: str, value: object, rule: str) -> None:
    if not is_right:
        raise ConfigError(f"{name}={value!r}: {rule}", name, repr(value), rule)


def _check_media(name: str, channel: str | None, media: str) -> None:
    uri = ChannelUri(channel or "")
    _check(uri.media == media and not uri.is_spy, name, channel, f"must be an aeron:{media} channel")


def _by_property() -> dict[str, dataclasses.Field[Any]]:
    fields = dataclasses.fields(ArchiveConfig)
    return {item.metadata["property"]: item for item in fields if "property" in item.metadata}


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    names = {name.upper().replace(".", "_"): name for name in (*_by_property(), *_NOT_BUILT)}
    return _from_properties({names[name]: text for name, text in environment.items() if name in names})


def _from_properties(properties: Mapping[str, str]) -> dict[str, Any]:
    known = _by_property()
    values = {}
    for name, text in properties.items():
        if name in _NOT_BUILT:
            raise ConfigError(f"{name}={text}: {_NOT_BUILT[name]}", name, text, _NOT_BUILT[name])
        if name not in known:
            rule = "is not a setting of the archive"
            raise ConfigError(f"{name}={text}: {rule}", name, text, rule)
        item = known[name]
        values[item.name] = _parse(item.metadata["kind"], name, text)
    return values


def _parse(kind: str, name: str, text: str) -> Any:
    text = text.strip()
    if kind == "boolean":
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
