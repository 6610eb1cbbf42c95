"""Single scenarios of clusters of several members: what the specification's section 11.2 lists, in virtual time."""

from __future__ import annotations

from functools import partial

import pytest

from headrace._agent.tasks import Task
from headrace.cluster.consensus.actions import ReplicateLog
from headrace.cluster.files.node_state import CandidateTerm, NodeStateFile
from headrace.cluster.member.log_copy import LogCopy
from headrace.cluster.member.states import ModuleState, Toggle
from headrace.event_log import read_events
from headrace.testing import Killed
from headrace.testing.cluster import ClusterMember, ClusterRuleError, ClusterWorld
from tests.sim.ledger import Ledger, Oracle
from tests.sim.ledgers import Commands, check_ledgers

pytestmark = pytest.mark.sim


class Lab(ClusterWorld):
    """A cluster of ledgers with one client, from its first leader on."""

    def __init__(self, seed: int = 1, kinds: tuple[str, ...] = ("append",), **settings: object) -> None:
        self.oracle = Oracle()
        super().__init__(
            lambda: Ledger(self.oracle),
            seed=seed,
            state_of=lambda ledger: ledger.digest,
            **{"rest_s": 0.005, **settings},  # type: ignore[arg-type]
        )
        self.client = self.add_client(Commands("client", kinds), rate=50.0)

    def await_answers(self, count: int = 20) -> None:
        """Until the client has so many more."""
        wanted = len(self.client.answers) + count
        self.run_until(lambda: len(self.client.answers) >= wanted, what=f"{count} answers")

    def await_another_leader(self, before: ClusterMember) -> ClusterMember:
        self.run_until(lambda: self.leader not in (None, before), what="another leader")
        leader = self.leader
        assert leader is not None
        return leader

    def await_snapshot(self) -> None:
        """Until all members have taken one more."""
        before = [one.module.snapshot_count if one.module else 0 for one in self.members]
        self.run_until(lambda: self.request(Toggle.SNAPSHOT), what="a time for a snapshot")
        self.run_until(
            lambda: all(
                one.module is not None and one.module.snapshot_count > count
                for one, count in zip(self.members, before, strict=True)
            ),
            what="a snapshot",
        )

    def settle(self, within_s: float = 60.0) -> None:
        super().settle(within_s)
        check_ledgers(self)
        assert not self.oracle.faults, self.oracle.faults[0]


@pytest.mark.parametrize("seed", range(3))
def test_members_that_start_at_once_do_not_stand_again_and_again(seed: int) -> None:
    with Lab(seed, rest_s=0.001) as lab:
        assert lab.await_leader().leadership_term_id < 3


def test_a_log_that_was_begun_and_is_empty_takes_over_the_leaders() -> None:
    with Lab() as lab:
        for member in lab.members:
            # So that no two recordings are begun at the same time.
            member.node.set_clock_skew(float(member.member_id))

        def has_empty_log(member: ClusterMember) -> bool:
            recording = None if member.module is None else member.module._term_log.recording
            return recording is not None and recording.has_begun and recording.position == 0

        lab.run_until(lambda: any(map(has_empty_log, lab.members)), what="a leader's recording")
        late = next(filter(has_empty_log, lab.members))
        late.hold()
        lab.await_answers()
        # With another term begun, the late one copies the log before it follows.
        lab.await_leader().crash()
        lab.await_answers()
        late.mend()
        lab.run_until(lambda: late.is_elected, what="the late member")
        late.crash()
        lab.settle()


def test_the_same_seed_gives_the_same_run() -> None:
    digests = []
    for _ in range(2):
        with Lab(7, time_scale=0.25, rest_s=0.01) as lab:
            lab.run_faults(1.0, ["kill", "partition", "transfer", "other settings"])
            digests.append((lab.world.digest, len(lab.client.answers), lab.notes))
    assert digests[0] == digests[1]


def test_an_operator_has_another_member_lead() -> None:
    with Lab() as lab:
        lab.await_answers()
        old, wanted = lab.await_leader(), lab.followers[-1]
        lab.run_until(lambda: lab.request(Toggle.TRANSFER_LEADERSHIP, wanted), what="a time for a transfer")
        assert lab.await_another_leader(old) is wanted
        lab.await_answers()
        lab.settle()


def test_a_member_whose_disks_were_lost_has_no_vote_before_it_follows() -> None:
    with Lab() as lab:
        lab.await_answers()
        lost, other = lab.followers
        lab.await_leader().hold()
        lost.empty()
        # The leader's log is the only other one: a member that has forgotten its vote must not give it another time.
        lab.run_for(5.0)
        assert lab.leader is None
        assert not lost.is_elected
        assert not other.is_elected
        lab.heal()
        lab.await_answers()
        lab.settle()


# --- partitions -----------------------------------------------------------------------------------------------------


