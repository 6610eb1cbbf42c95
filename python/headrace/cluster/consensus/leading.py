"""A member that is elected, or leads: the term, the quorum, the commit position. Cluster specification 5.4 to 5.8."""

from __future__ import annotations

from headrace.cluster.consensus.actions import (
    AppendTerm,
    CreateLog,
    JoinLog,
    Lead,
    RecordTerm,
    ReplayLog,
    StartCatchup,
    StopReplay,
)
from headrace.cluster.consensus.peers import Peer, quorum_position
from headrace.cluster.consensus.standing import Standing
from headrace.cluster.consensus.states import ElectionState
from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.consensus import (
    AppendPosition,
    CanvassPosition,
    CatchupPosition,
    CommitPosition,
    NewLeadershipTerm,
    StopCatchup,
    TransferLeadership,
)
from headrace.positions import NULL_VALUE

__all__ = ["CATCHUP_FLAG", "Leading"]

_E = ElectionState
CATCHUP_FLAG = 1
"""Of an AppendPosition: the follower reads a replay of the log."""
# Half of what a receiver has room for by default: so much it gets from the live log, should it lack it.
_NEAR = 64 << 10


class Leading:
    """What a member does once it is elected."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing
        # The last term before its own: followers of equal logs have it.
        self._log_term_id = NULL_VALUE
        self._base = 0
        self._is_term_appended = self._is_startup = False
        # Whom the leader hands over to: -1 is any follower; none while it does not.
        self._successor_id: int | None = None

    # --- states ----------------------------------------------------------------------------------------------------

    def begin(self, reason: str) -> None:
        """The member is elected: record the term, and announce it.

        The term is recorded before it counts: a member that holds the log of a term and could forget the term would
        vote for one that lacks entries which this leader has committed.
        """
        standing = self._standing
        standing.enter(_E.LEADER_LOG_REPLICATION, reason)
        standing.role = Role.LEADER
        standing.is_first_canvass = False
        standing.leader_id = standing.config.member_id
        standing.term_id = standing.candidate_term_id
        standing.published_position = standing.append_position
        self._log_term_id = standing.terms.last_id
        self._base = standing.append_position
        self._is_term_appended = self._is_startup = False
        self._successor_id = None
        for peer in standing.peers.values():
            peer.matched_position = NULL_VALUE
        if standing.terms.begin(standing.term_id, self._base):
            standing.emit(RecordTerm(standing.term_id, self._base))
        standing.begin(CreateLog(self._base))

    def work_log_replication(self) -> None:
        """Wait until a quorum has the log and knows of the term."""
        standing = self._standing
        self._announce()
        if standing.task is None and self._quorum_position() >= self._base:
            self._agree()
            self._is_startup = standing.is_node_startup
            standing.enter(_E.LEADER_REPLAY, "a quorum has the log")
            if standing.commit_position < self._base:
                standing.begin(ReplayLog(standing.commit_position, self._base))
        else:
            self._give_up_without_quorum()

    def work_replay(self) -> None:
        """Wait until the module and its services have read the log."""
        standing = self._standing
        self._announce()
        if standing.task is None:
            standing.raise_commit(self._base)
            standing.enter(_E.LEADER_INIT, "the log is replayed")
            standing.current_term_id = standing.term_id
            standing.begin(JoinLog(Role.LEADER, standing.term_id, self._base, self._is_startup))

    def work_init(self) -> None:
        """Wait until the log is recorded, and services have joined it."""
        standing = self._standing
        self._announce()
        if standing.task is None:
            standing.enter(_E.LEADER_READY, "the log is recorded and read")
            standing.unused_term_id = None
            standing.begin(AppendTerm(standing.term_id, self._base))

    def work_ready(self) -> None:
        """Wait until a quorum is ready, and the term has its first entry."""
        standing = self._standing
        self._announce()
        self._agree()
        standing.raise_commit(standing.agreed_position)
        if self._is_term_appended and self._quorum_position() >= self._base:
            standing.enter(_E.CLOSED, "the term has begun")
            standing.emit(Lead(standing.term_id, self._base, self._is_startup))
        else:
            self._give_up_without_quorum()

    def _give_up_without_quorum(self) -> None:
        standing = self._standing
        is_late = standing.is_over(standing.state_since_ns, standing.config.leader_heartbeat_timeout_ns)
        if is_late and not standing.has_active_quorum:
            standing.restart("inactive follower quorum")

    def work_closed(self) -> None:
        """Lead: commit what a quorum has, and step down without one."""
        standing = self._standing
        if not standing.has_active_quorum:
            standing.elect("inactive follower quorum")
            return
        self._agree()
        standing.raise_commit(standing.agreed_position)
        if standing.is_send_due(standing.config.leader_heartbeat_interval_ns):
            self._send_commit_position()
        if self._successor_id is not None:
            self._step_aside(self._successor_id)

    def hand_over(self, successor_id: int | None) -> None:
        """Have a member lead that has all of the log, as soon as one has; with ``None``, go on leading."""
        self._successor_id = successor_id

    def _step_aside(self, wanted_id: int) -> None:
        standing = self._standing
        end = standing.published_position
        if standing.agreed_position < end:
            return
        ready = [
            peer.member_id
            for peer in standing.active_peers()
            if peer.matched_position >= end and wanted_id in (NULL_VALUE, peer.member_id)
        ]
        if not ready:
            return
        successor_id = min(ready)
        standing.send_all(
            TransferLeadership(
                leadership_term_id=standing.term_id,
                log_position=end,
                leader_member_id=standing.config.member_id,
                successor_member_id=successor_id,
            )
        )
        self._successor_id = None
        standing.elect(f"it hands over to member {successor_id}", successor_id=successor_id)

    # --- what the log and its archive do ---------------------------------------------------------------------------

    def on_created(self, log_session_id: int) -> None:
        """The log has a publication."""
        self._standing.log_session_id = log_session_id

    def on_term_appended(self, position: int) -> None:
        """The first entry of the term is in the log."""
        self._is_term_appended = True
        self._standing.published_position = max(self._standing.published_position, position)

    def _quorum_position(self) -> int:
        standing = self._standing
        matched = (peer.matched_position for peer in standing.active_peers())
        return quorum_position(standing.append_position, matched, len(standing.config.member_ids))

    def _agree(self) -> None:
        """Raise what is known to be committed, and say so.

        Nothing is committed by count before a quorum has all of the log that the term began with, under this term.
        """
        standing = self._standing
        position = self._quorum_position()
        if position >= self._base and position > standing.agreed_position:
            standing.agreed_position = position
            standing.is_send_due(0)
            standing.send_next_ns = standing.now_ns + standing.config.leader_heartbeat_interval_ns
            self._send_commit_position()

    def _send_commit_position(self) -> None:
        standing = self._standing
        standing.send_all(
            CommitPosition(
                leadership_term_id=standing.term_id,
                log_position=self._notified_position,
                leader_member_id=standing.config.member_id,
            )
        )

    def _announce(self) -> None:
        """Tell of the term, again and again: who has voted for another, or has lost the message, hears it."""
        standing = self._standing
        if standing.log_session_id == NULL_VALUE:
            return
        if standing.is_send_due(standing.config.leader_heartbeat_interval_ns):
            standing.send_all(self._new_term_for(self._log_term_id))
            self._send_commit_position()

    def _new_term_for(self, log_term_id: int) -> NewLeadershipTerm:
        """What a member with this last term in its log needs to know."""
        standing = self._standing
        following = standing.terms.after(log_term_id)
        is_closed = standing.is_closed
        next_id = next_base = next_end = NULL_VALUE
        if following is not None:
            next_id, next_base, next_end = (
                following.leadership_term_id,
                following.term_base_log_position,
                following.end_position,
            )
            if next_end == NULL_VALUE and not is_closed:
                next_end = standing.append_position
        elif log_term_id < standing.term_id:
            next_id, next_base = standing.term_id, self._base
        return NewLeadershipTerm(
            log_leadership_term_id=log_term_id,
            next_leadership_term_id=next_id,
            next_term_base_log_position=next_base,
            next_log_position=next_end,
            leadership_term_id=standing.term_id,
            term_base_log_position=self._base,
            log_position=standing.published_position if is_closed else standing.append_position,
            leader_recording_id=standing.recording_id,
            timestamp=NULL_VALUE,
            leader_member_id=standing.config.member_id,
            log_session_id=standing.log_session_id,
            app_version=standing.config.app_version,
            is_startup=self._is_startup and not is_closed,
            commit_position=self._notified_position,
        )

    @property
    def _notified_position(self) -> int:
        """What followers may read; 0 until a quorum has the log.

        A follower of Aeron's that hears of less than it has recorded looks for a leader again. It tells its position
        only while it has heard of nothing.
        """
        agreed = self._standing.agreed_position
        return agreed if agreed >= self._base else 0

    # --- messages --------------------------------------------------------------------------------------------------

    def tell_term(self, member_id: int, log_term_id: int) -> None:
        """Tell a member of the term, if the log can be joined."""
        if self._standing.log_session_id != NULL_VALUE:
            self._standing.send(member_id, self._new_term_for(log_term_id))

    def on_canvass(self, peer: Peer, canvass: CanvassPosition) -> None:
        """A member looks for a leader."""
        standing = self._standing
        if canvass.log_leadership_term_id > standing.term_id:
            self._step_down("a member has a log of a higher term")
            return
        if peer.catches_up:
            peer.catches_up = False
            standing.emit(StopReplay(peer.member_id))
        # A log of this term is what this leader wrote.
        is_of_term = canvass.log_leadership_term_id == standing.term_id
        peer.matched_position = canvass.log_position if is_of_term else NULL_VALUE
        self.tell_term(peer.member_id, canvass.log_leadership_term_id)

    def _step_down(self, reason: str) -> None:
        if self._standing.is_closed:
            self._standing.elect(reason)
        else:
            self._standing.restart(reason)

    def on_append_position(self, peer: Peer, message: AppendPosition) -> None:
        """A follower has recorded this much."""
        standing = self._standing
        if message.leadership_term_id > standing.term_id:
            return
        peer.heard_ns = standing.now_ns
        if message.leadership_term_id == standing.term_id:
            peer.matched_position = max(peer.matched_position, message.log_position)
        if not peer.catches_up and not message.flags & CATCHUP_FLAG:
            return
        if self._keeps_pace(peer, message.log_position):
            if peer.catches_up:
                peer.catches_up = False
                standing.emit(StopReplay(peer.member_id))
            standing.send(
                peer.member_id,
                StopCatchup(leadership_term_id=message.leadership_term_id, follower_member_id=peer.member_id),
            )

    def _keeps_pace(self, peer: Peer, position: int) -> bool:
        """Whether a follower that catches up has the log, but for what is on its way.

        Under load it never has the very end: that has moved on when its word comes. So it is enough that it is near,
        and has all that there was when it came near; meanwhile it has joined the live log.
        """
        end = self._standing.published_position
        if position < end - _NEAR:
            peer.near_position = NULL_VALUE
        elif peer.near_position == NULL_VALUE:
            peer.near_position = end
        return position >= end or position >= peer.near_position > NULL_VALUE

    def on_catchup_position(self, peer: Peer, message: CatchupPosition) -> None:
        """A follower asks for a replay of the log."""
        if message.leadership_term_id <= self._standing.term_id and not peer.catches_up:
            peer.catches_up = True
            peer.near_position = NULL_VALUE
            self._standing.emit(StartCatchup(peer.member_id, message.log_position, message.catchup_endpoint))
