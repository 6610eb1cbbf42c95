"""The tutorial, block by block, as it is printed: programs and commands."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches.processes import ROOT

from tests.system.processes import TIMEOUT_S, driver_process, finish, start

pytestmark = pytest.mark.system

BLOCKS = re.findall(
    r"```(python|sh)\n(.*?)```", (ROOT / "docs/user/tutorial.md").read_text(), flags=re.DOTALL
)
PROGRAMS = [text for language, text in BLOCKS if language == "python"]
COMMANDS = [text for language, text in BLOCKS if language == "sh"]


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    """Of a driver that runs, as the second section wants it."""
    assert COMMANDS[0] == "headrace driver\n"
    with driver_process("tutorial") as made:
        yield made


def test_no_block_is_left_out() -> None:
    assert (len(PROGRAMS), len(COMMANDS)) == (5, 3)


def test_one_process() -> None:
    assert finish(start(["-c", PROGRAMS[0]])) == "b'hello'\n"


def test_two_processes(directory: Path) -> None:
    subscriber = start(["-u", "-c", PROGRAMS[1]], directory)
    publisher = start(["-c", PROGRAMS[2]], directory)
    try:
        assert finish(publisher) == ""
        assert_prints(subscriber, "message 999")
    finally:
        subscriber.kill()
        subscriber.communicate()


def test_the_network(directory: Path) -> None:
    names: dict[str, str] = {}
    exec(PROGRAMS[3], names)
    assert names["channel"] == "aeron:udp?endpoint=192.168.1.20:20121"
    subscribe, publish = (command.strip() for command in COMMANDS[1:])
    subscriber, publisher = (shell(command, directory) for command in (subscribe, publish))
    try:
        assert_prints(subscriber, "1000")
        _, error = publisher.communicate(timeout=TIMEOUT_S)
        assert publisher.returncode == 0, error
    finally:
        os.killpg(subscriber.pid, signal.SIGKILL)
        subscriber.communicate()


def test_faster() -> None:
    assert finish(start(["-c", PROGRAMS[4]])) == "(1000, 2) [2. 3.] 1000\n"


def shell(command: str, directory: Path) -> subprocess.Popen[str]:
    """A command as a person would give it, with the environment's programs first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.Popen(
        ["bash", "-o", "pipefail", "-c", command],
        env=os.environ | {"PATH": path, "AERON_DIR": str(directory)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def assert_prints(process: subprocess.Popen[str], end: str) -> None:
    """Read lines up to one that ends so."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if line.rstrip("\n").endswith(end):
            return
    raise AssertionError(f"it ended without a line that ends with {end!r}: {seen[-20:]}")
