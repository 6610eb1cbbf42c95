"""The types of a schema, resolved when first used, so that they may be declared in any order."""

from __future__ import annotations

import codecs
import struct

from headrace.sbe._model import (
    PRIMITIVES,
    Composite,
    EnumType,
    Member,
    Primitive,
    Scalar,
    SetType,
    Type,
)
from headrace.sbe._xml import Element

__all__ = ["BLOCK_LENGTH_MAX", "VERSION_MAX", "Types"]

VERSION_MAX = (1 << 31) - 1
BLOCK_LENGTH_MAX = (1 << 31) - 1
ARRAY_LENGTH_MAX = 1 << 20
# The generated decoder has two brackets for each; Python takes 200 within each other.
COMPOSITE_DEPTH_MAX = 32
_TAGS = ("type", "composite", "enum", "set")
_ENUM_ENCODINGS = ("char", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_SET_ENCODINGS = ("uint8", "uint16", "uint32", "uint64")


class Types:
    """Resolves names to types and elements to members."""

    def __init__(self, root: Element, version: int) -> None:
        self._version = version
        self._elements: dict[str, Element] = {}
        self._resolved: dict[str, Type] = {}
        # What is being resolved, outermost first: meeting one of these again is a cycle.
        self._open: list[str] = []
        # How many composites are being read, one within the other.
        self._composites_open = 0
        for group in root:
            if group.tag == "types":
                for element in group:
                    self._declare(element)
        for name in self._elements:
            self.named(name, self._elements[name])

    def _declare(self, element: Element) -> None:
        if element.tag not in _TAGS:
            raise element.error(f"types holds {', '.join(_TAGS)}")
        name = element.name()
        if name in self._elements:
            raise element.error("another type has the same name")
        self._elements[name] = element

    def resolved(self) -> dict[str, Type]:
        """Every named type."""
        return dict(self._resolved)

    def named(self, name: str, user: Element) -> Type:
        """The type of that name; the error for an unknown one names `user`."""
        if name in self._resolved:
            return self._resolved[name]
        element = self._elements.get(name)
        if element is None:
            if name in PRIMITIVES:
                return _plain(PRIMITIVES[name])
            raise user.error(f"there is no type '{name}'")
        if name in self._open:
            raise user.error(f"the types {' > '.join([*self._open, name])} contain each other")
        self._open.append(name)
        kind = self._read(element)
        self._open.pop()
        self._resolved[name] = kind
        return kind

    def limits(self, composite: str, member: str) -> tuple[float, float] | None:
        """The least and greatest value that a member of a composite declares."""
        for element in self._elements[composite]:
            if element.get("name") == member:
                if element.tag == "ref":
                    element = self._referred(element)
                low, high = element.get("minValue"), element.get("maxValue")
                primitive = PRIMITIVES[element.get("primitiveType")]
                return (
                    _number(low, primitive, element) if low else primitive.minimum,
                    _number(high, primitive, element) if high else primitive.maximum,
                )
        return None

    def _referred(self, reference: Element) -> Element:
        """The element of the type that a `ref` names; a primitive has none, and so no place for limits."""
        name = reference.get("type")
        if name not in self._elements:
            instead = f'<type name="{reference.name()}" primitiveType="{name}"/>'
            raise reference.error(f"'{name}' is not a type of the schema: write {instead}")
        return self._elements[name]

    def _read(self, element: Element) -> Type:
        match element.tag:
            case "composite":
                return self._composite(element)
            case "enum":
                return self._enum(element)
            case "set":
                return self._set(element)
            case _:
                return self._scalar(element)

    # --- simple types ------------------------------------------------------------------------------------------

    def _primitive(self, element: Element, attribute: str) -> Primitive:
        name = element.required(attribute)
        if name not in PRIMITIVES:
            raise element.error(f"{attribute}='{name}' must be one of {', '.join(PRIMITIVES)}")
        return PRIMITIVES[name]

    def _scalar(self, element: Element) -> Scalar:
        primitive = self._primitive(element, "primitiveType")
        is_constant = element.get("presence") == "constant"
        default = len(element.text) if is_constant and primitive.name == "char" else 1
        length = element.integer("length", default, 0, ARRAY_LENGTH_MAX)
        null = element.get("nullValue")
        _presence(element, "required")
        for limit in ("minValue", "maxValue"):
            if element.get(limit):
                _number(element.get(limit), primitive, element)
        return Scalar(
            name=element.name(),
            primitive=primitive,
            length=length,
            null=_null(null, primitive, element) if null else primitive.null,
            encoding=_encoding(element, primitive, is_array=length > 0 and not is_constant),
        )

    def _encoding_type(self, element: Element, allowed: tuple[str, ...]) -> tuple[Primitive, int | float]:
        name = element.required("encodingType")
        declared = self._elements.get(name)
        # Another tag is refused before it is read: enums may name each other in a long row.
        kind = self.named(name, element) if declared is None or declared.tag == "type" else None
        if not isinstance(kind, Scalar) or kind.length != 1 or kind.primitive.name not in allowed:
            raise element.error(
                f"encodingType='{name}' must be one of {', '.join(allowed)}, or a type made of one"
            )
        return kind.primitive, kind.null

    def _enum(self, element: Element) -> EnumType:
        primitive, null = self._encoding_type(element, _ENUM_ENCODINGS)
        if element.get("nullValue"):
            null = _number(element.get("nullValue"), primitive, element)
        values: dict[str, int] = {}
        for child in element:
            if child.tag != "validValue":
                raise child.error("an enum holds validValue elements")
            value = int(_number(child.text, primitive, child))
            if child.name() in values:
                raise child.error("another value has the same name")
            child.integer("sinceVersion", 0, 0, self._version)
            values[child.name()] = value
        return EnumType(element.name(), primitive, null, tuple(values.items()))

    def _set(self, element: Element) -> SetType:
        primitive, _ = self._encoding_type(element, _SET_ENCODINGS)
        choices: dict[str, int] = {}
        for child in element:
            if child.tag != "choice":
                raise child.error("a set holds choice elements")
            try:
                bit = int(child.text)
            except ValueError:
                raise child.error(f"'{child.text}' must be the number of a bit") from None
            if not 0 <= bit < primitive.size * 8:
                raise child.error(f"bit {bit} must be 0 to {primitive.size * 8 - 1} of a {primitive.name}")
            if child.name() in choices:
                raise child.error("another choice has the same name")
            choices[child.name()] = bit
        return SetType(element.name(), primitive, tuple(choices.items()))

    # --- composites and members --------------------------------------------------------------------------------

    def _composite(self, element: Element) -> Composite:
        # Before its members are read, which would not come back from a long row that each begins with the next.
        self._composites_open += 1
        _check_depth(element, self._composites_open)
        members = self._members(element)
        self._composites_open -= 1
        inner = (member.type.depth for member in members if isinstance(member.type, Composite))
        depth = 1 + max(inner, default=0)
        # And after them: those that were read before are not open.
        _check_depth(element, depth)
        return Composite(element.name(), tuple(members), members[-1].end if members else 0, depth)

    def _members(self, element: Element) -> list[Member]:
        members: list[Member] = []
        for child in element:
            if child.tag not in (*_TAGS, "ref"):
                raise child.error(f"a composite holds {', '.join(_TAGS)} and ref")
            if any(member.name == child.name() for member in members):
                raise child.error("another member has the same name")
            position = members[-1].end if members else 0
            since = child.integer("sinceVersion", 0, 0, self._version)
            if child.tag == "ref":
                members.append(self._use(child, child.required("type"), position, since))
            else:
                members.append(self._placed(child, self._read(child), child, position, since))
        return members

    def member(self, element: Element, type_name: str, position: int, since: int) -> Member:
        """A field: a use of a named type."""
        kind = self.named(type_name, element)
        if isinstance(kind, Scalar) and not kind.length:
            raise element.error(f"type '{type_name}' has length='0', which only varData may have")
        return self._use(element, type_name, position, since)

    def _use(self, element: Element, type_name: str, position: int, since: int) -> Member:
        kind = self.named(type_name, element)
        return self._placed(element, kind, self._elements.get(type_name), position, since)

    def _placed(
        self, element: Element, kind: Type, declared: Element | None, position: int, since: int
    ) -> Member:
        """A member of `kind` at the first free `position`, or at the offset it asks for."""
        inherited = declared.get("presence") if declared is not None else ""
        presence = _presence(element, inherited or "required")
        name = element.name()
        if presence == "constant":
            # Without bytes, it has no place: an offset says nothing.
            constant = self._constant(element, kind, declared)
            return Member(name, kind, position, since, is_constant=True, constant=constant)
        offset = element.integer("offset", position, 0, BLOCK_LENGTH_MAX)
        if offset < position:
            raise element.error(f"offset={offset} lies before the end of the element before it, {position}")
        return Member(name, kind, offset, since, optional=presence == "optional")

    def _constant(self, element: Element, kind: Type, declared: Element | None) -> int | float | str:
        reference = element.get("valueRef") or (declared.get("valueRef") if declared is not None else "")
        if reference:
            return self._value_reference(element, reference, kind)
        holder = element if element.text else declared
        if not isinstance(kind, Scalar) or holder is None or not holder.text:
            raise element.error("a constant needs a valueRef, or a type that holds its value")
        if kind.primitive.name == "char":
            return holder.text
        return _number(holder.text, kind.primitive, element)

    def _value_reference(self, element: Element, reference: str, kind: Type) -> int:
        enum_name, _, value_name = reference.partition(".")
        enum = (
            kind if isinstance(kind, EnumType) and kind.name == enum_name else self.named(enum_name, element)
        )
        values = dict(enum.values) if isinstance(enum, EnumType) else {}
        if value_name not in values:
            raise element.error(
                f"valueRef='{reference}' must be the name of an enum, a dot, and one of its values"
            )
        return values[value_name]


def _check_depth(element: Element, depth: int) -> None:
    if depth > COMPOSITE_DEPTH_MAX:
        rule = f"{COMPOSITE_DEPTH_MAX} of them may be nested, and these are more"
        raise element.error(f"{rule}: put the members of inner ones directly into an outer one")


def _plain(primitive: Primitive) -> Scalar:
    encoding = "ascii" if primitive.name == "char" else ""
    return Scalar(primitive.name, primitive, 1, primitive.null, encoding)


def _encoding(element: Element, primitive: Primitive, *, is_array: bool) -> str:
    """The codec's name of the encoding of a type's text; empty if it is no text."""
    name = element.get("characterEncoding") or ("US-ASCII" if primitive.name == "char" else "")
    if not name:
        return ""
    try:
        # Also what looks up as a codec may turn bytes into bytes, or refuse everything.
        letter = "A".encode(name)
    except (LookupError, UnicodeError):
        rule = "must be an encoding of text, such as UTF-8 or ISO-8859-1"
        raise element.error(f"characterEncoding='{name}' {rule}") from None
    if primitive.name == "char" and is_array and b"\0" in letter:
        rule = "has zero bytes within its characters, and a zero ends an array of char"
        raise element.error(f"characterEncoding='{name}' {rule}: use UTF-8, or data of variable length")
    return codecs.lookup(name).name


def _presence(element: Element, default: str) -> str:
    return element.choice("presence", default, ("required", "optional", "constant"))


def _null(text: str, primitive: Primitive, element: Element) -> int | float:
    """A null value as decoded from the wire, where a float has 32 bits: no other value would compare equal to it."""
    value = _number(text, primitive, element)
    if primitive.name != "float":
        return value
    try:
        (rounded,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        raise element.error(f"nullValue='{text}' must be a number that a float of 32 bits can hold") from None
    return float(rounded)


def _number(text: str, primitive: Primitive, element: Element) -> int | float:
    """A value as the schema writes it; a character as its code."""
    try:
        if primitive.is_float:
            return float(text)
        value = ord(text) if primitive.name == "char" and len(text) == 1 else int(text)
    except ValueError:
        raise element.error(f"'{text}' is no {primitive.name}") from None
    bits = primitive.size * 8
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1)
    if primitive.is_unsigned or primitive.name == "char":
        low, high = 0, (1 << bits) - 1
    if not low <= value <= high:
        raise element.error(f"{value} must be {low} to {high}")
    return value
