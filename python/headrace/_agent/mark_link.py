"""Where a mark file is: beside the files that it guards, or elsewhere, where a link beside the files leads.

The link, `NAME.lnk` for the mark file `NAME.dat`, holds the path of the other directory. It counts before a mark file
that is beside the files: that one is of a time before the link.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._agent.storage import DirectoryStorage
from headrace._base.checks import excerpt

if TYPE_CHECKING:
    from headrace._agent.storage import Storage
    from headrace._base.exceptions import HeadraceError

__all__ = ["mark_directory", "new_mark_directory"]

_PATH_MAX = 4096
_FULL_SYNC = 2


def _link_name(mark_name: str) -> str:
    return Path(mark_name).with_suffix(".lnk").name


def mark_directory(storage: Storage, mark_name: str, error: type[HeadraceError]) -> Storage:
    """The directory with a mark file: the one that the link names, or that of the files.

    Raises:
        HeadraceError: The link names no directory; an `error`.
        OSError: The link cannot be read.
    """
    link = _link_name(mark_name)
    try:
        file = storage.open(link, read_only=True)
    except FileNotFoundError:
        return storage
    try:
        path = file.read(0, _PATH_MAX).strip()
    finally:
        file.close()
    if not path or b"\0" in path:
        raise error(
            f"{storage.describe(link)}: {excerpt(repr(os.fsdecode(path)))} is not the path of a directory with a mark "
            "file: when nothing runs on the directory, delete the link"
        )
    return DirectoryStorage(os.fsdecode(path), create=False)


@contextmanager
def new_mark_directory(
    storage: Storage,
    mark_name: str,
    elsewhere: str | os.PathLike[str] | None,
    error: type[HeadraceError],
    keep_out: Callable[[], AbstractContextManager[None]],
) -> Iterator[Storage]:
    """Yields the directory in which the mark file is to be created; afterwards the link leads there.

    Args:
        storage: The files that the mark file guards.
        mark_name: The mark file.
        elsewhere: The other directory for it; ``None`` puts it beside the files.
        error: What a link is refused with.
        keep_out: Keeps everything else away from the directory for as long as the mark file is where it was; raises
            when something runs there.

    Raises:
        HeadraceError: The link names no directory, or what `keep_out` raises.
        OSError: The disk refuses.
    """
    place = storage
    if elsewhere is not None and not _is_same(storage.describe(), elsewhere):
        place = DirectoryStorage(elsewhere)
    before = mark_directory(storage, mark_name, error)
    # What runs has its mark file there, and would not be seen at the new place.
    with nullcontext() if _is_same(before.describe(), place.describe()) else keep_out():
        yield place
        _link(storage, mark_name, place)


def _link(storage: Storage, mark_name: str, place: Storage) -> None:
    link = _link_name(mark_name)
    if place is storage:
        storage.delete(link)
        return
    # Under another name first: a link that a kill left empty would lead nowhere.
    new = f"{link}.new"
    storage.delete(new)
    file = storage.create(new, 0)
    try:
        file.write(0, os.fsencode(os.path.realpath(place.describe())))
        file.sync(_FULL_SYNC)
    finally:
        file.close()
    storage.rename(new, link)
    storage.sync()


def _is_same(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
