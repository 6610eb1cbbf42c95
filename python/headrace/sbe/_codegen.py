"""Functions written for one message: what can be decided from the schema is decided once, when they are made.

A generated function unpacks a whole block with one precompiled :class:`struct.Struct` and builds the record in one
expression. It does not look for the reason when something is wrong; :mod:`headrace.sbe._explain` does,
walking the same model step by step.
"""

from __future__ import annotations

import enum
import math
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headrace._base.checks import excerpt
from headrace.sbe import _values
from headrace.sbe._errors import EncodeError
from headrace.sbe._model import Body, Composite, Data, EnumType, Group, Member, Scalar, SetType
from headrace.sbe._values import BitSet, Naming

__all__ = ["DECODE_FAULTS", "EMPTY_ENTRIES_MAX", "MISSING", "Compiler", "Layout", "field_picker"]

ENCODE_FAULTS = (struct.error, TypeError, ValueError, KeyError, AttributeError, OverflowError)
# Entries of a group that take no bytes: the message does not bound how many it says it has.
EMPTY_ENTRIES_MAX = 254
DECODE_FAULTS = (struct.error, ValueError, KeyError)

BodyDecoder = Callable[[Any, int, int, int], tuple[Any, int]]


class _Missing:
    def __repr__(self) -> str:
        return "<not given>"


MISSING: Any = _Missing()


class Layout:
    """Builds the format of one :class:`struct.Struct`, gaps between offsets included."""

    def __init__(self, order: str) -> None:
        self._parts = [order]
        self.position = 0

    def put(self, offset: int, code: str, size: int) -> None:
        """Adds one item at an offset not before the end of the last."""
        self.pad(offset)
        self._parts.append(code)
        self.position = offset + size

    def pad(self, end: int) -> None:
        """Fills up to `end` with bytes that are written as zero and not read."""
        if end > self.position:
            self._parts.append(f"{end - self.position}x")
            self.position = end

    def struct(self) -> struct.Struct:
        """The finished struct."""
        return struct.Struct("".join(self._parts))


def field_picker(order: str, header: Composite, *names: str) -> Callable[[Any, int], tuple[int, ...]]:
    """A function that reads the named unsigned members of a header, in the order named."""
    layout = Layout(order)
    members = [member for member in header.members if member.name in names]
    for member in members:
        layout.put(member.offset, _code(member), member.size)
    unpack = layout.struct().unpack_from
    found = [member.name for member in members]
    if found == list(names):
        return unpack
    indices = [found.index(name) for name in names]

    def pick(data: Any, offset: int) -> tuple[int, ...]:
        values = unpack(data, offset)
        return tuple(values[index] for index in indices)

    return pick


def _code(member: Member) -> str:
    kind = member.type
    assert not isinstance(kind, Composite)
    if isinstance(kind, Scalar) and kind.length != 1:
        return f"{kind.size}s"
    return kind.primitive.code


