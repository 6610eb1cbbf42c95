"""A file of users with hashed secrets, and the authenticator that goes by it.

A line for each user, ``name:hash``; the hash is Argon2id in the form that argon2 libraries of all languages share.
Empty lines and lines that begin with ``#`` mean nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._base.checks import wrong
from headrace._base.exceptions import HeadraceError
from headrace._base.extras import needs
from headrace.security.authentication import Accepted, Rejected, Verdict

if TYPE_CHECKING:
    from argon2 import PasswordHasher

__all__ = ["UsersAuthenticator", "UsersFile", "UsersFileError"]

_MODE = 0o600
_NAME_LENGTH_MAX = 255
_SECRET_LENGTH_MAX = 1024
_CREDENTIALS_LENGTH_MAX = _NAME_LENGTH_MAX + 1 + _SECRET_LENGTH_MAX
_HASH_BEGIN = "$argon2"
_HEADER = "# Users of an archive and the hashes of their secrets; changed by `headrace archive users`."


class UsersFileError(HeadraceError):
    """A file of users is missing, damaged, or cannot be changed."""


def _hasher() -> PasswordHasher:
    with needs("secure"):
        from argon2 import PasswordHasher
    # What OWASP recommends. The library's default takes five times the processor time, on four threads: beside a media
    # driver that is too much for each client that connects, and for each that a stranger pretends to be.
    return PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


class UsersFile:
    """A file of users. Each change replaces it in one step: who reads it finds the old one or the new one.

    A change keeps the file's owner, group and mode, and all its other lines. An account that may not keep them, because
    it is neither root nor the owner, is refused.

    Args:
        path: The file, or a symlink to it. The first user that is added makes it, with mode 0600.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def users(self) -> dict[str, str]:
        """The hash of each user's secret, by name.

        Raises:
            UsersFileError: The file cannot be read, or a line is damaged; the text has its number and not the line.
        """
        return _read(self.path)[0]

    def put(self, name: str, secret: str) -> None:
        """Add a user, or give one another secret. Takes about 50 ms of a processor and 19 MiB, for the hash.

        Raises:
            ConfigError: The name or the secret cannot be one.
            UsersFileError: The file is damaged, or the disk refuses.
            MissingExtraError: argon2-cffi is not installed.
        """
        if (
            not 0 < len(name.encode()) <= _NAME_LENGTH_MAX
            or ":" in name
            or name[0] == "#"
            or not name.isprintable()
        ):
            rule = f"must be printable text of 1 to {_NAME_LENGTH_MAX} bytes, without a colon, and not beginning with #"
            raise wrong("name", name, rule)
        if not 0 < len(secret.encode()) <= _SECRET_LENGTH_MAX:
            raise wrong("secret", secret, f"must be text of 1 to {_SECRET_LENGTH_MAX} bytes")
        hashed = _hasher().hash(secret.encode())
        line = f"{name}:{hashed}"
        with self._locked() as (place, directory):
            users, lines = _read(place) if place.exists() else ({}, [_HEADER])
            if name in users:
                lines[lines.index(f"{name}:{users[name]}")] = line
            else:
                lines.append(line)
            _replace(place, directory, lines)

    def remove(self, name: str) -> bool:
        """Remove a user; false if there was none. An archive ends the user's sessions within about two seconds.

        Raises:
            UsersFileError: The file is missing or damaged, or the disk refuses.
        """
        with self._locked() as (place, directory):
            users, lines = _read(place)
            if name not in users:
                return False
            lines.remove(f"{name}:{users[name]}")
            _replace(place, directory, lines)
            return True

    @contextlib.contextmanager
    def _locked(self) -> Iterator[tuple[Path, int]]:
        """Of two programs that change the file, the second one reads what the first one wrote.

        Gives the path of the file itself, where ours may be a symlink to it, and the descriptor of its directory.
        """
        place = Path(os.path.realpath(self.path))
        try:
            directory = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as failure:
            raise _unchanged(place, failure) from failure
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            yield place, directory
        finally:
            os.close(directory)

    def __repr__(self) -> str:
        return f"UsersFile({str(self.path)!r})"


