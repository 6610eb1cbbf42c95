"""Writes `docs/reference/states.md` from the tables of states in Rust and Python; `--check` tells if it is old."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace import _core
from headrace._base.states import StateTable, name_of
from headrace.archive.client.following.states import FOLLOW
from headrace.archive.server.states import TABLES as ARCHIVE
from headrace.client._reconnecting_states import RECONNECTING_CLIENT
from headrace.cluster.backup.states import TABLES as BACKUP
from headrace.cluster.client.states import TABLES as CLUSTER_CLIENT
from headrace.cluster.member.states import TABLES as MEMBER

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "states.md"
Table = dict[str, Any]

_HEAD = """# States

Made by `scripts/states.py`; do not edit.

Each long-lived thing of a driver, an archive, a cluster and a client begins in the first state of its list. The states
after the arrow may follow. `headrace events` shows each change with its reason ([how](../user/how-to/events.md)), and
`headrace cluster watch` a member's present state. A client has no event log: Python's `logging` has its changes, at
level `DEBUG`, those of a `cluster-client` at `INFO`.
"""


def page() -> str:
    """The whole page."""
    driver = map(_section, _core.state_tables())
    sections = (
        ("Archive", ARCHIVE),
        ("Cluster", (*MEMBER, *BACKUP)),
        ("Clients", (RECONNECTING_CLIENT, FOLLOW, *CLUSTER_CLIENT)),
    )
    parts = [_HEAD, "\n## Driver\n", *map("".join, driver)]
    for title, tables in sections:
        parts += [f"\n## {title}\n", *("".join(_section(_as_dict(table))) for table in tables)]
    return "".join(parts)


def _as_dict(table: StateTable[Any]) -> Table:
    states = [
        {"name": name_of(state), "meaning": meaning, "next": [*map(name_of, table.transitions[state])]}
        for state, meaning in table.meanings.items()
    ]
    return {"kind": table.kind, "about": table.about, "states": states}


def _section(table: Table) -> Iterator[str]:
    yield f"\n### `{table['kind']}`\n\n{table['about']}\n\n"
    for state in table["states"]:
        following = f" → {', '.join(state['next'])}" if state["next"] else ""
        yield f"- **{state['name']}**{following}: {_lowered(state['meaning'])}\n"


def _lowered(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


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
