"""Where a recording ended whose archive died: found by walking the frames of its last segment file.

Blocks are written with their first header last (``segment_writer.py``), so a kill leaves whole frames, and after them
perhaps a part of a block that begins with no header. The walk ends at the first header that is not the one that
belongs there: of another term, offset or stream, or none. What follows was never acknowledged; it is kept aside in a
file of its own (``aside.py``) and replaced by zeros.

Other archives write a block from its beginning, and when the machine stopped, pages of the last block may be missing
in any order. A block lies within a term. So the data frames of the last term are looked at: one is torn when its
checksum is wrong, or when a page of it is empty and the file system knows it as a hole. A torn last frame is kept
aside like all that follows the end. A torn frame that others follow may also be a disk gone bad, or zeros that a copy
of the directory left out: the archive refuses to start, by name, and `headrace archive verify --repair` truncates the
recording there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.archive.aside import clear_from
from headrace.archive.catalog import Catalog
from headrace.archive.checksum import checksum_named
from headrace.archive.errors import SegmentError
from headrace.archive.intents import delete_all, finish_begun, is_delete_all_begun
from headrace.archive.positions import segment_name, segment_position
from headrace.client import FrameWalk

if TYPE_CHECKING:
    from headrace.archive._config import ArchiveConfig
    from headrace.archive.checksum import Checksum
    from headrace.archive.descriptor import RecordingDescriptor
    from headrace.archive.storage import Storage, StorageFile

__all__ = ["SegmentFrames", "open_files", "recover", "recovered_stop_position", "segment_positions"]

_READ_LENGTH = 1 << 20


def segment_positions(storage: Storage, descriptor: RecordingDescriptor) -> list[int]:
    """Bases of a recording's segment files, in order. Files at places where none can begin are not among them."""
    found = (segment_position(name, descriptor.recording_id) for name in storage.names())
    first, length = descriptor.geometry.first_segment, descriptor.segment_file_length
    return sorted(base for base in found if base is not None and base >= 0 and (base - first) % length == 0)


def open_files(
    config: ArchiveConfig,
    storage: Storage,
    now_ms: int,
    on_note: Callable[[str], object],
    *,
    on_step: Callable[[], object] = lambda: None,
) -> Catalog:
    """The catalog of an archive that starts, with the stop position of every recording.

    Args:
        config: Settings of the archive.
        storage: Its files.
        now_ms: Time for stop timestamps.
        on_note: Told what was done.
        on_step: Called before each step that may take long.

    Raises:
        ArchiveFileError: A file is damaged in a way that no death explains.
        OSError: The disk refuses.
    """
    if config.directory_delete_on_start or is_delete_all_begun(storage):
        delete_all(storage)
    checksum = checksum_named(config.record_checksum)
    on_step()
    catalog = Catalog(
        storage,
        capacity=config.catalog_capacity,
        sync_level=config.catalog_file_sync_level,
        checksum=checksum,
        on_note=on_note,
    )
    try:
        recover(
            catalog, storage, checksum, now_ms, on_note, sync_level=config.file_sync_level, on_step=on_step
        )
    except BaseException:
        catalog.close()
        raise
    return catalog


def recover(
    catalog: Catalog,
    storage: Storage,
    checksum: Checksum | None,
    now_ms: int,
    on_note: Callable[[str], object],
    *,
    sync_level: int = 0,
    on_step: Callable[[], object] = lambda: None,
) -> None:
    """Finish what an archive that died had begun, and give every recording that was active its stop position.

    Args:
        catalog: The catalog, opened for writing.
        storage: The archive's files.
        checksum: What frames may carry.
        now_ms: Time for stop timestamps.
        on_note: Told what was done.
        sync_level: How changes are forced to the medium.
        on_step: Called before each step that may take long.

    Raises:
        SegmentError: A file is damaged in a way that no death explains.
    """
    on_step()
    finish_begun(catalog, storage, sync_level, on_note)
    for entry in list(catalog):
        if entry.descriptor.is_active:
            on_step()
            stop = recovered_stop_position(storage, entry.descriptor, checksum, on_note)
            catalog.stopped(entry.recording_id, stop, now_ms)
            on_note(f"recovered recording_id={entry.recording_id} stop_position={stop}")


