"""The content of a schema: every reference resolved, every offset computed, every rule checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = [
    "PRIMITIVES",
    "Body",
    "Composite",
    "Data",
    "EnumType",
    "Group",
    "Member",
    "Message",
    "Primitive",
    "Scalar",
    "SchemaModel",
    "SetType",
    "Type",
]


@dataclass(frozen=True)
class Primitive:
    """A number or character as the standard defines it. The null value of floats is NaN."""

    name: str
    code: str  # of the struct module
    size: int
    null: int | float
    minimum: int | float
    maximum: int | float

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point number."""
        return self.code in "fd"

    @property
    def is_unsigned(self) -> bool:
        """Whether it counts from zero."""
        return self.code in "BHIQ"


def _integers() -> Iterator[Primitive]:
    for bits, signed, unsigned in ((8, "b", "B"), (16, "h", "H"), (32, "i", "I"), (64, "q", "Q")):
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        yield Primitive(f"int{bits}", signed, bits // 8, low, low + 1, high)
        yield Primitive(f"uint{bits}", unsigned, bits // 8, (1 << bits) - 1, 0, (1 << bits) - 2)


_NAN, _INF = float("nan"), float("inf")

PRIMITIVES: dict[str, Primitive] = {
    primitive.name: primitive
    for primitive in (
        Primitive("char", "c", 1, 0, 0x20, 0x7E),
        *_integers(),
        Primitive("float", "f", 4, _NAN, -_INF, _INF),
        Primitive("double", "d", 8, _NAN, -_INF, _INF),
    )
}


@dataclass(frozen=True)
class Scalar:
    """A number, a character, or a fixed number of them."""

    name: str
    primitive: Primitive
    length: int
    null: int | float
    encoding: str  # of text in an array of characters

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return self.primitive.size * self.length

    @property
    def is_text(self) -> bool:
        """Whether it is an array of characters."""
        return self.primitive.name == "char" and self.length != 1

    @property
    def is_bytes(self) -> bool:
        """Whether it is an array of bytes."""
        return self.primitive.name == "uint8" and self.length != 1


@dataclass(frozen=True)
class EnumType:
    """One of several named values. `values` are what is on the wire, characters as their code."""

    name: str
    primitive: Primitive
    null: int | float
    values: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return self.primitive.size


@dataclass(frozen=True)
class SetType:
    """Any of several named bits."""

    name: str
    primitive: Primitive
    choices: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return self.primitive.size


@dataclass(frozen=True)
class Composite:
    """Several members under one name."""

    name: str
    members: tuple[Member, ...]
    size: int
    depth: int  # how many composites lie within each other, with this one

    def member(self, name: str) -> Member | None:
        """The member of that name."""
        return next((member for member in self.members if member.name == name), None)


Type = Scalar | EnumType | SetType | Composite


@dataclass(frozen=True)
class Member:
    """A field of a block, or a member of a composite. A constant one takes no bytes."""

    name: str
    type: Type
    offset: int
    since: int = 0
    optional: bool = False
    is_constant: bool = False
    constant: int | float | str | None = None

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return 0 if self.is_constant else self.type.size

    @property
    def end(self) -> int:
        """Offset of the byte after it."""
        return self.offset + self.size


@dataclass(frozen=True)
class Data:
    """Bytes or text of variable length, after the block. `encoding` is empty for bytes."""

    name: str
    header: Composite
    length: Member
    encoding: str
    since: int = 0
    length_max: int = 0
    # Where the bytes begin, counted from the beginning of the header.
    start: int = 0


@dataclass(frozen=True)
class Body:
    """A fixed block with the groups and data after it: of a message, or of one entry of a group."""

    name: str
    fields: tuple[Member, ...]
    groups: tuple[Group, ...]
    data: tuple[Data, ...]
    block_length: int
    since: int = 0

    @property
    def wire_fields(self) -> tuple[Member, ...]:
        """The fields that take bytes."""
        return tuple(member for member in self.fields if not member.is_constant)

    @property
    def constants(self) -> tuple[Member, ...]:
        """The fields that take none."""
        return tuple(member for member in self.fields if member.is_constant)

    @property
    def is_flat(self) -> bool:
        """Whether nothing follows the block."""
        return not self.groups and not self.data

    def versions(self) -> set[int]:
        """Every schema version that added something to it."""
        found = _member_versions(self.fields) | {data.since for data in self.data}
        for group in self.groups:
            found |= {group.since} | group.body.versions()
        return found - {0}


def _member_versions(members: tuple[Member, ...]) -> set[int]:
    found: set[int] = set()
    for member in members:
        found.add(member.since)
        if isinstance(member.type, Composite):
            found |= _member_versions(member.type.members)
    return found


@dataclass(frozen=True)
class Group:
    """A repeating group: a dimension header with the number of entries, then the entries."""

    name: str
    header: Composite
    block_length: Member
    count: Member
    body: Body
    since: int = 0


@dataclass(frozen=True)
class Message:
    """One template of the schema."""

    name: str
    template_id: int
    body: Body
    description: str = ""


@dataclass(frozen=True)
class SchemaModel:
    """A whole schema."""

    file: str
    package: str
    schema_id: int
    version: int
    semantic_version: str
    order: str  # of the struct module: < or >
    header: Composite
    types: dict[str, Type] = field(repr=False)
    messages: tuple[Message, ...] = field(repr=False)

    @property
    def header_constants(self) -> dict[str, int]:
        """The constant members of every message's header, which take no bytes on the wire."""
        members = (member for member in self.header.members if member.is_constant)
        return {member.name: member.constant for member in members if isinstance(member.constant, int)}

    @property
    def header_schema_id(self) -> int:
        """The schema id in headers of this schema: the header's constant, if it has one, else the schema's own id."""
        return self.header_constants.get("schemaId", self.schema_id)
