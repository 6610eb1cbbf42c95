"""Whether an object is a service, before anything starts."""

from __future__ import annotations

import difflib
import inspect
import types

from headrace._base.checks import shown, wrong
from headrace.cluster.service.clustered_service import ClusteredService

__all__ = ["COMMAND_MARK", "check_service"]

COMMAND_MARK = "__headrace_command__"
"""The attribute of a method that is a command of a replicated object."""


_HANDLERS = {name for name in dir(ClusteredService) if name.startswith("on_")}
_NEAR = 0.9


def check_service(name: str, value: object) -> None:
    """Refuse what is no service.

    Args:
        name: The argument.
        value: What was given.

    Raises:
        TypeError: It is none; the text says what makes one of it.
        ConfigError: It has a misspelt handler.
    """
    if not isinstance(value, ClusteredService):
        must = f"must be a headrace.cluster.ClusteredService{_what_makes_one(value)}"
        raise TypeError(f"{name}={shown(name, value)}: {must}")
    kind = type(value)
    for handler in sorted(_HANDLERS | {"on_session_messages"}):
        rule = _why_not_called(handler, getattr(value, handler, None))
        if rule:
            raise wrong(name, value, f"has {handler}, which {rule}")
    for given in set(dir(kind)) - _HANDLERS - {"on_session_messages"}:
        near = difflib.get_close_matches(given, _HANDLERS, n=1, cutoff=_NEAR)
        # Beside the handler itself it is a method of the service's own.
        if given.startswith("on_") and near and getattr(kind, near[0]) is getattr(ClusteredService, near[0]):
            raise wrong(name, value, f"has {given}, which nothing calls: did you mean {near[0]}?")


def _why_not_called(name: str, handler: object) -> str:
    """Why a handler would do nothing; empty for one that does."""
    if handler is None:
        return ""
    if not callable(handler):
        return f"is {shown(name, handler)}: it must be a method"
    if inspect.iscoroutinefunction(handler) or inspect.isasyncgenfunction(handler):
        return (
            "is async: handlers are called, not awaited; move work that takes time to a client, or to a thread of "
            "do_background_work"
        )
    if inspect.isgeneratorfunction(handler) and name != "on_take_snapshot":
        return "is a generator, whose code would never run: a handler must not yield"
    return ""


def _what_makes_one(value: object) -> str:
    """What makes a service of something that is none; empty where that is not known."""
    kind = value if isinstance(value, type) else type(value)
    name = kind.__qualname__
    if any(hasattr(getattr(kind, attribute, None), COMMAND_MARK) for attribute in dir(kind)):
        return f"; its class has commands, so wrap it: headrace.cluster.objects.ObjectService({name}())"
    if issubclass(kind, ClusteredService):
        return f"; this is a class, give an instance of it: {name}()"
    if isinstance(value, (list, tuple)):
        return "; give each service as a separate argument"
    if isinstance(value, types.FunctionType):
        return f"; if this function returns one, call it: {value.__qualname__}()"
    if kind.__module__ == "builtins":
        return ""
    return f"; have its class inherit from that: class {name}(ClusteredService)"
