"""What operators ask of one member, whatever its role. Cluster specification 8.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cluster.member.states import ModuleState, NodeToggle

if TYPE_CHECKING:
    from headrace._agent.tasks import RunningTask
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.snapshots import Snapshots
    from headrace.cluster.member.standby_snapshots import StandbySnapshots

__all__ = ["NodeRequests"]


class NodeRequests:
    """Does what an operator asks for through the member's own counter.

    Args:
        context: What the module's parts share.
        snapshots: Knows which snapshots the archive has.
        standby_snapshots: Copies those of standbys.
        task: What the module is on; what takes long is begun there.
    """

    def __init__(
        self,
        context: Context,
        snapshots: Snapshots,
        standby_snapshots: StandbySnapshots,
        task: RunningTask,
    ) -> None:
        self._context = context
        self._snapshots = snapshots
        self._standby_snapshots = standby_snapshots
        self._task = task

    def do_work(self) -> int:
        """Look at the counter; returns 1 for something that was asked."""
        counter = self._context.counters.node_toggle
        if self._context.state is not ModuleState.ACTIVE or not self._task.is_idle:
            return 0
        asked = counter.value
        if asked in (NodeToggle.INACTIVE, NodeToggle.NEUTRAL):
            return 0
        counter.value = NodeToggle.NEUTRAL
        if asked == NodeToggle.VALIDATE_RECORDING_LOG:
            self._task.begin(self._snapshots.validated())
        elif asked == NodeToggle.REPLICATE_STANDBY_SNAPSHOT:
            self._standby_snapshots.begin_copying()
        return 1
