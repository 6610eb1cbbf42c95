"""The XML of a schema: elements that know their place, checked attributes, included files."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

from headrace.sbe._errors import SchemaError

__all__ = ["Element", "read_schema"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_INCLUDE = "{http://www.w3.org/2001/XInclude}include"
_INCLUDE_DEPTH_MAX = 8
# What reads a schema goes down with its elements: far enough for any message, and not to the end of Python's stack.
_NESTING_MAX = 64


class Element:
    """One element, with the file it came from and the path of names that leads to it."""

    def __init__(self, node: ElementTree.Element, file: str, parent: Element | None = None) -> None:
        self.node = node
        self.file = file
        self.tag = _local(node.tag)
        self.parent = parent

    def __iter__(self) -> Iterator[Element]:
        for child in self.node:
            if isinstance(child.tag, str):  # comments have a function for a tag
                yield Element(child, child.get("_file", self.file), self)

    @property
    def path(self) -> str:
        """Names from the outside in, as errors show them."""
        name = self.node.get("name") or self.node.get("package") or self.node.get("href")
        own = self.tag if name is None else f"{self.tag} '{name}'"
        if self.parent is None or self.parent.tag in ("messageSchema", "types"):
            return own
        return f"{self.parent.path} > {own}"

    def error(self, rule: str) -> SchemaError:
        """The error for a rule that this element breaks."""
        return SchemaError(self.file, self.path, rule)

    def get(self, attribute: str, default: str = "") -> str:
        """An attribute, or its default."""
        return self.node.get(attribute, default).strip()

    def required(self, attribute: str) -> str:
        """An attribute that must not be missing or empty."""
        value = self.get(attribute)
        if not value:
            raise self.error(f"needs the attribute {attribute}")
        return value

    def name(self) -> str:
        """The name, checked to be one."""
        name = self.required("name")
        if not _NAME.match(name):
            raise self.error("a name is a letter or underscore, then letters, digits and underscores")
        return name

    def integer(self, attribute: str, default: int | None, low: int, high: int) -> int:
        """A whole number within limits. Without a default it is required."""
        text = self.get(attribute)
        if not text and default is not None:
            return default
        text = text or self.required(attribute)
        try:
            value = int(text)
        except ValueError:
            raise self.error(f"{attribute}='{text}' must be a whole number") from None
        if not low <= value <= high:
            raise self.error(f"{attribute}={value} must be {low} to {high}")
        return value

    def choice(self, attribute: str, default: str, allowed: tuple[str, ...]) -> str:
        """One of a few words."""
        value = self.get(attribute) or default
        if value not in allowed:
            raise self.error(f"{attribute}='{value}' must be one of {', '.join(allowed)}")
        return value

    @property
    def text(self) -> str:
        """The text between its tags."""
        return (self.node.text or "").strip()


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def read_schema(text: str | bytes, file: str, folder: Path | None) -> Element:
    """The root of a schema, with included files inserted."""
    root = _parse(text, file)
    if _local(root.tag) != "messageSchema":
        raise SchemaError(file, _local(root.tag), "the outermost element must be messageSchema")
    _include(root, file, folder, 0, 1)
    return Element(root, file)


def _parse(text: str | bytes, file: str) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise SchemaError(file, "document", f"must be well-formed XML: {error}") from None


def _include(node: ElementTree.Element, file: str, folder: Path | None, depth: int, nesting: int) -> None:
    if nesting > _NESTING_MAX:
        rule = f"{_NESTING_MAX} elements may be nested, and these are more"
        raise SchemaError(file, _local(node.tag), f"{rule}: put inner ones directly into an outer one")
    for index, child in enumerate(list(node)):
        if child.tag != _INCLUDE:
            if isinstance(child.tag, str):
                _include(child, file, folder, depth, nesting + 1)
            continue
        href = child.get("href", "")
        element = f"include '{href}'"
        if folder is None:
            raise SchemaError(
                file, element, "a schema given as text cannot include files; load it from a file"
            )
        if depth == _INCLUDE_DEPTH_MAX:
            raise SchemaError(file, element, f"files may include each other {_INCLUDE_DEPTH_MAX} deep")
        path = folder / href
        try:
            included = _parse(path.read_bytes(), str(path))
        except OSError as error:
            raise SchemaError(file, element, f"cannot be read: {error.strerror}") from None
        _include(included, str(path), path.parent, depth + 1, nesting + 1)
        for part in included.iter():
            part.attrib.setdefault("_file", str(path))
        node[index] = included
