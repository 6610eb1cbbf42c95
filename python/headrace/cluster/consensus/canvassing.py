"""Members without a leader: canvass, nomination and ballots. Cluster specification 5.4, states 0 to 4."""

from __future__ import annotations

from collections.abc import Callable

from headrace.cluster.consensus.standing import Standing
from headrace.cluster.consensus.states import ElectionState
from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.consensus import CanvassPosition, RequestVote, Vote
from headrace.positions import NULL_VALUE

__all__ = ["Canvassing"]

_E = ElectionState
_VOTES_IN = (_E.CANVASS, _E.NOMINATE, _E.CANDIDATE_BALLOT, _E.FOLLOWER_BALLOT)


class Canvassing:
    """How a member finds out who has the best log, stands, and votes.

    Args:
        standing: Where the member stands.
        lead: Called once the member is elected.
    """

    def __init__(self, standing: Standing, lead: Callable[[str], None]) -> None:
        self._standing = standing
        self._lead = lead
        self._nomination_ns = 0

    # --- states ----------------------------------------------------------------------------------------------------

    def work_init(self) -> None:
        """Wait until the log is left, and begin."""
        standing = self._standing
        if standing.now_ns < standing.resume_ns or standing.task is not None:
            return
        if standing.task_next is not None:
            standing.begin(standing.task_next)
            standing.task_next = None
        elif standing.peers:
            self.begin("the member looks for a leader")
        else:
            self._stand_alone()

    def _stand_alone(self) -> None:
        standing = self._standing
        if standing.unused_term_id != standing.candidate_term_id:
            standing.store_vote(standing.candidate_term_id + 1, standing.append_position)
            standing.unused_term_id = standing.candidate_term_id
        self._lead("a cluster of one has all votes")

    def left(self, append_position: int) -> None:
        """The log is given up; the archive has it up to a position."""
        self._standing.append_position = append_position

    def begin(self, reason: str) -> None:
        """Look for a leader, and for who could be one."""
        standing = self._standing
        standing.enter(_E.CANVASS, reason)
        standing.role = Role.FOLLOWER
        standing.leader_id = NULL_VALUE
        for peer in standing.peers.values():
            peer.forget()

    def work_canvass(self) -> None:
        """Tell the own log, and stand if it is the best one."""
        self._tell_log()
        standing = self._standing
        votes = 1 + sum(peer.votes_for(standing.log) for peer in standing.peers.values())
        if not self._may_stand() or votes < standing.quorum:
            return
        is_unanimous = all(
            peer.votes_for(standing.log)
            for peer in standing.peers.values()
            if peer.member_id != standing.gracefully_closed_leader_id
        )
        if standing.successor_id == standing.config.member_id:
            self._nominate("the leader has handed over to it", 0)
        elif is_unanimous:
            self._nominate("all members would vote for it", self._delay_of_equals())
        elif standing.now_ns >= self._deadline_ns():
            self._nominate("a quorum would vote for it", self._random_delay())

    def _may_stand(self) -> bool:
        standing = self._standing
        appointed = standing.config.appointed_leader_id
        own_id = standing.config.member_id
        # It stands by itself, or cannot.
        waits_for_other = standing.successor_id not in (NULL_VALUE, own_id) and not standing.is_over(
            standing.state_since_ns, standing.config.election_timeout_ns
        )
        return not standing.has_lost and not waits_for_other and appointed in (NULL_VALUE, own_id)

    def _deadline_ns(self) -> int:
        """From when on a quorum is enough."""
        standing = self._standing
        if standing.is_first_canvass:
            return standing.state_since_ns + standing.config.startup_canvass_timeout_ns
        if standing.leader_heard_ns is None:
            return standing.now_ns
        return standing.leader_heard_ns + standing.config.leader_heartbeat_timeout_ns

    def _tell_log(self) -> None:
        standing = self._standing
        if standing.is_send_due(standing.config.election_status_interval_ns):
            term_id, position = standing.log
            standing.send_all(
                CanvassPosition(
                    log_leadership_term_id=term_id,
                    log_position=position,
                    leadership_term_id=standing.term_id,
                    follower_member_id=standing.config.member_id,
                )
            )

    def _nominate(self, reason: str, delay_ns: int) -> None:
        standing = self._standing
        standing.enter(_E.NOMINATE, reason)
        standing.is_first_canvass = False
        self._nomination_ns = standing.now_ns + delay_ns

    def _random_delay(self) -> int:
        standing = self._standing
        return int(standing.rng.random() * standing.config.election_timeout_ns / 2)

    def _delay_of_equals(self) -> int:
        """Where all would vote for each of several, one stands at once, and the others only if it does not."""
        standing = self._standing
        before = sum(
            peer.log == standing.log and peer.member_id < standing.config.member_id
            for peer in standing.peers.values()
        )
        return before * standing.config.election_timeout_ns // 4

    def challenge(self) -> None:
        """Stand against a leader of a lower term than one in which the member voted: it must not follow that leader."""
        if self._standing.state is _E.CANVASS and self._may_stand():
            self._nominate("it voted in a higher term than the leader's", self._random_delay())

    def work_nominate(self) -> None:
        """Wait a moment, so that not all stand at once; then vote for itself."""
        self._tell_log()
        standing = self._standing
        if standing.now_ns < self._nomination_ns:
            return
        standing.store_vote(standing.candidate_term_id + 1, standing.append_position)
        for peer in standing.peers.values():
            peer.clear_vote()
        standing.enter(_E.CANDIDATE_BALLOT, f"it stands for term {standing.candidate_term_id}")
        standing.role = Role.CANDIDATE

    def work_candidate_ballot(self) -> None:
        """Ask for votes, and count them."""
        standing = self._standing
        if standing.is_send_due(standing.config.election_status_interval_ns):
            term_id, position = standing.log
            request = RequestVote(
                log_leadership_term_id=term_id,
                log_position=position,
                candidate_term_id=standing.candidate_term_id,
                candidate_member_id=standing.config.member_id,
            )
            for peer in standing.peers.values():
                if peer.vote is None:
                    standing.send(peer.member_id, request)
        votes = [peer.vote for peer in standing.peers.values()]
        # A refusal leaves it to the time-out: a better log, or a higher term, may be about to lead.
        if 1 + votes.count(True) >= standing.quorum and False not in votes:
            self._lead(f"it has the votes of term {standing.candidate_term_id}")
        elif standing.is_over(standing.state_since_ns, standing.config.election_timeout_ns):
            self.begin("there were too few votes")

    def work_follower_ballot(self) -> None:
        """Wait for the leader that the member has voted for."""
        standing = self._standing
        if standing.is_over(standing.state_since_ns, standing.config.election_timeout_ns):
            self.begin("the ballot elected no leader")

    # --- messages --------------------------------------------------------------------------------------------------

    def on_request_vote(self, request: RequestVote) -> None:
        """Vote: once a term, and for no log that is worse than the own one."""
        standing = self._standing
        candidate = (request.log_leadership_term_id, request.log_position)
        if standing.has_lost and standing.log <= candidate:
            # It abstains: a refusal leaves a ballot to its time-out, and no leader would come whom it could follow.
            return
        if request.candidate_term_id <= standing.candidate_term_id:
            asked = request.candidate_term_id, request.candidate_member_id
            self._vote(request, in_favour=asked == standing.voted_for)
            return
        if standing.log > candidate:
            standing.store_vote(request.candidate_term_id, request.log_position)
            self._vote(request, in_favour=False)
        elif standing.state in _VOTES_IN:
            standing.store_vote(request.candidate_term_id, request.log_position)
            standing.promised_term_id = request.candidate_term_id
            standing.voted_for = request.candidate_term_id, request.candidate_member_id
            self._vote(request, in_favour=True)
            standing.role = Role.FOLLOWER
            standing.is_first_canvass = False
            standing.enter(_E.FOLLOWER_BALLOT, f"it voted for member {request.candidate_member_id}")

    def _vote(self, request: RequestVote, *, in_favour: bool) -> None:
        standing = self._standing
        term_id, position = standing.log
        standing.send(
            request.candidate_member_id,
            Vote(
                candidate_term_id=request.candidate_term_id,
                log_leadership_term_id=term_id,
                log_position=position,
                candidate_member_id=request.candidate_member_id,
                follower_member_id=standing.config.member_id,
                vote=in_favour,
            ),
        )

    def on_vote(self, vote: Vote) -> None:
        """Count a vote of this ballot; a member of Aeron refuses a request that is repeated."""
        standing = self._standing
        is_mine = vote.candidate_member_id == standing.config.member_id
        if (
            standing.state is not _E.CANDIDATE_BALLOT
            or not is_mine
            or vote.candidate_term_id != standing.candidate_term_id
        ):
            return
        peer = standing.peers[vote.follower_member_id]
        peer.vote = vote.vote or bool(peer.vote)
        peer.tells((vote.log_leadership_term_id, vote.log_position), standing.now_ns)
