"""A member is replaced by a machine at another address while the cluster goes on, whatever dies or comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headrace.cluster.common.members import Member, parse_members
from headrace.cluster.member.member_table import MEMBERS_NAME
from headrace.cluster.member.states import Command
from headrace.testing.cluster import ClusterMember
from tests.sim import test_cluster_scenarios as scenarios
from tests.sim.commands import Asked

pytestmark = pytest.mark.sim

GONE = 2
NEW = "member2b:9002,member2b:9003,member2b:9004,member2b:0,member2b:8010"


class Lab(scenarios.Lab):
    """A cluster whose members may be given lists of their own."""

    def __init__(self, seed: int = 1, **settings: Any) -> None:
        super().__init__(seed, **settings)
        self.await_agreement()
        self.await_answers()
        self.old_list = self._members_text
        self.new_list = "|".join(
            f"{GONE},{NEW}" if one.startswith(f"{GONE},") else one for one in self.old_list.split("|")
        )

    def lose(self) -> ClusterMember:
        """The machine is lost, and the others have noticed; returns it."""
        gone = self.members[GONE]
        if gone.is_leader:
            gone.crash()
            self.await_another_leader(gone)
        gone.hold()
        self.run_for(1.5 * self.leader_timeout_s)
        self.await_leader()
        return gone

    def ask(self, member_id: int = GONE, text: str = NEW, of: ClusterMember | None = None) -> Asked:
        return Asked(of or self.await_leader(), Command.REPLACE_MEMBER, member_id, text)

    def answered(self, asked: Asked) -> str:
        self.run_until(lambda: asked.answer, what="an answer to the operator")
        return asked.text

    def start_new(self) -> ClusterMember:
        """Start the new machine, which takes the place of the old one in the cluster."""
        node = self.add_node("member2b")
        new = ClusterMember(self, GONE, node)
        new.settings["members"] = self.new_list
        new.is_replacement = True
        self.members[GONE] = new
        self._turns.append(new)
        new.start()
        return new

    def await_new(self, new: ClusterMember) -> None:
        """Until the new machine has the log: no one before may be missing."""
        self.run_until(lambda: new.is_elected, what="the new member")

    def listed(self, member: ClusterMember) -> tuple[Member, ...]:
        assert member.module is not None
        return member.module._context.members.current

    @property
    def others(self) -> list[ClusterMember]:
        return [one for one in self.members if one.member_id != GONE]

    def are_changed(self) -> bool:
        new = parse_members(self.new_list)
        return all(one.module is not None and self.listed(one) == new for one in self.others)

    def is_admitted(self) -> bool:
        leader = self.leader
        return leader is not None and leader.module is not None and leader.module._context.members.is_admitted


def test_another_machine_is_the_member_and_may_be_the_majority() -> None:
    with Lab() as lab:
        old = lab.lose()
        before = len(lab.client.answers)
        text = lab.answered(lab.ask())
        assert text == (
            "member 2 is at member2b:9003 now: start it there with an empty directory, the new list, and --replacement"
        )
        lab.await_answers()
        new = lab.start_new()
        lab.await_agreement()
        assert len(lab.client.answers) > before
        assert lab.are_changed()
        # It is needed, and counted.
        other = next(one for one in lab.others if not one.is_leader)
        other.hold()
        lab.await_answers()
        leader = lab.await_leader()
        leader.hold()
        other.mend()
        lab.await_another_leader(leader)
        lab.await_answers()
        leader.mend()
        # Neither the old settings of the others nor those of a replacement matter any more.
        for member in lab.members:
            member.crash()
        lab.await_answers()
        lab.await_agreement()
        assert lab.are_changed()
        assert new.module is not None
        assert not new.module._election.core.has_lost
        assert old.node.name == "member2"
        lab.settle()


def test_members_may_have_the_new_list_when_they_start_again_and_no_third_one() -> None:
    with Lab() as lab:
        lab.lose()
        lab.answered(lab.ask())
        one, other = lab.others
        one.settings["members"] = lab.new_list
        one.crash()
        lab.run_until(lambda: one.is_elected, what="the member with the new list")
        other.settings["members"] = lab.new_list.replace("member2b", "member2c")
        other.crash()
        lab.run_until(lambda: "members is another list" in other.failure, what="a refusal")
        assert "member 2 is member2c:9002,member2c:9003" in other.failure
        assert "here, member2b:9002,member2b:9003" in other.failure
        other.settings.clear()
        other.mend()
        lab.await_new(lab.start_new())
        lab.settle()


def test_the_old_machine_is_not_counted_when_it_comes_back() -> None:
    with Lab() as lab:
        old = lab.lose()
        lab.answered(lab.ask())
        lab.start_new()
        lab.await_agreement()
        leader = lab.await_leader()
        if leader.member_id == GONE:
            leader.crash()
            leader = lab.await_another_leader(leader)
            lab.await_agreement()
        for member in lab.members:
            if member is not leader:
                member.hold()
        old.mend()
        before = lab.rules.committed_position
        lab.run_for(8.0 * lab.leader_timeout_s)
        # One of three, and a machine that was a member once, commit and elect nothing.
        assert lab.leader is None
        assert lab.rules.committed_position == before
        for member in lab.members:
            member.mend()
        lab.await_answers()
        # What it does not hear of it does not know: it only looks for a leader.
        assert not old.is_elected
        lab.settle()


def test_the_old_machine_ends_when_it_reads_that_it_was_replaced() -> None:
    with Lab() as lab:
        lab.lose()
        lab.answered(lab.ask())
        # As from a copy of the log.
        other = next(one for one in lab.others if not one.is_leader)
        other.settings |= {"member_id": GONE, "members": lab.old_list}
        other.node.disk("cluster").delete(MEMBERS_NAME)
        assert other.module is not None
        entry = lab.await_leader().module._context.members  # type: ignore[union-attr]
        with pytest.raises(Exception, match="member 2 has been replaced: it is at member2b:9003 now"):
            _table(lab, other).adopt(entry.position, entry.current)
        other.settings.clear()
        other.mend()
        lab.await_new(lab.start_new())
        lab.settle()


def _table(lab: Lab, member: ClusterMember) -> Any:
    from headrace.cluster.member.config import ConsensusModuleConfig
    from headrace.cluster.member.member_table import MemberTable

    return MemberTable(member.node.disk("spare"), ConsensusModuleConfig.of(**lab.module_settings(member)))


@pytest.mark.parametrize(
    ("member_id", "text", "why"),
    [
        (7, NEW, "there is no member 7: the members are 0, 1, 2"),
        (GONE, "member2", "must be from 1024 to"),
        (GONE, "a,b,c", "must be hosts"),
        (GONE, "member0:9002,x:3,x:4,x:0,x:5", "has member0:9002 for member 0 and for member 2"),
        (GONE, "member2:9002,member2:9003,member2:9004,member2:0,member2:8010", "already"),
    ],
)
def test_what_names_no_new_place_is_refused(member_id: int, text: str, why: str) -> None:
    with Lab() as lab:
        if why.startswith("must be from"):
            text = "member2:80"
        lab.lose()
        assert why in lab.answered(lab.ask(member_id, text))
        assert not lab.are_changed()


def test_what_is_not_safe_is_refused() -> None:
    with Lab() as lab:
        follower = lab.followers[0]
        leader = lab.await_leader()
        assert f"member {leader.member_id} leads" in lab.answered(lab.ask(of=follower))
        assert "a leader cannot replace itself" in lab.answered(lab.ask(leader.member_id))
        alive = lab.followers[-1].member_id
        text = NEW.replace("member2b", "other")
        assert f"member {alive} is heard from 10.0.0." in lab.answered(lab.ask(alive, text))
        lab.lose()
        other = next(one for one in lab.others if not one.is_leader)
        first = lab.ask()
        assert "another command is being carried out" in lab.answered(lab.ask())
        del first
        lab.run_until(lab.are_changed, what="the change")
        lab.run_until(lab.is_admitted, what="the new member's admission")
        # The new member does not follow, so that no other one can be spared.
        assert other.module is not None
        again = lab.ask(other.member_id, text)
        assert "no majority" in lab.answered(again) or "does not follow yet" in again.text
        lab.await_new(lab.start_new())
        lab.settle()


def test_a_follower_that_does_not_answer_as_ours_do_is_taken_for_one_of_aerons() -> None:
    with Lab() as lab:
        lab.lose()
        other = next(one for one in lab.others if not one.is_leader)
        assert other.module is not None
        other.module._clients.reads.on_message = lambda *_: None  # type: ignore[method-assign]
        text = lab.answered(lab.ask())
        assert text.startswith(
            f"member {other.member_id} has not answered a question that only members of Headrace"
        )
        assert not lab.are_changed()


def _position(member: ClusterMember) -> int:
    return -1 if member.module is None else member.module._context.members.position


STEPS: dict[str, Callable[[Lab, ClusterMember, ClusterMember, int], object]] = {
    "appended": lambda lab, leader, other, end: (
        leader.module is not None
        and (leader.module._term_log.leader.position or 0) > end + 96
        and leader.module._context.applied._awaited
    ),
    "committed": lambda lab, leader, other, end: _position(leader) >= 0,
    "taken by the follower": lambda lab, leader, other, end: _position(other) >= 0,
    "admitted": lambda lab, leader, other, end: lab.is_admitted() and lab.are_changed(),
}


@pytest.mark.parametrize("dies", ["leader", "follower", "both"])
@pytest.mark.parametrize("step", STEPS)
def test_members_die_between_any_two_steps(step: str, dies: str) -> None:
    with Lab() as lab:
        old = lab.lose()
        leader = lab.await_leader()
        other = next(one for one in lab.others if one is not leader)
        assert leader.module is not None
        end = leader.module._term_log.leader.position or 0
        lab.ask()
        lab.run_until(lambda: STEPS[step](lab, leader, other, end), what=step)
        for member in {"leader": [leader], "follower": [other], "both": [leader, other]}[dies]:
            member.crash()
        # The old machine is not lost after all, and everybody is restarted with the old list.
        old.mend()
        lab.run_for(2.0 * lab.leader_timeout_s)
        old.hold()
        lab.run_for(1.5 * lab.leader_timeout_s)
        lab.await_leader()
        if not lab.are_changed():
            lab.run_for(2.0 * lab.leader_timeout_s)
        if not lab.are_changed():
            assert "member 2 is at" in lab.answered(lab.ask())
        lab.run_until(lab.is_admitted, what="admission")
        new = lab.start_new()
        lab.run_until(lambda: new.is_elected, what="the new member")
        old.mend()
        lab.await_answers()
        lab.settle()


def test_the_new_machine_remembers_that_it_abstains() -> None:
    with Lab() as lab:
        lab.lose()
        lab.answered(lab.ask())
        new = lab.start_new()
        lab.run_until(lambda: new.module is not None, what="its module")
        # Before it has the log; and its operator forgets the setting.
        lab.isolate(new)
        lab.run_for(1.0 * lab.leader_timeout_s)
        new.is_replacement = False
        new.crash()
        lab.run_until(
            lambda: new.module is not None and new.module._election.has_started, what="its second life"
        )
        assert new.module is not None
        assert new.module._election.core.has_lost
        lab.world.heal()
        lab.run_until(lambda: new.is_elected, what="the new member")
        new.crash()
        lab.run_until(
            lambda: new.module is not None and new.module._election.has_started, what="its third life"
        )
        assert not new.module._election.core.has_lost
        lab.settle()


@pytest.mark.parametrize("member_count", [3, 5])
@pytest.mark.parametrize("seed", range(2))
def test_faults_of_all_kinds_come_with_it(seed: int, member_count: int) -> None:
    with Lab(seed, member_count=member_count) as lab:
        old = lab.lose()
        lab.ask()
        kinds = ("kill", "partition", "isolation", "pause", "stall", "power cut", "bad links")
        lab.run_faults(1.0, kinds)
        old.mend()
        lab.run_faults(2.0, kinds)
        lab.heal()
        lab.run_for(2.0 * lab.leader_timeout_s)
        if not lab.are_changed():
            old.hold()
            lab.run_for(3.0 * lab.leader_timeout_s)
            lab.run_until(lambda: lab.leader, what="a leader")
            if not lab.are_changed():
                lab.answered(lab.ask())
        lab.run_until(lambda: lab.are_changed() and lab.is_admitted(), what="the change")
        old.mend()
        new = lab.start_new()
        lab.run_faults(2.0, kinds)
        lab.heal()
        lab.await_new(new)
        lab.settle()
