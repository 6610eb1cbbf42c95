"""What operators ask of a leader: suspend, resume, snapshot, shutdown, abort. Cluster specification 8.1, 8.2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cluster.ground.courses import Course, Running
from headrace.cluster.member.states import ModuleState, NodeToggle, Toggle
from headrace.cluster.protocol.codes import ClusterAction
from headrace.cluster.protocol.control import ServiceTerminationPosition
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.log_writer import LogWriter
    from headrace.cluster.member.services import Services
    from headrace.cluster.member.snapshotting import Snapshotting

__all__ = ["Operating"]


class Operating:
    """Does what an operator asks for.

    Args:
        context: What the module's parts share.
        services: End at a position.
        snapshotting: Takes snapshots.
        course: What the module is on; what takes long is begun there.
    """

    def __init__(
        self, context: Context, services: Services, snapshotting: Snapshotting, course: Running
    ) -> None:
        self._context = context
        self._services = services
        self._snapshotting = snapshotting
        self._course = course
        self.action_position = NULL_VALUE
        """Position after the last action."""
        self.has_ended = False
        """Whether the module is to end: an operator asked for it, and services have ended."""

    def do_work(self, writer: LogWriter) -> int:
        """Look at the counters; gives 1 for something that was asked. The module is on no course."""
        if self._begins_what_is_asked_of_this_member():
            return 1
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
                self._course.begin(self._snapshot(writer, position, ends=toggle == Toggle.SHUTDOWN))
        elif toggle == Toggle.ABORT:
            self._course.begin(self._ended(writer.position))
        else:
            return 0
        return 1

    def give_up(self) -> None:
        """The module closes: tell of a snapshot that was asked for, or begun, and is not taken."""
        context = self._context
        is_asked = context.counters.toggle.value in (Toggle.SNAPSHOT, Toggle.SHUTDOWN)
        if is_asked and context.state in (ModuleState.ACTIVE, ModuleState.SNAPSHOT):
            context.log.error(
                "closed before the snapshot that was asked for was taken: the next start reads the log from the "
                "snapshot before it, or from the beginning"
            )

    def _begins_what_is_asked_of_this_member(self) -> bool:
        """An operator asks for it through the member's own counter. There are no standbys whose snapshots to copy."""
        counter = self._context.counters.node_toggle
        asked = counter.value
        if asked in (NodeToggle.INACTIVE, NodeToggle.NEUTRAL):
            return False
        counter.value = NodeToggle.NEUTRAL
        if asked != NodeToggle.VALIDATE_RECORDING_LOG:
            return False
        self._course.begin(self._snapshotting.validated())
        return True

    def _appended(self, writer: LogWriter, action: ClusterAction, state: ModuleState) -> int | None:
        """Append an action, and go to the state that comes of it; the position after it, or ``None`` without room."""
        context = self._context
        position = writer.action(action, context.now)
        if position is not None:
            context.applied.acted(position, context.state)
            context.enter(state, f"an operator asked to {action.name.lower()}")
            self.action_position = position
        return position

    def _snapshot(self, writer: LogWriter, position: int, *, ends: bool) -> Course[None]:
        context = self._context
        yield from self._snapshotting.taken(position)
        if ends:
            yield from self._ended(writer.position)
            return
        context.enter(ModuleState.ACTIVE, "the snapshot is done")
        context.counters.toggle.value = Toggle.NEUTRAL

    def _ended(self, position: int) -> Course[None]:
        """End services at a position, and then the module."""
        context, services = self._context, self._services
        context.enter(ModuleState.TERMINATING, "an operator asked for it")
        self.action_position = position
        deadline = context.client.clock.deadline(context.config.termination_timeout_ns / 1e9)
        if services.count:
            services.send(ServiceTerminationPosition(log_position=position, ack_required=True))
            for _ in services.acked(position):
                if deadline.is_over:
                    context.log.error(f"not all services have ended at log position {position} in time")
                    break
                yield
        while context.commit_position < position and not deadline.is_over:
            yield
        if context.commit_position >= position:
            context.recording_log.commit_log_position(context.leadership_term_id, position)
            context.recording_log.force()
        else:
            # The next term begins where this one is said to end; without a word the next start asks the archive.
            context.log.error(
                f"the log is agreed upon up to {context.commit_position} only, and not up to {position}, where the "
                "term was to end: the next start takes its end from the archive"
            )
        context.enter(ModuleState.CLOSED, "expected termination")
        context.log.warning("expected termination")
        self.has_ended = True
