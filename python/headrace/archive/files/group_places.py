"""How far the groups of an archive's named streams have read: one small file for each group.

    <stream>@<group>.group      JSON: the lanes of the group, each with a place

A lane is a part of the stream that one member reads at a time. With one lane members share the recordings; with more
they share the keys of messages. The file is written whole, forced to the medium, and renamed into place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace._agent.storage import SYNC_DATA
from headrace._base.exceptions import ConfigError
from headrace.archive.errors import ArchiveFileError
from headrace.archive.protocol.place import Place

if TYPE_CHECKING:
    from headrace._agent.storage import Storage

__all__ = ["GroupPlaces", "groups_in"]

_SUFFIX = ".group"


class GroupPlaces:
    """The places of one group.

    Args:
        storage: The archive's files.
        name: The stream.
        group: The group.
        sync_level: How the file is forced to the medium.

    Raises:
        ArchiveFileError: The file is damaged.
    """

    def __init__(self, storage: Storage, name: str, group: str, sync_level: int) -> None:
        self._storage = storage
        self._file_name = f"{name}@{group}{_SUFFIX}"
        self._sync_level = sync_level
        self.lanes: list[Place] = []
        """A place for each lane; none before the first member has joined."""
        self._load()

    def _load(self) -> None:
        length = self._storage.length(self._file_name)
        if length is None:
            return
        file = self._storage.open(self._file_name, read_only=True)
        try:
            data = file.read(0, length)
        finally:
            file.close()
        try:
            self.lanes = [Place.from_value(one) for one in json.loads(data)["lanes"]]
        except (ValueError, KeyError, TypeError, ConfigError) as damage:
            path = self._storage.describe(self._file_name)
            raise ArchiveFileError(
                f"{path} is damaged: {damage}; delete it, and the group begins anew"
            ) from None

    def store(self) -> None:
        """Replace the file.

        Raises:
            OSError: The disk refuses; the file is as it was.
        """
        data = json.dumps({"lanes": [place.to_value() for place in self.lanes]}).encode()
        updated = f"{self._file_name}.updated"
        file = self._storage.create(updated, 0, may_exist=True)
        try:
            file.write(0, data)
            # Before the name, or a power cut leaves an empty file of it.
            file.sync(max(SYNC_DATA, self._sync_level))
        finally:
            file.close()
        self._storage.rename(updated, self._file_name)
        self._storage.sync()


def groups_in(storage: Storage) -> Iterator[tuple[str, str]]:
    """Each group that has a file, as the names of its stream and of itself."""
    for file_name in storage.names():
        if file_name.endswith(_SUFFIX):
            name, _, group = file_name.removesuffix(_SUFFIX).partition("@")
            yield name, group
