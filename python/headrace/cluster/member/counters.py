"""The counters of a consensus module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._base.labels import printable
from headrace.channel import format_duration
from headrace.cluster.common import counters
from headrace.cluster.common.counters import ClusterCounter, session_key
from headrace.cluster.consensus.states import ElectionState
from headrace.cluster.member.states import ModuleState, NodeToggle, Toggle
from headrace.cluster.protocol.codes import Role
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.client import Client, Counter, Pending
    from headrace.cluster.member.config import ConsensusModuleConfig

__all__ = ["ModuleCounters"]

_SESSION_LABEL = "cluster-session: "
_LABEL_MAX = 380


class ModuleCounters:
    """The counters of one module.

    Raises:
        ClusterError: Another module of the cluster runs on the driver, or one that shares a stream with this one.
    """

    def __init__(self, client: Client, config: ConsensusModuleConfig) -> None:
        self._client = client
        self._cluster_id = config.cluster_id
        self._added: list[Counter] = []
        kind, add = ClusterCounter, self._add
        cycle = format_duration(config.cycle_threshold_ns)
        snapshot = format_duration(config.snapshot_threshold_ns)
        streams = config.lone_streams
        suffix = counters.streams_suffix(streams.values())
        self.state = add(kind.MODULE_STATE, "Consensus Module state", ModuleState.INIT, suffix)
        try:
            counters.check_alone(client, self.state, config.cluster_id, streams)
        except BaseException:
            self.close()
            raise
        self.errors = add(kind.MODULE_ERRORS, "Cluster Errors", suffix=counters.version_suffix())
        self.role = add(kind.NODE_ROLE, "Cluster node role", Role.FOLLOWER)
        self.toggle = add(kind.CONTROL_TOGGLE, "Cluster control toggle", Toggle.INACTIVE)
        self.node_toggle = add(kind.NODE_TOGGLE, "Node control toggle", NodeToggle.INACTIVE)
        self.commit_position = add(kind.COMMIT_POSITION, "Cluster commit-pos:")
        self.election_state = add(kind.ELECTION_STATE, "Cluster election state", ElectionState.INIT)
        self.election_count = add(kind.ELECTION_COUNT, "Cluster election count")
        self.leadership_term_id = add(kind.LEADERSHIP_TERM_ID, "Cluster leadership term id", NULL_VALUE)
        self.snapshot_count = add(kind.SNAPSHOT_COUNT, "Cluster snapshot count")
        self.timed_out_clients = add(kind.TIMED_OUT_CLIENTS, "Cluster timed out client count")
        self.max_cycle_time = add(kind.MODULE_MAX_CYCLE, "Cluster max cycle time in ns")
        self.cycles_exceeded = add(
            kind.MODULE_CYCLES_EXCEEDED, f"Cluster work cycle time exceeded count: threshold={cycle}"
        )
        self.max_snapshot_duration = add(kind.SNAPSHOT_MAX_DURATION, "Total max snapshot duration in ns")
        self.snapshots_exceeded = add(
            kind.SNAPSHOTS_EXCEEDED, f"Total max snapshot duration exceeded count: threshold={snapshot}"
        )

        # Only where there may be such, as in Aeron.
        self._standby_snapshots: Counter | None = None
        if config.accept_standby_snapshots:
            self._standby_snapshots = add(kind.STANDBY_SNAPSHOTS, "Cluster standby snapshots received")

    def note_standby_snapshot(self) -> None:
        """Note that a standby's snapshot was received."""
        if self._standby_snapshots is not None:
            self._standby_snapshots.get_and_add(1)

    def _add(self, counter: ClusterCounter, name: str, value: int = 0, suffix: str = "") -> Counter:
        made = counters.add(self._client, counter, name, self._cluster_id, suffix=suffix, value=value)
        self._added.append(made)
        return made

    def of_session(self, session_id: int, info: str, origin: str = "") -> Pending[Counter]:
        """Ask for the counter that shows a session. What a client chose of its label is shortened until it fits."""
        end = f"{origin} - clusterId={self._cluster_id}"
        room = _LABEL_MAX - len(_SESSION_LABEL) - len(end) - 1
        words = [word for word in (info[:room], origin) if word]
        label = f"{_SESSION_LABEL}{' '.join(words)} - clusterId={self._cluster_id}"
        key = session_key(self._cluster_id, session_id)
        return self._client.request_counter(ClusterCounter.SESSION, key, printable(label))

    def add_recovery(
        self, leadership_term_id: int, log_position: int, timestamp: int, recording_ids: tuple[int, ...]
    ) -> Counter:
        """The counter that tells services what to load. Its owner closes it when they have."""
        key = counters.recovery_key(
            leadership_term_id, log_position, timestamp, self._cluster_id, recording_ids
        )
        label = (
            f"Cluster recovery: leadershipTermId={leadership_term_id} logPosition={log_position} "
            f"clusterId={self._cluster_id}"
        )
        return self._client.add_counter(ClusterCounter.RECOVERY_STATE, key, label)

    def note_cycle(self, duration_ns: int, threshold_ns: int) -> None:
        """Note how long a turn took."""
        if duration_ns > self.max_cycle_time.value:
            self.max_cycle_time.value = duration_ns
        if duration_ns > threshold_ns:
            self.cycles_exceeded.get_and_add(1)

    def note_snapshot(self, duration_ns: int, threshold_ns: int) -> None:
        """Note how long a snapshot took, of module and services."""
        self.snapshot_count.get_and_add(1)
        if duration_ns > self.max_snapshot_duration.value:
            self.max_snapshot_duration.value = duration_ns
        if duration_ns > threshold_ns:
            self.snapshots_exceeded.get_and_add(1)

    def close(self) -> None:
        """Give all of them back, so that the next module can start at once."""
        for counter in self._added:
            counter.close()
