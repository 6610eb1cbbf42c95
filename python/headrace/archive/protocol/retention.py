"""How long a recording keeps its segment files, as parameters of its channel (design note 41)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from headrace._arguments import check_fields
from headrace._checks import wrong
from headrace._exceptions import ConfigError
from headrace.channel import ChannelUri, format_duration, format_size, parse_duration_ns, parse_size

__all__ = ["Retention", "has_retention", "without_retention"]

_TIME, _BYTES = "retain-time", "retain-bytes"
_MS_PER_HOUR = 3_600_000
_NS_PER_MS = 1_000_000
_LONG_MAX = (1 << 63) - 1


@dataclass(frozen=True)
class Retention:
    """What a recording keeps at least, in whole segment files. With both, a file goes when neither keeps it.

    The file with the newest data always stays. See ``docs/user/how-to/retention.md``.

    Attributes:
        hours: Files that were written to within so many hours; at least a millisecond.
        bytes: The newest bytes, so many.

    Raises:
        ConfigError: A number is out of range, or neither is given.
        TypeError: It is no number.
    """

    hours: float | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.hours is None and self.bytes is None:
            raise wrong(
                "retention", None, "needs hours, bytes or both; a recording without one keeps everything"
            )
        if self.hours is not None and not (
            math.isfinite(self.hours) and 1 <= self.hours * _MS_PER_HOUR <= _LONG_MAX / _NS_PER_MS
        ):
            raise wrong("hours", self.hours, "must be at least a millisecond, and less than 292 years")
        if self.bytes is not None and not 1 <= self.bytes <= _LONG_MAX:
            raise wrong("bytes", self.bytes, f"must be from 1 to {_LONG_MAX}")

    @property
    def time_ms(self) -> int | None:
        """``hours`` in milliseconds."""
        return None if self.hours is None else round(self.hours * _MS_PER_HOUR)

    @classmethod
    def of(cls, channel: str) -> Self | None:
        """The retention that a channel has; ``None`` without one.

        Raises:
            ConfigError: It is no channel, or its retention cannot be.
        """
        if not has_retention(channel):
            return None
        uri = ChannelUri(channel)
        time, size = uri.get(_TIME), uri.get(_BYTES)
        if time is None and size is None:
            return None
        try:
            return cls(
                hours=None if time is None else parse_duration_ns(time, _TIME) / _NS_PER_MS / _MS_PER_HOUR,
                bytes=None if size is None else parse_size(size, _BYTES),
            )
        except ConfigError as refusal:
            name, text = (_TIME, time) if refusal.setting in ("hours", _TIME) else (_BYTES, size)
            raise wrong(name, text, refusal.rule) from None

    def __str__(self) -> str:
        """As the parameters of a channel."""
        return "|".join(f"{name}={text}" for name, text in self._parameters().items())

    def _parameters(self) -> dict[str, str]:
        time_ms, parameters = self.time_ms, {}
        if time_ms is not None:
            parameters[_TIME] = format_duration(time_ms * _NS_PER_MS)
        if self.bytes is not None:
            parameters[_BYTES] = format_size(self.bytes)
        return parameters

    def in_channel(self, channel: str) -> str:
        """A channel with this retention, in the place of the one that it has."""
        return ChannelUri(without_retention(channel)).with_parameters(**self._parameters())


def has_retention(channel: str) -> bool:
    """Whether a channel may have a retention; quick, for all recordings of an archive."""
    return "retain-" in channel


def without_retention(channel: str) -> str:
    """A channel as a driver knows it; unchanged if it has no retention."""
    if not has_retention(channel):
        return channel
    return ChannelUri(channel).with_parameters(**{_TIME: None, _BYTES: None})
