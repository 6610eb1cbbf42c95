"""Carries out what the consensus core decides, and brings it the news. Cluster specification 5.

The core has the states and the rules (:mod:`headrace.cluster.consensus`); it waits for nothing. Messages and stored
terms are carried out at once; a task of the log takes many turns, and each new one replaces the one before.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace._agent.tasks import RunningTask, Task
from headrace._base.exceptions import ArchiveError
from headrace.cluster.consensus import actions as do
from headrace.cluster.consensus.core import Consensus
from headrace.cluster.consensus.standing import ConsensusConfig, Stored
from headrace.cluster.consensus.states import ElectionState
from headrace.cluster.errors import ClusterFileError, ClusterTerminalError
from headrace.cluster.files.node_state import CandidateTerm
from headrace.cluster.member.states import Toggle
from headrace.cluster.protocol.codes import Role
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.lifeline import Lifeline
    from headrace.cluster.member.peers import Peers
    from headrace.cluster.member.term_log import Outcome, TermLog
    from headrace.cluster.protocol.log import NewLeadershipTermEvent

__all__ = ["Election"]

_E = ElectionState
_STORAGE_SPACE = "STORAGE_SPACE"
# A replay may be lost on a busy machine, and goes on from where it came to. One that comes no further never will.
_REPLAYS_MAX = 3
_READS = (_E.FOLLOWER_CATCHUP, _E.FOLLOWER_LOG_INIT, _E.FOLLOWER_READY, _E.CLOSED)
_WINDOW_MAX = 32 << 20


class Election:
    """The member's consensus core, and its way from one term to the next.

    Args:
        context: What the module's parts share.
        term_log: Does to the log what the core wants.
        peers: The other members.
        lifeline: Says when the process of the leader has ended; ``None`` where that cannot be heard.
        on_change: Called with ``Lead``, ``Follow`` and ``LeaveLog`` when the core has decided so.
        undo: Called once the log is left, to undo what is not committed.
    """

    def __init__(
        self,
        context: Context,
        term_log: TermLog,
        peers: Peers,
        lifeline: Lifeline | None,
        on_change: Callable[[do.Lead | do.Follow | do.LeaveLog], object],
        undo: Callable[[], object],
    ) -> None:
        self._context = context
        self._log = term_log
        self._peers = peers
        self._lifeline = lifeline
        self._on_change = on_change
        self._undo = undo
        self._core: Consensus | None = None
        # What the core has said and is not carried out.
        self._actions: deque[do.Action] = deque()
        self._task = RunningTask()
        self._action: do.Task | None = None
        self._replay_count, self._replayed_position = 0, NULL_VALUE
        # What the core was told of the log last: up to where the member has appended to it, and its archive has it.
        self._told_end, self._told_position = NULL_VALUE, NULL_VALUE
        self._shown: tuple[object, ...] = ()

    def start(self) -> None:
        """Begin with what the member has on its disk."""
        context = self._context
        config, plan = context.config, context.plan
        assert plan is not None, "the plan is found before"
        terms = [entry for entry in context.recording_log if entry.is_term]
        term_length = (64 << 20) if plan.log is None else plan.log.term_buffer_length
        self._core = Consensus(
            ConsensusConfig(
                member_id=config.member_id,
                member_ids=tuple(one.member_id for one in config.all_members),
                appointed_leader_id=config.appointed_leader_id,
                startup_canvass_timeout_ns=config.startup_canvass_timeout_ns,
                election_timeout_ns=config.election_timeout_ns,
                election_status_interval_ns=config.election_status_interval_ns,
                leader_heartbeat_timeout_ns=config.leader_heartbeat_timeout_ns,
                leader_heartbeat_interval_ns=config.leader_heartbeat_interval_ns,
                live_window=min(term_length // 4, _WINDOW_MAX),
                app_version=config.app_version,
            ),
            Stored(
                candidate_term_id=context.node_state.candidate_term.term_id,
                terms=tuple((term.leadership_term_id, term.term_base_log_position) for term in terms),
                snapshot_term_id=plan.last_leadership_term_id,
                log_position=context.commit_position,
                append_position=plan.appended_log_position,
                recording_id=NULL_VALUE if plan.log is None else plan.log.recording_id,
                is_replacement=context.members.is_replacement,
            ),
            # Members that start alike have the same ids, and with equal delays would split each vote between them.
            random.Random(f"{config.member_id} {context.client.next_correlation_id()}"),
            self._now_ns(),
            context.events,
        )
        if self._peers and self._core.has_lost:
            context.members.remember_replacement()

    def _now_ns(self) -> int:
        return self._context.client.clock.monotonic_ns()

    @property
    def core(self) -> Consensus:
        """The decisions."""
        assert self._core is not None, "the member has started"
        return self._core

    @property
    def has_started(self) -> bool:
        """Whether there is a core."""
        return self._core is not None

    @property
    def state(self) -> ElectionState:
        """Where the election is."""
        return self.core.state

    @property
    def is_closed(self) -> bool:
        """Whether the member leads or follows."""
        return self._core is not None and self._core.state is _E.CLOSED

    @property
    def active_ids(self) -> list[int]:
        """The other members that were heard lately."""
        since_ns = self._now_ns() - self._context.config.leader_heartbeat_timeout_ns
        return [one.member_id for one in self.core.peers.values() if one.is_active(since_ns)]

    @property
    def is_steady(self) -> bool:
        """Whether no task of the log is under way, nor one of services that the log asks for."""
        return self._task.is_idle and not self._log.followed.is_busy

    # --- turns -----------------------------------------------------------------------------------------------------

    def receive(self, message: do.Message) -> None:
        """Another member has sent a message about terms and positions."""
        if self._core is None:
            return
        self._bring_news()
        self._carry_out(self._core.receive(message, self._now_ns()))

    def do_work(self) -> int:
        """Go on with the election, or with the term; returns how much there was to do."""
        if self._core is None:
            return 0
        if self._lifeline is not None and self._lifeline.poll():
            self._carry_out(self._core.ended(self._core.leader_id, self._now_ns()))
        work_count = self._read() + self._bring_news()
        self._carry_out(self._core.tick(self._now_ns()))
        self._log.leader.connect(self._now_ns())
        return work_count + self._step()

    def commit(self) -> int:
        """Look how far the archive has the log; returns 1 if more is committed by that."""
        self._log.leader.note_turn()
        before = self._context.commit_position
        self._bring_news()
        return int(self._context.commit_position > before)

    def _bring_news(self) -> int:
        """How far the log is recorded, appended and read; returns 1 for news."""
        core, log = self.core, self._log
        end = log.leader.position
        if end is not None and end != self._told_end and self._peers:
            self._told_end = end
            self._carry_out(core.published(end, self._now_ns()))
        recorded = max(log.recording.position, log.copy.position)
        if recorded <= self._told_position:
            return 0
        self._told_position = recorded
        self._carry_out(core.recorded(recorded, self._now_ns()))
        return 1

    def _read(self) -> int:
        """Read the leader's log, as a follower."""
        core, log = self.core, self._log
        if core.role is Role.LEADER or core.state not in _READS or not log.followed.is_reading:
            return 0
        before = self._context.commit_position
        work_count = log.followed.poll(core.readable_position)
        is_paused = log.followed.is_busy
        now_ns = self._now_ns()
        if is_paused is not core.is_paused:
            self._carry_out(core.pause(is_paused, now_ns))
        if self._context.commit_position > before:
            self._carry_out(core.read(self._context.commit_position, now_ns))
        return work_count

    def term_read(self, event: NewLeadershipTermEvent) -> None:
        """The log that is read has the first entry of a term."""
        term_id, base = event.leadership_term_id, event.term_base_log_position
        self._log.recording.restore_term(term_id, base)
        self._actions.extend(self.core.term_read(term_id, base, self._now_ns()))

    def hand_over(self, successor_id: int | None) -> None:
        """Have another member lead, see :meth:`Consensus.hand_over`."""
        self._carry_out(self.core.hand_over(successor_id, self._now_ns()))

    def check_log(self) -> None:
        """Look whether the log has ended, or its recording: then there is another election."""
        core, log = self.core, self._log
        is_read = core.role is not Role.LEADER
        image = log.follower.image
        if core.state not in _READS and core.state not in (_E.LEADER_READY,):
            return
        if log.recording.has_begun and not log.recording.is_active:
            is_end = is_read and image is not None and image.is_end_of_stream
            self._end_log(f"log recording stopped: eos={str(is_end).lower()}", is_end_of_stream=is_end)
        elif is_read and image is not None and image.is_closed and not log.followed.is_busy:
            is_end = image.is_end_of_stream
            text = f"log disconnected from leader: eos={str(is_end).lower()}"
            self._end_log(text, is_end_of_stream=is_end)

    def _end_log(self, reason: str, *, is_end_of_stream: bool) -> None:
        self._context.log.warning(f"{reason}: a new election")
        self._carry_out(self.core.log_ended(reason, self._now_ns(), is_end_of_stream=is_end_of_stream))

    # --- actions ---------------------------------------------------------------------------------------------------

    def _carry_out(self, actions: list[do.Action]) -> None:
        """Do what takes no time, and begin what takes some."""
        self._actions.extend(actions)
        while self._actions:
            action = self._actions.popleft()
            try:
                self._begin(action)
            except OSError as failure:
                self._failed(action, failure)
        self._show()

    def _show(self) -> None:
        context, core = self._context, self.core
        shown = core.state, core.role, core.election_count, core.leader_id
        if shown == self._shown:
            return
        self._shown = shown
        context.counters.election_state.value = core.state
        context.counters.election_count.value = core.election_count
        context.role = core.role
        if context.leader_member_id != core.leader_id:
            context.leader_member_id = core.leader_id
            # From the moment on when it is known: it may end before this member follows it.
            if self._lifeline is not None:
                self._lifeline.watch(self._peers.leader_address(core.leader_id))

    def _begin(self, action: do.Action) -> None:
        log = self._log
        if isinstance(action, do.Send):
            self._peers.send(action.member_id, action.message)
        elif isinstance(action, do.SetCommitPosition):
            self._commit(action.log_position)
        elif isinstance(action, do.StoreVote):
            now_ms = self._context.client.clock.epoch_ms()
            vote = CandidateTerm(action.candidate_term_id, now_ms, action.log_position)
            self._context.node_state.vote(vote)
        elif isinstance(action, do.RecordTerm):
            log.recording.store_term(action.leadership_term_id, action.term_base_log_position)
        elif isinstance(action, do.DropTerms):
            log.recording.drop_terms(action.log_position)
        elif isinstance(action, do.AddLiveLog):
            log.follower.add_live()
        elif isinstance(action, do.RemoveCatchup):
            log.follower.remove_catchup()
        elif isinstance(action, do.StartCatchup):
            self._start_catchup(action)
        elif isinstance(action, do.StopReplay):
            log.catchups.stop(action.member_id)
        elif isinstance(action, do.Lead | do.Follow):
            self._show()
            self._context.election_failure = ""
            self._replay_count = 0
            if isinstance(action, do.Follow):
                self._context.members.note_followed()
            self._on_change(action)
        else:
            self._begin_task(action)

    def _commit(self, committed: int) -> None:
        context, leader = self._context, self._log.leader
        position = committed if leader.writer is None else leader.end_of_entry(committed)
        if position is not None and position > context.commit_position:
            context.commit_position = position
            context.applied.committed(position)

    def _start_catchup(self, action: do.StartCatchup) -> None:
        recording_id = self._log.recording.recording_id
        session_id = self._log.leader.session_id
        if recording_id is None or session_id is None or not self._context.archive.is_ready:
            self._actions.extend(self.core.failed(action, "the leader has no log yet", self._now_ns()))
        else:
            self._log.catchups.start(action, recording_id, session_id)

    def _begin_task(self, action: do.Task) -> None:
        self._task.close()
        self._action = action
        if isinstance(action, do.LeaveLog | do.TruncateLog):
            self._show()
            self._context.counters.toggle.value = Toggle.INACTIVE
            self._on_change(do.LeaveLog(action.log_position))
        self._task.begin(self._done(action))

    def _done(self, action: do.Task) -> Task[None]:
        """Carry a task out, and tell the core the outcome."""
        outcome: Outcome = yield from self._log.carried_out(action)
        if isinstance(action, do.LeaveLog | do.TruncateLog):
            self._undo()
            self._told_end = self._told_position = NULL_VALUE
        now_ns = self._now_ns()
        if isinstance(action, do.ReplayLog):
            self._actions.extend(self.core.read(self._context.commit_position, now_ns))
        self._actions.extend(self.core.done(action, now_ns, value=outcome.value, endpoint=outcome.endpoint))

    def _step(self) -> int:
        try:
            work_count = self._task.step()
            self._log.follower.take_responses()
        except (ClusterTerminalError, ClusterFileError):
            raise
        except Exception as failure:
            if self._action is None:
                raise
            self._failed(self._action, failure)
            work_count = 1
        for action, text in self._log.catchups.failures():
            self._context.log.warning(f"member {action.member_id} gets no replay to catch up", text)
            self._actions.extend(self.core.failed(action, text, self._now_ns()))
        self._carry_out([])
        return work_count

    def _failed(self, action: do.Action, failure: Exception) -> None:
        """Log a failure; the core begins the election anew."""
        context = self._context
        if not context.archive.is_ready or _is_out_of_space(failure):
            raise failure
        if isinstance(action, do.ReplayLog):
            self._check_replay_goes_on(action.end_position, failure)
        text = str(failure)
        context.election_failure = text
        context.log.error(f"election in state {self.state.name}: {text}", failure)
        self._actions.clear()
        self._task.close()
        self._action = None
        now_ns = self._now_ns()
        # Services have read what was replayed before the failure.
        self._actions.extend(self.core.read(context.commit_position, now_ns))
        self._actions.extend(self.core.failed(action, text, now_ns))  # type: ignore[arg-type]

    def _check_replay_goes_on(self, end: int, failure: Exception) -> None:
        position = self._context.commit_position
        is_further = position > self._replayed_position
        self._replay_count = 1 if is_further else self._replay_count + 1
        self._replayed_position = position
        if self._replay_count == _REPLAYS_MAX:
            raise ClusterTerminalError(
                f"the log is damaged after position {position} of {end}: {_REPLAYS_MAX} replays came no further: "
                f"{failure}; restore the archive's directory and the cluster's from one copy"
            ) from failure

    def close(self) -> None:
        """Give up the task under way, and the log."""
        self._task.close()
        self._log.close()


def _is_out_of_space(failure: Exception) -> bool:
    """Whether the archive has no room for the log, so that trying again cannot help."""
    return isinstance(failure, ArchiveError) and failure.code_name == _STORAGE_SPACE
