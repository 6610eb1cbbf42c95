"""Encoding and decoding of one template's messages."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace._base.extras import needs
from headrace.sbe._codegen import DECODE_FAULTS, BodyDecoder, Compiler, field_picker
from headrace.sbe._errors import DecodeError, EncodeError, UnknownTemplateError
from headrace.sbe._explain import explain
from headrace.sbe._model import Body, Group, Message, Scalar, SchemaModel

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from headrace.sbe._block import Table
    from headrace.sbe._select import Selection

__all__ = ["Header", "HeaderCodec", "MessageCodec", "readable"]


class Header(NamedTuple):
    """The header before every message."""

    block_length: int
    template_id: int
    schema_id: int
    version: int


_HEADER_NAMES = ("blockLength", "templateId", "schemaId", "version")


def readable(data: Any) -> Any:
    """`data` as bytes or as a view of bytes. Raises ``TypeError`` for what holds no contiguous bytes."""
    if type(data) is bytes:
        return data
    view = memoryview(data)
    return view.cast("B") if view.nbytes else b""


class HeaderCodec:
    """Reads and writes the message header of one schema."""

    def __init__(self, model: SchemaModel) -> None:
        self._model = model
        self._composite = model.header
        self.length = model.header.size
        self._read = _header_reader(model)
        # Whether it holds nothing but what every message of a template has in common.
        self.is_plain = model.header.size == sum(
            member.size for member in model.header.members if member.name in _HEADER_NAMES
        )

    def read(self, data: Any, offset: int) -> Header:
        """The header at `offset`, of this schema or another."""
        if not 0 <= offset <= len(data) - self.length:
            left = max(len(data) - offset, 0) if offset >= 0 else 0
            reason = f"the message header takes {self.length} bytes and {left} are there"
            raise DecodeError("", "", offset, reason)
        return Header(*self._read(data, offset))

    def write(self, message: Message) -> bytes:
        """Write the header of a message of this schema. Members that SBE does not define are zero."""
        values = {
            "blockLength": message.body.block_length,
            "templateId": message.template_id,
            "schemaId": self._model.schema_id,
            "version": self._model.version,
            "numGroups": len(message.body.groups),
            "numVarDataFields": len(message.body.data),
        }
        made = bytearray(self.length)
        for member in self._composite.members:
            kind = member.type
            if member.name in values and isinstance(kind, Scalar) and not member.is_constant:
                code = f"{self._model.order}{kind.primitive.code}"
                struct.pack_into(code, made, member.offset, values[member.name])
        return bytes(made)


def _header_reader(model: SchemaModel) -> Callable[[Any, int], tuple[int, ...]]:
    """Make a function that reads the numbers of a header; constants do not come from its bytes."""
    constants = model.header_constants
    names = [name for name in _HEADER_NAMES if name not in constants]
    read = field_picker(model.order, model.header, *names)
    if len(names) == len(_HEADER_NAMES):
        return read

    def read_with_constants(data: Any, offset: int) -> tuple[int, ...]:
        found = constants | dict(zip(names, read(data, offset), strict=True))
        return tuple(found[name] for name in _HEADER_NAMES)

    return read_with_constants


class MessageCodec:
    """Encodes and decodes the messages of one template. Immutable and thread-safe; nothing here blocks.

    ``encode`` takes the fields in the schema's order or by name, then groups and data::

        data = codec.encode(order_id=7, price=101.5)
        message = codec.decode(data)
        message.price

    Optional fields may be left out. They read as ``None`` if they hold the null value, or if the writer's version of
    the schema did not have them. Pass an enum as member, value or name, and a group as a sequence of mappings or
    tuples.

    Attributes:
        name: Name of the message in the schema.
        template_id: Its number in the header.
        block_length: Bytes of its fixed block.
        type: The record class that ``decode`` returns; its constants are attributes of the class.
        encode: Returns the bytes of a message, header included. Raises :class:`EncodeError`, and ``TypeError`` for
            an argument that is not a field.
        decode: ``decode(data, offset=0)`` returns the message whose header begins at `offset` of any bytes-like
            object. Raises :class:`DecodeError`. Bytes after the message are ignored.
        encode_body: Like ``encode`` without the header.
    """

    def __init__(self, model: SchemaModel, header: HeaderCodec, message: Message, compiler: Compiler) -> None:
        self.model = message
        self.name = message.name
        self.template_id = message.template_id
        self.block_length = message.body.block_length
        self.schema = model
        self._header = header
        self._compiler = compiler
        body = message.body
        self.type: type[Any] = compiler.record_class(message.name, body.fields, (*body.groups, *body.data))
        self._thresholds = sorted(body.versions())
        self._bodies: dict[int, BodyDecoder] = {}
        self.header_bytes = header.write(message)
        self.encode = compiler.encoder(body, self.header_bytes, message.name)
        self.encode.__qualname__ = f"{message.name}.encode"
        self.decode: Any = self._decode_any
        self.has_plain_header = header.is_plain
        if body.is_flat and header.is_plain:
            self.decode = compiler.flat_decoder(body, self.type, self.header_bytes, self._decode_any)

    def __repr__(self) -> str:
        return f"<MessageCodec {self.name} template_id={self.template_id}>"

    @cached_property
    def encode_body(self) -> Any:
        """Encodes the block and what follows it, without a header."""
        return self._compiler.encoder(self.model.body, b"", self.name)

    @property
    def encoded_length(self) -> int | None:
        """Bytes of every message, header included; ``None`` where groups or data follow the block."""
        return len(self.header_bytes) + self.block_length if self.model.body.is_flat else None

    def encode_into(self, buffer: Any, offset: int = 0, /, *args: Any, **fields: Any) -> int:
        """Encode into a writable buffer, such as a claim's, and return the message's length.

        Raises:
            EncodeError: A value does not fit, or the message does not fit in the buffer from `offset` on.
        """
        data = self.encode(*args, **fields)
        with memoryview(buffer) as view, view.cast("B") as target:
            if not 0 <= offset <= len(target) - len(data):
                reason = f"takes {len(data)} bytes; offset {offset} of a buffer of {len(target)} has no room"
                raise EncodeError(self.name, "", reason)
            target[offset : offset + len(data)] = data
        return len(data)

    def decode_from(self, data: Any, offset: int = 0) -> tuple[Any, int]:
        """Decode like ``decode``, and also return the offset of the byte after the message."""
        data = readable(data)
        header = self._header.read(data, offset)
        self._check(header, offset)
        return self.decode_at(data, offset + self._header.length, header.block_length, header.version)

    def decode_body(
        self, data: Any, offset: int = 0, *, block_length: int | None = None, version: int | None = None
    ) -> tuple[Any, int]:
        """Decode a message that is stored without its header.

        Args:
            data: Any bytes-like object.
            offset: Where the block begins.
            block_length: The block's length in the writer's schema; by default that of this schema.
            version: The version of the writer's schema; by default that of this schema.

        Returns:
            The message and the offset of the byte after it.

        Raises:
            DecodeError: The bytes are truncated or corrupt.
        """
        data = readable(data)
        block_length = self.block_length if block_length is None else block_length
        version = self.schema.version if version is None else version
        if not 0 <= offset <= len(data):
            raise DecodeError(self.name, "", offset, f"outside the {len(data)} bytes given")
        return self.decode_at(data, offset, block_length, version)

    def _decode_any(self, data: Any, offset: int = 0) -> Any:
        return self.decode_from(data, offset)[0]

    def _check(self, header: Header, offset: int) -> None:
        if header.schema_id != self.schema.header_schema_id:
            reason = f"schema id {header.schema_id}, not {self.schema.header_schema_id}"
            raise UnknownTemplateError(self.name, "", offset, reason)
        if header.template_id != self.template_id:
            reason = f"template id {header.template_id}, not {self.template_id}"
            raise UnknownTemplateError(self.name, "", offset, reason)

    def decode_at(self, data: Any, start: int, block_length: int, version: int) -> tuple[Any, int]:
        """Decode the block at `start` of bytes or a view of bytes, and what follows it."""
        level = bisect_right(self._thresholds, version)
        decode = self._bodies.get(level) or self._make_body(level)
        try:
            return decode(data, start, block_length, len(data))
        except DECODE_FAULTS:
            pass
        return explain(self.model, self.schema.order, data, start, block_length, version)

    def _make_body(self, level: int) -> BodyDecoder:
        version = self._thresholds[level - 1] if level else 0
        made = self._compiler.body_decoder(self.model.body, self.type, version)
        self._bodies[level] = made
        return made

    # --- many messages -----------------------------------------------------------------------------------------

    @cached_property
    def table(self) -> Table:
        """The memory layout of the fixed block, for columns."""
        return self._table(self.model.body)

    def group_table(self, group: Group) -> Table:
        """The memory layout of a group's entry."""
        return self._table(group.body)

    def _table(self, body: Body) -> Table:
        from headrace.sbe._block import Table

        return Table(body, self._thresholds, self._compiler.naming, self.schema.order)

    def select(self, messages: Any, offsets: Any = None) -> Selection:
        """Select this template's messages from many, which may be of several templates and versions.

        Args:
            messages: A ``FragmentBatch``, a list of bytes, a two-dimensional ``uint8`` array, an Arrow array of
                binary, or, with `offsets`, one bytes-like object.
            offsets: Where each message begins, and where the last ends: one offset more than messages.

        Raises:
            DecodeError: A message of this template is truncated or corrupt; its ``index`` says which.
            TypeError: `messages` is of another type.
            ValueError: `offsets` run backwards or outside the bytes.
        """
        # One message needs no numpy; many do.
        with needs("numpy"):
            from headrace.sbe._batch import as_batch
            from headrace.sbe._select import Selection

        return Selection(self, as_batch(messages, offsets))

    def columns(
        self, messages: Any, offsets: Any = None, *, names: Iterable[str] | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        """Decode many messages into numpy columns of their fixed block: ``select(...).columns(names)``."""
        return self.select(messages, offsets).columns(names)

    def to_arrow(
        self,
        messages: Any,
        offsets: Any = None,
        *,
        enums: str = "dictionary",
        names: Iterable[str] | None = None,
    ) -> pa.RecordBatch:
        """Decode many messages into an Arrow record batch: ``select(...).to_arrow(...)``."""
        return self.select(messages, offsets).to_arrow(enums=enums, names=names)

    def arrow_schema(self, *, enums: str = "dictionary", names: Iterable[str] | None = None) -> pa.Schema:
        """The Arrow schema of :meth:`to_arrow`.

        A composite is a struct, a group a list of structs, text a string, an array of ``uint8`` a fixed-size binary,
        a set its bits as an integer; constants are left out. An optional field that is not set, and one that the
        writer's version of the schema lacked, is null.

        Args:
            enums: ``"dictionary"``: names, as a dictionary column; ``"name"``: names as strings; ``"value"``: what
                is on the wire.
            names: Which columns, all by default.
        """
        with needs("arrow"):
            from headrace.sbe._arrow import ArrowBuilder

        return ArrowBuilder(self, enums, names).schema()
