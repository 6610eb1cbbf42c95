"""Optional dependencies: what to install when one is missing.

The package itself needs nothing but Python. Each extra of `pyproject.toml` brings what one part of it needs, and that
part imports it inside `needs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace._exceptions import MissingExtraError

__all__ = ["needs"]


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Around an import: a module that is not installed is reported with the command that installs it.

    Raises:
        MissingExtraError: A module is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        name = (missing.name or "").partition(".")[0]
        if name == "headrace":
            raise
        raise MissingExtraError(
            f"{name} is not installed: pip install 'headrace[{extra}]'", name=name, extra=extra
        ) from missing
