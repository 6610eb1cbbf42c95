"""What the classes of settings do: the text of each value, and what is refused before the core sees it.

The settings themselves are in `_settings.py`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping

from headrace._base.checks import check_text, wrong

__all__ = ["ClientValues", "DriverValues", "default_directory", "directory_text"]


def default_directory() -> str:
    """The directory a driver and its clients use when none is given.

    ``AERON_DIR`` if set, else ``/dev/shm/aeron-<user>``, or the same in the temporary directory where there is
    no ``/dev/shm``. The user is ``USER``, else the name of the account, else ``default``.
    """
    directory = os.environ.get("AERON_DIR")
    if directory:
        return directory
    import tempfile
    from pathlib import Path

    user = os.environ.get("USER") or _account_name()
    base = "/dev/shm" if Path("/dev/shm").is_dir() else tempfile.gettempdir()
    return f"{base}/aeron-{user}"


def _account_name() -> str:
    """Of the account that runs this; a container may run as one that the system has no name for."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        return "default"


def directory_text(directory: object) -> str:
    """A driver's directory as text.

    Raises:
        ConfigError: It is no path.
    """
    text = os.fspath(directory) if isinstance(directory, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise wrong("directory", directory, "must be a path, as text or a pathlib.Path")
    check_text("directory", text)
    return text


class DriverValues:
    """The settings of a driver that were given."""

    properties: Mapping[str, str]

    def to_properties(self) -> dict[str, str]:
        """Every setting given, by property name, as text."""
        result = dict(self.properties)
        for name, value, metadata in _given(self):
            unit = "ns" if name.endswith("_ns") else ""
            result[metadata["property"]] = _text(name, value, metadata["kind"]) + unit
        return result


class ClientValues:
    """The settings of a client."""

    def __post_init__(self) -> None:
        for name, value, metadata in _given(self):
            _check(name, value, metadata["kind"])

    def to_texts(self) -> list[tuple[str, str]]:
        """Every setting, by keyword, as text."""
        return [(name, _text(name, value, metadata["kind"])) for name, value, metadata in _given(self)]


def _given(config: DriverValues | ClientValues) -> Iterator[tuple[str, object, Mapping[str, str]]]:
    for setting in dataclasses.fields(config):  # type: ignore[arg-type]
        value = getattr(config, setting.name)
        if value is not None and "kind" in setting.metadata:
            yield setting.name, value, setting.metadata


# The core holds times as 64-bit numbers.
_TIME_MAX = 2**63 - 1


def _check(name: str, value: object, kind: str) -> None:
    if kind == "text":
        is_right, rule = isinstance(value, str), "must be text"
        if isinstance(value, str):
            check_text(name, value)
    elif kind == "boolean":
        is_right, rule = isinstance(value, bool), "must be True or False"
    else:
        is_right = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _TIME_MAX
        rule = f"must be a whole number from 0 to {_TIME_MAX}"
    if not is_right:
        raise wrong(name, value, rule)


def _text(name: str, value: object, kind: str) -> str:
    if kind == "path":
        return directory_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        if isinstance(text, str):
            check_text(name, text)
            return text.upper() if name == "threading_mode" else text
    raise wrong(name, value, "must be text, a whole number or a boolean")
