"""The first step of an archive that starts: what an archive that died had begun is finished, and its recordings end.

Where a recording ended is found in its files (``files/stop_position.py``). A recording whose files no death explains is
skipped, by name, until a person has looked at it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace._states import NoEvents
from headrace.archive.errors import ArchiveFileError
from headrace.archive.files.begun_steps import delete_all, finish_begun, is_delete_all_begun, tell_hidden
from headrace.archive.files.catalog import Catalog
from headrace.archive.files.checksum import checksum_named
from headrace.archive.files.older_layouts import finish_upgrade, is_upgrade_begun
from headrace.archive.files.stop_position import check_entry, recovered_stop_position, segment_bases
from headrace.archive.server.stored import StoredRecordings
from headrace.positions import segment_name

if TYPE_CHECKING:
    from headrace._states import EventSink
    from headrace.archive.files.checksum import Checksum
    from headrace.archive.files.storage import Storage
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.archive.server.config import ArchiveConfig

__all__ = ["Recovery", "open_files", "recover"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """How an archive recovers.

    Attributes:
        now_ms: Time for stop timestamps.
        on_note: Told what was done, and of each recording that is skipped because no death explains its files.
        checksum: What frames may carry.
        sync_level: How changes are forced to the medium.
        on_step: Called before each step that may take long.
        events: Told of recordings that stop, or are skipped.
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
        on_note: Told what was done.
        events: Told of recordings that stop, or are skipped.
        on_step: Called before each step that may take long.

    Raises:
        ArchiveFileError: The catalog is damaged in a way that no death explains.
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
    """Finish what an archive that died had begun, and give every recording that was active its stop position.

    Args:
        catalog: The catalog, opened for writing.
        storage: The archive's files.
        how: Time, checksum, and who is told.
    """
    how.on_step()
    finish_begun(catalog, storage, how.sync_level, how.on_note)
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
            stop = recovered_stop_position(storage, entry.descriptor, how.checksum, how.on_note, bases=found)
            _force(storage, entry.descriptor, stop, how.sync_level)
        except (ArchiveFileError, OSError) as damage:
            _leave_alone(stored, entry.recording_id, damage, how.on_note)
            continue
        stored.stopped(entry.recording_id, stop, how.now_ms, "the archive before this one died")
        how.on_note(f"recovered recording_id={entry.recording_id} stop_position={stop}")


def _force(storage: Storage, descriptor: RecordingDescriptor, stop: int, sync_level: int) -> None:
    """Force the last block to the medium: a kill may have left it in the memory of the machine alone.

    Before the catalog says that it is recorded; a power cut after that would leave a stop position without frames.
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
    """Skip a recording that cannot be told where it ends, and start; the next start looks at it again."""
    stored.left_alone(recording_id, str(damage))
    on_note(
        f"recording_id={recording_id} is skipped, and its files stay as they are: {damage}; restore the archive's "
        f"catalog or the file from a copy, or look at it with `headrace archive verify {recording_id}`: with --repair "
        "it takes the catalog entry as it is, where the files allow that"
    )
