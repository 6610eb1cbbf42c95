"""Where an archive keeps its files: a directory, or memory for tests.

The archive reaches the disk through this alone, so that a test can run it on a disk that fills up or loses what was
not synced.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from headrace._agent.errors import ArchiveFileError

__all__ = ["DirectoryStorage", "Storage", "StorageFile"]

SYNC_DATA = 1
_P = ParamSpec("_P")
_R = TypeVar("_R")


class StorageFile(Protocol):
    """One open file. Every call may raise ``OSError``."""

    def read(self, offset: int, length: int) -> bytes:
        """At most ``length`` bytes from an offset; fewer at the end of the file."""

    def read_into(self, offset: int, *buffers: memoryview) -> int:
        """Fill buffers, one after the other, from an offset; gives the number of bytes read."""

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Write all of the data at an offset."""

    def set_length(self, length: int) -> None:
        """Truncate the file, or extend it with zeros."""

    def length(self) -> int:
        """Bytes in the file."""

    def sync(self, level: int) -> None:
        """Force what was written to the medium: 0 not at all, 1 the data, 2 the data and what describes it."""

    def has_hole(self, offset: int, length: int) -> bool:
        """Whether some bytes of a range were never written; false where the file system does not tell."""

    def next_data(self, offset: int) -> int | None:
        """Where the next bytes are that may have been written, from an offset on; ``None`` when there are none."""

    def try_lock(self) -> bool:
        """Take the file for this process until it is closed; false when another process has it."""

    def close(self) -> None:
        """Close the file."""


class Storage(Protocol):
    """A flat directory of files."""

    def names(self) -> list[str]:
        """Names of all files."""

    def open(self, name: str, *, read_only: bool = False) -> StorageFile:
        """Open a file that exists; ``FileNotFoundError`` when it does not."""

    def create(self, name: str, length: int, *, may_exist: bool = False) -> StorageFile:
        """Make a file of that many zeros; ``FileExistsError`` when it exists and may not."""

    def length(self, name: str) -> int | None:
        """Bytes in a file; ``None`` when there is no such file."""

    def modified_ms(self, name: str) -> int:
        """When a file was last written, in milliseconds since 1970."""

    def delete(self, name: str) -> None:
        """Delete a file; it need not exist."""

    def rename(self, name: str, new_name: str) -> None:
        """Give a file another name, replacing the one that has it."""

    def sync(self) -> None:
        """Force the names to the medium."""

    def usable_bytes(self) -> int:
        """Bytes that can still be written."""

    def describe(self, name: str = "") -> str:
        """A path for messages to people."""

    @property
    def event_directory(self) -> str | None:
        """Where the event log is, a file that is mapped; ``None`` where there is no such place."""


def _names_file(
    method: Callable[Concatenate[_File, _P], _R],
) -> Callable[Concatenate[_File, _P], _R]:
    """The system does not say which file it refuses, once that is open; a person must know it to do something."""

    @functools.wraps(method)
    def call(self: _File, /, *args: _P.args, **keywords: _P.kwargs) -> _R:
        try:
            return method(self, *args, **keywords)
        except OSError as refusal:
            refusal.filename = refusal.filename or str(self.path)
            raise

    return call


