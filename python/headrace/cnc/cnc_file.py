"""The command and control file of a driver, read and never mapped.

```text
  0        128                                                                      128 + sum of the lengths
  | header | to-driver ring | to-clients broadcast | counter metadata | counter values | error log | ..page
```

The file belongs to a running driver: nothing here writes to it, and everything read from it is checked first.
It is read and not mapped: to read from a mapped file that another program cut short ends the process; here it is an
error. It works on the directory of any driver of this version, running or dead.
"""

from __future__ import annotations

import fcntl
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from headrace._base.closing import Closing
from headrace.clock import SYSTEM_CLOCK, Clock
from headrace.cnc.counters import METADATA_LENGTH, VALUE_LENGTH, CountersReader
from headrace.cnc.faults import (
    DriverFileMissingError,
    DriverFileRefusedError,
    DriverNotReadyError,
    FileFormatError,
)

CNC_FILE = "cnc.dat"
HEADER_LENGTH = 128
CNC_MAJOR_VERSION = 0
RING_TRAILER_LENGTH = 768
BROADCAST_TRAILER_LENGTH = 128
HEARTBEAT_TRAILER_OFFSET = 640
DEFAULT_PAGE_SIZE = 4096
_HEADER = struct.Struct("<iiiiiiqqqi")
_POLL_INTERVAL_S = 0.016
# A driver of Headrace holds its first byte while its process lives: `crates/buffers/src/liveness.rs`.
_LIVENESS_FILE = "liveness.lock"
# struct flock: type, whence, start, length, process.
_LOCK = struct.Struct("hhqqi4x")
_CLOSED = -1


@dataclass(frozen=True, slots=True)
class CncHeader:
    """The header's fields, in the order in which the file has them. Lengths are in bytes."""

    version: int
    to_driver_length: int
    to_clients_length: int
    counters_metadata_length: int
    counters_values_length: int
    error_log_length: int
    client_liveness_timeout_ns: int
    start_timestamp_ms: int
    pid: int
    page_size: int

    @property
    def version_text(self) -> str:
        """The version as `major.minor.patch`."""
        return semantic_version(self.version)


class CncFile(Closing):
    """A driver's command and control file. Use as a context manager; reading it never blocks the driver.

    Not thread-safe to close while another thread reads.

    Attributes:
        path: The file.
        header: What its header says: versions, lengths, the driver's process.
        counters: The counters in it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except FileNotFoundError:
            advice = "start a driver with `headrace driver`, or name its directory with --dir or AERON_DIR"
            raise DriverFileMissingError(path, advice) from None
        except PermissionError:
            raise DriverFileRefusedError(path) from None
        try:
            status = os.fstat(descriptor)
            if status.st_size < HEADER_LENGTH:
                raise FileFormatError(
                    path, f"length={status.st_size}", f"at least {HEADER_LENGTH} bytes are needed"
                )
            self.header = _checked_header(path, os.pread(descriptor, HEADER_LENGTH, 0), status.st_size)
        except BaseException:
            os.close(descriptor)
            raise
        self._identity = (status.st_dev, status.st_ino)
        self._descriptor = descriptor
        self._find_sections()

    @classmethod
    def open(
        cls, directory: str | os.PathLike[str], *, timeout_s: float = 0.0, clock: Clock = SYSTEM_CLOCK
    ) -> CncFile:
        """Open the file of the driver in `directory`; a path of a file is taken as it is.

        Waits up to `timeout_s`, on `clock`, for a driver that is starting.

        Raises:
            DriverFileMissingError: no driver has used this directory.
            DriverFileRefusedError: another user's driver does not let this one read.
            DriverNotReadyError: its driver has not finished starting.
            FileFormatError: the file is of another version, or damaged.
        """
        given = Path(directory)
        path = given if given.is_file() else given / CNC_FILE
        deadline = clock.deadline(timeout_s)
        while True:
            try:
                return cls(path)
            except (DriverFileMissingError, DriverNotReadyError, FileFormatError):
                # Absent, being written, or still growing: each may mend itself while a driver starts.
                if deadline.is_over:
                    raise
            clock.sleep(_POLL_INTERVAL_S)

    def _find_sections(self) -> None:
        header = self.header
        offset = HEADER_LENGTH
        self._heartbeat_offset = (
            offset + header.to_driver_length - RING_TRAILER_LENGTH + HEARTBEAT_TRAILER_OFFSET
        )
        offset += header.to_driver_length + header.to_clients_length
        metadata = self._section(offset, header.counters_metadata_length)
        offset += header.counters_metadata_length
        values = self._section(offset, header.counters_values_length)
        offset += header.counters_values_length
        self._error_log = self._section(offset, header.error_log_length)
        self.counters = CountersReader(metadata, values)

    def _section(self, offset: int, length: int) -> FileSection:
        return FileSection(self, offset, length)

    def read(self, offset: int, length: int) -> bytes:
        """The bytes that are there now.

        Raises:
            FileFormatError: Another program has cut the file short.
        """
        data = os.pread(self._descriptor, length, offset)
        if len(data) < length:
            found = f"length={os.fstat(self._descriptor).st_size}"
            raise FileFormatError(
                self.path, found, f"bytes {offset} to {offset + length} were there: it was cut short"
            )
        return data

    @property
    def error_log(self) -> FileSection:
        """The error log: what is read of it is read from the file, so an empty one costs little."""
        return self._error_log

    def heartbeat_ms(self) -> int:
        """When the driver last showed life, epoch milliseconds; -1 once it has stopped, 0 before it began."""
        value: int = struct.unpack("<q", self.read(self._heartbeat_offset, 8))[0]
        return value

    def heartbeat_age_ms(self, now_ms: int) -> int | None:
        """Milliseconds since the driver showed life, at a time; `None` if it says that it has stopped."""
        heartbeat_ms = self.heartbeat_ms()
        if heartbeat_ms == -1:
            return None
        return now_ms - heartbeat_ms

    @property
    def has_dead_process(self) -> bool:
        """Whether the process has ended, as the driver's lock file shows; false of drivers without one, as Aeron's."""
        try:
            descriptor = os.open(self.path.parent / _LIVENESS_FILE, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            held = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))
        finally:
            os.close(descriptor)
        return bool(_LOCK.unpack(held)[0] == fcntl.F_UNLCK)

    @property
    def is_replaced(self) -> bool:
        """Whether the path now names another file: the driver was restarted, or its directory removed."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return True
        return (status.st_dev, status.st_ino) != self._identity

    def close(self) -> None:
        """Close the file. Closing twice is allowed."""
        descriptor, self._descriptor = self._descriptor, _CLOSED
        if descriptor != _CLOSED:
            os.close(descriptor)

    def __repr__(self) -> str:
        return f"CncFile({str(self.path)!r}, version={self.header.version_text})"


