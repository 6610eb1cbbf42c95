"""A log that the member reads, its own or a leader's, and the actions in it. Cluster specification 4.6, 6.4."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace._agent.tasks import RunningTask, Task
from headrace.cluster.member.log_reader import LogReader
from headrace.cluster.member.states import ModuleState
from headrace.cluster.protocol.codes import ClusterAction
from headrace.cluster.protocol.log import takes_snapshot

if TYPE_CHECKING:
    from headrace.client import Image
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.services import Services
    from headrace.cluster.member.snapshots import Snapshots
    from headrace.cluster.protocol.log import ClusterActionRequest, NewLeadershipTermEvent

__all__ = ["FollowedLog"]


class FollowedLog:
    """Applies entries up to a position, and lets services read as far.

    Args:
        context: What the module's parts share.
        services: Read what the module has read.
        snapshots: Takes the snapshots that the log asks for.
        on_term: Called with the first entry of each term.
    """

    def __init__(
        self,
        context: Context,
        services: Services,
        snapshots: Snapshots,
        on_term: Callable[[NewLeadershipTermEvent], object],
    ) -> None:
        self._context = context
        self._services = services
        self._snapshots = snapshots
        self._on_term = on_term
        self._reader: LogReader | None = None
        self._last: Image | None = None
        # What services are to do before the next entry is applied.
        self._task = RunningTask()
        self._takes_snapshot = False

    def begin(self, image: Image) -> None:
        """Read an image, which goes on where the one before was left, be that within a message."""
        if self._last is not None and self._last.position == image.position:
            image.take_fragments(self._last)
        self._last = image
        self._reader = LogReader(self._context, image, self._on_term)

    @property
    def is_reading(self) -> bool:
        """Whether there is an image to read."""
        return self._reader is not None

    @property
    def position(self) -> int:
        """Up to where the log is read."""
        return self._context.commit_position if self._reader is None else self._reader.position

    @property
    def is_busy(self) -> bool:
        """Whether the next entry waits for services, or for a snapshot."""
        return not self._task.is_idle

    def poll(self, limit_position: int) -> int:
        """Read up to a position; returns how much there was to do."""
        reader = self._reader
        if reader is None:
            return 0
        work_count = self._task.step()
        if not self._task.is_idle:
            return work_count
        work_count += reader.poll(limit_position)
        context = self._context
        context.commit_position = max(context.commit_position, reader.position)
        found = reader.take_action()
        if found is not None:
            self._act(*found)
        elif reader.awaits_services:
            self._begin(self._services_are_there(reader))
        return work_count

    def _begin(self, task: Task[None], *, is_snapshot: bool = False) -> None:
        self._takes_snapshot = is_snapshot
        self._task.begin(task)
        self._task.step()

    def _services_are_there(self, reader: LogReader) -> Task[None]:
        yield from self._services.read_up_to(reader.position)
        reader.services_are_there()

    def _act(self, action: ClusterActionRequest, position: int) -> None:
        """An action in the log."""
        context = self._context
        if action.action is ClusterAction.SUSPEND:
            context.enter(ModuleState.SUSPENDED, "the log says so")
        elif action.action is ClusterAction.RESUME:
            context.enter(ModuleState.ACTIVE, "the log says so")
        elif takes_snapshot(action.flags, context.config.member_id):
            self._begin(self._snapshot(position, is_alone=action.flags != 0), is_snapshot=True)

    def _snapshot(self, position: int, *, is_alone: bool) -> Task[None]:
        context, before = self._context, self._context.state
        context.enter(ModuleState.SNAPSHOT, "the log says so")
        yield from self._snapshots.taken(position, is_alone=is_alone)
        context.enter(before, "the snapshot is done")

    def lead(self) -> None:
        """The member appends to the log from here on, and the image that was read last is of no use."""
        self._last = None

    def leave(self) -> None:
        """Read it no more. A snapshot that the log has asked for goes on."""
        self._reader = None
        if not self._takes_snapshot:
            self._task.close()

    def idle(self) -> Task[None]:
        """Goes on once no snapshot is under way: services acknowledge one thing after the other."""
        while self.is_busy:
            self._task.step()
            yield
