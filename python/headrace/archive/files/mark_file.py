"""The mark file: says that an archive is running on a directory, and holds its errors.

    0     message header: u16 block length 128 | u16 template 200 | u16 schema 100 | u16 version 2
    8     i32 version, 0 until ready       40  i32 control stream        52  i32 header length 8192
    16    i64 activity timestamp, ms       44  i32 local control stream  56  i32 error buffer length
    24    i64 start timestamp, ms          48  i32 events stream         64  i64 archive id
    32    i64 process id                   136 u32 + text, four times: control channel, local control channel,
                                               events channel, driver directory
    120   i64 process id | i64 start timestamp, ms, of an archive that holds a lock on the file; else zeros
    8192  error buffer

An archive of ours holds a lock on the file, which ends with its process, and says so at 120: once the lock is free, the
archive is dead, whatever the clock was. Others overwrite process id and start timestamp alone, so theirs differ from
those at 120. Of them the activity timestamp tells, which is renewed every second and -1 after a stop in order: if it is
younger than ten seconds, the directory is taken. While an archive of ours starts it renews the timestamp before each
step that may take long.

The reference stores 2^63-1 while it starts. Killed then, it would keep others away for ever; so that value counts by
the time at which the file was last written.
"""

from __future__ import annotations

import dataclasses
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.archive.errors import MarkFileError
from headrace.archive.files.mark_place import linked, placed
from headrace.positions import NULL_VALUE, align, version_text

if TYPE_CHECKING:
    from headrace.archive.files.storage import Storage, StorageFile

__all__ = [
    "MARK_NAME",
    "MarkFields",
    "MarkFile",
    "no_archive_running",
    "read_errors",
    "read_mark_fields",
    "upgrade_mark",
]

MARK_NAME = "archive-mark.dat"
HEADER_LENGTH = 8192
LIVENESS_TIMEOUT_MS = 10_000
VERSION = 3 << 16 | 1 << 8
_MESSAGE_HEADER = struct.pack("<HHHH", 128, 200, 100, 2)
_VERSION = struct.Struct("<i")
_ACTIVITY = struct.Struct("<q")
_VERSION_OFFSET, _ACTIVITY_OFFSET = 8, 16
_OLD_VERSION_OFFSET = 0
_OLD_ERRORS_LENGTH = 1 << 20
_FIELDS = struct.Struct("<i4xqqqiiiii4xq")
_STRING_LENGTH = struct.Struct("<I")
_LOCK_HOLDER = struct.Struct("<qq")
_LOCK_HOLDER_OFFSET, _STRINGS_OFFSET = 120, 136
_STRING_COUNT = 4
_ACTIVATING = (1 << 63) - 1
_PAGE_LENGTH = 4096
_FULL_SYNC = 2


@dataclass(frozen=True, slots=True)
class MarkFields:
    """What a mark file says."""

    version: int
    activity_timestamp: int
    start_timestamp: int
    pid: int
    control_stream_id: int
    local_control_stream_id: int
    events_stream_id: int
    header_length: int
    error_buffer_length: int
    archive_id: int
    control_channel: str
    local_control_channel: str
    events_channel: str
    aeron_directory: str

    def encode(self) -> bytes:
        """Header of the file."""
        numbers = _FIELDS.pack(
            self.version,
            self.activity_timestamp,
            self.start_timestamp,
            self.pid,
            self.control_stream_id,
            self.local_control_stream_id,
            self.events_stream_id,
            self.header_length,
            self.error_buffer_length,
            self.archive_id,
        )
        holder = _LOCK_HOLDER.pack(self.pid, self.start_timestamp)
        parts = [(_MESSAGE_HEADER + numbers).ljust(_LOCK_HOLDER_OFFSET, b"\0"), holder]
        channels = self.control_channel, self.local_control_channel, self.events_channel, self.aeron_directory
        for text in channels:
            data = text.encode("ascii", "replace")
            parts += _STRING_LENGTH.pack(len(data)), data
        header = b"".join(parts)
        if len(header) > HEADER_LENGTH:
            raise MarkFileError(f"the channels make a header of length={len(header)}, above {HEADER_LENGTH}")
        return header


def _is_header(data: bytes) -> bool:
    return len(data) >= _STRINGS_OFFSET and data[2:6] == _MESSAGE_HEADER[2:6]


def _numbers(data: bytes, offset: int = _VERSION_OFFSET) -> MarkFields:
    """The fields without their texts, of which a kill may have left a part."""
    return MarkFields(*_FIELDS.unpack_from(data, offset), *[""] * _STRING_COUNT)


def _is_of_lock_holder(header: bytes, fields: MarkFields) -> bool:
    """Whether the archive that wrote the header held the lock. One that begins to start on it shows that first."""
    holder = _LOCK_HOLDER.unpack_from(header, _LOCK_HOLDER_OFFSET)
    is_foreign_starting = fields.activity_timestamp == _ACTIVATING
    return holder == (fields.pid, fields.start_timestamp) and any(holder) and not is_foreign_starting


