"""Writes `docs/reference/states.md` from the tables of states in Rust and Python; `--check` tells if it is old."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace import _core
from headrace._states import StateTable, name_of
from headrace.archive.server.states import TABLES as ARCHIVE
from headrace.cluster.client.states import CLIENT
from headrace.cluster.member.states import TABLES as MEMBER

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "states.md"
Table = dict[str, Any]

_HEAD = """# States

Made by `scripts/states.py`; do not edit.

Each long-lived thing of a driver, an archive and a cluster is in one of these states, and goes from one to another only
as the tables say. It begins in the first. `headrace events` shows each change in a driver or an archive, with its
reason ([how](../user/how-to/events.md)); `headrace cluster watch` shows the present state of a member.
"""


def page() -> str:
    """The whole page."""
    driver = map(_section, _core.state_tables())
    parts = [_HEAD, "\n## Driver\n", *map("".join, driver)]
    for title, tables in (("Archive", ARCHIVE), ("Cluster", (*MEMBER, CLIENT))):
        parts += [f"\n## {title}\n", *("".join(_section(_as_dict(table))) for table in tables)]
    return "".join(parts)


def _as_dict(table: StateTable[Any]) -> Table:
    states = [
        {"name": name_of(state), "meaning": meaning, "next": map(name_of, table.transitions[state])}
        for state, meaning in table.meanings.items()
    ]
    return {"kind": table.kind, "about": table.about, "states": states}


def _section(table: Table) -> Iterator[str]:
    yield f"\n### `{table['kind']}`\n\n{table['about']}\n\n| state | meaning | may become |\n|---|---|---|\n"
    for state in table["states"]:
        yield f"| {state['name']} | {state['meaning']} | {', '.join(state['next'])} |\n"


def main(arguments: list[str]) -> int:
    """Write the page, or tell whether it is what it should be."""
    text = page()
    if arguments == ["--check"]:
        is_old = not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text
        if is_old:
            print(f"{PAGE.relative_to(ROOT)}: is not what the tables say; run scripts/states.py")
        return int(is_old)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
