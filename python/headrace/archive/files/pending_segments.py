"""Segment files that leave a recording for good, or join another one: noted first, and finished by the next start.

    purge-segments-<recording id>-<first>-<end>.begun           files from one base to before the other will be deleted
    prepend-<source>-<destination>-<start>-<stop>.begun         this range of the source will precede the destination
    append-<source>-<destination>-<start>-<stop>.begun          it will follow the destination

The start position in the catalog decides a purge of segments, and its note a migration.
See ``docs/internals/archive.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from headrace.archive.files.pending_notes import Note, note_name, note_numbers
from headrace.positions import segment_name, segment_position

if TYPE_CHECKING:
    from headrace._agent.storage import Storage
    from headrace.archive.files.catalog import Catalog
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.positions import Geometry

__all__ = ["DELETED_SUFFIX", "Migration", "SegmentPurge"]

DELETED_SUFFIX = ".rec.del"
"""Of segment files that older archives had renamed to be deleted."""
_PREPEND, _APPEND = "prepend", "append"


@dataclass(frozen=True, slots=True)
class SegmentPurge(Note):
    """Segment files before the start of a recording will be deleted.

    Attributes:
        recording_id: Which recording.
        first: Base of the first file to delete.
        kept: Base of the first file that stays; the recording begins in it.
    """

    _kind = "purge-segments"
    recording_id: int
    first: int
    kept: int

    @classmethod
    def of_detached(cls, storage: Storage, descriptor: RecordingDescriptor) -> Self | None:
        """The purge of every detached file of a recording; ``None`` if it has none."""
        kept, length = descriptor.geometry.first_segment, descriptor.segment_file_length
        found = (segment_position(name, descriptor.recording_id) for name in storage.names())
        bases = [
            base for base in found if base is not None and 0 <= base < kept and (kept - base) % length == 0
        ]
        return cls(descriptor.recording_id, min(bases), kept) if bases else None

    @classmethod
    def left(cls, storage: Storage, recording_id: int) -> list[Self]:
        """Purges of a recording that could not be finished, because the disk refused to delete a file."""
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

    def files(self, storage: Storage, segment_length: int) -> list[str]:
        """The files that are still to be deleted, in the order of the stream."""
        names = (
            segment_name(self.recording_id, base) for base in range(self.first, self.kept, segment_length)
        )
        there = set(storage.names())
        return [name for name in names if name in there]

    def finish(
        self, catalog: Catalog, storage: Storage, sync_level: int, on_note: Callable[[str], object]
    ) -> None:
        """Delete the files if the recording begins where the note says, and end the note."""
        descriptor = catalog.find(self.recording_id)
        if descriptor is not None and descriptor.geometry.first_segment == self.kept:
            names = self.files(storage, descriptor.segment_file_length)
            what = f"purging segments of recording_id={self.recording_id} before position={self.kept}"
            self._delete(names, storage, on_note, what)
        self.end(storage, sync_level)


def deleted_files(storage: Storage, recording_id: int) -> list[str]:
    """Names of the segment files of a recording that older archives had renamed to be deleted."""
    prefix = f"{recording_id}-"
    return [name for name in storage.names() if name.startswith(prefix) and name.endswith(DELETED_SUFFIX)]


@dataclass(frozen=True, slots=True)
class Migration(Note):
    """A whole recording will become the beginning, or the end, of another one.

    Attributes:
        is_before: Whether it will be the beginning.
        source_id: The recording whose files move.
        destination_id: The recording that gets them.
        start: Where the source begins, and afterwards also ends.
        stop: Where the source ends before the migration.
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

    def left_files(self, storage: Storage, geometry: Geometry) -> list[str]:
        """The files that do not move: an empty last file, which the source made when it had filled the one before.

        And files that older archives had renamed to be deleted.
        """
        names = deleted_files(storage, self.source_id)
        last = segment_name(self.source_id, self.stop)
        if geometry.segment_offset(self.stop) == 0 and storage.length(last) is not None:
            names.append(last)
        return names

    def carry_out(self, catalog: Catalog, storage: Storage) -> None:
        """Do all steps that are not done yet. The note stays until all of it is on the medium.

        Raises:
            OSError: The disk refuses.
        """
        for name, new_name in self.moves(self._geometry(catalog)):
            if storage.length(name) is not None:
                storage.rename(name, new_name)
        self._move_destination(catalog, self.start if self.is_before else self.stop)
        _move(catalog, self.source_id, stop_position=self.start)

    def take_back(self, catalog: Catalog, storage: Storage, sync_level: int) -> None:
        """Undo all steps, and end the note.

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

    def misfit(self, catalog: Catalog, storage: Storage) -> str | None:
        """Why the note does not fit the files, in words; ``None`` if each step is either done or not begun."""
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

    def finish(
        self, catalog: Catalog, storage: Storage, sync_level: int, on_note: Callable[[str], object]
    ) -> None:
        """Do what is left, and end the note."""
        what = f"migrating recording_id={self.source_id} to recording_id={self.destination_id}"
        misfit = self.misfit(catalog, storage)
        if misfit is not None:
            on_note(
                f"{what}, which an archive had begun, is not finished: {misfit}; nothing was changed, compare both "
                "with `headrace archive verify`"
            )
        else:
            self.carry_out(catalog, storage)
            for name in self.left_files(storage, self._geometry(catalog)):
                storage.delete(name)
            on_note(f"finished {what}, which the archive's previous run had begun")
        self.end(storage, sync_level)


def _move(catalog: Catalog, recording_id: int, **position: int) -> None:
    """Write a position, unless the catalog has it already: a disk that refuses writes then raises no error."""
    descriptor = catalog.find(recording_id)
    assert descriptor is not None, "looked for before anything began"
    if any(getattr(descriptor, name) != value for name, value in position.items()):
        catalog.update(recording_id, **position)
