"""The commands of a class: what their arguments and results are, and the state that they change."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from headrace._exceptions import ConfigError
from headrace._extras import needs

with needs("objects"):
    import msgspec

__all__ = ["Command", "Commands", "StateLayout", "command", "encoded"]

_F = TypeVar("_F", bound=Callable[..., Any])
_MARK = "__headrace_command__"
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
# Dicts keep their order: one that was restored must be walked through as one that was not.
_ENCODER = msgspec.msgpack.Encoder()


def encoded(value: object) -> bytes:
    """A value as MessagePack."""
    return _ENCODER.encode(value)


def command(function: _F) -> _F:
    """Make a method a command: clients call it, and every member of the cluster carries it out.

    It must have a parameter for each argument, no ``*args``; annotations say what arguments and results are.
    """
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.kind not in _NAMED:
            name = getattr(function, "__qualname__", repr(function))
            rule = "must have a name: a command takes no *args, **kwargs or positional-only parameters"
            raise ConfigError(f"{name}({parameter}): {rule}", parameter.name, str(parameter), rule)
    setattr(function, _MARK, True)
    return function


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Attributes:
        name: Of the method.
        signature: Of the method, without the object.
        arguments: Decodes arguments to what the annotations say.
        result: Decodes results likewise.
    """

    name: str
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
            signature,
            msgspec.msgpack.Decoder(struct),
            msgspec.msgpack.Decoder(hints.get("return", Any)),
        )

    def packed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """The arguments of a call.

        Raises:
            TypeError: They are not those of the command, or not of its types.
        """
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        packed = encoded(bound.arguments)
        try:
            # As members will: what they would refuse is not sent.
            self.arguments.decode(packed)
        except msgspec.ValidationError as wrong:
            raise TypeError(f"{self.name}(): {wrong}") from None
        return packed

    def unpacked(self, packed: bytes) -> dict[str, Any]:
        """The arguments, by name.

        Raises:
            msgspec.MsgspecError: They are not those of the command.
        """
        return msgspec.structs.asdict(self.arguments.decode(packed))


class Commands:
    """The commands of a class."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self._commands = {
            name: Command.of(name, member)
            for name, member in inspect.getmembers(kind, inspect.isfunction)
            if getattr(member, _MARK, False)
        }
        if not self._commands:
            rule = "must have methods with @command"
            raise ConfigError(f"{kind.__qualname__}: {rule}", "kind", kind.__qualname__, rule)

    def __iter__(self) -> typing.Iterator[str]:
        return iter(self._commands)

    def get(self, name: str) -> Command | None:
        """The command with a name."""
        return self._commands.get(name)


class StateLayout:
    """The attributes that are the state of a class: all that are annotated, ``ClassVar`` excepted."""

    def __init__(self, kind: type) -> None:
        hints = typing.get_type_hints(kind, include_extras=True)
        self._hints = {name: hint for name, hint in hints.items() if typing.get_origin(hint) is not ClassVar}
        fields: list[tuple[str, Any]] = list(self._hints.items())
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
        """Give an object a state.

        Raises:
            msgspec.MsgspecError: The state is not that of this class.
        """
        loaded = self._decoder.decode(state)
        for name in self._hints:
            setattr(instance, name, getattr(loaded, name))
