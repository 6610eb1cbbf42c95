"""What an archive has begun and must finish, noted before the first step in a way that a kill cannot tear.

A note is an empty file whose name says everything, so it is there or it is not. Only this archive knows them.

    truncate-<recording id>-<position>.begun    the recording is to end at the position
    purge-<recording id>.begun                  the recording is to go
    delete-all.begun                            catalog and segment files are to go

Those of segment files alone are in ``begun_segments.py``.

The second step decides: the stop position in the catalog, or the state DELETED. A note that the catalog does not agree
with is of something that never happened, or that another archive has gone on from: it is dropped. The state alone does
not delete: no checksum covers it, and damage of four bytes must not cost a recording.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from headrace.archive.files.begun_notes import (
    NOTE_SUFFIX,
    begin_note,
    end_note,
    note_name,
    note_numbers,
)
from headrace.archive.files.begun_segments import (
    Migration,
    SegmentPurge,
    finish_migration,
    finish_purge_of_segments,
)
from headrace.archive.files.catalog import CATALOG_NAME, STATE_DELETED, STATE_INVALID
from headrace.archive.files.cut_files import CUT_SUFFIXES
from headrace.archive.files.retention_holds import HOLD_SUFFIX
from headrace.positions import segment_name, segment_position

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headrace.archive.files.catalog import Catalog
    from headrace.archive.files.storage import Storage
    from headrace.archive.protocol.descriptor import RecordingDescriptor

__all__ = [
    "Purge",
    "Truncation",
    "delete_all",
    "finish_begun",
    "is_delete_all_begun",
    "purged_files",
    "segment_files",
    "tell_hidden",
]

_DELETE_ALL_NAME = note_name("delete-all")
_SEGMENT_SUFFIXES = (".rec", ".rec.del")
# How many recordings one note names.
_LISTED_MAX = 20


@dataclass(frozen=True, slots=True)
class Truncation:
    """A recording is to end at a position."""

    recording_id: int
    position: int

    @property
    def name(self) -> str:
        """Name of the note."""
        return note_name("truncate", self.recording_id, self.position)

    @classmethod
    def named(cls, name: str) -> Self | None:
        """The truncation that a note is of; ``None`` for other files."""
        numbers = note_numbers(name, "truncate", 2)
        return None if numbers is None else cls(*numbers)

    def begin(self, storage: Storage, sync_level: int) -> None:
        """Write the note."""
        begin_note(self.name, storage, sync_level)

    def files(self, storage: Storage, descriptor: RecordingDescriptor) -> list[str]:
        """Segment files that have nothing before the position."""
        if self.position == descriptor.start_position:
            return segment_files(storage, self.recording_id)
        bases = (segment_position(name, self.recording_id) for name in storage.names())
        gone = sorted(base for base in bases if base is not None and base >= self.position)
        return [segment_name(self.recording_id, base) for base in gone]

    def clear(self, storage: Storage, descriptor: RecordingDescriptor, sync_level: int) -> None:
        """Leave nothing but zeros after the position in the segment file that it lies in."""
        geometry = descriptor.geometry
        base, offset = geometry.segment_base(self.position), geometry.segment_offset(self.position)
        name = segment_name(self.recording_id, base)
        if self.position == descriptor.start_position or offset == 0 or storage.length(name) is None:
            return
        file = storage.open(name)
        try:
            file.set_length(offset)
            file.set_length(geometry.segment_length)
            file.sync(sync_level)
        finally:
            file.close()

    def end(self, storage: Storage, sync_level: int) -> None:
        """Take the note away, when all else is done."""
        end_note(self.name, storage, sync_level)


@dataclass(frozen=True, slots=True)
class Purge:
    """A recording is to go, with all its files."""

    recording_id: int

    @property
    def name(self) -> str:
        """Name of the note."""
        return note_name("purge", self.recording_id)

    @classmethod
    def named(cls, name: str) -> Self | None:
        """The purge that a note is of; ``None`` for other files."""
        numbers = note_numbers(name, "purge", 1)
        return None if numbers is None else cls(*numbers)

    def begin(self, storage: Storage, sync_level: int) -> None:
        """Write the note."""
        begin_note(self.name, storage, sync_level)

    def end(self, storage: Storage, sync_level: int) -> None:
        """Take the note away, when all else is done."""
        end_note(self.name, storage, sync_level)


def segment_files(storage: Storage, recording_id: int) -> list[str]:
    """Names of all segment files of a recording, and of those that older archives left to be deleted."""
    prefix = f"{recording_id}-"
    return [name for name in storage.names() if name.startswith(prefix) and name.endswith(_SEGMENT_SUFFIXES)]


def purged_files(storage: Storage, recording_ids: Iterable[int]) -> list[str]:
    """Names of all files of recordings, with their `.cut` files, and with what holds them."""
    wanted = {str(recording_id) for recording_id in recording_ids}
    suffixes = (*_SEGMENT_SUFFIXES, *CUT_SUFFIXES, HOLD_SUFFIX)
    return [name for name in storage.names() if name.endswith(suffixes) and name.partition("-")[0] in wanted]


def is_delete_all_begun(storage: Storage) -> bool:
    """Whether an archive that was to delete everything was killed before it had."""
    return storage.length(_DELETE_ALL_NAME) is not None


def delete_all(storage: Storage) -> None:
    """Delete the catalog and all files of recordings."""
    storage.create(_DELETE_ALL_NAME, 0, may_exist=True).close()
    for name in storage.names():
        is_note = name.endswith(NOTE_SUFFIX) and name != _DELETE_ALL_NAME
        if is_note or name == CATALOG_NAME or name.endswith((*_SEGMENT_SUFFIXES, *CUT_SUFFIXES, HOLD_SUFFIX)):
            storage.delete(name)
    storage.delete(_DELETE_ALL_NAME)


def finish_begun(
    catalog: Catalog, storage: Storage, sync_level: int, on_note: Callable[[str], object]
) -> None:
    """Finish truncations, purges and migrations of an archive that was killed.

    What the disk refuses is noted and tried again at the next start.
    """
    names = storage.names()
    if sync_level > 0 and any(name.endswith(NOTE_SUFFIX) for name in names):
        # A kill keeps what was written and not forced. A power cut would take it away from under what is done here.
        try:
            storage.sync()
            catalog.sync()
        except OSError as refusal:
            on_note(f"cannot finish what was begun: {refusal}; it is tried again at the next start")
            return
    for name in names:
        truncation, purge = Truncation.named(name), Purge.named(name)
        segments, migration = SegmentPurge.named(name), Migration.named(name)
        try:
            if truncation is not None:
                _finish(truncation, catalog, storage, sync_level, on_note)
            elif purge is not None:
                _finish_purge(purge, catalog, storage, sync_level, on_note)
            elif segments is not None:
                finish_purge_of_segments(segments, catalog, storage, sync_level, on_note)
            elif migration is not None:
                finish_migration(migration, catalog, storage, sync_level, on_note)
        except OSError as refusal:
            on_note(
                f"cannot finish what {name} is the note of: {refusal}; it is tried again at the next start"
            )


def tell_hidden(catalog: Catalog, storage: Storage, on_note: Callable[[str], object]) -> None:
    """Note the recordings whose state in the catalog hides them though their files are there.

    Called when all that was begun is finished: a deleted entry that still has files was not deleted by this archive.
    """
    entries = catalog.entries()
    owners = {name.partition("-")[0] for name in storage.names() if name.endswith(_SEGMENT_SUFFIXES)}
    for state, word in ((STATE_DELETED, "deleted"), (STATE_INVALID, "invalid")):
        hidden = [
            str(entry.recording_id)
            for entry in entries
            if entry.state == state and str(entry.recording_id) in owners
        ]
        if hidden:
            more = f" and {len(hidden) - _LISTED_MAX} more" if len(hidden) > _LISTED_MAX else ""
            on_note(
                f"the catalog marks recordings as {word} whose files are there: recording_id="
                f"{', '.join(hidden[:_LISTED_MAX])}{more}; they are hidden and their files are kept; "
                "`headrace archive verify --repair` makes them valid again where the files are whole"
            )


def _finish(
    truncation: Truncation,
    catalog: Catalog,
    storage: Storage,
    sync_level: int,
    on_note: Callable[[str], object],
) -> None:
    descriptor = catalog.find(truncation.recording_id)
    if descriptor is not None and descriptor.stop_position == truncation.position:
        truncation.clear(storage, descriptor, sync_level)
        names = truncation.files(storage, descriptor)
        for name in names:
            storage.delete(name)
        on_note(
            f"finished truncating recording_id={truncation.recording_id} at position={truncation.position}, "
            f"which the archive before this one had begun: deleted {len(names)} files"
        )
    truncation.end(storage, sync_level)


def _finish_purge(
    purge: Purge, catalog: Catalog, storage: Storage, sync_level: int, on_note: Callable[[str], object]
) -> None:
    entry = catalog.find_entry(purge.recording_id)
    if entry is not None and entry.state == STATE_DELETED:
        names = purged_files(storage, [purge.recording_id])
        for name in names:
            storage.delete(name)
        on_note(
            f"finished purging recording_id={purge.recording_id}, which the archive before this one had begun: "
            f"deleted {len(names)} files"
        )
    purge.end(storage, sync_level)
