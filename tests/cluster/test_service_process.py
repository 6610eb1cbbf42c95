"""Containers with a thread, and in a process, of their own, beside a node that has none."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from headrace import MediaDriver
from headrace._agent.storage import DirectoryStorage
from headrace.cluster import (
    ClientSession,
    Cluster,
    ClusteredService,
    ClusterError,
    ClusterNode,
    ServiceContainer,
)
from headrace.cluster.files.mark_file import read_mark_fields, service_mark_name
from tests.helpers import TIMEOUT_S

PROGRAM = """
import sys
from headrace.cluster import ServiceContainer
from tests.cluster.test_service_process import Counter
with ServiceContainer(Counter(), aeron_directory=sys.argv[1], cluster_directory=sys.argv[2]) as container:
    print("READY", flush=True)
    container.join()
    print("ENDED", container.failure, flush=True)
"""


class Counter(ClusteredService):
    """Answers each message with how many there were."""

    def __init__(self) -> None:
        self.count = 0
        self.has_ended = False

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        for message in snapshot or ():
            self.count = int(message)

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        self.count += 1
        if session is not None:
            session.offer(b"%d" % self.count)

    def on_take_snapshot(self) -> Iterable[bytes]:
        yield b"%d" % self.count

    def on_terminate(self, cluster: Cluster) -> None:
        self.has_ended = True


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def answered(node: ClusterNode, count: int) -> list[bytes]:
    with node.connect() as cluster:
        found = []
        for _ in range(count):
            cluster.offer_blocking(b"one more", timeout_s=TIMEOUT_S)
            message = cluster.receive(timeout_s=TIMEOUT_S)
            assert message is not None
            found.append(message.payload)
        return found


def test_a_container_with_a_thread_of_its_own(tmp_path: Path) -> None:
    service = Counter()
    with ClusterNode(directory=tmp_path, service_count=1) as node:
        with ServiceContainer(
            service, driver=node.driver, cluster_directory=tmp_path / "cluster"
        ) as container:
            assert answered(node, 3) == [b"1", b"2", b"3"]
            assert not container.join(0)
            assert container.failure is None
        assert container.is_closed
        assert service.has_ended
        with pytest.raises(ClusterError, match="Aeron client in service closed unexpectedly"):
            node.wait(TIMEOUT_S)
    fields = read_mark_fields(DirectoryStorage(tmp_path / "cluster"), service_mark_name(0))
    assert fields is not None
    assert fields.activity_timestamp == -1
    # The next one reads the log from its beginning.
    again = Counter()
    with (
        ClusterNode(directory=tmp_path, service_count=1) as node,
        ServiceContainer(again, driver=node.driver, cluster_directory=tmp_path / "cluster"),
    ):
        assert answered(node, 1) == [b"4"]


@pytest.mark.parametrize(("idle_strategy", "used"), [("blocking", "backoff"), ("yield", "yield")])
def test_a_container_looks_for_the_commit_position_which_wakes_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, idle_strategy: str, used: str
) -> None:
    strategies: list[str] = []
    monkeypatch.setattr(ServiceContainer, "_begin_thread", lambda *arguments: strategies.append(arguments[3]))
    with MediaDriver.embedded() as driver:
        ServiceContainer(
            Counter(), driver=driver, cluster_directory=tmp_path, idle_strategy=idle_strategy
        ).close()
    assert strategies == [used]


def test_a_container_in_a_process_of_its_own_that_is_killed_ends_the_member(tmp_path: Path) -> None:
    with ClusterNode(directory=tmp_path, service_count=1) as node:
        command = [sys.executable, "-c", PROGRAM, node.driver.directory, str(tmp_path / "cluster")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert answered(node, 2) == [b"1", b"2"]
            finally:
                process.kill()
        with pytest.raises(ClusterError, match="Aeron client in service closed unexpectedly"):
            node.wait(TIMEOUT_S)
    service = Counter()
    with (
        ClusterNode(directory=tmp_path, service_count=1) as node,
        ServiceContainer(service, driver=node.driver, cluster_directory=tmp_path / "cluster"),
    ):
        assert answered(node, 1) == [b"3"]


def test_a_container_ends_with_its_consensus_module(tmp_path: Path) -> None:
    node = ClusterNode(directory=tmp_path, service_count=1)
    command = [sys.executable, "-c", PROGRAM, node.driver.directory, str(tmp_path / "cluster")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert answered(node, 1) == [b"1"]
            node.module.close()
            assert process.stdout is not None
            lines = [process.stdout.readline().strip() for _ in range(2)]
            assert lines == ["READY", "ENDED None"]
            assert process.wait(TIMEOUT_S) == 0
        finally:
            process.kill()
            node.close()
