"""What looks wrong in a channel, told before the driver is asked: the driver takes most of it without effect.

The driver tells the same in its error log. Here the program's own log tells it, beside the line that is to be mended.
"""

from __future__ import annotations

import logging

from headrace._checks import did_you_mean, excerpt
from headrace._logging import CLIENT

__all__ = ["check_channel"]

# The keys of `crates/protocol/src/channel/keys.rs`, with which a test compares them.
KEYS = frozenset(
    [
        "tags",
        "endpoint",
        "interface",
        "control",
        "control-mode",
        "mtu",
        "term-length",
        "init-term-id",
        "term-id",
        "term-offset",
        "session-id",
        "ttl",
        "reliable",
        "linger",
        "alias",
        "cc",
        "fc",
        "gtag",
        "sparse",
        "eos",
        "tether",
        "group",
        "rejoin",
        "ssc",
        "so-sndbuf",
        "so-rcvbuf",
        "rcv-wnd",
        "media-rcv-ts-offset",
        "channel-rcv-ts-offset",
        "channel-snd-ts-offset",
        "response-endpoint",
        "response-correlation-id",
        "nak-delay",
        "untethered-window-limit-timeout",
        "untethered-linger-timeout",
        "untethered-resting-timeout",
        "max-resend",
        "stream-id",
        "pub-wnd",
        "ats",
    ]
)
_BOOLEANS = frozenset(["reliable", "sparse", "eos", "tether", "rejoin", "ssc", "ats"])


def check_channel(channel: str) -> None:
    """Log a warning for each parameter of a channel that has no effect, or not the one that its text suggests."""
    if not CLIENT.isEnabledFor(logging.WARNING):
        return
    _, _, params = channel.partition("?")
    for param in params.split("|") if params else ():
        key, equals, value = param.partition("=")
        if key and equals and (doubt := _doubt(key, value)):
            CLIENT.warning(
                "headrace client: channel parameter %s=%s %s, channel=%s",
                excerpt(key),
                excerpt(value),
                doubt,
                excerpt(channel),
            )


def _doubt(key: str, value: str) -> str | None:
    if key not in KEYS:
        return "is unknown and has no effect" + did_you_mean(key, KEYS)
    if key in _BOOLEANS and value not in ("true", "false"):
        return "is neither true nor false"
    if key == "group" and value not in ("true", "false", "infer"):
        return "is none of true, false and infer, and counts as false"
    return None
