"""Settings that a dataclass declares: by keyword, by the specification's property names, or from the environment."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from headrace._base.checks import check_kind, check_names, check_text, did_you_mean, excerpt, nearest
from headrace._base.exceptions import ConfigError
from headrace._settings.rules import BOOLEAN, INT_MAX, LONG_MAX, Rule, optional, whole
from headrace.channel import parse_duration_ns, parse_size

if TYPE_CHECKING:
    from typing import Self

__all__ = ["DeclaredConfig", "check", "duration", "flag", "number", "size", "stream_id", "text"]


def _setting(name: str, default: Any, kind: str, rule: Rule, meaning: str) -> Any:
    metadata = {"property": f"aeron.{name}", "kind": kind, "rule": rule, "meaning": meaning}
    return dataclasses.field(default=default, metadata=metadata)


def text(name: str, default: str | None, rule: Rule, meaning: str) -> Any:
    """A setting that is text, or what a program gives instead."""
    return _setting(name, default, "text", rule, meaning)


def flag(name: str, default: bool, meaning: str) -> Any:
    """A setting that is true or false."""
    return _setting(name, default, "boolean", BOOLEAN, meaning)


def number(name: str, default: int, rule: Rule, meaning: str) -> Any:
    """A setting that is a whole number."""
    return _setting(name, default, "number", rule, meaning)


def stream_id(name: str, default: int | None, meaning: str) -> Any:
    """A setting that is a stream id; without a default it may be left open."""
    rule = whole(-INT_MAX - 1, INT_MAX)
    return _setting(name, default, "number", optional(rule) if default is None else rule, meaning)


def size(name: str, default: int, rule: Rule, meaning: str) -> Any:
    """A setting that is a number of bytes."""
    return _setting(name, default, "size", rule, meaning)


def duration(name: str, default: int, meaning: str, least: int = 0) -> Any:
    """A setting that is a number of nanoseconds."""
    return _setting(name, default, "duration", whole(least, LONG_MAX, "of nanoseconds"), meaning)


def check(is_right: bool, name: str, value: object, rule: str) -> None:
    """Raise :class:`headrace.ConfigError` unless a value is right."""
    if not is_right:
        raise ConfigError(f"{name}={value!r}: {rule}", name, repr(value), rule)


class DeclaredConfig:
    """The base of frozen dataclasses of settings whose fields are made with the functions above."""

    _owner: ClassVar[str]
    """What has the settings, for errors."""
    _name: ClassVar[str]
    """The name of the class for those who use it, for errors."""
    _environment_prefix: ClassVar[str]
    """How variables begin that look like settings of it."""
    _others: ClassVar[tuple[str, ...]] = ()
    """What else it takes as keywords, for a misspelt name."""
    _not_built: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {}
    """Properties of the specification for what is not built, each with why, and with the values that are fulfilled.

    Any other value is an error, so that no setting is lost silently.
    """
    _without_effect: ClassVar[frozenset[str]] = frozenset()
    """Properties of the specification that are taken and change nothing, whatever their value."""

    @classmethod
    def _fields(cls) -> tuple[dataclasses.Field[Any], ...]:
        return dataclasses.fields(cls)  # type: ignore[arg-type]

    @classmethod
    def of(
        cls,
        config: Self | None = None,
        properties: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> Self:
        """Settings from the environment, overridden by a config, by properties and by keywords, and checked.

        Raises:
            ConfigError: A setting is wrong or unknown.
        """
        names = {item.name: item for item in cls._fields()}
        rule = f"{cls._no_setting()}, see {cls._name}"
        check_names(settings, names, rule, others=cls._others)
        values = (
            {}
            if config is not None
            else cls.from_environment(os.environ if environment is None else environment)
        )
        values |= cls.from_properties(properties or {})
        values |= {name: value for name, value in settings.items() if value is not None}
        check_kind("config", config, cls, f"must be a {cls._name}")
        result = dataclasses.replace(config or cls(), **values)  # type: ignore[type-var]
        result.check()
        return result

    def check(self) -> None:
        """Look for values that are wrong, or at odds.

        Raises:
            ConfigError: There is one; the text names it, its value and the rule.
        """
        for item in self._fields():
            rule: Rule = item.metadata["rule"]
            value = getattr(self, item.name)
            if isinstance(value, str):
                check_text(item.name, value)
            check(rule.is_kept(value), item.name, value, f"must be {rule.text}")

    @classmethod
    def property_names(cls) -> frozenset[str]:
        """The names of the specification that it takes, also those of what is not built."""
        return frozenset((*cls._by_property(), *cls._not_built, *cls._without_effect))

    @classmethod
    def property_of(cls, name: str) -> tuple[str, object] | None:
        """The property of the specification and the default of a setting, by either of its names.

        Returns:
            ``None`` for what is no setting, or has no property.
        """
        for declared, item in cls._by_property().items():
            if name in (declared, item.name):
                return declared, item.default
        return None

    @classmethod
    def environment_doubts(cls, environment: Mapping[str, str]) -> list[str]:
        """What to tell of variables that look like settings and are none, as the driver does of its own."""
        prefix = cls._environment_prefix
        own = {_variable(name) for name in cls.property_names()}
        # Parts of a program share its environment: what is meant for another part is that one's to tell.
        variables = {_variable(name) for config in _declared_configs() for name in config.property_names()}
        # By what tells them apart.
        known = {name.removeprefix(prefix).lower(): name for name in variables if name.startswith(prefix)}
        doubts = []
        for name in sorted(environment):
            if name.startswith(prefix) and name not in variables:
                near = nearest(name.removeprefix(prefix), known)
                if near is not None and known[near] in own:
                    doubts.append(
                        f"{excerpt(name)}={excerpt(environment[name])} has no effect: no setting has this name, "
                        f"did you mean {known[near]}?"
                    )
        return doubts

    @classmethod
    def _no_setting(cls) -> str:
        return f"is not a setting of {cls._owner}"

    @classmethod
    def _by_property(cls) -> dict[str, dataclasses.Field[Any]]:
        return {item.metadata["property"]: item for item in cls._fields() if "property" in item.metadata}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> dict[str, Any]:
        """What an environment sets, by keyword.

        Raises:
            ConfigError: A value cannot be read.
        """
        names = {_variable(name): name for name in cls.property_names()}
        return cls.from_properties(
            {names[name]: value for name, value in environment.items() if name in names}
        )

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> dict[str, Any]:
        """What properties set, by keyword.

        Raises:
            ConfigError: One is unknown, or its value cannot be read.
        """
        known = cls._by_property()
        values = {}
        for name, value in properties.items():
            if name in cls._without_effect:
                continue
            if name in cls._not_built:
                rule, accepted = cls._not_built[name]
                if value.strip() not in accepted:
                    raise ConfigError(f"{name}={value}: {rule}", name, value, rule)
                continue
            if name not in known:
                rule = cls._no_setting() + did_you_mean(name, sorted(cls.property_names()))
                raise ConfigError(f"{name}={value}: {rule}", name, value, rule)
            item = known[name]
            parsed = _parsed(item.metadata["kind"], name, value)
            # Nothing given is what some settings have by default.
            values[item.name] = "" if parsed is None and item.default == "" else parsed
        return values


def _declared_configs(base: type[DeclaredConfig] = DeclaredConfig) -> Iterator[type[DeclaredConfig]]:
    """All configs of the package that are loaded."""
    for config in base.__subclasses__():
        yield config
        yield from _declared_configs(config)


def _variable(name: str) -> str:
    return name.upper().replace(".", "_")


def _parsed(kind: str, name: str, value: str) -> Any:
    value = value.strip()
    if kind == "boolean":
        check(value.lower() in ("true", "false"), name, value, "must be true or false")
        return value.lower() == "true"
    if kind == "size":
        return parse_size(value, name)
    if kind == "duration":
        return parse_duration_ns(value, name)
    if kind == "number":
        check(value.lstrip("-").isdigit(), name, value, "must be a whole number")
        return parse_size(value, name)
    return value or None
