"""Our node and consensus module with the reference's clients, containers, archives and whole nodes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from benches.processes import JavaPeer, background, fresh_directory, output

from headrace.cluster import ClusterClient, ClusterNode, ConsensusModule, ServiceContainer
from headrace.cluster.common.counters import ClusterCounter
from tests.helpers import TIMEOUT_S, await_true
from tests.interop.asking import Asking
from tests.interop.counter_service import LATER, Counter, mixed
from tests.interop.programs import Program
from tests.ports import free_endpoint, free_port

pytestmark = [pytest.mark.interop, pytest.mark.slow]

UDP = "aeron:udp?endpoint=127.0.0.1:0"
IPC = "aeron:ipc"


@contextmanager
def our_node(directory: Path, *services: Counter, **settings: Any) -> Iterator[tuple[ClusterNode, str]]:
    """A node of ours that leads, and what Java's client calls its ingress."""
    endpoint = free_endpoint()
    with ClusterNode(*services, directory=directory, ingress_endpoint=endpoint, **settings) as node:
        node.wait_until_leader(TIMEOUT_S)
        yield node, f"0={endpoint}"
        assert node.failure is None


def call(
    java: JavaPeer, aeron: object, ingress: str, egress: str, *commands: str, **properties: str
) -> list[str]:
    """What a Java client printed."""
    return output(java.command("ClusterCaller", aeron, ingress, egress, *commands, properties=properties))


# --- their client --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("is_ipc", "egress"), [(False, UDP), (False, IPC), (True, IPC)])
def test_messages_come_back(java: JavaPeer, tmp_path: Path, is_ipc: bool, egress: str) -> None:
    service = Counter()
    with our_node(tmp_path, service) as (node, ingress):
        ingress = IPC if is_ipc else ingress
        lines = call(java, node.driver.directory, ingress, egress, "echo:1000:100", "echo:20:100000", "state")
        assert lines[:-2] == ["CONNECTED", "ECHOED 1000", "ECHOED 20"]
        assert lines[-2].startswith("STATE 1020 ")
        await_true(lambda: service.state.endswith(" 20 20"))
        assert service.refused == []
        assert node.module.error_count == 0


def test_sessions_end_by_time_by_the_service_and_by_their_number(java: JavaPeer, tmp_path: Path) -> None:
    service = Counter()
    with our_node(
        tmp_path, service, session_timeout_ns=3_000_000_000, max_sessions=3, authorisation="DENY_ALL"
    ) as (node, ingress):
        aeron = node.driver.directory
        lines = call(java, aeron, ingress, UDP, "alive:7000", "more:3", "snapshot", "echo:1:10", "silent")
        assert lines == [
            "CONNECTED",
            "ALIVE []",
            "ECHOED 10",
            "ECHOED 10",
            "REFUSED ClusterException ERROR - concurrent session limit",
            "ADMIN SNAPSHOT UNAUTHORISED_ACCESS Execution of the SNAPSHOT request was not authorised",
            "ECHOED 1",
            "CLOSED [CLOSED TIMEOUT]",
            "DONE",
        ]
        lines = call(java, aeron, ingress, UDP, "echo:1:10", "close")
        assert lines == ["CONNECTED", "ECHOED 1", "CLOSED [CLOSED SERVICE_ACTION]", "DONE"]
        await_true(lambda: service.cluster is not None and not service.cluster.sessions)
        assert service.count == 22


def test_a_client_in_java_is_told_of_a_message_that_is_too_long_for_the_log(
    java: JavaPeer, tmp_path: Path
) -> None:
    with our_node(tmp_path, Counter(), log_channel="aeron:ipc?term-length=64k") as (node, ingress):
        lines = call(java, node.driver.directory, ingress, UDP, "echo:1:10", "long:10000", "echo:1:8160")
        told = "ERROR a message of 10000 bytes is too long for the log, which takes 8160 at most"
        assert lines == ["CONNECTED", "ECHOED 1", f"TOLD [{told}]", "ECHOED 1", "DONE"]


