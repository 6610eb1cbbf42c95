"""Explains why bytes are not a valid message: walks the model field by field until something is wrong.

Slow on purpose. The generated decoders only report that something is wrong; this reports what, and where.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, NoReturn

from headrace.sbe._codegen import EMPTY_ENTRIES_MAX, field_picker, tail_length_min
from headrace.sbe._errors import DecodeError
from headrace.sbe._model import Body, Composite, Data, EnumType, Group, Member, Message, Scalar

__all__ = ["explain"]


def explain(
    message: Message,
    order: str,
    data: Any,
    start: int,
    block_length: int,
    version: int,
    *,
    index: int | None = None,
) -> NoReturn:
    """Raise the :class:`DecodeError` that explains the fault in the block at `start`, or after it."""
    walk = _Walk(message.name, order, data, version, index)
    end = walk.body(message.body, "", start, block_length)
    raise walk.error("", end, "cannot be decoded")


class _Walk:
    def __init__(self, template: str, order: str, data: Any, version: int, index: int | None) -> None:
        self._template = template
        self._order = order
        self._data = data
        self._size = len(data)
        self._version = version
        self._index = index

    def error(self, field: str, offset: int, reason: str) -> DecodeError:
        return DecodeError(self._template, field, offset, reason, index=self._index)

    def _need(self, field: str, offset: int, length: int, what: str) -> None:
        if not 0 <= offset <= self._size - length:
            left = max(self._size - offset, 0)
            raise self.error(field, offset, f"{what} takes {length} bytes and {left} are left")

    def body(self, body: Body, path: str, start: int, block_length: int) -> int:
        self._members(body.wire_fields, path, start, start + block_length)
        self._need(path.rstrip("."), start, block_length, "the block")
        at = start + block_length
        for group in body.groups:
            if group.since <= self._version:
                at = self._group(group, f"{path}{group.name}", at)
        for data in body.data:
            if data.since <= self._version:
                at = self._var_data(data, f"{path}{data.name}", at)
        return at

    def _members(self, members: Iterable[Member], path: str, start: int, end: int) -> None:
        for member in members:
            if member.since > self._version:
                continue
            field, offset = f"{path}{member.name}", start + member.offset
            if offset + member.size > end:
                reason = f"lies outside the block, which its writer says is {end - start} bytes long"
                raise self.error(field, offset, reason)
            self._need(field, offset, member.size, "the field")
            if isinstance(member.type, Composite):
                wire = [inner for inner in member.type.members if not inner.is_constant]
                self._members(wire, f"{field}.", offset, offset + member.size)
            else:
                self._value(member, field, offset)

    def _value(self, member: Member, field: str, offset: int) -> None:
        kind = member.type
        if isinstance(kind, EnumType):
            code = "B" if kind.primitive.name == "char" else kind.primitive.code
            (value,) = struct.unpack_from(f"{self._order}{code}", self._data, offset)
            if value != kind.null and value not in dict(kind.values).values():
                raise self.error(field, offset, f"{value} is not a value of enum {kind.name}")
        elif isinstance(kind, Scalar) and kind.is_text:
            raw = bytes(self._data[offset : offset + kind.size]).partition(b"\0")[0]
            self._text(raw, kind.encoding, field, offset)

    def _text(self, raw: bytes, encoding: str, field: str, offset: int) -> None:
        try:
            raw.decode(encoding)
        except UnicodeError as error:
            raise self.error(field, offset, f"is not {encoding} text: {error}") from None

    def _group(self, group: Group, path: str, at: int) -> int:
        self._need(path, at, group.header.size, "the group's header")
        block_length, count = field_picker(
            self._order, group.header, group.block_length.name, group.count.name
        )(self._data, at)
        at += group.header.size
        least = block_length + tail_length_min(group.body, self._version)
        if count > EMPTY_ENTRIES_MAX and not least:
            raise self.error(path, at, f"{count} entries without bytes; at most {EMPTY_ENTRIES_MAX}")
        if count * least > self._size - at:
            reason = (
                f"{count} entries of {least} bytes or more do not fit in the {self._size - at} that are left"
            )
            raise self.error(path, at, reason)
        for number in range(count):
            at = self.body(group.body, f"{path}[{number}].", at, block_length)
        return at

    def _var_data(self, data: Data, path: str, at: int) -> int:
        self._need(path, at, data.start, "the length")
        (length,) = field_picker(self._order, data.header, data.length.name)(self._data, at)
        at += data.start
        self._need(path, at, length, "the data")
        if data.encoding:
            self._text(bytes(self._data[at : at + length]), data.encoding, path, at)
        return at + length
