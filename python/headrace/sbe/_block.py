"""The fixed blocks of many messages, or of many entries of a group, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.sbe._batch import Bytes, Integers, gather
from headrace.sbe._model import Body, Composite, EnumType, Member, Scalar
from headrace.sbe._values import Naming

__all__ = ["Blocks", "Leaf", "Table", "leaves"]

_KINDS = {"c": "S1", "b": "i1", "B": "u1", "h": "i2", "H": "u2", "i": "i4", "I": "u4", "q": "i8", "Q": "u8"}
_KINDS |= {"f": "f4", "d": "f8"}


@dataclass(frozen=True)
class Leaf:
    """A member with a single value: a field, or a member of a composite at any depth."""

    path: str
    member: Member
    offset: int
    since: int
    dtype: np.dtype[Any]

    @property
    def end(self) -> int:
        """Offset of the byte after the field, in the block."""
        return self.offset + self.member.size

    @property
    def null(self) -> Any:
        """The null value of its type."""
        kind = self.member.type
        if isinstance(kind, (Scalar, EnumType)):
            return bytes([int(kind.null)]) if kind.primitive.name == "char" else kind.null
        return 0


def leaves(
    members: Iterable[Member], naming: Naming, order: str, prefix: str = "", base: int = 0, since: int = 0
) -> Iterator[Leaf]:
    """Every leaf of a block, in order."""
    wire = [member for member in members if not member.is_constant]
    for name, member in zip(naming.all(member.name for member in wire), wire, strict=True):
        path, offset, newest = f"{prefix}{name}", base + member.offset, max(since, member.since)
        if isinstance(member.type, Composite):
            yield from leaves(member.type.members, naming, order, f"{path}.", offset, newest)
        else:
            yield Leaf(path, member, offset, newest, _dtype(member, order))


def _dtype(member: Member, order: str) -> np.dtype[Any]:
    kind = member.type
    assert not isinstance(kind, Composite)
    if isinstance(kind, Scalar) and kind.is_text:
        return np.dtype(f"S{kind.length}" if kind.length else "V0")
    plain = np.dtype(f"{order}{_KINDS[kind.primitive.code]}")
    if isinstance(kind, Scalar) and kind.length != 1:
        return np.dtype((plain, (kind.length,)))
    return plain


class Table:
    """Facts of the schema that the columns of a body need, worked out once."""

    def __init__(self, body: Body, thresholds: list[int], naming: Naming, order: str) -> None:
        self.body = body
        self.naming = naming
        self.order = order
        self.thresholds = thresholds
        self.leaves = {leaf.path: leaf for leaf in leaves(body.fields, naming, order)}
        # For each version level: the record type, and how long a block must be to hold it.
        self.dtypes = [self._record(version) for version in (0, *thresholds)]
        self.required = np.array([dtype.itemsize for dtype in self.dtypes], np.int64)

    @property
    def level(self) -> int:
        """The level of the newest version."""
        return len(self.thresholds)

    def levels(self, versions: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        """The level of each version."""
        return np.searchsorted(np.array(self.thresholds, np.int64), versions.astype(np.int64), side="right")

    def _record(self, version: int) -> np.dtype[Any]:
        present = [leaf for leaf in self.leaves.values() if leaf.since <= version]
        return np.dtype(
            {
                "names": [leaf.path for leaf in present],
                "formats": [leaf.dtype for leaf in present],
                "offsets": [leaf.offset for leaf in present],
                "itemsize": max((leaf.end for leaf in present), default=0),
            }
        )


@dataclass(frozen=True)
class _Part:
    """Blocks of one version level: their rows, or ``None`` for all, and their records."""

    level: int
    rows: npt.NDArray[np.intp] | None
    records: npt.NDArray[Any]


class Blocks:
    """Fixed blocks whose bounds were checked, each read as its writer's version laid it out."""

    def __init__(self, table: Table, count: int, parts: list[_Part]) -> None:
        self.table = table
        self.count = count
        self._parts = parts

    @classmethod
    def strided(cls, table: Table, payload: Bytes, start: int, stride: int, count: int) -> Blocks:
        """Blocks of the newest version at equal distances: a view, nothing is copied."""
        dtype = table.dtypes[table.level]
        if not count or not dtype.itemsize:
            return cls(table, count, [_Part(table.level, None, np.zeros(count, dtype))])
        records = np.ndarray((count,), dtype, buffer=payload, offset=start, strides=(stride,))
        return cls(table, count, [_Part(table.level, None, records)])

    @classmethod
    def gathered(cls, table: Table, payload: Bytes, starts: Integers, levels: npt.NDArray[np.intp]) -> Blocks:
        """Blocks anywhere, of any versions, copied together by version."""
        found = np.unique(levels)
        if len(found) == 1:
            level = int(found[0])
            return cls(table, len(starts), [_Part(level, None, gather(payload, starts, table.dtypes[level]))])
        parts = []
        for level in found:
            rows = np.flatnonzero(levels == level)
            parts.append(_Part(int(level), rows, gather(payload, starts[rows], table.dtypes[level])))
        return cls(table, len(starts), parts)

    def records(self) -> npt.NDArray[Any]:
        """All blocks as records, where one version wrote them."""
        if len(self._parts) != 1:
            raise ValueError("the messages were written by different versions of the schema; use columns()")
        return self._parts[0].records

    def column(self, path: str) -> npt.NDArray[Any]:
        """One leaf of every block, in this machine's byte order; the null value for blocks that lack it."""
        leaf = self.table.leaves[path]
        native = leaf.dtype.newbyteorder("=")
        part = self._parts[0] if self._parts else None
        if part is not None and part.rows is None and path in (part.records.dtype.names or ()):
            return np.ascontiguousarray(part.records[path].astype(native.base, copy=False))
        made = (
            np.zeros(self.count, native)
            if leaf.dtype.kind in "SV"
            else np.full(self.count, leaf.null, native)
        )
        for part in self._parts:
            if path in (part.records.dtype.names or ()):
                made[slice(None) if part.rows is None else part.rows] = part.records[path]
        return made

    def missing(self, since: int) -> npt.NDArray[np.bool_] | None:
        """Which blocks were written before version `since`; ``None`` if no block was."""
        level = self.table.levels(np.array([since]))[0]
        mask = np.zeros(self.count, np.bool_)
        for part in self._parts:
            if part.level < level:
                mask[slice(None) if part.rows is None else part.rows] = True
        return mask if mask.any() else None

    def nulls(self, path: str, column: npt.NDArray[Any]) -> npt.NDArray[np.bool_] | None:
        """Which values of a leaf's column are null; ``None`` if no value is."""
        leaf = self.table.leaves[path]
        mask = self.missing(leaf.since) if leaf.since else None
        kind = leaf.member.type
        if isinstance(kind, EnumType) or (leaf.member.optional and column.ndim == 1):
            is_nan = isinstance(leaf.null, float) and leaf.null != leaf.null
            own = np.isnan(column) if is_nan else column == self._null_item(leaf)
            mask = own if mask is None else mask | own
        return mask if mask is not None and mask.any() else None

    @staticmethod
    def _null_item(leaf: Leaf) -> Any:
        # numpy drops trailing zeros of characters, so that the zero character is no character.
        return leaf.null.rstrip(b"\0") if isinstance(leaf.null, bytes) else leaf.null
