"""Values of options: read, checked and named in errors.

Spark gives every value as text and every name in lower case.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from typing import NoReturn

from headrace._base.exceptions import ConfigError
from headrace.channel import parse_size

__all__ = ["INT32", "MILLISECONDS", "Options", "refuse"]

INT32 = (-(1 << 31), (1 << 31) - 1)
MILLISECONDS = (1, 3_600_000)
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
_EIGHT_DIGITS = re.compile(r"[0-9]{8}")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def refuse(name: str, value: object, rule: str) -> NoReturn:
    """Raise what is wrong with an option."""
    raise ConfigError(f"{name}={value}: {rule}", name, str(value), rule)


class Options:
    """Text options by name, whatever case they are written in."""

    def __init__(self, given: Mapping[str, str], names: Iterable[str]) -> None:
        known = {name.lower(): name for name in names}
        self._values = {name.lower(): value for name, value in given.items()}
        for name, value in self._values.items():
            if name not in known:
                refuse(name, value, f"no such option; known are {', '.join(sorted(known.values()))}")

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
        if _EIGHT_DIGITS.fullmatch(value):
            _refuse_eight_digits(name, value)
        if _NUMBER.fullmatch(value):
            return int(value) * 1_000_000
        try:
            moment = datetime.datetime.fromisoformat(value)
        except ValueError:
            refuse(name, value, "must be ISO 8601, such as 2026-01-31T12:00:00Z, or milliseconds since 1970")
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        return (moment - _EPOCH) // datetime.timedelta(microseconds=1) * 1000


def _refuse_eight_digits(name: str, value: str) -> NoReturn:
    """Both readings are right: a day without hyphens is ISO 8601."""
    as_time = (_EPOCH + datetime.timedelta(milliseconds=int(value))).replace(tzinfo=None)
    rule = f"{as_time.isoformat(timespec='milliseconds')}Z for milliseconds since 1970"
    try:
        day = datetime.date.fromisoformat(value)
    except ValueError:
        refuse(name, value, f"may be a day or milliseconds: write {rule}")
    refuse(name, value, f"may be a day or milliseconds: write {day.isoformat()} for the day, or {rule}")
