"""The mark files of a cluster's directory: what runs on it, how to reach it, its errors. Specification 2.7, 6.6.

8   i32 version, 0 until ready    48 i32 archive stream             64 i32 member id
12  i32 component type            52 i32 service stream             68 i32 service id
16  i64 activity timestamp, ms    56 i32 consensus module stream    72 i32 header length
24  i64 start timestamp, ms       60 i32 ingress stream             76 i32 error buffer length | i32 cluster id
32  i64 process id                136 texts: driver directory, control channel, ingress channel, service name,
40  i64 candidate term id, legacy     authenticator, directory of the services
104 i64 recording of the log | i64 when the archive began it, ms; zeros while that is not known

:mod:`headrace._agent.mark_file` describes the parts that all mark files share. Only Headrace writes at 104, in a part
of the header that no field of the specification uses. The activity timestamp is 0 until the component is ready, and so
is the version: its counters are there before both.
"""

from __future__ import annotations

import dataclasses
import os
import struct
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._agent.mark_file import HEADER_LENGTH, LIVENESS_TIMEOUT_MS, MarkFile, MarkLayout
from headrace._agent.mark_link import mark_directory
from headrace._base.named_number import NamedNumber
from headrace.cluster.errors import ClusterFileError
from headrace.positions import NULL_VALUE, version_text

if TYPE_CHECKING:
    from headrace._agent.storage import Storage

__all__ = [
    "LAYOUT",
    "LIVENESS_TIMEOUT_MS",
    "MARK_NAME",
    "UNKNOWN_LOG",
    "ClusterComponentType",
    "ClusterMarkFile",
    "LogIdentity",
    "MarkFields",
    "marked_directory",
    "no_component_running",
    "read_errors",
    "read_mark_fields",
    "service_mark_name",
]

MARK_NAME = "cluster-mark.dat"
_SCHEMA = 110
_NUMBERS = struct.Struct("<iiqqqqiiiiiiiii")
_VERSION, _FAILED = 3 << 8, -1
_INT, _LONG = struct.Struct("<i"), struct.Struct("<q")
_CANDIDATE_OFFSET, _MEMBER_OFFSET = 40, 64
_LOG = struct.Struct("<qq")
_LOG_OFFSET = 104
_FULL_SYNC = 2


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
    """Identifies the recording of the log among all archives, whose recording ids are alike, by its start time.

    Attributes:
        recording_id: The recording.
        start_timestamp: When the archive began it, in milliseconds since 1970; extending it does not change this.
    """

    recording_id: int
    start_timestamp: int


UNKNOWN_LOG = LogIdentity(0, 0)


@dataclass(frozen=True, slots=True)
class MarkFields:
    """The fields of a mark file. Times are milliseconds since 1970."""

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


class _Layout(MarkLayout[MarkFields]):
    def locked_text(self, path: str, holder: MarkFields | None) -> str:
        by = "" if holder is None else f" by pid={holder.pid}, which runs a {holder.component}"
        return f"active mark file: {path} is locked{by}: stop what runs on the directory, or use another directory"

    def check_idle(self, header: bytes, where: Storage, name: str, now_ms: int, timeout_ms: int) -> None:
        if not self.is_header(header):
            return
        old, path = self.numbers(header), where.describe(name)
        _check_version(old, path)
        age_ms = now_ms - old.activity_timestamp
        is_active = old.activity_timestamp != NULL_VALUE and age_ms < timeout_ms
        if is_active and not self.is_of_lock_holder(header, old):
            raise self.error(
                f"active mark file: {path} was active {max(age_ms, 0)} ms ago, pid={old.pid} runs a {old.component}: "
                f"stop what runs on the directory; a killed process counts as ended after {timeout_ms} ms"
            )


LAYOUT = _Layout(MarkFields, _NUMBERS, _SCHEMA, ClusterFileError)


def _check_version(fields: MarkFields, path: str) -> None:
    if fields.version != _FAILED and fields.version >> 16:
        raise ClusterFileError(
            f"{path}: the file has version {version_text(fields.version)}, and 0.x is read here: use a program of that "
            "version, or another directory"
        )


def read_mark_fields(storage: Storage, name: str = MARK_NAME) -> MarkFields | None:
    """The fields of a mark file, to which a link may lead; ``None`` without one.

    Raises:
        ClusterFileError: It is not a mark file of a cluster, or the link names no directory.
        OSError: It cannot be read.
    """
    fields = LAYOUT.read(storage, name)
    if fields is not None:
        _check_version(fields, marked_directory(storage, name).describe(name))
    return fields


def read_errors(storage: Storage, name: str) -> bytes | None:
    """The error log in a mark file; ``None`` without one.

    Raises:
        ClusterFileError: It is not a mark file of a cluster, or the link names no directory.
        OSError: It cannot be read.
    """
    fields = read_mark_fields(storage, name)
    return None if fields is None else LAYOUT.read_errors(storage, name, fields)


