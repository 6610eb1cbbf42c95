"""The file of users: its lines, its changes, and the authenticator that goes by it."""

import os
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
            with pytest.raises(UsersFileError, match=r"line \d|no UTF-8") as refusal:
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
