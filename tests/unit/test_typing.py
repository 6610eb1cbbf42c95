"""What a type checker makes of the public API, seen from a user's program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import headrace
from tests.helpers import TIMEOUT_S

PROGRAM = Path(__file__).parents[1] / "typed" / "program.py"

BEGINNING = (
    "from headrace import connect",
    "from headrace.cluster import *",
    "",
    "service = ClusteredService()",
)
MISTAKES = (
    'connect().add_publication("aeron:ipc", "10")',
    'ConsensusModule(cluster_id="0")',
    'ServiceContainer(service, service_id="0")',
    'ClusterNode(service, directory="d", session_timeout_ns="1s")',
    'ClusterNode.embedded(service, max_sessions="1")',
    'ClusterClient.connect(egress_stream_id="1")',
)


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
    mistaken.write_text("\n".join((*BEGINNING, *MISTAKES, "")))
    checked = check(mistaken, tmp_path)
    assert checked.returncode == 1
    told = {int(line.split(":")[1]): line for line in checked.stdout.splitlines() if "expected" in line}
    assert sorted(told) == [len(BEGINNING) + number for number in range(1, len(MISTAKES) + 1)]
    assert all('incompatible type "str"; expected "int' in line for line in told.values())