def no_component_running(storage: Storage, name: str, now_ms: int) -> AbstractContextManager[None]:
    """Keep components of ours away from a directory while its files are changed, or the mark file is moved.

    Raises:
        ClusterFileError: One runs on it, or one that holds no lock did less than ten seconds ago.
        OSError: The mark file cannot be read.
    """
    return LAYOUT.idle(storage, name, now_ms)


def marked_directory(storage: Storage, name: str = MARK_NAME) -> Storage:
    """The directory with the mark file: that of the cluster, or the one that a link names.

    Raises:
        ClusterFileError: The link names no directory.
        OSError: The link cannot be read.
    """
    return mark_directory(storage, name, ClusterFileError)


def service_mark_name(service_id: int) -> str:
    """The name of the mark file of a service's container."""
    return f"cluster-mark-service-{service_id}.dat"


class ClusterMarkFile(MarkFile[MarkFields]):
    """The mark file of a component that runs: taken with the constructor, shown with :meth:`ready`.

    Args:
        storage: The directory of the cluster's files.
        name: The file: :data:`MARK_NAME`, or :func:`service_mark_name`.
        fields: Its fields; the file sets times and the version itself.
        now_ms: The time, in milliseconds since 1970.
        liveness_timeout_ms: How long a component that holds no lock is taken for alive after its last sign.
        elsewhere: The directory of mark files, to which a link then leads; by default that of the cluster's files.

    Raises:
        ClusterFileError: Another component runs on the directory, or the file is of another version or component.
        OSError: The disk refuses something.
    """

    _version = _VERSION

    def __init__(
        self,
        storage: Storage,
        name: str,
        fields: MarkFields,
        now_ms: int,
        liveness_timeout_ms: int = LIVENESS_TIMEOUT_MS,
        elsewhere: str | os.PathLike[str] | None = None,
    ) -> None:
        self.candidate_term_id = fields.candidate_term_id
        """Legacy: of the component before this one, if the fields have none."""
        self.log_identity = UNKNOWN_LOG
        """Which recording the component before this one had as its log."""
        self.warnings: list[str] = []
        """What is to be said of the component before this one."""
        self._fields = dataclasses.replace(
            fields, version=0, activity_timestamp=0, start_timestamp=now_ms, header_length=HEADER_LENGTH
        )
        self._header = bytearray(LAYOUT.encode(self._fields))
        super().__init__(
            LAYOUT,
            storage,
            name,
            error_buffer_length=fields.error_buffer_length,
            now_ms=now_ms,
            liveness_timeout_ms=liveness_timeout_ms,
            elsewhere=elsewhere,
        )

    def _take_over(self, header: bytes, old: MarkFields) -> None:
        fields = self._fields
        allowed = (fields.component_type, *_MAY_BECOME.get(fields.component_type, ()))
        if old.component_type not in allowed:
            raise ClusterFileError(
                f"{self.path}: the file is of a {old.component}, and not of a {fields.component}: use another "
                "directory"
            )
        if self.candidate_term_id == NULL_VALUE:
            self.candidate_term_id = old.candidate_term_id
        self._look_at_owner(old, fields)
        self.log_identity = LogIdentity(*_LOG.unpack_from(header, _LOG_OFFSET))

    def _begin(self, now_ms: int) -> None:
        _LONG.pack_into(self._header, _CANDIDATE_OFFSET, self.candidate_term_id)
        _LOG.pack_into(self._header, _LOG_OFFSET, *dataclasses.astuple(self.log_identity))
        self._file.write(0, bytes(self._header))

    def _look_at_owner(self, old: MarkFields, fields: MarkFields) -> None:
        """Warn if the directory belonged to another member. This is allowed, as for a backup, but may be a mistake."""
        of_old = f"cluster_id={old.cluster_id} member_id={old.member_id}"
        of_new = f"cluster_id={fields.cluster_id} member_id={fields.member_id}"
        module = ClusterComponentType.CONSENSUS_MODULE
        if old.component_type == module and fields.component_type == module and of_old != of_new:
            self.warnings.append(
                f"the directory belonged to {of_old}, and now belongs to {of_new}, with its state: if that is a "
                "mistake, stop this member, and start each on its own directory"
            )

    def failed(self) -> None:
        """Say that the component could not start."""
        self._write_version(_FAILED)

    def set_member_id(self, member_id: int) -> None:
        """Write the id of its member, once it is known."""
        self._file.write(_MEMBER_OFFSET, _INT.pack(member_id))

    def set_log_identity(self, log: LogIdentity) -> None:
        """Write which recording is the log, so that another archive's is not mistaken for it."""
        self.log_identity = log
        self._file.write(_LOG_OFFSET, _LOG.pack(*dataclasses.astuple(log)))
        self._file.sync(_FULL_SYNC)
