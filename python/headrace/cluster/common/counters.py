"""The counters of a cluster: their types, keys and labels. Cluster specification 9."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from headrace._base.named_number import NamedNumber
from headrace.client import __commit__, __version__
from headrace.cluster.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headrace._base.counter_record import CounterRecord
    from headrace.client import Client, Counter

__all__ = [
    "DEFAULT_STREAMS",
    "ClusterCounter",
    "add",
    "check_alone",
    "check_streams",
    "client_is_alive",
    "cluster_id_of",
    "container_runs",
    "find",
    "recovery_key",
    "recovery_state",
    "session_key",
    "streams_suffix",
    "version_suffix",
]

_ID = struct.Struct("<i")
_PAIR = struct.Struct("<ii")
_RECOVERY = struct.Struct("<qqqii")
_LONG = struct.Struct("<q")
# Where the key of the recovery counter has the cluster's id; all others begin with it.
_RECOVERY_ID_OFFSET = 24
_LABEL_MAX = 380
_CLIENT_HEARTBEAT = 11
_STREAMS = " streams="
DEFAULT_STREAMS = (104, 105)
"""Of a service and of a module, by the specification."""


class ClusterCounter(NamedNumber):
    """Types of counters."""

    MODULE_STATE = 200
    NODE_ROLE = 201
    CONTROL_TOGGLE = 202
    COMMIT_POSITION = 203
    RECOVERY_STATE = 204
    SNAPSHOT_COUNT = 205
    ELECTION_STATE = 207
    BACKUP_STATE = 208
    BACKUP_LIVE_POSITION = 209
    BACKUP_NEXT_QUERY = 210
    BACKUP_ERRORS = 211
    MODULE_ERRORS = 212
    TIMED_OUT_CLIENTS = 213
    CONTAINER_ERRORS = 215
    MODULE_MAX_CYCLE = 216
    MODULE_CYCLES_EXCEEDED = 217
    CONTAINER_MAX_CYCLE = 218
    CONTAINER_CYCLES_EXCEEDED = 219
    STANDBY_SNAPSHOTS = 232
    NODE_TOGGLE = 233
    SNAPSHOT_MAX_DURATION = 234
    SNAPSHOTS_EXCEEDED = 235
    SERVICE_SNAPSHOT_MAX_DURATION = 236
    SERVICE_SNAPSHOTS_EXCEEDED = 237
    ELECTION_COUNT = 238
    LEADERSHIP_TERM_ID = 239
    BACKUP_SNAPSHOTS = 240
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


def client_is_alive(client: Client, client_id: int) -> bool:
    """Whether the driver counts a client as alive."""
    return client.counters.find(_CLIENT_HEARTBEAT, client_id) is not None


def container_runs(client: Client, cluster_id: int, service_id: int) -> bool:
    """Whether a container of a service is on the driver."""
    key = _PAIR.pack(cluster_id, service_id)
    return any(
        record.type_id == ClusterCounter.CONTAINER_ERRORS and record.key.startswith(key)
        for record in client.counters
    )


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
    """The part of an error counter's label that names the program's version."""
    return f" version={__version__} commit={__commit__}"


def streams_suffix(streams: Iterable[int]) -> str:
    """The part of a module's state label that names the streams over IPC that it shares with no other module."""
    return f"{_STREAMS}{','.join(map(str, streams))}"


def _streams_of(state: CounterRecord) -> tuple[int, ...]:
    """The streams that a module's counter names; the default streams if it names none, as Aeron's does not."""
    _, is_said, streams = state.label.partition(_STREAMS)
    return tuple(map(int, streams.split(","))) if is_said else DEFAULT_STREAMS


def check_alone(client: Client, state: Counter, cluster_id: int, streams: Mapping[str, int]) -> None:
    """Check that no other module on the driver uses the streams of this one, or belongs to the same cluster.

    Call it once the module's own counter exists: of two modules that start at once, one has the later counter.

    Args:
        client: The module's.
        state: The counter of its state.
        cluster_id: Its cluster.
        streams: Those that :func:`streams_suffix` names, by their settings.

    Raises:
        ClusterError: Another module does.
    """
    for record in client.counters:
        if record.type_id != ClusterCounter.MODULE_STATE or record.registration_id >= state.registration_id:
            continue
        other_id = cluster_id_of(record)
        if other_id == cluster_id:
            raise ClusterError(
                f"cluster_id={cluster_id}: another consensus module of this cluster runs on the driver: choose another "
                "id; if that module was killed, wait until the driver has noticed (client_liveness_timeout_ns)"
            )
        shared = [name for name, stream_id in streams.items() if stream_id in _streams_of(record)]
        if shared:
            given = ", ".join(f"{name}={streams[name]}" for name in shared)
            free = ", ".join(f"{name}={streams[name] + 1000 * max(cluster_id, 1)}" for name in shared)
            raise ClusterError(
                f"{given}: cluster_id={other_id} uses the same over aeron:ipc on this driver, and would receive "
                f"from this cluster: give all parts of cluster_id={cluster_id} other streams, such as {free}; if that "
                "cluster has ended, wait until the driver has noticed (client_liveness_timeout_ns)"
            )


def check_streams(client: Client, module: CounterRecord, streams: Mapping[str, int]) -> None:
    """Check that a service and the module of its node use the same streams.

    Args:
        client: The container's.
        module: A counter of the consensus module.
        streams: Those of the service, by their settings.

    Raises:
        ClusterError: They do not.
    """
    state = find(client, ClusterCounter.MODULE_STATE, cluster_id_of(module))
    if state is None or state.owner_id != module.owner_id:
        return
    wrong = [
        f"{name}={stream_id}" for name, stream_id in streams.items() if stream_id not in _streams_of(state)
    ]
    if wrong:
        raise ClusterError(
            f"{', '.join(wrong)}: the consensus module of cluster_id={cluster_id_of(module)} has other streams "
            f"({state.label}): give the container those of the module"
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
    """The key of the recovery counter: the recordings that services load, one for each; none without a snapshot."""
    head = _RECOVERY.pack(leadership_term_id, log_position, timestamp, cluster_id, len(recording_ids))
    return head + b"".join(map(_LONG.pack, recording_ids))


def recovery_state(record: CounterRecord) -> tuple[int, int, int, tuple[int, ...]]:
    """The term, position and time of the snapshot in a recovery counter, and the recordings of the services."""
    term_id, position, timestamp, _, count = _RECOVERY.unpack_from(record.key)
    recordings = tuple(
        _LONG.unpack_from(record.key, _RECOVERY.size + index * _LONG.size)[0] for index in range(count)
    )
    return term_id, position, timestamp, recordings
