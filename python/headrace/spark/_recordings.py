"""Which recordings a query reads, and how far each of them goes at this moment.

Only the driver program looks here: catalog, mark file and counters are on the archive's host.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.archive.catalog import Catalog
from headrace.archive.checksum import checksum_named
from headrace.archive.counters import RECORDING_POSITION, archive_id_of, recording_id_of
from headrace.archive.errors import ArchiveFileError, MarkFileError
from headrace.archive.mark_file import read_mark_fields
from headrace.archive.positions import NULL_VALUE
from headrace.archive.recovery import recovered_stop_position
from headrace.archive.storage import DirectoryStorage
from headrace.spark._options import refuse
from headrace.tools import CncFile, DriverFileMissingError, DriverNotReadyError, FileFormatError

if TYPE_CHECKING:
    from headrace.archive.descriptor import RecordingDescriptor
    from headrace.spark._options import ReadOptions

__all__ = ["Selected", "select", "still_recorded"]

_LIVENESS_TIMEOUT_MS = 10_000
_NS_PER_MS = 1_000_000
# A recording that stops between a look at the catalog and one at the counters is in neither.
_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Selected:
    """A recording that the options ask for.

    ``end`` is how far it is recorded; ``None`` while nobody can tell, because its archive is starting or has just
    died.
    """

    descriptor: RecordingDescriptor
    end: int | None

    @property
    def recording_id(self) -> int:
        """Which recording."""
        return self.descriptor.recording_id


def select(options: ReadOptions) -> list[Selected]:
    """The recordings that match, in the order of their ids.

    Raises:
        ArchiveFileError: There is no archive in the directory, or it is damaged.
        ConfigError: A recording that was named is not there.
    """
    storage = DirectoryStorage(options.directory, create=False)
    if not storage.directory.is_dir():
        refuse("archiveDirectory", options.directory, "there is no such directory")
    chosen: list[Selected] = []
    for _ in range(_ATTEMPTS):
        chosen = _look(storage, options)
        if all(each.end is not None for each in chosen):
            break
    return chosen


def _look(storage: DirectoryStorage, options: ReadOptions) -> list[Selected]:
    catalog = Catalog(storage, read_only=True)
    try:
        descriptors = [entry.descriptor for entry in catalog]
    finally:
        catalog.close()
    if options.recordings is not None:
        known = {each.recording_id for each in descriptors}
        for recording_id in options.recordings:
            if recording_id not in known:
                refuse("recordings", recording_id, f"{options.directory} has no such recording")
    chosen = [each for each in descriptors if _matches(each, options)]
    active = {each.recording_id for each in chosen if each.is_active}
    ends = _live_ends(storage, options, active) if active else {}
    return [
        Selected(each, ends.get(each.recording_id) if each.is_active else each.stop_position)
        for each in chosen
    ]


def still_recorded(selected: Selected) -> ArchiveFileError:
    """What to raise when a recording's end must be known and is not."""
    return ArchiveFileError(
        f"recording_id={selected.recording_id} is active in the catalog, but no archive shows how far it is: it is "
        "starting, has just died, or its driver's directory is not reachable here (option aeronDirectory)"
    )


def _matches(descriptor: RecordingDescriptor, options: ReadOptions) -> bool:
    if options.recordings is not None and descriptor.recording_id not in options.recordings:
        return False
    if options.stream_id is not None and descriptor.stream_id != options.stream_id:
        return False
    if options.channel is not None and options.channel not in descriptor.stripped_channel:
        return False
    if options.timestamp_unit_ns is not None:
        # Messages have times of their own then, by a clock that need not be the archive's.
        return True
    start, stop = descriptor.start_timestamp * _NS_PER_MS, descriptor.stop_timestamp * _NS_PER_MS
    if options.end_time_ns is not None and start >= options.end_time_ns:
        return False
    return descriptor.is_active or options.start_time_ns is None or stop >= options.start_time_ns


def _live_ends(storage: DirectoryStorage, options: ReadOptions, recording_ids: set[int]) -> dict[int, int]:
    """How far active recordings are, as far as that can be told."""
    try:
        mark = read_mark_fields(storage)
    except MarkFileError:
        return _dead_ends(storage, options, recording_ids)
    ends = {}
    directory = options.aeron_directory or mark.aeron_directory
    try:
        with CncFile.open(Path(directory)) as cnc:
            for counter in cnc.counters:
                if counter.type_id == RECORDING_POSITION and archive_id_of(counter.key) == mark.archive_id:
                    ends[recording_id_of(counter.key)] = counter.value
    except (DriverFileMissingError, DriverNotReadyError, FileFormatError):
        # No driver there, or one that is starting. What is said below holds for it too.
        ends = {}
    age_ms = time.time_ns() // _NS_PER_MS - mark.activity_timestamp
    is_dead = mark.activity_timestamp == NULL_VALUE or age_ms > _LIVENESS_TIMEOUT_MS
    unknown = recording_ids - ends.keys()
    return ends | (_dead_ends(storage, options, unknown) if is_dead and unknown else {})


def _dead_ends(storage: DirectoryStorage, options: ReadOptions, recording_ids: set[int]) -> dict[int, int]:
    """Where recordings ended whose archive died. Nobody writes the files, so they tell."""
    checksum = checksum_named(options.record_checksum)
    catalog = Catalog(storage, read_only=True)
    try:
        return {
            entry.recording_id: recovered_stop_position(
                storage, entry.descriptor, checksum, lambda note: None, may_cut=False
            )
            for entry in catalog
            if entry.recording_id in recording_ids
        }
    finally:
        catalog.close()
