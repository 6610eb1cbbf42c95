"""The decisions of one member: news in, actions out. Cluster specification 5.

It is deterministic: the same news at the same times, with the same random numbers, give the same actions. Where it is
stricter than the reference, so that nothing committed is lost, no message shows it:

- A member stores a leader's term in its recording log before it reports a position under it, and a leader before it
  counts itself. Otherwise one that holds the committed log could vote for a longer log of an older term.
- Only positions that were reported under the leader's term, or for a log whose last term is that one, count.
- A member that voted for another follows no leader of a lower term: the one that it voted for may be about to lead.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from headrace._base.states import EventSink, NoEvents
from headrace.cluster.consensus.actions import (
    Action,
    AppendTerm,
    CreateLog,
    JoinLog,
    LeaveLog,
    Message,
    OpenLog,
    ReplicateLog,
    StartCatchup,
    Store,
    StoreVote,
    Task,
    TruncateLog,
)
from headrace.cluster.consensus.canvassing import Canvassing
from headrace.cluster.consensus.following import Following
from headrace.cluster.consensus.leading import Leading
from headrace.cluster.consensus.peers import Peer
from headrace.cluster.consensus.standing import ConsensusConfig, Standing, Stored
from headrace.cluster.consensus.states import ElectionState
from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.consensus import (
    AppendPosition,
    CanvassPosition,
    CatchupPosition,
    CommitPosition,
    NewLeadershipTerm,
    RequestVote,
    StopCatchup,
    TransferLeadership,
    Vote,
)
from headrace.positions import NULL_VALUE

__all__ = ["Consensus"]

_E = ElectionState
_NO_EVENTS = NoEvents()
_HEARS_OF_LEADERS = (_E.CANVASS, _E.NOMINATE, _E.CANDIDATE_BALLOT, _E.FOLLOWER_BALLOT)


class Consensus:
    """Who leads, and what is committed, as one member sees it.

    Not safe for threads. Each call takes the time in nanoseconds of a clock that nobody sets.

    Args:
        config: Which member this is, and of which cluster.
        stored: What it finds on its disk.
        rng: Random numbers.
        now_ns: The time.
        sink: Hears of each change of state, with its reason.
    """

    def __init__(
        self,
        config: ConsensusConfig,
        stored: Stored,
        rng: random.Random,
        now_ns: int,
        sink: EventSink = _NO_EVENTS,
    ) -> None:
        self._standing = Standing(config, stored, rng, now_ns, sink)
        self._leading = Leading(self._standing)
        self._canvassing = Canvassing(self._standing, self._leading.begin)
        self._following = Following(self._standing, self._canvassing)
        self._work: dict[ElectionState, Callable[[], None]] = {
            _E.INIT: self._canvassing.work_init,
            _E.CANVASS: self._canvassing.work_canvass,
            _E.NOMINATE: self._canvassing.work_nominate,
            _E.CANDIDATE_BALLOT: self._canvassing.work_candidate_ballot,
            _E.FOLLOWER_BALLOT: self._canvassing.work_follower_ballot,
            _E.LEADER_LOG_REPLICATION: self._leading.work_log_replication,
            _E.LEADER_REPLAY: self._leading.work_replay,
            _E.LEADER_INIT: self._leading.work_init,
            _E.LEADER_READY: self._leading.work_ready,
            _E.FOLLOWER_LOG_REPLICATION: self._following.work_log_replication,
            _E.FOLLOWER_REPLAY: self._following.work_replay,
            _E.FOLLOWER_CATCHUP_INIT: self._following.work_catchup_init,
            _E.FOLLOWER_CATCHUP_AWAIT: self._following.work_catchup_await,
            _E.FOLLOWER_CATCHUP: self._following.work_catchup,
            _E.FOLLOWER_LOG_INIT: self._following.work_log_init,
            _E.FOLLOWER_LOG_AWAIT: self._following.work_log_await,
            _E.FOLLOWER_READY: self._following.work_ready,
            _E.CLOSED: self._work_closed,
        }

    # --- looks -----------------------------------------------------------------------------------------------------

    @property
    def state(self) -> ElectionState:
        """The state of the election; CLOSED while the member leads or follows."""
        return self._standing.state

    @property
    def role(self) -> Role:
        """What the member is to the others."""
        return self._standing.role

    @property
    def leader_id(self) -> int:
        """The member that leads; -1 if none is known."""
        return self._standing.leader_id

    @property
    def leadership_term_id(self) -> int:
        """The term that the member leads, follows, or stood for last."""
        return self._standing.term_id

    @property
    def candidate_term_id(self) -> int:
        """The highest term that the member stood for, voted in or heard of."""
        return self._standing.candidate_term_id

    @property
    def commit_position(self) -> int:
        """Up to where services may read the log."""
        return self._standing.commit_position

    @property
    def readable_position(self) -> int:
        """Up to where a follower's module may read the log."""
        return min(self._standing.append_position, self._standing.agreed_position)

    @property
    def peers(self) -> Mapping[int, Peer]:
        """The other members, as their messages show them."""
        return self._standing.peers

    @property
    def has_lost(self) -> bool:
        """Whether the member lacks what others count on, and abstains until it has followed a leader."""
        return self._standing.has_lost

    @property
    def election_count(self) -> int:
        """How many elections there were since the member started."""
        return self._standing.election_count

    # --- news ------------------------------------------------------------------------------------------------------

    def tick(self, now_ns: int) -> list[Action]:
        """Time has passed."""
        return self._advanced(now_ns)

    def receive(self, message: Message, now_ns: int) -> list[Action]:
        """A member has sent something. Messages of unknown members, and of this one, are nothing to it."""
        self._standing.now_ns = now_ns
        if self._standing.state is not _E.INIT:
            self._on_message(message)
        return self._advanced(now_ns)

    def recorded(self, position: int, now_ns: int) -> list[Action]:
        """The archive has the log up to a position, on its disk."""
        standing = self._standing
        standing.now_ns = now_ns
        if position > standing.append_position and standing.state is not _E.INIT:
            standing.append_position = position
            self._following.on_recorded()
        return self._advanced(now_ns)

    def published(self, position: int, now_ns: int) -> list[Action]:
        """The leader has appended to its log up to a position."""
        standing = self._standing
        if standing.is_leading:
            standing.published_position = max(standing.published_position, position)
        return self._advanced(now_ns)

    def read(self, position: int, now_ns: int) -> list[Action]:
        """The module has read the log, or a replay of it, up to a position: services may follow."""
        standing = self._standing
        standing.now_ns = now_ns
        if standing.state is not _E.INIT:
            standing.raise_commit(position)
        return self._advanced(now_ns)

    def term_read(self, term_id: int, base: int, now_ns: int) -> list[Action]:
        """The module has read the first entry of a term."""
        self._standing.now_ns = now_ns
        self._standing.current_term_id = term_id
        self._following._record_term(term_id, base)
        return self._advanced(now_ns)

    @property
    def is_paused(self) -> bool:
        """Whether the module reads nothing, as it has told with :meth:`pause`."""
        return self._standing.is_paused

    def pause(self, is_paused: bool, now_ns: int) -> list[Action]:
        """The module reads nothing while it takes a snapshot, or reads on."""
        self._standing.is_paused = is_paused
        return self._advanced(now_ns)

    def log_ended(self, reason: str, now_ns: int, *, is_end_of_stream: bool = False) -> list[Action]:
        """The log, or its recording, has ended; with the end of the stream the leader closed it in order."""
        standing = self._standing
        standing.now_ns = now_ns
        if standing.is_closed:
            leader_id = standing.leader_id if is_end_of_stream else NULL_VALUE
            standing.elect(reason, graceful_leader_id=leader_id)
        elif standing.state is not _E.INIT:
            standing.restart(reason, is_fault=True)
        return self._advanced(now_ns)

    def ended(self, member_id: int, now_ns: int) -> list[Action]:
        """The process of another member has ended, as the kernel says: of a leader, no heartbeat need be waited for."""
        standing = self._standing
        standing.now_ns = now_ns
        if member_id in standing.peers and member_id == standing.leader_id:
            reason = "the leader's process has ended"
            if standing.is_closed:
                standing.elect(reason, graceful_leader_id=member_id)
            else:
                standing.gracefully_closed_leader_id = member_id
                standing.restart(reason)
        return self._advanced(now_ns)

    def hand_over(self, successor_id: int | None, now_ns: int) -> list[Action]:
        """An operator wants another leader, which has all of the log: one of the followers, or -1 for any.

        Nothing is to be appended until another member leads, or this is taken back with ``None``.
        """
        if self._standing.is_closed and self._standing.is_leading:
            self._leading.hand_over(successor_id)
        return self._advanced(now_ns)

    def done(self, action: Task, now_ns: int, *, value: int = NULL_VALUE, endpoint: str = "") -> list[Action]:
        """A task is carried out; of one that was given up this says nothing.

        Args:
            action: Which.
            now_ns: The time.
            value: What came of it: the position that LeaveLog, TruncateLog, ReplicateLog and AppendTerm reached, the
                session id of CreateLog, the recording id of JoinLog.
            endpoint: Of OpenLog: where the replay is to be sent.
        """
        standing = self._standing
        standing.now_ns = now_ns
        if action is standing.task:
            standing.task = None
            self._on_done(action, value, endpoint)
        return self._advanced(now_ns)

    def _on_done(self, task: Task, value: int, endpoint: str) -> None:
        standing = self._standing
        if isinstance(task, LeaveLog | TruncateLog):
            self._canvassing.left(value)
        elif isinstance(task, ReplicateLog):
            standing.append_position = value
        elif isinstance(task, CreateLog):
            self._leading.on_created(value)
        elif isinstance(task, OpenLog):
            self._following.on_opened(endpoint)
        elif isinstance(task, JoinLog):
            standing.recording_id = value
        elif isinstance(task, AppendTerm):
            self._leading.on_term_appended(value)

    def failed(self, action: Task | Store | StartCatchup, reason: str, now_ns: int) -> list[Action]:
        """An action could not be carried out; of those that came with it, the ones after it are not."""
        standing = self._standing
        standing.now_ns = now_ns
        if isinstance(action, StartCatchup):
            standing.peers[action.member_id].catches_up = False
        elif isinstance(action, Store):
            if isinstance(action, StoreVote):
                standing.unused_term_id = None
                standing.voted_for = NULL_VALUE, NULL_VALUE
            else:
                standing.terms.take_back()
            standing.restart(reason, is_fault=True)
        elif action is standing.task:
            standing.restart(reason, is_fault=True)
        return self._advanced(now_ns)

    # --- what follows from it --------------------------------------------------------------------------------------

    def _advanced(self, now_ns: int) -> list[Action]:
        """Work until the state stands still; returns what is to be done."""
        standing = self._standing
        standing.now_ns = now_ns
        while True:
            state = standing.state
            self._work[state]()
            if standing.state is state:
                break
        actions, standing.actions = standing.actions, []
        return actions

    def _work_closed(self) -> None:
        if self._standing.is_leading:
            self._leading.work_closed()
        else:
            self._following.work_closed()

    def _on_message(self, message: Message) -> None:
        if isinstance(message, CommitPosition | NewLeadershipTerm):
            if message.leader_member_id in self._standing.peers:
                self._on_leader(message)
        elif isinstance(message, RequestVote):
            if message.candidate_member_id in self._standing.peers:
                self._on_request_vote(message)
        elif isinstance(message, TransferLeadership):
            self._following.on_transfer(message)
        elif isinstance(message, StopCatchup):
            if message.follower_member_id == self._standing.config.member_id:
                self._following.on_stop_catchup(message)
        else:
            self._on_follower(message)

    def _on_leader(self, message: CommitPosition | NewLeadershipTerm) -> None:
        standing = self._standing
        leader_id, term_id = message.leader_member_id, message.leadership_term_id
        if leader_id == standing.gracefully_closed_leader_id:
            standing.gracefully_closed_leader_id = NULL_VALUE
        if term_id >= standing.term_id and not standing.is_leading:
            standing.leader_heard_ns = standing.now_ns
        if standing.state in _HEARS_OF_LEADERS:
            if isinstance(message, NewLeadershipTerm):
                self._following.on_new_term(message)
        elif term_id > standing.term_id:
            if standing.is_closed:
                standing.elect("another member leads a higher term")
            else:
                standing.restart("another member leads a higher term")
        elif leader_id == standing.leader_id and (term_id == standing.term_id or not standing.is_closed):
            self._following.on_commit_position(message)

    def _on_request_vote(self, request: RequestVote) -> None:
        standing = self._standing
        if standing.is_closed:
            if request.candidate_term_id > standing.candidate_term_id:
                standing.elect(f"member {request.candidate_member_id} stands for a higher term")
            return
        self._canvassing.on_request_vote(request)
        if standing.is_elected:
            self._leading.tell_term(request.candidate_member_id, request.log_leadership_term_id)

    def _on_follower(self, message: CanvassPosition | Vote | AppendPosition | CatchupPosition) -> None:
        standing = self._standing
        peer = standing.peers.get(message.follower_member_id)
        if peer is None:
            return
        if isinstance(message, CanvassPosition):
            if peer.member_id == standing.gracefully_closed_leader_id:
                standing.gracefully_closed_leader_id = NULL_VALUE
            peer.tells((message.log_leadership_term_id, message.log_position), standing.now_ns)
            if standing.is_leading:
                self._leading.on_canvass(peer, message)
        elif isinstance(message, Vote):
            self._canvassing.on_vote(message)
        elif standing.is_leading:
            if isinstance(message, AppendPosition):
                self._leading.on_append_position(peer, message)
            else:
                self._leading.on_catchup_position(peer, message)
