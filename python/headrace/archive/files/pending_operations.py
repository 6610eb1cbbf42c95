"""Changes that an archive has begun and must finish, noted before the first step in a way that a kill cannot tear.

A note is an empty file whose name says everything, so it exists or it does not. Only Headrace's archive knows them.

    truncate-<recording id>-<position>.begun    the recording will end at the position
    purge-<recording id>.begun                  the recording will be deleted
    delete-all.begun                            catalog and segment files will be deleted

``pending_segments.py`` has the notes of changes to segment files alone.

The second step decides: the stop position in the catalog, or the state DELETED. A note that contradicts the catalog is
dropped: its change never happened, or another archive has worked on the directory since. The state alone does not
delete: no checksum covers it, and damage of four bytes must not cost a recording.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.archive.files.catalog import CATALOG_NAME, STATE_DELETED, STATE_INVALID
from headrace.archive.files.cut_files import CUT_SUFFIXES
from headrace.archive.files.pending_notes import NOTE_SUFFIX, Note, note_name
from headrace.archive.files.pending_segments import DELETED_SUFFIX, Migration, SegmentPurge
from headrace.archive.files.retention_holds import HOLD_SUFFIX
from headrace.positions import segment_name, segment_position

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headrace._agent.storage import Storage
    from headrace.archive.files.catalog import Catalog
    from headrace.archive.protocol.descriptor import RecordingDescriptor

__all__ = [
    "Purge",
    "Truncation",
    "delete_all",
    "finish_pending",
    "is_delete_all_begun",
    "purged_files",
    "segment_files",
    "tell_hidden",
]

_DELETE_ALL_NAME = note_name("delete-all")
_SEGMENT_SUFFIXES = (".rec", DELETED_SUFFIX)
# How many recordings one note names.
_LISTED_MAX = 20


@dataclass(frozen=True, slots=True)
class Truncation(Note):
    """A recording will end at a position."""

    _kind = "truncate"
    recording_id: int
    position: int

    def files(self, storage: Storage, descriptor: RecordingDescriptor) -> list[str]:
        """Segment files that have nothing before the position."""
        if self.position == descriptor.start_position:
            return segment_files(storage, self.recording_id)
        bases = (segment_position(name, self.recording_id) for name in storage.names())
        gone = sorted(base for base in bases if base is not None and base >= self.position)
        return [segment_name(self.recording_id, base) for base in gone]

    def clear(self, storage: Storage, descriptor: RecordingDescriptor, sync_level: int) -> None:
        """Zero everything after the position in its segment file."""
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

    def finish(
        self, catalog: Catalog, storage: Storage, sync_level: int, on_note: Callable[[str], object]
    ) -> None:
        """Delete the files if the recording ends at the position, and end the note."""
        descriptor = catalog.find(self.recording_id)
        if descriptor is not None and descriptor.stop_position == self.position:
            self.clear(storage, descriptor, sync_level)
            what = f"truncating recording_id={self.recording_id} at position={self.position}"
            self._delete(self.files(storage, descriptor), storage, on_note, what)
        self.end(storage, sync_level)


@dataclass(frozen=True, slots=True)
class Purge(Note):
    """A recording will be deleted, with all its files."""

    _kind = "purge"
    recording_id: int

    def finish(
        self, catalog: Catalog, storage: Storage, sync_level: int, on_note: Callable[[str], object]
    ) -> None:
        """Delete the files if the catalog says that the recording is deleted, and end the note."""
        entry = catalog.find_entry(self.recording_id)
        if entry is not None and entry.state == STATE_DELETED:
            names = purged_files(storage, [self.recording_id])
            self._delete(names, storage, on_note, f"purging recording_id={self.recording_id}")
        self.end(storage, sync_level)


def segment_files(storage: Storage, recording_id: int) -> list[str]:
    """Names of all segment files of a recording, and of those that older archives left to be deleted."""
    prefix = f"{recording_id}-"
    return [name for name in storage.names() if name.startswith(prefix) and name.endswith(_SEGMENT_SUFFIXES)]


def purged_files(storage: Storage, recording_ids: Iterable[int]) -> list[str]:
    """Names of all files of recordings, with their `.cut` files and holds."""
    wanted = {str(recording_id) for recording_id in recording_ids}
    suffixes = (*_SEGMENT_SUFFIXES, *CUT_SUFFIXES, HOLD_SUFFIX)
    return [name for name in storage.names() if name.endswith(suffixes) and name.partition("-")[0] in wanted]


def is_delete_all_begun(storage: Storage) -> bool:
    """Whether an archive was killed before it had deleted everything."""
    return storage.length(_DELETE_ALL_NAME) is not None


def delete_all(storage: Storage) -> None:
    """Delete the catalog and all files of recordings."""
    storage.create(_DELETE_ALL_NAME, 0, may_exist=True).close()
    for name in storage.names():
        is_note = name.endswith(NOTE_SUFFIX) and name != _DELETE_ALL_NAME
        if is_note or name == CATALOG_NAME or name.endswith((*_SEGMENT_SUFFIXES, *CUT_SUFFIXES, HOLD_SUFFIX)):
            storage.delete(name)
    storage.delete(_DELETE_ALL_NAME)


_NOTES: tuple[type[Note], ...] = (Truncation, Purge, SegmentPurge, Migration)


def finish_pending(
    catalog: Catalog, storage: Storage, sync_level: int, on_note: Callable[[str], object]
) -> None:
    """Finish truncations, purges and migrations of an archive that was killed.

    If the disk refuses a change, this notes it, and the next start tries again.
    """
    names = storage.names()
    if sync_level > 0 and any(name.endswith(NOTE_SUFFIX) for name in names):
        # A kill keeps what was written and not forced. A power cut would take it away from under what is done here.
        try:
            storage.sync()
            catalog.sync()
        except OSError as refusal:
            on_note(f"cannot finish an interrupted change: {refusal}; the next start tries again")
            return
    for name in names:
        notes = (kind.named(name) for kind in _NOTES)
        try:
            for note in notes:
                if note is not None:
                    note.finish(catalog, storage, sync_level, on_note)
        except OSError as refusal:
            on_note(f"cannot finish the change noted in {name}: {refusal}; the next start tries again")


def tell_hidden(catalog: Catalog, storage: Storage, on_note: Callable[[str], object]) -> None:
    """Note the recordings that their state in the catalog hides although they have files.

    Called when all pending changes are finished: a deleted entry that still has files was not deleted by this archive.
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
