"""An operator's changes to an archive's directory, ours or Aeron's. No archive may run on it meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._base.exceptions import ConfigError
from headrace.archive.files import maintenance
from headrace.archive.files.catalog import CAPACITY_MAX
from headrace.archive.files.checksum import checksum_named
from headrace.archive.files.directory import storage_of
from headrace.archive.files.mark_file import no_archive_running
from headrace.archive.files.older_layouts import Upgrade, planned_upgrade, upgrade
from headrace.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from headrace._agent.storage import Storage
    from headrace.archive.files.catalog import Catalog
    from headrace.archive.files.maintenance import Deletion
    from headrace.archive.files.verify import VerifyResult

__all__ = [
    "compact",
    "delete_orphaned_segments",
    "grow_catalog",
    "mark_invalid",
    "mark_valid",
    "migrate",
    "write_checksums",
]

Directory = str | os.PathLike[str]


def compact(directory: Directory, *, is_dry_run: bool = False, clock: Clock | None = None) -> Deletion:
    """Delete the recordings that are marked as invalid or deleted, with all their files, and shorten the catalog.

    This cannot be undone. Valid recordings stay as they are, and the ids of deleted ones are not used again.

    Args:
        directory: The archive's directory.
        is_dry_run: Change nothing; only return what would be deleted. An archive may run.
        clock: The clock; by default that of the machine.

    Raises:
        CatalogError: The directory has no catalog, or a damaged one.
        MarkFileError: An archive is running on the directory.
        OSError: The disk refuses. A second call deletes what is left.
    """
    return _deleted(directory, is_dry_run, clock, maintenance.compaction)


def delete_orphaned_segments(
    directory: Directory,
    recording_id: int | None = None,
    *,
    is_dry_run: bool = False,
    clock: Clock | None = None,
) -> Deletion:
    """Delete segment files that belong to no part of their recording.

    These are files before its start position, which were detached, files after its stop position, and files whose names
    have no position. This cannot be undone: detached segments can be attached again only while their files exist.

    Args:
        directory: The archive's directory.
        recording_id: Only files of this recording.
        is_dry_run: As for :func:`compact`.
        clock: As for :func:`compact`.

    Raises:
        CatalogError: The directory has no catalog, or a damaged one, or no such recording.
        MarkFileError: An archive is running on the directory.
        OSError: The disk refuses. A second call deletes what is left.
    """

    def orphans(catalog: Catalog, storage: Storage) -> Deletion:
        return maintenance.orphaned_segments(catalog, storage, recording_id)

    return _deleted(directory, is_dry_run, clock, orphans)


def _deleted(
    directory: Directory,
    is_dry_run: bool,
    clock: Clock | None,
    find: Callable[[Catalog, Storage], Deletion],
) -> Deletion:
    storage = storage_of(Path(directory))
    with maintenance.changed(storage, _now_ms(clock), is_dry_run=is_dry_run) as catalog:
        deletion = find(catalog, storage)
        if not is_dry_run:
            maintenance.delete(catalog, storage, deletion)
    return deletion


def mark_valid(
    directory: Directory, recording_id: int, *, is_dry_run: bool = False, clock: Clock | None = None
) -> bool:
    """Mark an invalid recording as valid: the archive lists it again.

    Args:
        directory: The archive's directory.
        recording_id: Which recording.
        is_dry_run: Change nothing; only check that it can be done. An archive may run.
        clock: As for :func:`compact`.

    Returns:
        False if it was valid already.

    Raises:
        CatalogError: The recording is unknown or deleted, or the directory has no catalog or a damaged one.
        DescriptorError: The recording has values that no recording can have.
        MarkFileError: An archive is running on the directory.
    """
    return _set_validity(directory, recording_id, True, is_dry_run, clock)


def mark_invalid(
    directory: Directory, recording_id: int, *, is_dry_run: bool = False, clock: Clock | None = None
) -> bool:
    """Mark a valid recording as invalid: the archive no longer lists it, and :func:`compact` deletes it.

    Args:
        directory: The archive's directory.
        recording_id: Which recording.
        is_dry_run: As for :func:`mark_valid`.
        clock: As for :func:`compact`.

    Returns:
        False if it was invalid already.

    Raises:
        CatalogError: The recording is unknown or deleted, or the directory has no catalog or a damaged one.
        MarkFileError: An archive is running on the directory.
    """
    return _set_validity(directory, recording_id, False, is_dry_run, clock)


def _set_validity(
    directory: Directory, recording_id: int, is_valid: bool, is_dry_run: bool, clock: Clock | None
) -> bool:
    storage = storage_of(Path(directory))
    with maintenance.changed(storage, _now_ms(clock), is_dry_run=is_dry_run) as catalog:
        return maintenance.set_validity(catalog, recording_id, is_valid=is_valid, is_dry_run=is_dry_run)


def write_checksums(
    directory: Directory,
    name: str,
    recording_id: int | None = None,
    *,
    is_thorough: bool = False,
    is_dry_run: bool = False,
    clock: Clock | None = None,
) -> Iterator[VerifyResult]:
    """Write checksums into the catalog's entries, and into the frames of each recording's last segment file.

    A frame's checksum replaces its session id; the catalog keeps only the session id of the last publisher.

    Args:
        directory: The archive's directory.
        name: Which checksum: ``"CRC-32"`` or ``"CRC-32C"``.
        recording_id: Only this recording.
        is_thorough: All segment files and not only the last of each recording.
        is_dry_run: As for :func:`mark_valid`.
        clock: As for :func:`compact`.

    Raises:
        CatalogError: The directory has no catalog, or a damaged one, or no such recording.
        ConfigError: No checksum has that name.
        MarkFileError: An archive is running on the directory.
    """
    kind = checksum_named(name)
    if kind is None:
        raise ConfigError("checksum='': name one, CRC-32 or CRC-32C", "checksum", name, "CRC-32 or CRC-32C")
    storage = storage_of(Path(directory))
    with maintenance.changed(storage, _now_ms(clock), checksum=kind, is_dry_run=is_dry_run) as catalog:
        yield from maintenance.write_checksums(
            catalog,
            storage,
            kind,
            recording_id=recording_id,
            is_thorough=is_thorough,
            is_dry_run=is_dry_run,
        )


def grow_catalog(
    directory: Directory, capacity: int, *, is_dry_run: bool = False, clock: Clock | None = None
) -> int:
    """Make the catalog's file at least this many bytes long; returns its length. It never becomes shorter.

    Args:
        directory: The archive's directory.
        capacity: Bytes.
        is_dry_run: Change nothing; only return the length that it would have. An archive may run.
        clock: As for :func:`compact`.

    Raises:
        CatalogError: The directory has no catalog, or a damaged one.
        ConfigError: No catalog can be that long.
        MarkFileError: An archive is running on the directory.
        OSError: The disk refuses.
    """
    if not 0 <= capacity <= CAPACITY_MAX:
        rule = f"must be from 0 to {CAPACITY_MAX} bytes"
        raise ConfigError(f"capacity={capacity}: {rule}", "capacity", str(capacity), rule)
    storage = storage_of(Path(directory))
    with maintenance.changed(storage, _now_ms(clock), capacity=capacity, is_dry_run=is_dry_run) as catalog:
        return max(catalog.capacity, capacity)


def migrate(directory: Directory, *, is_dry_run: bool = False, clock: Clock | None = None) -> Upgrade | None:
    """Convert a directory of version 0.x to 2.x, which only Aeron's archives have written, to today's layout.

    Segment files get the names of their positions, and the catalog and the mark file the layout of 3.1. The frames and
    the descriptions of recordings stay; the errors in the mark file do not. Copy the directory first: an archive of the
    old version cannot use it afterwards.

    If it is killed, call it again, or start an archive on the directory: both finish it.

    Args:
        directory: The archive's directory.
        is_dry_run: Change nothing; only return what would be done.
        clock: As for :func:`compact`.

    Returns:
        The changes; ``None`` if the directory has today's layout.

    Raises:
        CatalogError: The directory has no catalog, or a damaged one.
        SegmentError: The name of a segment file contradicts its frames. Nothing is changed.
        MarkFileError: An archive is running on the directory.
        OSError: The disk refuses. A second call continues.
    """
    storage = storage_of(Path(directory))
    if is_dry_run:
        return planned_upgrade(storage)
    with no_archive_running(storage, _now_ms(clock)):
        planned = planned_upgrade(storage)
        if planned is not None:
            upgrade(storage)
    return planned


def _now_ms(clock: Clock | None) -> int:
    return (clock or SYSTEM_CLOCK).epoch_ms()
