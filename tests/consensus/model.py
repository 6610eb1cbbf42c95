"""Members of a cluster as cores in a list, a network that is a list of messages, and disks that are Python objects.

One seed decides what happens next: a message arrives, is lost or doubled, time passes, a task is done or fails, a disk
gets an entry, a member dies between any two actions and starts again with what it had stored. The rules are looked at
after each step.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.cluster.consensus import actions as do
from headrace.cluster.consensus.core import Consensus
from headrace.cluster.consensus.standing import ConsensusConfig, Stored
from headrace.cluster.consensus.states import ElectionState
from headrace.cluster.consensus.terms import Terms
from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.consensus import CommitPosition, Vote

Entry = tuple[int, int]
"""The term that wrote it, and a number: 0 begins the term."""


# A member tells its log each 100, a ballot takes 300, and a leader is missed after 600.
_DURATIONS = (0, 10, 30, 60, 60, 120, 300)


class RuleBrokenError(AssertionError):
    """What must never be was seen."""


@dataclass
class Disk:
    """What a member has after a crash."""

    candidate_term_id: int = -1
    terms: Terms = field(default_factory=Terms)
    log: list[Entry] = field(default_factory=list)
    snapshot_position: int = 0

    def stored(self) -> Stored:
        """As the core is told of it."""
        return Stored(
            candidate_term_id=self.candidate_term_id,
            terms=tuple(self.terms.items()),
            log_position=self.snapshot_position,
            append_position=len(self.log),
            recording_id=1,
        )


@dataclass
class Publication:
    """The log of a leader, which followers read while it is open."""

    owner: int
    log: list[Entry]
    is_open: bool = True


class Member:
    """A core, its disk, and what carries its actions out."""

    def __init__(self, model: Model, member_id: int) -> None:
        self.model = model
        self.id = member_id
        self.disk = Disk()
        self.core: Consensus | None = None
        self.task: do.Task | None = None
        self.publication: Publication | None = None
        self.source: Publication | None = None
        self.is_recording = self.has_replay = self.is_live = False

    # --- life ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.model.check_terms(self)
        config = self.model.config(self.id)
        self.core = Consensus(config, self.disk.stored(), self.model.rng, self.model.now)
        self.model.check_state(self)

    def crash(self) -> None:
        self.leave()
        self.core = None
        self.task = None

    def leave(self) -> None:
        if self.publication is not None:
            self.publication.is_open = False
            self.publication = None
        self.source = None
        self.is_recording = self.has_replay = self.is_live = False

    def call(self, news: Callable[[Consensus], list[do.Action]]) -> None:
        """Tell the core something, and do what it says; the member may die before each action."""
        if self.core is None:
            return
        for action in news(self.core):
            if self.model.rng.random() < self.model.crash_in_actions:
                self.crash()
                return
            if isinstance(action, do.Store) and self.model.rng.random() < self.model.store_failure:
                self.task = None
                self.call(lambda core, failed=action: core.failed(failed, "the disk", self.model.now))
                return
            self.carry_out(action)
            if self.core is None:
                return
        self.model.check_state(self)

    # --- actions ---------------------------------------------------------------------------------------------------

    def carry_out(self, action: do.Action) -> None:
        model, disk = self.model, self.disk
        if isinstance(action, do.Send):
            self._send(action)
        elif isinstance(action, do.StoreVote):
            disk.candidate_term_id = max(disk.candidate_term_id, action.candidate_term_id)
        elif isinstance(action, do.RecordTerm):
            disk.terms.begin(action.leadership_term_id, action.term_base_log_position)
        elif isinstance(action, do.DropTerms):
            disk.terms.drop_after(action.log_position)
        elif isinstance(action, do.SetCommitPosition):
            log = disk.log if self.publication is None else self.publication.log
            model.commit(self, log[: action.log_position], action.log_position)
        elif isinstance(action, do.StartCatchup):
            model.start_catchup(self, action)
        elif isinstance(action, do.StopReplay):
            model.members[action.member_id].has_replay = False
        elif isinstance(action, do.AddLiveLog):
            self.is_live = True
        elif isinstance(action, do.RemoveCatchup):
            self.has_replay = False
        elif isinstance(action, do.Lead):
            model.check_leader(self)
        elif isinstance(action, do.Follow):
            pass
        else:
            self.task = action

    def _send(self, send: do.Send) -> None:
        model, message = self.model, send.message
        if isinstance(message, Vote) and message.vote:
            model.check_vote(self, message)
        if isinstance(message, CommitPosition):
            log = self.publication.log if self.publication is not None else self.disk.log
            model.commit(self, log[: message.log_position], message.log_position)
        model.network.append((self.id, send.member_id, message))

    # --- tasks -----------------------------------------------------------------------------------------------------

    def work_on_task(self) -> None:
        """Go on with the task; it may fail."""
        task, now = self.task, self.model.now
        if task is None or self.core is None:
            return
        if self.model.rng.random() < self.model.task_failure and not isinstance(
            task, do.LeaveLog | do.TruncateLog
        ):
            self._fail(task, "the model says so")
        elif isinstance(task, do.LeaveLog):
            self.leave()
            self._done(task, value=len(self.disk.log))
        elif isinstance(task, do.TruncateLog):
            self.leave()
            self.model.check_truncation(self, task.log_position)
            del self.disk.log[task.log_position :]
            self._done(task, value=task.log_position)
        elif isinstance(task, do.CreateLog):
            self.publication = Publication(self.id, list(self.disk.log))
            assert len(self.disk.log) == task.log_position
            self.model.publications.append(self.publication)
            self._done(task, value=len(self.model.publications) - 1)
        elif isinstance(task, do.ReplayLog):
            position = min(self.core.commit_position + self.model.rng.randint(1, 3), task.end_position)
            self.call(lambda core: core.read(position, now))
            if position >= task.end_position and self.task is task:
                self._done(task)
        elif isinstance(task, do.AppendTerm):
            assert self.publication is not None
            self.publication.log.append((task.leadership_term_id, 0))
            self._done(task, value=len(self.publication.log))
        else:
            self._work_with_leader(task)

    def _work_with_leader(self, task: do.Task) -> None:
        if isinstance(task, do.ReplicateLog):
            leader = self.model.members[task.leader_member_id]
            log = self.disk.log
            if leader.core is None or len(leader.disk.log) <= len(log):
                self._fail(task, "nothing comes")
                return
            log.append(leader.disk.log[len(log)])
            if len(log) == task.log_position:
                self._done(task, value=len(log))
            else:
                self.call(lambda core: core.recorded(len(log), self.model.now))
        elif isinstance(task, do.OpenLog):
            self.source = self.model.publications[task.log_session_id]
            self.is_live = not task.is_catchup
            self._done(task, endpoint="here:1")
        elif isinstance(task, do.JoinLog):
            self._join(task)

    def _join(self, task: do.JoinLog) -> None:
        if task.role is Role.LEADER:
            self.is_recording = True
            self._done(task, value=1)
            return
        source = self.source
        assert source is not None
        if not source.is_open:
            self._fail(task, "there is no log")
        elif self.is_live and len(source.log) != len(self.disk.log):
            self._fail(task, "joinPosition is not logPosition")
        elif self.is_live or self.has_replay:
            self.is_recording = True
            self._done(task, value=1)

    def _done(self, task: do.Task, *, value: int = -1, endpoint: str = "") -> None:
        if self.task is task:
            self.task = None
        self.call(lambda core: core.done(task, self.model.now, value=value, endpoint=endpoint))

    def _fail(self, task: do.Task, reason: str) -> None:
        self.task = None
        self.call(lambda core: core.failed(task, reason, self.model.now))

    # --- the log ---------------------------------------------------------------------------------------------------

    def record(self) -> None:
        """The archive gets an entry of the log."""
        core, now = self.core, self.model.now
        if core is None or not self.is_recording:
            return
        log = self.disk.log
        if self.publication is not None:
            source = self.publication.log
        elif self.source is not None and self.model.reaches(self.source.owner, self.id):
            source = self.source.log
            if not self.source.is_open:
                self.call(lambda core: core.log_ended("the log has ended", now))
                return
            if not (self.is_live or self.has_replay):
                return
        else:
            return
        if len(log) < len(source):
            log.append(source[len(log)])
            self.call(lambda core: core.recorded(len(log), now))

    def read(self) -> None:
        """The module of a follower reads an entry."""
        core, now = self.core, self.model.now
        if core is None or self.publication is not None or not self.is_recording:
            return
        position = core.commit_position
        if position >= core.readable_position:
            return
        term_id, number = self.disk.log[position]
        if number == 0:
            self.call(lambda core: core.term_read(term_id, position, now))
        if self.core is core:
            self.call(lambda core: core.read(position + 1, now))

    def append(self) -> None:
        """A client's message comes to the leader."""
        core = self.core
        if core is None or self.publication is None:
            return
        if core.state is ElectionState.CLOSED and core.role is Role.LEADER:
            self.model.number += 1
            self.publication.log.append((core.leadership_term_id, self.model.number))
            position = len(self.publication.log)
            self.call(lambda core: core.published(position, self.model.now))


