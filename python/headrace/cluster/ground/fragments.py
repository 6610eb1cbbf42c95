"""Fragments of a log's messages: where an entry begins and ends, of which an image shows the whole alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._results import Action

if TYPE_CHECKING:
    from headrace.client import Header, Image

__all__ = ["BEGINS", "ENDS", "next_flags"]

BEGINS, ENDS = 0x80, 0x40
"""Flags of a fragment that begins a message, and of one that ends it."""


def next_flags(image: Image, limit_position: int) -> int | None:
    """The flags of the next fragment, if it has come and begins before a position; it is not taken."""
    found: list[int] = []

    def look(_: memoryview, header: Header) -> Action:
        found.append(header.flags)
        return Action.ABORT

    image.controlled_poll(look, 1, limit_position=limit_position, assemble=False, view=True)
    return found[0] if found else None
