"""Sessions of users that an archive does not accept any more, and authenticators that never return."""

from pathlib import Path

import pytest

import headrace
from headrace.archive import Archive
from headrace.security import UserCredentials, UsersFile
from tests.archive.test_authentication import RIGHT, SECRET, Gate, Raw, archive_of, gate, warnings_of
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.system

__all__ = ["gate"]


@pytest.fixture
def users(tmp_path: Path) -> UsersFile:
    users = UsersFile(tmp_path / "users")
    for name in ("alice", "bob", "carol"):
        users.put(name, SECRET)
    return users


def of_user(archiving: headrace.ArchivingMediaDriver, name: str) -> Archive:
    """A session of a user."""
    return archiving.connect_archive(credentials=UserCredentials(name, SECRET))


def test_the_sessions_of_a_user_that_is_removed_end_and_no_others(tmp_path: Path, users: UsersFile) -> None:
    """With their replays; so do those of a user whose secret has changed. What they had recorded goes on."""
    with (
        archive_of(
            tmp_path / "archive",
            authenticator=f"users-file:{users.path}",
            session_liveness_check_interval_ns=50_000_000,
        ) as archiving,
        of_user(archiving, "alice") as alice,
        of_user(archiving, "bob") as bob,
        of_user(archiving, "carol") as carol,
    ):
        publication = alice.add_recorded_publication("aeron:ipc?term-length=64k", 7)
        publication.offer_blocking(b"before", timeout_s=TIMEOUT_S)
        replay = alice.replay(0)
        assert next(replay).payload == b"before"
        assert users.remove("alice")
        users.put("bob", SECRET + "2")
        directory = Path(archiving.archive.directory)
        for text in ("user 'alice' was removed", "user 'bob' has a new secret now"):
            await_true(lambda text=f"WARN - a session ends: {text}": warnings_of(directory).get(text) == 1)
        for archive in (alice, bob):
            with pytest.raises(
                headrace.ArchiveError, match="the archive has ended this session; its error log"
            ):
                archive.list_recordings()
        publication.offer_blocking(b"after", timeout_s=TIMEOUT_S)
        with pytest.raises(headrace.ArchiveError, match="ended the replay early"):
            list(replay)
        await_true(lambda: carol.recording_position(0) == publication.position)
        with pytest.raises(headrace.AuthenticationError):
            of_user(archiving, "alice")
        data = b"".join(path.read_bytes() for path in directory.iterdir())
        assert SECRET.encode() not in data


def test_a_file_of_users_that_is_damaged_ends_no_session(tmp_path: Path, users: UsersFile) -> None:
    """It says so; the sessions of those who are not in the mended one end."""
    with (
        archive_of(
            tmp_path / "archive",
            authenticator=f"users-file:{users.path}",
            session_liveness_check_interval_ns=50_000_000,
        ) as archiving,
        of_user(archiving, "alice") as alice,
    ):
        good = users.path.read_text()
        users.path.write_text("no user")
        directory = Path(archiving.archive.directory)
        await_true(lambda: any("cannot be checked again" in text for text in warnings_of(directory)))
        assert alice.list_recordings() == []
        users.path.write_text(good)
        users.remove("alice")
        await_true(lambda: "WARN - a session ends: user 'alice' was removed" in warnings_of(directory))


def test_an_authenticator_that_never_returns_holds_up_one_client_and_no_later_ones(
    tmp_path: Path, gate: Gate
) -> None:
    """Once the client that it judges is given up."""
    with (
        archive_of(tmp_path / "archive", authenticator=gate, connect_timeout_ns=300_000_000) as archiving,
        archiving.connect() as client,
    ):
        raw = Raw(client)
        raw.connect(b"block")
        await_true(lambda: b"block" in gate.seen)
        await_true(lambda: not archiving.archive._control._sessions)
        assert not gate.may_go_on.is_set()
        with archiving.connect_archive(credentials=RIGHT) as archive:
            assert archive.list_recordings() == []
