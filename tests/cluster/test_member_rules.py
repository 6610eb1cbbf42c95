"""Rules of the cluster specification's 11.1 of which the random actions of the simulated world see no breach.

`docs/internals/world.md` has the rules, and what finds each that is broken.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from headrace.archive.protocol.counters import RECORDING_POSITION, archive_id_of, recording_position_key
from headrace.cluster import Cluster, ClusteredService, ServiceContainer
from headrace.cluster.common.counters import ClusterCounter, find
from headrace.cluster.errors import ClusterTerminalError
from headrace.cluster.member.log_recording import LogRecording
from headrace.cluster.member.states import Toggle
from headrace.cluster.protocol.codes import EventCode
from headrace.cluster.protocol.control import ServiceAck
from headrace.cluster.protocol.messages import encode
from headrace.cluster.protocol.session import SessionEvent
from headrace.testing import Node, World
from tests.cluster.members import Member, Script
from tests.cluster.scripted import Recorder, Rig


class Echo(ClusteredService):
    """Answers each message with itself."""

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        pass

    def on_take_snapshot(self) -> Iterable[bytes]:
        return []

    def on_session_message(self, session: Any, timestamp: int, message: bytes, position: int) -> None:
        session.offer(message)


def serve(node: Node, service_id: int = 0) -> None:
    storage = node.disk(f"service-{service_id}")
    node.host(
        lambda: ServiceContainer(Echo(), driver=node, is_invoked=True, storage=storage, service_id=service_id)
    )


@pytest.fixture
def world() -> Iterator[World]:
    with World(20261124) as made:
        yield made


def leader(world: World, **settings: Any) -> Member:
    return Member(world, world.add_node("leader"), **settings)


def test_rule_18_a_member_without_one_of_its_services_does_not_lead(world: World) -> None:
    member = leader(world, service_count=2)
    serve(member.node, 1)
    world.run_for(1.0)
    assert not member.module.is_leader
    serve(member.node, 0)
    member.await_leader()


def test_rule_18_an_acknowledgement_that_is_not_due_ends_the_member(world: World) -> None:
    member = leader(world, service_count=1)
    config = member.module.config
    client = member.node.connect()
    member.until(lambda: find(client, ClusterCounter.RECOVERY_STATE, 0), "a module that takes services")
    control = client.add_publication(config.control_channel, config.consensus_module_stream_id)
    wrong = ServiceAck(log_position=96, timestamp=0, ack_id=0, relevant_id=client.client_id, service_id=0)
    member.until(lambda: control.offer(encode(wrong)) > 0, "the control stream")
    member.until(lambda: member.module.failure is not None, "the end of the module")
    assert "ack out of sequence: service_id=0 acknowledges position 96" in str(member.module.failure)


def test_rule_23_the_stream_of_a_client_that_was_lost_is_not_joined_again(world: World) -> None:
    member = leader(world)
    member.await_leader()
    ingress = member.module._clients.ingress
    assert ingress is not None
    [subscription] = ingress.subscriptions
    assert "rejoin=false" in subscription.channel


def test_rule_24_a_session_that_was_not_agreed_upon_is_closed_by_an_election(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = leader(world)
    member.await_leader()
    script = Script(member, world.add_node("client"))
    position = member.module.commit_position
    with monkeypatch.context() as patch:
        patch.setattr(LogRecording, "position", position)
        script.send(script.request())
        member.until(lambda: len(member.context.applied.sessions), "a session that is not agreed upon")
        patch.setattr(LogRecording, "is_active", False)
        member.until(lambda: not member.module.is_leader, "an election")
    told = script.answer()
    assert (told.code, told.detail) == (EventCode.CLOSED, "election")


def test_rule_25_a_client_has_one_stream_from_module_and_service(world: World) -> None:
    member = leader(world, service_count=1)
    serve(member.node)
    member.await_leader()
    script = Script(member, world.add_node("client"))
    script.connect()
    script.message(b"to the service")
    assert script.answer() == b"to the service"
    assert len(script.answers.images) == 1


def test_rule_28_a_channel_that_the_driver_refuses_ends_its_session_alone(world: World) -> None:
    member = leader(world)
    member.await_leader()
    script = Script(member, world.add_node("client"))
    script.send(script.request(response_channel="aeron:udp?endpoint=client:9101|term-length=65537"))
    assert isinstance(script.connect(), SessionEvent)
    assert member.module.failure is None


def test_rule_28_a_channel_that_the_driver_refuses_leaves_the_service_there(world: World) -> None:
    rig = Rig(world)
    service = Recorder()
    module, container = rig.started(service)
    module.term()
    module.open(5, channel="aeron:udp?endpoint=client:9101|term-length=65537")
    module.message(5, b"without an answer")
    rig.until(lambda: service.state == [b"without an answer"])
    assert container.failure is None


@pytest.mark.parametrize("keeps_writes", [True, False])
def test_a_start_tells_clients_of_before_that_their_sessions_are_over(
    world: World, *, keeps_writes: bool
) -> None:
    """Long before they notice that the stream of answers has ended; one that is gone too is not waited for."""
    member = leader(world, sync_level=1)
    member.await_leader()
    scripts = [Script(member, world.add_node(name)) for name in ("client", "gone")]
    opened = [script.connect() for script in scripts]
    scripts[1].client.close()
    since_ns = scripts[0].client.clock.monotonic_ns()
    member.restart(keeps_writes=keeps_writes)
    told = scripts[0].answer()
    assert (told.code, told.detail) == (EventCode.CLOSED, "TIMEOUT")
    for name in ("cluster_session_id", "leadership_term_id"):
        # A client believes a word of the term that it knows.
        assert getattr(told, name) == getattr(opened[0], name)
    assert scripts[0].client.clock.monotonic_ns() - since_ns < 5_000_000_000
    assert len(member.context.applied.sessions) == 0
    world.run_for(30)
    closes = member.module._clients.checks._session_closes
    assert (closes._tried, list(closes._waiting)) == ([], [])


class Closing(Echo):
    """Closes each session as soon as it opens."""

    def on_session_open(self, session: Any, timestamp: int) -> None:
        session.close()


def test_a_client_that_the_service_closes_at_once_hears_that_it_was_let_in_and_that_it_is_over(
    world: World,
) -> None:
    """Aeron's clients, and ours, ignore the end of a session that they are not in."""
    member = leader(world, service_count=1)
    storage = member.node.disk("service-0")
    member.node.host(
        lambda: ServiceContainer(Closing(), driver=member.node, is_invoked=True, storage=storage)
    )
    member.await_leader()
    script = Script(member, world.add_node("client"))
    opened = script.connect()
    closed = script.answer()
    assert (opened.code, closed.code) == (EventCode.OK, EventCode.CLOSED)
    assert (closed.cluster_session_id, closed.detail) == (opened.cluster_session_id, "SERVICE_ACTION")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            {"app_version": 0x10000},
            {"app_version": 0x20000},
            ("incompatible version: 131072 log=65536", "snapshot=65536", "app_version=65536 as before"),
        ),
        (
            {},
            {"cluster_clock": "us"},
            (
                "incompatible timestamp units: MICROS log=MILLIS",
                "incompatible time unit: MICROS snapshot=MILLIS",
                "cluster_clock='ms', the property aeron.cluster.clock=ms, as before",
            ),
        ),
    ],
    ids=["version", "unit"],
)
@pytest.mark.parametrize("takes_snapshot", [False, True])
def test_rule_29_a_log_of_another_version_or_unit_ends_the_member(
    world: World,
    before: dict[str, Any],
    after: dict[str, Any],
    said: tuple[str, str, str],
    takes_snapshot: bool,
) -> None:
    member = leader(world, **before)
    member.await_leader()
    if takes_snapshot:
        member.module.request(Toggle.SNAPSHOT)
        member.until(lambda: member.module.snapshot_count == 1, "a snapshot")
    member.settings |= after
    member.node.crash(keeps_writes=True)
    member.node.start()
    member.start()
    member.until(lambda: member.module.failure is not None, "the end of the module")
    assert isinstance(member.module.failure, ClusterTerminalError)
    of_log, of_snapshot, remedy = said
    told = str(member.module.failure)
    assert (of_snapshot if takes_snapshot else of_log) in told
    assert remedy in told
    assert re.search(r"at log_position=\d+; start with ", told)
    assert "invalidate" not in told


def test_rule_38_a_position_that_another_archive_of_the_driver_counts_is_none(world: World) -> None:
    member = leader(world)
    member.await_leader()
    archive, session_id = member.context.archive, member.module._term_log.leader.session_id
    [own] = [
        one
        for one in member.context.client.counters
        if one.type_id == RECORDING_POSITION and archive._is_position_of(one, session_id)
    ]
    other = recording_position_key(0, session_id, "aeron:ipc", archive_id_of(own.key) + 1)
    assert not archive._is_position_of(dataclasses.replace(own, key=other), session_id)
