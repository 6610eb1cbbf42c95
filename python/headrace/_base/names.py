"""The names under which users know the public classes.

A class is defined in a private module and imported from its package. Tracebacks, `repr`, `help` and pickles show and
find it where users import it: `headrace.ConfigError`, not `headrace._base.exceptions.ConfigError`.

Dataclasses keep the module they are defined in. It is where `typing.get_type_hints`, and with it every library that
builds forms or parsers from dataclasses, looks for the names in their annotations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from types import FunctionType

__all__ = ["DEFINED_IN", "publish"]

DEFINED_IN: dict[type | FunctionType, str] = {}
"""Where each of them is really defined, for tools that read its source."""


def publish(
    package: str, namespace: Mapping[str, object], names: Iterable[str], *, source: str | None = None
) -> None:
    """Name the classes and functions among `names` after the package, unless they come from another package.

    Args:
        package: What users import.
        namespace: Its globals.
        names: Its public names.
        source: A package below it that users do not import, and whose classes they know by this one.
    """
    homes = (f"{package}.",) if source is None else (f"{package}.", f"{source}.")
    for name in names:
        value = namespace.get(name)
        if not isinstance(value, type | FunctionType) or is_dataclass(value):
            continue
        if value.__module__.startswith(homes):
            DEFINED_IN.setdefault(value, value.__module__)
            value.__module__ = package
