"""The file of users: its lines, its changes, and the authenticator that goes by it."""

import os
import stat
import threading
from pathlib import Path

import pytest

from headrace import ConfigError
from headrace.security import Accepted, Rejected, UsersAuthenticator, UsersFile, UsersFileError

SECRET = "M4RK3D-secret"


@pytest.fixture
def users(tmp_path: Path) -> UsersFile:
    """A file with alice in it."""
    users = UsersFile(tmp_path / "users")
    users.put("alice", SECRET)
    return users


def test_a_user_is_accepted_with_its_secret_and_no_other(users: UsersFile) -> None:
    """The principal is the name. A colon belongs to the secret."""
    users.put("bo\u00eb", "a:b")
    authenticator = UsersAuthenticator(users.path)
    assert authenticator.on_connect(f"alice:{SECRET}".encode()) == Accepted(b"alice")
    assert authenticator.on_connect("bo\u00eb:a:b".encode()) == Accepted("bo\u00eb".encode())
    wrong = [
        b"",
        b":",
        b"alice",
        b"alice:",
        b"alice:" + SECRET.lower().encode(),
        b"bob:",
        f"bob:{SECRET}".encode(),
    ]
    wrong += [b"\xff\xfe:x", b"alice:\xff", b"alice:" + b"x" * 100_000, f":{SECRET}".encode(), b"alice\n:x"]
    for credentials in wrong:
        assert authenticator.on_connect(credentials) == Rejected(), credentials[:40]


def test_the_file_has_hashes_for_its_owner_alone(users: UsersFile) -> None:
    """Two users of one secret have two hashes."""
    users.put("bob", SECRET)
    text = users.path.read_text()
    assert SECRET not in text
    hashes = users.users()
    assert set(hashes) == {"alice", "bob"}
    assert hashes["alice"] != hashes["bob"]
    assert all(one.startswith("$argon2id$") for one in hashes.values())
    assert users.path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in users.path.parent.iterdir()] == ["users"]


def test_a_change_of_the_file_holds_for_the_next_client(users: UsersFile) -> None:
    authenticator = UsersAuthenticator(users.path)
    users.put("bob", "x")
    assert authenticator.on_connect(b"bob:x") == Accepted(b"bob")
    users.put("bob", "y")
    assert authenticator.on_connect(b"bob:x") == Rejected()
    assert authenticator.on_connect(b"bob:y") == Accepted(b"bob")
    assert users.remove("bob")
    assert not users.remove("bob")
    assert authenticator.on_connect(b"bob:y") == Rejected()


