"""What `make` prints where a newcomer reads it: what it builds, and why that failed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("status", "shown"), [(0, []), (7, ["found something", "wrote something"])])
def test_a_build_says_what_it_builds_and_the_rest_only_when_it_fails(
    tmp_path: Path, status: int, shown: list[str]
):
    (tmp_path / "setup").touch()
    for name, text in [
        ("maturin", f"echo wrote something; echo found something >&2; exit {status}"),
        ("cargo", ""),
    ]:
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    made = subprocess.run(
        ["make", "--no-print-directory", "build", f"STAMPS={tmp_path}", f"BIN={tmp_path}"],
        cwd=ROOT,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    lines = [line for line in (made.stdout + made.stderr).splitlines() if not line.startswith("make: ***")]
    assert lines[0].startswith("compiling the Rust core")
    assert sorted(lines[1:]) == shown
    assert (made.returncode == 0) == (status == 0) == (tmp_path / "build").exists()
