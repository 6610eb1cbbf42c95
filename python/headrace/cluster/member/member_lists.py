"""Looks whether all members have listed the same members: each tells the others its list, which members of Aeron skip.

A list that differs would elect leaders by another quorum, or send votes to a machine that nobody started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cluster.common.members import difference, members_text, wire_members
from headrace.cluster.protocol.consensus import AppendPosition, CanvassPosition, MemberList, RequestVote
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.client import Header
    from headrace.cluster.common.members import Member
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.peers import Peers

__all__ = ["MemberLists"]

_INTERVAL_NS = 1_000_000_000
# Strangers choose what they send: they fill no memory.
_TOLD_MAX = 64
_SESSIONS_MAX = 64


class MemberLists:
    """Tells the others the list of this member, and logs each difference once.

    Args:
        context: What the module's parts share.
        peers: The other members.
    """

    def __init__(self, context: Context, peers: Peers) -> None:
        self._context = context
        self._peers = peers
        self._members = context.config.all_members
        self._own_id = context.config.member_id
        self._ids = frozenset(one.member_id for one in self._members)
        self._own = MemberList(member_id=self._own_id, members=members_text(self._members))
        self._leader_id = NULL_VALUE
        self._tell_next_ns = 0
        self._told: set[str] = set()
        # The streams on which each member was heard, the last one at the end.
        self._sessions: dict[int, list[int]] = {}

    def tell(self, now_ns: int) -> None:
        """Tell all others, each second while no leader is known, and once one is."""
        leader_id = self._context.leader_member_id
        if leader_id != self._leader_id or (leader_id == NULL_VALUE and now_ns >= self._tell_next_ns):
            self._leader_id = leader_id
            self._tell_next_ns = now_ns + _INTERVAL_NS
            self._peers.send_all(self._own)

    def on_message(self, message: object, header: Header) -> None:
        """Look who sends what followers and members without a leader send, and what each has listed."""
        if isinstance(message, AppendPosition | CanvassPosition):
            self._look_at_sender(message.follower_member_id, header)
        elif isinstance(message, RequestVote):
            self._look_at_sender(message.candidate_member_id, header)
        elif isinstance(message, MemberList):
            self._look_at_sender(message.member_id, header)
            self._on_list(message)

    def _on_list(self, message: MemberList) -> None:
        """Compare the list of another member, and answer one that differs: its operator may look there alone."""
        try:
            theirs = wire_members(message.members)
        except ValueError as wrong:
            self._context.log.warning("a list of members cannot be decoded", str(wrong))
            return
        other = _difference(self._members, theirs)
        if other and self._log(
            f"member {message.member_id} has another list of members: {other}; give all the same list"
        ):
            self._peers.send(message.member_id, self._own)

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
        if text in self._told or len(self._told) >= _TOLD_MAX:
            return False
        self._told.add(text)
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
