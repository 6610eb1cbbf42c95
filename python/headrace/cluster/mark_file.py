"""The mark files of a cluster's directory: what runs on it, how to reach it, its errors. Specification 2.7, 6.6.

0   message header: u16 block length | u16 template 200 | u16 schema 110 | u16 version
8   i32 version, 0 until ready    48 i32 archive stream             64 i32 member id
12  i32 component type            52 i32 service stream             68 i32 service id
16  i64 activity timestamp, ms    56 i32 consensus module stream    72 i32 header length
24  i64 start timestamp, ms       60 i32 ingress stream             76 i32 error buffer length | i32 cluster id
32  i64 process id                136 u32 + text: driver directory, control channel, ingress channel, service name,
40  i64 candidate term id, legacy     authenticator, directory of the services
104 i64 recording of the log | i64 when the archive began it, ms; zeros while that is not known
120 i64 process id | i64 start timestamp, ms, of one of ours that holds a lock on the file; else zeros
8192 error buffer

What stands at 104 and 120 is ours alone, in a part of the header that no field of the specification uses.

The activity timestamp is 0 until the component is ready, and so is the version: its counters are there before both.
One of ours holds a lock on the file, which ends with its process, and says so at 120, as an archive does in its mark
file: once the lock is free, it is dead, whatever the clock was. Of others the activity timestamp tells, which is
renewed every second and -1 after a stop in order: if it is younger than ten seconds, the file is taken.
"""

from __future__ import annotations

import dataclasses
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._named_number import NamedNumber
from headrace.archive.files.mark_place import linked, placed
from headrace.cluster.errors import ClusterFileError
from headrace.positions import NULL_VALUE, align, version_text

if TYPE_CHECKING:
    from headrace.archive.files.storage import Storage, StorageFile

__all__ = [
    "LIVENESS_TIMEOUT_MS",
    "MARK_NAME",
    "UNKNOWN_LOG",
    "ClusterComponentType",
    "ClusterMarkFile",
    "LogIdentity",
    "MarkFields",
    "marked_directory",
    "no_component_running",
    "read_mark_fields",
    "service_mark_name",
]

MARK_NAME = "cluster-mark.dat"
LIVENESS_TIMEOUT_MS = 10_000
_HEADER = struct.Struct("<HHHH")
_FIELDS = struct.Struct("<iiqqqqiiiiiiiii")
_LENGTH = struct.Struct("<I")
_TEMPLATE, _SCHEMA = 200, 110
_MESSAGE_HEADER = _HEADER.pack(128, _TEMPLATE, _SCHEMA, 2)
_VERSION, _FAILED = 3 << 8, -1
_FIELDS_OFFSET, _TEXTS_OFFSET, _HEADER_LENGTH = 8, 136, 8192
_NUMBER, _LONG = struct.Struct("<i"), struct.Struct("<q")
_VERSION_OFFSET, _ACTIVITY_OFFSET, _CANDIDATE_OFFSET, _MEMBER_OFFSET = 8, 16, 40, 64
_LOCK_HOLDER = struct.Struct("<qq")
_LOCK_HOLDER_OFFSET = 120
_LOG = struct.Struct("<qq")
_LOG_OFFSET = 104
_PAGE_LENGTH = 4096
_FULL_SYNC = 2
# Of the fields, before the texts.
_NUMBERS = 15


class ClusterComponentType(NamedNumber):
    """What runs on the directory."""

    UNKNOWN = 0
    CONSENSUS_MODULE = 1
    CONTAINER = 2
    BACKUP = 3
    STANDBY = 4


# What an old file may be of, besides the component itself.
_MAY_BECOME: dict[int, tuple[int, ...]] = {
    ClusterComponentType.CONSENSUS_MODULE: (ClusterComponentType.UNKNOWN, ClusterComponentType.BACKUP),
    ClusterComponentType.CONTAINER: (ClusterComponentType.UNKNOWN,),
}


@dataclass(frozen=True, slots=True)
class LogIdentity:
    """Which recording of which archive is the log: archives number theirs alike, and begin none at the same time.

    Attributes:
        recording_id: The recording.
        start_timestamp: When the archive began it, in milliseconds since 1970; going on with it changes nothing.
    """

    recording_id: int
    start_timestamp: int


UNKNOWN_LOG = LogIdentity(0, 0)