class Compiler:
    """Makes the classes and functions of one schema. Types are made when first needed."""

    def __init__(self, order: str, naming: Naming) -> None:
        self.order = order
        self.naming = naming
        # By type and not by name: a composite may declare a type of its own under any name.
        self.enums: dict[EnumType, type[enum.Enum]] = {}
        self.sets: dict[SetType, type[BitSet]] = {}
        self.composites: dict[Composite, type[Any]] = {}
        self.composite_encoders: dict[Composite, Callable[[Any], bytes]] = {}
        self.entries: dict[str, type[Any]] = {}

    # --- classes -----------------------------------------------------------------------------------------------

    def enum_class(self, kind: EnumType) -> type[enum.Enum]:
        """The enum of a type."""
        # Of two threads that make it, one wins: the class must be the same for both.
        return self.enums.get(kind) or self.enums.setdefault(kind, _values.enum_class(kind))

    def set_class(self, kind: SetType) -> type[BitSet]:
        """The class of a set."""
        return self.sets.get(kind) or self.sets.setdefault(kind, _values.set_class(kind))

    def composite_class(self, kind: Composite) -> type[Any]:
        """The record of a composite."""
        return self.composites.get(kind) or self.composites.setdefault(
            kind, self.record_class(kind.name, kind.members, ())
        )

    def record_class(self, name: str, members: Iterable[Member], tail: Iterable[Group | Data]) -> type[Any]:
        """A record of the fields that take bytes; constants are attributes of its class."""
        members = tuple(members)
        wire = [member for member in members if not member.is_constant]
        constants = {}
        for member in members:
            if member.is_constant:
                if isinstance(member.type, EnumType):
                    self.enum_class(member.type)
                constants[self.naming.of(member.name)] = _values.constant_value(member, self.enums)
        return _values.record_class(name, self.naming.all(item.name for item in (*wire, *tail)), constants)

    # --- decoding ----------------------------------------------------------------------------------------------

    def flat_decoder(
        self, body: Body, made: type[Any], header: bytes, other: Callable[[Any, int], Any]
    ) -> Callable[..., Any]:
        """Decodes a message that ends with its block.

        A message that is not exactly as this schema writes it, or not at offset 0, goes to `other`.
        """
        writer = _DecodeWriter(self, None)
        expression = writer.fields(body.wire_fields)
        layout = Layout(self.order)
        writer.place(layout, len(header))
        layout.pad(len(header) + body.block_length)
        writer.names |= {
            "unpack": layout.struct().unpack_from,
            "HEADER": header,
            "HEADER_SLICE": slice(0, len(header)),
            "other": other,
            "made": made,
            "FAULTS": DECODE_FAULTS,
        }
        targets = ", ".join(writer.targets)
        assign = f"{targets}, = " if targets else ""
        build = f"{assign}unpack(data)\n            return made(({expression}))"
        if expression == f"{targets}, ":
            build = "return made(unpack(data))"
        source = f"""
def decode(data, offset=0):
    try:
        if data[HEADER_SLICE] == HEADER and not offset:
            {build}
    except FAULTS:
        pass
    return other(data, offset)
"""
        decoder: Callable[..., Any] = _function(source, "decode", writer.names)
        return decoder

    def body_decoder(self, body: Body, made: type[Any], version: int) -> BodyDecoder:
        """Decodes a block written by schema `version`, and what follows it.

        The function takes the data, the offset of the block, the block length that its writer states, and the length of
        the data. It returns the message and the offset of its end, and raises any of ``DECODE_FAULTS``.
        """
        writer = _DecodeWriter(self, version)
        expression = writer.fields(body.wire_fields)
        layout = Layout(self.order)
        writer.place(layout, 0)
        writer.names |= {"made": made, "LEAST": layout.position, "unpack": layout.struct().unpack_from}
        lines = [
            "if block_length < LEAST or block_length > size - start:",
            "    raise ValueError('short block')",
        ]
        if writer.targets:
            lines.append(f"{', '.join(writer.targets)}, = unpack(data, start)")
        lines.append("at = start + block_length")
        for group in body.groups:
            expression += self._decode_group(writer, lines, group, made, version)
        for data in body.data:
            expression += self._decode_data(writer, lines, data, version)
        lines.append(f"return made(({expression})), at")
        source = "def decode(data, start, block_length, size):\n    " + "\n    ".join(lines)
        decoder: BodyDecoder = _function(source, "decode", writer.names)
        return decoder

    def _decode_group(
        self, writer: _DecodeWriter, lines: list[str], group: Group, made: type[Any], version: int
    ) -> str:
        if group.since > version:
            return "[], "
        entry_class = self.entry_class(made, group)
        function = writer.name(self._group_decoder(group, entry_class, version))
        target = writer.name(None)
        lines.append(f"{target}, at = {function}(data, at, size)")
        return f"{target}, "

    def entry_class(self, made: type[Any], group: Group) -> type[Any]:
        """The record of a group's entries, kept beside the class of the group's owner."""
        key = f"{made.__qualname__}.{group.name}"
        found = self.entries.get(key)
        if found is None:
            body = group.body
            entry = self.record_class(group.name, body.fields, (*body.groups, *body.data))
            entry.__qualname__ = key
            found = self.entries.setdefault(key, entry)
        return found

    def _group_decoder(self, group: Group, made: type[Any], version: int) -> Callable[..., Any]:
        dimension = field_picker(self.order, group.header, group.block_length.name, group.count.name)
        entry = self.body_decoder(group.body, made, version)
        header_size, least = group.header.size, tail_length_min(group.body, version)

        def decode(data: Any, at: int, size: int) -> tuple[list[Any], int]:
            block_length, count = dimension(data, at)
            at += header_size
            if count * (block_length + least) > size - at or (
                count > EMPTY_ENTRIES_MAX and not block_length + least
            ):
                raise ValueError("short group")
            entries = []
            for _ in range(count):
                decoded, at = entry(data, at, block_length, size)
                entries.append(decoded)
            return entries, at

        return decode

    def _decode_data(self, writer: _DecodeWriter, lines: list[str], data: Data, version: int) -> str:
        if data.since > version:
            return "'', " if data.encoding else "b'', "
        length = writer.name(field_picker(self.order, data.header, data.length.name))
        target = writer.name(None)
        lines.append(f"{target}, = {length}(data, at)")
        lines.append(f"at += {data.start}")
        lines.append(f"end = at + {target}")
        lines.append("if end > size:")
        lines.append("    raise ValueError('short data')")
        kind = f"str(data[at:end], {data.encoding!r})" if data.encoding else "bytes(data[at:end])"
        lines.append(f"{target} = {kind}")
        lines.append("at = end")
        return f"{target}, "

    # --- encoding ----------------------------------------------------------------------------------------------

    def encoder(self, body: Body, header: bytes, path: str) -> Callable[..., bytes]:
        """A function of a body's fields, groups and data that returns its bytes, after `header`."""
        writer = _EncodeWriter(self)
        layout = Layout(self.order)
        arguments: list[str] = []
        if header:
            layout.put(0, f"{len(header)}s", len(header))
            arguments.append(writer.name(header))
        items: tuple[Member | Group | Data, ...] = (*body.wire_fields, *body.groups, *body.data)
        names = self.naming.all(item.name for item in items)
        probes: list[Callable[[Any], object]] = []
        for name, member in zip(names, body.wire_fields, strict=False):
            layout.put(len(header) + member.offset, *writer.item(member))
            arguments.append(writer.expression(member, name))
            probes.append(writer.probe(member))
        layout.pad(len(header) + body.block_length)
        tail = [self._group_encoder(group, path) for group in body.groups]
        tail += [self._data_encoder(data) for data in body.data]
        whole = "".join(
            f" + {writer.name(function)}({name})"
            for name, function in zip(names[len(body.wire_fields) :], tail, strict=True)
        )
        # The parameters have the names of the schema's fields, which Naming never begins with an underscore: so no
        # field hides one of these, or a name of the writer.
        writer.names |= {
            "_pack": layout.struct().pack,
            "_EncodeError": EncodeError,
            "_FAULTS": ENCODE_FAULTS,
            "_explain": _encode_explainer(path, names, [*probes, *tail]),
        }
        defaults = [None if member.optional else MISSING for member in body.wire_fields]
        defaults += [()] * len(body.groups) + [b""] * len(body.data)
        return self._encode_function(writer, names, defaults, f"_pack({', '.join(arguments)}){whole}")

    def _encode_function(
        self, writer: _EncodeWriter, names: list[str], defaults: list[Any], expression: str
    ) -> Callable[..., bytes]:
        parameters = ", ".join(
            f"{name}={writer.name(default)}" for name, default in zip(names, defaults, strict=True)
        )
        source = f"""
def encode({parameters}):
    try:
        return {expression}
    except _EncodeError:
        raise
    except _FAULTS as _error:
        raise _explain(({"".join(f"{name}, " for name in names)}), _error) from None
"""
        function: Callable[..., bytes] = _function(source, "encode", writer.names)
        return function

    def composite_encoder(self, kind: Composite) -> Callable[[Any], bytes]:
        """A function that returns the bytes of a composite's tuple, mapping or ``None``."""
        # Each use asks for it twice, to encode and to explain: made anew, it would cost double for each level.
        found = self.composite_encoders.get(kind)
        return found or self.composite_encoders.setdefault(kind, self._composite_encoder(kind))

    def _composite_encoder(self, kind: Composite) -> Callable[[Any], bytes]:
        body = Body(kind.name, kind.members, (), (), kind.size)
        pack = self.encoder(body, b"", kind.name)
        nulls = pack(*(self._null(member) for member in body.wire_fields))

        def encode(value: Any) -> bytes:
            if value is None:
                return nulls
            if isinstance(value, Mapping):
                return pack(**value)
            if not isinstance(value, (tuple, list)):
                raise TypeError(f"must be a tuple, a mapping, or None for composite {kind.name}")
            return pack(*value)

        return encode

    @staticmethod
    def _null(member: Member) -> Any:
        kind = member.type
        if isinstance(kind, SetType):
            return 0
        if isinstance(kind, Scalar) and kind.length == 1 and kind.primitive.name != "char":
            return kind.null
        return None

    def _group_encoder(self, group: Group, path: str) -> Callable[[Any], bytes]:
        entry = self.encoder(group.body, b"", f"{path}.{group.name}")
        layout = Layout(self.order)
        in_order = sorted((group.block_length, group.count), key=lambda member: member.offset)
        for member in in_order:
            layout.put(member.offset, _code(member), member.size)
        layout.pad(group.header.size)
        pack = layout.struct().pack
        count_first = in_order[0] is group.count
        block_length = group.body.block_length
        is_empty = not block_length and group.body.is_flat

        def encode(entries: Iterable[Any]) -> bytes:
            if isinstance(entries, (str, bytes, Mapping)):
                raise TypeError("must be a sequence of entries")
            parts = [entry(**item) if isinstance(item, Mapping) else entry(*item) for item in entries]
            if is_empty and len(parts) > EMPTY_ENTRIES_MAX:
                raise ValueError(f"{len(parts)} entries without bytes; at most {EMPTY_ENTRIES_MAX}")
            numbers = (len(parts), block_length) if count_first else (block_length, len(parts))
            return pack(*numbers) + b"".join(parts)

        return encode

    def _data_encoder(self, data: Data) -> Callable[[Any], bytes]:
        layout = Layout(self.order)
        layout.put(data.length.offset, _code(data.length), data.length.size)
        layout.pad(data.start)
        pack = layout.struct().pack
        encoding, length_max = data.encoding, data.length_max

        def encode(value: Any) -> bytes:
            if type(value) is str:
                if not encoding:
                    raise TypeError("must be bytes; the schema has no character encoding for this data")
                value = value.encode(encoding)
            elif type(value) is not bytes:
                value = b"" if value is None else memoryview(value).tobytes()
            if len(value) > length_max:
                raise ValueError(f"{len(value)} bytes; at most {length_max}")
            encoded: bytes = value
            return pack(len(encoded)) + encoded

        return encode


