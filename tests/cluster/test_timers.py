"""Timers of services under a consensus module, through crashes: in a simulated world."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from headrace.cluster import Cluster, ClusteredService, ServiceContainer
from headrace.cluster.member.states import Toggle
from headrace.testing import Node, World
from tests.cluster.members import Member, Script


class Clock(ClusteredService):
    """Schedules and cancels timers as its clients say, and keeps which fired."""

    def __init__(self) -> None:
        self.fired: list[int] = []
        self.handled = 0

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        self.cluster = cluster
        for fired in snapshot or ():
            self.fired = json.loads(fired)

    def on_take_snapshot(self) -> Iterable[bytes]:
        yield json.dumps(self.fired).encode()

    def on_session_message(self, session: Any, timestamp: int, message: bytes, position: int) -> None:
        for command in message.decode().split(","):
            kind, timer_id, *delay = command.split()
            if kind == "in":
                self.cluster.schedule_timer(int(timer_id), timestamp + int(delay[0]))
            else:
                self.cluster.cancel_timer(int(timer_id))
        self.handled += 1

    def on_timer_event(self, correlation_id: int, timestamp: int) -> None:
        self.fired.append(correlation_id)
        if correlation_id >= 100:
            # A timer of a chain schedules itself again, at once the first times.
            self.cluster.schedule_timer(correlation_id, timestamp + (len(self.fired) // 3) * 50)


def hosted(node: Node, service_id: int) -> Clock:
    """A clock in a container."""
    service, storage = Clock(), node.disk(f"service-{service_id}")
    node.host(
        lambda: ServiceContainer(
            service, driver=node, is_invoked=True, storage=storage, service_id=service_id
        )
    )
    return service


class Clocks:
    """A member whose services are clocks."""

    def __init__(self, world: World, count: int = 1) -> None:
        self.world = world
        self.count = count
        self.node = world.add_node("leader")
        self.member = Member(world, self.node, service_count=count)
        self.serve()
        self.script = Script(self.member, world.add_node("client"))
        self.script.connect()

    def serve(self) -> None:
        self.services = [hosted(self.node, service_id) for service_id in range(self.count)]
        self.member.await_leader()

    def say(self, commands: str) -> None:
        handled = self.services[0].handled
        self.script.message(commands.encode())
        self.until(lambda: self.services[0].handled > handled)

    def until(self, condition: Callable[[], object]) -> None:
        self.member.until(condition, "clocks")

    def run_until_fired(self, count: int) -> None:
        self.until(lambda: all(len(service.fired) >= count for service in self.services))

    def snapshot(self) -> None:
        module = self.member.module
        before = module.snapshot_count
        self.until(lambda: module.takes_requests)
        module.request(Toggle.SNAPSHOT)
        self.until(lambda: module.snapshot_count > before and module.takes_requests)

    def restart(self) -> None:
        self.node.crash(keeps_writes=True)
        self.node.start()
        self.member.start()
        self.serve()

    @property
    def fired(self) -> list[int]:
        return self.services[0].fired


@pytest.fixture
def world() -> Iterator[World]:
    with World(20261124) as made:
        yield made


@pytest.mark.parametrize("count", [1, 2])
def test_a_timer_that_was_moved_fires_once_through_restarts(world: World, count: int) -> None:
    clocks = Clocks(world, count)
    clocks.say("in 7 200")
    clocks.say("in 7 400")
    clocks.say("in 7 300")
    clocks.run_until_fired(1)
    for _ in range(2):
        clocks.restart()
        world.run_for(2.0)
        assert [service.fired for service in clocks.services] == [[7]] * count


def test_a_timer_that_was_moved_and_has_not_fired_waits_for_its_last_deadline(world: World) -> None:
    clocks = Clocks(world)
    clocks.say("in 7 100")
    clocks.say("in 7 60000")
    clocks.restart()
    world.run_for(5.0)
    assert clocks.fired == []


def test_a_timer_that_was_cancelled_and_scheduled_again_fires_as_often_as_before(world: World) -> None:
    clocks = Clocks(world)
    clocks.say("in 7 100")
    clocks.say("no 7")
    clocks.say("in 7 100")
    clocks.run_until_fired(1)
    clocks.say("in 7 100,no 7,in 8 10")
    clocks.run_until_fired(2)
    clocks.restart()
    world.run_for(2.0)
    assert clocks.fired == [7, 8]


def test_a_timer_that_schedules_itself_again_at_once_goes_on_where_it_was(world: World) -> None:
    clocks = Clocks(world)
    clocks.say("in 100 10")
    clocks.run_until_fired(12)
    before = list(clocks.fired)
    clocks.restart()
    clocks.run_until_fired(len(before) + 3)
    assert clocks.fired[: len(before)] == before


def test_timers_of_a_snapshot_fire_once(world: World) -> None:
    clocks = Clocks(world)
    clocks.say("in 7 100")
    clocks.say("in 7 500")
    clocks.snapshot()
    clocks.say("in 7 700")
    clocks.run_until_fired(1)
    clocks.restart()
    world.run_for(2.0)
    assert clocks.fired == [7]
