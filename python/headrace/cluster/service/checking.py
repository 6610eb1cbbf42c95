"""Whether an object is a service, before anything starts."""

from __future__ import annotations

from headrace._checks import wrong
from headrace.cluster.service.clustered_service import ClusteredService

__all__ = ["COMMAND_MARK", "check_service"]

COMMAND_MARK = "__headrace_command__"
"""The attribute of a method that is a command of a replicated object."""


def check_service(name: str, value: object) -> None:
    """Refuse what is no service.

    Args:
        name: The argument.
        value: What was given.

    Raises:
        ConfigError: It is none; the text says what makes one of it.
    """
    if not isinstance(value, ClusteredService):
        raise wrong(name, value, f"must be a headrace.cluster.ClusteredService{_what_makes_one(value)}")


def _what_makes_one(value: object) -> str:
    """What makes a service of something that is none; empty where that is not known."""
    kind = value if isinstance(value, type) else type(value)
    name = kind.__qualname__
    if any(hasattr(getattr(kind, attribute, None), COMMAND_MARK) for attribute in dir(kind)):
        return f": its class has commands, so wrap it, headrace.cluster.objects.ObjectService({name}())"
    if isinstance(value, type) and issubclass(value, ClusteredService):
        return f": give an instance, {name}()"
    return ""
