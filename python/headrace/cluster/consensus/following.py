"""A member that follows a leader: replication, replay, catch-up, the live log. Cluster specification 5.4 to 5.8."""

from __future__ import annotations

from headrace.cluster.consensus.actions import (
    AddLiveLog,
    DropTerms,
    Follow,
    JoinLog,
    OpenLog,
    RecordTerm,
    RemoveCatchup,
    ReplayLog,
    ReplicateLog,
    TruncateLog,
)
from headrace.cluster.consensus.canvassing import Canvassing
from headrace.cluster.consensus.leading import CATCHUP_FLAG
from headrace.cluster.consensus.standing import Standing
from headrace.cluster.consensus.states import ElectionState
from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.consensus import (
    AppendPosition,
    CatchupPosition,
    CommitPosition,
    NewLeadershipTerm,
    StopCatchup,
    TransferLeadership,
)
from headrace.positions import NULL_VALUE

__all__ = ["Following"]

_E = ElectionState


class Following:
    """What a member does once it has heard of a leader."""

    def __init__(self, standing: Standing, canvassing: Canvassing) -> None:
        self._standing = standing
        self._canvassing = canvassing
        # The position that the leader had beyond the member's own when the member heard of it; -1 if it had no more.
        self._catchup_position = NULL_VALUE
        self._catchup_endpoint = ""
        # What the member must have read to be a follower, once the replay is over.
        self._aim = NULL_VALUE
        self._is_open = self._is_live = self._is_replay_over = self._is_startup = False
        self._told_position = NULL_VALUE
        self._progress_ns = 0

    # --- a leader is heard -----------------------------------------------------------------------------------------

    def on_new_term(self, term: NewLeadershipTerm) -> None:
        """A leader announces its term to a member that looks for one."""
        standing = self._standing
        is_ballot = standing.state in (_E.CANDIDATE_BALLOT, _E.FOLLOWER_BALLOT)
        if is_ballot and term.leadership_term_id < standing.candidate_term_id:
            return
        if term.leadership_term_id < standing.promised_term_id:
            self._canvassing.challenge()
            return
        if term.leadership_term_id < standing.terms.last_id:
            return
        if term.log_leadership_term_id != standing.terms.last_id:
            if standing.state is not _E.CANVASS:
                self._canvassing.begin("the leader is to tell what follows the own last term")
            return
        next_base = term.next_term_base_log_position
        if next_base != NULL_VALUE and next_base < standing.append_position:
            self._truncate(next_base)
            return
        self._adopt(term)

    def _truncate(self, position: int) -> None:
        """Give up what no quorum has: the leader's next term begins before the own log ends."""
        standing = self._standing
        if position < standing.commit_position:
            # No leader that a quorum elected can ask for this.
            raise AssertionError(
                f"a leader begins a term at {position}, before {standing.commit_position}, which is committed"
            )
        if standing.terms.drop_after(position):
            standing.emit(DropTerms(position))
        reason = f"the leader's log differs after {position}"
        standing.restart(reason, task=TruncateLog(position))

    def _adopt(self, term: NewLeadershipTerm) -> None:
        standing = self._standing
        if standing.has_lost:
            standing.emit(DropTerms(standing.append_position))
        standing.leader_id = term.leader_member_id
        standing.successor_id = NULL_VALUE
        standing.leader_heard_ns = standing.now_ns
        standing.term_id = term.leadership_term_id
        standing.candidate_term_id = max(standing.candidate_term_id, term.leadership_term_id)
        standing.log_session_id = term.log_session_id
        standing.role = Role.FOLLOWER
        standing.is_first_canvass = False
        standing.agreed_position = max(standing.agreed_position, term.commit_position)
        self._is_startup = term.is_startup
        is_behind = standing.append_position < term.log_position
        self._catchup_position = term.log_position if is_behind else NULL_VALUE
        self._is_open = self._is_live = self._is_replay_over = False
        self._told_position = NULL_VALUE
        if standing.append_position < term.term_base_log_position:
            self._replicate(term)
        else:
            self._record_term(term.leadership_term_id, term.term_base_log_position)
            standing.enter(_E.FOLLOWER_REPLAY, f"member {term.leader_member_id} leads")

    def _record_term(self, term_id: int, base: int) -> None:
        """Note a term that the log, up to its base, is a part of: before the leader counts on this member."""
        if self._standing.terms.begin(term_id, base):
            self._standing.emit(RecordTerm(term_id, base))

    def _replicate(self, term: NewLeadershipTerm) -> None:
        standing = self._standing
        if standing.append_position < term.next_term_base_log_position:
            stop = term.next_term_base_log_position
        elif term.next_log_position > standing.append_position:
            self._record_term(term.next_leadership_term_id, term.next_term_base_log_position)
            stop = term.next_log_position
        elif term.next_log_position == standing.append_position:
            # An empty term: the one after it is asked for next.
            self._record_term(term.next_leadership_term_id, term.next_term_base_log_position)
            self._canvassing.begin("the next term is empty")
            return
        else:
            return
        standing.enter(_E.FOLLOWER_LOG_REPLICATION, f"member {term.leader_member_id} leads, with more terms")
        self._progress_ns = standing.now_ns
        standing.begin(ReplicateLog(term.leader_member_id, term.leader_recording_id, stop))

    # --- states ----------------------------------------------------------------------------------------------------

    def work_log_replication(self) -> None:
        """Copy what the log lacks of a term; then ask for the next one."""
        standing = self._standing
        self._tell_position()
        if standing.task is None:
            self._canvassing.begin("a term is copied")
        elif standing.is_over(self._progress_ns, standing.config.leader_heartbeat_timeout_ns):
            standing.restart("log replication has not progressed", is_fault=True)

    def work_replay(self) -> None:
        """Read the own log, as far as it is known to be committed."""
        standing = self._standing
        self._tell_position()
        if standing.task is not None:
            return
        end = min(standing.append_position, standing.agreed_position)
        if standing.commit_position < end:
            standing.begin(ReplayLog(standing.commit_position, end))
        elif standing.commit_position < standing.append_position:
            self._give_up_without_leader()
        elif self._catchup_position > standing.append_position:
            standing.enter(_E.FOLLOWER_CATCHUP_INIT, "the leader has more of the log")
            self._open(is_catchup=True)
        else:
            standing.enter(_E.FOLLOWER_LOG_INIT, "the member has the whole log")

    def _open(self, *, is_catchup: bool) -> None:
        standing = self._standing
        standing.begin(OpenLog(standing.log_session_id, standing.append_position, is_catchup))

    def work_catchup_init(self) -> None:
        """Wait for the subscription, and ask for the replay."""
        standing = self._standing
        if standing.task is None:
            self._is_open = True
            standing.enter(_E.FOLLOWER_CATCHUP_AWAIT, "the replay has a place to come to")
            self._join()
        else:
            self._give_up_late("failed to send catchup position")

    def _join(self) -> None:
        standing = self._standing
        standing.begin(JoinLog(Role.FOLLOWER, standing.term_id, standing.append_position, self._is_startup))

    def work_catchup_await(self) -> None:
        """Wait until the replay is there, recorded, and read by services; ask for it meanwhile."""
        standing = self._standing
        if standing.task is None:
            self._progress_ns = standing.now_ns
            standing.enter(_E.FOLLOWER_CATCHUP, "services have joined the replay")
            return
        if standing.is_send_due(standing.config.election_status_interval_ns):
            standing.send(
                standing.leader_id,
                CatchupPosition(
                    leadership_term_id=standing.term_id,
                    log_position=standing.append_position,
                    follower_member_id=standing.config.member_id,
                    catchup_endpoint=self._catchup_endpoint,
                ),
            )
        self._give_up_late("failed to join catchup log")

    def work_catchup(self) -> None:
        """Read the replay, and the live log beside it, until nothing lacks."""
        standing = self._standing
        self._tell_position(CATCHUP_FLAG)
        # Once the replay is over the aim moves no more: under load a member that follows is always a little behind.
        aim = self._aim if self._is_replay_over else self._present_aim()
        if not self._is_live and standing.commit_position >= aim - standing.config.live_window:
            self._is_live = True
            standing.emit(AddLiveLog())
        if self._is_replay_over and standing.commit_position >= aim and not standing.is_paused:
            standing.enter(_E.FOLLOWER_LOG_INIT, "the member has what the leader has")
        elif standing.is_over(self._progress_ns, standing.config.leader_heartbeat_timeout_ns):
            standing.restart("no catchup progress", is_fault=True)

    def _present_aim(self) -> int:
        return max(self._catchup_position, self._standing.agreed_position)

    def work_log_init(self) -> None:
        """Subscribe to the live log, if that is not done."""
        standing = self._standing
        if self._is_open:
            standing.enter(_E.FOLLOWER_READY, "the member reads the live log")
        elif standing.task is None:
            self._open(is_catchup=False)
        else:
            self._give_up_late("failed to join live log")

    def on_opened(self, endpoint: str) -> None:
        """The subscription is there."""
        standing = self._standing
        if standing.state is _E.FOLLOWER_CATCHUP_INIT:
            self._catchup_endpoint = endpoint
        else:
            self._is_live = True
            standing.enter(_E.FOLLOWER_LOG_AWAIT, "the log has a place to come to")
            self._join()

    def work_log_await(self) -> None:
        """Wait until the log is there, recorded, and read by services."""
        standing = self._standing
        self._tell_position()
        if standing.task is None:
            self._is_open = True
            standing.enter(_E.FOLLOWER_READY, "services have joined the log")
        else:
            self._give_up_late("failed to join live log")

    def work_ready(self) -> None:
        """Tell the leader, and follow."""
        standing = self._standing
        standing.current_term_id = standing.term_id
        self._tell_position()
        # What a power cut took from the member, it has again.
        standing.has_lost = False
        standing.leader_heard_ns = standing.now_ns
        standing.enter(_E.CLOSED, f"the member follows member {standing.leader_id}")
        standing.emit(Follow(standing.term_id, standing.commit_position, standing.leader_id))

    def work_closed(self) -> None:
        """Follow: tell the own position, and look for another leader when this one is silent."""
        standing = self._standing
        heard_ns = standing.leader_heard_ns
        assert heard_ns is not None, "a follower has heard its leader"
        if standing.is_over(heard_ns, standing.config.leader_heartbeat_timeout_ns):
            standing.elect("leader heartbeat timeout")
        else:
            self._tell_position()

    def _give_up_late(self, reason: str) -> None:
        standing = self._standing
        if standing.is_over(standing.state_since_ns, standing.config.leader_heartbeat_timeout_ns):
            standing.restart(reason, is_fault=True)

    def _give_up_without_leader(self) -> None:
        standing = self._standing
        heard_ns = standing.leader_heard_ns
        if heard_ns is not None and standing.is_over(heard_ns, standing.config.leader_heartbeat_timeout_ns):
            standing.restart("the leader is silent")

    # --- positions -------------------------------------------------------------------------------------------------

    def _tell_position(self, flags: int = 0) -> None:
        standing = self._standing
        is_new = standing.append_position > self._told_position
        if is_new or standing.now_ns >= standing.send_next_ns:
            standing.send_next_ns = standing.now_ns + standing.config.leader_heartbeat_interval_ns
            self._told_position = standing.append_position
            standing.send(
                standing.leader_id,
                AppendPosition(
                    leadership_term_id=standing.current_term_id if flags else standing.term_id,
                    log_position=standing.append_position,
                    follower_member_id=standing.config.member_id,
                    flags=flags,
                ),
            )

    def on_recorded(self) -> None:
        """The archive has more of the log."""
        self._progress_ns = self._standing.now_ns

    # --- messages --------------------------------------------------------------------------------------------------

    def on_commit_position(self, message: CommitPosition | NewLeadershipTerm) -> None:
        """The leader that the member follows has committed this much."""
        standing = self._standing
        standing.leader_heard_ns = standing.now_ns
        position = message.log_position if isinstance(message, CommitPosition) else message.commit_position
        standing.agreed_position = max(standing.agreed_position, position)

    def on_transfer(self, message: TransferLeadership) -> None:
        """The leader that the member follows steps down, and names its successor."""
        standing = self._standing
        is_its = (
            message.leadership_term_id == standing.term_id and message.leader_member_id == standing.leader_id
        )
        if standing.is_closed and is_its:
            successor_id = message.successor_member_id
            standing.elect(
                f"member {standing.leader_id} hands over to member {successor_id}",
                graceful_leader_id=standing.leader_id,
                successor_id=successor_id,
            )

    def on_stop_catchup(self, message: StopCatchup) -> None:
        """The leader replays no more: the live log has the rest."""
        standing = self._standing
        if (
            standing.state is _E.FOLLOWER_CATCHUP
            and message.leadership_term_id == standing.current_term_id
            and not self._is_replay_over
        ):
            self._is_replay_over = True
            self._aim = self._present_aim()
            if not self._is_live:
                self._is_live = True
                standing.emit(AddLiveLog())
            standing.emit(RemoveCatchup())
