"""(l) Our service under the reference's consensus module: echo, snapshot, restart from it, failover of three nodes."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from benches.processes import JavaPeer, background, fresh_directory, output

from headrace.cluster import ServiceContainer
from tests.helpers import TIMEOUT_S
from tests.interop.echo_service import Echo
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.slow]
HOST = "127.0.0.1"


class Node:
    """A member: the reference's driver, archive and consensus module in one process."""

    def __init__(
        self,
        java: JavaPeer,
        base: Path,
        member_id: int,
        members: str,
        archive_port: int,
        properties: Mapping[str, str],
    ) -> None:
        self.aeron = fresh_directory(f"cluster-{member_id}")
        self.archive, self.cluster = base / f"archive-{member_id}", base / f"cluster-{member_id}"
        self.member_id = member_id
        self._command = java.command(
            "io.aeron.cluster.ClusteredMediaDriver",
            properties={
                "aeron.dir": str(self.aeron),
                "aeron.dir.delete.on.start": "true",
                "aeron.dir.delete.on.shutdown": "true",
                "aeron.threading.mode": "SHARED",
                "aeron.archive.threading.mode": "SHARED",
                "aeron.archive.dir": str(self.archive),
                "aeron.archive.control.channel": f"aeron:udp?endpoint={HOST}:{archive_port}",
                "aeron.archive.replication.channel": f"aeron:udp?endpoint={HOST}:0",
                "aeron.archive.recording.events.enabled": "false",
                "aeron.cluster.dir": str(self.cluster),
                "aeron.cluster.member.id": str(member_id),
                "aeron.cluster.members": members,
                "aeron.cluster.ingress.channel": "aeron:udp?term-length=64k",
                "aeron.cluster.log.channel": "aeron:udp?term-length=256k",
                "aeron.cluster.replication.channel": f"aeron:udp?endpoint={HOST}:0",
                "aeron.cluster.session.timeout": "60s",
                "aeron.cluster.leader.heartbeat.timeout": "3s",
                "aeron.cluster.startup.canvass.timeout": "10s",
                **properties,
            },
        )

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[str]]:
        try:
            with background(self._command, ready=self.aeron / "cnc.dat") as process:
                yield process
        finally:
            # What a kill leaves.
            shutil.rmtree(self.aeron, ignore_errors=True)


def nodes(
    java: JavaPeer, base: Path, count: int, properties: Mapping[str, str] | None = None
) -> tuple[list[Node], str]:
    ports = [[free_port() for _ in range(5)] for _ in range(count)]
    members = "|".join(f"{i}," + ",".join(f"{HOST}:{port}" for port in each) for i, each in enumerate(ports))
    ingress = ",".join(f"{i}={HOST}:{each[0]}" for i, each in enumerate(ports))
    made = [Node(java, base, i, members, each[4], properties or {}) for i, each in enumerate(ports)]
    return made, ingress


def echoes(java: JavaPeer, node: Node, ingress: str, first: int, end: int) -> None:
    lines = output(java.command("ClusterEcho", node.aeron, ingress, first, end, 0))
    assert lines[-1] == f"DONE {end}", lines


def tool(java: JavaPeer, node: Node, command: str) -> str:
    finished = subprocess.run(
        java.command("io.aeron.cluster.ClusterTool", node.cluster, command),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    return finished.stdout


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def test_echo_snapshot_and_a_restart_from_it(java: JavaPeer, tmp_path: Path) -> None:
    (node,), ingress = nodes(java, tmp_path, 1)
    errors: list[str] = []
    service = Echo()
    with node.running() as process, container(node, service, errors) as first:
        echoes(java, node, ingress, 0, 1000)
        assert service.count == 1000
        assert service.refused == []
        until(lambda: service.timers == 10, "timers")
        until(lambda: len(service.self_messages) == 10, "messages to itself")
        assert "SNAPSHOT" in tool(java, node, "snapshot")
        echoes(java, node, ingress, 1000, 1100)
        assert "Consensus Module Snapshot End" in tool(java, node, "describe-latest-cm-snapshot")
        assert "SHUTDOWN" in tool(java, node, "shutdown")
        assert first.join(TIMEOUT_S)
        assert first.failure is None
        process.wait(TIMEOUT_S)
    assert errors == []
    again = Echo()
    with node.running(), container(node, again, errors):
        echoes(java, node, ingress, 1100, 1200)
        assert again.restored == 1100
        assert again.count == 1200
        assert again.last.keys() >= service.last.keys()
    assert errors == []


@contextmanager
def container(node: Node, service: Echo, errors: list[str]) -> Iterator[ServiceContainer]:
    with ServiceContainer(
        service, aeron_directory=node.aeron, cluster_directory=node.cluster, on_error=errors.append
    ) as made:
        yield made


def test_three_nodes_lose_their_leader(java: JavaPeer, tmp_path: Path) -> None:
    members, ingress = nodes(java, tmp_path, 3)
    services = [Echo() for _ in members]
    errors: list[str] = []
    with ExitStack() as stack:
        client_driver = stack.enter_context(java.driver("cluster-client", "SHARED"))
        processes = [stack.enter_context(node.running()) for node in members]
        containers = [
            stack.enter_context(container(node, service, errors))
            for node, service in zip(members, services, strict=True)
        ]
        command = java.command("ClusterEcho", client_driver, ingress, 0, 3000, 1)
        client = stack.enter_context(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        )
        stack.callback(client.kill)
        until(lambda: any(service.count > 500 for service in services), "half of the echoes")
        (leader,) = [
            i for i, one in enumerate(services) if one.role is not None and one.role.name == "LEADER"
        ]
        processes[leader].kill()
        text = client.communicate(timeout=120)[0]
        assert "DONE 3000" in text, text
        left = [service for i, service in enumerate(services) if i != leader]
        until(lambda: left[0].count == left[1].count >= 3000, "both followers at the same count")
        assert left[0].last == left[1].last
        assert left[0].timers == left[1].timers
        assert left[0].self_messages == left[1].self_messages
        for i, one in enumerate(containers):
            assert i == leader or one.failure is None
