"""`headrace cluster demo`: what it shows, and what it calls a loss."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benches.processes import ROOT
from rich.console import Console

from headrace import MediaDriver
from headrace.cli.cluster.demo.command import Demo
from headrace.cli.cluster.demo.commands import Answer, LostCommandError
from headrace.cli.cluster.demo.members import Place, member_list
from headrace.cluster.common.members import parse_members
from tests.helpers import TIMEOUT_S, await_true


class Log:
    """A member that has ended."""

    def __init__(self, member_id: int, commands: list[int]) -> None:
        self.member_id = member_id
        self._commands = commands

    def commands(self) -> list[int]:
        return self._commands


class Answered:
    """A client that has ended, and sent one command more than it has answers for."""

    def __init__(self, *numbers: int) -> None:
        self.answers = {number: Answer(0, 1, 2) for number in numbers}
        self.unanswered_count = 1


def checked(tmp_path: Path, *logs: list[int]) -> str:
    console = Console(record=True, width=200)
    demo: Any = Demo(console, Place(tmp_path, tmp_path), None, 1)  # type: ignore[arg-type]
    demo._members = [Log(member_id, log) for member_id, log in enumerate(logs)]
    demo._check(Answered(0, 1, 3))
    return console.export_text()


@pytest.mark.parametrize("unanswered", [[], [2]])
def test_every_answered_command_is_there(tmp_path: Path, unanswered: list[int]) -> None:
    log = [0, 1, *unanswered, 3]
    text = checked(tmp_path, log, log, log)
    assert f"1 command on the way to the killed leader got no answer: {len(unanswered)} of them" in text
    assert "each of the 3 answered commands is in every log, once" in text


@pytest.mark.parametrize(
    ("logs", "words"),
    [
        (([0, 1, 3], [0, 1, 3], [0, 1]), "^member 2 lacks command 3, which was answered$"),
        (([0, 1, 3], [0, 1, 1, 3], [0, 1, 3]), "^member 1 has command 1 twice$"),
        (([0, 1, 2, 3, 2], [0, 1, 2, 3, 2], [0, 1, 2, 3, 2]), "member 0 has command 2 twice"),
        (([0, 1, 3], [0, 1, 3], [1, 0, 3]), "different orders"),
    ],
)
def test_a_lost_or_repeated_command_is_an_error(
    tmp_path: Path, logs: tuple[list[int], ...], words: str
) -> None:
    with pytest.raises(LostCommandError, match=words):
        checked(tmp_path, *logs)


def test_members_get_ports_that_are_free() -> None:
    members = parse_members(member_list(3))
    assert len({endpoint for member in members for endpoint in member.endpoints}) == 3 * 4 + 1


@pytest.mark.system
def test_the_leader_is_killed_and_no_command_lost() -> None:
    console = Console(record=True, width=200)
    with Place.made() as place, MediaDriver(directory=place.drivers / "client") as driver:
        Demo(console, place, driver, 200).run()
    text = console.export_text()
    for words in ("kill -9", "after the kill", "starts again", "has caught up", "is in every log, once"):
        assert words in text
    assert not place.files.exists()
    assert not place.drivers.exists()


@pytest.mark.system
def test_ctrl_c_leaves_neither_processes_nor_files(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headrace", "cluster", "demo"]
    environment = os.environ | {"TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        assert any("leads" in line for line in demo.stdout)
        (files,) = tmp_path.glob("headrace-demo-*")
        members = [one for one in Path("/proc").glob("[0-9]*") if str(files) in command_line(one)]
        assert len(members) == 3
        demo.send_signal(signal.SIGINT)
        assert demo.wait(TIMEOUT_S) == 130
    await_true(lambda: not any(str(files) in command_line(one) for one in members))
    assert not list(tmp_path.iterdir())


def command_line(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except OSError:
        return ""
