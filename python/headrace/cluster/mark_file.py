"""The mark files of a cluster's directory, read: what runs on it, and how to reach it. Specification 2.7, 6.6.

0   message header: u16 block length | u16 template 200 | u16 schema 110 | u16 version
8   i32 version, 0 until ready    48 i32 archive stream             64 i32 member id
12  i32 component type            52 i32 service stream             68 i32 service id
16  i64 activity timestamp, ms    56 i32 consensus module stream    72 i32 header length
24  i64 start timestamp, ms       60 i32 ingress stream             76 i32 error buffer length | i32 cluster id
32  i64 process id                136 u32 + text: driver directory, control channel, ingress channel, service name,
40  i64 candidate term id, legacy     authenticator, directory of the services
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._checks import excerpt
from headrace._named_number import NamedNumber
from headrace.archive.files.storage import DirectoryStorage
from headrace.cluster.errors import ClusterFileError

if TYPE_CHECKING:
    from headrace.archive.files.storage import Storage

__all__ = [
    "MARK_NAME",
    "ClusterComponentType",
    "MarkFields",
    "check_no_member_runs",
    "marked_directory",
    "read_mark_fields",
]

MARK_NAME = "cluster-mark.dat"
LINK_NAME = "cluster-mark.lnk"
LIVENESS_TIMEOUT_MS = 10_000
_HEADER = struct.Struct("<HHHH")
_FIELDS = struct.Struct("<iiqqqqiiiiiiiii")
_LENGTH = struct.Struct("<I")
_TEMPLATE, _SCHEMA = 200, 110
_FIELDS_OFFSET, _TEXTS_OFFSET, _HEADER_LENGTH = 8, 136, 8192
_PATH_MAX = 4096


class ClusterComponentType(NamedNumber):
    """What runs on the directory."""

    UNKNOWN = 0
    CONSENSUS_MODULE = 1
    CONTAINER = 2
    BACKUP = 3
    STANDBY = 4


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

    def is_active(self, now_ms: int) -> bool:
        """Whether the component shows life: its activity is younger than ten seconds."""
        return self.activity_timestamp >= 0 and self.activity_timestamp + LIVENESS_TIMEOUT_MS > now_ms


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


def check_no_member_runs(storage: Storage, now_ms: int) -> None:
    """Look whether the files of a directory may be changed.

    Raises:
        ClusterFileError: A member runs on it, or did less than ten seconds ago.
    """
    mark = read_mark_fields(storage)
    if mark is not None and mark.is_active(now_ms):
        raise ClusterFileError(
            f"{storage.describe()}: pid={mark.pid} runs a {mark.component} on the directory, or was killed less than "
            "ten seconds ago: stop it first"
        )


def marked_directory(storage: Storage, name: str = MARK_NAME) -> Storage:
    """The directory with the mark file: that of the cluster, or the one that a link names.

    Raises:
        ClusterFileError: The link names no directory.
        OSError: The link cannot be read.
    """
    link = Path(name).with_suffix(LINK_NAME[LINK_NAME.rindex(".") :]).name
    length = storage.length(link)
    if storage.length(name) is not None or length is None:
        return storage
    file = storage.open(link, read_only=True)
    try:
        text = file.read(0, _PATH_MAX).decode("ascii", "replace").strip()
    finally:
        file.close()
    if not text or "\0" in text:
        raise ClusterFileError(
            f"{storage.describe(link)}: {excerpt(repr(text))} is not the path of a directory with a mark file"
        )
    return DirectoryStorage(text, create=False)
