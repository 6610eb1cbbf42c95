"""Turns the elements of a schema into its model, and checks every rule of the standard that a schema can break."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from headrace.sbe._model import (
    PRIMITIVES,
    Body,
    Composite,
    Data,
    Group,
    Member,
    Message,
    Scalar,
    SchemaModel,
)
from headrace.sbe._types import BLOCK_LENGTH_MAX, VERSION_MAX, Types
from headrace.sbe._xml import Element, read_schema

__all__ = ["parse"]

_HEADER_MEMBERS = ("blockLength", "templateId", "schemaId", "version")


def parse(text: str | bytes, file: str, folder: Path | None = None) -> SchemaModel:
    """Reads a schema.

    Args:
        text: The XML document.
        file: Its name in errors.
        folder: Where included files are; without it, including a file is an error.

    Raises:
        SchemaError: It breaks a rule.
    """
    root = read_schema(text, file, folder)
    order = {"littleEndian": "<", "bigEndian": ">"}[
        root.choice("byteOrder", "littleEndian", ("littleEndian", "bigEndian"))
    ]
    version = root.integer("version", 0, 0, VERSION_MAX)
    types = Types(root, version)
    header = _header(root, types)
    schema_id = root.integer("id", None, 0, VERSION_MAX)
    _check_fits(header, "schemaId", schema_id, root)
    _check_fits(header, "version", version, root)
    messages = tuple(_messages(root, types, version, header))
    return SchemaModel(
        file=file,
        package=root.get("package"),
        schema_id=schema_id,
        version=version,
        semantic_version=root.get("semanticVersion"),
        order=order,
        header=header,
        types=types.resolved(),
        messages=messages,
    )


def _header(root: Element, types: Types) -> Composite:
    name = root.get("headerType") or "messageHeader"
    header = types.named(name, root)
    if not isinstance(header, Composite):
        raise root.error(f"the header type '{name}' must be a composite")
    for required in _HEADER_MEMBERS:
        _unsigned_member(header, required, root, f"the header type '{name}'", may_be_constant=True)
    return header


def _check_fits(header: Composite, name: str, value: int, element: Element) -> None:
    """Refuse a number that does not fit the header of the schema."""
    member = header.member(name)
    if member is None or member.is_constant or not isinstance(member.type, Scalar):
        return
    most = (1 << 8 * member.size) - 1
    if value > most:
        rule = f"does not fit {name} of the header, a {member.type.primitive.name}: at most {most}"
        raise element.error(f"{value} {rule}")


def _unsigned_member(
    composite: Composite, name: str, element: Element, what: str, *, may_be_constant: bool = False
) -> Member:
    member = composite.member(name)
    if member is None or (member.is_constant and not may_be_constant):
        raise element.error(f"{what} needs a member {name}")
    kind = member.type
    if not isinstance(kind, Scalar) or kind.length != 1 or not kind.primitive.is_unsigned:
        instead = f'<type name="{name}" primitiveType="uint16"/>'
        raise element.error(
            f"{what}: {name} must be an unsigned integer: write {instead}, or uint8, uint32, uint64"
        )
    return member


def _messages(root: Element, types: Types, version: int, header: Composite) -> Iterable[Message]:
    names: set[str] = set()
    template_ids: dict[int, str] = {}
    for element in root:
        if element.tag not in ("message", "types"):
            raise element.error("a schema holds types and messages")
        if element.tag == "types":
            continue
        name = element.name()
        template_id = element.integer("id", None, 0, VERSION_MAX)
        if name in names:
            raise element.error("another message has the same name")
        if template_id in template_ids:
            raise element.error(f"id={template_id} is that of message '{template_ids[template_id]}'")
        names.add(name)
        template_ids[template_id] = name
        since = element.integer("sinceVersion", 0, 0, version)
        body = _BodyReader(types, version).read(element, name, since)
        _check_fits(header, "templateId", template_id, element)
        _check_fits(header, "blockLength", body.block_length, element)
        yield Message(name, template_id, body, element.get("description"))


class _BodyReader:
    """Reads the fields, groups and data of a message or of a group's entry."""

    KINDS = ("field", "group", "data")

    def __init__(self, types: Types, version: int) -> None:
        self._types = types
        self._version = version

    def read(self, element: Element, name: str, since: int) -> Body:
        fields: list[Member] = []
        groups: list[Group] = []
        data: list[Data] = []
        kind = 0
        names: set[str] = set()
        field_ids: set[int] = set()
        for child in element:
            if child.tag not in self.KINDS:
                raise child.error("a message or group holds fields, groups and data")
            if self.KINDS.index(child.tag) < kind:
                raise child.error("fields come first, then groups, then data")
            kind = self.KINDS.index(child.tag)
            self._check_unique(child, names, field_ids)
            if kind == 0:
                fields.append(self._field(child, fields[-1].end if fields else 0))
            elif kind == 1:
                groups.append(self._group(child))
            else:
                data.append(self._data(child))
        computed = fields[-1].end if fields else 0
        length = element.integer("blockLength", computed, 0, BLOCK_LENGTH_MAX)
        if length < computed:
            raise element.error(f"blockLength={length} is less than the {computed} bytes of its fields")
        return Body(name, tuple(fields), tuple(groups), tuple(data), length, since)

    @staticmethod
    def _check_unique(child: Element, names: set[str], field_ids: set[int]) -> None:
        name = child.name()
        if name in names:
            raise child.error("another element beside it has the same name")
        names.add(name)
        if child.get("id"):
            field_id = child.integer("id", None, 0, VERSION_MAX)
            if field_id in field_ids:
                raise child.error(f"id={field_id} is also that of an element beside it")
            field_ids.add(field_id)

    def _since(self, element: Element) -> int:
        return element.integer("sinceVersion", 0, 0, self._version)

    def _field(self, element: Element, position: int) -> Member:
        return self._types.member(element, element.required("type"), position, self._since(element))

    def _dimension(self, element: Element, attribute: str, default: str) -> Composite:
        name = element.get(attribute) or default or element.required(attribute)
        kind = self._types.named(name, element)
        if not isinstance(kind, Composite):
            raise element.error(f"{attribute}='{name}' must name a composite")
        return kind

    def _group(self, element: Element) -> Group:
        header = self._dimension(element, "dimensionType", "groupSizeEncoding")
        since = self._since(element)
        body = self.read(element, element.name(), since)
        what = f"the dimension type '{header.name}'"
        return Group(
            name=body.name,
            header=header,
            block_length=_unsigned_member(header, "blockLength", element, what),
            count=_unsigned_member(header, "numInGroup", element, what),
            body=body,
            since=since,
        )

    def _data(self, element: Element) -> Data:
        header = self._dimension(element, "type", "")
        what = f"the data type '{header.name}'"
        length = _unsigned_member(header, "length", element, what)
        content = header.member("varData")
        if content is None or header.members[-1] is not content or content.is_constant:
            raise element.error(f"{what} needs a last member varData")
        encoding = getattr(content.type, "encoding", "")
        limits = self._types.limits(header.name, "length")
        primitive = getattr(length.type, "primitive", PRIMITIVES["uint32"])
        return Data(
            name=element.name(),
            header=header,
            length=length,
            encoding=encoding,
            since=self._since(element),
            length_max=int(limits[1] if limits is not None else primitive.maximum),
            start=content.offset,
        )
