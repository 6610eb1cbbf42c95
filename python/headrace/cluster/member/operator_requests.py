"""What operators ask of a leader: suspend, resume, snapshot, shutdown, abort. Cluster specification 8.1, 8.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace._agent.tasks import RunningTask, Task, until
from headrace.cluster.member.states import SUCCESSOR_SHIFT, ModuleState, Toggle
from headrace.cluster.protocol.codes import ClusterAction, Role
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.log_writer import LogWriter
    from headrace.cluster.member.snapshots import Snapshots
    from headrace.cluster.member.termination import Termination

__all__ = ["OperatorRequests"]

_REQUEST = 0xFF


class OperatorRequests:
    """Does what an operator asks for.

    Args:
        context: What the module's parts share.
        snapshots: Takes snapshots.
        termination: Ends the cluster.
        hand_over: Has the member, or any with -1, lead that has the whole log; with ``None`` takes that back.
        task: What the module is on; what takes long is begun there.
    """

    def __init__(
        self,
        context: Context,
        snapshots: Snapshots,
        termination: Termination,
        hand_over: Callable[[int | None], object],
        task: RunningTask,
    ) -> None:
        self._context = context
        self._snapshots = snapshots
        self._termination = termination
        self._hand_over = hand_over
        self._task = task
        self.action_position = NULL_VALUE
        """Position after the last action."""

    def do_work(self, writer: LogWriter) -> int:
        """Look at the counters; gives 1 for something that was asked. The module is on no task."""
        context = self._context
        counter = context.counters.toggle
        toggle, state = counter.value, context.state
        if toggle == Toggle.RESUME and state is ModuleState.SUSPENDED:
            if self._appended(writer, ClusterAction.RESUME, ModuleState.ACTIVE):
                counter.value = Toggle.NEUTRAL
        elif state is not ModuleState.ACTIVE:
            return 0
        elif toggle == Toggle.SUSPEND:
            self._appended(writer, ClusterAction.SUSPEND, ModuleState.SUSPENDED)
        elif toggle == Toggle.STANDBY_SNAPSHOT:
            if writer.action(ClusterAction.SNAPSHOT, context.now, flags=1) is not None:
                counter.value = Toggle.NEUTRAL
        elif toggle in (Toggle.SNAPSHOT, Toggle.SHUTDOWN):
            position = self._appended(writer, ClusterAction.SNAPSHOT, ModuleState.SNAPSHOT)
            if position is not None:
                if toggle == Toggle.SHUTDOWN:
                    self._termination.announce(position)
                self._task.begin(self._snapshot(writer, position, ends=toggle == Toggle.SHUTDOWN))
        elif toggle == Toggle.ABORT:
            self.action_position = writer.position
            self._termination.announce(writer.position)
            self._task.begin(self._termination.led(writer.position))
        elif toggle & _REQUEST == Toggle.TRANSFER_LEADERSHIP:
            self._task.begin(self._transferred((toggle >> SUCCESSOR_SHIFT) - 1))
        else:
            return 0
        return 1

    def _transferred(self, successor_id: int) -> Task[None]:
        """Another member leads, or none has the whole log in time. Nothing is appended meanwhile."""
        context = self._context
        self._hand_over(successor_id)
        deadline = context.client.clock.deadline(context.config.leader_heartbeat_timeout_ns / 1e9)
        yield from until(lambda: context.role is not Role.LEADER or deadline.is_over)
        if context.role is Role.LEADER:
            self._hand_over(None)
            context.counters.toggle.value = Toggle.NEUTRAL
            context.log.warning("leadership is not transferred: no such follower has the whole log")

    def give_up(self) -> None:
        """The module closes: tell of a snapshot that was asked for, or begun, and is not taken."""
        context = self._context
        is_asked = context.counters.toggle.value in (Toggle.SNAPSHOT, Toggle.SHUTDOWN)
        if is_asked and context.state in (ModuleState.ACTIVE, ModuleState.SNAPSHOT):
            context.log.error(
                "closed before the requested snapshot was taken: the next start reads the log from the "
                "snapshot before it, or from the beginning"
            )

    def _appended(self, writer: LogWriter, action: ClusterAction, state: ModuleState) -> int | None:
        """Append an action, and go to the state that comes of it; the position after it, or ``None`` without room."""
        context = self._context
        position = writer.action(action, context.now)
        if position is not None:
            context.applied.acted(position, context.state)
            context.enter(state, f"an operator asked to {action.name.lower()}")
            self.action_position = position
        return position

    def _snapshot(self, writer: LogWriter, position: int, *, ends: bool) -> Task[None]:
        context = self._context
        yield from self._snapshots.taken(position)
        if ends:
            yield from self._termination.led(position)
            return
        context.enter(ModuleState.ACTIVE, "the snapshot is done")
        if context.counters.toggle.value != Toggle.INACTIVE:
            context.counters.toggle.value = Toggle.NEUTRAL
