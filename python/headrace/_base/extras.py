"""Optional dependencies: what to install when one is missing.

The package itself needs nothing but Python. Each extra of `pyproject.toml` brings what one part of it needs, and that
part imports it inside `needs`. The command that installs it names the packages of the extra and not Headrace, which is
there already: so it works for a clone, a wheel and a release.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace._base.exceptions import MissingExtraError

__all__ = ["install_command", "needs"]


def install_command(*extras: str) -> str:
    """The command that installs what some extras need, as the installed package declares it."""
    from importlib.metadata import requires

    found: list[str] = []
    for requirement in requires("headrace") or ():
        package, _, condition = requirement.partition(";")
        if any(f'"{extra}"' in condition.replace("'", '"') for extra in extras):
            found.append(f"'{package.strip()}'")
    return " ".join(["pip install", *dict.fromkeys(found)])


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
        text = f"{name} is not installed, which headrace[{extra}] needs: {install_command(extra)}"
        raise MissingExtraError(text, name=name, extra=extra) from missing
