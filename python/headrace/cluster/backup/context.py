"""What the parts of a backup share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._base.states import Life
from headrace.cluster.backup.states import BACKUP, BackupState

if TYPE_CHECKING:
    from headrace.client import Client
    from headrace.clock import Clock
    from headrace.cluster.backup.config import ClusterBackupConfig
    from headrace.cluster.backup.counters import BackupCounters
    from headrace.cluster.common.log import AgentLog
    from headrace.cluster.common.node_archive import NodeArchive
    from headrace.cluster.files.recording_log import RecordingLog
    from headrace.event_log import EventRecorder

__all__ = ["Context"]


@dataclass(eq=False)
class Context:
    """Arguments that every part needs, and the backup's state."""

    config: ClusterBackupConfig
    client: Client
    clock: Clock
    archive: NodeArchive
    counters: BackupCounters
    log: AgentLog
    recording_log: RecordingLog
    events: EventRecorder

    def __post_init__(self) -> None:
        self._life = Life(BACKUP)
        self._life.begin(self.events, "started", self.config.cluster_id, detail=self.client.directory)

    @property
    def state(self) -> BackupState:
        """What the backup does."""
        return self._life.state

    def enter(self, state: BackupState, reason: str, *, is_fault: bool = False) -> None:
        """Go to another state, and show it."""
        self._life.enter(state, reason, is_fault=is_fault)
        self.counters.state.value = state
