"""The node-state file of a member: the last term in which it voted or stood. Cluster specification 2.7, 6.6.

    0  i32 version, i32 padding
    8  header of the entry 301: u16 block length 24 | u16 template 301 | u16 schema 112 | u16 version 10
       | i32 frame length 40 | i32 padding
    24 i64 candidate term id | i64 timestamp, ms | i64 log position
    48 header of the footer: the same with block length 0, template 304 and frame length 16

Entries begin at multiples of 8, and an entry of another template may stand between: files of older members have one.
A member that forgets this could vote twice in one term, so the term is written last and the file forced before a vote.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._base.closing import Closing
from headrace.cluster.errors import ClusterFileError
from headrace.positions import NULL_VALUE, align

if TYPE_CHECKING:
    from headrace._agent.storage import Storage

__all__ = ["NODE_STATE_NAME", "CandidateTerm", "NodeStateFile"]

NODE_STATE_NAME = "node-state.dat"
_LENGTH = 1 << 20
_LENGTH_MAX = 1 << 26
_SYNC_DATA, _SYNC_ALL = 1, 2
_VERSION = 3 << 8
_SCHEMA, _SCHEMA_VERSION = 112, 10
_CANDIDATE_TERM, _FOOTER = 301, 304
_FILE_HEADER = struct.Struct("<ii")
_HEADER = struct.Struct("<HHHHii")
_TERM = struct.Struct("<qqq")
_LONG = struct.Struct("<q")
_PAIR = struct.Struct("<qq")


@dataclass(frozen=True, slots=True)
class CandidateTerm:
    """The last term in which a member voted or stood; -1 when it never did.

    Attributes:
        term_id: The term.
        timestamp_ms: When, in milliseconds since 1970.
        log_position: How far its log went.
    """

    term_id: int = NULL_VALUE
    timestamp_ms: int = NULL_VALUE
    log_position: int = NULL_VALUE


class NodeStateFile(Closing):
    """The node-state file. Used by one thread at a time.

    A context manager that closes the file.

    Args:
        storage: The cluster's directory.
        sync_level: As for :class:`headrace.cluster.files.recording_log.RecordingLog`.
        read_only: Change nothing; the file must exist.
        candidate_term_id: What a new file says of the last term in which the member voted or stood: what an older
            member noted in its mark file. With -1 it never did.

    Raises:
        ClusterFileError: It is no node-state file, or damaged.
        OSError: It cannot be opened or written.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        sync_level: int = 0,
        read_only: bool = False,
        candidate_term_id: int = NULL_VALUE,
    ) -> None:
        self._sync_level = sync_level
        self.path = storage.describe(NODE_STATE_NAME)
        self._file = (
            storage.open(NODE_STATE_NAME, read_only=True)
            if read_only
            else storage.create(NODE_STATE_NAME, storage.length(NODE_STATE_NAME) or _LENGTH, may_exist=True)
        )
        try:
            if not read_only and self._is_unmade(candidate_term_id):
                self._make(candidate_term_id)
                storage.sync()
            self._offset, self.candidate_term = self._read()
        except BaseException:
            self._file.close()
            raise

    def _is_unmade(self, candidate_term_id: int) -> bool:
        """Whether the file is new, or a kill left it so: it has no version, and no vote was ever noted in it."""
        data = self._file.read(0, _FILE_HEADER.size + _HEADER.size + _LONG.size)
        return not any(data[: _FILE_HEADER.size]) and data[-_LONG.size :] in (
            bytes(_LONG.size),
            _LONG.pack(NULL_VALUE),
            _LONG.pack(candidate_term_id),
        )

    def _make(self, candidate_term_id: int) -> None:
        """The version comes last, when all else is on the medium: a file that a kill left unfinished has none."""
        term_offset = _FILE_HEADER.size
        footer_offset = term_offset + _HEADER.size + _TERM.size
        footer = _HEADER.pack(0, _FOOTER, _SCHEMA, _SCHEMA_VERSION, _HEADER.size, 0)
        entry = _HEADER.pack(
            _TERM.size, _CANDIDATE_TERM, _SCHEMA, _SCHEMA_VERSION, _HEADER.size + _TERM.size, 0
        )
        self._file.write(footer_offset, footer)
        self._file.write(term_offset, entry + _TERM.pack(candidate_term_id, NULL_VALUE, NULL_VALUE))
        self._file.sync(_SYNC_ALL)
        self._file.write(0, _FILE_HEADER.pack(_VERSION, 0))
        self._file.sync(_SYNC_ALL)

    def _read(self) -> tuple[int, CandidateTerm]:
        length = self._file.length()
        if length > _LENGTH_MAX:
            raise ClusterFileError(
                f"{self.path}: length={length} is above {_LENGTH_MAX}: it is not a node-state file"
            )
        data = self._file.read(0, length)
        version = _FILE_HEADER.unpack_from(data)[0] if len(data) >= _FILE_HEADER.size else 0
        if version == 0 or version >> 16:
            raise ClusterFileError(f"{self.path}: version={version}, where {_VERSION} (0.3.0) is expected")
        offset, found = _FILE_HEADER.size, None
        while offset + _HEADER.size <= len(data):
            block_length, template, schema, _, frame_length, _ = _HEADER.unpack_from(data, offset)
            body = offset + _HEADER.size
            if schema != _SCHEMA or frame_length < _HEADER.size or offset + frame_length > len(data):
                break
            if template == _FOOTER and found is not None:
                return found
            if template == _CANDIDATE_TERM and block_length >= _TERM.size:
                found = body, CandidateTerm(*_TERM.unpack_from(data, body))
            offset = align(offset + frame_length, 8)
        raise ClusterFileError(
            f"{self.path}: no whole entry of the candidate term and footer before offset={offset}"
        )

    def vote(self, term: CandidateTerm) -> None:
        """Note that the member votes or stands in a term; it is on the medium on return.

        Raises:
            ClusterFileError: The term is not later than the one before.
        """
        if term.term_id <= self.candidate_term.term_id:
            raise ClusterFileError(
                f"candidate_term_id={term.term_id} is not above {self.candidate_term.term_id}: a member votes once "
                "in a term"
            )
        # A kill between the two leaves the term before with another time and position, which do no harm.
        self._file.write(self._offset + _LONG.size, _PAIR.pack(term.timestamp_ms, term.log_position))
        self._file.write(self._offset, _LONG.pack(term.term_id))
        self._file.sync(max(self._sync_level, _SYNC_DATA))
        self.candidate_term = term

    def close(self) -> None:
        """Close the file. Closing again does nothing."""
        self._file.close()