class Model:
    """A cluster of so many members, and what happens to it.

    Args:
        seed: Decides everything.
        member_count: How many members.
    """

    def __init__(self, seed: int, member_count: int) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.member_count = member_count
        self.now = 1
        self.number = 0
        self.network: list[tuple[int, int, do.Message]] = []
        self.cut: set[tuple[int, int]] = set()
        self.publications: list[Publication] = []
        self.committed: list[Entry] = []
        self.leaders: dict[int, int] = {}
        # The states in which a member heard that the process of its leader had ended.
        self.left_by_ends: set[ElectionState] = set()
        self.votes: dict[tuple[int, int], int] = {}
        # Each seed has faults of its own strength.
        self.crash_in_actions = self.rng.choice((0.0, 0.002, 0.02))
        self.task_failure = self.rng.choice((0.0, 0.02))
        self.store_failure = self.rng.choice((0.0, 0.0, 0.05))
        self.loss = self.rng.choice((0.0, 0.05, 0.3))
        self.doubling = self.rng.choice((0.0, 0.05))
        self.crash_rate = self.rng.choice((0.0, 0.01, 0.05))
        self.cut_rate = self.rng.choice((0.0, 0.02))
        self.pause_rate = self.rng.choice((0.0, 0.01, 0.03))
        self.change_rate = self.rng.choice((0.0, 0.01, 0.05))
        # How far messages overtake each other.
        self.reach = self.rng.choice((1, 6, 40))
        self.paused: set[int] = set()
        self.members = [Member(self, one) for one in range(member_count)]
        for member in self.members:
            member.start()

    def config(self, member_id: int) -> ConsensusConfig:
        return ConsensusConfig(
            member_id=member_id,
            member_ids=tuple(range(self.member_count)),
            startup_canvass_timeout_ns=600,
            election_timeout_ns=300,
            election_status_interval_ns=100,
            leader_heartbeat_timeout_ns=600,
            leader_heartbeat_interval_ns=150,
            live_window=2,
        )

    # --- steps -----------------------------------------------------------------------------------------------------

    def run(self, step_count: int) -> None:
        """Take so many steps."""
        for _ in range(step_count):
            self.step()

    def step(self) -> None:
        """Something happens."""
        rng = self.rng
        dice = rng.random()
        member = rng.choice(self.members)
        if dice < 0.45:
            # The more is under way the more arrives.
            for _ in range(1 + len(self.network) // 6):
                if self.network:
                    self.deliver(rng.randrange(min(len(self.network), self.reach)))
        elif dice < 0.55:
            self.pass_time(rng.choice(_DURATIONS))
        elif dice < 0.75:
            if busy := [one for one in self.members if one.task is not None]:
                rng.choice(busy).work_on_task()
        elif dice < 0.85:
            member.record()
        elif dice < 0.92:
            member.read()
        else:
            member.append()
        if rng.random() < self.crash_rate:
            self._crash_or_start(rng.choice(self.members))
        if rng.random() < self.cut_rate:
            self._cut_or_heal()
        if rng.random() < self.pause_rate:
            self.paused ^= {rng.randrange(self.member_count)}
        if rng.random() < self.change_rate:
            self._change_leader(rng.choice(self.members))

    def _change_leader(self, member: Member) -> None:
        """An operator wants another leader, or a member hears, rightly or not, that the process of one has ended."""
        other_id = self.rng.randrange(-1, self.member_count)
        if self.rng.random() < 0.7:
            member.call(lambda core: core.hand_over(other_id, self.now))
        elif member.core is not None:
            leader_id = member.core.leader_id
            if self.rng.random() < 0.5 and leader_id not in (-1, member.id):
                other_id = leader_id
                self.left_by_ends.add(member.core.state)
            member.call(lambda core: core.ended(other_id, self.now))

    def deliver(self, index: int) -> None:
        """A message arrives, or is lost, or arrives and stays."""
        rng = self.rng
        sender, receiver, message = self.network.pop(index)
        if not self.reaches(sender, receiver) or rng.random() < self.loss:
            return
        if receiver in self.paused:
            # It reads that later.
            self.network.append((sender, receiver, message))
            return
        if rng.random() < self.doubling:
            self.network.append((sender, receiver, message))
        self.members[receiver].call(lambda core: core.receive(message, self.now))

    def reaches(self, sender: int, receiver: int) -> bool:
        return (sender, receiver) not in self.cut

    def pass_time(self, duration: int) -> None:
        self.now += duration
        for member in self.members:
            if member.id not in self.paused and self.rng.random() < 0.8:
                member.call(lambda core: core.tick(self.now))

    def _crash_or_start(self, member: Member) -> None:
        if member.core is None:
            member.start()
            return
        if self.rng.random() < 0.2:
            member.disk.snapshot_position = member.core.commit_position
        member.crash()

    def _cut_or_heal(self) -> None:
        rng = self.rng
        if self.cut and rng.random() < 0.5:
            self.cut.clear()
            return
        one, other = rng.sample(range(len(self.members)), 2)
        self.cut.add((one, other))
        if rng.random() < 0.5:
            self.cut.add((other, one))

    def heal(self) -> None:
        """From now on nothing goes wrong."""
        self.cut.clear()
        self.paused.clear()
        self.crash_in_actions = self.task_failure = self.store_failure = self.loss = self.doubling = 0.0
        self.crash_rate = self.cut_rate = self.pause_rate = self.change_rate = 0.0
        self.reach = 1
        for member in self.members:
            if member.core is None:
                member.start()

    def settles(self, round_count: int) -> bool:
        """Whether all members come to have the same log, with an entry of now in it, once nothing goes wrong."""
        self.heal()
        wanted = None
        for _ in range(round_count):
            while self.network:
                self.deliver(0)
            self.now += 25
            for member in self.members:
                member.call(lambda core: core.tick(self.now))
                member.work_on_task()
                for _ in range(3):
                    member.record()
                    member.read()
                if wanted is None:
                    before = self.number
                    member.append()
                    if self.number > before:
                        wanted = self.number
            if wanted is not None and all(self._has(member, wanted) for member in self.members):
                return True
            if wanted is not None and not any(wanted == number for _, number in self._all_entries()):
                wanted = None
        return False

    def _has(self, member: Member, number: int) -> bool:
        core = member.core
        return (
            core is not None
            and core.state is ElectionState.CLOSED
            and any(one == number for _, one in member.disk.log[: core.commit_position])
        )

    def _all_entries(self) -> list[Entry]:
        entries = [entry for member in self.members for entry in member.disk.log]
        return entries + [entry for one in self.publications if one.is_open for entry in one.log]

    # --- what members do to each other -----------------------------------------------------------------------------

    def start_catchup(self, leader: Member, action: do.StartCatchup) -> None:
        follower = self.members[action.member_id]
        source = follower.source
        if source is not None and source is leader.publication and not follower.is_recording:
            follower.has_replay = len(follower.disk.log) == action.log_position
        elif leader.core is not None:
            leader.core.failed(action, "there is no one", self.now)

    # --- rules -----------------------------------------------------------------------------------------------------

    def check_state(self, member: Member) -> None:
        """At most one member is elected for a term."""
        core = member.core
        if core is not None and core.role is Role.LEADER:
            known = self.leaders.setdefault(core.leadership_term_id, member.id)
            if known != member.id:
                raise RuleBrokenError(
                    f"members {known} and {member.id} both lead term {core.leadership_term_id}"
                )

    def check_vote(self, voter: Member, vote: Vote) -> None:
        """A member votes once a term, stored the vote before, and prefers no worse log."""
        key = (voter.id, vote.candidate_term_id)
        if self.votes.setdefault(key, vote.candidate_member_id) != vote.candidate_member_id:
            raise RuleBrokenError(f"member {voter.id} votes twice in term {vote.candidate_term_id}")
        if voter.disk.candidate_term_id < vote.candidate_term_id:
            raise RuleBrokenError(f"member {voter.id} sends a vote that it did not store")

    def check_terms(self, member: Member) -> None:
        """The recording log has terms where the log has them, as far as it is committed."""
        terms = member.disk.terms.items()
        length = min(len(self.committed), len(member.disk.log))
        for (term_id, base), (_, end) in itertools.pairwise(terms):
            is_wrong = base < end and base < length and member.disk.log[base] != (term_id, 0)
            if is_wrong or base > end:
                raise RuleBrokenError(
                    f"the recording log of member {member.id} begins term {term_id} at {base}, and the next one at "
                    f"{end}; the log is {member.disk.log}"
                )

    def check_leader(self, member: Member) -> None:
        """A leader has all that was committed."""
        assert member.publication is not None
        self._check_prefix(member, member.publication.log[: len(self.committed)], len(self.committed))

    def check_truncation(self, member: Member, position: int) -> None:
        """Nothing that a member has let its services read is taken back."""
        core = member.core
        assert core is not None
        if position < core.commit_position:
            raise RuleBrokenError(f"member {member.id} truncates what its services have read")

    def commit(self, member: Member, log: list[Entry], position: int) -> None:
        """What a member takes for committed stays so, for all."""
        recorded = len(member.disk.log)
        if len(log) < position or (member.publication is not None and recorded < position):
            raise RuleBrokenError(
                f"member {member.id} commits {position}, and has {len(log)}, of which it recorded {recorded}"
            )
        self._check_prefix(member, log, min(position, len(self.committed)))
        if position > len(self.committed):
            self.committed += log[len(self.committed) :]

    def _check_prefix(self, member: Member, log: list[Entry], length: int) -> None:
        if log[:length] != self.committed[:length]:
            raise RuleBrokenError(
                f"member {member.id} has {log[:length]}, where {self.committed[:length]} is committed"
            )
