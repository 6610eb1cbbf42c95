"""Holds: keep the unread data of readers that come and go from being deleted by a retention.

A hold is an empty file beside the segment files, ``<recording id>-<position>-<name>.hold``, which the reader makes and
moves. Its name says everything, so that a kill cannot tear it. Archives only read them, and delete those of a recording
with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._agent.storage import DirectoryStorage
from headrace._base.checks import wrong

if TYPE_CHECKING:
    import os

    from headrace._agent.storage import Storage

__all__ = ["HOLD_SUFFIX", "Hold", "check_hold_name", "hold", "holds", "holds_in", "release"]

HOLD_SUFFIX = ".hold"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_FILE = re.compile(r"(0|[1-9][0-9]{0,18})-(0|[1-9][0-9]{0,18})-([A-Za-z0-9_.-]{1,100})\.hold")
_RULE = "must be 1 to 100 letters, digits, dots, hyphens and underscores"


@dataclass(frozen=True, slots=True)
class Hold:
    """Data that a retention must keep.

    Attributes:
        name: The reader's name.
        recording_id: Which recording.
        position: The segment file with this position is kept, and all after it.
    """

    name: str
    recording_id: int
    position: int

    @property
    def file_name(self) -> str:
        """Name of its file."""
        return f"{self.recording_id}-{self.position}-{self.name}{HOLD_SUFFIX}"

    def put(self, directory: str | os.PathLike[str]) -> None:
        """Make the hold, without looking for others of its name; :func:`hold` looks.

        Raises:
            ConfigError: The name or a number is impossible.
            OSError: The directory refuses.
        """
        self._check()
        DirectoryStorage(directory, create=False).create(self.file_name, 0, may_exist=True).close()

    def moved(self, directory: str | os.PathLike[str], position: int) -> Hold:
        """Move the hold, which must exist; returns the moved one.

        Raises:
            ConfigError: The name or a number is impossible.
            FileNotFoundError: It is gone: the archive deletes the holds of a recording that it purges.
            OSError: The directory refuses.
        """
        one = Hold(self.name, self.recording_id, position)
        one._check()
        # At every moment one of both names is there.
        DirectoryStorage(directory, create=False).rename(self.file_name, one.file_name)
        return one

    def end(self, directory: str | os.PathLike[str]) -> None:
        """Release the hold; does nothing if it does not exist.

        Raises:
            ConfigError: The name or a number is impossible.
            OSError: The directory refuses.
        """
        self._check()
        DirectoryStorage(directory, create=False).delete(self.file_name)

    def _check(self) -> None:
        check_hold_name(self.name)
        for what, number in (("recording_id", self.recording_id), ("position", self.position)):
            if number < 0:
                raise wrong(what, number, "must be at least 0")


def check_hold_name(name: str) -> None:
    """Refuse a name that no file could have.

    Raises:
        ConfigError: It has wrong characters, or too many.
    """
    if not _NAME.fullmatch(name):
        raise wrong("name", name, _RULE)


def holds_in(storage: Storage) -> Iterator[Hold]:
    """All holds of an archive's files, in the order of their names."""
    for file_name in storage.names():
        match = _FILE.fullmatch(file_name)
        if match is not None:
            yield Hold(match[3], int(match[1]), int(match[2]))


def holds(directory: str | os.PathLike[str]) -> list[Hold]:
    """All holds in an archive's directory, by recording and position.

    Raises:
        OSError: The directory cannot be read.
    """
    found = holds_in(DirectoryStorage(directory, create=False))
    return sorted(found, key=lambda one: (one.recording_id, one.position, one.name))


def hold(directory: str | os.PathLike[str], name: str, recording_id: int, position: int) -> None:
    """Keep a recording from a position on, until the hold of this name is moved or released.

    Calling it again moves the hold. The archive may run. A hold stops retention, but not a request to delete. Data that
    is already deleted does not come back: check the start position of the recording after the first call.

    Args:
        directory: The archive's directory.
        name: The reader's name: letters, digits, dots, hyphens and underscores.
        recording_id: Which recording; it need not exist yet.
        position: The first position that is needed; the segment file with it is kept, and all after it.

    Raises:
        ConfigError: The name or a number is impossible.
        OSError: The directory refuses.
    """
    wanted = Hold(name, recording_id, position)
    wanted._check()
    storage = DirectoryStorage(directory, create=False)
    before = [one for one in holds_in(storage) if (one.name, one.recording_id) == (name, recording_id)]
    if wanted in before:
        before.remove(wanted)
    elif before:
        # At every moment one of both names is there.
        storage.rename(before.pop().file_name, wanted.file_name)
    else:
        storage.create(wanted.file_name, 0, may_exist=True).close()
    for one in before:
        storage.delete(one.file_name)


def release(directory: str | os.PathLike[str], name: str, recording_id: int | None = None) -> int:
    """Release the hold of a name on one recording, or on all; returns how many there were.

    Raises:
        OSError: The directory refuses.
    """
    storage = DirectoryStorage(directory, create=False)
    found = [
        one for one in holds_in(storage) if one.name == name and recording_id in (None, one.recording_id)
    ]
    for one in found:
        storage.delete(one.file_name)
    return len(found)
