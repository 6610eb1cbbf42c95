"""Timers of Java's containers and ours under our module, which waits for both while it replays their events."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from benches.processes import JavaPeer

from headrace.cluster import ClusterClient
from tests.helpers import TIMEOUT_S, await_true
from tests.interop.programs import Program
from tests.interop.test_cluster_node import again_and_again, tool

pytestmark = [pytest.mark.interop, pytest.mark.slow]

MODULE = [sys.executable, "-m", "tests.interop.timer_service"]


class Timers:
    """What a client says and hears of the timers of all services."""

    def __init__(self, cluster: ClusterClient, containers: list[Program]) -> None:
        self._cluster = cluster
        self._containers = containers

    def say(self, *commands: str) -> None:
        for command in commands:
            self._cluster.offer_blocking(command.encode(), timeout_s=TIMEOUT_S)

    @property
    def fired(self) -> list[int]:
        """What has fired, which all services have heard in one order, unless one has not heard the last yet."""
        self.say("fired?")
        heard = []
        for _ in self._containers:
            message = self._cluster.receive(TIMEOUT_S)
            assert message is not None
            heard.append([int(word) for word in message.payload.decode().partition(":")[2].split()])
        first = heard[0]
        assert all(other == first for other in heard), heard
        return first

    def until_fired(self, *timers: int) -> None:
        """Wait until what has fired is this, of each service once, in any order."""
        wanted = Counter(10 * timer + service for timer in timers for service in range(len(self._containers)))
        await_true(lambda: len(self.fired) >= wanted.total())
        assert Counter(self.fired) == wanted


@contextmanager
def life(java: JavaPeer, directory: Path, languages: tuple[str, ...]) -> Iterator[Timers]:
    """A node and containers, which are killed at the end."""
    with ExitStack() as stack:
        command = [*MODULE, "node", str(directory), str(len(languages))]
        node = stack.enter_context(again_and_again(command, "STARTED"))
        aeron, cluster_directory = node.printed("STARTED"), str(directory / "cluster")
        stack.callback(shutil.rmtree, aeron, ignore_errors=True)
        containers = []
        for service_id, language in enumerate(languages):
            properties = {
                "aeron.dir": aeron,
                "aeron.cluster.dir": cluster_directory,
                "aeron.cluster.service.id": str(service_id),
            }
            command = (
                java.command("TimerService", properties=properties)
                if language == "java"
                else [*MODULE, "container", aeron, cluster_directory, str(service_id)]
            )
            containers.append(stack.enter_context(again_and_again(command, "STARTED")))
        cluster = stack.enter_context(
            ClusterClient.connect(node_directory=directory, message_timeout_ns=int(TIMEOUT_S * 1e9))
        )
        yield Timers(cluster, containers)
        # The driver first: what a close would still say is not heard.
        node.kill()


@pytest.mark.parametrize("languages", [("java",), ("java", "java"), ("java", "ours")], ids="-".join)
def test_timers_that_are_scheduled_moved_and_cancelled_fire_once_through_kills(
    java: JavaPeer, tmp_path: Path, languages: tuple[str, ...]
) -> None:
    with life(java, tmp_path, languages) as timers:
        timers.say("in 1 500", "in 2 3600000", "in 2 1800000", "in 2 1000", "in 3 1000", "no 3")
        timers.until_fired(1, 2)
        # Once more, and one that is due when no node runs.
        timers.say("in 1 100", "in 4 3600000", "in 4 5000")
        timers.until_fired(1, 1, 2)
        before = timers.fired
    with life(java, tmp_path, languages) as timers:
        assert timers.fired[: len(before)] == before
        timers.until_fired(1, 1, 2, 4)
        timers.say("in 5 3600000", "in 6 3600000")
        assert "SNAPSHOT applied successfully" in tool(java, tmp_path / "cluster", "snapshot")
        # Timers of the snapshot, moved in the log after it.
        timers.say("in 5 1800000", "in 5 100", "in 6 20000")
        timers.until_fired(1, 1, 2, 4, 5)
        before = timers.fired
    with life(java, tmp_path, languages) as timers:
        assert timers.fired[: len(before)] == before
        timers.until_fired(1, 1, 2, 4, 5, 6)
        timers.say("in 7 100")
        timers.until_fired(1, 1, 2, 4, 5, 6, 7)
