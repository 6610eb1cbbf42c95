"""The mark file of an archive: shows that one is running on a directory, and holds its errors.

    8     i32 version, 0 until ready       40  i32 control stream        52  i32 header length 8192
    16    i64 activity timestamp, ms       44  i32 local control stream  56  i32 error buffer length
    24    i64 start timestamp, ms          48  i32 events stream         64  i64 archive id
    32    i64 process id                   136 texts: control channel, local control channel, events channel,
                                               driver directory

:mod:`headrace._agent.mark_file` describes the parts that all mark files share. While an archive of ours starts, it
renews the activity timestamp before each step that may take long. The reference stores 2^63-1 there while it starts. If
it is killed then, that value would keep others away forever; so the time at which the file was last written counts
instead.
"""

from __future__ import annotations

import dataclasses
import os
import struct
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._agent.mark_file import HEADER_LENGTH, LIVENESS_TIMEOUT_MS, TEXTS_OFFSET, MarkFile, MarkLayout
from headrace._agent.mark_link import mark_directory
from headrace.archive.errors import MarkFileError
from headrace.positions import NULL_VALUE, version_text

if TYPE_CHECKING:
    from headrace._agent.storage import Storage

__all__ = [
    "LAYOUT",
    "MARK_NAME",
    "ArchiveMarkFile",
    "MarkFields",
    "no_archive_running",
    "read_errors",
    "read_mark_fields",
    "upgrade_mark",
]

MARK_NAME = "archive-mark.dat"
VERSION = 3 << 16 | 1 << 8
_SCHEMA = 100
_NUMBERS = struct.Struct("<i4xqqqiiiii4xq")
_OLD_NUMBERS_OFFSET = 0
_OLD_ERRORS_LENGTH = 1 << 20
_ACTIVATING = (1 << 63) - 1
_FULL_SYNC = 2


@dataclass(frozen=True, slots=True)
class MarkFields:
    """The fields of a mark file."""

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


class _Layout(MarkLayout[MarkFields]):
    def locked_text(self, path: str, holder: MarkFields | None) -> str:
        by = "" if holder is None else f" by pid={holder.pid}"
        return (
            f"another archive is running on the directory: {path} is locked{by}; stop that archive first, or use "
            "another directory, by archive_directory= or --archive-dir"
        )

    def check_idle(self, header: bytes, where: Storage, name: str, now_ms: int, timeout_ms: int) -> None:
        is_today = self.is_header(header)
        if not is_today and len(header) < TEXTS_OFFSET:
            return
        fields = self.numbers(header) if is_today else self.numbers(header, _OLD_NUMBERS_OFFSET)
        active_ms = fields.activity_timestamp
        if active_ms == _ACTIVATING:
            # An archive of the reference, which writes that before it overwrites what an archive of ours left.
            active_ms = where.modified_ms(name)
        elif is_today and self.is_of_lock_holder(header, fields):
            return
        age_ms = now_ms - active_ms
        if active_ms == NULL_VALUE or age_ms >= timeout_ms:
            return
        path = where.describe(name)
        if age_ms < -timeout_ms:
            raise self.error(
                f"{path} says that an archive, pid={fields.pid}, was active {-age_ms} ms in the future, by the clock "
                "of this machine: the clock was set back, or the file is damaged; make sure that no archive runs on "
                "the directory, then delete the file"
            )
        raise self.error(
            f"another archive is running on the directory: {path} was active {max(age_ms, 0)} ms ago, "
            f"pid={fields.pid}; a killed archive counts as dead after {timeout_ms} ms"
        )


LAYOUT = _Layout(MarkFields, _NUMBERS, _SCHEMA, MarkFileError)


def no_archive_running(storage: Storage, now_ms: int) -> AbstractContextManager[None]:
    """Keep archives of ours away from a directory while its files are changed.

    Raises:
        MarkFileError: One is running on it.
    """
    return LAYOUT.idle(storage, MARK_NAME, now_ms)


def read_mark_fields(storage: Storage) -> MarkFields:
    """The fields of the mark file of an archive's directory.

    Raises:
        MarkFileError: The directory has no mark file, or it is damaged.
    """
    fields = LAYOUT.read(storage, MARK_NAME)
    if fields is None:
        path = mark_directory(storage, MARK_NAME, MarkFileError).describe(MARK_NAME)
        raise MarkFileError(f"there is no mark file: {path}")
    return fields


def read_errors(storage: Storage) -> bytes:
    """The error log in the mark file of an archive's directory.

    Raises:
        MarkFileError: The directory has no mark file, or it is damaged.
    """
    return LAYOUT.read_errors(storage, MARK_NAME, read_mark_fields(storage))


def upgrade_mark(storage: Storage) -> None:
    """Convert the mark file of a directory of version 0.x to 2.x to today's layout; its errors are not kept.

    Raises:
        MarkFileError: It is damaged.
        OSError: The disk refuses.
    """
    where = mark_directory(storage, MARK_NAME, MarkFileError)
    try:
        file = where.open(MARK_NAME)
    except FileNotFoundError:
        return
    with closing(file):
        data = file.read(0, HEADER_LENGTH)
        if LAYOUT.is_header(data) or len(data) < TEXTS_OFFSET:
            return
        fields = dataclasses.replace(
            LAYOUT.decode(data, where.describe(MARK_NAME), _OLD_NUMBERS_OFFSET),
            version=VERSION,
            activity_timestamp=NULL_VALUE,
            header_length=HEADER_LENGTH,
            error_buffer_length=_OLD_ERRORS_LENGTH,
            archive_id=NULL_VALUE,
        )
        file.set_length(HEADER_LENGTH + _OLD_ERRORS_LENGTH)
        file.write(0, LAYOUT.encode(fields).ljust(HEADER_LENGTH, b"\0"))
        file.sync(_FULL_SYNC)


class ArchiveMarkFile(MarkFile[MarkFields]):
    """The mark file of a running archive.

    Taken with the constructor; once the archive has its fields it writes them, then says that it is ready.

    Args:
        storage: The archive's files.
        error_buffer_length: Bytes of the error buffer.
        now_ms: The time, in milliseconds since 1970.
        liveness_timeout_ms: How long an archive that holds no lock is taken for alive after its last sign.
        elsewhere: The directory for the mark file; by default that of the archive's files.

    Raises:
        MarkFileError: Another archive is running on the directory, or the file is not ours to use.
    """

    _version = VERSION

    def __init__(
        self,
        storage: Storage,
        error_buffer_length: int,
        now_ms: int,
        liveness_timeout_ms: int = LIVENESS_TIMEOUT_MS,
        elsewhere: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(
            LAYOUT,
            storage,
            MARK_NAME,
            error_buffer_length=error_buffer_length,
            now_ms=now_ms,
            liveness_timeout_ms=liveness_timeout_ms,
            elsewhere=elsewhere,
        )

    def _take_over(self, header: bytes, old: MarkFields) -> None:
        if old.version and old.version >> 16 != VERSION >> 16:
            raise MarkFileError(
                f"{self.path}: the file has version {version_text(old.version)}, and this archive reads 3.x: use "
                "an archive of that version, or give this one another directory"
            )

    def write_fields(self, fields: MarkFields) -> None:
        """Write the header."""
        self._file.write(0, LAYOUT.encode(fields))

    def close(self) -> None:
        """Say that the archive stopped in order, also one that was never ready. Closing again does nothing."""
        try:
            self._write_version(VERSION)
        finally:
            super().close()
