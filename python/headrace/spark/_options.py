"""What a user may say in ``option(name, value)``: read, checked and named in errors.

Spark gives every value as text and every name in lower case.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from headrace._exceptions import ConfigError
from headrace.archive.channels import parse_size
from headrace.archive.checksum import checksum_named

__all__ = ["INT32", "Options", "ReadOptions", "TimestampUnit", "refuse"]

# fmt: off
NAMES = (
    "path", "archiveDirectory", "aeronDirectory", "controlChannel", "recordings", "channel", "streamId",
    "sessionId", "startPosition", "endPosition", "startTime", "endTime", "timestamps", "columns",
    "bytesPerPartition", "rowsPerBatch", "maxBytesPerTrigger", "codec", "payloadSchema", "sbeSchema",
    "sbeMessage", "decoder", "onBadPayload", "recordChecksum",
)
# fmt: on
_BY_LOWER = {name.lower(): name for name in NAMES}
_ALL = "all"
INT32 = (-(1 << 31), (1 << 31) - 1)
_POSITION = (0, (1 << 63) - 1)
TimestampUnit = {"reserved_value_ns": 1, "reserved_value_us": 1000, "reserved_value_ms": 1_000_000}
"""What ``timestamps`` may be, and nanoseconds in a unit of it."""


def refuse(name: str, value: object, rule: str) -> NoReturn:
    """Raise what is wrong with an option."""
    raise ConfigError(f"{name}={value}: {rule}", name, str(value), rule)


class Options:
    """Text options by name, whatever case they are written in."""

    def __init__(self, given: Mapping[str, str], names: Mapping[str, str] = _BY_LOWER) -> None:
        self._values = {name.lower(): value for name, value in given.items()}
        for name, value in self._values.items():
            if name not in names:
                refuse(name, value, f"there is no such option; there are {', '.join(sorted(names.values()))}")

    def text(self, name: str, default: str | None = None) -> str | None:
        """The text as it was given."""
        return self._values.get(name.lower(), default)

    def required(self, name: str, why: str) -> str:
        """The text, which must be there."""
        value = self.text(name)
        if not value:
            refuse(name, "", why)
        return value

    def whole(self, name: str, within: tuple[int, int], default: int | None = None) -> int | None:
        """A whole number in an interval."""
        value = self.text(name)
        if value is None:
            return default
        try:
            number = int(value)
        except ValueError:
            refuse(name, value, "must be a whole number")
        if not within[0] <= number <= within[1]:
            refuse(name, value, f"must be from {within[0]} to {within[1]}")
        return number

    def size(self, name: str, default: int) -> int:
        """Bytes, with k, m or g for powers of 1024."""
        value = self.text(name)
        number = default if value is None else parse_size(value, name)
        if number < 1:
            refuse(name, value, "must be at least 1")
        return number

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        """One of several words."""
        value = self.text(name, default)
        if value not in allowed:
            refuse(name, value, f"must be one of {', '.join(allowed)}")
        return value

    def instant(self, name: str) -> int | None:
        """Nanoseconds since 1970, from ISO 8601 (UTC unless it says otherwise) or from epoch milliseconds."""
        value = self.text(name)
        if value is None:
            return None
        if value.lstrip("-").isdigit():
            return int(value) * 1_000_000
        try:
            moment = datetime.datetime.fromisoformat(value)
        except ValueError:
            refuse(name, value, "must be ISO 8601, such as 2026-01-31T12:00:00Z, or milliseconds since 1970")
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        since_epoch = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        return since_epoch // datetime.timedelta(microseconds=1) * 1000


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """The options of both sources. Picklable: every task gets it."""

    directory: str
    aeron_directory: str | None
    recordings: tuple[int, ...] | None
    channel: str | None
    stream_id: int | None
    session_id: int | None
    start_position: int
    end_position: int | None
    start_time_ns: int | None
    end_time_ns: int | None
    timestamp_unit_ns: int | None
    columns: tuple[str, ...] | None
    bytes_per_partition: int
    rows_per_batch: int
    max_bytes_per_trigger: int
    codec: dict[str, Any]
    record_checksum: str | None

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> ReadOptions:
        """Check everything that can be checked without looking at files.

        Raises:
            ConfigError: An option is unknown, missing or wrong.
        """
        options = Options(given)
        if (channel := options.text("controlChannel")) is not None:
            rule = (
                "recordings are read from files: give archiveDirectory, a directory that all executors share"
            )
            refuse("controlChannel", channel, rule)
        timestamps = options.choice("timestamps", ("none", *TimestampUnit), "none")
        parsed = cls(
            directory=_directory(options),
            aeron_directory=options.text("aeronDirectory"),
            recordings=_recordings(options),
            channel=options.text("channel"),
            stream_id=options.whole("streamId", INT32),
            session_id=options.whole("sessionId", INT32),
            start_position=options.whole("startPosition", _POSITION, 0) or 0,
            end_position=options.whole("endPosition", _POSITION),
            start_time_ns=options.instant("startTime"),
            end_time_ns=options.instant("endTime"),
            timestamp_unit_ns=TimestampUnit.get(timestamps),
            columns=_columns(options),
            bytes_per_partition=options.size("bytesPerPartition", 128 << 20),
            rows_per_batch=options.whole("rowsPerBatch", (1, 1 << 20), 16_384) or 0,
            max_bytes_per_trigger=options.size("maxBytesPerTrigger", 256 << 20),
            codec=_codec(options),
            record_checksum=_checksum(options),
        )
        for first, last in (("start_position", "end_position"), ("start_time_ns", "end_time_ns")):
            start, end = getattr(parsed, first), getattr(parsed, last)
            if start is not None and end is not None and end < start:
                refuse(last, end, f"must not be before {first}={start}")
        return parsed


def _directory(options: Options) -> str:
    path, directory = options.text("path"), options.text("archiveDirectory")
    if path and directory and path != directory:
        refuse("archiveDirectory", directory, f"load() was given another directory, {path}")
    return directory or path or options.required("archiveDirectory", "which directory holds the recordings?")


def _recordings(options: Options) -> tuple[int, ...] | None:
    value = options.text("recordings", _ALL) or ""
    if value.strip().lower() == _ALL:
        return None
    words = [word.strip() for word in value.split(",")]
    if not all(word.isdigit() for word in words):
        refuse("recordings", value, "must be recording ids separated by commas, or all")
    return tuple(sorted({int(word) for word in words}))


def _columns(options: Options) -> tuple[str, ...] | None:
    value = options.text("columns")
    if value is None:
        return None
    names = tuple(name.strip() for name in value.split(","))
    if len(set(names)) != len(names) or not all(names):
        refuse("columns", value, "must be names separated by commas, each once")
    return names


def _checksum(options: Options) -> str | None:
    name = options.text("recordChecksum")
    checksum_named(name, "recordChecksum")
    return name


def _codec(options: Options) -> dict[str, Any]:
    kind = options.choice("codec", ("binary", "json", "sbe", "python"), "binary")
    belongs = {
        "binary": (),
        "json": ("payloadSchema",),
        "sbe": ("sbeSchema", "sbeMessage"),
        "python": ("decoder", "payloadSchema"),
    }[kind]
    given = {name: options.text(name) for name in ("payloadSchema", "sbeSchema", "sbeMessage", "decoder")}
    for name, value in given.items():
        if value is not None and name not in belongs:
            refuse(name, value, f"has no meaning with codec={kind}")
        if value is None and name in belongs:
            refuse(name, "", f"codec={kind} needs it")
    on_bad_payload = options.choice("onBadPayload", ("fail", "null"), "fail")
    return {"kind": kind, "on_bad_payload": on_bad_payload, **{name: given[name] for name in belongs}}
