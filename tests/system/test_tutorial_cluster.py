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
CHANGE = (ROOT / "docs/user/how-to/change-a-services-version.md").read_text()


def blocks(language: str, text: str = TEXT) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


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


def test_the_change_of_a_service_prints_what_it_says(tmp_path: Path) -> None:
    (program,), (said,) = blocks("python", CHANGE), blocks("text", CHANGE)
    assert printed(tmp_path, "python", "-c", program) == said
    refused = "try:\n    ask(Prices2(), version(2, 0), b'5')\nexcept Exception as error:\n    print(error)\n"
    before_the_last, _, _ = program.rstrip().rpartition("ask(")
    program = before_the_last.partition("ask(Prices1()")[0] + refused
    error = re.search(r"`(incompatible version: .*?)`", CHANGE)
    assert error is not None
    assert error[1] in printed(tmp_path, "python", "-W", "default", "-c", program)
