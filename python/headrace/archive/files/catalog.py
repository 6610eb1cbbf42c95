"""The catalog: one file with a description of every recording, in the published format.

    0        header, 32 bytes: i32 version | i32 length | i64 next recording id | i32 alignment
    32       entry: i32 length | i32 state | i32 checksum | zeros to 32 | description | zeros to the alignment
    ...      further entries in the order of their ids; a length of 0 ends the catalog, zeros to the end of the file

``length`` counts the description and the zeros after it. The state of an entry is written last and makes it valid.
Other processes may read the file while this one writes: positions are single 8-byte writes at multiples of 8.
"""

from __future__ import annotations

import contextlib
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._base.logging import ARCHIVE
from headrace.archive.errors import CatalogError
from headrace.archive.files.checksum import CHECKSUMS
from headrace.archive.protocol.descriptor import BLOCK_LENGTH, DescriptorError, RecordingDescriptor
from headrace.positions import NULL_VALUE, align, version_text

if TYPE_CHECKING:
    from headrace._agent.storage import Storage, StorageFile
    from headrace.archive.files.checksum import Checksum

__all__ = ["CATALOG_NAME", "STATE_NAMES", "Catalog", "CatalogEntry", "new_catalog"]

CATALOG_NAME = "archive.catalog"
_UPDATED_NAME = "archive.catalog.updated"
VERSION = 3 << 16 | 1 << 8
HEADER_LENGTH = 32
ENTRY_HEADER_LENGTH = 32
ALIGNMENT = 64
STATE_INVALID, STATE_VALID, STATE_DELETED = range(3)
STATE_NAMES = ("INVALID", "VALID", "DELETED")
CAPACITY_MAX = (1 << 31) - 1
_RECORDING_ID_MAX = (1 << 63) - 2

_HEADER = struct.Struct("<iiqi12x")
_ENTRY_HEADER = struct.Struct("<iii20x")
_STATE = struct.Struct("<i")
_LONG = struct.Struct("<q")
_NEXT_ID_OFFSET = 8
_STATE_OFFSET = 4
_SCAN_LENGTH = 1 << 20
# Three strings of the longest channel, and room to spare: more bytes than this are of more than one entry.
_APPEND_MAX = 16 * 1024
_FULL_SYNC = 2
_DATA_SYNC = 1
_PAGE_LENGTH = 4096
_NUMBERS_END = ENTRY_HEADER_LENGTH + BLOCK_LENGTH
_ADVICE = "restore it, or move the segment files out of the directory before an archive uses it again"


@dataclass(slots=True)
class CatalogEntry:
    """One entry of the file."""

    offset: int
    length: int
    state: int
    checksum: int
    descriptor: RecordingDescriptor
    defect: str | None = None
    """Why the description cannot be trusted; such a recording is skipped by everything but a repair."""

    @property
    def recording_id(self) -> int:
        """Which recording."""
        return self.descriptor.recording_id

    @property
    def is_valid(self) -> bool:
        """True for a recording that queries see."""
        return self.state == STATE_VALID and self.defect is None

    @property
    def is_deleted(self) -> bool:
        """True once it was purged."""
        return self.state == STATE_DELETED

    @property
    def state_name(self) -> str:
        """The state in a word."""
        if self.defect is not None:
            return "DAMAGED"
        return STATE_NAMES[self.state] if 0 <= self.state < len(STATE_NAMES) else f"UNKNOWN({self.state})"


