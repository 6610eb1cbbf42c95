"""Two clusters on one driver and archive, which hear nothing of each other. Cluster specification 11.2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.cluster import ClusteredService, ClusterError, ConsensusModule, ServiceContainer
from headrace.testing import World
from tests.cluster.members import Member, Script

OTHER_MEMBERS = "0,leader:9102,leader:9103,leader:9104,leader:9105,leader:9101"
OTHER_STREAMS = {"service_stream_id": 1104, "consensus_module_stream_id": 1105}


class Keeps(ClusteredService):
    """Keeps what it hears, and answers how much that is."""

    def __init__(self) -> None:
        self.items: list[bytes] = []

    def on_session_message(self, session: Any, timestamp: int, message: bytes, position: int) -> None:
        """See the base class."""
        self.items.append(message)
        session.offer(b"%d" % len(self.items))


@pytest.fixture
def world() -> Iterator[World]:
    with World(20261130) as made:
        yield made


def other_module(first: Member, **settings: Any) -> ConsensusModule:
    node = first.node
    given = {**first.settings, "members": OTHER_MEMBERS, "cluster_id": 1, **settings}
    return node.host(
        lambda: ConsensusModule(driver=node, is_invoked=True, storage=node.disk("other"), **given)
    )


def container(member: Member, cluster_id: int, **settings: Any) -> tuple[ServiceContainer, Keeps]:
    node, service = member.node, Keeps()
    storage = node.disk(f"services-{cluster_id}")
    hosted = node.host(
        lambda: ServiceContainer(
            service, driver=node, is_invoked=True, storage=storage, cluster_id=cluster_id, **settings
        )
    )
    return hosted, service


@pytest.mark.parametrize(
    ("first_settings", "settings", "words"),
    [
        ({}, {}, "service_stream_id=104, consensus_module_stream_id=105: cluster_id=0 uses the same"),
        ({}, {"service_stream_id": 1104}, "consensus_module_stream_id=105: cluster_id=0"),
        # The one's to services is the other's from services.
        (
            {},
            {"service_stream_id": 105, "consensus_module_stream_id": 7},
            "service_stream_id=105: cluster_id=0",
        ),
        (
            {"ingress_ipc_allowed": True},
            {"ingress_ipc_allowed": True, **OTHER_STREAMS},
            "ingress_stream_id=101:",
        ),
    ],
)
def test_a_cluster_that_another_on_the_driver_would_hear_does_not_start(
    world: World, first_settings: dict[str, Any], settings: dict[str, Any], words: str
) -> None:
    first = Member(world, world.add_node("leader"), **first_settings)
    first.await_leader()
    with pytest.raises(ClusterError, match=words) as refusal:
        other_module(first, **settings)
    assert "give all parts of cluster_id=1 other streams" in str(refusal.value)
    world.run_for(1.0)
    assert first.module.is_leader


def test_clusters_with_streams_of_their_own_keep_their_commands_to_themselves(world: World) -> None:
    first = Member(world, world.add_node("leader"), service_count=1)
    other = other_module(first, **OTHER_STREAMS)
    (_, one), (_, two) = container(first, 0), container(first, 1, **OTHER_STREAMS)
    first.until(lambda: first.module.is_leader and other.is_leader, "two leaders")
    scripts = [
        Script(first, world.add_node(name), ingress=f"aeron:udp?endpoint=leader:{port}")
        for name, port in (("a", 9002), ("b", 9102))
    ]
    for number, script in enumerate(scripts):
        script.connect()
        script.message(b"for cluster %d" % number)
        assert script.answer() == b"1"
    assert (one.items, two.items) == ([b"for cluster 0"], [b"for cluster 1"])
    other.close()
    world.run_for(1.0)
    assert first.module.is_leader


def test_a_service_that_its_module_would_not_hear_says_so_before_another_cluster_hears_it(
    world: World,
) -> None:
    first = Member(world, world.add_node("leader"), service_count=1)
    other_module(first, **OTHER_STREAMS)
    container(first, 0)
    first.await_leader()
    lost, _ = container(first, 1)
    first.until(lambda: lost.failure is not None, "the end of the container")
    assert (
        "service_stream_id=104, consensus_module_stream_id=105: the consensus module of cluster_id=1 has"
        in str(lost.failure)
    )
    world.run_for(1.0)
    assert first.module.is_leader
