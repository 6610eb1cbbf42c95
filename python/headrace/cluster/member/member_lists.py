"""Looks whether all members have listed the same members: each tells the others its list, which members of Aeron skip.

A list that differs would elect leaders by another quorum, or send votes to a machine that nobody started. A list that
the log has changed is numbered; one that is later is taken over, and who has an earlier one is not heard
(:mod:`headrace.cluster.member.member_table`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.cluster.common.members import difference, members_text, wire_members
from headrace.cluster.consensus.peers import quorum_of
from headrace.cluster.protocol.consensus import (
    AppendPosition,
    CanvassPosition,
    CatchupPosition,
    CommitPosition,
    LeaderProbe,
    MemberList,
    NewLeadershipTerm,
    RequestVote,
    TransferLeadership,
    Vote,
)
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.client import Header
    from headrace.cluster.common.members import Member
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.peers import Peers

__all__ = ["MemberLists"]

_INTERVAL_NS = 1_000_000_000
# After so long a stream is asked again whose list is not known.
_ASK_NS = 100_000_000
# Strangers choose what they send: they fill no memory.
_TOLD_MAX = 64
_SESSIONS_MAX = 64


# In which field of a message its sender is named.
_SENDERS: dict[type, str] = {
    AppendPosition: "follower_member_id",
    CanvassPosition: "follower_member_id",
    CatchupPosition: "follower_member_id",
    Vote: "follower_member_id",
    RequestVote: "candidate_member_id",
    CommitPosition: "leader_member_id",
    NewLeadershipTerm: "leader_member_id",
    LeaderProbe: "leader_member_id",
    TransferLeadership: "leader_member_id",
    MemberList: "member_id",
}


@dataclass(slots=True)
class _Told:
    """What is known of a stream."""

    member_id: int
    heard_ns: int = NULL_VALUE
    position: int = NULL_VALUE
    members: tuple[Member, ...] | None = None
    ask_next_ns: int = 0


class MemberLists:
    """Tells the others the list of this member, and logs each difference once.

    Args:
        context: What the module's parts share.
        peers: The other members.
    """

    def __init__(self, context: Context, peers: Peers) -> None:
        self._context = context
        self._peers = peers
        self._table = context.members
        self._own_id = context.config.member_id
        self._ids = frozenset(one.member_id for one in self._table.current)
        self._leader_id = NULL_VALUE
        self._version = self._table.version
        self._tell_next_ns = 0
        self._logged: set[str] = set()
        # The streams on which each member was heard, the last one at the end.
        self._sessions: dict[int, list[int]] = {}
        # By stream.
        self._told: dict[int, _Told] = {}

    def _own(self, *, is_asking: bool = False) -> MemberList:
        table = self._table
        return MemberList(
            member_id=self._own_id,
            log_position=table.position,
            is_admitted=table.is_admitted,
            is_asking=is_asking,
            members=members_text(table.current),
        )

    def tell(self, now_ns: int) -> None:
        """Tell all others, each second while no leader is known, and once one is, or the list has changed."""
        leader_id, version = self._context.leader_member_id, self._table.version
        is_new = (leader_id, version) != (self._leader_id, self._version)
        if is_new or (leader_id == NULL_VALUE and now_ns >= self._tell_next_ns):
            self._leader_id, self._version = leader_id, version
            self._tell_next_ns = now_ns + _INTERVAL_NS
            self._peers.send_all(self._own())
        self._admit()

    # --- who is heard ----------------------------------------------------------------------------------------------

    def counts(self, header: Header) -> bool:
        """Whether the member on a stream has the list of this one; asks one that has not told it."""
        if self._table.position == NULL_VALUE:
            return True
        told = self._told.get(header.session_id)
        if told is not None and told.position >= self._table.position:
            return True
        if told is not None and self._context.now_ns >= told.ask_next_ns:
            told.ask_next_ns = self._context.now_ns + _ASK_NS
            self._peers.send(told.member_id, self._own(is_asking=True))
        return False

    def heard_elsewhere(self, member_id: int, wanted: Member) -> str | None:
        """Where a member was heard lately that is not the one that is wanted; ``None`` if it was not."""
        since_ns = self._context.now_ns - self._context.config.leader_heartbeat_timeout_ns
        for session_id, told in self._told.items():
            is_wanted = told.members is not None and wanted in told.members
            if told.member_id == member_id and told.heard_ns > since_ns and not is_wanted:
                return self._source(session_id)
        return None

    def listed_otherwise(self, member_ids: Iterable[int]) -> str:
        """How the lists of these members, which were heard lately, differ from this one's; empty if they do not."""
        since_ns = self._context.now_ns - self._context.config.leader_heartbeat_timeout_ns
        wanted = set(member_ids)
        for told in self._told.values():
            if told.member_id in wanted and told.heard_ns > since_ns and told.members is not None:
                other = _difference(self._table.current, told.members)
                if other:
                    return f"member {told.member_id} lists other members: {other}"
        return ""

    # --- what they say ---------------------------------------------------------------------------------------------

    def on_message(self, message: object, header: Header) -> None:
        """Look who sends what followers and members without a leader send, and what each has listed."""
        sender_id = getattr(message, _SENDERS.get(type(message), ""), None)
        if sender_id is not None:
            self._note_heard(sender_id, header.session_id)
        if isinstance(message, AppendPosition | CanvassPosition):
            self._look_at_sender(message.follower_member_id, header)
        elif isinstance(message, RequestVote):
            self._look_at_sender(message.candidate_member_id, header)
        elif isinstance(message, MemberList):
            self._look_at_sender(message.member_id, header)
            self._on_list(message, header)

    def _on_list(self, message: MemberList, header: Header) -> None:
        """Take a later list; compare one that should be the same, and answer one that differs."""
        try:
            theirs = wire_members(message.members)
        except ValueError as wrong:
            self._context.log.warning("a list of members cannot be decoded", str(wrong))
            return
        table = self._table
        told = self._told.get(header.session_id)
        if told is not None:
            told.position, told.members = message.log_position, theirs
        if {one.member_id for one in theirs} == self._ids and table.adopt(
            message.log_position, theirs, is_admitted=message.is_admitted
        ):
            self._context.log.info(
                f"member {message.member_id} has told members that the log has changed at log_position="
                f"{message.log_position}"
            )
        if message.log_position == table.position:
            self._compare(message.member_id, theirs)
        if message.is_asking or message.log_position < table.position:
            self._answer(message.member_id, header.session_id)

    def _answer(self, member_id: int, session_id: int) -> None:
        told = self._told.get(session_id)
        now_ns = self._context.now_ns
        # Two that have different lists for good do not fill the network.
        if told is not None and now_ns >= told.ask_next_ns:
            told.ask_next_ns = now_ns + _ASK_NS
            self._peers.send(member_id, self._own())

    def _admit(self) -> None:
        """Once a quorum without the member that was changed has the list, that one may be spoken to."""
        table = self._table
        if table.is_admitted:
            return
        since_ns = self._context.now_ns - self._context.config.leader_heartbeat_timeout_ns
        having = {self._own_id} | {
            told.member_id
            for told in self._told.values()
            if told.position == table.position and told.heard_ns > since_ns
        }
        if len(having - table.changed_ids) >= quorum_of(len(table.current)):
            table.admit()

    def _compare(self, member_id: int, theirs: tuple[Member, ...]) -> None:
        other = _difference(self._table.current, theirs)
        if other and self._log(
            f"member {member_id} has another list of members: {other}; give all the same list"
        ):
            # Its operator may look there alone.
            self._peers.send(member_id, self._own())

    def _look_at_sender(self, member_id: int, header: Header) -> None:
        session_id = header.session_id
        sessions = self._sessions.get(member_id)
        if sessions is not None and sessions[-1] == session_id:
            return
        if member_id == self._own_id:
            own = self._context.config.member.consensus_endpoint
            self._log_twice(member_id, own, self._source(session_id))
        elif member_id not in self._ids:
            ids = ", ".join(map(str, sorted(self._ids)))
            self._log(
                f"member {member_id} at {self._source(session_id)} is not in members, which are {ids}: "
                "add it everywhere, or stop it"
            )
        else:
            self._note_session(member_id, session_id)

    def _note_heard(self, member_id: int, session_id: int) -> None:
        told = self._told.get(session_id)
        if told is None or told.member_id != member_id:
            told = self._told[session_id] = _Told(member_id)
            if len(self._told) > _SESSIONS_MAX:
                del self._told[min(self._told, key=lambda one: self._told[one].heard_ns)]
        told.heard_ns = self._context.now_ns

    def _note_session(self, member_id: int, session_id: int) -> None:
        """Remember a stream of a member. A process that starts again has a new one, and never the one before."""
        sessions = self._sessions.setdefault(member_id, [])
        if session_id in sessions:
            self._log_twice(member_id, self._source(sessions[-1]), self._source(session_id))
            sessions.remove(session_id)
        sessions.append(session_id)
        del sessions[:-_SESSIONS_MAX]

    def _log_twice(self, member_id: int, first: str, second: str) -> None:
        # Whoever speaks last, the text is the same.
        one, other = sorted((first, second))
        self._log(
            f"two processes are member {member_id}, at {one} and at {other}: give each its own member_id"
        )

    def _source(self, session_id: int) -> str:
        """Where a stream comes from, as ``ip:port``."""
        subscription = self._peers.subscription
        image = None if subscription is None else subscription.image_by_session_id(session_id)
        return "an address that is gone" if image is None else image.source_identity

    def _log(self, text: str) -> bool:
        """Log an error, unless it was logged before; returns whether it was."""
        if text in self._logged or len(self._logged) >= _TOLD_MAX:
            return False
        self._logged.add(text)
        self._context.log.error(text)
        return True


def _difference(ours: Iterable[Member], theirs: Iterable[Member]) -> str:
    """By one endpoint of each if that is enough, as most lists are made of hosts."""

    def of(members: Iterable[Member], *, shows_all: bool) -> dict[int, str]:
        return {
            one.member_id: ",".join(one.endpoints) if shows_all else one.consensus_endpoint for one in members
        }

    return difference(of(ours, shows_all=False), of(theirs, shows_all=False)) or difference(
        of(ours, shows_all=True), of(theirs, shows_all=True)
    )
