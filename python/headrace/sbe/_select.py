"""One template's messages out of a batch, as columns."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from headrace._base.extras import needs
from headrace._base.names import publish
from headrace.sbe._batch import Batch, Integers, as_lengths, gather
from headrace.sbe._block import Blocks
from headrace.sbe._errors import DecodeError
from headrace.sbe._explain import explain
from headrace.sbe._model import Composite
from headrace.sbe._tail import Entries, Runs, TailReader

if TYPE_CHECKING:
    import pyarrow as pa

    from headrace.sbe._template import Template

__all__ = ["Selection"]


class Selection:
    """The messages of one template that a batch holds. Immutable and thread-safe.

    The constructor reads the header of every message and checks bounds, once; columns are made on demand. Any array may
    share memory with the batch.
    """

    def __init__(self, codec: Template, batch: Batch) -> None:
        self._codec = codec
        self._batch = batch
        self._order = codec.schema.order
        self._header_length = len(codec.header_bytes)
        self._is_even = self._is_all_ours_alike()
        if not self._is_even:
            self._require_headers()
        self._count = len(batch) if self._is_even else len(self.rows)
        self._blocks = self._even_blocks() if self._is_even else self._gathered_blocks()

    def __len__(self) -> int:
        return self._count

    # --- which messages ----------------------------------------------------------------------------------------

    def _is_all_ours_alike(self) -> bool:
        """Whether every message is of this template as this schema writes it, at equal distances."""
        batch, header = self._batch, self._codec.header_bytes
        length = self._header_length
        if (
            not self._codec.has_plain_header
            or batch.stride < length + self._codec.block_length
            or not len(batch)
        ):
            return False
        # As 64-bit numbers where that fits, which numpy compares many times faster than bytes.
        dtype = np.dtype("u8") if length == 8 else np.dtype((np.void, length))
        wanted = np.frombuffer(header, dtype)[0]
        found = np.ndarray(
            (len(batch),), dtype, buffer=batch.payload, offset=batch.first, strides=(batch.stride,)
        )
        return bool((found == wanted).all())

    def _require_headers(self) -> None:
        batch = self._batch
        too_short = np.flatnonzero(batch.ends - batch.starts < self._header_length)
        if len(too_short):
            index = int(too_short[0])
            have = int(batch.ends[index] - batch.starts[index])
            reason = f"the message header takes {self._header_length} bytes and {have} are there"
            raise DecodeError("", "", 0, reason, index=index)

    @cached_property
    def rows(self) -> npt.NDArray[np.intp]:
        """The indices of these messages in the batch: ``batch.positions[selection.rows]`` are their positions."""
        starts, codec = self._batch.starts, self._codec
        if self._is_even:
            return np.arange(len(self._batch))
        is_ours = self._header_column("templateId", starts) == codec.template_id
        is_ours &= self._header_column("schemaId", starts) == codec.schema.header_schema_id
        return np.flatnonzero(is_ours)

    @cached_property
    def foreign_rows(self) -> npt.NDArray[np.intp]:
        """The indices of messages in the batch whose header names another schema: they are none of this one's."""
        if self._is_even:
            return np.arange(0)
        schema_ids = self._header_column("schemaId", self._batch.starts)
        return np.flatnonzero(schema_ids != self._codec.schema.header_schema_id)

    @cached_property
    def _starts(self) -> Integers:
        return self._batch.starts[self.rows] + self._header_length

    @cached_property
    def _versions(self) -> Integers:
        return as_lengths(self._header_column("version", self._starts - self._header_length))

    @cached_property
    def _block_lengths(self) -> Integers:
        return as_lengths(self._header_column("blockLength", self._starts - self._header_length))

    def _even_blocks(self) -> Blocks:
        batch = self._batch
        return Blocks.strided(
            self._codec.table, batch.payload, batch.first + self._header_length, batch.stride, len(batch)
        )

    def _gathered_blocks(self) -> Blocks:
        table = self._codec.table
        levels = table.levels(self._versions)
        fits = self._block_lengths >= table.required[levels]
        fits &= self._starts + self._block_lengths <= self._batch.ends[self.rows]
        if not fits.all():
            self._fail(int(np.flatnonzero(~fits)[0]))
        return Blocks.gathered(table, self._batch.payload, self._starts, levels)

    def _header_column(self, name: str, starts: Integers) -> npt.NDArray[Any]:
        member = self._codec.schema.header.member(name)
        assert member is not None
        if member.is_constant:
            return np.full(len(starts), member.constant)
        assert not isinstance(member.type, Composite)
        kind = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}[member.type.primitive.size]
        return gather(self._batch.payload, starts + member.offset, f"{self._order}{kind}")

    def _fail(self, index: int) -> NoReturn:
        """Raise the error for a message of this selection."""
        row = int(self.rows[index])
        explain(
            self._codec.model,
            self._order,
            self._batch.message(row),
            self._header_length,
            int(self._block_lengths[index]),
            int(self._versions[index]),
            index=row,
        )

    # --- numpy -------------------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """The columns of the fixed block; a member of a composite is ``price.mantissa``."""
        return list(self._codec.table.leaves)

    def records(self) -> npt.NDArray[Any]:
        """The fixed blocks as an array of records, without copying where messages lie at equal distances.

        Values are as on the wire, in the schema's byte order.

        Raises:
            ValueError: Different versions of the schema wrote the messages.
        """
        return self._blocks.records()

    def column(self, name: str) -> npt.NDArray[Any]:
        """One column, in this machine's byte order: enums and sets as numbers, text as numpy's byte strings.

        A null is the null value of the field's type; :meth:`nulls` tells where.
        """
        if name not in self._codec.table.leaves:
            raise KeyError(f"{name}: the columns are {', '.join(self.names)}")
        return self._blocks.column(name)

    def columns(self, names: Iterable[str] | None = None) -> dict[str, npt.NDArray[Any]]:
        """Columns by name, all of the fixed block by default."""
        return {name: self.column(name) for name in (self.names if names is None else names)}

    def nulls(self, name: str) -> npt.NDArray[np.bool_]:
        """Where a column is null: an optional field that is not set, or one that the writer's version lacked."""
        found = self._blocks.nulls(name, self.column(name))
        return np.zeros(len(self), np.bool_) if found is None else found

    # --- arrow -------------------------------------------------------------------------------------------------

    def to_arrow(self, *, enums: str = "dictionary", names: Iterable[str] | None = None) -> pa.RecordBatch:
        """An Arrow record batch; see :meth:`MessageCodec.arrow_schema` for its columns.

        Raises:
            DecodeError: A message is truncated, a value is not in its enum, or text does not have its stated encoding.
        """
        with needs("arrow"):
            from headrace.sbe._arrow import ArrowBuilder

        return ArrowBuilder(self._codec, enums, names).build(self)

    @property
    def blocks(self) -> Blocks:
        """The fixed blocks."""
        return self._blocks

    def fail_at_field(self, index: int, field: str, reason: str) -> NoReturn:
        """Raise the error for one message, or `reason` if the message by itself is right."""
        try:
            self._fail(index)
        except DecodeError as error:
            if error.field:
                raise
        raise DecodeError(self._codec.name, field, 0, reason, index=int(self.rows[index]))

    def tail(self) -> dict[str, Runs | Entries]:
        """Groups and data after the blocks, of a template whose groups are flat."""
        body = self._codec.model.body
        reader = TailReader(
            self._order,
            self._batch.payload,
            self._starts + self._block_lengths,
            self._batch.ends[self.rows],
            self._versions,
            self._fail,
        )
        found: dict[str, Runs | Entries] = {}
        for group in body.groups:
            found[group.name] = reader.entries(group, self._codec.group_table(group))
        for data in body.data:
            found[data.name] = reader.data(data)
        return found

    def decoded(self) -> list[Any]:
        """Every message decoded by itself, for templates whose groups hold groups or data."""
        decode = self._codec.decode_at
        messages = []
        for index, row in enumerate(self.rows):
            try:
                lengths = int(self._block_lengths[index]), int(self._versions[index])
                messages.append(decode(self._batch.message(int(row)), self._header_length, *lengths)[0])
            except DecodeError:
                self._fail(index)
        return messages

    def __repr__(self) -> str:
        return f"Selection({self._codec.name}, {self._count} messages)"


publish("headrace.sbe", globals(), __all__)
