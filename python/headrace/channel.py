"""Channel texts as the archive sees them: taken apart, stripped, told apart, and completed for a replay."""

from __future__ import annotations

from headrace._base.exceptions import ConfigError

__all__ = ["ChannelUri", "recording_key"]

SPY_PREFIX = "aeron-spy:"
_MAX_LENGTH = 4095
_BINARY_UNITS = (("g", 30), ("m", 20), ("k", 10))
_DURATION_UNITS = (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000))
_STRIPPED = (
    "tags",
    "endpoint",
    "interface",
    "control",
    "control-mode",
    "session-id",
    "ttl",
    "alias",
    "cc",
    "fc",
    "gtag",
    "tether",
    "group",
    "rejoin",
    "so-sndbuf",
    "so-rcvbuf",
    "rcv-wnd",
    "media-rcv-ts-offset",
    "channel-rcv-ts-offset",
    "channel-snd-ts-offset",
    "response-endpoint",
    "response-correlation-id",
    "stream-id",
)
_SIZES = frozenset(("so-sndbuf", "so-rcvbuf", "rcv-wnd"))
_KEY = ("endpoint", "interface", "control", "session-id", "tags")
_AFTER = {
    "mtu": "control-mode",
    "term-length": "control-mode",
    "init-term-id": "control-mode",
    "term-id": "control-mode",
    "term-offset": "control-mode",
    "linger": "ttl",
    "sparse": "gtag",
    "eos": "gtag",
}
# The places of what the archive adds, as the specification puts them.
_ORDER = tuple(
    name
    for stripped in _STRIPPED
    for name in (stripped, *(added for added, before in _AFTER.items() if before == stripped))
)


class ChannelUri:
    """A channel as media, prefix and parameters.

    Raises:
        ConfigError: The text is no channel.
    """

    def __init__(self, text: str) -> None:
        if len(text) > _MAX_LENGTH:
            self._refuse(text[:40] + "...", f"length={len(text)} is above {_MAX_LENGTH} characters")
        rest = text
        self.is_spy = rest.startswith(SPY_PREFIX)
        if self.is_spy:
            rest = rest[len(SPY_PREFIX) :]
        if not rest.startswith("aeron:"):
            self._refuse(text, "a channel starts with aeron: or aeron-spy:")
        media, _, query = rest[len("aeron:") :].partition("?")
        if media not in ("ipc", "udp"):
            self._refuse(text, "the media is ipc or udp")
        self.media = media
        self.parameters: dict[str, str] = {}
        for part in query.split("|") if query else ():
            name, equals, value = part.partition("=")
            if not equals or not name:
                self._refuse(text, f"{part!r} is not of the form name=value")
            self.parameters[name] = value

    @staticmethod
    def _refuse(text: str, rule: str) -> None:
        raise ConfigError(f"channel={text}: {rule}", "channel", text, rule)

    def get(self, name: str) -> str | None:
        """The text of a parameter."""
        return self.parameters.get(name)

    @property
    def is_response(self) -> bool:
        """True when the publisher answers through the connection of a subscriber."""
        return self.get("control-mode") == "response"

    @property
    def is_port_open(self) -> bool:
        """True when the system is to choose the port of the endpoint, and a publisher must know it."""
        return not self.is_response and (self.get("endpoint") or "").endswith(":0")

    def stripped(self, **added: str | int | None) -> str:
        """The channel with what tells where it goes and nothing else, and with parameters for a publication.

        An underscore in a keyword stands for a hyphen; ``None`` adds nothing.
        """
        values = {
            name: _same_value(name, self.parameters[name]) for name in _STRIPPED if name in self.parameters
        }
        values |= {name.replace("_", "-"): str(value) for name, value in added.items() if value is not None}
        return _join(self.media, {name: values[name] for name in _ORDER if name in values})

    def with_parameters(self, **changes: str | int | None) -> str:
        """The channel with parameters set, or removed with ``None``. An underscore stands for a hyphen."""
        values = dict(self.parameters)
        for name, value in changes.items():
            values.pop(name.replace("_", "-"), None)
            if value is not None:
                values[name.replace("_", "-")] = str(value)
        return (SPY_PREFIX if self.is_spy else "") + _join(self.media, values)


def _join(media: str, parameters: dict[str, str]) -> str:
    query = "|".join(f"{name}={value}" for name, value in parameters.items())
    return f"aeron:{media}?{query}" if query else f"aeron:{media}"


def _same_value(name: str, value: str) -> str:
    if name in _SIZES:
        return format_size(parse_size(value, name))
    return value


def recording_key(channel: str, stream_id: int) -> str:
    """What two requests to record must differ in."""
    uri = ChannelUri(channel)
    parts = "|".join(f"{name}={uri.parameters[name]}" for name in _KEY if name in uri.parameters)
    return f"{stream_id}:{uri.media}?{parts}"


def parse_size(text: str, name: str) -> int:
    """A number of bytes, with k, m or g for powers of 1024."""
    for unit, bits in _BINARY_UNITS:
        if text[-1:].lower() == unit:
            return _whole_number(text[:-1], text, name) << bits
    return _whole_number(text, text, name)


def format_size(value: int) -> str:
    """A number of bytes as short as it can be said exactly."""
    for unit, bits in _BINARY_UNITS:
        if value and value % (1 << bits) == 0:
            return f"{value >> bits}{unit}"
    return str(value)


def parse_duration_ns(text: str, name: str) -> int:
    """A duration in nanoseconds, or with a unit: s, ms, us, ns."""
    lower = text.lower()
    for unit, factor in (*_DURATION_UNITS[1:], ("ns", 1), _DURATION_UNITS[0]):
        if lower.endswith(unit):
            return _whole_number(lower[: -len(unit)], text, name) * factor
    return _whole_number(lower, text, name)


def format_duration(value_ns: int) -> str:
    """A duration as short as it can be said exactly."""
    for unit, factor in _DURATION_UNITS:
        if value_ns and value_ns % factor == 0:
            return f"{value_ns // factor}{unit}"
    return f"{value_ns}ns"


def _whole_number(digits: str, text: str, name: str) -> int:
    try:
        return int(digits)
    except ValueError:
        rule = "must be a whole number, with a unit if need be"
        raise ConfigError(f"{name}={text}: {rule}", name, text, rule) from None
