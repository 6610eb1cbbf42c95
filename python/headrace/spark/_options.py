"""What a user may say in ``option(name, value)`` of the sources."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace._base.exceptions import ConfigError
from headrace.archive.files import check_hold_name
from headrace.spark._archive_options import ARCHIVE_OPTIONS, ArchiveFiles, ArchiveService, archive_of
from headrace.spark._option_values import INT32, Options, refuse

__all__ = ["ReadOptions", "TimestampUnit"]

# fmt: off
_NAMES = (
    *ARCHIVE_OPTIONS, "subscribe", "subscribePattern",
    "recordings", "channel", "streamId", "sessionId", "startPosition", "endPosition", "startTime",
    "endTime", "timestamps", "columns", "bytesPerPartition", "rowsPerBatch", "maxBytesPerTrigger", "codec",
    "payloadSchema", "sbeSchema", "sbeMessage", "decoder", "onBadPayload", "failOnDataLoss",
    "retentionHold",
)
# fmt: on
_ALL = "all"
_INT64_MAX = (1 << 63) - 1
_INT64_DIGITS = len(str(_INT64_MAX))
_POSITION = (0, _INT64_MAX)
TimestampUnit = {"reserved_value_ns": 1, "reserved_value_us": 1000, "reserved_value_ms": 1_000_000}
"""What ``timestamps`` may be, and nanoseconds in a unit of it."""


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """The options of both sources. Picklable: every task gets it."""

    archive: ArchiveFiles | ArchiveService
    subscribe: tuple[str, ...] | None
    subscribe_pattern: str | None
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
    fails_on_data_loss: bool
    retention_hold: str | None
    codec: dict[str, Any]

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> ReadOptions:
        """Check everything that can be checked without looking at an archive.

        Raises:
            ConfigError: An option is unknown, missing or wrong.
        """
        options = Options(given, _NAMES)
        timestamps = options.choice("timestamps", ("none", *TimestampUnit), "none")
        parsed = cls(
            archive=archive_of(options),
            subscribe=_names(options, "subscribe"),
            subscribe_pattern=_pattern(options),
            recordings=_recordings(options),
            channel=options.text("channel"),
            stream_id=options.whole("streamId", INT32),
            session_id=options.whole("sessionId", INT32),
            start_position=options.whole("startPosition", _POSITION, 0) or 0,
            end_position=options.whole("endPosition", _POSITION),
            start_time_ns=options.instant("startTime"),
            end_time_ns=options.instant("endTime"),
            timestamp_unit_ns=TimestampUnit.get(timestamps),
            columns=_names(options, "columns"),
            bytes_per_partition=options.size("bytesPerPartition", 128 << 20),
            rows_per_batch=options.whole("rowsPerBatch", (1, 1 << 20), 16_384) or 0,
            max_bytes_per_trigger=options.size("maxBytesPerTrigger", 256 << 20),
            fails_on_data_loss=options.choice("failOnDataLoss", ("true", "false"), "true") == "true",
            retention_hold=_retention_hold(options),
            codec=_codec(options),
        )
        for first, last, start, end in (
            ("startPosition", "endPosition", parsed.start_position, parsed.end_position),
            ("startTime", "endTime", parsed.start_time_ns, parsed.end_time_ns),
        ):
            if start is not None and end is not None and end < start:
                refuse(last, options.text(last), f"must not be before {first}={options.text(first)}")
        return parsed


def _retention_hold(options: Options) -> str | None:
    name = options.text("retentionHold")
    if name is None:
        return None
    if options.text("controlChannel") is not None:
        rule = "is a file in the archive's directory: give that, and not the controlChannel"
        refuse("retentionHold", name, rule)
    try:
        check_hold_name(name)
    except ConfigError as refusal:
        refuse("retentionHold", name, refusal.rule)
    return name


def _recordings(options: Options) -> tuple[int, ...] | None:
    value = options.text("recordings", _ALL) or ""
    if value.strip().lower() == _ALL:
        return None
    words = [word.strip() for word in value.split(",")]
    if not all(word.isascii() and word.isdigit() for word in words):
        refuse("recordings", value, "must be recording ids separated by commas, or all")
    for word in words:
        # Python makes no number of thousands of digits.
        if len(word.lstrip("0")) > _INT64_DIGITS or int(word) > _INT64_MAX:
            refuse("recordings", word, f"must be at most {_INT64_MAX}")
    return tuple(sorted(set(map(int, words))))


def _names(options: Options, option: str) -> tuple[str, ...] | None:
    value = options.text(option)
    if value is None:
        return None
    names = tuple(name.strip() for name in value.split(","))
    if len(set(names)) != len(names) or not all(names):
        refuse(option, value, "must be names separated by commas, each once")
    return names


def _pattern(options: Options) -> str | None:
    value = options.text("subscribePattern")
    if value is None:
        return None
    if options.text("subscribe") is not None:
        refuse("subscribePattern", value, "goes without subscribe: give one of both")
    try:
        re.compile(value)
    except re.error as wrong:
        refuse("subscribePattern", value, f"must be a regular expression of stream names: {wrong}")
    return value


def _codec(options: Options) -> dict[str, Any]:
    kind = options.choice("codec", ("binary", "json", "sbe", "python", "cluster-log"), "binary")
    belongs = {
        "binary": (),
        "json": ("payloadSchema",),
        "sbe": ("sbeSchema", "sbeMessage"),
        "python": ("decoder", "payloadSchema"),
        "cluster-log": (),
    }[kind]
    given = {name: options.text(name) for name in ("payloadSchema", "sbeSchema", "sbeMessage", "decoder")}
    for name, value in given.items():
        if value is not None and name not in belongs:
            refuse(name, value, f"has no meaning with codec={kind}")
        if value is None and name in belongs:
            refuse(name, "", f"codec={kind} needs it")
    on_bad_payload = options.choice("onBadPayload", ("fail", "null"), "fail")
    if kind == "binary" and options.text("onBadPayload") is not None:
        refuse("onBadPayload", on_bad_payload, "has no meaning with codec=binary: every payload is good")
    return {"kind": kind, "on_bad_payload": on_bad_payload, **{name: given[name] for name in belongs}}
