"""Notes of what an archive has begun: empty files whose names say everything, so that a kill cannot tear them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.archive.files.storage import Storage

__all__ = ["NOTE_SUFFIX", "begin_note", "end_note", "note_name", "note_numbers"]

NOTE_SUFFIX = ".begun"
"""How the names of all notes end."""


def note_name(kind: str, *numbers: int) -> str:
    """The name of a note: what was begun, and with which numbers."""
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
