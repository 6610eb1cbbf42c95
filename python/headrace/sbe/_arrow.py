"""Arrow columns of a selection."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.sbe._batch import Bytes, Integers
from headrace.sbe._block import Blocks, Leaf
from headrace.sbe._model import Composite, Data, EnumType, Group, Member, Scalar, SetType
from headrace.sbe._tail import Entries, Runs
from headrace.sbe._values import BitSet, Record

if TYPE_CHECKING:
    from headrace.sbe._template import Selected, Template

__all__ = ["ASCII_SUPERSET", "ENUM_STYLES", "ArrowBuilder"]

ENUM_STYLES = ("dictionary", "name", "value")
_PRIMITIVES = {
    "char": pa.string(),
    "float": pa.float32(),
    "double": pa.float64(),
    **{
        f"{sign}int{bits}": getattr(pa, f"{sign}int{bits}")()
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
}
_OFFSET_MAX = (1 << 31) - 1
# An encoding whose bytes Arrow can take as they are.
_UTF_8 = ("utf-8", "ascii")
# Encodings, by the names of their codecs, in which each byte below 0x80 is that character of ASCII wherever it stands.
# In others, such as UTF-16 and ISO 2022, such bytes are parts of other characters.
ASCII_SUPERSET = re.compile(r"ascii|utf-8|iso8859-\d+|cp125\d|koi8-[rtu]")


class _Unfit(Exception):
    """A value that Arrow cannot hold: which row, and why."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row


