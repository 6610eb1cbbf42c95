"""What a member knows of the others, and what a quorum of them has. Cluster specification 5.3, 5.4, 5.6."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.positions import NULL_VALUE

__all__ = ["Log", "Peer", "quorum_of", "quorum_position"]

Log = tuple[int, int]
"""How far a log goes: its last term and its position. The greater one is the better log."""


def quorum_of(member_count: int) -> int:
    """How many members must agree."""
    return member_count // 2 + 1


class Peer:
    """Another member, as its messages show it.

    Attributes:
        member_id: Its id.
        log: Its last term and position; None if it has not told.
        matched_position: Up to where it has the log of this leader's term; -1 if that is not known.
        heard_ns: When it last told how far its log goes; None if it never did.
        vote: How it voted in the ballot of this member; None if it has not.
        catches_up: The log is being replayed to it.
        near_position: Where the log ended when it came near that while it caught up; -1 if it is not near.
    """

    __slots__ = ("catches_up", "heard_ns", "log", "matched_position", "member_id", "near_position", "vote")

    def __init__(self, member_id: int) -> None:
        self.member_id = member_id
        self.heard_ns: int | None = None
        self.catches_up = False
        self.near_position = NULL_VALUE
        self.forget()

    def forget(self) -> None:
        """Forget what it told in the last election."""
        self.log: Log | None = None
        self.matched_position = NULL_VALUE
        self.clear_vote()

    def clear_vote(self) -> None:
        """Forget its vote: a new ballot begins."""
        self.vote: bool | None = None

    def tells(self, log: Log, now_ns: int) -> None:
        """It has told how far its log goes."""
        self.log = log
        self.heard_ns = now_ns

    def is_active(self, since_ns: int) -> bool:
        """Whether it was heard since then."""
        return self.heard_ns is not None and self.heard_ns > since_ns

    def votes_for(self, candidate: Log) -> bool:
        """Whether it will vote for a log. Whether it is active does not matter: no one's death hinders an election."""
        return self.log is not None and self.log <= candidate


def quorum_position(own_position: int, others: Iterable[int], member_count: int) -> int:
    """Up to where a quorum has the log, of which the leader's archive has this much: it commits no more than that."""
    if member_count == 1:
        return own_position
    positions = sorted([own_position, *others], reverse=True)
    quorum = quorum_of(member_count)
    return min(own_position, positions[quorum - 1]) if len(positions) >= quorum else NULL_VALUE
