"""The records of `recording.log`: bytes to values and back. Cluster specification 6.2.

0  i64 recording id                     40 i32 service id: of a term and of the consensus module -1
8  i64 leadership term id               44 i32 type; its highest bit says that the entry is invalid
16 i64 log position where the term      48 type 2 only: u32 + archive endpoint
       begins
24 i64 log position: of a term where    A record is 64 bytes long, with an endpoint the next multiple that holds it.
       it ends, or -1; of a snapshot    What follows the last field means nothing.
32 i64 timestamp in units of cluster time
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from headrace._base.named_number import NamedNumber
from headrace.cluster.errors import ClusterFileError
from headrace.positions import NULL_VALUE, align

__all__ = ["ENDPOINT_LENGTH_MAX", "LOG_POSITION", "TYPE", "Entry", "EntryType", "read_entry"]

_RECORD = struct.Struct("<qqqqqii")
_LENGTH = struct.Struct("<I")
_ALIGNMENT = 64
_RECORD_MAX = 4096
# Endpoints are ASCII. What is not, in a damaged file, is kept byte for byte.
_ENDPOINT_CODE = "latin-1"
_INVALID = 1 << 31
_REMOVED = 0xFFFF_FFFF
LOG_POSITION = 24
"""Offset of the log position in a record, which changes in place."""
TYPE = 44
"""Offset of the type in a record, which changes in place."""
ENDPOINT_LENGTH_MAX = _RECORD_MAX - _RECORD.size - _LENGTH.size
"""Longest archive endpoint that a record holds, in bytes."""
assert (_RECORD.size, ENDPOINT_LENGTH_MAX) == (48, 4044), "the specification's layout"


class EntryType(NamedNumber):
    """What an entry tells of."""

    TERM = 0
    SNAPSHOT = 1
    STANDBY_SNAPSHOT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A leadership term, or a snapshot, and where it is recorded.

    Attributes:
        recording_id: Of the log, or of the snapshot.
        leadership_term_id: The term, or the term of the snapshot.
        term_base_log_position: Where that term begins.
        log_position: Where the term ends, -1 until that is known; where the snapshot was taken.
        timestamp: When, in units of cluster time.
        service_id: Of the service whose snapshot it is; -1 for the consensus module, and for terms.
        type: What the entry tells of.
        is_valid: False for what a tool, or an election, has taken back.
        archive_endpoint: Where the archive of a standby's snapshot is; else ``None``.
        index: Which record of the file it is, removed ones counted.
        offset: Where the record begins in the file.
    """

    recording_id: int
    leadership_term_id: int
    term_base_log_position: int
    log_position: int
    timestamp: int
    service_id: int = NULL_VALUE
    type: EntryType
    is_valid: bool = True
    archive_endpoint: str | None = None
    index: int = NULL_VALUE
    offset: int = NULL_VALUE

    @property
    def is_snapshot(self) -> bool:
        """Whether it is a valid snapshot of this member."""
        return self.is_valid and self.type is EntryType.SNAPSHOT

    @property
    def is_term(self) -> bool:
        """Whether it is a valid leadership term."""
        return self.is_valid and self.type is EntryType.TERM

    @property
    def length(self) -> int:
        """Bytes of its record."""
        return _record_length(self.archive_endpoint)

    @property
    def order(self) -> tuple[int, ...]:
        """Entries stand in this order in memory: terms as in the file, snapshots by position, the module's last."""
        key = (self.leadership_term_id, self.term_base_log_position, _RANKS[self.type])
        if self.type is EntryType.TERM:
            return *key, self.index
        return *key, self.log_position, -self.service_id, self.index

    def encode(self) -> bytes:
        """The record."""
        values = (
            self.recording_id,
            self.leadership_term_id,
            self.term_base_log_position,
            self.log_position,
            self.timestamp,
            self.service_id,
            self.encoded_type,
        )
        data = _RECORD.pack(*values)
        if self.archive_endpoint is not None:
            endpoint = self.archive_endpoint.encode(_ENDPOINT_CODE)
            data += _LENGTH.pack(len(endpoint)) + endpoint
        return data.ljust(self.length, b"\0")

    @property
    def encoded_type(self) -> int:
        """The type, with its highest bit set for an invalid entry, as a signed number."""
        return self.type if self.is_valid else self.type - _INVALID


# Terms before what was taken in them, snapshots of this member last.
_RANKS = {EntryType.TERM: 0, EntryType.STANDBY_SNAPSHOT: 1, EntryType.SNAPSHOT: 2}


def _record_length(endpoint: str | None) -> int:
    if endpoint is None:
        return _ALIGNMENT
    return align(_RECORD.size + _LENGTH.size + len(endpoint), _ALIGNMENT)


def read_entry(data: bytes, offset: int, index: int) -> tuple[Entry | None, int] | None:
    """The entry of the record at an offset, and the record's length; ``None`` for the entry if it was removed.

    ``None`` for both where the bytes end before the record does, or where only zeros follow: a power cut may keep the
    new length of a file and lose what was written there. No entry is all zeros, as the service id of a term is -1.

    Raises:
        ClusterFileError: The bytes are no record.
    """
    if offset + _ALIGNMENT > len(data):
        return None
    *values, kind = _RECORD.unpack_from(data, offset)
    kind &= _REMOVED
    if kind == _REMOVED:
        return None, _ALIGNMENT
    where = f"record {index} at offset={offset}"
    if not any(data[offset : offset + _RECORD.size]):
        if data.count(0, offset) < len(data) - offset:
            raise ClusterFileError(f"{where} is empty, and others follow")
        return None
    number = kind & ~_INVALID
    if number not in EntryType._value2member_map_:
        raise ClusterFileError(f"{where} has type={number}, which is not 0, 1 or 2")
    endpoint = None
    if number == EntryType.STANDBY_SNAPSHOT:
        (length,) = _LENGTH.unpack_from(data, offset + _RECORD.size)
        if length > ENDPOINT_LENGTH_MAX:
            raise ClusterFileError(f"{where} has an endpoint of length={length}, above {ENDPOINT_LENGTH_MAX}")
        begin = offset + _RECORD.size + _LENGTH.size
        if offset + align(begin + length - offset, _ALIGNMENT) > len(data):
            return None
        endpoint = data[begin : begin + length].decode(_ENDPOINT_CODE)
    names = (
        "recording_id",
        "leadership_term_id",
        "term_base_log_position",
        "log_position",
        "timestamp",
        "service_id",
    )
    entry = Entry(
        **dict(zip(names, values, strict=True)),
        type=EntryType(number),
        is_valid=not kind & _INVALID,
        archive_endpoint=endpoint,
        index=index,
        offset=offset,
    )
    return entry, entry.length