class ArrowBuilder:
    """Makes the schema and the columns of one template."""

    def __init__(self, codec: Template, enums: str, names: Iterable[str] | None) -> None:
        if enums not in ENUM_STYLES:
            raise ValueError(f"enums={enums!r}: must be one of {', '.join(ENUM_STYLES)}")
        self._codec = codec
        self._enums = enums
        self._naming = codec.table.naming
        body = codec.model.body
        items: tuple[Member | Group | Data, ...] = (*body.wire_fields, *body.groups, *body.data)
        known = dict(zip(self._naming.all(item.name for item in items), items, strict=True))
        wanted = list(known) if names is None else list(names)
        unknown = [name for name in wanted if name not in known]
        if unknown:
            raise KeyError(f"{', '.join(unknown)}: the columns are {', '.join(known)}")
        self._items = {name: known[name] for name in wanted}

    # --- types -------------------------------------------------------------------------------------------------

    def schema(self) -> pa.Schema:
        """The schema of every batch."""
        return pa.schema([pa.field(name, self._item_type(item)) for name, item in self._items.items()])

    def _item_type(self, item: Member | Group | Data) -> pa.DataType:
        if isinstance(item, Group):
            return pa.list_(self._group_type(item))
        if isinstance(item, Data):
            return pa.string() if item.encoding else pa.binary()
        return self._member_type(item)

    def _group_type(self, group: Group) -> pa.DataType:
        body = group.body
        items: tuple[Member | Group | Data, ...] = (*body.wire_fields, *body.groups, *body.data)
        names = self._naming.all(item.name for item in items)
        return pa.struct(list(zip(names, map(self._item_type, items), strict=True)))

    def _member_type(self, member: Member) -> pa.DataType:
        kind = member.type
        if isinstance(kind, Composite):
            wire = [inner for inner in kind.members if not inner.is_constant]
            names = self._naming.all(inner.name for inner in wire)
            return pa.struct(list(zip(names, map(self._member_type, wire), strict=True)))
        if isinstance(kind, EnumType):
            return self._enum_type(kind)
        primitive = _PRIMITIVES[kind.primitive.name]
        if isinstance(kind, SetType) or kind.length == 1 or kind.is_text:
            return primitive
        return pa.binary(kind.length) if kind.is_bytes else pa.list_(primitive, kind.length)

    def _enum_type(self, kind: EnumType) -> pa.DataType:
        if self._enums == "value":
            return _PRIMITIVES[kind.primitive.name]
        if self._enums == "name":
            return pa.string()
        return pa.dictionary(pa.int8() if len(kind.values) <= 127 else pa.int32(), pa.string())

    # --- columns -----------------------------------------------------------------------------------------------

    def build(self, selection: Selected) -> pa.RecordBatch:
        """The columns of the selected messages."""
        tail = self._tail(selection)
        arrays = []
        for name, item in self._items.items():
            try:
                if isinstance(item, Member):
                    arrays.append(self._member(selection.blocks, item, name))
                else:
                    arrays.append(self._tail_array(item, name, tail))
            except _Unfit as fault:
                selection.fail_at_field(fault.row, name, str(fault))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema())

    def _tail(self, selection: Selected) -> dict[str, Runs | Entries] | list[Any]:
        if all(isinstance(item, Member) for item in self._items.values()):
            return {}
        if all(group.body.is_flat for group in self._codec.model.body.groups):
            return selection.tail()
        return selection.decoded()

    def _tail_array(
        self, item: Group | Data, name: str, tail: dict[str, Runs | Entries] | list[Any]
    ) -> pa.Array:
        if isinstance(tail, list):
            values = [self._plain(getattr(message, name)) for message in tail]
            return pa.array(values, self._item_type(item))
        found = tail[item.name]
        if isinstance(found, Runs):
            assert isinstance(item, Data)
            return _text(found.payload, found.offsets, item.encoding) if item.encoding else _binary(found)
        assert isinstance(item, Group)
        entries = self._struct(found.blocks, item.body.fields, "", None)
        return pa.ListArray.from_arrays(_offsets(found.offsets), entries)

    def _plain(self, value: Any) -> Any:
        """A decoded value as Arrow's own conversion takes it."""
        if isinstance(value, Record):
            return {name: self._plain(item) for name, item in zip(value._fields, value, strict=True)}
        if isinstance(value, (list, tuple)):
            return [self._plain(item) for item in value]
        if isinstance(value, enum.Enum):
            return value.value if self._enums == "value" else value.name
        return int(value) if isinstance(value, BitSet) else value

    def _struct(
        self, blocks: Blocks, members: Iterable[Member], prefix: str, mask: npt.NDArray[np.bool_] | None
    ) -> pa.Array:
        wire = [member for member in members if not member.is_constant]
        names = self._naming.all(member.name for member in wire)
        arrays = [
            self._member(blocks, member, f"{prefix}{name}") for name, member in zip(names, wire, strict=True)
        ]
        if not arrays:
            # Of constants alone: no column says how many there are.
            return pa.Array.from_buffers(pa.struct([]), blocks.count, [_validity(mask)])
        fields = [pa.field(name, self._member_type(member)) for name, member in zip(names, wire, strict=True)]
        return pa.StructArray.from_arrays(
            arrays, fields=fields, mask=None if mask is None else pa.array(mask, pa.bool_())
        )

    def _member(self, blocks: Blocks, member: Member, path: str) -> pa.Array:
        if isinstance(member.type, Composite):
            mask = blocks.missing(member.since) if member.since else None
            return self._struct(blocks, member.type.members, f"{path}.", mask)
        column = blocks.column(path)
        return self._leaf(blocks.table.leaves[path], column, blocks.nulls(path, column))

    def _leaf(self, leaf: Leaf, column: npt.NDArray[Any], nulls: npt.NDArray[np.bool_] | None) -> pa.Array:
        kind = leaf.member.type
        if isinstance(kind, EnumType) and self._enums != "value":
            return self._enum(kind, column, nulls)
        if isinstance(kind, Scalar) and kind.length != 1:
            return _fixed_length(kind, column, nulls)
        if column.dtype.kind == "S":
            return _characters(column, nulls)
        return _primitive(_PRIMITIVES[kind.primitive.name], column, nulls)  # type: ignore[union-attr]

    def _enum(
        self, kind: EnumType, column: npt.NDArray[Any], nulls: npt.NDArray[np.bool_] | None
    ) -> pa.Array:
        codes = column.view(np.uint8) if column.dtype.kind == "S" else column
        values = np.array([value for _, value in kind.values], codes.dtype)
        # Of two names of one value, the first; no value, where the enum has none.
        order = np.argsort(values, kind="stable")
        places = np.minimum(np.searchsorted(values[order], codes), max(len(values) - 1, 0))
        indices = order[places] if len(values) else places
        is_unknown = values[indices] != codes if len(values) else np.ones(len(codes), np.bool_)
        if nulls is not None:
            is_unknown &= ~nulls
        if is_unknown.any():
            row = int(np.flatnonzero(is_unknown)[0])
            raise _Unfit(row, f"{codes[row]} is not a value of enum {kind.name}")
        chosen = _primitive(pa.int8() if len(values) <= 127 else pa.int32(), indices, nulls)
        made = pa.DictionaryArray.from_arrays(
            chosen, pa.array([name for name, _ in kind.values], pa.string())
        )
        return made if self._enums == "dictionary" else made.cast(pa.string())


