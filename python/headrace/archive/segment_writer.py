"""Writes the blocks of one recording into its segment files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.archive.errors import SegmentError
from headrace.archive.positions import Geometry, segment_name

if TYPE_CHECKING:
    from headrace.archive.checksum import Checksum
    from headrace.archive.storage import Storage, StorageFile

__all__ = ["SegmentWriter"]


class SegmentWriter:
    """Appends to a recording from a position on.

    A file has its full length from the start and is sparse. When one is full the next is made at once, so a file that
    is already there belongs to somebody else.
    """

    def __init__(
        self,
        storage: Storage,
        recording_id: int,
        geometry: Geometry,
        position: int,
        *,
        sync_level: int = 0,
        checksum: Checksum | None = None,
    ) -> None:
        self._storage = storage
        self._recording_id = recording_id
        self._geometry = geometry
        self._sync_level = sync_level
        self._checksum = checksum
        self.position = position
        self._base = geometry.segment_base(position)
        self._file: StorageFile | None = None

    def open(self) -> None:
        """Open or make the first file."""
        self._file = self._create(may_exist=True)

    def _create(self, *, may_exist: bool) -> StorageFile:
        name = segment_name(self._recording_id, self._base)
        try:
            file = self._storage.create(name, self._geometry.segment_length, may_exist=may_exist)
        except FileExistsError:
            raise SegmentError(f"segment file already exists: {self._storage.describe(name)}") from None
        if self._sync_level > 0:
            self._storage.sync()
        return file

    def write(self, block: bytes | memoryview, length: int) -> None:
        """Write a run of frames that fills ``length`` bytes of stream; of padding, the header alone is given.

        What is written is whole or not at all as far as :attr:`position` tells.

        Raises:
            OSError: The disk refuses.
            SegmentError: The next file is there already.
        """
        file = self._file
        assert file is not None, "opened before it is written to"
        if self._checksum is not None:
            block = self._checksum.put(block)
        file.write(self.position - self._base, block)
        if self._sync_level > 0:
            file.sync(self._sync_level)
        self.position += length
        if self.position - self._base >= self._geometry.segment_length:
            self._roll()

    def _roll(self) -> None:
        self.close()
        self._base += self._geometry.segment_length
        self._file = self._create(may_exist=False)

    def cut(self) -> None:
        """Take away what a failed write may have left behind :attr:`position`."""
        if self._file is not None:
            self._file.set_length(self.position - self._base)
            self._file.set_length(self._geometry.segment_length)

    def close(self) -> None:
        """Close the file. Closing again does nothing."""
        file, self._file = self._file, None
        if file is not None:
            file.close()