def test_credentials_challenges_and_snapshots_that_are_allowed(java: JavaPeer, tmp_path: Path) -> None:
    with our_node(tmp_path, Counter(), authenticator=Asking(), authorisation="ALLOW_ALL") as (node, ingress):
        aeron = node.driver.directory
        lines = call(java, aeron, ingress, UDP, "echo:1:10", "snapshot", credentials="alice:secret")
        assert lines == ["CONNECTED", "ECHOED 1", "ADMIN SNAPSHOT OK ", "DONE"]
        lines = call(java, aeron, ingress, UDP, "echo:1:10", answer="it is me")
        assert lines == ["CHALLENGED who is there?", "CONNECTED", "ECHOED 1", "DONE"]
        for properties in ({"credentials": "alice:wrong"}, {"answer": "it is not"}):
            lines = call(java, aeron, ingress, UDP, **properties)
            assert lines[-1] == "REFUSED AuthenticationException ERROR - session failed authentication"
        await_true(lambda: counter(node, ClusterCounter.SNAPSHOT_COUNT) == 1)


def test_clients_in_java_on_either_driver_send_to_a_group(java: JavaPeer, tmp_path: Path) -> None:
    """Through one channel, without the addresses of members; the others still come over IPC."""
    group = f"aeron:udp?endpoint=239.255.45.1:{free_port()}|interface=127.0.0.1"
    service = Counter()
    settings = {"ingress_channel": group, "session_timeout_ns": 600_000_000_000}
    with our_node(tmp_path, service, **settings) as (node, _):
        with java.driver("group-client", "SHARED") as other:
            with java_program(java, "ClusterCaller", other, group, UDP, "silent") as stays:
                stays.printed("CONNECTED")
                for aeron, ingress in (
                    (node.driver.directory, group),
                    (other, group),
                    (node.driver.directory, IPC),
                ):
                    lines = call(java, aeron, ingress, UDP, "echo:500:100", "echo:10:100000", "close")
                    assert lines[:-1] == [
                        "CONNECTED",
                        "ECHOED 500",
                        "ECHOED 10",
                        "CLOSED [CLOSED SERVICE_ACTION]",
                    ]
                assert service.cluster is not None
                assert len(service.cluster.sessions) == 1
                # Its stream to the group ends, and with it its session.
                stays.kill()
            await_true(lambda: service.cluster is not None and not service.cluster.sessions)
        assert service.count == 1530
        assert node.module.error_count == 0


def counter(node: ClusterNode, type_id: int) -> int:
    """A counter of the node's driver."""
    with node.connect_driver() as client:
        return next(each.value for each in client.counters if each.type_id == type_id)


# --- their service -------------------------------------------------------------------------------------------------


@contextmanager
def java_program(java: JavaPeer, main: str, *args: object, **properties: str) -> Iterator[Program]:
    program = Program(java.command(main, *args, properties=properties))
    try:
        yield program
    finally:
        program.kill()


@contextmanager
def java_container(java: JavaPeer, node: ClusterNode, **properties: str) -> Iterator[Program]:
    properties |= {"aeron.dir": node.driver.directory, "aeron.cluster.dir": str(node.module.directory)}
    with java_program(java, "CounterService", "container", **properties) as program:
        yield program


@contextmanager
def node_for_container(directory: Path, **settings: Any) -> Iterator[tuple[ClusterNode, str]]:
    endpoint = free_endpoint()
    settings = {"service_count": 1} | settings
    with ClusterNode(directory=directory, ingress_endpoint=endpoint, **settings) as node:
        yield node, f"0={endpoint}"


def tool(java: JavaPeer, directory: object, command: str) -> str:
    """What Java's tool says of a cluster directory.

    It offers a query as soon as its driver has answered, which links the publication a moment later: on a machine with
    much to do it may find that nobody reads it, and ends. So it gets a second try.
    """
    called = java.command("io.aeron.cluster.ClusterTool", directory, command)
    try:
        lines = output(called)
    except subprocess.CalledProcessError:
        lines = output(called)
    return "\n".join(lines)


def state_of(java: JavaPeer, aeron: object, ingress: str) -> str:
    """The state of the service once the client that asks for it is alone."""
    state = ""

    def is_alone() -> bool:
        nonlocal state
        lines = call(java, aeron, ingress, UDP, "state")
        state, _, sessions = lines[1].removeprefix("STATE ").rpartition(" ")
        return sessions == "1"

    await_true(is_alone)
    return state


