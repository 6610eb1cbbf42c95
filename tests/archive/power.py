"""A disk in memory that keeps for certain only what was synced, and a machine that may stop at any write."""

import random

from tests.archive.memory import MemoryStorage

PAGE_LENGTH = 4096


class PowerCut(Exception):
    """The machine has stopped."""


class UnsafeStorage(MemoryStorage):
    """After a power cut each page that was not synced is there or is not, and so is each file name.

    Args:
        choose: Decides what is kept.
        operations: How many writes and syncs it takes before the power goes.
    """

    def __init__(self, choose: random.Random, operations: int) -> None:
        super().__init__()
        self._choose = choose
        self._left = operations
        self._kept: dict[str, bytes] = {}
        self._kept_names: set[str] = set()
        self._written: dict[str, set[int]] = {}
        self._synced: dict[str, set[int]] = {}

    def _count_down(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise PowerCut

    def on_written(self, name: str, offset: int, length: int) -> None:
        pages = range(offset // PAGE_LENGTH, -(-(offset + length) // PAGE_LENGTH))
        self._written.setdefault(name, set()).update(pages)
        self._count_down()

    def on_synced(self, name: str, level: int) -> None:
        self._count_down()
        self._kept[name] = bytes(self.files[name])
        self._synced[name] = set(self._written.get(name, ()))

    def sync(self) -> None:
        self._count_down()
        self._kept_names = set(self.files)

    def delete(self, name: str) -> None:
        super().delete(name)
        self._count_down()

    def has_hole(self, name: str, offset: int, length: int) -> bool:
        written = self._written.get(name, set())
        return not all(
            page in written for page in range(offset // PAGE_LENGTH, -(-(offset + length) // PAGE_LENGTH))
        )

    def after_the_cut(self) -> "UnsafeStorage":
        """What the next start of the machine finds."""
        found = UnsafeStorage(self._choose, 1 << 60)
        for name, data in self.files.items():
            if name not in self._kept_names and self._choose.random() < 0.5:
                continue
            found.files[name] = self._left_of(name, bytes(data), found)
        return found

    def _left_of(self, name: str, written: bytes, found: "UnsafeStorage") -> bytearray:
        kept = self._kept.get(name, b"")
        length = len(written) if self._choose.random() < 0.5 else max(len(kept), 0)
        result = bytearray(kept[:length].ljust(length, b"\0"))
        pages = found._written.setdefault(name, set())
        for page in self._written.get(name, set()):
            part = slice(page * PAGE_LENGTH, (page + 1) * PAGE_LENGTH)
            is_synced = written[part] == kept[part]
            if part.start < length and (is_synced or self._choose.random() < 0.5):
                result[part] = written[part][: max(0, length - part.start)]
                pages.add(page)
            elif page in self._synced.get(name, set()):
                pages.add(page)
        return result
