"""The commands of a class: what their arguments and results are, and the state that they change."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from headrace._exceptions import ConfigError
from headrace._extras import needs
from headrace.cluster.errors import ClusterError
from headrace.cluster.service.checking import COMMAND_MARK

with needs("objects"):
    import msgspec

__all__ = ["Command", "Commands", "StateLayout", "command", "encoded"]

_F = TypeVar("_F", bound=Callable[..., Any])
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

    It must have a parameter for each argument, no ``*args``; annotations say what arguments and results are. Each
    argument has one. A result without one comes as plain lists, dicts, numbers and text.

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
        name: Of the method.
        text: Of its docstring.
        signature: Of the method, without the object.
        arguments: Decodes arguments to what the annotations say.
        result: Decodes results likewise.
    """

    name: str
    text: str | None
    signature: inspect.Signature
    arguments: msgspec.msgpack.Decoder[Any]
    result: msgspec.msgpack.Decoder[Any]

    @classmethod
    def of(cls, name: str, function: Callable[..., Any]) -> Command:
        """What a method's signature and annotations say."""
        signature = inspect.signature(function)
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])
        hints = typing.get_type_hints(function)
        fields = [(parameter, hints.get(parameter, Any)) for parameter in signature.parameters]
        struct = msgspec.defstruct(name, fields, forbid_unknown_fields=True, kw_only=True)
        return cls(
            name,
            function.__doc__,
            signature,
            msgspec.msgpack.Decoder(struct),
            msgspec.msgpack.Decoder(hints.get("return", Any)),
        )

    def packed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """The arguments of a call.

        Raises:
            TypeError: They are not those of the command, or not of its types.
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
        """The arguments, by name.

        Raises:
            msgspec.MsgspecError: They are not those of the command.
        """
        return msgspec.structs.asdict(self.arguments.decode(packed))

    def unpacked_result(self, packed: bytes) -> Any:
        """The result.

        Raises:
            ClusterError: It is not what the annotation says.
        """
        try:
            return self.result.decode(packed)
        except _WRONG as wrong:
            raise ClusterError(
                f"{self.name}() was carried out, and its result is not what its annotation here says: {wrong}"
            ) from None


class Commands:
    """The commands of a class."""

    def __init__(self, kind: type) -> None:
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

    def get(self, name: str) -> Command | None:
        """The command with a name."""
        return self._commands.get(name)


class StateLayout:
    """The attributes that are the state of a class: all that are annotated, ``ClassVar`` excepted."""

    def __init__(self, kind: type) -> None:
        hints = typing.get_type_hints(kind, include_extras=True)
        self._hints = {name: hint for name, hint in hints.items() if typing.get_origin(hint) is not ClassVar}
        # Left where the snapshot has no such attribute.
        fields: list[tuple[str, Any, Any]] = [
            (name, hint, msgspec.UNSET) for name, hint in self._hints.items()
        ]
        self._decoder = msgspec.msgpack.Decoder(msgspec.defstruct(kind.__name__, fields, kw_only=True))

    def check(self, instance: object) -> None:
        """Look whether the state of an object is annotated as a whole.

        Raises:
            ConfigError: An attribute is not, and would be lost.
        """
        for name in getattr(instance, "__dict__", ()):
            if name not in self._hints:
                rule = "must be annotated in its class: what is not is in no snapshot; ClassVar is for what is no state"
                where = f"{type(instance).__qualname__}.{name}"
                raise ConfigError(f"{where}: {rule}", name, where, rule)

    def stored(self, instance: object) -> bytes:
        """The state of an object."""
        self.check(instance)
        return encoded({name: getattr(instance, name) for name in self._hints})

    def restore(self, instance: object, state: bytes) -> None:
        """Give an object a state. An attribute that the state lacks keeps the value of the constructor.

        Raises:
            msgspec.MsgspecError: The state is not that of this class.
            ClusterError: It has attributes that the class lacks, or lacks one without a value.
        """
        kind = type(instance).__qualname__
        unknown = _ATTRIBUTES.decode(state).keys() - self._hints.keys()
        if unknown:
            raise ClusterError(
                f"the snapshot has attributes that class {kind} lacks: {', '.join(sorted(unknown))}; run the version "
                "of the class that has them, or annotate them in this one, typing.Any for what is used no more"
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
