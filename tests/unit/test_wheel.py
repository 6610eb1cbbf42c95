"""The scripts that `make wheel` runs: one puts `headraced` into a wheel, one installs the wheel and tries it."""

from __future__ import annotations

import base64
import hashlib
import os
import runpy
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

import headrace
from tests.helpers import TIMEOUT_S

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


# The Rust driver is compiled for `make wheel` only. pip puts its own interpreter in the first line.
DRIVER = b"""#!python
import signal, sys, headrace
with headrace.MediaDriver(directory=sys.argv[1].partition("=")[2]):
    signal.sigwait({signal.SIGTERM})
"""


@pytest.mark.slow
@pytest.mark.system
def test_a_wheel_of_this_package_passes_the_check_of_wheels(tmp_path: Path):
    version = headrace.__version__
    wheel = tmp_path / f"headrace-{version}-cp311-abi3-linux_{os.uname().machine}.whl"
    source = Path(headrace.__file__).parent
    metadata = distribution("headrace")
    with zipfile.ZipFile(wheel, "w") as made:
        files = [path for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc"]
        names = [f"headrace/{path.relative_to(source)}" for path in files]
        for path, name in zip(files, names, strict=True):
            made.write(path, name)
        for name in ("METADATA", "WHEEL", "entry_points.txt"):
            text = metadata.read_text(name)
            assert text is not None, f"the installed package has no {name}"
            names.append(f"headrace-{version}.dist-info/{name}")
            made.writestr(names[-1], text)
        made.writestr(f"headrace-{version}.dist-info/RECORD", "".join(f"{name},,\n" for name in names))
    (tmp_path / "headraced").write_bytes(DRIVER)
    for script, *arguments in (
        ("add_command.py", wheel, tmp_path / "headraced"),
        ("check_wheel.py", wheel),
    ):
        done = subprocess.run(
            [sys.executable, ROOT / "scripts" / script, *arguments],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": pass\n") == 3
