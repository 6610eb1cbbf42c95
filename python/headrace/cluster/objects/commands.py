"""The commands of a class: the types of their arguments and results, and the state that they change."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import functools
import hashlib
import inspect
import itertools
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from headrace._base.checks import excerpt
from headrace._base.exceptions import ConfigError
from headrace._base.extras import needs
from headrace.cluster.errors import ClusterError
from headrace.cluster.service.validation import COMMAND_MARK

with needs("objects"):
    import msgspec
    import msgspec.inspect

__all__ = ["Command", "Commands", "StateLayout", "command", "encoded"]

_F = TypeVar("_F", bound=Callable[..., Any])
_DIGEST_LENGTH = 8
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_NOT_AT_ONCE = (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction)
# What msgspec raises for values that it cannot encode, or that are not of a type.
_WRONG = (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError)
_ATTRIBUTES = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])
# Dicts keep their order: one that was restored must be walked through as one that was not.
_ENCODER = msgspec.msgpack.Encoder()


def encoded(value: object) -> bytes:
    """A value as MessagePack."""
    return _ENCODER.encode(value)


def command(function: _F) -> _F:
    """Make a method a command: clients call it, and every member of the cluster carries it out.

    It must have a parameter for each argument, no ``*args``. Each argument must have an annotation of its type. A
    result without an annotation arrives as plain lists, dicts, numbers and text.

    Raises:
        ConfigError: An argument has no annotation or no name, or the method is asynchronous or a generator.
    """
    name = getattr(function, "__qualname__", repr(function))
    if any(is_kind(function) for is_kind in _NOT_AT_ONCE):
        rule = "must be a plain method: members carry a command out at once, and wait for nothing in it"
        raise ConfigError(f"{name}(): {rule}", name, name, rule)
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        rule = ""
        if parameter.kind not in _NAMED:
            rule = "must have a name: a command takes no *args, **kwargs or positional-only parameters"
        elif parameter.annotation is inspect.Parameter.empty:
            rule = "must be annotated: its type is what clients may send; typing.Any is for anything"
        if rule:
            raise ConfigError(f"{name}({parameter}): {rule}", parameter.name, str(parameter), rule)
    setattr(function, COMMAND_MARK, True)
    return function


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Attributes:
        name: The method's name.
        digest: A digest of the types of its arguments: a call with another digest is refused.
        text: The method's docstring.
        signature: The method's signature, without the object.
        arguments: Decodes arguments to their annotated types.
        result: Decodes results to the annotated type.
    """

    name: str
    digest: bytes
    text: str | None
    signature: inspect.Signature
    arguments: msgspec.msgpack.Decoder[Any]
    result: msgspec.msgpack.Decoder[Any]

    @classmethod
    def of(cls, name: str, function: Callable[..., Any]) -> Command:
        """Make a command from a method's signature and annotations."""
        signature = inspect.signature(function)
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])
        hints = typing.get_type_hints(function)
        fields = [(parameter, hints.get(parameter, Any)) for parameter in signature.parameters]
        struct = msgspec.defstruct(name, fields, forbid_unknown_fields=True, kw_only=True)
        return cls(
            name,
            _digest(struct),
            function.__doc__,
            signature,
            msgspec.msgpack.Decoder(struct),
            msgspec.msgpack.Decoder(hints.get("return", Any)),
        )

    def packed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """Encode the arguments of a call.

        Raises:
            TypeError: They do not fit the signature or the annotated types.
        """
        try:
            bound = self.signature.bind(*args, **kwargs)
            bound.apply_defaults()
            packed = encoded(bound.arguments)
            # As members will: what they would refuse is not sent.
            self.arguments.decode(packed)
        except _WRONG as wrong:
            raise TypeError(f"{self.name}(): {wrong}") from None
        return packed

    def unpacked(self, packed: bytes) -> dict[str, Any]:
        """Decode the arguments of a call, by name.

        Raises:
            msgspec.MsgspecError: They are not those of the command.
        """
        return msgspec.structs.asdict(self.arguments.decode(packed))

    def unpacked_result(self, packed: bytes) -> Any:
        """Decode a result.

        Raises:
            ClusterError: It is not of the annotated type.
        """
        try:
            return self.result.decode(packed)
        except _WRONG as wrong:
            raise ClusterError(
                f"{self.name}() was carried out, and its result is not what its annotation here says: {wrong}"
            ) from None


def _digest(struct: type) -> bytes:
    """A digest of the types of a command's arguments; short, because each term of a cluster announces all digests."""
    described = repr(_described(msgspec.inspect.type_info(struct), ()))
    return hashlib.sha256(described.encode()).digest()[:_DIGEST_LENGTH]