def tail_length_min(body: Body, version: int) -> int:
    """Fewest bytes that groups and data after a block take, if schema `version` wrote them."""
    groups = sum(group.header.size for group in body.groups if group.since <= version)
    return groups + sum(data.start for data in body.data if data.since <= version)


def _encode_explainer(
    path: str, names: list[str], probes: list[Callable[[Any], object]]
) -> Callable[[tuple[Any, ...], Exception], EncodeError]:
    """Finds which value an encoder could not take."""

    def explain(values: tuple[Any, ...], error: Exception) -> EncodeError:
        for name, value, probe in zip(names, values, probes, strict=True):
            if value is MISSING:
                return EncodeError(path, name, "is missing")
            try:
                probe(value)
            except KeyError:
                return EncodeError(path, name, f"{excerpt(repr(value))} is not one of the enum's values")
            except ENCODE_FAULTS as reason:
                return EncodeError(path, name, f"{excerpt(repr(value))}: {reason}")
        return EncodeError(path, "", str(error))

    return explain


def _function(source: str, name: str, names: dict[str, Any]) -> Any:
    """Compiles a function whose globals are `names`. Names of the schema were checked to be names."""
    exec(compile(source, f"<headrace.sbe {name}>", "exec"), names)
    return names[name]


class _Writer:
    """Names the objects that generated source refers to."""

    def __init__(self, compiler: Compiler) -> None:
        self.compiler = compiler
        self.names: dict[str, Any] = {}

    def name(self, value: object) -> str:
        """A new global with this value."""
        made = f"_{len(self.names)}"
        self.names[made] = value
        return made


