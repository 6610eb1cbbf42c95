"""What operators can have a member do, and the snapshots that it copies from others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cluster.member.commands import Commands
from headrace.cluster.member.follower_snapshots import FollowerSnapshots
from headrace.cluster.member.node_requests import NodeRequests
from headrace.cluster.member.operator_requests import OperatorRequests
from headrace.cluster.member.replacement import Replacement
from headrace.cluster.member.standby_snapshots import StandbySnapshots
from headrace.cluster.member.states import Command

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace._agent.tasks import RunningTask
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.election import Election
    from headrace.cluster.member.leader_log import LeaderLog
    from headrace.cluster.member.peers import Peers
    from headrace.cluster.member.roll_call import RollCall
    from headrace.cluster.member.services import Services
    from headrace.cluster.member.snapshots import Snapshots
    from headrace.cluster.member.termination import Termination

__all__ = ["Operators"]


class Operators:
    """What operators ask for, by toggles and by messages.

    Args:
        context: What the module's parts share.
        peers: The other members.
        services: Takes answers to tools.
        snapshots: Takes snapshots.
        termination: Ends the cluster.
        leader_log: Appends to the log.
        roll_call: Finds out which members are ours.
        task: What the module is on; what takes long is begun there.
        election: Knows who is there, and hands over.
    """

    def __init__(
        self,
        context: Context,
        peers: Peers,
        services: Services,
        snapshots: Snapshots,
        termination: Termination,
        leader_log: LeaderLog,
        roll_call: RollCall,
        task: RunningTask,
        election: Callable[[], Election],
    ) -> None:
        self.requests = OperatorRequests(
            context, snapshots, termination, lambda one: election().hand_over(one), task
        )
        self.standby_snapshots = StandbySnapshots(context)
        self.follower_snapshots = FollowerSnapshots(
            context, peers, snapshots, self.standby_snapshots, roll_call, lambda: election().active_ids
        )
        self._node_requests = NodeRequests(context, snapshots, self.standby_snapshots, task)
        replacement = Replacement(context, peers.lists, roll_call, election)
        self.commands = Commands(
            context,
            services.answer,
            {
                Command.SNAPSHOT_ON_FOLLOWER: lambda member_id, _: self.follower_snapshots.taken(
                    lambda: leader_log.writer, member_id
                ),
                Command.REPLACE_MEMBER: lambda member_id, text: replacement.replaced(
                    lambda: leader_log.writer, member_id, text
                ),
            },
        )

    def do_work(self) -> int:
        """Go on, and look what is asked of this member alone; on slow ticks, between elections."""
        return self.follower_snapshots.do_work() + self.commands.do_work() + self._node_requests.do_work()

    def leave(self) -> None:
        """The member leaves the log."""
        self.commands.leave()
