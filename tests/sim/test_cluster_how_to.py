"""The programs of the how-to page about the simulator run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.sim

PAGE = Path(__file__).parents[2] / "docs/user/how-to/simulate-a-cluster.md"


def test_the_programs_run() -> None:
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert len(programs) == 2
    names: dict[str, object] = {"__name__": "page"}
    for program in programs:
        exec(program, names)
