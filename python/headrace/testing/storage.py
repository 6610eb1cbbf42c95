"""The disk of a simulated machine: it keeps for certain only what was synced, fills up, fails, and stops at any step.

It takes the place of the directory in which an archive keeps its files; see `headrace._agent.storage`.
"""

from __future__ import annotations

import copy
import errno
import fnmatch
import os
import random
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace._agent.storage import StorageFile
    from headrace.clock import Clock

__all__ = ["PAGE_LENGTH", "Killed", "SimulatedStorage"]

PAGE_LENGTH = 4096
"""What a disk writes whole or not at all."""

_SPACE = 1 << 40
_NEVER = 1 << 60
_KINDS = ("read", "write", "sync", "create", "delete", "rename")


class Killed(BaseException):
    """The process ended before a step of its disk: nothing that it does from now on reaches the disk."""


@dataclass(slots=True)
class _Stored:
    """A file, apart from its name: what was written to it, and what of that was forced to the medium."""

    data: bytearray = field(default_factory=bytearray)
    pages: set[int] = field(default_factory=set)
    """Those that were ever written; all others are holes."""
    forced: bytes = b""
    forced_pages: frozenset[int] = frozenset()

    def force(self) -> None:
        self.forced, self.forced_pages = bytes(self.data), frozenset(self.pages)


@dataclass(slots=True)
class _Fault:
    """What the disk refuses."""

    kind: str
    pattern: str
    error: int
    after: int
    times: int
    chance: float | None


class _Files(MutableMapping[str, bytearray]):
    """The files as bytes by name, for tests to look at and to damage. What is put in counts as never written."""

    def __init__(self, stored: dict[str, _Stored]) -> None:
        self._stored = stored

    def __getitem__(self, name: str) -> bytearray:
        return self._stored[name].data

    def __setitem__(self, name: str, data: bytearray) -> None:
        self._stored.setdefault(name, _Stored()).data[:] = data

    def __delitem__(self, name: str) -> None:
        del self._stored[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)


