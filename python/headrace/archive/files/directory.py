"""An archive's directory, read by programs other than the archive: they change nothing, and it may run meanwhile."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._agent.storage import DirectoryStorage
from headrace._base.closing import Closing
from headrace.archive.errors import CatalogError
from headrace.archive.files.catalog import CATALOG_NAME, Catalog, CatalogEntry
from headrace.archive.files.checksum import checksum_named
from headrace.archive.files.frames import Frame
from headrace.archive.files.live_positions import live_ends
from headrace.archive.files.maintenance import changed
from headrace.archive.files.mark_file import MarkFields, read_errors, read_mark_fields
from headrace.archive.files.pending_operations import Truncation
from headrace.archive.files.pending_segments import SegmentPurge
from headrace.archive.files.segment_rules import (
    attached_start,
    check_moves,
    check_truncation,
    planned_migration,
)
from headrace.archive.files.stop_position import recovered_stop_position
from headrace.archive.files.verify import VerifyResult, check_frame, frames_of, verify
from headrace.clock import SYSTEM_CLOCK, Clock
from headrace.positions import segment_name, segment_position

if TYPE_CHECKING:
    from headrace.archive.protocol.descriptor import RecordingDescriptor

__all__ = ["ArchiveDirectory", "RecordedFrame", "Segment", "repair", "storage_of"]


@dataclass(frozen=True, slots=True)
class Segment:
    """One file of a recording. It has the stream's bytes from position ``base`` on."""

    path: Path
    base: int
    length: int


@dataclass(frozen=True, slots=True)
class RecordedFrame:
    """One frame of a recording: where it begins in the stream, its header, and its payload without padding."""

    position: int
    header: Frame
    payload: bytes