def _read(path: Path) -> tuple[dict[str, str], list[str]]:
    """The hash of each user's secret, by name, and all lines."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as failure:
        raise UsersFileError(f"the file of users {path} cannot be read: {failure}") from failure
    except UnicodeDecodeError:
        raise UsersFileError(f"the file of users {path} is not UTF-8 text") from None
    users: dict[str, str] = {}
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        name, _, hashed = line.partition(":")
        if not name or name in users or not hashed.startswith(_HASH_BEGIN):
            rule = "must be name:hash, with a name that no other line has and an Argon2 hash"
            raise UsersFileError(f"the file of users {path}, line {number}: {rule}")
        users[name] = hashed
    return users, lines


def _replace(place: Path, directory: int, lines: list[str]) -> None:
    """Writes the lines to a new file, which takes the place of the old one."""
    made = None
    try:
        descriptor, made = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            _keep_owner_and_mode(place, descriptor)
            file.write("".join(f"{line}\n" for line in lines))
            file.flush()
            os.fsync(descriptor)
        Path(made).replace(place)
    except OSError as failure:
        raise _unchanged(place, failure) from failure
    finally:
        if made is not None:
            Path(made).unlink(missing_ok=True)
    try:
        # The name too: after a power failure a user that was removed would be there again.
        os.fsync(directory)
    except OSError as failure:
        rule = (
            "is changed, and may be as before after a power failure, because its directory cannot be synced"
        )
        raise UsersFileError(f"the file of users {place} {rule}: {failure}") from failure


def _keep_owner_and_mode(place: Path, descriptor: int) -> None:
    """Those of the file that is replaced: an archive under its account must be able to read the new one."""
    try:
        old = place.stat()
    except FileNotFoundError:
        os.fchmod(descriptor, _MODE)
        return
    try:
        os.fchown(descriptor, old.st_uid, old.st_gid)
    except PermissionError as failure:
        rule = f"must stay with its owner {old.st_uid}, group {old.st_gid}: change it as that account, or as root"
        raise UsersFileError(
            f"the file of users {place} cannot be changed: it {rule} ({failure})"
        ) from failure
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _unchanged(place: Path, failure: OSError) -> UsersFileError:
    return UsersFileError(f"the file of users {place} cannot be changed: {failure}")


class UsersAuthenticator:
    """Accepts the users of a file, by credentials ``name:secret``; the principal is the name, as UTF-8.

    The file is read again when it has changed: a user that is not in it any more, or has another secret, loses its
    sessions. If the file then is damaged or gone, sessions stay, and clients that connect are rejected until it is
    mended.

    Args:
        path: The file, made by ``headrace archive users add`` or :class:`UsersFile`.

    Raises:
        UsersFileError: The file is missing or damaged.
        MissingExtraError: argon2-cffi is not installed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = UsersFile(path)
        self._verify = _verifier(_hasher())
        self._known = self._read()
        # An unknown name takes as long as a wrong secret, so that names cannot be tried out.
        self._nobody = _hasher().hash(b"")

    def on_connect(self, credentials: bytes) -> Verdict:
        """See :class:`Authenticator`. Takes about 50 ms of a processor and 19 MiB, for the hash."""
        if len(credentials) > _CREDENTIALS_LENGTH_MAX:
            return Rejected()
        user, _, secret = credentials.partition(b":")
        try:
            name = user.decode()
        except UnicodeDecodeError:
            return Rejected()
        hashed = self._current().get(name)
        is_right = self._verify(hashed or self._nobody, secret)
        if not is_right or hashed is None:
            return Rejected()
        return Accepted(user, lambda: self._recheck(name, hashed))

    def _recheck(self, name: str, hashed: str) -> Verdict:
        now = self._current().get(name)
        if now == hashed:
            return Accepted(name.encode())
        return Rejected(
            f"user {name!r} was removed" if now is None else f"user {name!r} has a new secret now"
        )

    def _current(self) -> dict[str, str]:
        known = self._known
        if known[0] != self._stamp():
            # Stamp and users in one step, because two threads may be here.
            self._known = known = self._read()
        return known[1]

    def _read(self) -> tuple[tuple[int, ...], dict[str, str]]:
        """The users, and a stamp from before they are read: what changes meanwhile is read again."""
        stamp = self._stamp()
        return stamp, self._file.users()

    def _stamp(self) -> tuple[int, ...]:
        """What changes whenever the file does; each change makes a new one."""
        try:
            now = self._file.path.stat()
        except OSError:
            return ()
        return now.st_ino, now.st_mtime_ns, now.st_ctime_ns, now.st_size

    def __repr__(self) -> str:
        return f"UsersAuthenticator({str(self._file.path)!r})"


def _verifier(hasher: PasswordHasher) -> Callable[[str, bytes], bool]:
    from argon2.exceptions import VerifyMismatchError

    def is_right(hashed: str, secret: bytes) -> bool:
        try:
            return hasher.verify(hashed, secret)
        except VerifyMismatchError:
            return False

    return is_right
