"""Arguments that are wrong, refused by name, with their value and the rule."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping

from headrace._base.exceptions import ConfigError

__all__ = [
    "check_callable",
    "check_kind",
    "check_names",
    "check_text",
    "check_timeout",
    "did_you_mean",
    "excerpt",
    "nearest",
    "shown",
    "wrong",
]

# Fewer letters are the beginning of too much.
_STEM_LENGTH_MIN = 4

# What users of Aeron call a setting's keyword: the property, with underscores.
_ALIASES = {"dir": "directory", "aeron_dir": "directory"}

_SECRET_WORDS = ("credential", "secret", "password")

# As in `crates/python/src/boundary/arguments.rs`.
_NO_UTF8 = "must be text that UTF-8 can encode: no half of a surrogate pair"

# As in `crates/protocol/src/text.rs`.
_EXCERPT_LENGTH_MAX = 120


def excerpt(text: str) -> str:
    """The text, or its beginning and how long it is: an error stays readable whatever it was caused by."""
    if len(text) <= _EXCERPT_LENGTH_MAX:
        return text
    return f"{text[:_EXCERPT_LENGTH_MAX]}... ({len(text)} characters)"


def shown(name: str, value: object) -> str:
    """A value for an error; where the name says that it is a secret, only its class."""
    if any(word in name.lower() for word in _SECRET_WORDS):
        return f"<{type(value).__name__}, not shown>"
    return excerpt(repr(value))


def wrong(name: str, value: object, rule: str) -> ConfigError:
    """The error for a value that breaks a rule."""
    text, name = shown(name, value), excerpt(name)
    return ConfigError(f"{name}={text}: {rule}", name, text, rule)


def check_callable(name: str, value: object) -> None:
    """Refuse what is neither callable nor ``None``, now and not when it is called for the first time.

    Raises:
        TypeError: It is something else.
    """
    if value is not None and not callable(value):
        raise TypeError(f"{name}={excerpt(repr(value))}: must be callable")


def check_kind(name: str, value: object, kind: type, rule: str) -> None:
    """Refuse what is neither of a class nor ``None``.

    Raises:
        ConfigError: It is something else.
    """
    if value is not None and not isinstance(value, kind):
        raise wrong(name, value, rule)


def check_text(name: str, text: str) -> None:
    """Refuse text that the core cannot hold, as half of a surrogate pair, which a cut JSON text has.

    Raises:
        ConfigError: It is such text.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise wrong(name, text, _NO_UTF8) from None


def check_timeout(name: str, timeout_s: float | None) -> None:
    """Refuse a time-out that is negative or not a number; ``None`` is one that is never over.

    Raises:
        ConfigError: It is.
    """
    if timeout_s is not None and not timeout_s >= 0:
        raise wrong(name, timeout_s, "must be a number of seconds of at least 0, or None to wait without end")


def check_names(
    settings: Mapping[str, object], known: Collection[str], rule: str, *, others: Iterable[str] = ()
) -> None:
    """Refuse a setting that is not known, and say which name is nearest, of those known and of others.

    Raises:
        ConfigError: A name is not known.
    """
    for name, value in settings.items():
        if name not in known:
            raise wrong(name, value, f"{rule}{did_you_mean(name, [*known, *others])}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question to put after "unknown", or nothing when no known name is near."""
    near = nearest(name, known)
    return "" if near is None else f", did you mean {near}?"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name, in lower case as all are, that was probably meant; ``None`` when none is near."""
    folded, names = name.lower()[:64], sorted(known)
    alias = _ALIASES.get(folded)
    if alias in names:
        return alias
    # A name that was cut short is nearer to the whole one than to others of its length.
    longer = [known_name for known_name in names if known_name.startswith(folded)]
    if len(longer) == 1 and len(folded) >= _STEM_LENGTH_MIN:
        return longer[0]
    return _with_more_words(folded, names) or next(
        iter(difflib.get_close_matches(folded, names, n=1, cutoff=0.7)), None
    )


def _with_more_words(folded: str, names: list[str]) -> str | None:
    """The name that has all the words, and the fewest others; ``None`` where two have. One word is the first of it."""
    words = _words(folded)
    missing: dict[int, list[str]] = {}
    for name in names:
        if words < _words(name) and (len(words) > 1 or name.startswith(folded)):
            missing.setdefault(len(_words(name) - words), []).append(name)
    fewest = missing[min(missing)] if missing else []
    return fewest[0] if len(fewest) == 1 else None


def _words(name: str) -> set[str]:
    return set(re.findall("[a-z0-9]+", name))
