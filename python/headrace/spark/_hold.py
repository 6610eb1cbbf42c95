"""What a streaming query has not committed, held against the retention of its recordings: option ``retentionHold``."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from headrace.archive import ArchiveFileError
from headrace.archive.files.retention_holds import move_holds
from headrace.spark._offset import Positions

__all__ = ["QueryHold"]


class QueryHold:
    """The holds of one name in an archive's directory, moved as the query commits.

    They stay when the query ends: it may go on from its checkpoint.

    Args:
        directory: The archive's.
        name: Of the holds; each query needs its own.
    """

    def __init__(self, directory: str, name: str) -> None:
        self._directory = directory
        self._name = name
        # Where they are, as they were last seen or written.
        self._known: dict[int, int] | None = None

    def held(self) -> dict[int, int]:
        """The recordings that have a hold, and its position.

        Raises:
            ArchiveFileError: The directory refuses.
        """
        if self._known is None:
            self._known = self._moved({})
        return self._known

    def begin(self, read: Mapping[int, int]) -> set[int]:
        """Hold recordings that have no hold yet, from where the query is to read them; gives which these are.

        Raises:
            ArchiveFileError: The directory refuses.
        """
        missing = {each: position for each, position in read.items() if each not in self.held()}
        if missing:
            self._known = self._moved(missing, may_make=True)
        return set(missing)

    def release(self, recording_ids: AbstractSet[int]) -> None:
        """End the holds of recordings.

        Raises:
            ArchiveFileError: The directory refuses.
        """
        if there := recording_ids & self.held().keys():
            self._known = self._moved(dict.fromkeys(there))

    def move(self, committed: Positions, ended_keys: AbstractSet[str]) -> None:
        """Hold what follows a committed offset, and nothing of recordings that were read to where they ended.

        Moves holds that are there: a recording without one was read to its end, or has been purged since.

        Raises:
            ArchiveFileError: The directory refuses.
        """
        held = self.held()
        wanted = {int(key): None if key in ended_keys else position for key, position in committed.items()}
        changes = {each: wanted[each] for each in held.keys() & wanted.keys() if held[each] != wanted[each]}
        if changes:
            self._known = self._moved(changes)

    def _moved(self, wanted: Mapping[int, int | None], *, may_make: bool = False) -> dict[int, int]:
        try:
            return move_holds(self._directory, self._name, wanted, may_make=may_make)
        except OSError as refusal:
            raise ArchiveFileError(
                f"retentionHold={self._name}: cannot write into the archive's directory {self._directory}: {refusal}; "
                "the process of the query's driver must be allowed to, or leave the option out"
            ) from refusal
