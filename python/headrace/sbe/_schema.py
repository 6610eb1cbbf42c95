"""The public class of a schema."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from headrace.sbe._codec import Header, HeaderCodec, MessageCodec, readable
from headrace.sbe._codegen import Compiler
from headrace.sbe._errors import UnknownTemplateError
from headrace.sbe._model import Composite, EnumType, SchemaModel, SetType
from headrace.sbe._parser import parse
from headrace.sbe._values import BitSet, Naming

__all__ = ["Schema"]


class Schema(Mapping[str, MessageCodec]):
    """The messages of one SBE schema: a mapping from message name to :class:`MessageCodec`.

    ::

        schema = headrace.sbe.Schema.from_file("orders.xml")
        data = schema["NewOrder"].encode(order_id=7, side="BUY")
        message = schema.decode(data)

    Thread-safe. Codecs are made when first used. Unpickling a schema parses it again.

    Attributes:
        schema_id: The schema's id, as in every header.
        version: The version it describes.
        semantic_version: The version that its authors state, for people.
        package: Its package name.
        byte_order: ``"little"`` or ``"big"``.
    """

    def __init__(self, model: SchemaModel, *, snake_case: bool = False) -> None:
        self.model = model
        self.schema_id = model.schema_id
        self.version = model.version
        self.semantic_version = model.semantic_version
        self.package = model.package
        self.byte_order = "little" if model.order == "<" else "big"
        self.snake_case = snake_case
        self._compiler = Compiler(model.order, Naming(snake_case))
        self._header = HeaderCodec(model)
        self._messages = {message.name: message for message in model.messages}
        self._names = {message.template_id: message.name for message in model.messages}
        self._codecs: dict[str, MessageCodec] = {}

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, snake_case: bool = False) -> Schema:
        """Read a schema from an XML file, with the files it includes.

        Args:
            path: The file.
            snake_case: Whether ``orderId`` of the schema becomes ``order_id`` in Python.

        Raises:
            SchemaError: The schema breaks a rule.
            OSError: The file cannot be read.
        """
        file = Path(path)
        return cls(parse(file.read_bytes(), str(file), file.parent), snake_case=snake_case)

    @classmethod
    def from_text(cls, text: str | bytes, *, name: str = "schema", snake_case: bool = False) -> Schema:
        """Read a schema from the text of its XML document; errors call it `name`.

        Raises:
            SchemaError: The schema breaks a rule.
        """
        return cls(parse(text, name), snake_case=snake_case)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.model, self.snake_case)

    def __getitem__(self, name: str) -> MessageCodec:
        codec = self._codecs.get(name)
        if codec is None:
            made = MessageCodec(self.model, self._header, self._messages[name], self._compiler)
            # Of two threads that make it, one wins: its record class must be the same for both.
            codec = self._codecs.setdefault(name, made)
        return codec

    def __iter__(self) -> Iterator[str]:
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    def __repr__(self) -> str:
        return f"<Schema {self.package or self.model.file} id={self.schema_id} version={self.version}>"

    def template(self, template_id: int) -> MessageCodec | None:
        """The codec of a template id, or ``None`` where the schema has no such template."""
        name = self._names.get(template_id)
        return None if name is None else self[name]

    def header(self, data: Any, offset: int = 0) -> Header:
        """Read the message header at `offset`, of any schema.

        Raises:
            DecodeError: The data is too short.
        """
        return self._header.read(readable(data), offset)

    def decode(self, data: Any, offset: int = 0) -> Any:
        """Decode the message at `offset`, of any template of this schema; ``type(message)`` tells which.

        Raises:
            UnknownTemplateError: The header is of another schema, or of a template this one does not have.
            DecodeError: The data is truncated or corrupt.
        """
        header = self.header(data, offset)
        name = self._names.get(header.template_id)
        if name is None or header.schema_id != self.model.header_schema_id:
            what = f"template {header.template_id} of schema {header.schema_id}"
            raise UnknownTemplateError("", "", offset, f"{what} is not in schema {self.schema_id}")
        return self[name].decode(data, offset)

    def enum(self, name: str) -> type[enum.Enum]:
        """The Python enum of an enum type: an ``IntEnum``, or a ``StrEnum`` where values are characters."""
        kind = self.model.types.get(name)
        if not isinstance(kind, EnumType):
            raise KeyError(name)
        return self._compiler.enum_class(kind)

    def set(self, name: str) -> type[BitSet]:
        """The class of a set type."""
        kind = self.model.types.get(name)
        if not isinstance(kind, SetType):
            raise KeyError(name)
        return self._compiler.set_class(kind)

    def composite(self, name: str) -> type[Any]:
        """The record class of a composite type."""
        kind = self.model.types.get(name)
        if not isinstance(kind, Composite):
            raise KeyError(name)
        return self._compiler.composite_class(kind)


def _restore(model: SchemaModel, snake_case: bool) -> Schema:
    return Schema(model, snake_case=snake_case)
