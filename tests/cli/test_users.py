"""`headrace archive users` and the commands' own credentials: no secret on a command line, none in what is printed."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from benches.processes import ROOT

import headrace
from headrace.security import Accepted, UsersAuthenticator
from tests.cli.test_archive import run
from tests.helpers import TIMEOUT_S
from tests.ports import free_endpoint

pytestmark = pytest.mark.system

SECRET = "M4RK3D-secret"
COMMAND = [sys.executable, "-m", "headrace", "archive", "users"]


def users(*args: object, stdin: str = "", status: int = 0) -> str:
    """What a command prints, which has no secret."""
    done = subprocess.run(
        [*COMMAND, *map(str, args)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        cwd=ROOT,
    )
    said = done.stdout + done.stderr
    assert done.returncode == status, said
    assert SECRET not in said
    assert "Traceback" not in said
    return said


def test_users_are_added_listed_and_removed(tmp_path: Path) -> None:
    """The secret is the first line of stdin."""
    path = tmp_path / "users"
    assert users("add", path, "bob", stdin=f"{SECRET}\nmore\n") == ""
    assert users("add", path, "alice", stdin=f"{SECRET}") == ""
    assert users("list", path) == "alice\nbob\n"
    assert UsersAuthenticator(path).on_connect(f"bob:{SECRET}".encode()) == Accepted(b"bob")
    assert path.stat().st_mode & 0o777 == 0o600
    assert users("remove", path, "alice") == ""
    assert "has no user alice" in users("remove", path, "alice", status=1)
    assert users("list", path) == "bob\n"


def test_what_is_refused_is_said_in_one_line_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "users"
    users("add", path, "bob", stdin=SECRET)
    before = path.read_bytes()
    assert "secret=" in users("add", path, "eve", stdin="", status=1) + users(
        "add", path, "e", stdin="\n", status=1
    )
    assert "without a colon" in users("add", path, "a:b", stdin=SECRET, status=1)
    assert "Error" in users("add", path, "eve", SECRET.lower(), stdin=SECRET, status=2)
    assert path.read_bytes() == before
    assert "cannot be read" in users("list", tmp_path / "other", status=1)
    path.write_text("bob\n")
    assert "line 1" in users("add", path, "eve", stdin=SECRET, status=1)


def test_a_terminal_is_asked_twice_and_shows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "users"
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "add", str(path), "alice"], stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT
    ) as process:
        os.close(theirs)
        shown = b""
        for question in (b"Secret: ", b"confirmation: "):
            while not shown.endswith(question):
                shown += os.read(ours, 1024)
            os.write(ours, SECRET.encode() + b"\n")
        assert process.wait(TIMEOUT_S) == 0
    os.close(ours)
    assert SECRET.encode() not in shown
    assert UsersAuthenticator(path).on_connect(f"alice:{SECRET}".encode()) == Accepted(b"alice")


def test_commands_say_who_asks_by_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given by an option, or by the environment; for a copy also to the other archive."""
    path, mine = tmp_path / "users", tmp_path / "mine"
    users("add", path, "alice", stdin=SECRET)
    mine.write_text(f"alice:{SECRET}\n")
    settings = {"replication_channel": "aeron:udp?endpoint=127.0.0.1:0"}
    with (
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=tmp_path / "source",
            control_channel=f"aeron:udp?endpoint={free_endpoint()}",
            authenticator=f"users-file:{path}",
        ) as source,
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=tmp_path / "copy",
            control_channel=f"aeron:udp?endpoint={free_endpoint()}",
            **settings,  # type: ignore[arg-type]
        ) as copy,
    ):
        with (
            source.connect_archive(credentials=mine.read_bytes()[:-1]) as archive,
            archive.add_recorded_publication("aeron:ipc?term-length=64k", 7) as publication,
        ):
            publication.offer_blocking(b"kept")
        detach = ("detach-segments", 0, 0, "-d", source.directory)
        refused = run(*detach, status=1).stderr
        assert "AUTHENTICATION_REJECTED" in refused
        assert "--credentials-file" in refused
        assert "newStartPosition=0" in run(*detach, "--credentials-file", mine, status=1).stderr
        monkeypatch.setenv("HEADRACE_CREDENTIALS_FILE", str(mine))
        assert "newStartPosition=0" in run(*detach, status=1).stderr
        replicate = ("replicate", 0, source.archive.config.control_channel, "-d", copy.directory)
        assert "Replication connection failed" in run(*replicate, status=1).stderr
        named = (*replicate, "--source-credentials-file", mine)
        assert "would copy positions 0 to 64" in run(*named, "--dry-run").stdout
        said = run(*named)
        assert "recording 0 is a copy of 0, and ends at position 64" in said.stdout
        assert SECRET not in said.stdout + said.stderr