@dataclass(frozen=True, slots=True)
class MarkFields:
    """What a mark file says. Times are milliseconds since 1970."""

    version: int
    component_type: int
    activity_timestamp: int
    start_timestamp: int
    pid: int
    candidate_term_id: int
    archive_stream_id: int
    service_stream_id: int
    consensus_module_stream_id: int
    ingress_stream_id: int
    member_id: int
    service_id: int
    header_length: int
    error_buffer_length: int
    cluster_id: int
    aeron_directory: str
    control_channel: str
    ingress_channel: str
    service_name: str
    authenticator: str
    services_cluster_directory: str

    @property
    def component(self) -> str:
        """What runs on the directory, as a word."""
        is_known = self.component_type in ClusterComponentType._value2member_map_
        return ClusterComponentType(self.component_type).name if is_known else str(self.component_type)

    def encode(self) -> bytes:
        """The header of the file of a component that holds the lock on it.

        Raises:
            ClusterFileError: The texts are too long for it.
        """
        values = [getattr(self, field.name) for field in dataclasses.fields(self)]
        numbers = _FIELDS.pack(*values[:_NUMBERS])
        holder = _LOCK_HOLDER.pack(self.pid, self.start_timestamp)
        parts = [(_MESSAGE_HEADER + numbers).ljust(_LOCK_HOLDER_OFFSET, b"\0"), holder]
        for text in values[_NUMBERS:]:
            data = text.encode("ascii", "replace")
            parts += _LENGTH.pack(len(data)), data
        header = b"".join(parts)
        if len(header) > _HEADER_LENGTH:
            raise ClusterFileError(
                f"the channels and names make a header of length={len(header)} in the mark file, above "
                f"{_HEADER_LENGTH}: shorten them"
            )
        return header


def read_mark_fields(storage: Storage, name: str = MARK_NAME) -> MarkFields | None:
    """What a mark file says; ``None`` without one. A link names the directory that it is in.

    Raises:
        ClusterFileError: It is no mark file of a cluster, or the link names no directory.
        OSError: It cannot be read.
    """
    where = marked_directory(storage, name)
    try:
        file = where.open(name, read_only=True)
    except FileNotFoundError:
        return None
    try:
        data = file.read(0, _HEADER_LENGTH)
    finally:
        file.close()
    path = where.describe(name)
    if len(data) < _TEXTS_OFFSET:
        raise ClusterFileError(
            f"{path}: length={len(data)} is below the {_TEXTS_OFFSET} bytes of a mark file"
        )
    template, schema = _HEADER.unpack_from(data)[1:3]
    if (template, schema) != (_TEMPLATE, _SCHEMA):
        raise ClusterFileError(
            f"{path}: template={template} schema={schema} where {_TEMPLATE} and {_SCHEMA} are expected"
        )
    _check_version(_numbers(data), path)
    texts, offset = [], _TEXTS_OFFSET
    for _ in range(6):
        length = _LENGTH.unpack_from(data, offset)[0] if offset + _LENGTH.size <= len(data) else 0
        begin = offset + _LENGTH.size
        if begin + length > len(data):
            raise ClusterFileError(
                f"{path}: a text of length={length} at offset={offset} ends outside the header"
            )
        texts.append(data[begin : begin + length].decode("ascii", "replace"))
        offset = begin + length
    return MarkFields(*_FIELDS.unpack_from(data, _FIELDS_OFFSET), *texts)


@contextmanager
def no_component_running(storage: Storage, name: str, now_ms: int) -> Iterator[None]:
    """Keeps components of ours away from a directory while its files are changed, or the mark file is moved.

    Args:
        storage: The directory; a link in it is followed.
        name: The mark file of the component.
        now_ms: The time, in milliseconds since 1970.

    Raises:
        ClusterFileError: One runs on it, or one that holds no lock did less than ten seconds ago.
        OSError: The mark file cannot be read.
    """
    where = marked_directory(storage, name)
    try:
        file = where.open(name, read_only=True)
    except FileNotFoundError:
        # Files that were copied here: nothing has run on them.
        yield
        return
    try:
        path = where.describe(name)
        _lock(file, path)
        header = file.read(0, _TEXTS_OFFSET)
        if _is_header(header):
            _check_version(_numbers(header), path)
            _check_age(header, path, now_ms, LIVENESS_TIMEOUT_MS)
        yield
    finally:
        file.close()


