"""The tutorial of Spark and the README, typed into a Python prompt block by block, then their commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from benches.processes import ROOT

from tests.helpers import TIMEOUT_S

TUTORIAL = ROOT / "docs/user/tutorial-spark.md"
README = ROOT / "README.md"
# Installing is tried by hand: it downloads some 490 MB.
INSTALLATION = "pip install"


def blocks(document: Path, language: str) -> list[str]:
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", document.read_text(), flags=re.DOTALL)
    assert found
    return found


def run(command: list[str], directory: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=directory,
        env=os.environ | {"PATH": path},
        input=text,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def typed(programs: list[str], directory: Path) -> str:
    """What a Python prompt prints when they are pasted into it."""
    done = run([sys.executable, "-i", "-q"], directory, "\n".join(programs))
    assert re.findall(r"^\w*(?:Error|Exception)\b.*", done.stderr, flags=re.MULTILINE) == [], done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("spark")  # for its check of Java
def test_every_block_runs_and_prints_what_it_says(tmp_path: Path) -> None:
    (schema,) = blocks(TUTORIAL, "xml")
    (tmp_path / "trades.xml").write_text(schema)
    printed = typed(blocks(TUTORIAL, "python"), tmp_path)
    for line in "".join(blocks(TUTORIAL, "text")).splitlines():
        assert line in printed, f"{line!r} was to be printed next:\n{printed}"
        printed = printed.partition(line)[2]
    for block in blocks(TUTORIAL, "sh"):
        if INSTALLATION not in block:
            listed = run(["bash", "-eu", "-c", block], tmp_path)
            assert listed.returncode == 0, listed.stderr
            assert "1001" in listed.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_record_and_analyse_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    printed = typed(blocks(README, "python")[1:3], tmp_path)
    assert "499500" in printed
    assert "|           0| 1000|" in printed