def recovered_stop_position(
    storage: Storage,
    descriptor: RecordingDescriptor,
    checksum: Checksum | None,
    on_note: Callable[[str], object],
    *,
    may_truncate: bool = True,
    is_repair: bool = False,
) -> int:
    """The position after the last whole frame of a recording; what follows it is kept aside.

    Args:
        storage: The archive's files.
        descriptor: The recording.
        checksum: What frames may carry.
        on_note: Told what was kept aside.
        may_truncate: Truncate the segment file there; otherwise only find the position.
        is_repair: Also truncate where other frames follow a torn frame.

    Raises:
        SegmentError: A frame before the last is torn.
    """
    bases = segment_positions(storage, descriptor)
    if not bases or bases[-1] < descriptor.geometry.first_segment:
        return descriptor.start_position
    base = bases[-1]
    with SegmentFrames(storage, descriptor, base, checksum) as frames:
        end, last, _ = frames.walk(frames.start)
        if last is not None:
            term = max(frames.start, last - last % descriptor.term_buffer_length)
            torn = frames.first_torn(term, end)
            if torn is not None and torn < last and not is_repair:
                raise SegmentError(
                    f"{frames.path}: the frame at offset={torn - base} is torn, and others follow; look at it with "
                    "`headrace archive verify`, which truncates the recording there with --repair"
                )
            end = end if torn is None else torn
    if may_truncate:
        _clear(storage, descriptor, base, end, on_note)
    return max(end, descriptor.start_position)


def _clear(
    storage: Storage,
    descriptor: RecordingDescriptor,
    base: int,
    end: int,
    on_note: Callable[[str], object],
) -> None:
    recording_id, length = descriptor.recording_id, descriptor.segment_file_length
    try:
        done = clear_from(storage, recording_id, base, end - base, length)
    except OSError as refusal:
        # The stop position is right all the same. A later extension of the recording tries again before it writes.
        done = f"cannot keep aside what follows recording_id={recording_id} position={end}: {refusal}"
    if done is not None:
        on_note(done)


class SegmentFrames:
    """The frames of one segment file, walked and not decoded. Positions are those of the stream.

    A context manager that closes the file.
    """

    def __init__(
        self, storage: Storage, descriptor: RecordingDescriptor, base: int, checksum: Checksum | None
    ) -> None:
        name = segment_name(descriptor.recording_id, base)
        self.path = storage.describe(name)
        self._file: StorageFile = storage.open(name, read_only=True)
        self._base = base
        geometry = descriptor.geometry
        self.start = descriptor.start_position if base == geometry.first_segment else base
        self.limit = base + min(descriptor.segment_file_length, self._file.length())
        self._walk = FrameWalk(
            descriptor.recording_id,
            start_position=descriptor.start_position,
            initial_term_id=descriptor.initial_term_id,
            term_length=descriptor.term_buffer_length,
            stream_id=descriptor.stream_id,
            session_id=descriptor.session_id,
            checksum=checksum,
        )
        self._buffer = bytearray(_READ_LENGTH)

    def __enter__(self) -> SegmentFrames:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _read(self, position: int, length: int) -> memoryview:
        if length > len(self._buffer):
            self._buffer = bytearray(length)
        block = memoryview(self._buffer)[:length]
        return block[: self._file.read_into(position - self._base, block)]

    def walk(self, start: int, limit: int | None = None) -> tuple[int, int | None, str | None]:
        """From header to header: the position after the last frame, that of the last frame, and what ended the walk.

        What ended it is ``None`` at the limit, which is the end of the file if none is given.
        """
        limit = self.limit if limit is None else min(limit, self.limit)
        position, last = start, None
        while position < limit:
            block = self._read(position, min(_READ_LENGTH, limit - position))
            end, last_here, fault = self._walk.walk(block, position, limit)
            last = last_here if last_here is not None else last
            if fault is not None:
                return end, last, fault
            if end == position:
                return end, last, "the file ends"
            position = end
        return position, last, None

    def first_torn(self, start: int, end: int) -> int | None:
        """Position of the first frame between two that was not written whole; they were walked before."""
        position, length = start, _READ_LENGTH
        while position < end:
            block = self._read(position, min(length, end - position))
            after, doubts = self._walk.doubts(block, position)
            for at, until, is_wrong in doubts:
                if is_wrong or self._file.has_hole(at - self._base, until - at):
                    return at
            if after > position:
                position, length = after, _READ_LENGTH
            elif len(block) < length:
                return None
            else:
                length *= 2
        return None

    def first_wrong(self, start: int, end: int, checksum: Checksum) -> int | None:
        """Position of the first data frame between two that does not have its checksum; they were walked before."""
        position, length = start, _READ_LENGTH
        while position < end:
            block = self._read(position, min(length, end - position))
            after, last, _ = self._walk.walk(block, position, end)
            whole = after if after <= position + len(block) or last is None else last
            wrong = checksum.first_wrong(block, whole - position)
            if wrong is not None:
                return position + wrong
            if whole > position:
                position, length = whole, _READ_LENGTH
            elif len(block) < length:
                return None
            else:
                length *= 2
        return None