def _described(what: Any, within: tuple[type, ...]) -> Any:
    """Describe a type in a text that is the same in other processes and versions of Python."""
    if isinstance(what, (list, tuple)):
        return [_described(one, within) for one in what]
    if isinstance(what, type):
        # One that is within itself is named.
        return what.__qualname__
    if isinstance(what, msgspec.inspect.Field):
        return [what.encode_name, _described(what.type, within), what.required]
    if not isinstance(what, msgspec.inspect.Type):
        return repr(what)
    kind: type | None = getattr(what, "cls", None)
    if kind is not None and kind in within:
        return kind.__qualname__
    if isinstance(what, msgspec.inspect.EnumType):
        return ["EnumType", [repr(one.value) for one in what.cls]]
    inner = within if kind is None else (*within, kind)
    values = {name: getattr(what, name) for name in what.__struct_fields__ if name != "cls"}
    # What is not set says nothing; later versions of msgspec may have more of it.
    given = {
        name: _described(value, inner) for name, value in values.items() if value not in (None, False, ())
    }
    name = type(what).__name__
    if kind is None or "fields" in given:
        return [name, given]
    return [name, given, kind.__qualname__]


class Commands:
    """The commands of a class."""

    def __init__(self, kind: type) -> None:
        given: object = kind
        if not isinstance(given, type):
            name = type(given).__qualname__
            raise TypeError(f"kind={excerpt(repr(given))}: must be the class of the object: give {name}")
        self.kind = kind
        self._commands = {
            name: Command.of(name, member)
            for name, member in inspect.getmembers(kind, inspect.isfunction)
            if getattr(member, COMMAND_MARK, False)
        }
        if not self._commands:
            rule = "must have methods with @command"
            raise ConfigError(f"{kind.__qualname__}: {rule}", "kind", kind.__qualname__, rule)

    def __iter__(self) -> typing.Iterator[str]:
        return iter(self._commands)

    def __getitem__(self, name: str) -> Command:
        return self._commands[name]

    @property
    def digests(self) -> dict[str, bytes]:
        """The digest of each command's arguments, by name."""
        return {name: command.digest for name, command in self._commands.items()}

    def get(self, name: str) -> Command | None:
        """The command with a name."""
        return self._commands.get(name)


class StateLayout:
    """The attributes that are the state of a class: all that are annotated, ``ClassVar`` excepted."""

    def __init__(self, kind: type) -> None:
        _check_bases(kind)
        hints = typing.get_type_hints(kind, include_extras=True)
        self._hints = {name: hint for name, hint in hints.items() if typing.get_origin(hint) is not ClassVar}
        # Left where the snapshot has no such attribute.
        fields: list[tuple[str, Any, Any]] = [
            (name, hint, msgspec.UNSET) for name, hint in self._hints.items()
        ]
        self._decoder = msgspec.msgpack.Decoder(msgspec.defstruct(kind.__name__, fields, kw_only=True))
        self._decoders = {name: msgspec.msgpack.Decoder(hint) for name, hint in self._hints.items()}

    def check(self, instance: object) -> None:
        """Check that all state of an object is annotated, and that its present values can be stored.

        Raises:
            ConfigError: An attribute is not annotated and would be lost, or its value would change when stored.
        """
        self._check_annotated(instance)
        for name in self._hints:
            if hasattr(instance, name):
                self._packed(instance, name)

    def _check_annotated(self, instance: object) -> None:
        for name in _own_names(instance):
            if name not in self._hints:
                rule = "must be annotated in its class, or snapshots leave it out; ClassVar marks what is not state"
                where = f"{type(instance).__qualname__}.{name}"
                raise ConfigError(f"{where}: {rule}", name, where, rule)

    def stored(self, instance: object) -> bytes:
        """Encode the state of an object for :meth:`restore`.

        Raises:
            ConfigError: An attribute is not annotated, or its value cannot be stored, or would change when stored.
            AttributeError: An attribute has no value.
        """
        self._check_annotated(instance)
        return encoded({name: msgspec.Raw(self._packed(instance, name)) for name in self._hints})

    def _packed(self, instance: object, name: str) -> bytes:
        """Encode an attribute. Refuses a value that changes when stored: a start with the snapshot would differ."""
        value = getattr(instance, name)
        where = f"{type(instance).__qualname__}.{name}"
        try:
            packed = encoded(value)
            change = _change(value, self._decoders[name].decode(packed))
        except _WRONG as wrong:
            rule = f"cannot be stored: {wrong}"
            if isinstance(wrong, OverflowError):
                rule += "; integers go from -2**63 to 2**64 - 1: keep larger ones as text"
            raise ConfigError(f"{where}: {rule}", name, type(value).__name__, rule) from None
        if change is not None:
            raise ConfigError(f"{where}: {change}", name, type(value).__name__, change)
        return packed

    def restore(self, instance: object, state: bytes) -> None:
        """Give an object a state. An attribute that the state lacks keeps the value of the constructor.

        Raises:
            msgspec.MsgspecError: The state is not that of this class.
            ClusterError: It has an attribute that the class lacks, or lacks one for which the constructor has no value.
        """
        kind = type(instance).__qualname__
        unknown = _ATTRIBUTES.decode(state).keys() - self._hints.keys()
        if unknown:
            raise ClusterError(
                f"the snapshot has attributes that class {kind} lacks: {', '.join(sorted(unknown))}; run the version "
                "of the class that has them, or annotate them in this class too, as typing.Any if it uses them no more"
            )
        loaded = self._decoder.decode(state)
        for name in self._hints:
            value = getattr(loaded, name)
            if value is not msgspec.UNSET:
                setattr(instance, name, value)
            elif not hasattr(instance, name):
                raise ClusterError(
                    f"the snapshot lacks the attribute {kind}.{name}: it was taken before the class had it; give it a "
                    "value in the constructor or in the class"
                )


