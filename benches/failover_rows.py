"""The rows about a change of leader: what a client waits when one is killed, and when one hands over."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import headrace
from benches import members
from benches.cluster_node_rows import JAVA
from benches.members import Member, Members
from benches.report import Measurement, Row
from headrace.cluster import ClusterClient, ClusterMessage

EGRESS = "aeron:udp?endpoint=127.0.0.1:24991"
INTERVAL_NS = 1_000_000
TIMEOUT_NS = 60_000_000_000
SETTLED_COUNT = 200
LAST_ANSWERS_NS = 1_000_000_000
KILLS = 3
TRANSFERS = 5
# Shorter than Aeron's default of 10 s, so that a row takes no minutes.
EQUAL = {"aeron.cluster.leader.heartbeat.timeout": "2s"}
CONFIGURATION = (
    "three members on this machine, each a process with an embedded driver in mode SHARED, archive and a service that "
    "sends each message back; a client in Python, which sends a command each millisecond"
)

Side = Callable[[dict[str, str]], AbstractContextManager[Members]]


class Commands:
    """A client that sends a numbered command each millisecond, and knows when which was answered."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._next_ns = time.monotonic_ns()
        self.sent = 0
        # Of each command that was answered: the term of the leader that did, and when.
        self.answers: dict[int, tuple[int, int]] = {}
        self.term_id = -1
        self.is_paused = False

    def step(self) -> None:
        """Sends what is due, and takes answers for at most a millisecond."""
        now_ns = time.monotonic_ns()
        if now_ns >= self._next_ns and not self.is_paused:
            self.sent += self._client.offer(b"%d" % self.sent) > 0
            self._next_ns = now_ns + INTERVAL_NS
        message = self._client.receive(INTERVAL_NS / 1e9)
        while message is not None:
            self._take(message)
            message = self._client.poll_message()

    def _take(self, message: ClusterMessage) -> None:
        number = int(message.payload)
        if number in self.answers:
            raise RuntimeError(f"command {number} was answered twice")
        self.term_id = message.leadership_term_id
        self.answers[number] = self.term_id, time.monotonic_ns()

    def until(self, is_done: Callable[[], bool], what: str) -> None:
        """Goes on until then."""
        deadline = time.monotonic_ns() + TIMEOUT_NS
        while not is_done():
            if time.monotonic_ns() > deadline:
                raise RuntimeError(f"waited {TIMEOUT_NS / 1e9:g} s for {what}")
            self.step()

    def settle(self) -> None:
        """Goes on until so many more are answered."""
        wanted = len(self.answers) + SETTLED_COUNT
        self.until(lambda: len(self.answers) >= wanted, "answers")

    def first_of_next_term(self) -> int:
        """Goes on until a next leader answers; returns when that was."""
        term_id = self.term_id
        self.until(lambda: self.term_id > term_id, "an answer from the next leader")
        return min(at_ns for answered_by, at_ns in self.answers.values() if answered_by == self.term_id)

    def end(self) -> int:
        """Takes the last answers; returns how many commands got none."""
        self.is_paused = True
        deadline = time.monotonic_ns() + LAST_ANSWERS_NS
        self.until(
            lambda: len(self.answers) == self.sent or time.monotonic_ns() > deadline, "the last answers"
        )
        return self.sent - len(self.answers)


def _connected(driver: headrace.MediaDriver, cluster: Members) -> ClusterClient:
    return ClusterClient.connect(
        driver=driver,
        ingress_endpoints=cluster.ingress,
        egress_channel=EGRESS,
        message_timeout_ns=TIMEOUT_NS,
        new_leader_timeout_ns=TIMEOUT_NS,
    )


def _failed_over(side: Side, settings: dict[str, str]) -> list[float]:
    """Milliseconds from each kill of a leader to the first answer of the next."""
    durations: list[float] = []
    with side(settings) as cluster, headrace.MediaDriver.embedded(threading_mode="SHARED") as driver:
        leader = cluster.await_ready()
        with _connected(driver, cluster) as client:
            commands = Commands(client)
            for _ in range(KILLS):
                commands.settle()
                killed_ns = time.monotonic_ns()
                leader.kill()
                durations.append((commands.first_of_next_term() - killed_ns) / 1e6)
                leader = _replaced(cluster, leader, commands)
    return durations


def _replaced(cluster: Members, killed: Member, commands: Commands) -> Member:
    """Starts the killed member with nothing, since Java's does not start on files that look used; returns who leads."""
    killed.stop()
    killed.empty()
    killed.start()
    commands.until(lambda: all(one.is_ready for one in cluster.all), "all to lead or to follow")
    return cluster.await_ready()


def cluster_failover() -> Row:
    """From the kill of the leader to the first answer of the next."""
    default = Measurement(observations=_failed_over(members.ours, {}))
    ours = Measurement(observations=_failed_over(members.ours, EQUAL))
    theirs = Measurement(observations=_failed_over(members.theirs, EQUAL))
    return Row(
        name="cluster-failover",
        unit="ms",
        ours=ours,
        peer_name=JAVA,
        peer=theirs,
        target="< 500 ms with our defaults, see the notes; >= 1.0 x with equal settings",
        configuration=(
            f"kill -9 of the leader's process, {KILLS} times, to the first answer of the next; both with "
            f"leader.heartbeat.timeout=2s, all other times the default of both; {CONFIGURATION}"
        ),
        higher_is_better=False,
        notes={
            "ours with its defaults, ms": default.value,
            "the same, longest": default.spread[1],
        },
    )


def cluster_transfer() -> Row:
    """How long a client has no answers while another member is made the leader."""
    gaps: list[float] = []
    with (
        members.ours({}) as cluster,
        headrace.MediaDriver.embedded(threading_mode="SHARED") as driver,
    ):
        leader = cluster.await_ready()
        with _connected(driver, cluster) as client:
            commands = Commands(client)
            for _ in range(TRANSFERS):
                commands.settle()
                gaps.append(_transferred(cluster, leader, commands))
                leader = cluster.await_ready()
            unanswered = commands.end()
    return Row(
        name="cluster-transfer",
        unit="ms",
        ours=Measurement(observations=gaps),
        peer_name="none",
        peer=None,
        target="< 50 ms, nothing lost",
        configuration=(
            f"`headrace cluster transfer-leadership`, {TRANSFERS} times; from the last answer of one leader to the "
            f"first of the next; {CONFIGURATION}"
        ),
        higher_is_better=False,
        notes={"commands sent": float(commands.sent), "without an answer": float(unanswered)},
    )


def _transferred(cluster: Members, leader: Member, commands: Commands) -> float:
    """Milliseconds between the last answer of one leader and the first of the next."""
    term_id = commands.term_id
    command = [sys.executable, "-m", "headrace", "cluster", "transfer-leadership"]
    with subprocess.Popen([*command, str(leader.place / "cluster")], stdout=subprocess.DEVNULL):
        first_ns = commands.first_of_next_term()
    last_ns = max(at_ns for answered_by, at_ns in commands.answers.values() if answered_by == term_id)
    return (first_ns - last_ns) / 1e6
