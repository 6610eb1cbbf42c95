"""Segment files that leave a recording for good, or join another one: noted first, and finished by the next start.

    purge-segments-<recording id>-<first>-<end>.begun           files from one base on, and before the other, are to go
    prepend-<source>-<destination>-<start>-<stop>.begun         this range of the source is to be before the destination
    append-<source>-<destination>-<start>-<stop>.begun          it is to be after the destination

A purge of segments is decided by the start position in the catalog, a migration by its note. See design note 36.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from headrace.archive.files.begun_notes import begin_note, end_note, note_name, note_numbers
from headrace.positions import segment_name, segment_position

if TYPE_CHECKING:
    from headrace.archive.files.catalog import Catalog
    from headrace.archive.files.storage import Storage
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.positions import Geometry

__all__ = ["Migration", "SegmentPurge", "finish_migration", "finish_purge_of_segments"]

_PURGE = "purge-segments"
_PREPEND, _APPEND = "prepend", "append"


@dataclass(frozen=True, slots=True)
class SegmentPurge:
    """Segment files before the start of a recording are to go.

    Attributes:
        recording_id: Which recording.
        first: Base of the first file that goes.
        kept: Base of the first file that stays; the recording begins in it.
    """

    recording_id: int
    first: int
    kept: int

    @property
    def name(self) -> str:
        """Name of the note."""
        return note_name(_PURGE, self.recording_id, self.first, self.kept)

    @classmethod
    def named(cls, name: str) -> Self | None:
        """What a note is of; ``None`` for other files."""
        numbers = note_numbers(name, _PURGE, 3)
        return None if numbers is None else cls(*numbers)

    @classmethod
    def of_detached(cls, storage: Storage, descriptor: RecordingDescriptor) -> Self | None:
        """What deletes every detached file of a recording; ``None`` if it has none."""
        kept, length = descriptor.geometry.first_segment, descriptor.segment_file_length
        found = (segment_position(name, descriptor.recording_id) for name in storage.names())
        bases = [
            base for base in found if base is not None and 0 <= base < kept and (kept - base) % length == 0
        ]
        return cls(descriptor.recording_id, min(bases), kept) if bases else None

    @classmethod
    def left(cls, storage: Storage, recording_id: int) -> list[Self]:
        """Purges of a recording whose notes a refusing disk has left, with files from their first on."""
        found = map(cls.named, storage.names())
        return [one for one in found if one is not None and one.recording_id == recording_id]

    @classmethod
    def forget(cls, storage: Storage, recording_id: int) -> None:
        """Drop these notes, before something else moves the recording's start.

        Raises:
            OSError: The disk still refuses.
        """
        for one in cls.left(storage, recording_id):
            storage.delete(one.name)

    def begin(self, storage: Storage, sync_level: int) -> None:
        """Write the note."""
        begin_note(self.name, storage, sync_level)

    def files(self, storage: Storage, segment_length: int) -> list[str]:
        """The files that go and are still there, in the order of the stream."""
        names = (
            segment_name(self.recording_id, base) for base in range(self.first, self.kept, segment_length)
        )
        there = set(storage.names())
        return [name for name in names if name in there]

    def end(self, storage: Storage, sync_level: int) -> None:
        """Take the note away, when all else is done."""
        end_note(self.name, storage, sync_level)


def finish_purge_of_segments(
    purge: SegmentPurge,
    catalog: Catalog,
    storage: Storage,
    sync_level: int,
    on_note: Callable[[str], object],
) -> None:
    """Delete the files of a noted purge if the recording begins where it says, and end the note."""
    descriptor = catalog.find(purge.recording_id)
    if descriptor is not None and descriptor.geometry.first_segment == purge.kept:
        names = purge.files(storage, descriptor.segment_file_length)
        for name in names:
            storage.delete(name)
        on_note(
            f"finished purging segments of recording_id={purge.recording_id} before position={purge.kept}, "
            f"which the archive before this one had begun: deleted {len(names)} files"
        )
    purge.end(storage, sync_level)


@dataclass(frozen=True, slots=True)
class Migration:
    """All that a recording has is to become the beginning, or the end, of another one.

    Attributes:
        is_before: Whether it is to be the beginning.
        source_id: Whose files move.
        destination_id: Whose they become.
        start: Where the source begins; and ends, when it is empty.
        stop: Where it ends before.
    """

    is_before: bool
    source_id: int
    destination_id: int
    start: int
    stop: int

    @property
    def name(self) -> str:
        """Name of the note."""
        kind = _PREPEND if self.is_before else _APPEND
        return note_name(kind, self.source_id, self.destination_id, self.start, self.stop)

    @classmethod
    def named(cls, name: str) -> Self | None:
        """The migration that a note is of; ``None`` for other files."""
        for kind, is_before in ((_PREPEND, True), (_APPEND, False)):
            numbers = note_numbers(name, kind, 4)
            if numbers is not None:
                return cls(is_before, *numbers)
        return None

    def moves(self, geometry: Geometry) -> list[tuple[str, str]]:
        """Each file's name before and after. An empty last file does not move."""
        bases = range(geometry.segment_base(self.start), self.stop, geometry.segment_length)
        return [
            (segment_name(self.source_id, base), segment_name(self.destination_id, base)) for base in bases
        ]

    def empty_last_file(self, storage: Storage, geometry: Geometry) -> str | None:
        """The file that the source made when it had filled the one before; ``None`` without it."""
        name = segment_name(self.source_id, self.stop)
        is_boundary = geometry.segment_offset(self.stop) == 0
        return name if is_boundary and storage.length(name) is not None else None

    def begin(self, storage: Storage, sync_level: int) -> None:
        """Write the note."""
        begin_note(self.name, storage, sync_level)

    def carry_out(self, catalog: Catalog, storage: Storage) -> None:
        """Do what is not done yet, up to the last file. The note stays until all of it is on the medium.

        Raises:
            OSError: The disk refuses.
        """
        for name, new_name in self.moves(self._geometry(catalog)):
            if storage.length(name) is not None:
                storage.rename(name, new_name)
        self._move_destination(catalog, self.start if self.is_before else self.stop)
        _move(catalog, self.source_id, stop_position=self.start)

    def take_back(self, catalog: Catalog, storage: Storage, sync_level: int) -> None:
        """Undo what was done, and the note.

        Raises:
            OSError: The disk refuses.
        """
        _move(catalog, self.source_id, stop_position=self.stop)
        self._move_destination(catalog, self.stop if self.is_before else self.start)
        for name, new_name in self.moves(self._geometry(catalog)):
            if storage.length(name) is None:
                storage.rename(new_name, name)
        self.end(storage, sync_level)

    def _geometry(self, catalog: Catalog) -> Geometry:
        source = catalog.find(self.source_id)
        assert source is not None, "looked for before anything began"
        return source.geometry

    def _move_destination(self, catalog: Catalog, position: int) -> None:
        which = "start_position" if self.is_before else "stop_position"
        _move(catalog, self.destination_id, **{which: position})

    def end(self, storage: Storage, sync_level: int) -> None:
        """Take the note away, when all else is done."""
        end_note(self.name, storage, sync_level)

    def misfit(self, catalog: Catalog, storage: Storage) -> str | None:
        """Why this cannot be what was begun, in words; ``None`` if each step is either done or to be done."""
        source, destination = catalog.find(self.source_id), catalog.find(self.destination_id)
        if source is None or destination is None:
            return "one of the recordings is unknown"
        if (source.start_position, source.stop_position) not in (
            (self.start, self.stop),
            (self.start, self.start),
        ):
            return f"the source has start={source.start_position} stop={source.stop_position}"
        at = destination.start_position if self.is_before else destination.stop_position
        if at not in (self.start, self.stop):
            return f"the destination has start={destination.start_position} stop={destination.stop_position}"
        for name, new_name in self.moves(source.geometry):
            if (storage.length(name) is None) == (storage.length(new_name) is None):
                return f"of {name} and {new_name} exactly one should be there"
        return None


def _move(catalog: Catalog, recording_id: int, **position: int) -> None:
    """Write a position that is not there yet: a disk that refuses writes need not take what it has."""
    descriptor = catalog.find(recording_id)
    assert descriptor is not None, "looked for before anything began"
    if any(getattr(descriptor, name) != value for name, value in position.items()):
        catalog.update(recording_id, **position)


def finish_migration(
    migration: Migration,
    catalog: Catalog,
    storage: Storage,
    sync_level: int,
    on_note: Callable[[str], object],
) -> None:
    """Do what is left of a noted migration, and end the note."""
    what = f"migrating recording_id={migration.source_id} to recording_id={migration.destination_id}"
    misfit = migration.misfit(catalog, storage)
    if misfit is not None:
        on_note(
            f"{what}, which an archive had begun, is not finished: {misfit}; nothing was changed, compare both with "
            "`headrace archive verify`"
        )
    else:
        migration.carry_out(catalog, storage)
        source = catalog.find(migration.source_id)
        assert source is not None, "it fits"
        last = migration.empty_last_file(storage, source.geometry)
        if last is not None:
            storage.delete(last)
        on_note(f"finished {what}, which the archive before this one had begun")
    migration.end(storage, sync_level)
