"""Nodes whose members are listed: of a cluster of one, and of several."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.archive import ArchiveConfig
from headrace.cluster import ClusterClient, ClusterError, ClusterNode, ConsensusModuleConfig
from headrace.cluster.common.members import parse_members
from headrace.cluster.node.node_settings import NodeSettings
from headrace.cluster.node.running_member import RunningMember
from tests.cluster.test_node import Total, sums
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_member

SMALL_LOG = "aeron:udp?term-length=64k"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ClusterNode]]:
    """Three members, one after the other by who leads: the leader first."""
    hosts = ",".join(free_member() for _ in range(3))
    with contextlib.ExitStack() as held:
        made = [
            held.enter_context(
                ClusterNode(
                    Total(),
                    directory=tmp_path_factory.mktemp(f"member-{member_id}"),
                    members=hosts,
                    member_id=member_id,
                    log_channel=SMALL_LOG,
                )
            )
            for member_id in range(3)
        ]
        for node in made:
            node.wait_until_leader(TIMEOUT_S)
        yield sorted(made, key=lambda node: not node.module.is_leader)


def test_any_member_leads_to_the_leader(nodes: list[ClusterNode]) -> None:
    leader, *followers = nodes
    leader_id = leader.module.config.member_id
    assert [node.module.leader_member_id for node in nodes] == [leader_id] * 3
    for number, node in enumerate(nodes):
        with node.connect() as cluster:
            assert cluster.leader_member_id == leader_id
            cluster.offer_blocking(b"1")
            answer = cluster.receive(TIMEOUT_S)
            assert answer is not None
            assert int(answer.payload) == number + 1
    await_true(lambda: all(one.module.commit_position == leader.module.commit_position for one in followers))


def test_a_leader_has_all_members_take_a_snapshot(nodes: list[ClusterNode]) -> None:
    leader, follower, other = nodes
    with pytest.raises(
        ClusterError, match=rf"^member {leader.module.config.member_id} leads, and has snapshots taken"
    ):
        follower.take_snapshot()
    leader.take_snapshot()
    await_true(lambda: follower.module.snapshot_count == other.module.snapshot_count == 1)


def test_members_say_how_far_each_is(nodes: list[ClusterNode]) -> None:
    """Those that follow may be behind with what they say of others."""

    def as_seen_by(node: ClusterNode) -> dict[int, int]:
        seen = RunningMember(Path(node.directory) / "cluster").members(TIMEOUT_S)
        assert seen.leader_member_id == nodes[0].module.config.member_id
        assert all(one.time_of_last_append_ns <= seen.current_time_ns for one in seen.active_members)
        return {one.member_id: one.log_position for one in seen.active_members}

    await_true(lambda: set(as_seen_by(nodes[0]).values()) == {nodes[0].module.commit_position})
    for node in nodes[1:]:
        seen = as_seen_by(node)
        assert seen.keys() == {0, 1, 2}
        assert seen[node.module.config.member_id] == node.module.commit_position


@pytest.mark.system
@pytest.mark.parametrize("name", ["snapshot", "suspend", "resume", "shutdown", "abort"])
def test_a_follower_says_who_leads(nodes: list[ClusterNode], name: str) -> None:
    leader_id, member_id = (node.module.config.member_id for node in nodes[:2])
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "cluster", name, nodes[1].directory],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 255
    assert done.stderr == (
        f"error: Member [{member_id}]: Current node is not the leader (leaderMemberId = {leader_id}), "
        f"unable to {name.upper()}\n"
    )


def test_a_list_of_one_member_says_where_clients_send(tmp_path: Path) -> None:
    (member,) = parse_members(hosts := free_member())
    with ClusterNode(Total(), directory=tmp_path, members=hosts) as node:
        assert sums(node, 5) == [5]
        with ClusterClient.connect(
            driver=node.driver, ingress_endpoints=f"0={member.ingress_endpoint}"
        ) as cluster:
            cluster.offer_blocking(b"5")
            assert cluster.receive().payload == b"10"


def test_a_member_takes_its_channels_from_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment may name the list, the machine which of the members it is."""
    monkeypatch.setenv("AERON_CLUSTER_MEMBERS", "alpha,beta,gamma")
    monkeypatch.setattr(socket, "gethostname", lambda: "beta")
    made = NodeSettings.of(Path("node"), 1, None, {}, {"log_channel": "aeron:udp?term-length=1m"})
    module = ConsensusModuleConfig.of(**made.module)
    assert (module.member_id, module.member.host, len(module.all_members)) == (1, "beta", 3)
    assert (module.ingress_channel, module.serves_ipc) == ("aeron:udp", True)
    assert module.log_channel == "aeron:udp?term-length=1m"
    assert module.replication_channel == "aeron:udp?endpoint=beta:0"
    archive = ArchiveConfig.of(**made.archive)
    assert archive.control_channel == f"aeron:udp?endpoint={module.member.archive_endpoint}"
    assert archive.local_control_channel == module.archive_control_channel
