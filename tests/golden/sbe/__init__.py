"""Schemas and bytes of the SBE tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from headrace import sbe

FOLDER = Path(__file__).resolve().parent
ORDERS = ("little", "big")
MESSAGES = ("Trade", "Order", "Text", "Book", "Tree", "Evolved")
NEWEST = 3


def market(order: str, version: int = NEWEST) -> sbe.Schema:
    """The market schema as it was at a version: without what later ones added."""
    text = (FOLDER / f"market-{order}.xml").read_text()
    types = (FOLDER / "types.xml").read_text().partition("?>")[2]
    text = re.sub(r"<xi:include .*?/>", lambda _: types, text)
    for later in range(version + 1, NEWEST + 1):
        text = re.sub(rf'<group [^>]*sinceVersion="{later}">.*?</group>', "", text, flags=re.DOTALL)
        text = re.sub(rf'<(?:field|data) [^>]*sinceVersion="{later}"/>', "", text)
    text = re.sub(r'(id="90\d" version=)"\d"', rf'\1"{version}"', text)
    return sbe.Schema.from_text(text, name=f"market-{order}-{version}")


def golden(order: str) -> dict[str, bytes]:
    """Messages as the reference's Java tool encoded them."""
    lines = (FOLDER / f"market-{order}.hex").read_text().splitlines()
    return {name: bytes.fromhex(data) for name, data in map(str.split, lines)}


# The first of each template is what the golden bytes hold.
_QUOTE = ("Buy", (-12345,), 3_000_000_000, "Indicative", ["A", "B"], (60_000, "xy"))
_EXAMPLES: dict[str, list[tuple[Any, ...]]] = {
    "Trade": [
        (0xFEDCBA9876543210, -2, 101.25, -0.5, 4_000_000_000, -70_000, 65_000, -300, 200, -100),
        (0, 2**63 - 1, -0.0, 3.0e38, 0, 2**31 - 1, 0, 2**15 - 1, 255, 127),
        (2**64 - 1, -(2**63), float("inf"), float("-inf"), 2**32 - 1, -(2**31), 65535, -(2**15), 0, -128),
    ],
    "Order": [
        (
            *(77, "x", "Sell", "Filled", "West", ["Hidden", "Last"], "ABC", bytes([250, 251, 252, 253])),
            *((-1, 0, 1), (0.25, -1e300), _QUOTE, None, 5, None),
        ),
        (1, "A", "Buy", "New", "East", 0, "ABCDEF", bytes(4), (1, 2, 3), (0.0, 1.0), _QUOTE, 7, None, -1.5),
        (2, "~", None, None, None, ["PostOnly"], "", b"abcd", (0, 0, 0), (1.0, 2.0), _QUOTE, -1, -2, 0.0),
    ],
    "Text": [
        (9, "plain", "h\u00e9llo \u4e16", b"\x00\xff\x07"),
        (0, "", "", b""),
        (2**32 - 1, "x" * 254, "\u4e16" * 1000, bytes(range(256)) * 16),
    ],
    "Book": [
        (12, [((100,), 10), ((-200,), 20)], [("Buy", 1), ("Sell", 2), (None, 65_000)], "done"),
        (0, [], [], ""),
        (1, [((number,), number) for number in range(300)], [("Sell", 3)] * 254, "\u00fc"),
    ],
    "Tree": [
        (3, [(1, [(1.5, "a"), (2.5, "bb")], "first"), (2, [], "")], b"\x01\x02"),
        (0, [], b""),
        (7, [(number, [(0.5, "leaf")] * number, "\u00e9") for number in range(20)], b"root"),
    ],
    "Evolved": [
        (
            *(1, 2, ("Sell", (3,), 4, "Firm", ["B"], (5, "abc")), "Cancelled"),
            *([(1, 1.5), (2, -2.5)], [(-7,)], "n", b"\x09"),
        ),
        (-1, 0, _QUOTE, None, [], [], "", b""),
        (0, 65535, _QUOTE, "New", [(5, 0.0)] * 9, [(number,) for number in range(40)], "note", b"more"),
    ],
}


def examples(name: str) -> list[tuple[Any, ...]]:
    """Values of a template's messages in the order of its items."""
    return _EXAMPLES[name]
