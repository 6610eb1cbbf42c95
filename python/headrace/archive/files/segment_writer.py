"""Writes the blocks of one recording into its segment files.

The first header of a block is written last. A process that is killed between two pages of a write so leaves a block
that begins with no header, which recovery does not take for a part of the recording, on any file system.

A block lies in the log of a stream, where it stays until the recorder has passed it, unless the recorder's process is
paused for so long that the driver takes it for dead. So the header is read before the rest is written and compared
with what is there afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.archive.errors import SegmentError
from headrace.archive.files.cut_files import clear_from, set_segment_aside
from headrace.positions import HEADER_LENGTH, Geometry, segment_name

if TYPE_CHECKING:
    from headrace.archive.files.checksum import Checksum
    from headrace.archive.files.storage import Storage, StorageFile

__all__ = ["SegmentWriter"]


class SegmentWriter:
    """Appends to a recording from a position on.

    A file has its full length from the start and is sparse. When one is full the next is made at once. What lies where
    the recording is to go, of an archive that was killed or of a catalog that was lost, is kept aside first.
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
        on_note: Callable[[str], object] = lambda text: None,
    ) -> None:
        self._storage = storage
        self._recording_id = recording_id
        self._geometry = geometry
        self._sync_level = sync_level
        self._checksum = checksum
        self._on_note = on_note
        self.position = position
        self._base = geometry.segment_base(position)
        self._file: StorageFile | None = None

    def open(self) -> None:
        """Open or make the first file.

        Raises:
            OSError: The disk refuses.
        """
        length = self._geometry.segment_length
        name = segment_name(self._recording_id, self._base)
        if self._storage.length(name) is not None:
            done = clear_from(
                self._storage, self._recording_id, self._base, self.position - self._base, length
            )
            if done is not None:
                self._on_note(done)
        self._set_aside_from(self._base + length)
        self._file = self._create()

    def _set_aside_from(self, base: int) -> None:
        while self._storage.length(segment_name(self._recording_id, base)) is not None:
            self._on_note(set_segment_aside(self._storage, self._recording_id, base))
            base += self._geometry.segment_length

    def _create(self) -> StorageFile:
        name = segment_name(self._recording_id, self._base)
        file = self._storage.create(name, self._geometry.segment_length, may_exist=True)
        if self._sync_level > 0:
            self._storage.sync()
        return file

    def write(self, block: bytes | memoryview, length: int) -> None:
        """Write a run of frames that fills ``length`` bytes of stream; of padding, the header alone is given.

        What is written is whole or not at all as far as :attr:`position` tells.

        Raises:
            OSError: The disk refuses.
            SegmentError: The block changed while it was written.
        """
        file = self._file
        assert file is not None, "opened before it is written to"
        source, header = block, bytes(block[:HEADER_LENGTH])
        if self._checksum is not None:
            block = self._checksum.put(block)
        block, offset = memoryview(block), self.position - self._base
        if len(block) > HEADER_LENGTH:
            file.write(offset + HEADER_LENGTH, block[HEADER_LENGTH:])
        if bytes(source[:HEADER_LENGTH]) != header:
            raise SegmentError(
                f"the stream went on while its block at position={self.position} was written: the archive's process "
                "did not run for longer than the driver waits for a client (client_liveness_timeout_ns); the recording "
                "ends before that block"
            )
        file.write(offset, block[:HEADER_LENGTH])
        if self._sync_level > 0:
            file.sync(self._sync_level)
        self.position += length
        if self.position - self._base >= self._geometry.segment_length:
            self._roll()

    def _roll(self) -> None:
        self.close()
        self._base += self._geometry.segment_length
        self._set_aside_from(self._base)
        self._file = self._create()

    def truncate(self) -> None:
        """Delete what a failed write may have left after :attr:`position`."""
        if self._file is not None:
            self._file.set_length(self.position - self._base)
            self._file.set_length(self._geometry.segment_length)

    def close(self) -> None:
        """Close the file. Closing again does nothing."""
        file, self._file = self._file, None
        if file is not None:
            file.close()
