"""The tutorial of the cluster, as it is printed: its programs under their names, its commands, what they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from benches.processes import ROOT

from tests.system.processes import TIMEOUT_S

pytestmark = pytest.mark.system

TEXT = (ROOT / "docs/user/tutorial-cluster.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)


def printed(directory: Path, *command: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=directory,
        env=os.environ | {"PATH": path, "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_prints_what_it_says(tmp_path: Path) -> None:
    names = re.findall(r"`(\w+\.py)`", "".join(re.findall(r"^## .*", TEXT, flags=re.MULTILINE)))
    for name, program in zip(names, blocks("python"), strict=True):
        (tmp_path / name).write_text(program)
    (shell,) = blocks("sh")
    first, again, killed, after_snapshot = blocks("text")
    assert printed(tmp_path, "python", "first.py") == first
    assert printed(tmp_path, "python", "first.py") == again
    # SIGTERM ends the node, whose status says so.
    assert printed(tmp_path, "bash", "-u", "-c", f"{shell}wait $node || test $? = 143") == killed
    assert printed(tmp_path, "python", "snapshot.py") == after_snapshot