class ArchiveDirectory(Closing):
    """The recordings in an archive's directory, ours or Aeron's. A context manager; used by one thread at a time.

    ::

        from headrace.archive.files import ArchiveDirectory

        with ArchiveDirectory("recordings") as archive:
            for entry in archive.entries():
                for frame in archive.frames(entry.recording_id):
                    print(frame.position, frame.payload)

    It changes no file. No archive need run; one may run meanwhile. The catalog is read once, when the object is made:
    open the directory again to see later recordings. All methods read files and may block on the disk.

    Args:
        directory: The archive's directory.
        clock: The clock; by default that of the machine.

    Raises:
        CatalogError: The directory has no catalog, or a damaged one.
    """

    def __init__(self, directory: str | os.PathLike[str], *, clock: Clock | None = None) -> None:
        self.path = Path(directory)
        self._clock = clock or SYSTEM_CLOCK
        self._storage = storage_of(self.path)
        self._catalog = Catalog(self._storage, read_only=True)

    def entries(self) -> list[CatalogEntry]:
        """All entries of the catalog in the order of ids, also those that are invalid, damaged or deleted."""
        return self._catalog.entries()

    def recordings(self) -> list[RecordingDescriptor]:
        """The valid recordings in the order of ids: those that the archive lists to a client."""
        return [entry.descriptor for entry in self._catalog]

    def find(self, recording_id: int) -> RecordingDescriptor | None:
        """One valid recording; ``None`` when the catalog has none of this id."""
        return self._catalog.find(recording_id)

    def mark(self) -> MarkFields:
        """The fields of the archive's mark file: its id, channels, process, and when it was last active.

        Raises:
            MarkFileError: The directory has no mark file, or it is damaged.
        """
        return read_mark_fields(self._storage)

    def mark_errors(self) -> bytes:
        """The error log in the archive's mark file, as :func:`headrace.tools.read_error_log` reads it.

        Raises:
            MarkFileError: The directory has no mark file, or it is damaged.
        """
        return read_errors(self._storage)

    @property
    def catalog_version(self) -> int:
        """Version of the catalog's layout, as :func:`headrace.positions.version_text` reads it."""
        return int(self._catalog.version)

    @property
    def catalog_capacity(self) -> int:
        """Bytes of the catalog's file, which may have room for further entries."""
        return self._catalog.capacity

    def segments(self, recording_id: int) -> list[Segment]:
        """The segment files of a recording that exist, in the order of the stream.

        Raises:
            CatalogError: The catalog has no valid recording of this id.
        """
        self._known(recording_id)
        bases = (segment_position(name, recording_id) for name in self._storage.names())
        found = []
        for base in sorted(one for one in bases if one is not None and one >= 0):
            name = segment_name(recording_id, base)
            length = self._storage.length(name)
            if length is not None:
                found.append(Segment(self.path / name, base, length))
        return found

    def end(self, recording_id: int, *, checksum: str | None = None) -> int:
        """The end of a recording's whole frames: its stop position, or for an active one the end of its files.

        While the archive records, its files may have more than it has acknowledged; :meth:`live_ends` returns the
        acknowledged position.

        Args:
            recording_id: Which recording.
            checksum: The checksum that the archive puts into frames, such as ``"CRC-32"``; it shows torn frames at the
                end.

        Raises:
            CatalogError: The catalog has no valid recording of this id.
            SegmentError: The files contradict the catalog.
        """
        descriptor = self._known(recording_id)
        if not descriptor.is_active:
            return descriptor.stop_position
        return recovered_stop_position(
            self._storage, descriptor, checksum_named(checksum), lambda note: None, may_truncate=False
        )

    def live_ends(
        self,
        recording_ids: Collection[int],
        *,
        aeron_directory: str | os.PathLike[str] | None = None,
        checksum: str | None = None,
    ) -> dict[int, int]:
        """The present positions of active recordings, from the running archive's counters or a dead one's files.

        Args:
            recording_ids: Which recordings.
            aeron_directory: The directory of the archive's driver, which has the counters; by default the one that the
                mark file names.
            checksum: As for :meth:`end`.

        Returns:
            Positions by id. A recording is left out if no counter shows it and the archive may be starting, or may
            have died within the last ten seconds.
        """
        return live_ends(
            self._storage, recording_ids, aeron_directory, checksum_named(checksum), self._clock.epoch_ms()
        )

    def frames(
        self, recording_id: int, start: int | None = None, stop: int | None = None
    ) -> Iterator[RecordedFrame]:
        """The frames of a recording in order, padding frames included.

        Args:
            recording_id: Which recording.
            start: Position of the first frame; by default the start of the recording.
            stop: Where to end; by default :meth:`end`.

        Raises:
            CatalogError: The catalog has no valid recording of this id.
            ArchiveFileError: A file is damaged, or the frames end before ``stop``.
            FileNotFoundError: A segment file is missing.
        """
        descriptor = self._known(recording_id)
        first = descriptor.start_position if start is None else start
        last = self.end(recording_id) if stop is None else stop
        for position, header, body in frames_of(self._storage, descriptor, first, last):
            check_frame(descriptor, position, header)
            yield RecordedFrame(position, header, b"" if header.is_padding else body[: header.payload_length])

    def verify(
        self, recording_id: int | None = None, *, is_thorough: bool = False, checksum: str | None = None
    ) -> Iterator[VerifyResult]:
        """Check the files of one recording, or of all, against the catalog. Damage is a finding and raises nothing.

        Args:
            recording_id: Only this recording.
            is_thorough: Walk all segment files and not only the last of each recording.
            checksum: Also check the checksums of this kind in entries and frames.
        """
        return verify(
            self._catalog,
            self._storage,
            recording_id=recording_id,
            is_thorough=is_thorough,
            checksum=checksum_named(checksum),
        )

    def would_truncate(self, recording_id: int, position: int) -> list[str]:
        """Names of the files that an archive would delete to truncate a recording at a position.

        Raises:
            CatalogError: The catalog has no valid recording of this id, or it is active.
            SegmentError: The position is outside of the recording, or no frame begins there.
        """
        descriptor = self._known(recording_id)
        if descriptor.is_active:
            raise CatalogError(f"cannot truncate active recording {recording_id}")
        check_truncation(self._storage, descriptor, position)
        return Truncation(recording_id, position).files(self._storage, descriptor)

    def detached_segments(self, recording_id: int) -> list[str]:
        """Names of the segment files before the start of a recording, in the order of the stream.

        Raises:
            CatalogError: The catalog has no valid recording of this id.
        """
        descriptor = self._known(recording_id)
        purge = SegmentPurge.of_detached(self._storage, descriptor)
        return [] if purge is None else purge.files(self._storage, descriptor.segment_file_length)

    def would_attach(self, recording_id: int) -> tuple[int, int]:
        """How many files a recording would get if an archive attached its segments, and where it would begin.

        Raises:
            CatalogError: The catalog has no valid recording of this id.
            SegmentError: A file has a wrong length, or wrong or missing frames.
        """
        descriptor, count = self._known(recording_id), 0
        while (first := attached_start(self._storage, descriptor, None)) is not None:
            descriptor, count = descriptor.replace(start_position=first), count + 1
        return count, descriptor.start_position

    def would_migrate(self, source_id: int, destination_id: int) -> tuple[int, RecordingDescriptor]:
        """How many files would move if an archive migrated a recording to another, and what that would become.

        Raises:
            CatalogError: The catalog has no valid recording of one of these ids.
            SegmentError: The source is active, the recordings differ or do not join, or a file is in the way.
        """
        source, destination = self._known(source_id), self._known(destination_id)
        migration = planned_migration(source, destination)
        check_moves(self._storage, migration, source)
        joined = (
            destination.replace(start_position=migration.start)
            if migration.is_before
            else destination.replace(stop_position=migration.stop)
        )
        return len(migration.moves(source.geometry)), joined

    def _known(self, recording_id: int) -> RecordingDescriptor:
        descriptor = self._catalog.find(recording_id)
        if descriptor is None:
            raise CatalogError(f"unknown recording_id={recording_id} in {self.path}")
        return descriptor

    def close(self) -> None:
        """Close the catalog. Closing again does nothing."""
        self._catalog.close()

    def __repr__(self) -> str:
        return f"ArchiveDirectory({str(self.path)!r})"


