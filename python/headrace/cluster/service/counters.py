"""The counters of a service's container. Cluster specification 9."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.channel import format_duration
from headrace.cluster.common.counters import ClusterCounter, add, version_suffix

if TYPE_CHECKING:
    from headrace.client import Client, Counter
    from headrace.cluster.service.config import ContainerConfig

__all__ = ["ContainerCounters", "note_duration"]


class ContainerCounters:
    """They go with the client."""

    def __init__(self, client: Client, config: ContainerConfig) -> None:
        def added(counter: ClusterCounter, name: str, suffix: str = "") -> Counter:
            return add(client, counter, name, config.cluster_id, service_id=config.service_id, suffix=suffix)

        cycle = format_duration(config.cycle_threshold_ns)
        snapshot = format_duration(config.snapshot_threshold_ns)
        self.errors = added(ClusterCounter.CONTAINER_ERRORS, "Cluster Container Errors", version_suffix())
        self.max_cycle = added(ClusterCounter.CONTAINER_MAX_CYCLE, "Cluster container max cycle time in ns")
        self.cycles_exceeded = added(
            ClusterCounter.CONTAINER_CYCLES_EXCEEDED,
            f"Cluster container work cycle time exceeded count: threshold={cycle}",
        )
        self.max_snapshot = added(
            ClusterCounter.SERVICE_SNAPSHOT_MAX_DURATION, "Clustered service max snapshot duration in ns"
        )
        self.snapshots_exceeded = added(
            ClusterCounter.SERVICE_SNAPSHOTS_EXCEEDED,
            f"Clustered service max snapshot duration exceeded count: threshold={snapshot}",
        )


def note_duration(duration_ns: int, greatest: Counter, exceeded: Counter, threshold_ns: int) -> None:
    """Note how long something took."""
    if duration_ns > greatest.value:
        greatest.value = duration_ns
    if duration_ns > threshold_ns:
        exceeded.get_and_add(1)
