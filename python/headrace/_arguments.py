"""Arguments of a wrong type, refused before a call begins: the error names the argument, its value and what it must be.

The annotations of a function say what its arguments must be. `checked` reads them when the function is first called. A
name in them that only type checkers import is looked for among the public names of the package; what is not found there
is left to the function. The core does the same in `crates/python/src/arguments.rs`.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import os
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from numbers import Real
from typing import Any, ParamSpec, TypeVar

from headrace._checks import shown, wrong

__all__ = ["check_fields", "checked", "checked_class", "explain"]

_P = ParamSpec("_P")
_R = TypeVar("_R")
_C = TypeVar("_C", bound=type)

_INTEGER_BITS = {"stream_id": 32, "session_id": 32, "type_id": 32, "counter_id": 32, "io_max_length": 32}
"""How long integers are that have less than 64 bits, by the last part of their names."""
_PUBLIC_HOMES = ("headrace", "headrace.client", "headrace.archive", "headrace.cluster")
_OF_ANY_TYPE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True)
class _Kind:
    """What an argument must be.

    Attributes:
        words: To be read after "must be"; empty where any object will do.
        is_met: Whether an object is one.
        hint: What makes one of an object that is none, to be read after the words; empty where that is not known.
    """

    words: str
    is_met: Callable[[Any], bool]
    hint: Callable[[object], str] = lambda value: ""


_EXPLAINED: dict[type, Callable[[object], str]] = {}


def explain(kind: type, hint: Callable[[object], str]) -> None:
    """Have errors about arguments that are no `kind` say what makes one of what was given."""
    _EXPLAINED[kind] = hint


_ANY = _Kind("", lambda value: True)


def _is_index(value: object) -> bool:
    return hasattr(type(value), "__index__")


def _is_path(value: object) -> bool:
    return isinstance(value, (str, os.PathLike))


_SIMPLE: dict[object, _Kind] = {
    int: _Kind("a whole number", _is_index),
    float: _Kind("a number", lambda value: isinstance(value, Real) or _is_index(value)),
    bool: _Kind("True or False", lambda value: isinstance(value, bool)),
    str: _Kind("text", lambda value: isinstance(value, str)),
    bytes: _Kind("bytes", lambda value: isinstance(value, bytes)),
    os.PathLike: _Kind("a pathlib.Path", lambda value: isinstance(value, os.PathLike)),
    Callable: _Kind("callable", callable),
    types.NoneType: _Kind("None", lambda value: value is None),
}


def _kind(annotation: object) -> _Kind:
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        return _any_of([_kind(one) for one in typing.get_args(annotation)])
    if origin is not None:
        return _kind(origin)
    if not isinstance(annotation, type) or annotation in (object, Any):
        return _ANY
    if getattr(annotation, "_is_protocol", False):
        promised = (types.FunctionType, property)
        members = [
            name
            for name, member in vars(annotation).items()
            if isinstance(member, promised) and name[:2] != "__"
        ]
        return _Kind(f"a {_name(annotation)}", lambda value: all(hasattr(value, name) for name in members))
    if issubclass(annotation, Enum):
        return _Kind(f"a member of {_name(annotation)}", lambda value: isinstance(value, annotation))
    return _Kind(
        f"a {_name(annotation)}",
        lambda value: isinstance(value, annotation),
        lambda value: _EXPLAINED[annotation](value) if annotation in _EXPLAINED else "",
    )


def _any_of(kinds: list[_Kind]) -> _Kind:
    if _ANY in kinds:
        return _ANY
    words = [kind.words for kind in kinds]
    if "text" in words and "a pathlib.Path" in words:
        words[words.index("text")] = "a path (text or a pathlib.Path)"
        words.remove("a pathlib.Path")
    text = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
    tests = [kind.is_met for kind in kinds]

    def is_met(value: object) -> bool:
        for test in tests:  # noqa: SIM110 - a generator would take longer than the tests
            if test(value):
                return True
        return False

    def hint(value: object) -> str:
        return next(filter(None, (kind.hint(value) for kind in kinds)), "")

    return _Kind(text, is_met, hint)


def _name(annotation: type) -> str:
    home = annotation.__module__
    return annotation.__name__ if home in ("builtins", "collections.abc") else f"{home}.{annotation.__name__}"


class _Names(Mapping[str, object]):
    """What the names in an annotation stand for; an unknown one for any object."""

    def __init__(self, namespace: Mapping[str, object]) -> None:
        self._namespace = namespace

    def __getitem__(self, name: str) -> object:
        if name in self._namespace:
            return self._namespace[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        for home in _PUBLIC_HOMES:
            found = getattr(sys.modules.get(home), name, None)
            if found is not None:
                return found
        return os if name == "os" else object

    def __iter__(self) -> Iterator[str]:
        return iter(self._namespace)

    def __len__(self) -> int:
        return len(self._namespace)


def _kinds(function: Callable[..., object]) -> dict[str, _Kind]:
    """What each argument must be, of those that are not any object."""
    code = inspect.unwrap(function)
    names: Any = _Names(code.__globals__)
    found = {}
    for name, parameter in inspect.signature(code).parameters.items():
        if name in ("self", "cls") or parameter.kind in _OF_ANY_TYPE:
            continue
        annotation = parameter.annotation
        if isinstance(annotation, str):
            annotation = _evaluated(annotation, names)
        found[name] = _kind(annotation)
    return {name: kind for name, kind in found.items() if kind is not _ANY}


def _evaluated(annotation: str, names: Any) -> object:
    try:
        return eval(annotation, {}, names)
    except (AttributeError, TypeError):
        return object  # It has a part of a name that is unknown here.


@dataclass(frozen=True, slots=True)
class _Argument:
    """One argument of a function that is looked at.

    Attributes:
        name: Its name.
        place: Which positional argument it is; beyond all of them where it may only be given by name.
        kind: What it must be.
        limit: What a number must be besides.
    """

    name: str
    place: int
    kind: _Kind
    limit: _Kind


class _Check:
    """Looks at the arguments of one function, before each call of it: so it does not bind them as Python does."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        self._signature = inspect.signature(function)

    @functools.cached_property
    def _arguments(self) -> tuple[_Argument, ...]:
        kinds = _kinds(self._function)
        return tuple(
            _Argument(
                name,
                sys.maxsize if parameter.kind is parameter.KEYWORD_ONLY else place,
                kinds[name],
                _limit(name, kinds[name]),
            )
            for place, (name, parameter) in enumerate(self._signature.parameters.items())
            if name in kinds
        )

    def __call__(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        count = len(args)
        for argument in self._arguments:
            if argument.name in kwargs:
                value = kwargs[argument.name]
            elif argument.place < count:
                value = args[argument.place]
            else:
                continue
            if not (argument.kind.is_met(value) and argument.limit.is_met(value)):
                self._refuse(argument, value, args, kwargs)

    def _refuse(
        self, argument: _Argument, value: object, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError:
            return  # The call itself says what is missing, or too much.
        name, kind = argument.name, argument.kind
        if kind.is_met(value):
            raise wrong(name, value, argument.limit.words)
        hint = kind.hint(value) or self._hint(name, value)
        raise TypeError(f"{name}={shown(name, value)}: must be {kind.words}{hint}")

    def _hint(self, name: str, value: object) -> str:
        """What else helps: how a channel looks, or where a path or a class belongs."""
        if name == "channel":
            return ", such as 'aeron:ipc'"
        if isinstance(value, type):
            return f"; this is a class, give an instance of it: {value.__qualname__}(...)"
        others = self._signature.parameters
        if name == "directory" and hasattr(value, "_driver"):
            return "; for a driver of this process, use driver=" if "driver" in others else ""
        is_misplaced = _is_path(value) and "directory" in others
        return "; for the directory of a driver, use directory=" if is_misplaced else ""


def _limit(name: str, kind: _Kind) -> _Kind:
    """What a number of the right type must be besides, as a whole rule."""
    if kind.words in ("a whole number", "a whole number or None"):
        bits = next((bits for end, bits in _INTEGER_BITS.items() if name.endswith(end)), 64)
        end = 1 << bits - 1
        return _Kind(
            f"must be a whole number from -2**{bits - 1} to 2**{bits - 1} - 1",
            lambda value: value is None or -end <= value.__index__() < end,
        )
    if name.endswith("timeout_s") and kind.words in ("a number", "a number or None"):
        endless = ", or None to wait without end" if kind.words.endswith("None") else ""
        # Neither a negative number nor one that is none.
        return _Kind(
            f"must be a number of seconds of at least 0{endless}", lambda value: value is None or value >= 0
        )
    return _ANY


def check_fields(settings: object) -> None:
    """Refuse a dataclass with a field that is not what its annotation says.

    Raises:
        ConfigError: A field is not.
    """
    for name, kind in _kinds(type(settings).__init__).items():
        value = getattr(settings, name)
        if not kind.is_met(value):
            raise wrong(name, value, f"must be {kind.words}")
        limit = _limit(name, kind)
        if not limit.is_met(value):
            raise wrong(name, value, limit.words)


def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function that refuses arguments that are not what its annotations say, before it begins.

    The function raises:
        TypeError: An argument has a wrong type.
        ConfigError: A number is longer than its place in a message, or no time-out.
    """
    check = _Check(function)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: _P.args, **kwargs: _P.kwargs) -> Any:
            check(args, kwargs)
            return await function(*args, **kwargs)

        return awaited  # type: ignore[return-value]

    @functools.wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        check(args, kwargs)
        return function(*args, **kwargs)

    return called


def checked_class(cls: _C) -> _C:
    """A class whose public methods, and whose making, are `checked`."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name not in ("__init__", "__getitem__"):
            continue
        if isinstance(member, classmethod):
            setattr(cls, name, classmethod(checked(member.__func__)))
        elif isinstance(member, types.FunctionType) and len(inspect.signature(member).parameters) > 1:
            setattr(cls, name, checked(member))
    return cls