def _decode(data: bytes, version_offset: int = _VERSION_OFFSET) -> MarkFields:
    numbers = _FIELDS.unpack_from(data, version_offset)
    offset, texts = version_offset + _STRINGS_OFFSET - _VERSION_OFFSET, []
    for _ in range(_STRING_COUNT):
        length = _STRING_LENGTH.unpack_from(data, offset)[0] if offset + 4 <= len(data) else 0
        offset += _STRING_LENGTH.size
        if length > len(data) - offset:
            raise MarkFileError(f"a string of length={length} at offset={offset} ends outside the header")
        texts.append(data[offset : offset + length].decode("ascii", "replace"))
        offset += length
    return MarkFields(*numbers, *texts)


def mark_storage(storage: Storage) -> Storage:
    """Where the mark file of an archive's directory is: there, or where the link in it says.

    Raises:
        MarkFileError: The link names no directory.
    """
    return linked(storage, MARK_NAME, MarkFileError)


@contextmanager
def no_archive_running(storage: Storage, now_ms: int) -> Iterator[None]:
    """Keeps archives of ours away from a directory while its files are changed.

    Raises:
        MarkFileError: One is running on it.
    """
    where = mark_storage(storage)
    path = where.describe(MARK_NAME)
    try:
        file = where.open(MARK_NAME)
    except FileNotFoundError:
        # Files that were copied here: no archive has run on them.
        yield
        return
    try:
        _lock(file, path)
        header = file.read(0, _STRINGS_OFFSET)
        if _is_header(header):
            _check_inactive(header, where, now_ms, LIVENESS_TIMEOUT_MS)
        elif len(header) == _STRINGS_OFFSET:
            _check_age(_numbers(header, _OLD_VERSION_OFFSET), where, now_ms, LIVENESS_TIMEOUT_MS)
        yield
    finally:
        file.close()


def _lock(file: StorageFile, path: str) -> None:
    if not file.try_lock():
        header = file.read(0, _STRINGS_OFFSET)
        pid = _LOCK_HOLDER.unpack_from(header, _LOCK_HOLDER_OFFSET)[0] if _is_header(header) else 0
        holder = f" by pid={pid}" if pid else ""
        raise MarkFileError(
            f"another archive is running on the directory: {path} is locked{holder}; stop that archive first, or use "
            "another directory, by archive_directory= or --archive-dir"
        )


def _check_inactive(header: bytes, storage: Storage, now_ms: int, liveness_timeout_ms: int) -> None:
    """Refuse a directory on which an archive runs that holds no lock; that of ours was found to be free."""
    fields = _numbers(header)
    if not _is_of_lock_holder(header, fields):
        _check_age(fields, storage, now_ms, liveness_timeout_ms)


def _check_age(fields: MarkFields, storage: Storage, now_ms: int, liveness_timeout_ms: int) -> None:
    """Refuse a directory whose archive has been active a short time ago."""
    active_ms = fields.activity_timestamp
    if active_ms == _ACTIVATING:
        active_ms = storage.modified_ms(MARK_NAME)
    age_ms = now_ms - active_ms
    if active_ms == NULL_VALUE or age_ms >= liveness_timeout_ms:
        return
    path = storage.describe(MARK_NAME)
    if age_ms < -liveness_timeout_ms:
        text = (
            f"{path} says that an archive, pid={fields.pid}, was active {-age_ms} ms later than it is now by the clock "
            "of this machine: the clock was set back, or the file is damaged; make sure that no archive runs on the "
            "directory, then delete the file"
        )
    else:
        text = (
            f"another archive is running on the directory: {path} was active "
            f"{max(age_ms, 0)} ms ago, pid={fields.pid}; one that was killed is taken for dead after "
            f"{liveness_timeout_ms} ms"
        )
    raise MarkFileError(text)


def read_mark_fields(storage: Storage) -> MarkFields:
    """What the mark file of an archive's directory says.

    Raises:
        MarkFileError: The directory has no mark file, or it is damaged.
    """
    return _decode(_read_mark_file(storage, 0, HEADER_LENGTH))


def read_errors(storage: Storage) -> bytes:
    """The error log in the mark file of an archive's directory.

    Raises:
        MarkFileError: The directory has no mark file, or it is damaged.
    """
    fields = read_mark_fields(storage)
    return _read_mark_file(storage, fields.header_length, fields.error_buffer_length)


def _read_mark_file(storage: Storage, offset: int, length: int) -> bytes:
    storage = mark_storage(storage)
    path = storage.describe(MARK_NAME)
    try:
        file = storage.open(MARK_NAME, read_only=True)
    except FileNotFoundError:
        raise MarkFileError(f"there is no mark file: {path}") from None
    try:
        if not _is_header(file.read(0, HEADER_LENGTH)):
            raise MarkFileError(f"not the mark file of an archive: {path}")
        return file.read(max(offset, 0), max(length, 0))
    finally:
        file.close()


