"""Notes of changes that an archive has begun: empty files with telling names, which a kill cannot tear."""

from __future__ import annotations

import contextlib
import dataclasses
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace._agent.storage import Storage
    from headrace.archive.files.catalog import Catalog

__all__ = ["NOTE_SUFFIX", "Note", "begin_note", "end_note", "note_name", "note_numbers"]

NOTE_SUFFIX = ".begun"
"""How the names of all notes end."""


def note_name(kind: str, *numbers: int) -> str:
    """The name of a note: the kind of change, and its numbers."""
    return f"{'-'.join((kind, *map(str, numbers)))}{NOTE_SUFFIX}"


def note_numbers(name: str, kind: str, count: int) -> tuple[int, ...] | None:
    """The numbers in the name of a note; ``None`` for other files."""
    parts = name.removesuffix(NOTE_SUFFIX).removeprefix(f"{kind}-").split("-")
    if len(parts) != count or not all(part.isdecimal() for part in parts):
        return None
    numbers = tuple(map(int, parts))
    # Not of `truncate-0-064.begun`: what was begun would not find its note.
    return numbers if name == note_name(kind, *numbers) else None


def begin_note(name: str, storage: Storage, sync_level: int) -> None:
    """Write a note.

    Raises:
        OSError: The disk refuses, and nothing has begun.
    """
    was_begun = storage.length(name) is not None
    try:
        storage.create(name, 0, may_exist=True).close()
        if sync_level > 0:
            storage.sync()
    except OSError:
        # The request is refused, and nothing has begun: but for an earlier one that is not finished yet.
        if not was_begun:
            with contextlib.suppress(OSError):
                storage.delete(name)
        raise


def end_note(name: str, storage: Storage, sync_level: int) -> None:
    """Take a note away, after all else is on the medium."""
    if sync_level > 0:
        storage.sync()
    storage.delete(name)


class Note(ABC):
    """A change that is noted before its first step: a dataclass of the numbers in the note's name."""

    __slots__ = ()
    _kind: ClassVar[str]

    @property
    def name(self) -> str:
        """Name of the note."""
        return note_name(self._kind, *dataclasses.astuple(self))  # type: ignore[call-overload]

    @classmethod
    def named(cls, name: str) -> Self | None:
        """The change that a note is of; ``None`` for other files."""
        numbers = note_numbers(name, cls._kind, len(dataclasses.fields(cls)))  # type: ignore[arg-type]
        return None if numbers is None else cls(*numbers)

    def begin(self, storage: Storage, sync_level: int) -> None:
        """Write the note; see :func:`begin_note`."""
        begin_note(self.name, storage, sync_level)

    def end(self, storage: Storage, sync_level: int) -> None:
        """Take the note away; see :func:`end_note`."""
        end_note(self.name, storage, sync_level)

    @abstractmethod
    def finish(
        self, catalog: Catalog, storage: Storage, sync_level: int, on_note: Callable[[str], object]
    ) -> None:
        """Finish the change of an archive that was killed, and end the note."""

    @staticmethod
    def _delete(names: list[str], storage: Storage, on_note: Callable[[str], object], what: str) -> None:
        for name in names:
            storage.delete(name)
        on_note(f"finished {what}, which the archive's previous run had begun: deleted {len(names)} files")
