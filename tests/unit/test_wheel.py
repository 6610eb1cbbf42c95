"""The script that puts `headraced` into a wheel. `make wheel` installs and runs the whole wheel."""

from __future__ import annotations

import base64
import hashlib
import runpy
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECORD = "headrace-1.2.dist-info/RECORD"


def test_a_program_in_a_wheel_is_recorded_and_executable(tmp_path: Path):
    wheel = tmp_path / "headrace-1.2-cp311-abi3-manylinux_2_17_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("headrace/__init__.py", "")
        made.writestr(RECORD, f"headrace/__init__.py,sha256=x,0\n{RECORD},,\n")
    program = tmp_path / "headraced"
    program.write_bytes(b"\x7fELF program")
    runpy.run_path(str(ROOT / "scripts/add_command.py"))["add_command"](wheel, program)
    with zipfile.ZipFile(wheel) as changed:
        assert changed.testzip() is None
        member = changed.getinfo("headrace-1.2.data/scripts/headraced")
        assert changed.read(member) == program.read_bytes()
        assert member.external_attr >> 16 & 0o111 == 0o111
        lines = changed.read(RECORD).decode().splitlines()
    digest = base64.urlsafe_b64encode(hashlib.sha256(program.read_bytes()).digest()).rstrip(b"=").decode()
    assert f"headrace-1.2.data/scripts/headraced,sha256={digest},12" in lines
    assert len(lines) == 3