class Catalog:
    """The recordings of an archive. Used by one thread.

    Args:
        storage: The archive's directory.
        capacity: Bytes of a new catalog, and least bytes of an old one.
        sync_level: How each change is forced to the medium.
        checksum: The checksum to put into entries.
        read_only: Change nothing.
        on_note: Called with a text for each entry that is skipped. By default they are logged.

    Attributes:
        capacity: Bytes of the file.
        next_recording_id: The id of the next recording.

    Raises:
        CatalogError: The file is not a catalog, is so damaged that its entries cannot be told apart, or is missing
            although there are segment files.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        capacity: int = 1 << 20,
        sync_level: int = 0,
        checksum: Checksum | None = None,
        read_only: bool = False,
        on_note: Callable[[str], object] = ARCHIVE.warning,
    ) -> None:
        self._storage = storage
        self._on_note = on_note
        self._sync_level = sync_level
        self._checksum = checksum
        self._read_only = read_only
        self._path = storage.describe(CATALOG_NAME)
        self._entries: list[CatalogEntry] = []
        self._ids: list[int] = []
        self._file = self._open(capacity)
        try:
            self._load(capacity)
        except BaseException:
            self._file.close()
            raise

    def _open(self, capacity: int) -> StorageFile:
        if self._storage.length(CATALOG_NAME) is None or self._is_unwritten():
            if self._read_only:
                raise CatalogError(f"there is no catalog: {self._path}")
            if self._has_segments_from(0):
                # No kill explains it: the catalog is forced to the medium before anything is recorded.
                raise CatalogError(
                    f"the catalog is missing, but segment files are there: {self._path}; {_ADVICE}"
                )
            file = self._storage.create(CATALOG_NAME, capacity, may_exist=True)
            file.write(0, _HEADER.pack(VERSION, HEADER_LENGTH, 0, ALIGNMENT))
            file.sync(_FULL_SYNC)
            self._storage.sync()
            return file
        return self._storage.open(CATALOG_NAME, read_only=self._read_only)

    def _is_unwritten(self) -> bool:
        """Whether an archive was killed after making the catalog and before writing its header."""
        file = self._storage.open(CATALOG_NAME, read_only=True)
        try:
            return not any(file.read(0, HEADER_LENGTH)) and not _has_bytes_from(file, 0)
        finally:
            file.close()

    def _has_segments_from(self, recording_id: int) -> bool:
        """Whether there are segment files of a recording with this id or a higher one."""
        owners = (name.partition("-")[0] for name in self._storage.names() if name.endswith(".rec"))
        return any(owner.isdecimal() and int(owner) >= recording_id for owner in owners)

    def _load(self, capacity: int) -> None:
        header = self._file.read(0, HEADER_LENGTH)
        if len(header) < HEADER_LENGTH:
            raise CatalogError(f"{self._path}: length={len(header)} is below the 32 bytes of its header")
        self.version, length, next_id, self.alignment = _HEADER.unpack(header)
        if self.version >> 16 != VERSION >> 16:
            raise CatalogError(
                f"{self._path}: the catalog has version {version_text(self.version)}, and this archive reads 3.x: "
                "`headrace archive migrate` brings older directories up to date; or name another directory"
            )
        if length != HEADER_LENGTH or self.alignment < ALIGNMENT or self.alignment & (self.alignment - 1):
            raise CatalogError(f"{self._path}: header has length={length} alignment={self.alignment}")
        self.capacity = self._file.length()
        end = HEADER_LENGTH
        try:
            while (entry := self._read_entry(end)) is not None:
                if self._ids and entry.recording_id <= self._ids[-1]:
                    self._refuse(
                        end, f"recording_id={entry.recording_id} follows recording_id={self._ids[-1]}"
                    )
                if entry.defect is not None:
                    self._skip(entry, next_id)
                self._entries.append(entry)
                self._ids.append(entry.recording_id)
                end += entry.length
        except CatalogError as damage:
            if not self._is_append_cut_short(next_id, end):
                raise
            self._on_note(
                f"{self._path}: the entry at offset={end} was cut short while it was added: {damage}"
            )
        self._end = end
        self._check_end(next_id)
        if not self._read_only:
            self._prepare(capacity, next_id)

    def _read_entry(self, offset: int) -> CatalogEntry | None:
        header = self._file.read(offset, ENTRY_HEADER_LENGTH)
        if len(header) < ENTRY_HEADER_LENGTH:
            return None
        length, state, checksum = _ENTRY_HEADER.unpack(header)
        if length <= 0:
            return None
        frame_length = align(length + ENTRY_HEADER_LENGTH, self.alignment)
        if offset + length + ENTRY_HEADER_LENGTH > self.capacity:
            self._refuse(offset, f"length={length} reaches beyond the file")
        try:
            descriptor = RecordingDescriptor.decode(self._file.read(offset + ENTRY_HEADER_LENGTH, length))
        except DescriptorError as wrong:
            self._refuse(offset, str(wrong))
        entry = CatalogEntry(offset, frame_length, state, checksum, descriptor)
        if not 0 <= state < len(STATE_NAMES):
            entry.defect = f"state={state} is not one of {', '.join(STATE_NAMES)}"
        elif state == STATE_VALID:
            entry.defect = descriptor.defect()
        return entry

    def _skip(self, entry: CatalogEntry, next_id: int) -> None:
        """Skip an entry whose values no recording can have; its end is known, so the others stay usable."""
        if self._is_append_cut_short(next_id, entry.offset):
            self._refuse(entry.offset, entry.defect or "")
        self._on_note(
            f"{self._path}: recording_id={entry.recording_id} is skipped: {entry.defect}; its files are kept, look at "
            "it with `headrace archive verify`"
        )

    def _is_append_cut_short(self, next_id: int, offset: int) -> bool:
        """Whether the bytes after the last whole entry are of one that was being added when the machine stopped.

        If so it is the last, its id is the next or was just given, and nothing was recorded under it yet: files are
        made only after the entry was forced to the medium.
        """
        recording_id = self._ids[-1] + 1 if self._ids else 0
        is_next = next_id in (recording_id, recording_id + 1)
        has_files = any(name.startswith(f"{recording_id}-") for name in self._storage.names())
        return is_next and not has_files and not _has_bytes_from(self._file, offset + _APPEND_MAX)

    def _refuse(self, offset: int, reason: str) -> None:
        raise CatalogError(f"{self._path}: damaged entry at offset={offset}: {reason}; {_ADVICE}")

    def _check_end(self, next_id: int) -> None:
        after_last = self._ids[-1] + 1 if self._ids else 0
        # The id is written after the entry: one less is an archive that was killed in between.
        if next_id < after_last - 1 and not (next_id == 0 or self._read_only):
            raise CatalogError(
                f"{self._path}: next_recording_id={next_id} is not above the last, {after_last - 1}"
            )
        if max(next_id, after_last) > _RECORDING_ID_MAX:
            raise CatalogError(f"{self._path}: next_recording_id={next_id} leaves no id for a recording")
        # An entry whose length was lost would hide all that follow it; of a file cut short, segment files tell.
        has_rest = _has_bytes_from(self._file, self._end)
        is_cut_short = not has_rest and self._has_segments_from(after_last)
        if next_id > after_last and has_rest and not self._is_append_cut_short(next_id, self._end):
            self._refuse(self._end, f"its length is 0 but next_recording_id={next_id} and more bytes follow")
        if next_id > after_last and is_cut_short:
            self._refuse(
                self._end,
                f"the catalog ends, but next_recording_id={next_id} and recordings from {after_last} on have files",
            )
        self.next_recording_id = max(next_id, after_last)

    def _prepare(self, capacity: int, next_id: int) -> None:
        """Make the first changes of the file: a catalog that was refused stays unchanged."""
        self._storage.delete(_UPDATED_NAME)  # what a kill left of a longer one
        if _has_bytes_from(self._file, self._end):
            self._file.set_length(self._end)
        if self._file.length() < max(capacity, self.capacity):
            self.capacity = max(capacity, self.capacity)
            self._file.set_length(self.capacity)
        if next_id != self.next_recording_id:
            self._file.write(_NEXT_ID_OFFSET, _LONG.pack(self.next_recording_id))

    def __iter__(self) -> Iterator[CatalogEntry]:
        return (entry for entry in self._entries if entry.is_valid)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def entries(self) -> list[CatalogEntry]:
        """Every entry in any state."""
        return list(self._entries)

    def find_entry(self, recording_id: int) -> CatalogEntry | None:
        """The entry of a recording in any state."""
        index = bisect_left(self._ids, recording_id)
        if index < len(self._ids) and self._ids[index] == recording_id:
            return self._entries[index]
        return None

    def find(self, recording_id: int) -> RecordingDescriptor | None:
        """The description of a recording; ``None`` when it is unknown, deleted or invalid."""
        entry = self.find_entry(recording_id)
        return entry.descriptor if entry is not None and entry.is_valid else None

    def valid_from(self, recording_id: int) -> Iterator[CatalogEntry]:
        """Valid entries from an id on, in the order of ids."""
        entries, start = self._entries, bisect_left(self._ids, recording_id)
        # No copy of the rest: a listing in pages asks again and again.
        return (entries[index] for index in range(start, len(entries)) if entries[index].is_valid)

    def add(self, descriptor: RecordingDescriptor) -> int:
        """Append a recording under the next id.

        Raises:
            CatalogError: The catalog has reached its greatest size.
            OSError: The disk refuses; the catalog is as it was before.
        """
        recording_id = self.next_recording_id
        descriptor = descriptor.replace(recording_id=recording_id)
        length = align(ENTRY_HEADER_LENGTH + len(descriptor.encode()), self.alignment)
        self._reserve(self._end + length)
        entry = CatalogEntry(self._end, length, STATE_VALID, 0, descriptor)
        padded = self._padded(entry)
        entry.checksum = self._checksum(padded) if self._checksum else 0
        try:
            self._file.write(self._end + ENTRY_HEADER_LENGTH, padded)
            self._file.write(self._end, _ENTRY_HEADER.pack(len(padded), STATE_VALID, entry.checksum))
            self._file.write(_NEXT_ID_OFFSET, _LONG.pack(recording_id + 1))
            # At each level: a power cut that takes an entry would give its id, and its files, to another recording.
            self._file.sync(max(self._sync_level, _DATA_SYNC))
        except OSError:
            # No entry on disk that is none here: the next start would show a recording that was refused.
            with contextlib.suppress(OSError):
                self._file.write(self._end, bytes(length))
            raise
        self.next_recording_id = recording_id + 1
        self._entries.append(entry)
        self._ids.append(recording_id)
        self._end += length
        return recording_id

    def _reserve(self, end: int) -> None:
        if end <= self.capacity:
            return
        capacity = self.capacity
        while capacity < end:
            if capacity == CAPACITY_MAX:
                raise CatalogError(f"{self._path}: catalog is full: length={self._end} capacity={capacity}")
            capacity = min(capacity + (capacity >> 1), CAPACITY_MAX)
        self._file.set_length(capacity)
        self.capacity = capacity

    # What is changed here changes in memory when it was written, and only then. A change that the disk refuses is
    # undone there as far as the disk lets it be.

    def update(self, recording_id: int, **changes: object) -> RecordingDescriptor:
        """Change numbers of a description. Channels are changed with :meth:`replace_channel`."""
        entry = self._entry(recording_id)
        self._replace(entry, entry.descriptor.replace(**changes))
        return entry.descriptor

    def replace_channel(self, recording_id: int, original: str, stripped: str) -> None:
        """Set another channel of a recording; entries after it move if it is longer."""
        entry = self._entry(recording_id)
        self._give(entry, entry.descriptor.replace(original_channel=original, stripped_channel=stripped))

    def refill(self, descriptor: RecordingDescriptor) -> None:
        """Give an empty recording the description of another, under its own id."""
        self._give(self._entry(descriptor.recording_id), descriptor)

    def _give(self, entry: CatalogEntry, descriptor: RecordingDescriptor) -> None:
        """Set other texts of an entry: in place if they fit and a kill cannot tear them, else in a new file."""
        needed = align(ENTRY_HEADER_LENGTH + len(descriptor.encode()), self.alignment)
        is_in_one_page = entry.offset // _PAGE_LENGTH == (entry.offset + entry.length - 1) // _PAGE_LENGTH
        if needed <= entry.length and is_in_one_page:
            self._replace(entry, descriptor)
        else:
            self._rewrite(entry, descriptor, max(entry.length, needed))

    def _replace(self, entry: CatalogEntry, descriptor: RecordingDescriptor) -> None:
        """Write another description in the place of an entry's."""
        changed = self._changed(entry, descriptor, entry.length)
        try:
            self._file.write(entry.offset, self._encoded(changed))
            self._file.sync(self._sync_level)
        except OSError:
            with contextlib.suppress(OSError):
                self._file.write(entry.offset, self._encoded(entry))
            raise
        entry.descriptor, entry.checksum = descriptor, changed.checksum

    def _rewrite(self, entry: CatalogEntry, descriptor: RecordingDescriptor, length: int) -> None:
        """Set other texts of an entry in a new file that replaces the old one, so that one of the two is always whole.

        In place, a kill between two pages would leave a part of each.
        """
        start, extra = entry.offset + entry.length, length - entry.length
        before = self._file.read(0, entry.offset)
        after = self._file.read(start, self._end - start)
        self._reserve(self._end + extra)
        changed = self._changed(entry, descriptor, length)
        self._put_in_place(before + self._encoded(changed) + after, self.capacity)
        entry.descriptor, entry.length, entry.checksum = descriptor, length, changed.checksum
        for follower in self._entries[self._entries.index(entry) + 1 :]:
            follower.offset += extra
        self._end += extra
        # Last, as the new file has the name now, whether or not that can be forced to the medium.
        self._storage.sync()

    def _put_in_place(self, content: bytes, capacity: int) -> None:
        file = _put_in_place(self._storage, content, capacity)
        self._file.close()
        self._file = file

    def forget(self, recording_ids: Iterable[int]) -> None:
        """Remove entries, and trim the file to the last one that stays. Their ids are not used again.

        Delete their files first: afterwards nothing shows to which recording they belonged.
        """
        gone = set(recording_ids)
        kept = [entry for entry in self._entries if entry.recording_id not in gone]
        content = self._file.read(0, HEADER_LENGTH)
        content += b"".join(self._file.read(entry.offset, entry.length) for entry in kept)
        self._put_in_place(content, len(content))
        self._entries, self._ids = kept, [entry.recording_id for entry in kept]
        self._end = HEADER_LENGTH
        for entry in kept:
            entry.offset = self._end
            self._end += entry.length
        self.capacity = self._end
        self._storage.sync()

    def set_state(self, recording_id: int, state: int) -> None:
        """Make a recording valid, invalid or deleted."""
        entry = self._entry(recording_id)
        try:
            self._file.write(entry.offset + _STATE_OFFSET, _STATE.pack(state))
            self._file.sync(self._sync_level)
        except OSError:
            with contextlib.suppress(OSError):
                self._file.write(entry.offset + _STATE_OFFSET, _STATE.pack(entry.state))
            raise
        entry.state = state

    def stopped(self, recording_id: int, position: int, now_ms: int) -> None:
        """Note where and when a recording ended."""
        self.update(recording_id, stop_position=position, stop_timestamp=now_ms)

    def extended(
        self, recording_id: int, control_session_id: int, correlation_id: int, session_id: int
    ) -> None:
        """Note that another publisher extends a recording."""
        self.update(
            recording_id,
            control_session_id=control_session_id,
            correlation_id=correlation_id,
            session_id=session_id,
            stop_position=NULL_VALUE,
            stop_timestamp=NULL_VALUE,
        )

    def leave_alone(self, recording_id: int, reason: str) -> None:
        """Skip a recording from now on, until the next start; its entry on disk stays as it is."""
        self._entry(recording_id).defect = reason

    def checksum_of(self, entry: CatalogEntry, checksum: Checksum) -> int:
        """The checksum that an entry should have."""
        return checksum(self._padded(entry))

    def has_wrong_checksum(self, entry: CatalogEntry) -> bool:
        """Whether an entry carries a checksum that is not of its description.

        An archive with another setting may have written it, so both kinds are tried. Aeron's archive leaves the
        checksum of the shorter text when a channel becomes shorter.
        """
        first_page, last_page = (
            offset // _PAGE_LENGTH for offset in (entry.offset, entry.offset + _NUMBERS_END - 1)
        )
        if entry.checksum == 0 or first_page != last_page:
            # None, or a kill between two pages may have left the checksum of an update without its numbers.
            return False
        padded = self._padded(entry)
        shorter = align(ENTRY_HEADER_LENGTH + len(entry.descriptor.encode()), self.alignment)
        texts = {padded, padded[: shorter - ENTRY_HEADER_LENGTH]}
        return all(entry.checksum != checksum(text) for checksum in CHECKSUMS for text in texts)

    def _entry(self, recording_id: int) -> CatalogEntry:
        entry = self.find_entry(recording_id)
        if entry is None:
            raise CatalogError(f"{self._path}: unknown recording_id={recording_id}")
        return entry

    def _changed(self, entry: CatalogEntry, descriptor: RecordingDescriptor, length: int) -> CatalogEntry:
        """The changed entry, without changing the file."""
        changed = CatalogEntry(entry.offset, length, entry.state, 0, descriptor)
        changed.checksum = self._checksum(self._padded(changed)) if self._checksum else 0
        return changed

    @staticmethod
    def _padded(entry: CatalogEntry) -> bytes:
        return entry.descriptor.encode().ljust(entry.length - ENTRY_HEADER_LENGTH, b"\0")

    @classmethod
    def _encoded(cls, entry: CatalogEntry) -> bytes:
        """All bytes of an entry, to be written at once, so that a kill leaves no description without its checksum."""
        padded = cls._padded(entry)
        return _ENTRY_HEADER.pack(len(padded), entry.state, entry.checksum) + padded

    def sync(self) -> None:
        """Force what was written to the medium, also by the archive before this one."""
        self._file.sync(self._sync_level)

    def close(self) -> None:
        """Force everything to the medium and close the file."""
        try:
            if not self._read_only:
                self._file.sync(_FULL_SYNC)
        finally:
            self._file.close()

    def __repr__(self) -> str:
        return f"Catalog({self._path}, {len(self._entries)} recordings)"