class FileSection:
    """A part of the file: a slice of it is read when it is asked for."""

    def __init__(self, file: CncFile, offset: int, length: int) -> None:
        self._file = file
        self._range = range(offset, offset + length)

    def __len__(self) -> int:
        return len(self._range)

    def __getitem__(self, part: slice) -> bytes:
        found = self._range[part]
        return self._file.read(found.start, len(found))


def semantic_version(packed: int) -> str:
    """`major.minor.patch` of a version packed into three bytes."""
    return f"{packed >> 16 & 0xFF}.{packed >> 8 & 0xFF}.{packed & 0xFF}"


def _checked_header(path: Path, data: bytes, length: int) -> CncHeader:
    header = CncHeader(*_HEADER.unpack_from(data, 0))
    if header.version == 0:
        # Being written: the version is stored last, so no other field may be trusted yet.
        raise DriverNotReadyError(path)
    if header.version >> 16 != CNC_MAJOR_VERSION:
        rule = f"this reader knows major version {CNC_MAJOR_VERSION}"
        raise FileFormatError(path, f"version={header.version_text}", rule)
    _check_lengths(path, header)
    needed = HEADER_LENGTH + sum(_section_lengths(header))
    if needed > length:
        raise FileFormatError(path, f"length={length}", f"its header describes {needed} bytes")
    return header


def _section_lengths(header: CncHeader) -> tuple[int, ...]:
    return (
        header.to_driver_length,
        header.to_clients_length,
        header.counters_metadata_length,
        header.counters_values_length,
        header.error_log_length,
    )


def _check_lengths(path: Path, header: CncHeader) -> None:
    rings = (
        ("to-driver length", header.to_driver_length, RING_TRAILER_LENGTH),
        ("to-clients length", header.to_clients_length, BROADCAST_TRAILER_LENGTH),
    )
    for name, length, trailer in rings:
        if not _is_power_of_two(length - trailer) or length % 8:
            raise FileFormatError(path, f"{name}={length}", f"it must be a power of two plus {trailer}")
    values = header.counters_values_length
    if values <= 0 or values % VALUE_LENGTH:
        raise FileFormatError(
            path, f"counter values length={values}", f"it must be a multiple of {VALUE_LENGTH}"
        )
    ratio = METADATA_LENGTH // VALUE_LENGTH
    if header.counters_metadata_length != ratio * values:
        found = f"counter metadata length={header.counters_metadata_length}"
        raise FileFormatError(path, found, f"it must be {ratio} times the values' {values}")
    if header.error_log_length <= 0 or header.error_log_length % 8:
        raise FileFormatError(
            path, f"error log length={header.error_log_length}", "it must be a multiple of 8"
        )
    if not _is_power_of_two(header.page_size or DEFAULT_PAGE_SIZE):
        raise FileFormatError(path, f"page size={header.page_size}", "it must be a power of two")


def _is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0