class _File:
    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self.path = path

    @_names_file
    def read(self, offset: int, length: int) -> bytes:
        return os.pread(self._descriptor, length, offset)

    @_names_file
    def read_into(self, offset: int, *buffers: memoryview) -> int:
        return os.preadv(self._descriptor, buffers, offset)

    @_names_file
    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        written = os.pwrite(self._descriptor, data, offset)
        if written == len(data):
            return
        rest = memoryview(data)
        while written < len(rest):
            written += os.pwrite(self._descriptor, rest[written:], offset + written)

    @_names_file
    def set_length(self, length: int) -> None:
        os.ftruncate(self._descriptor, length)

    @_names_file
    def length(self) -> int:
        return os.fstat(self._descriptor).st_size

    @_names_file
    def sync(self, level: int) -> None:
        if level == SYNC_DATA:
            os.fdatasync(self._descriptor)
        elif level > SYNC_DATA:
            os.fsync(self._descriptor)

    def has_hole(self, offset: int, length: int) -> bool:
        try:
            # A file system without holes says that the only one is at the end.
            return os.lseek(self._descriptor, offset, os.SEEK_HOLE) < offset + length
        except OSError:
            return False

    def next_data(self, offset: int) -> int | None:
        try:
            return os.lseek(self._descriptor, offset, os.SEEK_DATA)
        except OSError as refusal:
            if refusal.errno == errno.ENXIO:
                return None
            return offset if offset < self.length() else None

    def try_lock(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether a name is of a file; a link that leads to itself is of none, and harms no other."""
    try:
        return entry.is_file()
    except OSError:
        return False


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(directory: Path) -> None:
    """Make a directory, and those that it is in; what is made is on the disk, or a power cut takes all files in it.

    Raises:
        FileExistsError: A file has the name.
        OSError: The system refuses.
    """
    if directory.is_dir():
        return
    if not directory.parent.is_dir():
        make_directory(directory.parent)
    directory.mkdir(exist_ok=True)
    # One that may be written and not read cannot be forced.
    with contextlib.suppress(PermissionError):
        _sync_directory(directory.parent)


class DirectoryStorage:
    """Files of a directory, which is made if it is not there.

    Attributes:
        directory: The directory.
    """

    def __init__(self, directory: str | os.PathLike[str], *, create: bool = True) -> None:
        self.directory = Path(directory)
        if create:
            try:
                make_directory(self.directory)
            except FileExistsError:
                raise ArchiveFileError(f"{self.directory} is a file and not a directory") from None
            except OSError as refusal:
                raise ArchiveFileError(
                    f"cannot create the directory {self.directory} for an archive's files: {refusal.strerror}; "
                    "name one that this user may create and write"
                ) from refusal

    def names(self) -> list[str]:
        """See :class:`Storage`."""
        return sorted(entry.name for entry in self._entries())

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        with os.scandir(self.directory) as entries:
            yield from (entry for entry in entries if _is_file(entry))

    def open(self, name: str, *, read_only: bool = False) -> StorageFile:
        """See :class:`Storage`."""
        flags = os.O_RDONLY if read_only else os.O_RDWR
        path = self.directory / name
        return _File(os.open(path, flags | os.O_CLOEXEC), path)

    def create(self, name: str, length: int, *, may_exist: bool = False) -> StorageFile:
        """See :class:`Storage`."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | (0 if may_exist else os.O_EXCL)
        path = self.directory / name
        file = _File(os.open(path, flags, 0o644), path)
        try:
            file.set_length(length)
        except OSError:
            file.close()
            raise
        return file

    def length(self, name: str) -> int | None:
        """See :class:`Storage`."""
        try:
            return (self.directory / name).stat().st_size
        except FileNotFoundError:
            return None

    def modified_ms(self, name: str) -> int:
        """See :class:`Storage`."""
        return (self.directory / name).stat().st_mtime_ns // 1_000_000

    def delete(self, name: str) -> None:
        """See :class:`Storage`."""
        with contextlib.suppress(FileNotFoundError):
            (self.directory / name).unlink()

    def rename(self, name: str, new_name: str) -> None:
        """See :class:`Storage`."""
        (self.directory / name).replace(self.directory / new_name)

    def sync(self) -> None:
        """See :class:`Storage`."""
        _sync_directory(self.directory)

    def usable_bytes(self) -> int:
        """See :class:`Storage`."""
        space = os.statvfs(self.directory)
        return space.f_bavail * space.f_frsize

    def describe(self, name: str = "") -> str:
        """See :class:`Storage`."""
        return str(self.directory / name) if name else str(self.directory)

    @property
    def event_directory(self) -> str:
        """See :class:`Storage`."""
        return str(self.directory)

    def __repr__(self) -> str:
        return f"DirectoryStorage({str(self.directory)!r})"