def test_the_end_of_a_minoritys_log_is_cut_off_when_it_returns() -> None:
    with Lab() as lab:
        lab.await_answers()
        old = lab.await_leader()
        # Its clients are on its side: it appends what they send, and commits nothing of it.
        lab.world.partition([old.node, lab.desk], [one.node for one in lab.members if one is not old])
        before = len(lab.client.sent)
        lab.run_until(lambda: len(lab.client.sent) > before + 20, what="commands that are not committed")
        lab.run_for(0.05)
        assert old.module is not None
        tail = old.module._term_log.recording.position
        assert tail > old.commit_position
        new = lab.await_another_leader(old)
        assert new.commit_position < tail
        lab.settle()
        payloads = {message.payload for message in lab.rules.messages()}
        lost = [one.payload for one in lab.client.sent[before + 5 : before + 15]]
        assert payloads.isdisjoint(lost)


def test_a_leader_that_hears_nobody_makes_room_for_another() -> None:
    with Lab() as lab:
        lab.await_answers()
        deaf = lab.await_leader()
        for node in lab.world.nodes.values():
            if node is not deaf.node:
                node.cut(deaf.node)
        lab.await_another_leader(deaf)
        lab.await_answers()
        lab.settle()


def test_a_leader_that_nobody_hears_makes_room_for_another() -> None:
    with Lab() as lab:
        lab.await_answers()
        dumb = lab.await_leader()
        for node in lab.world.nodes.values():
            if node is not dumb.node:
                dumb.node.cut(node)
        lab.await_another_leader(dumb)
        lab.await_answers()
        lab.settle()


@pytest.mark.parametrize("hears", [True, False])
def test_a_follower_with_half_a_network_does_not_stop_the_others(hears: bool) -> None:
    with Lab() as lab:
        lab.await_answers()
        half = lab.followers[0]
        for node in lab.world.nodes.values():
            if node is not half.node:
                (half.node if hears else node).cut(node if hears else half.node)
        for _ in range(5):
            lab.run_for(1)
            lab.await_answers()
        lab.settle()


def test_what_an_isolated_leader_suspends_goes_on() -> None:
    with Lab() as lab:
        lab.await_answers()
        old = lab.await_leader()
        lab.isolate(old)
        assert old.module is not None
        old.module.request(Toggle.SUSPEND)
        lab.run_until(lambda: old.module and old.module.state is ModuleState.SUSPENDED, what="a suspension")
        lab.await_another_leader(old)
        lab.heal()
        lab.run_until(lambda: old.is_elected, what="the old leader")
        assert old.module.state is ModuleState.ACTIVE
        lab.settle()


def test_a_leader_that_ends_loses_its_quorum_meanwhile() -> None:
    with Lab() as lab:
        lab.await_answers()
        old = lab.await_leader()
        lab.world.partition([old.node, lab.desk], [one.node for one in lab.members if one is not old])
        before = len(lab.client.sent)
        lab.run_until(lambda: len(lab.client.sent) > before + 20, what="commands that are not committed")
        lab.run_for(0.05)
        # Its service is to end after commands that it is never to read.
        assert lab.request(Toggle.ABORT)
        lab.run_until(lambda: not old.is_up, what="the end of the leader")
        assert old.failure == "module: None"
        lab.settle()


# --- votes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_member_dies_with_its_vote(is_stored: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is stored, and after that but before it is sent; and the first candidate dies with its own."""
    vote = NodeStateFile.vote
    died: list[str] = []

    def vote_and_die(self: NodeStateFile, candidate: CandidateTerm) -> None:
        is_first = len(died) < 4 and self.path not in died
        if is_stored or not is_first:
            vote(self, candidate)
        if is_first:
            died.append(self.path)
            raise Killed(self.path)

    monkeypatch.setattr(NodeStateFile, "vote", vote_and_die)
    with Lab() as lab:
        lab.await_answers()
        assert len(died) == 3
        lab.settle()


# --- deaths ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_followers_it", [True, False])
def test_a_leader_dies_between_append_and_commit(has_followers_it: bool) -> None:
    """What a follower has is committed by the next leader; what no follower has was never there."""
    with Lab() as lab:
        lab.await_answers()
        old = lab.await_leader()
        for one in lab.members:
            if one is not old:
                (one.node if has_followers_it else old.node).cut(old.node if has_followers_it else one.node)
        lab.run_for(0.02)
        committed, before = old.commit_position, len(lab.client.sent)
        lab.run_until(lambda: len(lab.client.sent) > before + 10, what="commands that are not committed")
        lab.run_for(0.05)
        assert old.commit_position == committed
        old.hold()
        lab.world.heal()
        wanted = lab.client.sent[before + 5].payload
        lab.await_answers()
        assert (wanted in {message.payload for message in lab.rules.messages()}) is has_followers_it
        lab.settle()


@pytest.mark.parametrize("sync_level", [1, 2])
def test_all_members_lose_power(sync_level: int) -> None:
    with Lab(sync_level=sync_level) as lab:
        for _ in range(3):
            lab.await_answers()
            for member in lab.members:
                member.cut_power()
        lab.settle()


def test_all_members_are_killed_and_one_is_late() -> None:
    with Lab() as lab:
        lab.await_answers()
        for member in lab.members:
            member.crash()
        lab.members[0].hold()
        lab.await_answers()
        lab.settle()


