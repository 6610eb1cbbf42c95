"""A disk in memory that loses nothing, and a process that may be killed before any change of it."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.archive.files.storage import StorageFile
from tests.archive.memory import MemoryFile, MemoryStorage

PAGE_LENGTH = 4096


class Killed(BaseException):
    """The process is gone: nothing that it does from now on reaches the disk."""


class KillableStorage(MemoryStorage):
    """Each write, length, name and sync is a step, and so is each page of a write.

    Args:
        knows_holes: Whether the file system tells which pages were never written.
    """

    def __init__(self, *, knows_holes: bool = True) -> None:
        super().__init__()
        self._knows_holes = knows_holes
        self._pages: dict[str, set[int]] = {}
        self._left = 1 << 60

    def kill_before(self, step: int) -> None:
        """Let so many steps happen."""
        self._left = step

    def step(self) -> None:
        """One more, or the end."""
        self._left -= 1
        if self._left < 0:
            raise Killed

    def after_the_kill(self) -> KillableStorage:
        """What the next process finds; this one stays as it is."""
        found = KillableStorage(knows_holes=self._knows_holes)
        found.files = {name: bytearray(data) for name, data in self.files.items()}
        found._pages = {name: set(pages) for name, pages in self._pages.items()}
        return found

    def open(self, name: str, *, read_only: bool = False) -> StorageFile:
        super().open(name, read_only=read_only)
        return _File(self, name)

    def create(self, name: str, length: int, *, may_exist: bool = False) -> StorageFile:
        self.step()
        super().create(name, len(self.files.get(name, b"")), may_exist=may_exist)
        file = _File(self, name)
        file.set_length(length)
        return file

    def delete(self, name: str) -> None:
        self.step()
        super().delete(name)
        self._pages.pop(name, None)

    def rename(self, name: str, new_name: str) -> None:
        self.step()
        super().rename(name, new_name)
        self._pages[new_name] = self._pages.pop(name, set())

    def sync(self) -> None:
        self.step()

    def on_synced(self, name: str, level: int) -> None:
        self.step()

    def on_written(self, name: str, offset: int, length: int) -> None:
        self._pages.setdefault(name, set()).add(offset // PAGE_LENGTH)

    def on_cut(self, name: str, length: int) -> None:
        """Pages after the new end are gone."""
        kept = {page for page in self._pages.get(name, set()) if page * PAGE_LENGTH < length}
        self._pages[name] = kept

    def has_hole(self, name: str, offset: int, length: int) -> bool:
        pages = range(offset // PAGE_LENGTH, -(-(offset + length) // PAGE_LENGTH))
        return self._knows_holes and not self._pages.get(name, set()).issuperset(pages)


class _File(MemoryFile):
    def __init__(self, storage: KillableStorage, name: str) -> None:
        super().__init__(storage, name)
        self._disk = storage

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        for begin, end in _pieces(offset, len(data)):
            self._disk.step()
            super().write(begin, bytes(data)[begin - offset : end - offset])

    def set_length(self, length: int) -> None:
        self._disk.step()
        super().set_length(length)
        self._disk.on_cut(self._name, length)


def _pieces(offset: int, length: int) -> Iterator[tuple[int, int]]:
    """Where a write begins and ends in each page."""
    end = offset + length
    while offset < end:
        until = min(end, (offset // PAGE_LENGTH + 1) * PAGE_LENGTH)
        yield offset, until
        offset = until
