"""The flat groups and data after the blocks of many messages, found for all messages at once.

A group whose entries hold groups or data themselves cannot be found that way: where an entry begins depends on the
one before it. Messages with such a group are walked one by one, by the generated decoder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from headrace.sbe._batch import Bytes, Integers, as_lengths, gather
from headrace.sbe._block import Blocks, Table
from headrace.sbe._codegen import EMPTY_ENTRIES_MAX
from headrace.sbe._model import Composite, Data, Group, Member

__all__ = ["Entries", "Runs", "TailReader"]

Fail = Callable[[int], NoReturn]


@dataclass(frozen=True)
class Runs:
    """The bytes of one data item of every message: `payload` split at `offsets`."""

    payload: Bytes
    offsets: Integers


@dataclass(frozen=True)
class Entries:
    """The entries of one group of every message: those of message i are ``offsets[i]`` to ``offsets[i + 1]``."""

    blocks: Blocks
    offsets: Integers


class TailReader:
    """Reads groups and data in the order in which they lie, moving one cursor for each message.

    `fail` is called with the index of the first wrong message and raises its error.
    """

    def __init__(
        self,
        order: str,
        payload: Bytes,
        cursors: Integers,
        ends: Integers,
        versions: npt.NDArray[Any],
        fail: Fail,
    ) -> None:
        self._order = order
        self._payload = payload
        self._cursors = cursors.copy()
        self._ends = ends
        self._versions = versions.astype(np.int64)
        self._fail = fail

    def _require(self, is_right: npt.NDArray[np.bool_], rows: npt.NDArray[np.intp]) -> None:
        if not is_right.all():
            self._fail(int(rows[np.flatnonzero(~is_right)[0]]))

    def _header(
        self, header: Composite, length: int, since: int, *members: Member
    ) -> tuple[npt.NDArray[np.intp], list[Integers]]:
        """Rows that have this item, and the named numbers of its header; the cursors move past the header."""
        rows = np.flatnonzero(self._versions >= since)
        at = self._cursors[rows]
        self._require(at + length <= self._ends[rows], rows)
        numbers = [self._number(at + member.offset, member) for member in members]
        self._cursors[rows] += length
        return rows, numbers

    def _number(self, at: Integers, member: Member) -> Integers:
        assert not isinstance(member.type, Composite)
        code = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}[member.type.primitive.size]
        return as_lengths(gather(self._payload, at, f"{self._order}{code}"))

    def data(self, data: Data) -> Runs:
        """The next item of every message, which is data."""
        rows, (lengths,) = self._header(data.header, data.start, data.since, data.length)
        starts = self._cursors[rows]
        self._require(lengths <= self._ends[rows] - starts, rows)
        self._cursors[rows] += lengths
        counts = np.zeros(len(self._cursors), np.int64)
        counts[rows] = lengths
        offsets = _running_sum(counts)
        return Runs(self._payload[_ranges(starts, lengths)], offsets)

    def entries(self, group: Group, table: Table) -> Entries:
        """The next item of every message, which is a group whose entries are only blocks."""
        rows, (block_lengths, counts) = self._header(
            group.header, group.header.size, group.since, group.block_length, group.count
        )
        room = self._ends[rows] - self._cursors[rows]
        levels = table.levels(self._versions[rows])
        # Division, because the product of two hostile numbers would overflow.
        most = np.where(block_lengths == 0, EMPTY_ENTRIES_MAX, room // np.maximum(block_lengths, 1))
        self._require(counts <= most, rows)
        self._require((counts == 0) | (block_lengths >= table.required[levels]), rows)
        first = np.repeat(self._cursors[rows], counts)
        within = np.arange(len(first)) - np.repeat(_running_sum(counts)[:-1], counts)
        starts = first + within * np.repeat(block_lengths, counts)
        self._cursors[rows] += counts * block_lengths
        blocks = Blocks.gathered(table, self._payload, starts, np.repeat(levels, counts))
        every = np.zeros(len(self._cursors), np.int64)
        every[rows] = counts
        return Entries(blocks, _running_sum(every))


def _running_sum(counts: Integers) -> Integers:
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def _ranges(starts: Integers, lengths: Integers) -> Integers:
    """The indices ``starts[i]`` to ``starts[i] + lengths[i]``, one range after another."""
    offsets = _running_sum(lengths)
    return np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