def settled_state(java: JavaPeer, aeron: object, ingress: str, count: int, later: int = 0) -> str:
    """The state of the service once its timers and messages to itself, one each for 50 messages, have come."""
    state = ""

    def is_settled() -> bool:
        nonlocal state
        state = state_of(java, aeron, ingress)
        return state.split(" ")[2:] == [str(count // 50 + later), str(count // 50)]

    await_true(is_settled)
    assert state.startswith(f"{count} ")
    return state


@pytest.mark.parametrize("log_channel", ["aeron:udp?term-length=1m", "aeron:ipc?term-length=1m"])
def test_a_container_in_java_snapshots_restarts_and_is_shut_down(
    java: JavaPeer, tmp_path: Path, log_channel: str
) -> None:
    settings = {"log_channel": log_channel}
    with node_for_container(tmp_path, **settings) as (node, ingress), java_container(java, node) as container:
        assert container.printed("STARTED") == "0 0 0 0"
        node.wait_until_leader(TIMEOUT_S)
        aeron = node.driver.directory
        lines = call(java, aeron, ingress, UDP, "echo:1000:100", "close")
        assert lines == ["CONNECTED", "ECHOED 1000", "CLOSED [CLOSED SERVICE_ACTION]", "DONE"]
        at_snapshot = settled_state(java, aeron, ingress, 1000)
        assert "SNAPSHOT applied successfully" in tool(java, node.module.directory, "snapshot")
        assert container.printed("SNAPSHOT") == at_snapshot
        assert call(java, aeron, ingress, UDP, "echo:100:5000")[1:] == ["ECHOED 100", "DONE"]
        before = settled_state(java, aeron, ingress, 1100)
        assert "CLOSED SERVICE_ACTION" in container.lines
        node.close()
        container.printed("TERMINATED")
        assert container.ended() == 0
    with node_for_container(tmp_path, **settings) as (node, ingress), java_container(java, node) as container:
        node.wait_until_leader(TIMEOUT_S)
        assert container.printed("STARTED") == at_snapshot
        assert state_of(java, node.driver.directory, ingress) == before
        assert "SHUTDOWN applied successfully" in tool(java, node.module.directory, "shutdown")
        assert container.printed("TERMINATED") == before
        assert container.ended() == 0
        await_true(lambda: node.module.has_terminated)
        assert node.failure is None
    with node_for_container(tmp_path, **settings) as (node, ingress), java_container(java, node) as container:
        assert container.printed("STARTED") == before
        node.wait_until_leader(TIMEOUT_S)
        assert state_of(java, node.driver.directory, ingress) == before


def test_a_module_ends_when_its_container_in_java_is_killed(java: JavaPeer, tmp_path: Path) -> None:
    with node_for_container(tmp_path) as (node, ingress), java_container(java, node) as container:
        node.wait_until_leader(TIMEOUT_S)
        assert call(java, node.driver.directory, ingress, UDP, "echo:10:100")[-1] == "DONE"
        container.kill()
        await_true(lambda: node.failure)
        assert str(node.failure) == "Aeron client in service closed unexpectedly: serviceId=0"


def test_a_module_ends_when_its_container_in_java_cannot_start(java: JavaPeer, tmp_path: Path) -> None:
    with node_for_container(tmp_path) as (node, _), java_container(java, node, fails="true"):
        await_true(lambda: node.failure)
        assert "failed to start clustered service(s)" in str(node.failure)


def test_two_containers_in_java_read_one_log(java: JavaPeer, tmp_path: Path) -> None:
    with (
        node_for_container(tmp_path, service_count=2) as (node, ingress),
        java_container(java, node) as first,
        java_container(java, node, **{"aeron.cluster.service.id": "1"}) as second,
    ):
        node.wait_until_leader(TIMEOUT_S)
        # Each message is answered by both.
        assert "ANSWERED 400" in call(java, node.driver.directory, ingress, UDP, "send:200:400")
        assert "SHUTDOWN applied successfully" in tool(java, node.module.directory, "shutdown")
        assert first.printed("TERMINATED") == second.printed("TERMINATED")
        assert first.printed("TERMINATED").startswith("200 ")


def test_a_client_in_java_that_is_killed_loses_its_session(java: JavaPeer, tmp_path: Path) -> None:
    service = Counter()
    with our_node(tmp_path, service, session_timeout_ns=600_000_000_000) as (node, ingress):
        with java_program(java, "ClusterCaller", node.driver.directory, ingress, UDP, "silent") as client:
            client.printed("CONNECTED")
            await_true(lambda: service.cluster is not None and len(service.cluster.sessions) == 1)
            client.kill()
        # Its stream ends, long before it would have been silent for too long.
        await_true(lambda: service.cluster is not None and not service.cluster.sessions)


def test_a_client_in_java_that_does_not_read_is_let_go_of_if_it_is_not_tethered(
    java: JavaPeer, tmp_path: Path
) -> None:
    """Clients over IPC that share a stream wait for the slowest of them; here until the driver lets go of that one."""
    egress = "aeron:ipc?term-length=64k|tether=false|rejoin=false"
    service = Counter()
    with our_node(tmp_path, service, session_timeout_ns=600_000_000_000) as (node, _):
        aeron = node.driver.directory
        with java_program(java, "ClusterCaller", aeron, IPC, egress, "deaf") as deaf:
            deaf.printed("DEAF")
            with ClusterClient.connect(
                driver=node.driver, ingress_channel=IPC, egress_channel=egress, egress_stream_id=102
            ) as cluster:
                await_true(lambda: cluster.offer(bytes(2000)) and cluster.poll(bool) == 0 and service.refused)
            # This one connects once the driver has let go of the other.
            assert call(java, aeron, IPC, egress, "echo:10:500")[1:] == ["ECHOED 10", "DONE"]
            assert not deaf.has_ended
        assert node.module.error_count == 0


# --- their archive and driver --------------------------------------------------------------------------------------


@contextmanager
def our_module_on_theirs(
    java: JavaPeer, directory: Path, service: Counter, log_channel: str
) -> Iterator[tuple[Path, ConsensusModule, str]]:
    """Our module and container on Java's driver and archive."""
    endpoints = [free_endpoint() for _ in range(5)]
    aeron, cluster = fresh_directory("archiving"), directory / "cluster"
    cluster.mkdir(exist_ok=True)
    properties = {
        "aeron.dir": str(aeron),
        "aeron.dir.delete.on.start": "true",
        "aeron.dir.delete.on.shutdown": "true",
        "aeron.threading.mode": "SHARED",
        "aeron.archive.threading.mode": "SHARED",
        "aeron.archive.dir": str(directory / "archive"),
        "aeron.archive.segment.file.length": "1m",
        "aeron.archive.control.channel": f"aeron:udp?endpoint={endpoints[-1]}",
        "aeron.archive.replication.channel": UDP,
    }
    command = java.command("io.aeron.archive.ArchivingMediaDriver", properties=properties)
    with (
        background(command, ready=aeron / "cnc.dat"),
        ConsensusModule(
            aeron_directory=aeron,
            cluster_directory=cluster,
            members=",".join(["0", *endpoints]),
            ingress_channel="aeron:udp?term-length=1m",
            log_channel=log_channel,
        ) as module,
        ServiceContainer(service, aeron_directory=aeron, cluster_directory=cluster) as container,
    ):
        await_true(lambda: module.is_leader or module.failure or container.failure)
        assert module.failure is None
        yield aeron, module, f"0={endpoints[0]}"
        assert module.failure is None
        assert container.failure is None
        assert module.error_count == 0


@pytest.mark.parametrize("log_channel", ["aeron:udp?term-length=1m", "aeron:ipc?term-length=1m"])
def test_our_module_on_an_archive_and_a_driver_in_java(
    java: JavaPeer, tmp_path: Path, log_channel: str
) -> None:
    service = Counter()
    with our_module_on_theirs(java, tmp_path, service, log_channel) as (aeron, module, ingress):
        lines = call(java, aeron, ingress, UDP, "echo:1000:100", "echo:20:50000", "close")
        assert lines == ["CONNECTED", "ECHOED 1000", "ECHOED 20", "CLOSED [CLOSED SERVICE_ACTION]", "DONE"]
        at_snapshot = settled_state(java, aeron, ingress, 1020)
        assert "SNAPSHOT applied successfully" in tool(java, module.directory, "snapshot")
        assert call(java, aeron, ingress, UDP, "echo:80:5000")[1:] == ["ECHOED 80", "DONE"]
        before = settled_state(java, aeron, ingress, 1100)
        assert service.state == before
    again = Counter()
    with our_module_on_theirs(java, tmp_path, again, log_channel) as (aeron, module, ingress):
        assert again.started_with == at_snapshot
        assert state_of(java, aeron, ingress) == before
        assert "SHUTDOWN applied successfully" in tool(java, module.directory, "shutdown")
        await_true(lambda: module.has_terminated)
    last = Counter()
    with our_module_on_theirs(java, tmp_path, last, log_channel) as (aeron, _, ingress):
        assert last.started_with == before
        assert state_of(java, aeron, ingress) == before


# --- one directory -------------------------------------------------------------------------------------------------


JAVA_CLOCKS = {
    "ms": "io.aeron.cluster.MillisecondClusterClock",
    "us": "MicrosecondClock",
    "ns": "io.aeron.cluster.NanosecondClusterClock",
}


@dataclass
class Turn:
    """A node that has its turn on the directory."""

    program: Program
    aeron: str
    ingress: str
    cluster: Path


@contextmanager
def again_and_again(command: list[str], word: str = "READY") -> Iterator[Program]:
    """A program that has said a word: it is started until the files do not look as if one that was killed used them."""
    for _ in range(100):
        program = Program(command)
        try:
            await_true(lambda program=program: program.has_ended or word in program.words)
            if not program.has_ended:
                yield program
                return
        finally:
            program.kill()
        text = "\n".join(program.lines)
        assert "active" in text, text
    raise AssertionError(text)


@contextmanager
def our_turn(java: JavaPeer, directory: Path, clock: str = "ms") -> Iterator[Turn]:
    endpoint = free_endpoint()
    command = [sys.executable, "-m", "tests.interop.counter_service", str(directory), endpoint, clock]
    with again_and_again(command) as program:
        aeron = program.printed("READY")
        yield Turn(program, aeron, f"0={endpoint}", directory / "cluster")
    shutil.rmtree(aeron, ignore_errors=True)


@contextmanager
def java_turn(java: JavaPeer, directory: Path, clock: str = "ms") -> Iterator[Turn]:
    endpoints = [free_endpoint() for _ in range(5)]
    aeron = fresh_directory("turn")
    properties = {
        "aeron.cluster.clock": JAVA_CLOCKS[clock],
        "aeron.dir": str(aeron),
        "aeron.threading.mode": "SHARED",
        "aeron.archive.threading.mode": "SHARED",
        "aeron.archive.dir": str(directory / "archive"),
        "aeron.archive.control.channel": f"aeron:udp?endpoint={endpoints[-1]}",
        "aeron.archive.replication.channel": UDP,
        "aeron.cluster.dir": str(directory / "cluster"),
        "aeron.cluster.members": ",".join(["0", *endpoints]),
        "aeron.cluster.ingress.channel": "aeron:udp?term-length=1m",
        "aeron.cluster.log.channel": "aeron:udp?term-length=1m",
        "aeron.cluster.replication.channel": UDP,
    }
    with again_and_again(java.command("CounterService", "node", properties=properties)) as program:
        yield Turn(program, str(aeron), f"0={endpoints[0]}", directory / "cluster")
    shutil.rmtree(aeron, ignore_errors=True)


def with_timers(state: str, before: int) -> str:
    """What comes of a state when the two timers have fired that were scheduled at 180 and 250 messages more."""
    count, hash, timers, self_messages = map(int, state.split(" "))
    assert (count, self_messages) == (before + 250, (before + 250) // 50)
    fired = timers - count // 50 - before // 125
    for correlation_id in (LATER + before + 180, LATER + before + 250)[fired:]:
        hash, timers = mixed(hash, correlation_id, 1), timers + 1
    return f"{count} {hash} {timers} {self_messages}"


@pytest.mark.parametrize(
    ("order", "clock", "is_killed"),
    [
        ((our_turn, java_turn, our_turn), "ms", False),
        ((our_turn, java_turn, our_turn), "ms", True),
        ((java_turn, our_turn, java_turn), "ms", False),
        ((java_turn, our_turn, java_turn), "ms", True),
        ((our_turn, java_turn, our_turn), "ns", False),
        ((java_turn, our_turn, java_turn), "us", True),
    ],
)
def test_nodes_of_both_take_turns_on_one_directory(
    java: JavaPeer, tmp_path: Path, order: tuple[Any, ...], clock: str, is_killed: bool
) -> None:
    """Each begins with the other's snapshot and the log after it, has timers that the other scheduled, and goes on."""
    state = "0 0 0 0"
    for number, begun in enumerate(order):
        with begun(java, tmp_path, clock) as turn:
            assert settled_state(java, turn.aeron, turn.ingress, 250 * number, 2 * number) == state
            commands = ["echo:180:100", "later", "snapshot", "echo:70:3000", "later"]
            assert call(java, turn.aeron, turn.ingress, UDP, *commands) == [
                "CONNECTED",
                "ECHOED 180",
                "LATER",
                "ADMIN SNAPSHOT OK ",
                "ECHOED 70",
                "LATER",
                "DONE",
            ]
            # The two timers are not due yet, and fire when the next node leads.
            state = with_timers(state_of(java, turn.aeron, turn.ingress), 250 * number)
            # One that stays connected: the next node closes its session.
            with java_program(java, "ClusterCaller", turn.aeron, turn.ingress, UDP, "silent") as client:
                client.printed("CONNECTED")
                if is_killed:
                    turn.program.kill()
                else:
                    turn.program.terminate()
