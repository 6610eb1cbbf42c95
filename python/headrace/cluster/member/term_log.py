"""The tasks of an election that have to do with the log, one after the other. Cluster specification 4.2 to 4.7, 5.5."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._agent.tasks import Task
from headrace.cluster.consensus import actions as do
from headrace.cluster.member.catchups import Catchups
from headrace.cluster.member.followed_log import FollowedLog
from headrace.cluster.member.follower_log import FollowerLog
from headrace.cluster.member.leader_log import LeaderLog
from headrace.cluster.member.log_copy import LogCopy
from headrace.cluster.member.log_recording import LogRecording
from headrace.cluster.member.log_replay import LogReplay
from headrace.cluster.protocol.codes import Role
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.services import Services
    from headrace.cluster.member.snapshots import Snapshots
    from headrace.cluster.protocol.log import NewLeadershipTermEvent

__all__ = ["Outcome", "TermLog"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a task, as :meth:`headrace.cluster.consensus.core.Consensus.done` wants it."""

    value: int = NULL_VALUE
    endpoint: str = ""


class TermLog:
    """The log of a member, be it that of a leader, of a follower, or left.

    Args:
        context: What the module's parts share.
        services: Read the log.
        snapshots: Takes the snapshots that the log asks for.
        on_term: Called with the first entry of each term that is read.
        idle: Goes on once services do nothing else, and can be asked to join a log.
    """

    def __init__(
        self,
        context: Context,
        services: Services,
        snapshots: Snapshots,
        on_term: Callable[[NewLeadershipTermEvent], object],
        idle: Callable[[], Task[None]],
    ) -> None:
        self._context = context
        self._idle_module = idle
        self.recording = LogRecording(context)
        self.followed = FollowedLog(context, services, snapshots, on_term)
        self.leader = LeaderLog(context, services, self.recording)
        self.follower = FollowerLog(context, services, self.recording)
        self.copy = LogCopy(context, self.recording)
        self.catchups = Catchups(context)
        self._replay = LogReplay(context, services, self.followed)

    def carried_out(self, task: do.Task) -> Task[Outcome]:
        """Carry a task out; returns the outcome."""
        if isinstance(task, do.OpenLog):
            return Outcome(endpoint=(yield from self.follower.opened(task)))
        return Outcome((yield from self._value_of(task)))

    def _value_of(self, task: do.Task) -> Task[int]:
        if isinstance(task, do.LeaveLog):
            return (yield from self._left(task.log_position))
        if isinstance(task, do.TruncateLog):
            yield from self._left(task.log_position)
            return (yield from self.copy.truncated(task.log_position))
        if isinstance(task, do.ReplicateLog):
            return (yield from self.copy.replicated(task))
        if isinstance(task, do.CreateLog):
            return (yield from self.leader.created(task.log_position))
        if isinstance(task, do.ReplayLog):
            yield from self._replayed(task.end_position)
            return task.end_position
        if isinstance(task, do.JoinLog):
            return (yield from self._joined(task))
        assert isinstance(task, do.AppendTerm), "the last kind of task"
        return (yield from self.leader.term_appended(task))

    def _idle(self) -> Task[None]:
        yield from self._idle_module()
        yield from self.followed.idle()

    def _replayed(self, end_position: int) -> Task[None]:
        yield from self._idle()
        yield from self._replay.replayed(end_position)

    def _joined(self, action: do.JoinLog) -> Task[int]:
        # Services of a leader may stand before the position that is committed, at the end of an entry.
        yield from self._replayed(action.log_position)
        if action.role is Role.LEADER:
            yield from self._idle()
            self.followed.lead()
            return (yield from self.leader.joined(action))
        recording_id = yield from self.follower.joined(action, self._idle)
        assert self.follower.image is not None, "it is joined"
        self.followed.begin(self.follower.image)
        return recording_id

    def _left(self, log_position: int) -> Task[int]:
        """Give the log up; returns up to where the archive has it."""
        self.catchups.close()
        self.followed.leave()
        yield from self.follower.left()
        self.leader.close()
        return (yield from self.recording.end(min(log_position, self._context.commit_position)))

    def close(self) -> None:
        """Give up what the driver has for it."""
        self.follower.close()
        self.leader.close()
