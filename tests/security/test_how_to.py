"""The programs of the page about securing an archive do what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from benches.processes import ROOT

from tests.helpers import TIMEOUT_S

PROGRAMS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs/user/how-to/secure.md").read_text(), flags=re.DOTALL
)


@pytest.mark.system
@pytest.mark.parametrize(
    "program", [one for one in PROGRAMS if "embedded" in one], ids=["authenticator", "authorisation"]
)
def test_a_program_of_the_page_is_served_by_its_archive(tmp_path: Path, program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
