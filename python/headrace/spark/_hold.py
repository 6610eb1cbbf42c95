"""What a streaming query has not committed, held against the retention of its recordings: option ``retentionHold``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

from headrace.archive import ArchiveFileError
from headrace.archive.files import Hold, holds
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
        # As they were last seen or written: a directory may have a hundred thousand files, and is listed once.
        self._known: dict[int, Hold] | None = None

    def held(self) -> set[int]:
        """The recordings that have a hold.

        Raises:
            ArchiveFileError: The directory refuses.
        """
        return set(self._holds())

    def begin(self, read: Mapping[int, int]) -> set[int]:
        """Hold recordings that have no hold yet, from where the query is to read them; gives which these are.

        Raises:
            ArchiveFileError: The directory refuses.
        """
        known = self._holds()
        missing = read.keys() - known.keys()
        with self._named():
            for recording_id in sorted(missing):
                one = Hold(self._name, recording_id, read[recording_id])
                one.put(self._directory)
                known[recording_id] = one
        return missing

    def release(self, recording_ids: AbstractSet[int]) -> None:
        """End the holds of recordings.

        Raises:
            ArchiveFileError: The directory refuses.
        """
        known = self._holds()
        with self._named():
            for recording_id in recording_ids & known.keys():
                known[recording_id].end(self._directory)
                del known[recording_id]

    def move(self, committed: Positions, ended_keys: AbstractSet[str]) -> None:
        """Hold what follows a committed offset, and nothing of recordings that were read to where they ended.

        Moves holds that are there: a recording without one was read to its end, or has been purged since.

        Raises:
            ArchiveFileError: The directory refuses.
        """
        self.release(set(map(int, ended_keys)))
        known = self._holds()
        at = {int(key): position for key, position in committed.items()}
        with self._named():
            for recording_id in at.keys() & known.keys():
                one = known[recording_id]
                if one.position == at[recording_id]:
                    continue
                try:
                    known[recording_id] = one.moved(self._directory, at[recording_id])
                except FileNotFoundError:
                    del known[recording_id]

    def _holds(self) -> dict[int, Hold]:
        if self._known is None:
            with self._named():
                # Of several on a recording, which no query leaves, the one that holds most stays.
                own = [one for one in holds(self._directory) if one.name == self._name]
                self._known = {one.recording_id: one for one in reversed(own)}
                for one in own:
                    if one != self._known[one.recording_id]:
                        one.end(self._directory)
        return self._known

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Have an error of the system say what cannot be done, and what to do."""
        try:
            yield
        except OSError as refusal:
            raise ArchiveFileError(
                f"retentionHold={self._name}: cannot write into the archive's directory {self._directory}: {refusal}; "
                "the process of the query's driver must be allowed to, or leave the option out"
            ) from refusal
