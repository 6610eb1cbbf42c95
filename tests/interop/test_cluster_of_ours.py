"""The reference's clients and tools on a cluster of three members of ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from benches.processes import JavaPeer

import headrace
from headrace.cluster.common.counters import ClusterCounter
from tests.helpers import await_true
from tests.interop.members import EGRESS, Member, endpoints, running_cluster
from tests.interop.test_cluster_node import call, java_program, tool

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture(scope="module")
def aeron() -> Iterator[str]:
    """The directory of the clients' driver."""
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver:
        yield driver.directory


def leader_of(members: list[Member]) -> Member:
    """The member that leads, once one does."""
    found: list[Member] = []

    def is_found() -> bool:
        found[:] = [one for one in members if one.is_running and one.counter(ClusterCounter.NODE_ROLE) == 2]
        return len(found) == 1

    await_true(is_found)
    return found[0]


def agree(java: JavaPeer, members: list[Member]) -> str:
    """Have a snapshot taken, which shows that all members have the same state; returns the state."""
    leader = leader_of(members)
    before = [len(member.said("SNAPSHOT")) for member in members]
    assert "SNAPSHOT applied successfully" in tool(java, leader.cluster_directory, "snapshot")
    await_true(
        lambda: all(len(one.said("SNAPSHOT")) > count for one, count in zip(members, before, strict=True))
    )
    [state] = {member.said("SNAPSHOT")[-1] for member in members}
    return state


def test_a_client_in_java_is_redirected_says_who_it_is_and_stays_alive(
    java: JavaPeer, aeron: str, tmp_path: Path
) -> None:
    settings = {"session_timeout": "3s", "authenticator_supplier": "tests.interop.asking:Asking"}
    with running_cluster(java, tmp_path, "ooo", **settings) as members:
        leader = leader_of(members)
        followers = [member for member in members if member is not leader]
        ways = ["echo:500:100", "echo:20:60000", "alive:7000", "snapshot", "echo:1:10"]
        assert call(java, aeron, endpoints(followers), EGRESS, *ways, credentials="alice:secret") == [
            "CONNECTED",
            "ECHOED 500",
            "ECHOED 20",
            "ALIVE []",
            "ADMIN SNAPSHOT OK ",
            "ECHOED 1",
            "DONE",
        ]
        await_true(lambda: all(member.said("SNAPSHOT") for member in members))
        assert (
            len({*members[0].said("SNAPSHOT"), *members[1].said("SNAPSHOT"), *members[2].said("SNAPSHOT")})
            == 1
        )
        lines = call(java, aeron, endpoints(followers[1:]), EGRESS, "silent", answer="it is me")
        assert lines == ["CHALLENGED who is there?", "CONNECTED", "CLOSED [CLOSED TIMEOUT]", "DONE"]
        lines = call(java, aeron, endpoints(followers), EGRESS, credentials="alice:wrong")
        assert lines == ["REFUSED AuthenticationException ERROR - session failed authentication"]


def test_a_client_in_java_goes_on_with_the_next_leader(java: JavaPeer, aeron: str, tmp_path: Path) -> None:
    with running_cluster(java, tmp_path, "ooo") as members:
        with java_program(java, "ClusterEcho", aeron, endpoints(members), 0, 5000, 1) as client:
            client.printed("READY")
            for count in (1, 2):
                old = leader_of(members)
                old.kill()
                await_true(lambda count=count: client.has_ended or len(client.all_printed("LEADER")) == count)
                assert client.all_printed("LEADER")[-1] == str(leader_of(members).number)
                old.restart()
            assert client.printed("DONE") == "5000"
        assert int(agree(java, members).split(" ")[0]) >= 5000
