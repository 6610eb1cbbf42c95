"""Texts of strangers: their control characters are shown, and control nothing.

Channels, error texts and payloads come from other programs, some of them over the network. An escape sequence in one
could rename a window, hide a line, or forge one.
"""

from __future__ import annotations

__all__ = ["shown", "shown_in_line"]

_PICTURES = 0x2400
_REPLACEMENT = 0xFFFD
# C0 has pictures of its own; the others, which also turn the direction of a line around or end it, have none.
_IN_LINE = {
    **{code: _PICTURES + code for code in range(0x20)},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), _REPLACEMENT),
    **dict.fromkeys([0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)], _REPLACEMENT),
}
_KEPT = {ord("\n"), ord("\t")}
_SHOWN = {code: picture for code, picture in _IN_LINE.items() if code not in _KEPT}


def shown(text: str) -> str:
    """The text with a picture in place of each control character; lines and tabs stay."""
    return text.translate(_SHOWN)


def shown_in_line(text: str) -> str:
    """As :func:`shown`, with pictures for ends of lines and tabs too, so that the text is one line."""
    return text.translate(_IN_LINE)
