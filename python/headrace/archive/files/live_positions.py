"""The present positions of an archive's recordings, from its driver's counters or its files."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._agent.mark_file import LIVENESS_TIMEOUT_MS
from headrace.archive.errors import MarkFileError
from headrace.archive.files.catalog import Catalog
from headrace.archive.files.mark_file import read_mark_fields
from headrace.archive.files.stop_position import recovered_stop_position, segment_bases
from headrace.archive.protocol.counters import RECORDING_POSITION, archive_id_of, recording_id_of
from headrace.cnc.cnc_file import CncFile
from headrace.cnc.faults import DriverFileMissingError, DriverNotReadyError, FileFormatError
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace._agent.storage import Storage
    from headrace.archive.files.checksum import Checksum

__all__ = ["live_ends"]


def live_ends(
    storage: Storage,
    recording_ids: Collection[int],
    aeron_directory: str | os.PathLike[str] | None,
    checksum: Checksum | None,
    now_ms: int,
) -> dict[int, int]:
    """The positions of active recordings, as far as they are known; see :meth:`ArchiveDirectory.live_ends`."""
    wanted = set(recording_ids)
    try:
        mark = read_mark_fields(storage)
    except MarkFileError:
        return _dead_ends(storage, checksum, wanted)
    ends = {}
    try:
        with CncFile.open(Path(aeron_directory or mark.aeron_directory)) as cnc:
            for counter in cnc.counters:
                if counter.type_id == RECORDING_POSITION and archive_id_of(counter.key) == mark.archive_id:
                    ends[recording_id_of(counter.key)] = counter.value
    except (DriverFileMissingError, DriverNotReadyError, FileFormatError):
        # No driver there, or one that is starting. What is said below holds for it too.
        ends = {}
    age_ms = now_ms - mark.activity_timestamp
    # A time to come was written before the clock was set back; an archive that lives soon writes another.
    is_dead = mark.activity_timestamp == NULL_VALUE or abs(age_ms) > LIVENESS_TIMEOUT_MS
    unknown = wanted - ends.keys()
    return ends | (_dead_ends(storage, checksum, unknown) if is_dead and unknown else {})


def _dead_ends(storage: Storage, checksum: Checksum | None, recording_ids: set[int]) -> dict[int, int]:
    """The ends of recordings whose archive died, from the files, which nothing writes any more."""
    catalog, bases = Catalog(storage, read_only=True), segment_bases(storage)
    try:
        return {
            entry.recording_id: recovered_stop_position(
                storage,
                entry.descriptor,
                checksum,
                lambda note: None,
                bases=bases.get(entry.recording_id, ()),
                may_truncate=False,
            )
            for entry in catalog
            if entry.recording_id in recording_ids
        }
    finally:
        catalog.close()
