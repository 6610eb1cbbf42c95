"""What other programs say of themselves, as a counter's label can have it."""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str) -> str:
    """The text with a question mark for each character that is not printable ASCII, which labels must be."""
    return "".join(character if " " <= character <= "~" else "?" for character in text)
