"""Which recordings a query reads, and how far each of them goes at this moment."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from headrace._base.exceptions import ArchiveError
from headrace.archive import ArchiveFileError, DirectoryStorage, ErrorCode
from headrace.archive.files import ArchiveDirectory
from headrace.archive.files.declarations import declared_streams
from headrace.spark import _archive_service
from headrace.spark._archive_options import ArchiveFiles
from headrace.spark._option_values import refuse

if TYPE_CHECKING:
    from headrace.archive import Archive, CatalogEntry, NamedStream, RecordingDescriptor
    from headrace.spark._archive_options import ArchiveService
    from headrace.spark._options import ReadOptions

__all__ = [
    "Gone",
    "Selected",
    "look_up",
    "refuse_patterns_without_match",
    "refuse_unknown",
    "select",
    "still_recorded",
]

_NS_PER_MS = 1_000_000
# A recording that stops between a look at the catalog and one at the counters is in neither.
_ATTEMPTS = 2
# How many channels or streams an error names.
_LISTED_MAX = 10


@dataclass(frozen=True, slots=True)
class Selected:
    """A recording that the options ask for.

    ``end`` is how far it is recorded; ``None`` while nothing tells, because its archive is starting or has just
    died.
    """

    descriptor: RecordingDescriptor
    end: int | None

    @property
    def recording_id(self) -> int:
        """Which recording."""
        return self.descriptor.recording_id


@dataclass(frozen=True, slots=True)
class Gone:
    """A recording that the archive does not have any more.

    ``reason`` says what became of it, and ``end`` where it ended; ``None`` where nothing tells.
    """

    reason: str
    end: int | None
    is_deleted: bool


def select(options: ReadOptions) -> list[Selected]:
    """The recordings that match, in the order of their ids.

    Raises:
        ArchiveFileError: The directory has no archive, or the archive is damaged.
        ArchiveError: The archive does not answer.
    """
    archive = options.archive
    if isinstance(archive, ArchiveFiles):
        streams = _subscribed(options, lambda: _declared(archive))
        return _looked_up(archive, lambda each: _matches(each, options, streams))[0]
    with _archive_service.requests(archive, "list recordings") as session:
        streams = _subscribed(options, session.streams)
        found = (
            session.list_recordings(stream_id=options.stream_id)
            if options.recordings is None
            else [each for each in map(session.find_recording, options.recordings) if each is not None]
        )
        return [_with_end(session, each) for each in found if _matches(each, options, streams)]


def _declared(archive: ArchiveFiles) -> list[NamedStream]:
    if not Path(archive.directory).is_dir():
        refuse("archiveDirectory", archive.directory, "no such directory")
    streams = declared_streams(DirectoryStorage(archive.directory, create=False))
    return [streams[name] for name in sorted(streams)]


def _subscribed(options: ReadOptions, declared: Callable[[], list[NamedStream]]) -> list[NamedStream] | None:
    """The named streams that the options ask for; ``None`` if they ask for recordings otherwise."""
    if options.subscribe is not None:
        return [one for one in declared() if one.name in options.subscribe]
    if options.subscribe_pattern is not None:
        return [one for one in declared() if re.fullmatch(options.subscribe_pattern, one.name)]
    return None


def look_up(archive: ArchiveFiles | ArchiveService, recording_ids: set[int]) -> dict[int, Selected | Gone]:
    """What became of recordings that a query has read, whatever its options choose now.

    Raises:
        ArchiveFileError: The directory has no archive, or the archive is damaged.
        ArchiveError: The archive does not answer.
    """
    if not recording_ids:
        return {}
    found: dict[int, Selected | Gone] = {
        each: Gone("was deleted, or is marked invalid", None, is_deleted=True) for each in recording_ids
    }
    if not isinstance(archive, ArchiveFiles):
        with _archive_service.requests(archive, "look up recordings") as session:
            for descriptor in filter(None, map(session.find_recording, sorted(recording_ids))):
                found[descriptor.recording_id] = _with_end(session, descriptor)
        return found
    selected, entries = _looked_up(archive, lambda each: each.recording_id in recording_ids)
    for entry in entries:
        if entry.recording_id in recording_ids and not entry.is_valid:
            end = None if entry.descriptor.is_active else entry.descriptor.stop_position
            reason = "was deleted" if entry.is_deleted else "is marked invalid"
            found[entry.recording_id] = Gone(reason, end, entry.is_deleted)
    return found | {each.recording_id: each for each in selected}


def refuse_unknown(options: ReadOptions, found: list[Selected], known: Iterable[int] = ()) -> None:
    """Check that a query finds the recordings that its options name.

    Args:
        options: What the query asks for.
        found: What was selected with them.
        known: Recordings that the query has read before: they may be gone.

    Raises:
        ConfigError: One is not in the archive.
    """
    there = {*known, *(each.recording_id for each in found)}
    missing = set(options.recordings or ()) - there
    for recording_id, state in sorted(look_up(options.archive, missing).items()):
        if isinstance(state, Gone):
            refuse("recordings", recording_id, f"{options.archive} has no such recording")


def refuse_patterns_without_match(options: ReadOptions) -> None:
    """Check that names, ``channel`` and ``streamId`` are those of some recording, for a query that found none.

    Raises:
        ConfigError: They match nothing.
    """
    archive = options.archive
    if options.subscribe is not None or options.subscribe_pattern is not None:
        _refuse_undeclared(options)
    if options.channel is None and options.stream_id is None:
        return
    if isinstance(archive, ArchiveFiles):
        _, entries = _looked_up(archive, lambda each: False)
        there = [each.descriptor for each in entries if each.is_valid]
    else:
        with _archive_service.requests(archive, "list recordings") as session:
            there = session.list_recordings()
    streams = {each.stream_id for each in there}
    if options.stream_id is not None and options.stream_id not in streams:
        _refuse_pattern(options, "streamId", options.stream_id, sorted(streams))
    of_stream = [each for each in there if options.stream_id in (None, each.stream_id)]
    if not any((options.channel or "") in each.stripped_channel for each in of_stream):
        channels = sorted({each.stripped_channel for each in of_stream})
        _refuse_pattern(options, "channel", options.channel, channels)


def _refuse_undeclared(options: ReadOptions) -> None:
    archive = options.archive
    if isinstance(archive, ArchiveFiles):
        declared = _declared(archive)
    else:
        with _archive_service.requests(archive, "list streams") as session:
            declared = session.streams()
    names = [one.name for one in declared]
    known = f"no such stream is declared in {archive}; known are {', '.join(names[:_LISTED_MAX]) or 'none'}"
    for name in options.subscribe or ():
        if name not in names:
            refuse("subscribe", name, known)
    pattern = options.subscribe_pattern
    if pattern is not None and not any(re.fullmatch(pattern, name) for name in names):
        refuse("subscribePattern", pattern, known)


def _refuse_pattern(options: ReadOptions, name: str, value: object, there: Sequence[object]) -> NoReturn:
    of_stream = (
        "" if name == "streamId" or options.stream_id is None else f" and streamId={options.stream_id}"
    )
    known = ", ".join(map(str, there[:_LISTED_MAX])) or "none"
    more = f" and {len(there) - _LISTED_MAX} more" if len(there) > _LISTED_MAX else ""
    refuse(name, value, f"no recording in {options.archive} has it{of_stream}; known are {known}{more}")


def _looked_up(
    archive: ArchiveFiles, is_wanted: Callable[[RecordingDescriptor], bool]
) -> tuple[list[Selected], list[CatalogEntry]]:
    """Recordings with their ends, and all entries of the catalog that were seen with them."""
    if not Path(archive.directory).is_dir():
        refuse("archiveDirectory", archive.directory, "no such directory")
    for _ in range(_ATTEMPTS):
        with ArchiveDirectory(archive.directory) as directory:
            entries = directory.entries()
            chosen = [each.descriptor for each in entries if each.is_valid and is_wanted(each.descriptor)]
            ends = _live_ends(directory, archive, {each.recording_id for each in chosen if each.is_active})
        found = [
            Selected(each, ends.get(each.recording_id) if each.is_active else each.stop_position)
            for each in chosen
        ]
        if all(each.end is not None for each in found):
            break
    return found, entries


def _live_ends(directory: ArchiveDirectory, archive: ArchiveFiles, active: set[int]) -> dict[int, int]:
    if not active:
        return {}
    return directory.live_ends(
        active, aeron_directory=archive.aeron_directory, checksum=archive.record_checksum
    )


def _with_end(session: Archive, each: RecordingDescriptor) -> Selected:
    if not each.is_active:
        return Selected(each, each.stop_position)
    try:
        return Selected(each, session.max_recorded_position(each.recording_id))
    except ArchiveError as refusal:
        if refusal.code != ErrorCode.UNKNOWN_RECORDING:
            raise
        # It was stopped and purged since it was listed.
        return Selected(each, None)


def still_recorded(selected: Selected) -> ArchiveFileError:
    """What to raise when a recording's end must be known and is not."""
    return ArchiveFileError(
        f"recording_id={selected.recording_id} is active in the catalog, but no archive shows how far it is: it is "
        "starting, has just died, or its driver's directory is not reachable here (option aeronDirectory)"
    )


def _matches(
    descriptor: RecordingDescriptor, options: ReadOptions, streams: list[NamedStream] | None
) -> bool:
    if streams is not None and not any(stream.has(descriptor) for stream in streams):
        return False
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