def _own_names(instance: object) -> Iterable[str]:
    """The names of an object's own attributes: those in its dictionary and in its slots."""
    kind: Any = type(instance)
    return itertools.chain(getattr(instance, "__dict__", ()), _slots(kind))


@functools.lru_cache(maxsize=1024)
def _slots(kind: type) -> tuple[str, ...]:
    names: list[str] = []
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                is_private = name.startswith("__") and not name.endswith("__")
                names.append(f"_{base.__name__.lstrip('_')}{name}" if is_private else name)
    return tuple(names)


def _check_bases(kind: type) -> None:
    """Refuse a class with state in a base that is written in C, such as the items of a dict."""
    for base in kind.__mro__:
        if base is not object and isinstance(base.__dict__.get("__new__"), types.BuiltinFunctionType):
            rule = (
                f"must not inherit from {base.__name__}, whose state is not in attributes, so snapshots leave "
                f"it out: keep a {base.__name__} in an attribute"
            )
            raise ConfigError(f"{kind.__qualname__}: {rule}", "instance", kind.__qualname__, rule)


def _change(before: Any, after: Any) -> str | None:
    """How a value changes when it is stored and read again; ``None`` if it does not.

    An integer may come back as a float if a float is annotated: it is the same number.
    """
    if type(before) is not type(after):
        if {type(before), type(after)} == {int, float} and before == after:
            return None
        return _other(before, after)
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(before, dict):
        pairs = itertools.zip_longest(itertools.chain(*before.items()), itertools.chain(*after.items()))
    elif isinstance(before, (list, tuple)):
        pairs = itertools.zip_longest(before, after)
    elif dataclasses.is_dataclass(before) or isinstance(before, msgspec.Struct):
        fields = (
            before.__struct_fields__
            if isinstance(before, msgspec.Struct)
            else [field.name for field in dataclasses.fields(before)]
        )
        beside = sorted(name for name in _own_names(before) if name not in fields and hasattr(before, name))
        if beside:
            return f"has {before!r:.60}, of which a snapshot loses {beside[0]}: declare it as a field of its class"
        pairs = ((getattr(before, name, None), getattr(after, name, None)) for name in fields)
    elif isinstance(before, (datetime.datetime, datetime.time, decimal.Decimal)):
        # Equal where they are not alike: the same moment in another zone, or the same number with other digits.
        return None if repr(before) == repr(after) else _other(before, after)
    else:
        # What is not a number is not equal to itself.
        is_same = before == after or (before != before and after != after)
        return None if is_same else _other(before, after)
    return next((change for one, other in pairs if (change := _change(one, other)) is not None), None)


def _other(before: Any, after: Any) -> str:
    kind, other = type(before).__name__, type(after).__name__
    if isinstance(before, dict):
        instead = "use a plain dict, with get() or setdefault()"
    elif isinstance(before, tuple):
        instead = "use a list, or annotate it as a tuple"
    elif isinstance(before, int) and isinstance(after, float):
        instead = "annotate it as int"
    elif isinstance(before, (datetime.datetime, datetime.time)):
        instead = "keep it in UTC, and the zone beside it if it matters"
    else:
        instead = "annotate it with its own type, or keep a value of the type that it becomes"
    return f"has {before!r:.60} ({kind}), which a snapshot makes {after!r:.60} ({other}): {instead}"
