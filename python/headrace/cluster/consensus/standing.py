"""Where a member stands: what it stored, how far its log goes, whom it hears. The rooms of the core share it."""

from __future__ import annotations

import random
from dataclasses import dataclass

from headrace._base.states import EventSink, Life
from headrace.cluster.consensus.actions import (
    Action,
    LeaveLog,
    Send,
    SetCommitPosition,
    StopReplay,
    StoreVote,
    Task,
)
from headrace.cluster.consensus.peers import Log, Peer, quorum_of
from headrace.cluster.consensus.states import ELECTION, LEADER_STATES, ElectionState
from headrace.cluster.consensus.terms import Terms
from headrace.cluster.protocol.codes import Role
from headrace.positions import NULL_VALUE

__all__ = ["ConsensusConfig", "Standing", "Stored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusConfig:
    """What all members of a cluster agree on beforehand, and which one this is. Times in nanoseconds.

    Attributes:
        member_id: This member.
        member_ids: All members, this one too.
        appointed_leader_id: The only member that may lead; -1 if any may.
        startup_canvass_timeout_ns: How long a member that starts waits for all others before a quorum is enough.
        election_timeout_ns: How long a ballot takes.
        election_status_interval_ns: How often a member without a leader tells how far its log goes.
        leader_heartbeat_timeout_ns: After this silence a leader or a follower counts as lost.
        leader_heartbeat_interval_ns: How often a leader and a follower tell their positions at least.
        live_window: This many bytes from its aim a follower that catches up receives the live log too.
        app_version: The version of the services.
    """

    member_id: int
    member_ids: tuple[int, ...]
    appointed_leader_id: int = NULL_VALUE
    startup_canvass_timeout_ns: int = 60_000_000_000
    election_timeout_ns: int = 1_000_000_000
    election_status_interval_ns: int = 100_000_000
    leader_heartbeat_timeout_ns: int = 10_000_000_000
    leader_heartbeat_interval_ns: int = 200_000_000
    live_window: int = 16 << 20
    app_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What a member finds on its disk when it starts.

    Attributes:
        candidate_term_id: The highest term that it stood for or voted in.
        terms: Ids and bases of the terms in its recording log, ascending.
        snapshot_term_id: The term of its snapshot; -1 if it has none.
        log_position: The position of its snapshot: up to there it has applied the log.
        append_position: Up to where its archive has the log, and nothing else.
        recording_id: The recording of the log; -1 if there is none.
        is_replacement: The disk replaces another one, which may have been part of a quorum.
    """

    candidate_term_id: int = NULL_VALUE
    terms: tuple[tuple[int, int], ...] = ()
    snapshot_term_id: int = NULL_VALUE
    log_position: int = 0
    append_position: int = 0
    recording_id: int = NULL_VALUE
    is_replacement: bool = False


class Standing:
    """The facts of one member. It changes its state, and collects actions, only here."""

    def __init__(
        self,
        config: ConsensusConfig,
        stored: Stored,
        rng: random.Random,
        now_ns: int,
        sink: EventSink,
    ) -> None:
        self.config = config
        self.rng = rng
        self.now_ns = now_ns
        self._life = Life(ELECTION)
        self._life.begin(sink, "the member has started", config.member_id)
        self.peers = {one: Peer(one) for one in config.member_ids if one != config.member_id}
        self.quorum = quorum_of(len(config.member_ids))
        self.terms = Terms(stored.terms, stored.snapshot_term_id)
        self.append_position = stored.append_position
        """Up to where the archive has the log, on its disk."""
        self.published_position = stored.append_position
        """Up to where the leader has appended to its log."""
        self.commit_position = stored.log_position
        """Up to where the module has read the log, or services may."""
        self.agreed_position = stored.log_position
        """Up to where the log is known to be committed."""
        self.recording_id = stored.recording_id
        self.candidate_term_id = max(stored.candidate_term_id, self.terms.last_id)
        self.unused_term_id: int | None = None
        """The term of a cluster of one whose first entry is not in the log. No other member can know of it: after a
        failure the member stands for it again, or a full disk would have it store a term with each try."""
        # For whom the stored vote was is not known: it may have been for another.
        self.promised_term_id = stored.candidate_term_id
        """The highest term in which the member voted for another: it follows no leader of a lower one."""
        self.has_lost = self.terms.drop_after(stored.append_position) or stored.is_replacement
        """The archive lost what the recording log has, or its disk is another one. Others count on what was there:
        until the member has it again, it neither stands nor votes."""
        self.term_id = self.current_term_id = self.terms.last_id
        self.log_session_id = NULL_VALUE
        self.leader_id = NULL_VALUE
        self.role = Role.FOLLOWER
        self.gracefully_closed_leader_id = NULL_VALUE
        self.successor_id = NULL_VALUE
        """The member to which the last leader has handed over: until it had its time, no other one stands."""
        self.voted_for = (NULL_VALUE, NULL_VALUE)
        """The last term in which this member voted for another, and which: a repeated request gets the same vote."""
        self.is_node_startup = self.is_first_canvass = True
        self.is_paused = False
        """The module reads no log now: it takes a snapshot."""
        self.election_count = 1
        self.leader_heard_ns: int | None = None
        self.state_since_ns = self.send_next_ns = self.resume_ns = now_ns
        self.task: Task | None = None
        self.task_next: Task | None = None
        """Begun once :attr:`resume_ns` has come: the last try has failed."""
        self.actions: list[Action] = []

    # --- looks -----------------------------------------------------------------------------------------------------

    @property
    def state(self) -> ElectionState:
        """The state of the election."""
        return self._life.state

    @property
    def log(self) -> Log:
        """How far the member's log goes."""
        return self.terms.last_id, self.append_position

    @property
    def is_leading(self) -> bool:
        """Whether the member is elected, or leads."""
        return self.role is Role.LEADER

    @property
    def is_closed(self) -> bool:
        """Whether no election is under way."""
        return self._life.state is ElectionState.CLOSED

    def is_over(self, since_ns: int, timeout_ns: int) -> bool:
        """Whether a time has passed."""
        return self.now_ns - since_ns >= timeout_ns

    def active_peers(self) -> list[Peer]:
        """Those heard within the heartbeat time-out."""
        since_ns = self.now_ns - self.config.leader_heartbeat_timeout_ns
        return [peer for peer in self.peers.values() if peer.is_active(since_ns)]

    @property
    def has_active_quorum(self) -> bool:
        """Whether enough members were heard lately."""
        return not self.peers or 1 + len(self.active_peers()) >= self.quorum

    def is_send_due(self, interval_ns: int) -> bool:
        """Whether an interval has passed since the last send; the next one begins."""
        if self.now_ns < self.send_next_ns:
            return False
        self.send_next_ns = self.now_ns + interval_ns
        return True

    # --- changes ---------------------------------------------------------------------------------------------------

    def enter(self, state: ElectionState, reason: str, *, is_fault: bool = False) -> None:
        """Go to another state; what the new one sends first, it sends at once."""
        if state is not self._life.state:
            self._life.enter(state, reason, is_fault=is_fault)
            self.state_since_ns = self.send_next_ns = self.now_ns

    def emit(self, action: Action) -> None:
        """Have the member do something."""
        self.actions.append(action)

    def begin(self, task: Task) -> None:
        """Have the member begin a task, instead of the one under way."""
        self.task = task
        self.actions.append(task)

    def send(self, member_id: int, message: object) -> None:
        """Send a message to one member."""
        self.actions.append(Send(member_id, message))  # type: ignore[arg-type]

    def send_all(self, message: object) -> None:
        """Send a message to all others."""
        for member_id in self.peers:
            self.send(member_id, message)

    def store_vote(self, term_id: int, log_position: int) -> None:
        """Store a higher term before anything else of it."""
        self.candidate_term_id = term_id
        self.emit(StoreVote(term_id, log_position))

    def raise_commit(self, position: int) -> None:
        """Let services read up to a position, if it is a higher one."""
        if position > self.commit_position:
            self.commit_position = position
            self.emit(SetCommitPosition(position))

    def elect(
        self, reason: str, *, graceful_leader_id: int = NULL_VALUE, successor_id: int = NULL_VALUE
    ) -> None:
        """Leave the term: an election begins."""
        self.successor_id = successor_id
        self.election_count += 1
        self.is_node_startup = False
        self.gracefully_closed_leader_id = graceful_leader_id
        self.restart(reason)

    def restart(self, reason: str, *, is_fault: bool = False, task: Task | None = None) -> None:
        """Begin the election anew from what is committed, by leaving the log; after a fault not at once."""
        for peer in self.peers.values():
            if peer.catches_up:
                peer.catches_up = False
                self.emit(StopReplay(peer.member_id))
        is_failing = self.state is ElectionState.INIT
        self.enter(ElectionState.INIT, reason, is_fault=is_fault)
        self.role = Role.FOLLOWER
        self.leader_id = self.log_session_id = NULL_VALUE
        self.agreed_position = self.commit_position
        self.resume_ns = self.now_ns + (self.config.election_status_interval_ns if is_fault else 0)
        task = task or LeaveLog(self.commit_position)
        if is_failing:
            self.task, self.task_next = None, task
        else:
            self.begin(task)

    @property
    def is_elected(self) -> bool:
        """Whether the member is elected, and its term has not begun."""
        return self._life.state in LEADER_STATES
