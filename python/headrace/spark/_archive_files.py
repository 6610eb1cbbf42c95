"""How far the recordings in an archive's directory are at this moment.

Only the driver program looks here: catalog, mark file and counters are on the archive's host.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.archive.errors import MarkFileError
from headrace.archive.files.catalog import Catalog, CatalogEntry
from headrace.archive.files.checksum import checksum_named
from headrace.archive.files.mark_file import read_mark_fields
from headrace.archive.files.stop_position import recovered_stop_position
from headrace.archive.files.storage import DirectoryStorage
from headrace.archive.protocol.counters import RECORDING_POSITION, archive_id_of, recording_id_of
from headrace.positions import NULL_VALUE
from headrace.spark._option_values import refuse
from headrace.tools import CncFile, DriverFileMissingError, DriverNotReadyError, FileFormatError

if TYPE_CHECKING:
    from headrace.spark._archive_options import ArchiveFiles

__all__ = ["entries", "live_ends", "storage_of"]

_LIVENESS_TIMEOUT_MS = 10_000
_NS_PER_MS = 1_000_000


def storage_of(archive: ArchiveFiles) -> DirectoryStorage:
    """The archive's directory, which must be there."""
    storage = DirectoryStorage(archive.directory, create=False)
    if not storage.directory.is_dir():
        refuse("archiveDirectory", archive.directory, "no such directory")
    return storage


def entries(storage: DirectoryStorage) -> list[CatalogEntry]:
    """Everything in the catalog, in any state, in the order of ids."""
    catalog = Catalog(storage, read_only=True)
    try:
        return catalog.entries()
    finally:
        catalog.close()


def live_ends(storage: DirectoryStorage, archive: ArchiveFiles, recording_ids: set[int]) -> dict[int, int]:
    """How far active recordings are, as far as that can be told."""
    try:
        mark = read_mark_fields(storage)
    except MarkFileError:
        return _dead_ends(storage, archive, recording_ids)
    ends = {}
    directory = archive.aeron_directory or mark.aeron_directory
    try:
        with CncFile.open(Path(directory)) as cnc:
            for counter in cnc.counters:
                if counter.type_id == RECORDING_POSITION and archive_id_of(counter.key) == mark.archive_id:
                    ends[recording_id_of(counter.key)] = counter.value
    except (DriverFileMissingError, DriverNotReadyError, FileFormatError):
        # No driver there, or one that is starting. What is said below holds for it too.
        ends = {}
    age_ms = time.time_ns() // _NS_PER_MS - mark.activity_timestamp
    # A time to come was written before the clock was set back; an archive that lives soon writes another.
    is_dead = mark.activity_timestamp == NULL_VALUE or abs(age_ms) > _LIVENESS_TIMEOUT_MS
    unknown = recording_ids - ends.keys()
    return ends | (_dead_ends(storage, archive, unknown) if is_dead and unknown else {})


def _dead_ends(storage: DirectoryStorage, archive: ArchiveFiles, recording_ids: set[int]) -> dict[int, int]:
    """Where recordings ended whose archive died. No archive writes the files, so they tell."""
    checksum = checksum_named(archive.record_checksum)
    catalog = Catalog(storage, read_only=True)
    try:
        return {
            entry.recording_id: recovered_stop_position(
                storage, entry.descriptor, checksum, lambda note: None, may_truncate=False
            )
            for entry in catalog
            if entry.recording_id in recording_ids
        }
    finally:
        catalog.close()
