"""What a setting may be: a test, and words for it that errors and the reference page share."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace._base.exceptions import ConfigError
from headrace.channel import ChannelUri

__all__ = [
    "BOOLEAN",
    "DIRECTORY",
    "INT_MAX",
    "LONG_MAX",
    "MTU",
    "Rule",
    "accepts",
    "channel",
    "one_of",
    "optional",
    "power_of_two",
    "whole",
]

INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1


@dataclass(frozen=True)
class Rule:
    """A rule for a value.

    Attributes:
        text: What a value must be, to be read after "must be".
        is_kept: Whether a value keeps it.
    """

    text: str
    is_kept: Callable[[Any], bool]


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def whole(least: int, most: int, unit: str = "") -> Rule:
    """A whole number in a range."""
    unit = f" {unit}" if unit else ""
    text = f"a whole number{unit} from {least} to {most}"
    return Rule(text, lambda value: _is_whole(value) and least <= value <= most)


def power_of_two(least: int, most: int) -> Rule:
    """A number of bytes that is a power of two."""
    return Rule(
        f"a power of two from {least} to {most} bytes",
        lambda value: _is_whole(value) and least <= value <= most and not value & (value - 1),
    )


def one_of(*values: int | str) -> Rule:
    """One of a few numbers, or names."""
    text = ", ".join(map(str, values[:-1])) + f" or {values[-1]}"
    return Rule(text, lambda value: (_is_whole(value) or isinstance(value, str)) and value in values)


def optional(rule: Rule) -> Rule:
    """As another rule, or nothing at all."""
    return Rule(f"{rule.text}, or unset", lambda value: value is None or rule.is_kept(value))


def channel(media: str) -> Rule:
    """A channel of one medium, or of any."""

    def is_kept(value: object) -> bool:
        try:
            uri = ChannelUri(value) if isinstance(value, str) else None
        except ConfigError:
            return False
        return uri is not None and not uri.is_spy and media in ("", uri.media)

    return Rule(f"an aeron:{media} channel" if media else "an aeron: channel", is_kept)


def accepts(make: Callable[[Any], object], value: object) -> bool:
    """Whether something can be made of a value."""
    try:
        make(value)
    except ConfigError:
        return False
    return True


MTU = Rule(
    "a multiple of 32 from 64 to 65504 bytes",
    lambda value: _is_whole(value) and 64 <= value <= 65504 and value % 32 == 0,
)
_NAME_LENGTH_MAX = 100
CLIENT_NAME = Rule(
    f"text of at most {_NAME_LENGTH_MAX} characters",
    lambda value: isinstance(value, str) and len(value) <= _NAME_LENGTH_MAX,
)
BOOLEAN = Rule("true or false", lambda value: isinstance(value, bool))
DIRECTORY = Rule(
    "a directory", lambda value: isinstance(value, (str, os.PathLike)) and bool(os.fspath(value))
)