def _validity(nulls: npt.NDArray[np.bool_] | None) -> pa.Buffer | None:
    return None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))


def _primitive(kind: pa.DataType, column: npt.NDArray[Any], nulls: npt.NDArray[np.bool_] | None) -> pa.Array:
    values = np.ascontiguousarray(column.astype(kind.to_pandas_dtype(), copy=False))
    return pa.Array.from_buffers(kind, len(column), [_validity(nulls), pa.py_buffer(values)])


def _offsets(offsets: Integers) -> pa.Array:
    if int(offsets[-1]) > _OFFSET_MAX:
        raise ValueError(f"{offsets[-1]} bytes or entries in one column; an Arrow array holds {_OFFSET_MAX}")
    return pa.array(offsets.astype(np.int32), pa.int32())


def _binary(runs: Runs) -> pa.Array:
    buffers = [None, _offsets(runs.offsets).buffers()[1], pa.py_buffer(np.ascontiguousarray(runs.payload))]
    return pa.Array.from_buffers(pa.binary(), len(runs.offsets) - 1, buffers)


def _text(
    payload: Bytes, offsets: Integers, encoding: str, nulls: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    """Text of any length; `payload` split at `offsets`."""
    payload = np.ascontiguousarray(payload)
    is_high = bool((payload > 0x7F).any())
    is_ascii = not is_high and ASCII_SUPERSET.fullmatch(encoding) is not None
    if is_ascii or encoding in _UTF_8:
        if encoding == "ascii" and is_high:
            at = int(np.flatnonzero(payload > 0x7F)[0])
            raise _Unfit(int(np.searchsorted(offsets, at, side="right")) - 1, "is not ascii text")
        buffers = [_validity(nulls), _offsets(offsets).buffers()[1], pa.py_buffer(payload)]
        made = pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)
        if is_ascii or _is_valid(made):
            return made
    whole = payload.tobytes()
    texts: list[str | None] = []
    for row, (start, end) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        try:
            is_null = nulls is not None and bool(nulls[row])
            texts.append(None if is_null else whole[start:end].decode(encoding))
        except UnicodeError as error:
            raise _Unfit(row, f"is not {encoding} text: {error}") from None
    return pa.array(texts, pa.string())


def _is_valid(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _characters(column: npt.NDArray[Any], nulls: npt.NDArray[np.bool_] | None) -> pa.Array:
    """Single characters, of which every byte is one."""
    return _text(column.view(np.uint8), np.arange(len(column) + 1), "iso8859-1", nulls)


def _fixed_length(kind: Scalar, column: npt.NDArray[Any], nulls: npt.NDArray[np.bool_] | None) -> pa.Array:
    count = len(column)
    if kind.is_bytes:
        buffers = [_validity(nulls), pa.py_buffer(np.ascontiguousarray(column))]
        return pa.Array.from_buffers(pa.binary(kind.length), count, buffers)
    if not kind.is_text:
        items = _primitive(_PRIMITIVES[kind.primitive.name], column.reshape(-1), None)
        mask = None if nulls is None else pa.array(nulls, pa.bool_())
        return pa.FixedSizeListArray.from_arrays(items, kind.length, mask=mask)
    cells = np.ascontiguousarray(column).view(np.uint8).reshape(count, kind.length)
    is_end = cells == 0
    lengths = np.where(is_end.any(axis=1), is_end.argmax(axis=1), kind.length)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return _text(cells[np.arange(kind.length) < lengths[:, None]], offsets, kind.encoding, nulls)
