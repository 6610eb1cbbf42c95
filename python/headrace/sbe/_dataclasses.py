"""Dataclasses as the messages of a schema: bytes to values and back.

A sender of another version may have a shorter block, whose missing fields have the defaults of their class, or a longer
one, whose end is skipped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin, get_type_hints

from headrace.sbe._errors import DecodeError

if TYPE_CHECKING:
    from headrace._base.exceptions import HeadraceError
    from headrace.sbe._schema import Schema

__all__ = ["MessageClasses"]

_HEADER_LENGTH = 8
_PLAIN = (int, str, bytes)


class MessageClasses:
    """The classes of a protocol's messages: each has the name of its message, and fields of the schema's names.

    A field is an integer, text, bytes, a class to make of an integer, or a tuple of a class for the entries of a group.

    Args:
        schema: Returns the schema; called when it is needed.
        schema_id: The schema id of all messages.
        kinds: The classes.
        error: Makes the error for bytes of a message, whose name is ``None`` while it is unknown.
    """

    def __init__(
        self,
        schema: Callable[[], Schema],
        schema_id: int,
        kinds: Iterable[type[Any]],
        error: Callable[[str, bytes | memoryview, str | None], HeadraceError],
    ) -> None:
        self._schema, self._schema_id, self._error = schema, schema_id, error
        self._kinds = {kind.__name__: kind for kind in kinds}

    def encode(self, message: Any) -> bytes:
        """The bytes of a message."""
        kind: Any = type(message)
        values = {name: _plain(getattr(message, name)) for name in _fields(kind)}
        data: bytes = self._schema()[kind.__name__].encode(**values)
        return data

    def decode(self, data: bytes | memoryview) -> Any:
        """The message that some bytes begin with; ``None`` for one without a class, which is ignored.

        Raises:
            HeadraceError: The bytes are of another schema, are truncated, or hold values that the schema does not have.
        """
        if len(data) < _HEADER_LENGTH:
            raise self._error(f"length={len(data)} is below the 8 bytes of a message header", data, None)
        schema_id = int.from_bytes(data[4:6], "little")
        if schema_id != self._schema_id:
            raise self._error(f"schema_id={schema_id} where {self._schema_id} is expected", data, None)
        codec = self._schema().template(int.from_bytes(data[2:4], "little"))
        if codec is None:
            return None
        try:
            record = codec.decode(data)
        except DecodeError as wrong:
            raise self._error(str(wrong), data, codec.name) from None
        kind: Any = self._kinds.get(codec.name)
        if kind is None:
            return None
        plain = _plain_fields(kind)
        if plain is not None:
            found = plain.pick(record)
            if None not in found:
                return kind(**dict(zip(plain.names, found, strict=True)))
        values = _values(kind, record)
        for name in _required(kind):
            if name not in values:
                raise self._error(f"{codec.name}.{name} is missing", data, codec.name)
        return kind(**values)


@cache
def _fields(kind: Any) -> dict[str, Callable[[Any], object]]:
    """By field, the function that converts its value in a record."""
    made: dict[str, Callable[[Any], object]] = {}
    for name, hint in get_type_hints(kind).items():
        args = [arg for arg in get_args(hint) if arg is not NoneType]
        if get_origin(hint) is tuple:
            made[name] = _entries_of(args[0])
        else:
            of = args[0] if args else hint
            made[name] = _same if of in _PLAIN else of
    return made


class _PlainFields(NamedTuple):
    """Of a class whose fields are all as they are in a record, which is quicker."""

    names: tuple[str, ...]
    pick: Callable[[Any], tuple[Any, ...]]


@cache
def _plain_fields(kind: Any) -> _PlainFields | None:
    made = _fields(kind)
    # Of one field the picker returns no tuple.
    if len(made) < 2 or any(make is not _same for make in made.values()):
        return None
    return _PlainFields(tuple(made), attrgetter(*made))


@cache
def _required(kind: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING]


def _entries_of(kind: type[Any]) -> Callable[[Any], object]:
    return lambda entries: tuple(kind(**_values(kind, entry)) for entry in entries)


def _same(value: Any) -> Any:
    return value


def _values(kind: Any, record: Any) -> dict[str, Any]:
    """The values of a record; fields without one are left to their defaults."""
    values = ((name, make, getattr(record, name)) for name, make in _fields(kind).items())
    return {name: make(value) for name, make, value in values if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [dataclasses.asdict(entry) for entry in value]
    return int(value) if isinstance(value, int) else value
