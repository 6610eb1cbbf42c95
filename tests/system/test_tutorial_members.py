"""The tutorial of three members, as it is printed: its files under their names, its commands, what they print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benches.processes import ROOT

from tests.ports import free_member
from tests.system.test_tutorial_cluster import blocks, printed

pytestmark = pytest.mark.system

TEXT = (ROOT / "docs/user/tutorial-members.md").read_text()
AWAIT = """
until for member in 0 1 2; do headrace cluster is-leader member-$member; done 2>&1 | grep -q ^leader; do sleep 0.1; done
"""
# The members must have ended before the directory goes.
END = "wait\n"
TRAP = "trap 'kill $(jobs -p) 2> /dev/null' EXIT\n"


def test_it_does_what_it_says(tmp_path: Path) -> None:
    object_, client = blocks("python", TEXT)
    (members,) = blocks("toml", TEXT)
    (tmp_path / "total.py").write_text(object_)
    # Less than the twenty seconds that a reader may need.
    (tmp_path / "client.py").write_text(client.replace("+ 20", "+ 8"))
    assert members.count("localhost") == 3
    for _ in range(3):
        members = members.replace('"localhost"', f'"{free_member()}"', 1)
    (tmp_path / "cluster.toml").write_text(members)
    start, watch, kill, start_again, stop = blocks("sh", TEXT)
    table, said = blocks("text", TEXT)
    script = "".join((TRAP, start, AWAIT, watch, kill, start_again, "python client.py\n", stop, END))
    lines = printed(tmp_path, "bash", "-u", "-c", script).splitlines()
    (heads, *_), (total, *_) = table.splitlines(), said.splitlines()
    assert sum(line.split()[:6] == heads.split()[:6] for line in lines) == 2
    as_said = re.sub(r"\d+(\.\d)?", r"([\\d.]+)", total)
    totals = [int(found[1]) for line in lines if (found := re.fullmatch(as_said, line))]
    assert len(totals) == 2
    assert 0 < totals[0] < totals[1]
