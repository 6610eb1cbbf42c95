"""How long a recording keeps its segment files, as parameters of its channel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from headrace._base.checks import wrong
from headrace._base.exceptions import ConfigError
from headrace.channel import ChannelUri, format_duration, format_size, parse_duration_ns, parse_size

__all__ = ["Retention", "has_retention", "without_retention"]

_TIME, _BYTES, _ENDED = "retain-time", "retain-bytes", "retain-ended"
_MS_PER_HOUR = 3_600_000
_NS_PER_MS = 1_000_000
_LONG_MAX = (1 << 63) - 1


@dataclass(frozen=True)
class Retention:
    """How much a recording keeps at least, in whole segment files, and how long it stays when it has ended.

    With hours and bytes, a file is deleted when neither keeps it; the file with the newest data stays until the whole
    recording is deleted. See ``docs/user/how-to/retention.md``.

    Attributes:
        hours: Keep files that were written to within this many hours; at least a millisecond.
        bytes: Keep at least this many of the newest bytes.
        ended_hours: Delete the whole recording this many hours after its end; by default never.

    Raises:
        ConfigError: A number is out of range, or all are missing.
        TypeError: A value is not a number.
    """

    hours: float | None = None
    bytes: int | None = None
    ended_hours: float | None = None

    def __post_init__(self) -> None:
        if self.hours is None and self.bytes is None and self.ended_hours is None:
            rule = "needs hours, bytes or ended_hours; a recording without a retention keeps everything"
            raise wrong("retention", None, rule)
        for name, hours in (("hours", self.hours), ("ended_hours", self.ended_hours)):
            if hours is not None and not (
                math.isfinite(hours) and 1 <= hours * _MS_PER_HOUR <= _LONG_MAX / _NS_PER_MS
            ):
                raise wrong(name, hours, "must be at least a millisecond, and less than 292 years")
        if self.bytes is not None and not (isinstance(self.bytes, int) and 1 <= self.bytes <= _LONG_MAX):
            raise wrong("bytes", self.bytes, f"must be from 1 to {_LONG_MAX}")

    @property
    def time_ms(self) -> int | None:
        """``hours`` in milliseconds."""
        return _milliseconds(self.hours)

    @property
    def ended_ms(self) -> int | None:
        """``ended_hours`` in milliseconds."""
        return _milliseconds(self.ended_hours)

    @classmethod
    def of(cls, channel: str) -> Self | None:
        """The retention that a channel has; ``None`` without one.

        Raises:
            ConfigError: It is not a channel, or its retention is invalid.
        """
        if not has_retention(channel):
            return None
        uri = ChannelUri(channel)
        time, size, ended = uri.get(_TIME), uri.get(_BYTES), uri.get(_ENDED)
        if time is None and size is None and ended is None:
            return None
        try:
            return cls(
                hours=None if time is None else _hours(time, _TIME),
                bytes=None if size is None else parse_size(size, _BYTES),
                ended_hours=None if ended is None else _hours(ended, _ENDED),
            )
        except ConfigError as refusal:
            name = {"hours": _TIME, "bytes": _BYTES, "ended_hours": _ENDED}.get(
                refusal.setting, refusal.setting
            )
            raise wrong(name, uri.get(name), refusal.rule) from None

    def __str__(self) -> str:
        """The retention as parameters of a channel."""
        return "|".join(f"{name}={text}" for name, text in self._parameters().items())

    def _parameters(self) -> dict[str, str]:
        parameters = {}
        if self.time_ms is not None:
            parameters[_TIME] = format_duration(self.time_ms * _NS_PER_MS)
        if self.bytes is not None:
            parameters[_BYTES] = format_size(self.bytes)
        if self.ended_ms is not None:
            parameters[_ENDED] = format_duration(self.ended_ms * _NS_PER_MS)
        return parameters

    def in_channel(self, channel: str) -> str:
        """A channel with this retention instead of its own."""
        return ChannelUri(without_retention(channel)).with_parameters(**self._parameters())


def has_retention(channel: str) -> bool:
    """Whether a channel may have a retention; quick, for all recordings of an archive."""
    return "retain-" in channel


def without_retention(channel: str) -> str:
    """A channel without the parameters of a retention, as a driver knows it."""
    if not has_retention(channel):
        return channel
    return ChannelUri(channel).with_parameters(**{_TIME: None, _BYTES: None, _ENDED: None})


def _milliseconds(hours: float | None) -> int | None:
    return None if hours is None else round(hours * _MS_PER_HOUR)


def _hours(duration: str, name: str) -> float:
    return parse_duration_ns(duration, name) / _NS_PER_MS / _MS_PER_HOUR
