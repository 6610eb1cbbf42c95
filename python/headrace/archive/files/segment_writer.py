"""Writes the blocks of one recording into its segment files.

The first header of a block is written last. A process that is killed between two pages of a write therefore leaves a
block without a first header, which recovery does not count as a part of the recording, on any file system.

A block stays in the log of its stream until the recorder has passed it, unless the recorder's process is paused for so
long that the driver takes it for dead. So the header is read before the rest is written, and compared with the log
afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from headrace._agent.storage import SYNC_DATA
from headrace.archive.errors import SegmentError
from headrace.archive.files.cut_files import clear_from, set_segment_aside
from headrace.positions import HEADER_LENGTH, Geometry, segment_name

if TYPE_CHECKING:
    from headrace._agent.storage import Storage, StorageFile
    from headrace.archive.files.checksum import Checksum

__all__ = ["SegmentWriter", "force_segments"]


class SegmentWriter:
    """Appends to a recording from a position on.

    A file has its full length from the start and is sparse. When one is full the next is made at once. Older data in
    the place of the recording, from an archive that was killed or a catalog that was lost, is kept aside first.
    """

    def __init__(
        self,
        storage: Storage,
        recording_id: int,
        geometry: Geometry,
        position: int,
        *,
        sync_level: int = 0,
        forces_end: bool = False,
        checksum: Checksum | None = None,
        on_note: Callable[[str], object] = lambda text: None,
    ) -> None:
        self._storage = storage
        self._recording_id = recording_id
        self._geometry = geometry
        self._sync_level = sync_level
        # Of a recording that ends, with the base of its first file that is not forced.
        self._forces_end = forces_end and sync_level == 0
        self._unforced = geometry.segment_base(position)
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
        # A power failure may lose the name of a file, and keep those made after it: that would be a gap at its place.
        if self._sync_level > 0 or self._forces_end:
            self._storage.sync()
        return file

    def write(self, block: bytes | memoryview, length: int) -> None:
        """Write a run of frames that fills ``length`` bytes of stream; of padding, `block` has only the header.

        :attr:`position` moves only when the whole run is written.

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
                f"the stream went on while the archive wrote its block at position={self.position}: the archive's "
                "process was paused for longer than the driver waits for a client (client_liveness_timeout_ns); the "
                "recording ends before that block"
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

    def end(self) -> None:
        """Close the file of a recording that ends here, and force it to the disk if the sync level asks for that.

        Raises:
            OSError: The disk refuses; the file is closed.
        """
        is_open = self._file is not None
        self.close()
        if is_open and self._forces_end:
            bases = range(self._unforced, self._base + 1, self._geometry.segment_length)
            force_segments(self._storage, self._recording_id, bases)

    def close(self) -> None:
        """Close the file. Closing again does nothing."""
        file, self._file = self._file, None
        if file is not None:
            file.close()


def force_segments(storage: Storage, recording_id: int, bases: Iterable[int]) -> None:
    """Force segment files of a recording to the disk, and their names.

    Raises:
        OSError: The disk refuses.
    """
    for base in bases:
        name = segment_name(recording_id, base)
        if storage.length(name) is None:
            continue  # deleted meanwhile
        file = storage.open(name)
        try:
            file.sync(SYNC_DATA)
        finally:
            file.close()
    storage.sync()