class _DecodeWriter(_Writer):
    """Expressions that turn unpacked items into values, as schema `version` wrote them; ``None``: the newest."""

    def __init__(self, compiler: Compiler, version: int | None) -> None:
        super().__init__(compiler)
        self.version = version
        self.targets: list[str] = []
        self._items: list[tuple[int, str, int]] = []

    def fields(self, members: Iterable[Member], base: int = 0) -> str:
        """The inside of a tuple display of the members, of a block or composite that begins at `base`."""
        return "".join(f"{self._expression(member, base)}, " for member in members)

    def place(self, layout: Layout, start: int) -> None:
        """Puts every item that the expressions need into a layout."""
        for offset, code, size in self._items:
            layout.put(start + offset, code, size)

    def _expression(self, member: Member, base: int) -> str:
        if self.version is not None and member.since > self.version:
            return "None"
        kind = member.type
        offset = base + member.offset
        if isinstance(kind, Composite):
            made = self.name(self.compiler.composite_class(kind))
            wire = [inner for inner in kind.members if not inner.is_constant]
            return f"{made}(({self.fields(wire, offset)}))"
        target = f"v{len(self.targets)}"
        self.targets.append(target)
        self._items.append((offset, _code(member), kind.size))
        if isinstance(kind, EnumType):
            members = self.compiler.enum_class(kind)
            return f"{self.name(_values.enum_decoder(kind, members))}[{target}]"
        if isinstance(kind, SetType):
            return f"{self.name(self.compiler.set_class(kind))}({target})"
        return self._scalar(kind, target, member.optional)

    def _scalar(self, kind: Scalar, target: str, optional: bool) -> str:
        if kind.is_text:
            text = f"{target}.partition(b'\\0')[0].decode({kind.encoding!r})"
            return f"({text} or None)" if optional else text
        if kind.is_bytes:
            return target
        if kind.length != 1:
            unpack = struct.Struct(f"{self.compiler.order}{kind.length}{kind.primitive.code}").unpack
            return f"{self.name(unpack)}({target})"
        value = target
        null = str(kind.null)
        if kind.primitive.name == "char":
            value, null = f"{target}.decode('latin-1')", repr(bytes([int(kind.null)]))
        if not optional:
            return value
        if kind.null != kind.null:
            return f"(None if {target} != {target} else {value})"
        if kind.primitive.is_float and math.isinf(kind.null):
            null = self.name(kind.null)  # which has no literal
        return f"(None if {target} == {null} else {value})"


