"""Has the log replace a member by a machine at another address, as an operator wants. Design note 56."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._base.exceptions import ConfigError
from headrace.cluster.common.members import Member, members_text, replaced, single_member
from headrace.cluster.consensus.peers import quorum_of
from headrace.cluster.errors import ClusterError
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace._agent.tasks import Task
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.election import Election
    from headrace.cluster.member.log_writer import LogWriter
    from headrace.cluster.member.member_lists import MemberLists
    from headrace.cluster.member.roll_call import RollCall

__all__ = ["Replacement"]

# So many time-outs of a leader the others have to take the list.
_TIMEOUTS = 3


class Replacement:
    """Changes the address of a member.

    Args:
        context: What the module's parts share.
        lists: Knows who is heard, and what each has listed.
        roll_call: Finds out which members are ours.
        election: Knows who is there, and who follows.
    """

    def __init__(
        self,
        context: Context,
        lists: MemberLists,
        roll_call: RollCall,
        election: Callable[[], Election],
    ) -> None:
        self._context = context
        self._lists = lists
        self._roll_call = roll_call
        self._election = election

    def replaced(self, writer: Callable[[], LogWriter | None], member_id: int, text: str) -> Task[str]:
        """Goes on once a quorum has the new list; returns what to tell the operator.

        Args:
            writer: Appends to the log, while this member leads.
            member_id: Which member.
            text: Its host, or its endpoints.

        Raises:
            ClusterError: It cannot be done safely; the text says why.
        """
        context, table = self._context, self._context.members
        members = self._members(member_id, text)
        new = single_member(members, member_id)
        self._check(member_id, new)
        others = self._others(member_id)
        foreign = others - (yield from self._roll_call.answered(others))
        if foreign:
            ids = ", ".join(map(str, sorted(foreign)))
            raise ClusterError(
                f"member {ids} has not answered a question that only members of Headrace answer: a member of Aeron "
                "would skip the change, and send to the old address"
            )
        # Time has passed.
        self._check(member_id, new)
        position = None
        while position is None:
            log = writer()
            if log is None:
                raise ClusterError("the member leads no more")
            position = log.replacement(member_id, context.now, members_text(members))
            if position is None:
                yield
        found = position
        context.applied.when_committed(position, lambda: table.adopt(found, members))
        yield from self._taken(position)
        return (
            f"member {member_id} is at {new.consensus_endpoint} now: start it there with an empty directory, the new "
            "list, and --replacement"
        )

    def _taken(self, position: int) -> Task[None]:
        context, table = self._context, self._context.members
        deadline = context.clock.deadline(_TIMEOUTS * context.config.leader_heartbeat_timeout_ns / 1e9)
        while table.position < position or not table.is_admitted:
            if deadline.is_over:
                raise ClusterError(
                    f"the change is in the log at log_position={position}, and not yet taken by a quorum of the other "
                    "members: it will be, once they are there; until then nobody speaks to the new one"
                )
            yield

    def _members(self, member_id: int, text: str) -> tuple[Member, ...]:
        """The new list."""
        members = self._context.members.current
        ids = [one.member_id for one in members]
        if member_id not in ids:
            raise ClusterError(f"there is no member {member_id}: the members are {', '.join(map(str, ids))}")
        if member_id == self._context.config.member_id:
            raise ClusterError(
                f"member {member_id} leads: a leader cannot replace itself; transfer leadership first, and end it"
            )
        try:
            changed = replaced(members, member_id, text)
        except ConfigError as wrong:
            raise ClusterError(str(wrong)) from wrong
        if changed == members:
            raise ClusterError(
                f"member {member_id} is at {text} already: start it with an empty directory and --replacement"
            )
        return changed

    def _others(self, member_id: int) -> set[int]:
        """The followers that were heard lately, without the one that is replaced."""
        return set(self._election().active_ids) - {member_id}

    def _check(self, member_id: int, new: Member) -> None:
        """Look for what makes it unsafe.

        Raises:
            ClusterError: Something does.
        """
        table, others = self._context.members, self._others(member_id)
        if 1 + len(others) < quorum_of(len(table.current)):
            raise ClusterError(
                f"of the members other than {member_id} only {sorted({self._context.config.member_id, *others})} are "
                "there, which is no majority: the change could not be committed. Start the others first"
            )
        source = self._lists.heard_elsewhere(member_id, new)
        if source is not None:
            raise ClusterError(
                f"member {member_id} is heard from {source}: end it there, for good, before another machine takes its "
                "place; two machines must not vote as one member"
            )
        other = self._lists.listed_otherwise(others)
        if other:
            raise ClusterError(f"{other}: give all members the same list first")
        self._check_last(member_id)

    def _check_last(self, member_id: int) -> None:
        """Refuse another replacement before the last one is done: its member would be missing too."""
        table = self._context.members
        active = self._election().active_ids
        peers = self._election().core.peers
        for changed_id in table.changed_ids - {member_id, self._context.config.member_id}:
            if changed_id not in active or peers[changed_id].matched_position == NULL_VALUE:
                raise ClusterError(
                    f"member {changed_id}, which was replaced last, does not follow yet: start it, and wait until it "
                    "has the log; or replace it again"
                )
