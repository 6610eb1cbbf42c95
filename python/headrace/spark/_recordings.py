"""Which recordings a query reads, and how far each of them goes at this moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.archive.errors import ArchiveFileError
from headrace.spark import _archive_files, _archive_service
from headrace.spark._archive_options import ArchiveFiles
from headrace.spark._option_values import refuse

if TYPE_CHECKING:
    from headrace.archive.descriptor import RecordingDescriptor
    from headrace.spark._archive_options import ArchiveService
    from headrace.spark._options import ReadOptions

__all__ = ["Selected", "select", "still_recorded"]

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
        ArchiveError: The archive does not answer.
        ConfigError: A recording that was named is not there.
    """
    archive = options.archive
    if not isinstance(archive, ArchiveFiles):
        return _asked(archive, options)
    chosen: list[Selected] = []
    for _ in range(_ATTEMPTS):
        chosen = _looked_up(archive, options)
        if all(each.end is not None for each in chosen):
            break
    return chosen


def _looked_up(archive: ArchiveFiles, options: ReadOptions) -> list[Selected]:
    storage = _archive_files.storage_of(archive)
    chosen = _chosen(_archive_files.described(storage), options)
    active = {each.recording_id for each in chosen if each.is_active}
    ends = _archive_files.live_ends(storage, archive, active) if active else {}
    return [
        Selected(each, ends.get(each.recording_id) if each.is_active else each.stop_position)
        for each in chosen
    ]


def _asked(archive: ArchiveService, options: ReadOptions) -> list[Selected]:
    with _archive_service.requests(archive, "list recordings") as session:
        found = (
            session.list_recordings(stream_id=options.stream_id)
            if options.recordings is None
            else [each for each in map(session.find_recording, options.recordings) if each is not None]
        )
        return [
            Selected(
                each,
                session.max_recorded_position(each.recording_id) if each.is_active else each.stop_position,
            )
            for each in _chosen(found, options)
        ]


def _chosen(descriptors: list[RecordingDescriptor], options: ReadOptions) -> list[RecordingDescriptor]:
    known = {each.recording_id for each in descriptors}
    for recording_id in options.recordings or ():
        if recording_id not in known:
            refuse("recordings", recording_id, f"{options.archive} has no such recording")
    return [each for each in descriptors if _matches(each, options)]


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