def upgrade_mark(storage: Storage) -> None:
    """Give the mark file of a directory of version 0.x to 2.x today's layout and version; its errors are not kept.

    Raises:
        MarkFileError: It is damaged.
        OSError: The disk refuses.
    """
    where = mark_storage(storage)
    try:
        file = where.open(MARK_NAME)
    except FileNotFoundError:
        return
    try:
        data = file.read(0, HEADER_LENGTH)
        if _is_header(data) or len(data) < _STRINGS_OFFSET:
            return
        fields = dataclasses.replace(
            _decode(data, _OLD_VERSION_OFFSET),
            version=VERSION,
            activity_timestamp=NULL_VALUE,
            header_length=HEADER_LENGTH,
            error_buffer_length=_OLD_ERRORS_LENGTH,
            archive_id=NULL_VALUE,
        )
        file.set_length(HEADER_LENGTH + _OLD_ERRORS_LENGTH)
        file.write(0, fields.encode().ljust(HEADER_LENGTH, b"\0"))
        file.sync(_FULL_SYNC)
    finally:
        file.close()


class MarkFile:
    """The mark file of a running archive.

    Taken with the constructor, shown with :meth:`ready`, given up with :meth:`close`.

    Args:
        storage: The archive's files.
        error_buffer_length: Bytes of the error buffer.
        now_ms: The time, in milliseconds since 1970.
        liveness_timeout_ms: How long an archive that holds no lock is taken for alive after its last sign.
        elsewhere: The directory for the mark file; by default that of the archive's files.

    Raises:
        MarkFileError: Another archive is running on the directory, or the file is not ours to use.
    """

    def __init__(
        self,
        storage: Storage,
        error_buffer_length: int,
        now_ms: int,
        liveness_timeout_ms: int = LIVENESS_TIMEOUT_MS,
        elsewhere: str | os.PathLike[str] | None = None,
    ) -> None:
        self._error_buffer_length = error_buffer_length
        length = align(HEADER_LENGTH + error_buffer_length, _PAGE_LENGTH)
        self.old_errors = b""
        self._file = _CLOSED
        try:
            with placed(
                storage, MARK_NAME, elsewhere, MarkFileError, lambda: no_archive_running(storage, now_ms)
            ) as where:
                self._storage = where
                self._path = where.describe(MARK_NAME)
                self._file = self._open(length)
                self._take(now_ms, liveness_timeout_ms, length)
        except BaseException:
            self._file.close()
            raise

    def _open(self, length: int) -> StorageFile:
        try:
            return self._storage.create(MARK_NAME, length)
        except FileExistsError:
            return self._storage.open(MARK_NAME)

    def _take(self, now_ms: int, liveness_timeout_ms: int, length: int) -> None:
        _lock(self._file, self._path)
        header = self._file.read(0, HEADER_LENGTH)
        if _is_header(header):
            self._check_old(header, now_ms, liveness_timeout_ms)
        self.update(now_ms)
        self._file.set_length(length)

    def _check_old(self, header: bytes, now_ms: int, liveness_timeout_ms: int) -> None:
        fields = _numbers(header)
        major = fields.version >> 16
        if fields.version and major != VERSION >> 16:
            raise MarkFileError(
                f"{self._path}: the file has version {version_text(fields.version)}, and this archive reads 3.x: use "
                "an archive of that version, or give this one another directory"
            )
        _check_inactive(header, self._storage, now_ms, liveness_timeout_ms)
        if fields.header_length == HEADER_LENGTH:
            # No longer than the file, whatever a damaged header says, and no shorter than nothing.
            length = min(fields.error_buffer_length, self._file.length() - HEADER_LENGTH)
            self.old_errors = self._file.read(HEADER_LENGTH, max(length, 0))

    def clear_errors(self) -> None:
        """Begin with an empty error buffer; what was in it is saved before."""
        self._file.write(HEADER_LENGTH, bytes(self._file.length() - HEADER_LENGTH))

    def ready(self, fields: MarkFields, now_ms: int) -> None:
        """Write the header and say that the archive runs."""
        self._file.write(0, fields.encode())
        self.update(now_ms)
        self._file.write(_VERSION_OFFSET, _VERSION.pack(VERSION))
        self._file.sync(_FULL_SYNC)

    def update(self, now_ms: int) -> None:
        """Say that the archive still runs."""
        self._file.write(_ACTIVITY_OFFSET, _ACTIVITY.pack(now_ms))

    def write_errors(self, offset: int, data: bytes) -> None:
        """Write into the error buffer."""
        self._file.write(HEADER_LENGTH + offset, data)

    @property
    def error_buffer_length(self) -> int:
        """Bytes of the error buffer."""
        return self._error_buffer_length

    def forget(self) -> None:
        """Close the file and change nothing in it: it is another process' now, and so is the lock."""
        file, self._file = self._file, _CLOSED
        file.close()

    def close(self) -> None:
        """Say that the archive stopped in order. Closing again does nothing."""
        file, self._file = self._file, _CLOSED
        if file is _CLOSED:
            return
        try:
            file.write(_ACTIVITY_OFFSET, _ACTIVITY.pack(NULL_VALUE))
            file.write(_VERSION_OFFSET, _VERSION.pack(VERSION))
            file.sync(_FULL_SYNC)
        finally:
            file.close()


class _ClosedFile:
    """Takes the place of the file once it is closed, so that a late update does no harm."""

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


_CLOSED: StorageFile = _ClosedFile()  # type: ignore[assignment]
