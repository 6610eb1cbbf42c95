"""Holds: what a reader that comes and goes has not read yet, so that no retention deletes it (design note 41).

A hold is an empty file beside the segment files, ``<recording id>-<position>-<name>.hold``, which the reader makes and
moves. Its name says everything, so that a kill cannot tear it. Archives only read them, and delete those of a recording
with it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._arguments import checked
from headrace._checks import wrong
from headrace.archive.files.storage import DirectoryStorage

if TYPE_CHECKING:
    import os

    from headrace.archive.files.storage import Storage

__all__ = ["HOLD_SUFFIX", "Hold", "check_hold_name", "hold", "holds", "holds_in", "move_holds", "release"]

HOLD_SUFFIX = ".hold"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_FILE = re.compile(r"(0|[1-9][0-9]{0,18})-(0|[1-9][0-9]{0,18})-([A-Za-z0-9_.-]{1,100})\.hold")
_RULE = "must be 1 to 100 letters, digits, dots, hyphens and underscores"


@dataclass(frozen=True, slots=True)
class Hold:
    """What a retention leaves alone.

    Attributes:
        name: Whose hold it is.
        recording_id: Of which recording.
        position: The segment file with this position is kept, and those after it.
    """

    name: str
    recording_id: int
    position: int

    @property
    def file_name(self) -> str:
        """Name of its file."""
        return f"{self.recording_id}-{self.position}-{self.name}{HOLD_SUFFIX}"


def check_hold_name(name: str) -> None:
    """Refuse a name that no file could have.

    Raises:
        ConfigError: It has other characters, or too many.
    """
    if not _NAME.fullmatch(name):
        raise wrong("name", name, _RULE)


def holds_in(storage: Storage) -> Iterator[Hold]:
    """All holds of an archive's files, in the order of their names."""
    for file_name in storage.names():
        match = _FILE.fullmatch(file_name)
        if match is not None:
            yield Hold(match[3], int(match[1]), int(match[2]))


@checked
def holds(directory: str | os.PathLike[str]) -> list[Hold]:
    """All holds in an archive's directory, by recording and position.

    Raises:
        OSError: The directory cannot be read.
    """
    found = holds_in(DirectoryStorage(directory, create=False))
    return sorted(found, key=lambda one: (one.recording_id, one.position, one.name))


@checked
def hold(directory: str | os.PathLike[str], name: str, recording_id: int, position: int) -> None:
    """Keep what a recording has from a position on, until the hold of this name is moved or released.

    Calling it again moves the hold. The archive may run. It keeps retention away, and no request to delete. What was
    deleted before is not brought back: look at the start position of the recording after the first call.

    Args:
        directory: The archive's directory.
        name: Whose hold it is: letters, digits, dots, hyphens and underscores.
        recording_id: Which recording; it need not be there yet.
        position: The first that is needed; the segment file with it is kept, and those after it.

    Raises:
        ConfigError: The name or a number cannot be.
        OSError: The directory refuses.
    """
    check_hold_name(name)
    for what, number in (("recording_id", recording_id), ("position", position)):
        if number < 0:
            raise wrong(what, number, "must be at least 0")
    move_holds(directory, name, {recording_id: position}, may_make=True)


def move_holds(
    directory: str | os.PathLike[str],
    name: str,
    wanted: Mapping[int, int | None],
    *,
    may_make: bool = False,
) -> dict[int, int]:
    """Move the holds of a name on many recordings, with one look at the directory.

    Args:
        directory: The archive's directory.
        name: Whose holds they are.
        wanted: For each recording the position of its hold; ``None`` to release it.
        may_make: Make holds that are not there. Otherwise they stay away: the archive deletes those of a recording
            that it purges.

    Returns:
        Where the holds of this name are now, by recording.

    Raises:
        OSError: The directory refuses.
    """
    storage = DirectoryStorage(directory, create=False)
    there: dict[int, list[Hold]] = {}
    for one in holds_in(storage):
        if one.name == name:
            there.setdefault(one.recording_id, []).append(one)
    now = {recording_id: min(one.position for one in before) for recording_id, before in there.items()}
    for recording_id, position in wanted.items():
        before = there.get(recording_id, [])
        now.pop(recording_id, None)
        if position is None:
            for one in before:
                storage.delete(one.file_name)
        elif before or may_make:
            # One that has just gone went with its recording.
            with contextlib.nullcontext() if may_make else contextlib.suppress(FileNotFoundError):
                _put(storage, Hold(name, recording_id, position), before)
                now[recording_id] = position
    return now


def _put(storage: Storage, wanted: Hold, before: list[Hold]) -> None:
    """Leave one hold of those that are there, where it is wanted."""
    others = [one for one in before if one != wanted]
    if not before:
        storage.create(wanted.file_name, 0, may_exist=True).close()
    elif len(others) == len(before):
        # At every moment one of both names is there.
        storage.rename(others.pop().file_name, wanted.file_name)
    for one in others:
        storage.delete(one.file_name)


@checked
def release(directory: str | os.PathLike[str], name: str, recording_id: int | None = None) -> int:
    """End the hold of a name on one recording, or on all; gives how many there were.

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