def marked_directory(storage: Storage, name: str = MARK_NAME) -> Storage:
    """The directory with the mark file: that of the cluster, or the one that a link names.

    Raises:
        ClusterFileError: The link names no directory.
        OSError: The link cannot be read.
    """
    return linked(storage, name, ClusterFileError)


def service_mark_name(service_id: int) -> str:
    """The name of the mark file of a service's container."""
    return f"cluster-mark-service-{service_id}.dat"


class ClusterMarkFile:
    """The mark file of a component that runs: taken with the constructor, shown with :meth:`ready`.

    Args:
        storage: The directory of the cluster's files.
        name: The file: :data:`MARK_NAME`, or :func:`service_mark_name`.
        fields: What it says; of times and the version it knows better.
        now_ms: The time, in milliseconds since 1970.
        liveness_timeout_ms: How long a component that holds no lock is taken for alive after its last sign.
        elsewhere: The directory of mark files, to which a link then leads; by default that of the cluster's files.

    Raises:
        ClusterFileError: Another component runs on the directory, or the file is of another version or component.
        OSError: The disk refuses something.
    """

    def __init__(
        self,
        storage: Storage,
        name: str,
        fields: MarkFields,
        now_ms: int,
        liveness_timeout_ms: int = LIVENESS_TIMEOUT_MS,
        elsewhere: str | os.PathLike[str] | None = None,
    ) -> None:
        self.old_errors = b""
        """The error log of the component before this one, to be saved before :meth:`clear_errors`."""
        self.candidate_term_id = fields.candidate_term_id
        """Legacy: of the component before this one, if the fields have none."""
        self.log_identity = UNKNOWN_LOG
        """Which recording the component before this one had as its log."""
        self.warnings: list[str] = []
        """What is to be said of the component before this one."""
        length = align(_HEADER_LENGTH + fields.error_buffer_length, _PAGE_LENGTH)
        begun = dataclasses.replace(
            fields, version=0, activity_timestamp=0, start_timestamp=now_ms, header_length=_HEADER_LENGTH
        )
        header = bytearray(begun.encode())
        self._file = _CLOSED
        try:
            with placed(
                storage,
                name,
                elsewhere,
                ClusterFileError,
                lambda: no_component_running(storage, name, now_ms),
            ) as where:
                self.path = where.describe(name)
                self._file = _opened(where, name, length)
                _lock(self._file, self.path)
                self._take_over(fields, now_ms, liveness_timeout_ms)
                self._file.set_length(length)
                _LONG.pack_into(header, _CANDIDATE_OFFSET, self.candidate_term_id)
                _LOG.pack_into(header, _LOG_OFFSET, *dataclasses.astuple(self.log_identity))
                self._file.write(0, bytes(header))
        except BaseException:
            self._file.close()
            raise

    def _take_over(self, fields: MarkFields, now_ms: int, liveness_timeout_ms: int) -> None:
        data = self._file.read(0, _TEXTS_OFFSET)
        if not _is_header(data):
            return
        old = _numbers(data)
        _check_version(old, self.path)
        allowed = (fields.component_type, *_MAY_BECOME.get(fields.component_type, ()))
        if old.component_type not in allowed:
            raise ClusterFileError(
                f"{self.path}: the file is of a {old.component}, and not of a {fields.component}: use another "
                "directory"
            )
        _check_age(data, self.path, now_ms, liveness_timeout_ms)
        if self.candidate_term_id == NULL_VALUE:
            self.candidate_term_id = old.candidate_term_id
        self._look_at_owner(old, fields)
        self.log_identity = LogIdentity(*_LOG.unpack_from(data, _LOG_OFFSET))
        if old.header_length == _HEADER_LENGTH:
            # No longer than the file, whatever a damaged header says, and no shorter than nothing.
            length = min(old.error_buffer_length, self._file.length() - _HEADER_LENGTH)
            self.old_errors = self._file.read(_HEADER_LENGTH, max(length, 0))

    def _look_at_owner(self, old: MarkFields, fields: MarkFields) -> None:
        """A directory may become another member's, as that of a backup does; one that is named by mistake is told."""
        of_old = f"cluster_id={old.cluster_id} member_id={old.member_id}"
        of_new = f"cluster_id={fields.cluster_id} member_id={fields.member_id}"
        module = ClusterComponentType.CONSENSUS_MODULE
        if old.component_type == module and fields.component_type == module and of_old != of_new:
            self.warnings.append(
                f"the directory was of {of_old}, and goes on as of {of_new}, with the state that it has: if that is a "
                "mistake, stop this member, and start each on its own directory"
            )

    def clear_errors(self) -> None:
        """Begin with an empty error buffer."""
        self._file.write(_HEADER_LENGTH, bytes(self._file.length() - _HEADER_LENGTH))

    def ready(self, now_ms: int) -> None:
        """Say that the component runs."""
        self.update(now_ms)
        self._file.write(_VERSION_OFFSET, _NUMBER.pack(_VERSION))
        self._file.sync(_FULL_SYNC)

    def failed(self) -> None:
        """Say that the component could not start."""
        self._file.write(_VERSION_OFFSET, _NUMBER.pack(_FAILED))

    def update(self, now_ms: int) -> None:
        """Say that it still runs."""
        self._file.write(_ACTIVITY_OFFSET, _LONG.pack(now_ms))

    def set_member_id(self, member_id: int) -> None:
        """Say to which member it belongs, once that is known."""
        self._file.write(_MEMBER_OFFSET, _NUMBER.pack(member_id))

    def set_log_identity(self, log: LogIdentity) -> None:
        """Say which recording is the log, so that another archive's is not taken for it."""
        self.log_identity = log
        self._file.write(_LOG_OFFSET, _LOG.pack(*dataclasses.astuple(log)))
        self._file.sync(_FULL_SYNC)

    def write_errors(self, offset: int, data: bytes) -> None:
        """Write into the error buffer."""
        self._file.write(_HEADER_LENGTH + offset, data)

    def forget(self) -> None:
        """Close the file and change nothing in it, as a kill would."""
        file, self._file = self._file, _CLOSED
        file.close()

    def close(self) -> None:
        """Say that the component stopped in order. Closing again does nothing."""
        file, self._file = self._file, _CLOSED
        if file is _CLOSED:
            return
        try:
            file.write(_ACTIVITY_OFFSET, _LONG.pack(NULL_VALUE))
            file.sync(_FULL_SYNC)
        finally:
            file.close()


