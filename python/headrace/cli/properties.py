"""Errors about settings, for commands that take them with `-D`: under the names that are given there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from headrace._settings.declared import DeclaredConfig


@contextlib.contextmanager
def named_by_property(
    config: type[DeclaredConfig], examples: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Have an error about a setting name its property, with what may be given for it.

    Args:
        config: What declares the settings.
        examples: What may be given for properties that have no default.

    Raises:
        ConfigError: The block has raised one.
    """
    from headrace import ConfigError

    try:
        yield
    except ConfigError as wrong:
        declared = config.property_of(wrong.setting)
        if declared is None:
            raise
        name, default = declared
        example = (examples or {}).get(name, default)
        advice = "" if example is None else f"; for example -D {name}={example}"
        told = name if wrong.value == repr(None) else f"{name}={wrong.value}:"
        raise ConfigError(f"{told} {wrong.rule}{advice}", name, wrong.value, wrong.rule) from wrong


def shared_settings(
    properties: Mapping[str, str], known: Mapping[str, Collection[str]], *, allow_unknown: bool
) -> dict[str, dict[str, str]]:
    """The properties of each part of a process; one that several parts know is for all of them.

    Args:
        properties: What was given.
        known: What each part knows.
        allow_unknown: Pass over what no part knows.

    Raises:
        ConfigError: No part knows one.
    """
    from headrace import ConfigError

    shared: dict[str, dict[str, str]] = {part: {} for part in known}
    for name, value in properties.items():
        owners = [part for part, names in known.items() if name in names]
        for part in owners:
            shared[part][name] = value
        if not owners and not allow_unknown:
            what = " or ".join(sorted(known))
            rule = f"is not a setting of the {what}; --allow-unknown ignores it"
            raise ConfigError(f"{name}={value}: {rule}", name, value, rule)
    return shared