def test_a_leader_that_loses_both_followers_leads_no_more() -> None:
    with Lab() as lab:
        lab.await_answers()
        leader = lab.await_leader()
        others = [one for one in lab.members if one is not leader]
        for one in others:
            one.hold()
        lab.run_until(lambda: not leader.is_leader, what="the end of the term")
        others[0].mend()
        lab.await_answers()
        lab.settle()


def test_a_member_returns_several_terms_later() -> None:
    with Lab() as lab:
        lab.await_answers()
        late = lab.followers[0]
        late.hold()
        for _ in range(3):
            leader = lab.await_leader()
            leader.crash()
            lab.await_another_leader(leader)
            lab.await_answers()
        late.mend()
        lab.settle()
        terms = [
            [
                (entry.leadership_term_id, entry.term_base_log_position)
                for entry in one.module._context.recording_log
                if entry.is_term
            ]
            for one in lab.members
            if one.module is not None
        ]
        assert terms[0] == terms[1] == terms[2]
        assert len(terms[0]) > 3


class OneEnd:
    """A lifeline that says once, as soon as a leader is watched, that its process has ended."""

    def __init__(self) -> None:
        self.is_watching = self.has_said = False

    def watch(self, address: str | None) -> None:
        self.is_watching = address is not None

    def poll(self) -> bool:
        if not self.is_watching or self.has_said:
            return False
        self.has_said = True
        return True


def test_a_leader_is_watched_before_it_is_followed() -> None:
    with Lab() as lab:
        lab.await_answers()
        late = lab.followers[0]
        late.crash()
        lab.run_until(lambda: late.module is not None, what="a start")
        assert late.module is not None
        late.module._election._lifeline = OneEnd()  # type: ignore[assignment]
        lab.await_answers()
        lab.settle()
        events = read_events(late.node.disk("cluster").event_directory)
        (end,) = (one for one in events if one.reason == "the leader's process has ended")
        assert end.old.startswith("Follower")


# --- disks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_snapshot", [False, True])
def test_a_member_with_empty_disks_gets_the_log(with_snapshot: bool) -> None:
    with Lab() as lab:
        lab.await_answers()
        if with_snapshot:
            lab.await_snapshot()
        for member in (lab.followers[0], lab.await_leader()):
            member.empty()
            lab.await_answers()
            lab.run_until(partial(getattr, member, "is_elected"), what="the emptied member")
        lab.settle()


@pytest.mark.parametrize("is_leader", [True, False])
def test_the_disk_of_a_member_is_full(is_leader: bool) -> None:
    with Lab() as lab:
        lab.await_answers()
        full = lab.await_leader() if is_leader else lab.followers[0]
        full.node.disk("archive").space = 0
        lab.run_until(lambda: not full.is_up, what="the end of the member")
        lab.await_answers()
        lab.settle()


def test_a_leader_commits_no_more_than_its_own_archive_has() -> None:
    with Lab() as lab:
        lab.await_answers()
        leader = lab.await_leader()
        committed = leader.commit_position
        leader.stall("archive", 0.5)
        lab.run_for(0.4)
        assert all(one.applied_position <= committed + 1000 for one in lab.members)
        lab.await_answers()
        assert lab.leader is leader
        lab.settle()


# --- services -------------------------------------------------------------------------------------------------------


def test_snapshots_are_taken_under_load_and_loaded_by_all() -> None:
    with Lab() as lab:
        lab.await_answers()
        lab.await_snapshot()
        lab.await_snapshot()
        for member in lab.members:
            member.crash()
        lab.await_answers()
        lab.settle()


def test_timers_and_messages_of_services_survive_failovers() -> None:
    with Lab(kinds=("timer", "self", "later", "move", "again", "cancel")) as lab:
        for _ in range(3):
            lab.await_answers()
            lab.await_leader().crash()
        lab.settle()


def test_a_service_that_is_not_deterministic_is_found() -> None:
    with Lab() as lab:
        lab.await_answers()
        service = lab.followers[0].service
        assert isinstance(service, Ledger)
        service.digest += 1
        with pytest.raises(ClusterRuleError, match="has the state"):
            lab.await_answers()


def test_the_archive_dies_before_it_copies_the_leaders_log(monkeypatch: pytest.MonkeyPatch) -> None:
    replicated = LogCopy.replicated
    deaths: list[int] = []

    def replicated_without_archive(self: LogCopy, action: ReplicateLog) -> Task[int]:
        if not deaths:
            late.kill("archive")
            while self._context.archive.is_ready:
                yield
            deaths.append(late.member_id)
        return (yield from replicated(self, action))

    with Lab() as lab:
        lab.await_answers()
        late = lab.followers[0]
        late.hold()
        lab.await_answers()
        lab.await_leader().crash()
        lab.await_answers()
        monkeypatch.setattr(LogCopy, "replicated", replicated_without_archive)
        late.mend()
        lab.run_until(lambda: deaths, what="the death of the archive")
        lab.settle()
