"""Changes to the files of an archive that does not run, for an operator's tool.

Wherever a function is killed, an archive can start on the directory. Files are deleted before the catalog forgets their
recording, so that the next call finds the rest.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.archive.errors import ArchiveFileError, CatalogError, SegmentError
from headrace.archive.files.catalog import (
    HEADER_LENGTH,
    STATE_DELETED,
    STATE_INVALID,
    STATE_NAMES,
    STATE_VALID,
    Catalog,
    CatalogEntry,
)
from headrace.archive.files.mark_file import no_archive_running
from headrace.archive.files.pending_operations import purged_files
from headrace.archive.files.pending_segments import Migration
from headrace.archive.files.segment_frames import SegmentFrames
from headrace.archive.files.verify import VerifyResult
from headrace.positions import FRAME_ALIGNMENT, segment_name, segment_position

if TYPE_CHECKING:
    from headrace._agent.storage import Storage
    from headrace.archive.files.checksum import Checksum

__all__ = [
    "Deletion",
    "changed",
    "compaction",
    "delete",
    "orphaned_segments",
    "set_validity",
    "write_checksums",
]

_READ_LENGTH = 1 << 20
_FULL_SYNC = 2


@dataclass(frozen=True, slots=True)
class Deletion:
    """A deletion, made or planned.

    Attributes:
        recording_ids: Recordings that leave the catalog.
        files: Names of the deleted files, sorted.
        byte_count: The total length of these files.
    """

    recording_ids: tuple[int, ...]
    files: tuple[str, ...]
    byte_count: int


@contextlib.contextmanager
def changed(
    storage: Storage,
    now_ms: int,
    checksum: Checksum | None = None,
    capacity: int = 0,
    *,
    is_dry_run: bool = False,
) -> Iterator[Catalog]:
    """Open the catalog of a directory, and keep archives from running on it meanwhile. Grows it only if asked to.

    In a dry run the catalog can only be read, and an archive may run.

    Raises:
        CatalogError: The directory has no catalog, or a damaged one.
        MarkFileError: An archive is running on the directory.
    """
    with contextlib.nullcontext() if is_dry_run else no_archive_running(storage, now_ms):
        length = max(capacity, HEADER_LENGTH)
        catalog = Catalog(storage, capacity=length, checksum=checksum, read_only=is_dry_run)
        try:
            yield catalog
        finally:
            catalog.close()


def compaction(catalog: Catalog, storage: Storage) -> Deletion:
    """The deletion that leaves only valid recordings: all others, with all their files."""
    gone = [entry for entry in catalog.entries() if entry.state in (STATE_INVALID, STATE_DELETED)]
    recording_ids = tuple(entry.recording_id for entry in gone)
    return _deletion(storage, recording_ids, purged_files(storage, recording_ids))


def orphaned_segments(catalog: Catalog, storage: Storage, recording_id: int | None = None) -> Deletion:
    """Segment files outside their recording: detached, or left by an unfinished change.

    Raises:
        CatalogError: The recording is unknown, or a migration to it was interrupted by a kill.
    """
    files: list[str] = []
    for entry in _entries(catalog, recording_id):
        _check_no_migration(storage, entry.recording_id)
        prefix = f"{entry.recording_id}-"
        names = (name for name in storage.names() if name.startswith(prefix) and name.endswith(".rec"))
        files += [name for name in names if _is_outside(entry, name)]
    return _deletion(storage, (), files)


def _check_no_migration(storage: Storage, recording_id: int) -> None:
    for name in storage.names():
        migration = Migration.named(name)
        if migration is not None and recording_id in (migration.source_id, migration.destination_id):
            raise CatalogError(
                f"recording_id={recording_id}: {name} says that a migration is not finished: start the archive, which "
                "finishes it, and stop it again"
            )


def _is_outside(entry: CatalogEntry, name: str) -> bool:
    descriptor = entry.descriptor
    base = segment_position(name, entry.recording_id)
    if base is None or base < descriptor.geometry.segment_base(descriptor.start_position):
        return True
    return not descriptor.is_active and base > descriptor.geometry.segment_base(descriptor.stop_position)


def delete(catalog: Catalog, storage: Storage, deletion: Deletion) -> None:
    """Delete what :func:`compaction` or :func:`orphaned_segments` found.

    Raises:
        OSError: The disk refuses; some of it may be deleted, and the next call deletes the rest.
    """
    for name in deletion.files:
        storage.delete(name)
    storage.sync()
    if deletion.recording_ids:
        catalog.forget(deletion.recording_ids)


def _deletion(storage: Storage, recording_ids: tuple[int, ...], files: Iterable[str]) -> Deletion:
    names = tuple(sorted(files))
    return Deletion(recording_ids, names, sum(storage.length(name) or 0 for name in names))


def set_validity(catalog: Catalog, recording_id: int, *, is_valid: bool, is_dry_run: bool = False) -> bool:
    """Mark a recording as valid or invalid; false if it was so already. A dry run only checks that this is possible.

    Raises:
        CatalogError: The recording is unknown, deleted, or has values that no recording can have.
    """
    (entry,) = _entries(catalog, recording_id)
    wanted = STATE_VALID if is_valid else STATE_INVALID
    if entry.state == wanted:
        return False
    if entry.state not in (STATE_VALID, STATE_INVALID):
        rule = f"only {STATE_NAMES[STATE_VALID]} and {STATE_NAMES[STATE_INVALID]} can change into each other"
        raise CatalogError(f"recording_id={recording_id} has state {entry.state_name}: {rule}")
    if is_valid:
        entry.descriptor.check()
    if not is_dry_run:
        catalog.set_state(recording_id, wanted)
    return True


def write_checksums(
    catalog: Catalog,
    storage: Storage,
    checksum: Checksum,
    *,
    recording_id: int | None = None,
    is_thorough: bool = False,
    is_dry_run: bool = False,
) -> Iterator[VerifyResult]:
    """Write checksums into the catalog's entries and into frames, where they replace the session ids.

    Args:
        catalog: The catalog, opened with this checksum.
        storage: The archive's files.
        checksum: Which.
        recording_id: Only this one.
        is_thorough: All segment files and not only the last of each recording.
        is_dry_run: Only check that it can be done.

    Raises:
        CatalogError: The recording is unknown.
    """
    for entry in _entries(catalog, recording_id):
        if entry.state == STATE_DELETED:
            continue
        try:
            count = _write_frames(storage, entry, checksum, is_thorough=is_thorough, is_dry_run=is_dry_run)
            if not is_dry_run:
                catalog.update(entry.recording_id)
        except (ArchiveFileError, OSError) as wrong:
            yield VerifyResult(entry.recording_id, False, str(wrong))
        else:
            files = "1 segment file" if count == 1 else f"{count} segment files"
            have = "would have" if is_dry_run else "have"
            yield VerifyResult(entry.recording_id, True, f"the entry and {files} {have} checksums")


def _write_frames(
    storage: Storage, entry: CatalogEntry, checksum: Checksum, *, is_thorough: bool, is_dry_run: bool
) -> int:
    """Write the checksums of frames; returns the number of segment files."""
    descriptor = entry.descriptor
    descriptor.check()
    if descriptor.is_active:
        raise CatalogError(
            f"recording_id={entry.recording_id} has no stop position: an archive died while it recorded; start an "
            "archive on the directory once, or use `headrace archive verify --repair`"
        )
    start, stop = descriptor.start_position, descriptor.stop_position
    bases = list(descriptor.geometry.segment_bases(start, stop - FRAME_ALIGNMENT)) if stop > start else []
    for base in bases if is_thorough else bases[-1:]:
        _write_segment(storage, entry, base, checksum, is_dry_run=is_dry_run)
    return len(bases) if is_thorough else len(bases[-1:])


def _write_segment(
    storage: Storage, entry: CatalogEntry, base: int, checksum: Checksum, *, is_dry_run: bool
) -> None:
    descriptor = entry.descriptor
    limit = min(descriptor.stop_position, base + descriptor.segment_file_length)
    with SegmentFrames(storage, descriptor, base, None) as frames:
        end, _, fault = frames.walk(frames.start, limit)
        if end != limit:
            raise SegmentError(
                f"{frames.path}: whole frames end at position={end} and not at {limit}: {fault or 'the last goes on'}"
            )
        if is_dry_run:
            return
        file = storage.open(segment_name(entry.recording_id, base))
        try:
            for position, block in frames.blocks(frames.start, limit):
                file.write(position - base, checksum.put(block))
            file.sync(_FULL_SYNC)
        finally:
            file.close()


def _entries(catalog: Catalog, recording_id: int | None) -> list[CatalogEntry]:
    if recording_id is None:
        return catalog.entries()
    entry = catalog.find_entry(recording_id)
    if entry is None:
        raise CatalogError(f"unknown recording_id={recording_id}")
    return [entry]
