"""`recording.log`: which recordings hold the terms of the log, and which the snapshots. Cluster specification 6.2.

A record is appended whole, and changes in place in one field. What a kill leaves of a record that was being appended is
shorter than a record; it is cut off when the file is next opened for writing.
"""

from __future__ import annotations

import bisect
import dataclasses
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace._base.closing import Closing
from headrace.cluster.errors import ClusterFileError
from headrace.cluster.files.recording_log_entries import (
    ENDPOINT_LENGTH_MAX,
    LOG_POSITION,
    TYPE,
    Entry,
    EntryType,
    read_entry,
)
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace._agent.storage import Storage, StorageFile

__all__ = ["RECORDING_LOG_NAME", "RecordingLog"]

RECORDING_LOG_NAME = "recording.log"
_SORTED_NAME = "recording.log.tmp"
_KEPT_NAME = "recording.log.bak"
_LENGTH_MAX = 1 << 28
_LONG = struct.Struct("<q")
_INT = struct.Struct("<i")
_SYNC_DATA, _SYNC_ALL = 1, 2


class RecordingLog(Closing):
    """The recording log of one member. Used by one thread at a time; each change is on disk when it returns.

    A context manager that closes the file.

    Args:
        storage: The cluster's directory.
        sync_level: How :meth:`force` writes to the medium: 2 the file's times too, otherwise the data alone. Terms and
            snapshots are rare, and a start depends on them.
        read_only: Change nothing; the file must exist.

    Raises:
        ClusterFileError: The file is damaged: a record of no known type, terms of several recordings, two valid
            entries for one term, or longer than four million records.
        OSError: The file cannot be opened.
    """

    def __init__(self, storage: Storage, *, sync_level: int = 0, read_only: bool = False) -> None:
        self._storage = storage
        self._sync_level = sync_level
        self.path = storage.describe(RECORDING_LOG_NAME)
        is_new = storage.length(RECORDING_LOG_NAME) is None
        self._file: StorageFile = (
            storage.open(RECORDING_LOG_NAME, read_only=True)
            if read_only
            else storage.create(RECORDING_LOG_NAME, storage.length(RECORDING_LOG_NAME) or 0, may_exist=True)
        )
        self._entries: list[Entry] = []
        # The valid terms among them.
        self._terms: dict[int, Entry] = {}
        self._end = 0
        self._count = 0
        try:
            self._load()
            if not read_only and self._file.length() > self._end:
                self._file.set_length(self._end)
            if is_new and not read_only:
                # Or a power cut takes the file with all that was forced into it.
                storage.sync()
        except BaseException:
            self._file.close()
            raise

    def _load(self) -> None:
        length = self._file.length()
        if length > _LENGTH_MAX:
            raise ClusterFileError(
                f"{self.path}: length={length} is above {_LENGTH_MAX}: it is not a recording log"
            )
        data = self._file.read(0, length)
        try:
            while (found := read_entry(data, self._end, self._count)) is not None:
                entry, length = found
                if entry is not None:
                    self._check(entry)
                    self._entries.append(entry)
                    self._note(entry)
                self._end += length
                self._count += 1
        except ClusterFileError as wrong:
            raise ClusterFileError(f"{self.path}: {wrong}") from None
        self._entries.sort(key=_order)

    def _note(self, entry: Entry) -> None:
        if entry.is_term:
            self._terms[entry.leadership_term_id] = entry

    def _check(self, entry: Entry) -> None:
        """Look whether an entry may stand beside the others."""
        if entry.recording_id == NULL_VALUE:
            raise ClusterFileError(f"record {entry.index} has recording_id=-1, which is not a recording")
        if not entry.is_term:
            return
        if entry.term_base_log_position < 0 or entry.log_position < NULL_VALUE:
            raise ClusterFileError(
                f"record {entry.index} is damaged: term_base_log_position={entry.term_base_log_position} and "
                f"log_position={entry.log_position}, where positions are not negative, and -1 means no end yet; "
                "restore the file from a copy"
            )
        log_id = self.log_recording_id
        if log_id not in (None, entry.recording_id):
            raise ClusterFileError(
                f"leadership term {entry.leadership_term_id} is in recording {entry.recording_id}, others in {log_id}: "
                "all terms are one recording"
            )
        if self.term(entry.leadership_term_id) is not None:
            raise ClusterFileError(f"leadership term {entry.leadership_term_id} has two entries")

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def is_sorted(self) -> bool:
        """Whether the file has the entries in the order of :attr:`Entry.order`."""
        offsets = [entry.offset for entry in self._entries]
        return offsets == sorted(offsets) and len(offsets) == self._count

    @property
    def log_recording_id(self) -> int | None:
        """Which recording the log is; ``None`` before the first term."""
        return next((term.recording_id for term in self._terms.values()), None)

    def term(self, leadership_term_id: int) -> Entry | None:
        """The valid entry of a leadership term, if there is one."""
        return self._terms.get(leadership_term_id)

    @property
    def last_term(self) -> Entry | None:
        """The valid entry of the latest leadership term."""
        return self._terms[max(self._terms)] if self._terms else None

    def latest_snapshot(self, service_count: int) -> list[Entry]:
        """The entries of the latest snapshot: of the consensus module, then of the services 0 and on.

        Empty when there is none. A service without an entry at that position is left out. Of several, which a
        kill while a snapshot was noted leaves, the last counts: all are of the state at that position.

        Raises:
            ClusterFileError: There are fewer entries before the consensus module's than services.
        """
        for at in range(len(self._entries) - 1, -1, -1):
            module = self._entries[at]
            if not (module.is_snapshot and module.service_id == NULL_VALUE):
                continue
            if at < service_count:
                raise ClusterFileError(
                    f"{self.path}: snapshot missing for service: that at log_position={module.log_position} has "
                    f"{at} of service_count={service_count}"
                )
            place = (module.leadership_term_id, module.log_position)
            taken = {
                one.service_id: one
                for one in self._entries[:at]
                if one.is_snapshot and (one.leadership_term_id, one.log_position) == place
            }
            return [module, *(taken[number] for number in range(service_count) if number in taken)]
        return []

    def snapshot_up_to(self, log_position: int, service_count: int) -> list[Entry]:
        """The entries of the latest whole snapshot up to a position, or of the first one if all are after it.

        Of the services, the last first, then of the consensus module; empty when there is none.
        """
        found: dict[tuple[int, int], dict[int, Entry]] = {}
        for one in self._entries:
            if one.is_snapshot:
                found.setdefault((one.log_position, one.leadership_term_id), {})[one.service_id] = one
        parts = range(service_count - 1, NULL_VALUE - 1, -1)
        whole = {place: taken for place, taken in found.items() if all(part in taken for part in parts)}
        if not whole:
            return []
        place = max((place for place in whole if place[0] <= log_position), default=min(whole))
        return [whole[place][part] for part in parts]

    # --- changes ---------------------------------------------------------------------------------------------------

    def append_term(
        self, recording_id: int, leadership_term_id: int, term_base_log_position: int, timestamp: int
    ) -> Entry:
        """Add a leadership term. The term before it ends where it begins, and it ends where the one after it begins.

        Raises:
            ClusterFileError: The term is there, the recording is not that of the other terms, or a position is below 0.
        """
        following = self.term(leadership_term_id + 1)
        entry = Entry(
            recording_id=recording_id,
            leadership_term_id=leadership_term_id,
            term_base_log_position=_position(term_base_log_position, "term_base_log_position"),
            log_position=NULL_VALUE if following is None else following.term_base_log_position,
            timestamp=timestamp,
            type=EntryType.TERM,
        )
        self._check(dataclasses.replace(entry, index=self._count))
        if self.term(leadership_term_id - 1) is not None:
            self.commit_log_position(leadership_term_id - 1, term_base_log_position)
        return self._append(entry)

    def append_snapshot(self, entry: Entry) -> Entry:
        """Add a snapshot. It takes the place of one that is the same but for its recording, which may be invalid.

        Raises:
            ClusterFileError: It has no recording, a position below 0, or an endpoint that is too long or not ASCII.
        """
        if entry.type is EntryType.TERM:
            raise ClusterFileError("type=TERM: append_term adds terms")
        if len(entry.archive_endpoint or "") > ENDPOINT_LENGTH_MAX:
            text = f"archive_endpoint has {len(entry.archive_endpoint or '')} characters, above {ENDPOINT_LENGTH_MAX}"
            raise ClusterFileError(text)
        if not (entry.archive_endpoint or "").isascii():
            raise ClusterFileError(f"archive_endpoint={entry.archive_endpoint!r} is not ASCII")
        _position(entry.log_position, "log_position")
        self._check(dataclasses.replace(entry, index=self._count))
        # A valid one was noted before a kill, and is taken again at the same position.
        same = next((one for one in self._entries if _place(one) == _place(entry)), None)
        if same is None:
            return self._append(entry)
        restored = dataclasses.replace(
            same, recording_id=entry.recording_id, timestamp=entry.timestamp, is_valid=True
        )
        self._file.write(same.offset, restored.encode())
        self._replace(same, restored)
        return restored

    def commit_log_position(self, leadership_term_id: int, log_position: int) -> None:
        """Note where a leadership term ends.

        Raises:
            ClusterFileError: There is no such term.
        """
        term = self.term(leadership_term_id)
        if term is None:
            raise ClusterFileError(f"{self.path}: unknown leadership_term_id={leadership_term_id}")
        if term.log_position != log_position:
            self._file.write(term.offset + LOG_POSITION, _LONG.pack(log_position))
            self._replace(term, dataclasses.replace(term, log_position=log_position))

    def invalidate(self, entry: Entry) -> None:
        """Take an entry back; it stays in the file, and no start uses it."""
        changed = dataclasses.replace(entry, is_valid=False)
        self._file.write(entry.offset + TYPE, _INT.pack(changed.encoded_type))
        self._replace(entry, changed)

    def invalidate_latest_snapshot(self) -> bool:
        """Take back what was snapshotted last, of all services and standbys; whether there was something.

        Raises:
            ClusterFileError: The file has no entry for the leadership term of that snapshot.
        """
        module = next(
            (one for one in reversed(self._entries) if one.is_snapshot and one.service_id == NULL_VALUE), None
        )
        if module is None:
            return False
        if self.term(module.leadership_term_id) is None:
            raise ClusterFileError(
                f"{self.path}: no entry for leadership_term_id={module.leadership_term_id} of the latest snapshot"
            )
        # The module's entry goes first: a kill in between leaves services' entries, which no start uses without it.
        for entry in reversed(list(self._entries)):
            if (
                entry.is_valid
                and entry.type is not EntryType.TERM
                and entry.log_position == module.log_position
            ):
                self.invalidate(entry)
        return True

    def ensure_coherent(self, recording_id: int, before: Entry | None, joined: Entry) -> None:
        """Fill in the terms that this member has not seen, up to one that it joins, and note where that ends.

        Args:
            recording_id: Of the log.
            before: The term, and where it began, with which this member's log begins; ``None`` for the one it joins.
            joined: The term that it joins, with ``log_position`` -1 while it goes on.

        Raises:
            ClusterFileError: The last term has no end, and ``joined`` no begin; or it ended elsewhere than ``joined``
                begins, though that is the next.
        """
        target, begin = joined.leadership_term_id, joined.term_base_log_position
        last = self.last_term
        if last is None:
            first = joined if before is None else before
            start = first.term_base_log_position
            for missing in range(max(0, first.leadership_term_id), target):
                self._fill(recording_id, missing, start, joined.timestamp)
            self.append_term(recording_id, target, begin, joined.timestamp)
        elif last.leadership_term_id < target:
            end = last.log_position
            if end == NULL_VALUE:
                if begin == NULL_VALUE:
                    raise ClusterFileError(
                        f"{self.path}: term {last.leadership_term_id} has no end, and term {target} has no beginning"
                    )
                end = begin
                self.commit_log_position(last.leadership_term_id, end)
            elif before is None and begin not in (NULL_VALUE, end) and joined.log_position == NULL_VALUE:
                raise ClusterFileError(
                    f"{self.path}: leadership term {last.leadership_term_id} ended at position {end}, and term "
                    f"{target} is to begin at {begin}: one of the two is wrong; restore the archive's directory and "
                    "the cluster's from one copy"
                )
            for missing in range(last.leadership_term_id + 1, target):
                self._fill(recording_id, missing, end, joined.timestamp)
            self.append_term(recording_id, target, end, joined.timestamp)
        if joined.log_position != NULL_VALUE:
            self.commit_log_position(target, joined.log_position)
        self.force()

    def cut_back(self, log_position: int) -> None:
        """Take back all that is said of the log after a position where it ends, since a power failure took the rest."""
        for entry in reversed(list(self._entries)):
            if not entry.is_valid:
                continue
            if entry.type is not EntryType.TERM:
                if entry.log_position > log_position:
                    self.invalidate(entry)
            elif entry.term_base_log_position > log_position:
                self.invalidate(entry)
            elif entry.log_position > log_position:
                self.commit_log_position(entry.leadership_term_id, NULL_VALUE)
        self.force()

    def _fill(self, recording_id: int, leadership_term_id: int, position: int, timestamp: int) -> None:
        self.append_term(recording_id, leadership_term_id, position, timestamp)
        self.commit_log_position(leadership_term_id, position)

    def sort(self) -> bool:
        """Rewrite the file in the order of :attr:`Entry.order`, without removed records; whether it was in another.

        The new file takes the place of the old one, so that a kill leaves either.
        """
        if self.is_sorted:
            return False
        self._rewrite(self._entries)
        return True

    @property
    def is_seed(self) -> bool:
        """Whether it is what seeding leaves: a snapshot at position 0, and nothing else."""
        kept = self._seed()
        return bool(kept) and kept == self._entries

    def _seed(self) -> list[Entry]:
        module = next(
            (one for one in reversed(self._entries) if one.is_snapshot and one.service_id == NULL_VALUE), None
        )
        return [
            dataclasses.replace(one, term_base_log_position=0, log_position=0)
            for one in self._entries
            if module is not None
            and one.is_snapshot
            and (one.leadership_term_id, one.log_position) == (module.leadership_term_id, module.log_position)
        ]

    def seed_from_latest_snapshot(self) -> int:
        """Have the next start begin a new log at position 0 from the latest snapshot. The old file stays as `.bak`.

        Once it :attr:`is_seed` nothing changes, so that the old file stays, however often this is called.

        Returns:
            How many entries the new file has; with 0 there is no file any more.
        """
        kept = self._seed()
        if self.is_seed:
            return len(kept)
        whole = self._file.read(0, self._end)
        self._storage.delete(_KEPT_NAME)
        copy = self._storage.create(_KEPT_NAME, len(whole))
        try:
            copy.write(0, whole)
            copy.sync(_SYNC_ALL)
        finally:
            copy.close()
        if kept:
            self._rewrite(kept)
        else:
            self._storage.delete(RECORDING_LOG_NAME)
            self._entries, self._terms = [], {}
        self._storage.sync()
        return len(kept)

    def force(self) -> None:
        """Force what was changed to the medium."""
        self._file.sync(max(self._sync_level, _SYNC_DATA))

    def close(self) -> None:
        """Close the file. Closing again does nothing."""
        self._file.close()

    def _append(self, entry: Entry) -> Entry:
        entry = dataclasses.replace(entry, index=self._count, offset=self._end)
        self._file.write(self._end, entry.encode())
        self._end += entry.length
        self._count += 1
        bisect.insort(self._entries, entry, key=_order)
        self._note(entry)
        return entry

    def _replace(self, entry: Entry, changed: Entry) -> None:
        """Put what an entry has become in its place, which does not change."""
        assert changed.order == entry.order, "what is not changed in place decides the order"
        self._entries[bisect.bisect_left(self._entries, entry.order, key=_order)] = changed
        if entry.is_term:
            del self._terms[entry.leadership_term_id]
        self._note(changed)

    def _rewrite(self, entries: list[Entry]) -> None:
        """Put a new file with these entries into the place of the old one."""
        self._storage.delete(_SORTED_NAME)  # what a kill left
        written = [entry.encode() for entry in entries]
        file = self._storage.create(_SORTED_NAME, 0)
        try:
            file.write(0, b"".join(written))
            file.sync(_SYNC_ALL)
            self._storage.rename(_SORTED_NAME, RECORDING_LOG_NAME)
        except BaseException:
            file.close()
            raise
        self._file.close()
        self._file, self._entries, self._terms, self._end, self._count = file, [], {}, 0, 0
        self._storage.sync()
        self._load()


def _order(entry: Entry) -> tuple[int, ...]:
    return entry.order


def _place(entry: Entry) -> tuple[object, ...]:
    """What two entries of one snapshot have in common. Each standby takes its own."""
    return (
        entry.type,
        entry.leadership_term_id,
        entry.term_base_log_position,
        entry.log_position,
        entry.service_id,
        entry.archive_endpoint,
    )


def _position(position: int, name: str) -> int:
    if position < 0:
        raise ClusterFileError(f"{name}={position} is below 0")
    return position