def new_catalog(storage: Storage, recordings: Iterable[tuple[int, RecordingDescriptor]]) -> None:
    """Replace the catalog by one with these states and recordings, in the order of their ids.

    Raises:
        OSError: The disk refuses, and the old one stays.
    """
    entries, next_id = [], 0
    for state, descriptor in recordings:
        length = align(ENTRY_HEADER_LENGTH + len(descriptor.encode()), ALIGNMENT)
        entries.append(Catalog._encoded(CatalogEntry(0, length, state, 0, descriptor)))
        next_id = descriptor.recording_id + 1
    content = _HEADER.pack(VERSION, HEADER_LENGTH, next_id, ALIGNMENT) + b"".join(entries)
    _put_in_place(storage, content, len(content)).close()
    storage.sync()


def _put_in_place(storage: Storage, content: bytes, capacity: int) -> StorageFile:
    """Write a new file and rename it to the catalog."""
    storage.delete(_UPDATED_NAME)  # what a refusal left of an earlier one
    file = storage.create(_UPDATED_NAME, capacity)
    try:
        file.write(0, content)
        file.sync(_FULL_SYNC)
        storage.rename(_UPDATED_NAME, CATALOG_NAME)
    except OSError:
        file.close()
        raise
    return file


def _has_bytes_from(file: StorageFile, offset: int) -> bool:
    while data := file.read(offset, _SCAN_LENGTH):
        if data.count(0) != len(data):
            return True
        offset += len(data)
    return False