def repair(
    directory: str | os.PathLike[str],
    recording_id: int | None = None,
    *,
    is_thorough: bool = False,
    checksum: str | None = None,
    is_dry_run: bool = False,
    clock: Clock | None = None,
) -> Iterator[VerifyResult]:
    """Verify, and truncate recordings whose last segment file is damaged at the last whole frame before the damage.

    The bytes after that position are kept in a ``.cut`` file, stop positions are written, and recordings without damage
    are marked as valid. No archive may run on the directory.

    Args:
        directory: The archive's directory.
        recording_id: As for :meth:`ArchiveDirectory.verify`.
        is_thorough: As for :meth:`ArchiveDirectory.verify`.
        checksum: As for :meth:`ArchiveDirectory.verify`.
        is_dry_run: Change nothing; only return what would be repaired. An archive may run.
        clock: The clock; by default that of the machine.

    Raises:
        CatalogError: The directory has no catalog, or a damaged one.
        MarkFileError: An archive is running on the directory.
    """
    storage = storage_of(Path(directory))
    now_ms = (clock or SYSTEM_CLOCK).epoch_ms()
    with changed(storage, now_ms, is_dry_run=is_dry_run) as catalog:
        yield from verify(
            catalog,
            storage,
            recording_id=recording_id,
            is_thorough=is_thorough,
            checksum=checksum_named(checksum),
            is_repaired=True,
            is_dry_run=is_dry_run,
            now_ms=now_ms,
        )


def storage_of(directory: Path) -> DirectoryStorage:
    """The files of an archive's directory.

    Raises:
        CatalogError: The directory has no catalog.
    """
    if not (directory / CATALOG_NAME).is_file():
        advice = "name the archive's directory: commands take it with --archive-dir or AERON_ARCHIVE_DIR"
        raise CatalogError(f"there is no catalog: {directory / CATALOG_NAME}; {advice}")
    return DirectoryStorage(directory, create=False)
