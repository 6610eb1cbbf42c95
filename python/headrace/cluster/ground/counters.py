"""The counters of a cluster: their types, keys and labels. Cluster specification 9."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from headrace._named_number import NamedNumber
from headrace.client import __commit__, __version__
from headrace.cluster.errors import ClusterError

if TYPE_CHECKING:
    from headrace._counter_record import CounterRecord
    from headrace.client import Client, Counter

__all__ = [
    "ClusterCounter",
    "add",
    "check_alone",
    "cluster_id_of",
    "find",
    "recovery_key",
    "recovery_state",
    "session_key",
    "version_suffix",
]

_ID = struct.Struct("<i")
_PAIR = struct.Struct("<ii")
_RECOVERY = struct.Struct("<qqqii")
_LONG = struct.Struct("<q")
# Where the key of the recovery counter has the cluster's id; all others begin with it.
_RECOVERY_ID_OFFSET = 24
_LABEL_MAX = 380


class ClusterCounter(NamedNumber):
    """Types of counters."""

    MODULE_STATE = 200
    NODE_ROLE = 201
    CONTROL_TOGGLE = 202
    COMMIT_POSITION = 203
    RECOVERY_STATE = 204
    SNAPSHOT_COUNT = 205
    ELECTION_STATE = 207
    MODULE_ERRORS = 212
    TIMED_OUT_CLIENTS = 213
    CONTAINER_ERRORS = 215
    MODULE_MAX_CYCLE = 216
    MODULE_CYCLES_EXCEEDED = 217
    CONTAINER_MAX_CYCLE = 218
    CONTAINER_CYCLES_EXCEEDED = 219
    NODE_TOGGLE = 233
    SNAPSHOT_MAX_DURATION = 234
    SNAPSHOTS_EXCEEDED = 235
    SERVICE_SNAPSHOT_MAX_DURATION = 236
    SERVICE_SNAPSHOTS_EXCEEDED = 237
    ELECTION_COUNT = 238
    LEADERSHIP_TERM_ID = 239
    SESSION = 241


def cluster_id_of(record: CounterRecord) -> int:
    """The cluster that a counter of these types belongs to."""
    offset = _RECOVERY_ID_OFFSET if record.type_id == ClusterCounter.RECOVERY_STATE else 0
    found: int = _ID.unpack_from(record.key, offset)[0]
    return found


def find(client: Client, counter: ClusterCounter, cluster_id: int) -> CounterRecord | None:
    """The counter of a type that belongs to a cluster. Reads all counters of the driver."""
    for record in client.counters:
        if record.type_id == counter and cluster_id_of(record) == cluster_id:
            return record
    return None


def add(
    client: Client,
    counter: ClusterCounter,
    name: str,
    cluster_id: int,
    *,
    service_id: int | None = None,
    suffix: str = "",
    value: int = 0,
) -> Counter:
    """Allocate a counter of a module, or of one of its services. Waits for the driver."""
    key = _ID.pack(cluster_id) if service_id is None else _PAIR.pack(cluster_id, service_id)
    service = "" if service_id is None else f" serviceId={service_id}"
    label = f"{name} - clusterId={cluster_id}{service}{suffix}"
    made = client.add_counter(counter, key, label[:_LABEL_MAX])
    made.value = value
    return made


def version_suffix() -> str:
    """What labels of error counters say of the program."""
    return f" version={__version__} commit={__commit__}"


def check_alone(client: Client, state: Counter, cluster_id: int) -> None:
    """Look whether another module of the cluster runs on the driver; after the own counter of its state is there.

    Raises:
        ClusterError: One does.
    """
    for record in client.counters:
        is_first = record.registration_id < state.registration_id
        if record.type_id == ClusterCounter.MODULE_STATE and cluster_id_of(record) == cluster_id and is_first:
            raise ClusterError(
                f"cluster_id={cluster_id}: another consensus module of this cluster runs on the driver: choose another "
                "id, or wait until the driver has noticed that a module that was killed is gone "
                "(client_liveness_timeout_ns)"
            )


def session_key(cluster_id: int, session_id: int) -> bytes:
    """The key of the counter that shows a session."""
    return _ID.pack(cluster_id) + _LONG.pack(session_id)


def recovery_key(
    leadership_term_id: int,
    log_position: int,
    timestamp: int,
    cluster_id: int,
    recording_ids: tuple[int, ...],
) -> bytes:
    """The key of the recovery counter: what services load; a recording for each of them, or none without a snapshot."""
    head = _RECOVERY.pack(leadership_term_id, log_position, timestamp, cluster_id, len(recording_ids))
    return head + b"".join(map(_LONG.pack, recording_ids))


def recovery_state(record: CounterRecord) -> tuple[int, int, int, tuple[int, ...]]:
    """Term, position and time of the snapshot that a recovery counter tells of, and the recordings of the services."""
    term_id, position, timestamp, _, count = _RECOVERY.unpack_from(record.key)
    recordings = tuple(
        _LONG.unpack_from(record.key, _RECOVERY.size + index * _LONG.size)[0] for index in range(count)
    )
    return term_id, position, timestamp, recordings