def test_a_user_that_is_removed_while_the_file_is_first_read_is_not_accepted(
    users: UsersFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    users.put("bob", "x")
    read = UsersFile.users

    def read_before_the_removal(file: UsersFile) -> dict[str, str]:
        found = read(file)
        monkeypatch.undo()
        assert users.remove("bob")
        return found

    monkeypatch.setattr(UsersFile, "users", read_before_the_removal)
    authenticator = UsersAuthenticator(users.path)
    assert set(users.users()) == {"alice"}
    assert authenticator.on_connect(b"bob:x") == Rejected()


def test_a_file_that_is_damaged_or_gone_accepts_no_one_until_it_is_mended(users: UsersFile) -> None:
    """And is refused at the start. The error names the line by its number."""
    good = users.path.read_bytes()
    authenticator = UsersAuthenticator(users.path)
    for damage in (good + b"bob\n", good + b"bob:plain\n", good + good, b"\xff", good + b":$argon2id$x\n"):
        users.path.write_bytes(damage)
        for fails in (lambda: UsersAuthenticator(users.path), lambda: authenticator.on_connect(b"alice:x")):
            with pytest.raises(UsersFileError, match=r"line \d|not UTF-8") as refusal:
                fails()
            assert "argon2id" not in str(refusal.value)
    users.path.unlink()
    with pytest.raises(UsersFileError, match="cannot be read"):
        authenticator.on_connect(f"alice:{SECRET}".encode())
    users.path.write_bytes(good)
    assert authenticator.on_connect(f"alice:{SECRET}".encode()) == Accepted(b"alice")


@pytest.mark.parametrize("name", ["", "a:b", "a\nb", "#a", "a" * 256, "a\x00"])
def test_a_name_that_would_break_a_line_is_refused(users: UsersFile, name: str) -> None:
    before = users.path.read_bytes()
    with pytest.raises(ConfigError, match="name="):
        users.put(name, SECRET)
    assert users.path.read_bytes() == before


@pytest.mark.parametrize("secret", ["", SECRET * 100])
def test_a_secret_that_is_refused_is_not_shown(users: UsersFile, secret: str) -> None:
    with pytest.raises(ConfigError, match="1 to 1024 bytes") as refusal:
        users.put("bob", secret)
    assert SECRET not in str(refusal.value) + refusal.value.value


def test_what_the_disk_refuses_leaves_the_file_as_it_was(
    users: UsersFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = users.path.read_bytes()

    def refuse(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(UsersFileError, match="No space left"):
        users.put("bob", "x")
    assert users.path.read_bytes() == before
    assert [path.name for path in users.path.parent.iterdir()] == ["users"]


def test_a_change_through_a_symlink_changes_the_file_that_it_leads_to(
    users: UsersFile, tmp_path: Path
) -> None:
    """Which an archive may read by its own name."""
    (tmp_path / "links").mkdir()
    link = UsersFile(tmp_path / "links" / "users")
    link.path.symlink_to("../users")
    authenticator = UsersAuthenticator(users.path)
    link.put("bob", "x")
    assert authenticator.on_connect(b"bob:x") == Accepted(b"bob")
    assert link.remove("bob")
    assert set(users.users()) == {"alice"}
    assert link.path.is_symlink()
    assert [path.name for path in link.path.parent.iterdir()] == ["users"]


def test_a_symlink_to_no_file_yet_leads_to_the_one_that_the_first_user_makes(tmp_path: Path) -> None:
    link = UsersFile(tmp_path / "users")
    link.path.symlink_to("real")
    link.put("alice", SECRET)
    assert set(UsersFile(tmp_path / "real").users()) == {"alice"}
    assert link.path.is_symlink()


@pytest.mark.parametrize("mode", [0o640, 0o660, 0o400])
def test_a_change_keeps_the_mode_of_the_file(users: UsersFile, mode: int) -> None:
    users.path.chmod(mode)
    users.put("bob", "x")
    assert users.path.stat().st_mode & 0o7777 == mode
    assert users.remove("bob")
    assert users.path.stat().st_mode & 0o7777 == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file to another account")
def test_a_change_by_root_leaves_the_file_to_its_owner(users: UsersFile) -> None:
    """An archive under that account could read it no longer, and would reject every client."""
    os.chown(users.path, 12_345, 23_456)
    users.put("bob", "x")
    found = users.path.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (12_345, 23_456, 0o600)


def test_an_account_that_cannot_keep_the_owner_changes_nothing(
    users: UsersFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, found = users.path.read_bytes(), users.path.stat()
    asked = []

    def refuse(_: int, user: int, group: int) -> None:
        asked.append((user, group))
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refuse)
    with pytest.raises(UsersFileError, match=f"its owner {found.st_uid}, group {found.st_gid}.* or as root"):
        users.put("bob", "x")
    assert asked == [(found.st_uid, found.st_gid)]
    assert users.path.read_bytes() == before
    assert [path.name for path in users.path.parent.iterdir()] == ["users"]


def test_a_change_leaves_all_other_lines_as_they_are(users: UsersFile) -> None:
    """Comments, empty lines, and the order."""
    users.put("bob", "x")
    comment, alice, bob = users.path.read_text().splitlines()
    users.path.write_text("\n".join(["# ours", "", bob, "# the boss: ask her", alice]))
    users.put("carol", "x")
    users.put("bob", "y")
    lines = users.path.read_text().splitlines()
    assert [lines[0], lines[1], lines[3], lines[4]] == ["# ours", "", "# the boss: ask her", alice]
    assert lines[2].startswith("bob:")
    assert lines[2] != bob
    assert lines[5].startswith("carol:")
    assert comment.startswith("# ")
    assert users.remove("bob")
    assert users.path.read_text().splitlines() == ["# ours", "", "# the boss: ask her", alice, lines[5]]


def test_a_change_is_on_the_disk_with_its_name(users: UsersFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory is synced, after the file has its name."""
    synced = []
    sync = os.fsync

    def note(descriptor: int) -> None:
        synced.append((Path(f"/proc/self/fd/{descriptor}").readlink(), "bob" in users.users()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    users.put("bob", "x")
    assert len(synced) == 2
    assert synced[1] == (users.path.parent.resolve(), True)


def test_a_directory_that_cannot_be_synced_is_told_as_that(
    users: UsersFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def refuse(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(5, "Input/output error")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(UsersFileError, match="is changed, and may be as before after a power failure"):
        users.put("bob", "x")
    assert set(users.users()) == {"alice", "bob"}


def test_changes_at_once_all_count(tmp_path: Path) -> None:
    """Each reads what the one before it wrote."""
    names = [f"user-{number}" for number in range(6)]
    threads = [
        threading.Thread(target=UsersFile(tmp_path / "users").put, args=(name, name)) for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(UsersFile(tmp_path / "users").users()) == names


def test_a_hash_with_other_parameters_is_checked_with_those(users: UsersFile) -> None:
    """Such as one that another program made."""
    from argon2 import PasswordHasher

    elsewhere = PasswordHasher(time_cost=1, memory_cost=64, parallelism=2).hash(b"other")
    users.path.write_text(f"{users.path.read_text()}bob:{elsewhere}\n")
    authenticator = UsersAuthenticator(users.path)
    assert authenticator.on_connect(b"bob:other") == Accepted(b"bob")
    assert authenticator.on_connect(b"bob:wrong") == Rejected()
