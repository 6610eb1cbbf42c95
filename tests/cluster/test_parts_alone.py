"""A part of a member that dies in a start: the start goes on, or ends in an error that names the part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import MediaDriver
from headrace.cluster import ClusterNode, ServiceContainer
from headrace.cluster.errors import ClusterTerminalError
from headrace.testing import Node, World
from tests.cluster.members import Member
from tests.cluster.scripted import Recorder
from tests.helpers import TIMEOUT_S
from tests.sim.clusters import ClusterWorld


@pytest.fixture
def world() -> Iterator[World]:
    with World(20261129) as made:
        yield made


def serve(node: Node, service_id: int) -> ServiceContainer:
    storage = node.disk(f"service-{service_id}")
    return node.host(
        lambda: ServiceContainer(
            Recorder(), driver=node, is_invoked=True, storage=storage, service_id=service_id
        )
    )


def kill(node: Node, container: ServiceContainer) -> None:
    assert container._client is not None
    node.crash_client(container._client)
    container._forget()


@pytest.mark.parametrize("is_noticed", [True, False])
def test_a_service_killed_before_all_have_started_is_waited_for(world: World, is_noticed: bool) -> None:
    """Whether the driver has noticed that it is gone, or not, when the next one comes."""
    member = Member(world, world.add_node("leader"), service_count=2)
    first = serve(member.node, 0)
    member.until(lambda: member.module._services.missing == (1,), "the acknowledgement of service 0")
    kill(member.node, first)
    if is_noticed:
        member.until(lambda: member.module._services.missing == (0, 1), "a driver that has noticed")
    serve(member.node, 1)
    world.run_for(0.1)
    again = serve(member.node, 0)
    if is_noticed:
        member.await_leader()
        assert again.failure is None
    else:
        # Both had started when the driver noticed, or the second life took the place of the first.
        member.until(lambda: member.module.is_leader or member.module.failure, "a leader, or an error")


def test_a_member_without_the_container_of_a_service_ends_and_names_it(world: World) -> None:
    member = Member(world, world.add_node("leader"), service_count=2)
    serve(member.node, 0)
    world.run_until(lambda: member.module.failure, within_s=90.0, what="the end of the module")
    assert isinstance(member.module.failure, ClusterTerminalError)
    assert "service_id=1 of cluster_id=0 has no container on the driver" in str(member.module.failure)


def test_a_container_without_a_module_ends_and_says_so(world: World) -> None:
    node = world.add_node("leader")
    container = serve(node, 0)
    world.run_until(lambda: container.failure, within_s=90.0, what="the end of the container")
    assert "no consensus module of cluster_id=0 has started on the driver" in str(container.failure)


def test_a_replay_that_fails_before_a_service_has_joined_it_is_tried_again() -> None:
    with World(0, checks=False) as world:
        cluster = ClusterWorld(world)
        cluster.recover()
        for _ in range(4):
            for caller in cluster.callers:
                caller.wanted += 20
            world.run_for(0.2)
        cluster.crash(keeps_writes=True)
        cluster.start()
        services = cluster.module._services
        send = services.send

        def sent(message: object) -> None:
            send(message)
            if type(message).__name__ == "JoinLog" and "service" in cluster.slow:
                # Its process gets no processor for a while.
                cluster.slow["service"].until_ns = world.now_ns + 300_000_000

        services.send = sent  # type: ignore[method-assign]
        cluster.node.disk("archive").fail("read", "0-*.rec", times=1)
        world.run_until(
            lambda: cluster.module.is_leader or not cluster.is_running, within_s=60, what="a leader"
        )
        assert cluster.is_running
        cluster.check()


def test_a_node_that_is_closed_and_started_at_once_on_the_same_driver_leads(tmp_path: Path) -> None:
    with MediaDriver.embedded(threading_mode="SHARED") as driver:
        for life in range(8):
            services = [Recorder(), Recorder()]
            with ClusterNode(*services, directory=tmp_path / "node", driver=driver) as node:
                node.wait_until_leader(TIMEOUT_S)
                assert node.failure is None, f"life {life}"
