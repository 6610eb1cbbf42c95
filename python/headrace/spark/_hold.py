"""What a streaming query has not committed, held against the retention of its recordings: option ``retentionHold``."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from headrace.archive import ArchiveFileError
from headrace.archive.files import hold, holds, release
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
        self._held: set[int] | None = None

    def begin(self, read: Positions) -> None:
        """Hold recordings that have no hold yet, from where the query is to read them.

        Raises:
            ArchiveFileError: The directory refuses.
        """
        try:
            if self._held is None:
                self._held = {one.recording_id for one in holds(self._directory) if one.name == self._name}
            for key, position in read.items():
                if int(key) not in self._held:
                    hold(self._directory, self._name, int(key), position)
                    self._held.add(int(key))
        except OSError as refusal:
            raise self._refused(refusal) from refusal

    def move(self, committed: Positions, ended_keys: AbstractSet[str]) -> None:
        """Hold what follows a committed offset, and nothing of recordings that were read to where they ended.

        Raises:
            ArchiveFileError: The directory refuses.
        """
        try:
            for key, position in committed.items():
                if key in ended_keys:
                    release(self._directory, self._name, int(key))
                else:
                    hold(self._directory, self._name, int(key), position)
        except OSError as refusal:
            raise self._refused(refusal) from refusal

    def _refused(self, refusal: OSError) -> ArchiveFileError:
        return ArchiveFileError(
            f"retentionHold={self._name}: cannot write into the archive's directory {self._directory}: {refusal}; the "
            "process of the query's driver must be allowed to, or leave the option out"
        )