class SimulatedStorage:
    """A flat directory of files in memory, for :class:`headrace.ArchiveServer` and what reads its files.

    Each change is a step: a page of a write, a new length, a name, a sync. Not thread-safe.

    Args:
        chance: Decides what a power cut loses, and what fails by chance.
        space: Bytes that can be written before the disk is full. A page takes some when it is first written, and gives
            it back when it is deleted or cut off. May be changed at any time.
        knows_holes: Whether the file system tells which pages were never written. May be changed at any time.
        clock: When files were modified; without it, never.
        name: What errors call the disk.
        event_directory: A real directory for the event log of an archive, which no crash harms; without it an archive
            keeps none.

    Attributes:
        files: The files as bytes by name, for tests to look at and to damage.
        locked: Names of the files that a process has locked.
        modified: When files were last written, in milliseconds since 1970.
        step_count: Changes so far.
        refused_count: Changes and reads that were refused so far, because of :meth:`fail` or for want of space.
    """

    def __init__(
        self,
        chance: random.Random | None = None,
        *,
        space: int = _SPACE,
        knows_holes: bool = True,
        clock: Clock | None = None,
        name: str = "simulated",
        event_directory: str | None = None,
    ) -> None:
        self._stored: dict[str, _Stored] = {}
        self._forced_names: dict[str, _Stored] = {}
        # Changes of names since the last sync of the directory: what has which name then; nothing when it is gone.
        self._changes: list[dict[str, _Stored | None]] = []
        self._chance = chance or random.Random(0)
        self.knows_holes = knows_holes
        self._clock = clock
        self._name = name
        self._event_directory = event_directory
        self._faults: list[_Fault] = []
        self._steps_left = _NEVER
        self._kill_kind: str | None = None
        self._is_dead = False
        self._life = 0
        self.files = _Files(self._stored)
        self.locked: set[str] = set()
        self.modified: dict[str, int] = {}
        self.space = space
        self.step_count = 0
        self.refused_count = 0

    # --- what a test does to it ------------------------------------------------------------------------------------

    def kill_before(self, step: int, kind: str | None = None) -> None:
        """Let so many steps happen; the next one raises :class:`Killed`, and so does each after it.

        Args:
            step: How many, from now on.
            kind: Count only steps of this kind; see :meth:`fail`.
        """
        self._steps_left, self._kill_kind, self._is_dead = step, kind, False

    def fail(
        self,
        kind: str,
        pattern: str = "*",
        *,
        after: int = 0,
        times: int = _NEVER,
        chance: float | None = None,
        error: int = errno.EIO,
    ) -> None:
        """Refuse what the archive does, with an ``OSError``, until :meth:`mend`.

        Args:
            kind: ``read``, ``write``, ``sync``, ``create``, ``delete`` or ``rename``.
            pattern: Of which files, as in a shell: ``*.rec``. The directory has the name ``.``.
            after: How many to let happen first.
            times: How many to refuse.
            chance: Refuse each with this chance instead of always.
            error: The error's number.

        Raises:
            ValueError: The kind is none of these.
        """
        if kind not in _KINDS:
            raise ValueError(f"kind={kind!r}: must be one of {', '.join(_KINDS)}")
        self._faults.append(_Fault(kind, pattern, error, after, times, chance))

    def mend(self) -> None:
        """Refuse nothing any more, and kill no process."""
        self._faults.clear()
        self.kill_before(_NEVER)

    def crash(self, *, keeps_writes: bool = False) -> int:
        """End the processes that use the disk: their open files refuse everything, and their locks are free.

        Args:
            keeps_writes: As a kill leaves it. Otherwise as a power cut: each page, each length and each change of
                names that was not synced is there or is not, as chance decides.

        Returns:
            How many pages and names were lost.
        """
        self._life += 1
        self.kill_before(_NEVER)
        self.locked.clear()
        if keeps_writes:
            return 0
        names, lost_count = self._names_after_a_cut()
        self.space += PAGE_LENGTH * self._page_count()
        self._stored.clear()
        for name, stored in names.items():
            left, lost_pages = self._after_a_cut(stored)
            lost_count += lost_pages
            self._stored[name] = left
        for stored in self._stored.values():
            stored.force()
        self.space -= PAGE_LENGTH * self._page_count()
        self._forced_names, self._changes = dict(self._stored), []
        return lost_count

    def copy(self) -> SimulatedStorage:
        """The same disk, which may change without this one: what a process finds that starts after a kill."""
        twin = copy.copy(self)
        twin._chance = copy.copy(self._chance)
        twin._stored = {name: copy.deepcopy(stored) for name, stored in self._stored.items()}
        twin._forced_names, twin._changes = dict(twin._stored), []
        for stored in twin._stored.values():
            stored.force()
        twin._faults = []
        twin._event_directory = None
        twin.kill_before(_NEVER)
        twin.files, twin.locked, twin.modified = _Files(twin._stored), set(), dict(self.modified)
        return twin

    # --- what an archive does with it: see headrace._agent.storage.Storage ------------------------------------

    def names(self) -> list[str]:
        """Names of all files, sorted."""
        return sorted(self._stored)

    def open(self, name: str, *, read_only: bool = False) -> StorageFile:
        """Open a file that exists."""
        if name not in self._stored:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return _SimulatedFile(self, name, self._stored[name])

    def create(self, name: str, length: int, *, may_exist: bool = False) -> StorageFile:
        """Make a file of so many zeros."""
        if name in self._stored and not may_exist:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        self.begin("create", name)
        if name not in self._stored:
            self._change({name: _Stored()})
        file = _SimulatedFile(self, name, self._stored[name])
        file.set_length(length)
        return file

    def length(self, name: str) -> int | None:
        """Bytes in a file."""
        return len(self._stored[name].data) if name in self._stored else None

    def modified_ms(self, name: str) -> int:
        """When a file was last written."""
        return self.modified.get(name, 0)

    def delete(self, name: str) -> None:
        """Delete a file; it need not exist."""
        self.begin("delete", name)
        if name in self._stored:
            self.space += PAGE_LENGTH * len(self._stored[name].pages)
            self._change({name: None})

    def rename(self, name: str, new_name: str) -> None:
        """Give a file another name, replacing the one that has it."""
        self.begin("rename", name)
        if name not in self._stored:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        if new_name in self._stored:
            self.space += PAGE_LENGTH * len(self._stored[new_name].pages)
        self._change({new_name: self._stored[name], name: None})

    def sync(self) -> None:
        """Force the names to the medium."""
        self.begin("sync", ".")
        self._forced_names, self._changes = dict(self._stored), []

    def usable_bytes(self) -> int:
        """Bytes that can still be written."""
        return max(0, self.space)

    def describe(self, name: str = "") -> str:
        """A path for messages to people."""
        return f"{self._name}/{name}"

    def __repr__(self) -> str:
        return f"SimulatedStorage({self._name!r}, {len(self._stored)} files)"

    @property
    def event_directory(self) -> str | None:
        """Where an archive keeps its event log."""
        return self._event_directory

    # --- what its files ask of it ------------------------------------------------------------------------------------

    @property
    def forced_names(self) -> frozenset[str]:
        """Names that the last sync of the directory forced to the medium."""
        return frozenset(self._forced_names)

    @property
    def life(self) -> int:
        """How many crashes there were."""
        return self._life

    def begin(self, kind: str, name: str) -> None:
        """Before a change, or a read: it may be refused, or be the step before which the process ends."""
        for fault in self._faults:
            if fault.kind == kind and fnmatch.fnmatchcase(name, fault.pattern) and self._happens(fault):
                raise self._refusal(fault.error, name)
        if kind == "read":
            return
        if self._kill_kind in (None, kind):
            self._steps_left -= 1
        self._is_dead = self._is_dead or self._steps_left < 0
        if self._is_dead:
            raise Killed(self.describe(name))
        self.step_count += 1

    def take_page(self, name: str, stored: _Stored, page: int) -> None:
        """Before a page is written: a new one needs space."""
        if page not in stored.pages:
            if self.space < PAGE_LENGTH:
                raise self._refusal(errno.ENOSPC, name)
            self.space -= PAGE_LENGTH
            stored.pages.add(page)
        if self._clock is not None:
            self.modified[name] = self._clock.epoch_ms()

    def give_pages_after(self, stored: _Stored, length: int) -> None:
        """After a file was cut off: its pages after the end are free, and holes."""
        kept = {page for page in stored.pages if page * PAGE_LENGTH < length}
        self.space += PAGE_LENGTH * (len(stored.pages) - len(kept))
        stored.pages = kept

    def has_hole(self, stored: _Stored, offset: int, length: int) -> bool:
        """Whether a page of a range was never written."""
        pages = range(offset // PAGE_LENGTH, -(-(offset + length) // PAGE_LENGTH))
        return self.knows_holes and not stored.pages.issuperset(pages)

    def next_data(self, stored: _Stored, offset: int) -> int | None:
        """Where the next page is that was written."""
        if offset >= len(stored.data):
            return None
        if not self.knows_holes:
            return offset
        later = [page * PAGE_LENGTH for page in stored.pages if (page + 1) * PAGE_LENGTH > offset]
        return max(offset, min(later)) if later else None

    # --- inside ------------------------------------------------------------------------------------------------------

    def _refusal(self, error: int, name: str) -> OSError:
        self.refused_count += 1
        return OSError(error, os.strerror(error), self.describe(name))

    def _page_count(self) -> int:
        return sum(len(stored.pages) for stored in self._stored.values())

    def _happens(self, fault: _Fault) -> bool:
        if fault.after > 0:
            fault.after -= 1
            return False
        if fault.times <= 0 or (fault.chance is not None and self._chance.random() >= fault.chance):
            return False
        fault.times -= 1
        return True

    def _change(self, change: dict[str, _Stored | None]) -> None:
        self._changes.append(change)
        _apply(change, self._stored)

    def _names_after_a_cut(self) -> tuple[dict[str, _Stored], int]:
        names, lost, lost_count = dict(self._forced_names), set[str](), 0
        for change in self._changes:
            # What needs a change that was lost cannot have happened.
            if lost.isdisjoint(change) and self._chance.random() < 0.5:
                _apply(change, names)
            else:
                lost.update(change)
                lost_count += 1
        return names, lost_count

    def _after_a_cut(self, stored: _Stored) -> tuple[_Stored, int]:
        """What is left of a file, and how many pages of it were lost."""
        lengths = (len(stored.data), len(stored.forced))
        length = lengths[0] if lengths[0] == lengths[1] else self._chance.choice(lengths)
        left = _Stored(bytearray(length))
        lost_count = sum(page * PAGE_LENGTH >= length for page in stored.pages)
        for page in range(-(-length // PAGE_LENGTH)):
            part = slice(page * PAGE_LENGTH, min(length, (page + 1) * PAGE_LENGTH))
            written, forced = bytes(stored.data[part]), stored.forced[part]
            is_kept = written == forced or self._chance.random() < 0.5
            lost_count += not is_kept
            left.data[part] = (written if is_kept else forced).ljust(part.stop - part.start, b"\0")
            if page in (stored.pages if is_kept else stored.forced_pages):
                left.pages.add(page)
        return left, lost_count


def _apply(change: dict[str, _Stored | None], names: dict[str, _Stored]) -> None:
    for name, stored in change.items():
        if stored is None:
            names.pop(name, None)
        else:
            names[name] = stored


class _SimulatedFile:
    """One open file; see `headrace._agent.storage.StorageFile`."""

    def __init__(self, storage: SimulatedStorage, name: str, stored: _Stored) -> None:
        self._storage = storage
        self._name = name
        self._stored = stored
        self._life = storage.life
        self._is_locked = False

    def _begin(self, kind: str) -> None:
        if self._life != self._storage.life:
            raise OSError(errno.EIO, "the machine has crashed since it was opened", self._name)
        self._storage.begin(kind, self._name)

    def read(self, offset: int, length: int) -> bytes:
        self._begin("read")
        return bytes(self._stored.data[offset : offset + length])

    def read_into(self, offset: int, *buffers: memoryview) -> int:
        self._begin("read")
        start = offset
        for buffer in buffers:
            data = self._stored.data[offset : offset + len(buffer)]
            buffer[: len(data)] = data
            offset += len(data)
        return offset - start

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        data, stored = bytes(data), self._stored
        for begin, end in _pages_of(offset, len(data)):
            self._begin("write")
            self._storage.take_page(self._name, stored, begin // PAGE_LENGTH)
            if len(stored.data) < end:
                stored.data.extend(bytes(end - len(stored.data)))
            stored.data[begin:end] = data[begin - offset : end - offset]

    def set_length(self, length: int) -> None:
        self._begin("write")
        data = self._stored.data
        del data[length:]
        data.extend(bytes(length - len(data)))
        self._storage.give_pages_after(self._stored, length)

    def length(self) -> int:
        return len(self._stored.data)

    def sync(self, level: int) -> None:
        if level > 0:
            self._begin("sync")
            self._stored.force()

    def has_hole(self, offset: int, length: int) -> bool:
        return self._storage.has_hole(self._stored, offset, length)

    def next_data(self, offset: int) -> int | None:
        return self._storage.next_data(self._stored, offset)

    def try_lock(self) -> bool:
        if self._name in self._storage.locked:
            return False
        self._storage.locked.add(self._name)
        self._is_locked = True
        return True

    def close(self) -> None:
        if self._is_locked and self._life == self._storage.life:
            self._storage.locked.discard(self._name)
        self._is_locked = False


def _pages_of(offset: int, length: int) -> Iterator[tuple[int, int]]:
    """Where a write begins and ends in each page."""
    end = offset + length
    while offset < end:
        until = min(end, (offset // PAGE_LENGTH + 1) * PAGE_LENGTH)
        yield offset, until
        offset = until