class _EncodeWriter(_Writer):
    """Expressions that turn values into what ``struct`` packs."""

    def item(self, member: Member) -> tuple[str, int]:
        """Format and size of a member; a composite is one run of bytes."""
        if isinstance(member.type, Composite):
            return f"{member.size}s", member.size
        return _code(member), member.size

    def probe(self, member: Member) -> Callable[[Any], object]:
        """A function that raises the error for a wrong value."""
        pack = struct.Struct(f"{self.compiler.order}{self.item(member)[0]}").pack
        source = f"def probe(value):\n    return {self.name(pack)}({self.expression(member, 'value')})"
        found: Callable[[Any], object] = _function(source, "probe", self.names)
        return found

    def expression(self, member: Member, argument: str) -> str:
        """The expression to pack for the argument of that name."""
        kind = member.type
        if isinstance(kind, Composite):
            return f"{self.name(self.compiler.composite_encoder(kind))}({argument})"
        if isinstance(kind, EnumType):
            encoder = _values.enum_encoder(kind, self.compiler.enum_class(kind))
            return f"{self.name(encoder)}[{argument}]"
        if isinstance(kind, SetType):
            return f"{self.name(self.compiler.set_class(kind).from_value)}({argument})"
        if kind.is_text:
            return f"{self.name(_values.text_encoder(kind))}({argument})"
        if kind.is_bytes:
            return f"{self.name(_values.bytes_encoder(kind))}({argument})"
        if kind.length != 1:
            packer = struct.Struct(f"{self.compiler.order}{kind.length}{kind.primitive.code}")
            return f"{self.name(_values.array_encoder(kind, packer))}({argument})"
        if kind.primitive.name == "char":
            return f"{self.name(_values.character_encoder(kind))}({argument})"
        if member.optional:
            return f"({self.name(kind.null)} if {argument} is None else {argument})"
        return argument