def _is_header(data: bytes) -> bool:
    return len(data) >= _TEXTS_OFFSET and data[2:6] == _MESSAGE_HEADER[2:6]


def _numbers(header: bytes) -> MarkFields:
    """The fields without their texts, of which a kill may have left a part."""
    return MarkFields(*_FIELDS.unpack_from(header, _FIELDS_OFFSET), *[""] * 6)


def _check_version(fields: MarkFields, path: str) -> None:
    if fields.version != _FAILED and fields.version >> 16:
        raise ClusterFileError(
            f"{path}: the file has version {version_text(fields.version)}, and 0.x is read here: use a program of that "
            "version, or another directory"
        )


def _opened(storage: Storage, name: str, length: int) -> StorageFile:
    try:
        return storage.create(name, length)
    except FileExistsError:
        return storage.open(name)


def _lock(file: StorageFile, path: str) -> None:
    if not file.try_lock():
        data = file.read(0, _TEXTS_OFFSET)
        is_header = _is_header(data)
        pid = _LOCK_HOLDER.unpack_from(data, _LOCK_HOLDER_OFFSET)[0] if is_header else 0
        what = f" by pid={pid}, which runs a {_numbers(data).component}" if pid else ""
        raise ClusterFileError(
            f"active mark file: {path} is locked{what}: stop what runs on the directory, or use another directory"
        )


def _check_age(header: bytes, path: str, now_ms: int, liveness_timeout_ms: int) -> None:
    """Refuse a file whose component holds no lock and has shown life; that of ours was found to be free."""
    old = _numbers(header)
    holder = _LOCK_HOLDER.unpack_from(header, _LOCK_HOLDER_OFFSET)
    was_ours = any(holder) and holder == (old.pid, old.start_timestamp)
    age_ms = now_ms - old.activity_timestamp
    if not was_ours and old.activity_timestamp != NULL_VALUE and age_ms < liveness_timeout_ms:
        raise ClusterFileError(
            f"active mark file: {path} was active {max(age_ms, 0)} ms ago, pid={old.pid} runs a {old.component}: stop "
            f"what runs on the directory; a killed process counts as ended after {liveness_timeout_ms} ms"
        )


class _ClosedFile:
    """Takes the place of the file once it is closed, so that a late update does no harm."""

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Does nothing."""

    def sync(self, level: int) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


_CLOSED: StorageFile = _ClosedFile()  # type: ignore[assignment]
