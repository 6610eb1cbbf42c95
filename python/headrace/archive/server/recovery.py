"""Recovers after the archive before this one died: finishes what it had begun, and ends its recordings.

The end of a recording is found in its files (``files/stop_position.py``). If a kill does not explain the files of a
recording, it is skipped and named, until a person has looked at it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace._base.states import NoEvents
from headrace.archive.errors import ArchiveFileError
from headrace.archive.files.catalog import Catalog
from headrace.archive.files.checksum import checksum_named
from headrace.archive.files.older_layouts import finish_upgrade, is_upgrade_begun
from headrace.archive.files.pending_operations import (
    delete_all,
    finish_pending,
    is_delete_all_begun,
    tell_hidden,
)
from headrace.archive.files.segment_writer import force_segments
from headrace.archive.files.stop_position import check_entry, recovered_stop_position, segment_bases
from headrace.archive.protocol.forcing import has_sound_end
from headrace.archive.server.recording_store import StoredRecordings
from headrace.positions import segment_name

if TYPE_CHECKING:
    from headrace._agent.storage import Storage
    from headrace._base.states import EventSink
    from headrace.archive.files.checksum import Checksum
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.archive.server.config import ArchiveConfig

__all__ = ["Recovery", "open_files", "recover"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """How an archive recovers.

    Attributes:
        now_ms: Time for stop timestamps.
        on_note: Called with a text for each change, and for each recording that is skipped.
        checksum: The checksum that frames may carry.
        sync_level: How changes are forced to the medium.
        on_step: Called before each step that may take long.
        events: Gets the recordings that stop, or are skipped.
    """

    now_ms: int
    on_note: Callable[[str], object]
    checksum: Checksum | None = None
    sync_level: int = 0
    on_step: Callable[[], object] = lambda: None
    events: EventSink = field(default_factory=NoEvents)


def open_files(
    config: ArchiveConfig,
    storage: Storage,
    now_ms: int,
    on_note: Callable[[str], object],
    *,
    events: EventSink | None = None,
    on_step: Callable[[], object] = lambda: None,
) -> Catalog:
    """The catalog of an archive that starts, with the stop position of every recording.

    Args:
        config: Settings of the archive.
        storage: Its files.
        now_ms: Time for stop timestamps.
        on_note: Called with a text for each change.
        events: Gets the recordings that stop, or are skipped.
        on_step: Called before each step that may take long.

    Raises:
        ArchiveFileError: The catalog is damaged in a way that a kill does not explain.
        OSError: The disk refuses.
    """
    if config.directory_delete_on_start or is_delete_all_begun(storage):
        delete_all(storage)
    if is_upgrade_begun(storage):
        finish_upgrade(storage)
        on_note("finished the migration to today's layout, which `headrace archive migrate` had begun")
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
            catalog,
            storage,
            Recovery(
                now_ms=now_ms,
                on_note=on_note,
                checksum=checksum,
                sync_level=config.file_sync_level,
                on_step=on_step,
                events=events or NoEvents(),
            ),
        )
    except BaseException:
        catalog.close()
        raise
    return catalog


def recover(catalog: Catalog, storage: Storage, how: Recovery) -> None:
    """Finish what an archive that died had begun, and set the stop position of every recording that was active.

    Args:
        catalog: The catalog, opened for writing.
        storage: The archive's files.
        how: How to recover.
    """
    how.on_step()
    finish_pending(catalog, storage, how.sync_level, how.on_note)
    tell_hidden(catalog, storage, how.on_note)
    stored = StoredRecordings(catalog, how.events)
    active = [entry for entry in catalog if entry.descriptor.is_active]
    # Once for all of them: the directory of an archive that is used for years has very many files.
    bases = segment_bases(storage) if active else {}
    for entry in active:
        how.on_step()
        try:
            check_entry(catalog, storage, entry)
            found = bases.get(entry.recording_id, ())
            # Nothing was forced, so that a gap is of a power failure. What follows it is kept aside.
            ends_at_gap = how.sync_level == 0 and has_sound_end(entry.descriptor.original_channel)
            stop = recovered_stop_position(
                storage, entry.descriptor, how.checksum, how.on_note, bases=found, is_repair=ends_at_gap
            )
            if ends_at_gap:
                left = segment_bases(storage).get(entry.recording_id, ())
                force_segments(storage, entry.recording_id, sorted(left))
            else:
                _force(storage, entry.descriptor, stop, how.sync_level)
        except (ArchiveFileError, OSError) as damage:
            _leave_alone(stored, entry.recording_id, damage, how.on_note)
            continue
        stored.stopped(entry.recording_id, stop, how.now_ms, "the archive's previous run died")
        how.on_note(f"recovered recording_id={entry.recording_id} stop_position={stop}")


def _force(storage: Storage, descriptor: RecordingDescriptor, stop: int, sync_level: int) -> None:
    """Force the last block to the medium: after a kill it may only be in the memory of the machine.

    This comes before the catalog says that it is recorded: otherwise a power cut could leave a stop position without
    frames.
    """
    if sync_level == 0 or stop == descriptor.start_position:
        return
    file = storage.open(segment_name(descriptor.recording_id, descriptor.geometry.segment_base(stop - 1)))
    try:
        file.sync(sync_level)
    finally:
        file.close()
    storage.sync()


def _leave_alone(
    stored: StoredRecordings, recording_id: int, damage: Exception, on_note: Callable[[str], object]
) -> None:
    """Skip a recording whose end cannot be found, and start without it; the next start looks at it again."""
    stored.left_alone(recording_id, str(damage))
    on_note(
        f"recording_id={recording_id} is skipped, and its files stay as they are: {damage}; restore the archive's "
        f"catalog or the file from a copy, or look at it with `headrace archive verify {recording_id}`: with --repair "
        "it takes the catalog entry as it is, where the files allow that"
    )
