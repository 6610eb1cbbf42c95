"""What a type checker makes of the public API, seen from a user's program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import headrace
from tests.helpers import TIMEOUT_S

PROGRAM = Path(__file__).parents[1] / "typed" / "program.py"


def check(program: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    # Away from the project, whose settings a user does not have.
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--no-error-summary",
            "--cache-dir",
            str(cache),
            str(program),
        ],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        cwd=cache,
        check=False,
    )


@pytest.mark.slow
def test_a_users_program_passes_strictly_and_its_mistakes_do_not(tmp_path: Path):
    assert (Path(headrace.__file__).parent / "py.typed").exists()
    checked = check(PROGRAM, tmp_path)
    assert (checked.returncode, checked.stdout) == (0, "")
    mistaken = tmp_path / "mistaken.py"
    mistaken.write_text('import headrace\n\nheadrace.connect().add_publication("aeron:ipc", "10")\n')
    checked = check(mistaken, tmp_path)
    assert checked.returncode == 1
    assert 'incompatible type "str"; expected "int"' in checked.stdout
