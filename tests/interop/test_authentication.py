"""Who a client is: the reference's client on our archive, and our client on the reference's archive."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from benches.processes import JavaPeer, background, fresh_directory

import headrace
from headrace.archive import Archive, ErrorCode
from headrace.security import Accepted, Challenge, Rejected, UserCredentials, UsersFile, Verdict
from tests.helpers import TIMEOUT_S
from tests.ports import free_endpoint

pytestmark = pytest.mark.interop

MAIN = "ArchiveAuthentication"


def told(java: JavaPeer, directory: str, credentials: str, answer: str = "") -> list[str]:
    """What Java's client prints."""
    command = java.command(MAIN, directory, credentials, answer)
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


class Asking:
    """As the one in Java."""

    def on_connect(self, credentials: bytes) -> Verdict:
        return Challenge(b"who is there?", self._on_answer)

    @staticmethod
    def _on_answer(answer: bytes) -> Verdict:
        return Accepted(b"asked") if answer == b"it is me" else Rejected()


class NoReplays:
    """Has clients leave replays alone."""

    def is_authorised(self, protocol_id: int, action_id: int, *_: object) -> bool:
        return (protocol_id, action_id) != (101, 19)


REJECTED = f"REFUSED {int(ErrorCode.AUTHENTICATION_REJECTED)} "
SERVED = ["CONNECTED", "LISTED", "STOPPED"]


def test_java_client_is_authenticated_by_our_file_of_users(java: JavaPeer, tmp_path: Path) -> None:
    users = UsersFile(tmp_path / "users")
    users.put("alice", "secret")
    with headrace.ArchivingMediaDriver.embedded(
        archive_directory=tmp_path / "archive", authenticator=f"users-file:{users.path}"
    ) as archiving:
        assert told(java, archiving.directory, "alice:secret") == SERVED
        for credentials in ("alice:Secret", "bob:secret", ""):
            (line,) = told(java, archiving.directory, credentials)
            assert line.startswith(REJECTED), line
            assert "authentication rejected" in line


def test_java_client_answers_our_challenge_and_is_denied_a_request(java: JavaPeer, tmp_path: Path) -> None:
    with headrace.ArchivingMediaDriver.embedded(
        archive_directory=tmp_path / "archive", authenticator=Asking(), authorisation=NoReplays()
    ) as archiving:
        *lines, last = told(java, archiving.directory, "", "it is me")
        assert lines == ["CHALLENGED who is there?", "CONNECTED", "LISTED"]
        assert last.startswith(f"REFUSED {int(ErrorCode.UNAUTHORISED_ACTION)} ")
        assert "StopAllReplaysRequest" in last
        challenged, last = told(java, archiving.directory, "", "it is not")
        assert challenged == lines[0]
        assert last.startswith(REJECTED), last


@contextmanager
def java_archive(java: JavaPeer, archive_directory: Path, **suppliers: str) -> Iterator[Path]:
    """Driver directory of an unmodified Java archive with plug-ins."""
    directory = fresh_directory("interop-authentication")
    properties = {
        "aeron.dir": str(directory),
        "aeron.threading.mode": "SHARED",
        "aeron.dir.delete.on.shutdown": "true",
        "aeron.archive.threading.mode": "SHARED",
        "aeron.archive.dir": str(archive_directory),
        "aeron.archive.control.channel": f"aeron:udp?endpoint={free_endpoint()}",
        "aeron.archive.replication.channel": "aeron:udp?endpoint=127.0.0.1:0",
        **{f"aeron.archive.{name}.supplier": value for name, value in suppliers.items()},
    }
    command = java.command("io.aeron.archive.ArchivingMediaDriver", properties=properties)
    with background(command, ready=archive_directory / "archive-mark.dat"):
        yield directory


def test_our_client_says_who_it_is_to_the_java_archive(java: JavaPeer, tmp_path: Path) -> None:
    with (
        java_archive(java, tmp_path / "archive", authenticator=f"{MAIN}$Simple") as directory,
        headrace.Client.connect(directory=directory) as client,
    ):
        with Archive.connect(client, credentials=UserCredentials("alice", "secret")) as archive:
            assert archive.list_recordings() == []
        for credentials in (b"", b"alice:wrong"):
            with pytest.raises(headrace.AuthenticationError, match="AUTHENTICATION_REJECTED"):
                Archive.connect(client, credentials=credentials)


class Answers:
    """A supplier for a challenge."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def encoded_credentials(self) -> bytes:
        return b""

    def on_challenge(self, challenge: bytes) -> bytes:
        assert challenge == b"who is there?"
        return self._answer


def test_our_client_answers_the_challenge_of_the_java_archive(java: JavaPeer, tmp_path: Path) -> None:
    with (
        java_archive(java, tmp_path / "archive", authenticator=f"{MAIN}$Asking") as directory,
        headrace.Client.connect(directory=directory) as client,
    ):
        with Archive.connect(client, credentials=Answers(b"it is me")) as archive:
            assert archive.list_recordings() == []
        with pytest.raises(headrace.AuthenticationError, match="AUTHENTICATION_REJECTED"):
            Archive.connect(client, credentials=Answers(b"it is not"))


def test_our_client_is_denied_by_the_java_archive(java: JavaPeer, tmp_path: Path) -> None:
    plug_ins = {"authorisation.service": "DENY_ALL"}
    with (
        java_archive(java, tmp_path / "archive", **plug_ins) as directory,
        headrace.Client.connect(directory=directory) as client,
        pytest.raises(headrace.ArchiveError) as refusal,
    ):
        Archive.connect(client)
    assert refusal.value.code == ErrorCode.UNAUTHORISED_ACTION
