"""Python values for the types of a schema: named tuples, enums, sets of bits."""

from __future__ import annotations

import enum
import keyword
import re
import struct
from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self, cast

from headrace.sbe._model import EnumType, Member, Scalar, SetType

__all__ = [
    "BitSet",
    "Naming",
    "Record",
    "enum_class",
    "enum_decoder",
    "enum_encoder",
    "record_class",
    "set_class",
]


class Naming:
    """Turns names of the schema into names in Python."""

    def __init__(self, snake_case: bool) -> None:
        self.snake_case = snake_case

    def of(self, name: str) -> str:
        """One name: in snake case if wanted, and never a keyword or private."""
        if self.snake_case:
            name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
        name = name.lstrip("_") or "field"
        if name[0].isdigit():
            name = f"field_{name}"
        return f"{name}_" if keyword.iskeyword(name) else name

    def all(self, names: Iterable[str]) -> list[str]:
        """Several names at once, kept distinct."""
        taken: list[str] = []
        for name in map(self.of, names):
            while name in taken:
                name += "_"
            taken.append(name)
        return taken


class Record(tuple[Any, ...]):
    """Values of a message, composite or group entry: a tuple whose items are also attributes, like a named tuple.

    Made by calling a subclass with all values as one iterable, which is the fastest way in Python.
    """

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """The values by name; records within as dictionaries too."""
        return {name: _plain(value) for name, value in zip(self._fields, self, strict=True)}

    def replace(self, **changes: Any) -> Self:
        """A copy with some values changed.

        Raises:
            TypeError: A name is not a field.
        """
        values = [changes.pop(name, value) for name, value in zip(self._fields, self, strict=True)]
        if changes:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(changes)}")
        return type(self)(values)

    def __repr__(self) -> str:
        pairs = (f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({', '.join(pairs)})"


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def record_class(name: str, fields: list[str], constants: Mapping[str, Any]) -> type[Record]:
    """A record with these fields; its constants are attributes of the class."""
    # A named tuple's attributes read any tuple, and faster than a property would.
    # It is held until they are taken: its dictionary dies with it.
    named = namedtuple("_Named", fields)  # type: ignore[misc]
    namespace = {
        "__slots__": (),
        "__module__": __name__,
        "__match_args__": tuple(fields),
        "_fields": tuple(fields),
        **constants,
        **{field: named.__dict__[field] for field in fields},
    }
    return type(name, (Record,), namespace)


# --- enums -----------------------------------------------------------------------------------------------------


def enum_class(kind: EnumType) -> type[enum.Enum]:
    """An ``IntEnum``, or a ``StrEnum`` where values are characters. Names stay as the schema writes them."""
    names = Naming(snake_case=False).all(name if name != "mro" else "mro_" for name, _ in kind.values)
    values = [value for _, value in kind.values]
    if kind.primitive.name == "char":
        characters = enum.StrEnum(kind.name, list(zip(names, map(chr, values), strict=True)))  # type: ignore[misc]
        return cast("type[enum.Enum]", characters)
    numbers = enum.IntEnum(kind.name, list(zip(names, values, strict=True)))  # type: ignore[misc]
    return cast("type[enum.Enum]", numbers)


def enum_decoder(kind: EnumType, members: type[enum.Enum]) -> dict[Any, Any]:
    """A function from the value that ``struct`` unpacks to the member; from the null value to ``None``."""
    raw: Any = _character if kind.primitive.name == "char" else int
    found: dict[Any, Any] = {raw(int(kind.null)): None}
    found.update((raw(value), member) for member, value in _values_of(kind, members))
    return found


def _values_of(kind: EnumType, members: type[enum.Enum]) -> Iterator[tuple[enum.Enum, int]]:
    """Each value with its member; of two names of one value, the second is an alias of the first's member."""
    for member, (_, value) in zip(members.__members__.values(), kind.values, strict=True):
        yield member, value


def enum_encoder(kind: EnumType, members: type[enum.Enum]) -> dict[Any, Any]:
    """A function from a member, its value or its name to the value that ``struct`` packs."""
    raw: Any = _character if kind.primitive.name == "char" else int
    found: dict[Any, Any] = {member: raw(value) for member, value in _values_of(kind, members)}
    for name, value in kind.values:
        found.setdefault(name, raw(value))
    found.setdefault(None, raw(int(kind.null)))
    return found


def _character(code: int) -> bytes:
    return bytes([code])


# --- sets ------------------------------------------------------------------------------------------------------


class BitSet(int):
    """A set of named bits: an integer whose class holds each choice as an attribute.

    ``Flags.urgent in flags``, ``flags.names()``, ``Flags.urgent | Flags.last``. Bits without a name are kept.
    """

    choices: ClassVar[dict[str, int]] = {}

    def __contains__(self, other: int) -> bool:
        return self & other == other

    def __or__(self, other: int) -> BitSet:
        return type(self)(int(self) | int(other))

    def names(self) -> Iterator[str]:
        """Names of the bits that are set, as the schema writes them."""
        return (name for name, bit in self.choices.items() if self >> bit & 1)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {int(self):#x}: {', '.join(self.names())}>"

    @classmethod
    def from_value(cls, value: int | Iterable[str] | None) -> int:
        """The bits of an integer, or of the names of choices."""
        if isinstance(value, int):
            return value
        if value is None or isinstance(value, str):
            raise TypeError("must be an integer or the names of choices")
        bits = 0
        for name in value:
            if name not in cls.choices:
                raise ValueError(f"has no choice '{name}', only {', '.join(cls.choices)}")
            bits |= 1 << cls.choices[name]
        return bits


def set_class(kind: SetType) -> type[BitSet]:
    """The class for a set of the schema."""
    made: type[BitSet] = type(kind.name, (BitSet,), {"choices": dict(kind.choices), "__module__": __name__})
    for name, bit in kind.choices:
        if not hasattr(BitSet, name):
            setattr(made, name, made(1 << bit))
    return made


# --- scalars ---------------------------------------------------------------------------------------------------


def text_encoder(kind: Scalar) -> Any:
    """From text to the bytes of an array of characters, which ``struct`` pads with zeros."""
    length, encoding = kind.length, kind.encoding

    def encode(value: str | bytes | None) -> bytes:
        if value is None:
            return b""
        raw = value.encode(encoding) if isinstance(value, str) else bytes(memoryview(value))
        if len(raw) > length:
            raise ValueError(f"{len(raw)} bytes; at most {length}")
        return raw

    return encode


def bytes_encoder(kind: Scalar) -> Any:
    """From bytes or small integers to the bytes of an array of ``uint8``."""
    length, null = kind.length, bytes([int(kind.null)]) * kind.length

    def encode(value: Iterable[int] | None) -> bytes:
        if value is None:
            return null
        if isinstance(value, int):
            raise TypeError(f"must be {length} bytes")
        raw = bytes(value)
        if len(raw) != length:
            raise ValueError(f"{len(raw)} bytes; exactly {length}")
        return raw

    return encode


def array_encoder(kind: Scalar, packer: struct.Struct) -> Any:
    """From numbers to the bytes of an array of them."""
    nulls = packer.pack(*[kind.null] * kind.length)

    def encode(value: Iterable[Any] | None) -> bytes:
        return nulls if value is None else packer.pack(*value)

    return encode


def character_encoder(kind: Scalar) -> Any:
    """From a character to its byte."""
    null = bytes([int(kind.null)])

    def encode(value: str | bytes | None) -> bytes:
        if value is None:
            return null
        return value.encode("latin-1") if isinstance(value, str) else bytes(memoryview(value))

    return encode


def constant_value(member: Member, enums: Mapping[EnumType, type[enum.Enum]]) -> Any:
    """A constant as Python shows it: a member of its enum, a number, or text."""
    if isinstance(member.type, EnumType):
        values = _values_of(member.type, enums[member.type])
        return next(found for found, value in values if value == member.constant)
    return member.constant
