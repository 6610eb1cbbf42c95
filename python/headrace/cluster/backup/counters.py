"""The counters of a backup. Cluster specification 9."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cluster.backup.states import BackupState
from headrace.cluster.common import counters
from headrace.cluster.common.counters import ClusterCounter

if TYPE_CHECKING:
    from headrace.client import Client, Counter

__all__ = ["BackupCounters"]


class BackupCounters:
    """The counters of one backup."""

    def __init__(self, client: Client, cluster_id: int) -> None:
        kind = ClusterCounter
        self._added: list[Counter] = []

        def add(counter: ClusterCounter, name: str, value: int = 0, suffix: str = "") -> Counter:
            made = counters.add(client, counter, name, cluster_id, suffix=suffix, value=value)
            self._added.append(made)
            return made

        self.state = add(kind.BACKUP_STATE, "ClusterBackup State", BackupState.BACKUP_QUERY)
        self.live_position = add(kind.BACKUP_LIVE_POSITION, "ClusterBackup live log position")
        self.next_query_ms = add(kind.BACKUP_NEXT_QUERY, "ClusterBackup next query deadline in ms")
        self.errors = add(kind.BACKUP_ERRORS, "ClusterBackup Errors", suffix=counters.version_suffix())
        self.snapshots = add(kind.BACKUP_SNAPSHOTS, "ClusterBackup snapshots retrieved")

    def close(self) -> None:
        """Give all of them back."""
        for counter in self._added:
            counter.close()
