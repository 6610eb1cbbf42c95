"""Texts of strangers on a terminal: their control characters are shown, and control nothing.

Channels, error texts and payloads come from other programs, some of them over the network. An escape sequence in one
could rename a window, hide a line, or forge one.
"""

from __future__ import annotations

import logging

_PICTURES = 0x2400
_REPLACEMENT = 0xFFFD
_KEPT = {ord("\n"), ord("\t")}
# C0 has pictures of its own; the others, which also turn the direction of a line around, have none.
_SHOWN = {
    **{code: _PICTURES + code for code in range(0x20) if code not in _KEPT},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), _REPLACEMENT),
    **dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], _REPLACEMENT),
}


def shown(text: str) -> str:
    """The text with a picture in place of each control character; lines and tabs stay."""
    return text.translate(_SHOWN)


class ShownFormatter(logging.Formatter):
    """Log lines as `shown` gives them."""

    def format(self, record: logging.LogRecord) -> str:
        """One entry."""
        return shown(super().format(record))
