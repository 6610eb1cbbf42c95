"""One template of a schema, and a selection of its messages, as the code for columns sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Protocol

if TYPE_CHECKING:
    from headrace.sbe._block import Blocks, Table
    from headrace.sbe._model import Group, Message, SchemaModel
    from headrace.sbe._tail import Entries, Runs

__all__ = ["Selected", "Template"]


class Template(Protocol):
    """The codec of a template; :class:`headrace.sbe.MessageCodec` describes its attributes."""

    model: Message
    schema: SchemaModel
    name: str
    template_id: int
    block_length: int
    header_bytes: bytes
    has_plain_header: bool

    @property
    def table(self) -> Table:
        """The memory layout of the fixed block, for columns."""

    def group_table(self, group: Group) -> Table:
        """The memory layout of a group's entry."""

    def decode_at(self, data: Any, start: int, block_length: int, version: int) -> tuple[Any, int]:
        """Decode the block at `start` of bytes or a view of bytes, and what follows it."""


class Selected(Protocol):
    """The messages of one template among many; :class:`headrace.sbe.Selection` describes them."""

    @property
    def blocks(self) -> Blocks:
        """The fixed blocks."""

    def tail(self) -> dict[str, Runs | Entries]:
        """Groups and data after the blocks, of a template whose groups are flat."""

    def decoded(self) -> list[Any]:
        """Every message decoded by itself, for templates whose groups hold groups or data."""

    def fail_at_field(self, index: int, field: str, reason: str) -> NoReturn:
        """Raise the error for one message, or `reason` if the message by itself is right."""
