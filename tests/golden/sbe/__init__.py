"""Schemas and bytes of the SBE tests."""

from __future__ import annotations

import re
from pathlib import Path

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
