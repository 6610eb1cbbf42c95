"""Snapshots that one follower takes, and the others copy, while the cluster goes on."""

from __future__ import annotations

import pytest

from headrace.cluster.member.states import Command, ModuleState
from headrace.positions import NULL_VALUE
from headrace.testing.cluster import ClusterMember
from tests.sim.commands import Asked
from tests.sim.test_cluster_scenarios import Lab

pytestmark = pytest.mark.sim


def _snapshots(member: ClusterMember) -> list[int]:
    """The positions of its whole snapshots."""
    assert member.module is not None
    log = member.module._context.recording_log
    return [one.log_position for one in log if one.is_snapshot and one.service_id == NULL_VALUE]


def _taken(lab: Lab, member_id: int = NULL_VALUE) -> Asked:
    return Asked(lab.await_leader(), Command.SNAPSHOT_ON_FOLLOWER, member_id)


def _await_copies(lab: Lab, count: int = 1) -> None:
    lab.run_until(
        lambda: all(one.is_up and len(_snapshots(one)) >= count for one in lab.members), what="copies"
    )


def test_one_follower_pauses_and_all_members_have_the_snapshot() -> None:
    with Lab() as lab:
        lab.await_agreement()
        lab.await_answers()
        leader, chosen = lab.await_leader(), lab.followers[-1]
        asked = _taken(lab)
        assert chosen.module is not None
        states: list[ModuleState] = []
        # Its disk is slow: the cluster goes on meanwhile.
        lab.run_until(
            lambda: chosen.module and chosen.module.state is ModuleState.SNAPSHOT, what="a snapshot"
        )
        chosen.stall("archive", 0.5)
        for member in lab.members:
            assert member.module is not None
            states.append(member.module.state)
        assert states.count(ModuleState.SNAPSHOT) == 1
        before = len(lab.client.answers)
        lab.run_for(0.5)
        assert len(lab.client.answers) > before + 10
        lab.run_until(lambda: asked.answer, what="the leader's copy")
        assert asked.text.startswith(f"member {chosen.member_id} has taken a snapshot")
        _await_copies(lab)
        assert {tuple(_snapshots(one)) for one in lab.members} == {tuple(_snapshots(leader))}
        # Each starts from its copy.
        lab.await_answers()
        position = _snapshots(leader)[0]
        for member in lab.members:
            member.crash()
        lab.run_until(lambda: all(one.is_elected for one in lab.members), what="the members")
        for member in lab.members:
            assert member.module is not None
            assert member.module._context.plan.snapshots[0].log_position == position  # type: ignore[union-attr]
        lab.settle()


def test_a_member_without_followers_that_can_refuses() -> None:
    with Lab() as lab:
        lab.await_agreement()
        asked = _taken(lab, 7)
        lab.run_until(lambda: asked.answer, what="a refusal")
        assert "no follower with member_id=7 can take a snapshot alone" in asked.text


@pytest.mark.parametrize("dies", ["leader", "chosen", "chosen, held", "all"])
def test_members_die_while_it_is_taken(dies: str) -> None:
    with Lab() as lab:
        lab.await_agreement()
        lab.await_answers()
        leader, chosen = lab.await_leader(), lab.followers[-1]
        _taken(lab)
        assert chosen.module is not None
        lab.run_until(
            lambda: chosen.module and chosen.module.state is ModuleState.SNAPSHOT, what="a snapshot"
        )
        if dies == "leader":
            leader.crash()
        elif dies == "chosen":
            chosen.crash()
        elif dies == "chosen, held":
            chosen.hold()
            lab.await_answers(50)
        else:
            for member in lab.members:
                member.crash()
        lab.heal()
        lab.await_answers()
        # The log asks again for what was not taken, when it is read again.
        _await_copies(lab)
        lab.settle()


@pytest.mark.parametrize("seed", range(2))
def test_it_is_taken_again_and_again_among_faults(seed: int) -> None:
    with Lab(seed) as lab:
        lab.await_answers()
        for _ in range(6):
            lab.run_until(lambda: lab.leader, what="a leader")
            _taken(lab)
            lab.run_faults(0.7, ("kill", "kill of a part", "partition", "pause", "stall", "power cut"))
        lab.settle()
        # Each loads what it has copied.
        asked = _taken(lab)
        lab.run_until(lambda: asked.answer, what="one without faults")
        assert asked.text.startswith("member ")
        _await_copies(lab)
        for member in lab.members:
            member.crash()
        lab.await_agreement()
        lab.check()
