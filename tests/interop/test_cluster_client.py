"""Our client on the reference's cluster: one member, then three of which the leader is killed."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

import pytest
from benches.processes import ROOT, JavaPeer, PeerUnavailable, fresh_directory

import headrace
from headrace.cluster import (
    AdminRequestError,
    AdminResponseCode,
    ClientState,
    ClusterAuthenticationError,
    ClusterClient,
    EventCode,
    NewLeaderEvent,
    SessionClosedError,
    SessionEvent,
)
from headrace.security import UserCredentials
from tests.helpers import TIMEOUT_S, await_true
from tests.interop.short_lived import ShortLivedJava
from tests.ports import free_endpoint, free_port

pytestmark = [pytest.mark.interop, pytest.mark.slow]

MAIN = "EchoMember"
EGRESS = "aeron:udp?endpoint=127.0.0.1:0"
CONNECT_NS = int(TIMEOUT_S * 1e9)


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> JavaPeer:
    """The reference's newest published artifacts; skips where Maven cannot bring them."""
    source = ROOT / "tests" / "interop" / "java" / f"{MAIN}.java"
    try:
        return ShortLivedJava(tmp_path_factory.mktemp("java-echo-cluster"), source)
    except PeerUnavailable as reason:
        pytest.skip(f"interoperability: {reason}")


@pytest.fixture(scope="module")
def driver() -> Iterator[headrace.MediaDriver]:
    """The driver of our client."""
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver:
        yield driver


class Member:
    """One Java process: driver, archive, consensus module and service."""

    def __init__(self, java: JavaPeer, place: Path, number: int, members: str, **settings: str) -> None:
        self.number = number
        self.lines: list[str] = []
        endpoints = dict(
            zip(
                ("id", "ingress", "consensus", "log", "catchup", "archive"),
                members.split("|")[number].split(","),
                strict=True,
            )
        )
        self.ingress = endpoints["ingress"]
        self._directory = fresh_directory(f"echo-cluster-{number}")
        properties = {
            "aeron.dir": str(self._directory),
            "aeron.dir.delete.on.start": "true",
            "aeron.dir.delete.on.shutdown": "true",
            "aeron.threading.mode": "SHARED",
            "aeron.term.buffer.sparse.file": "true",
            "aeron.archive.threading.mode": "SHARED",
            "aeron.archive.dir": str(place / f"archive-{number}"),
            "aeron.archive.segment.file.length": "1m",
            "aeron.archive.control.channel": f"aeron:udp?endpoint={endpoints['archive']}",
            "aeron.archive.replication.channel": "aeron:udp?endpoint=127.0.0.1:0",
            "aeron.cluster.dir": str(place / f"cluster-{number}"),
            "aeron.cluster.member.id": str(number),
            "aeron.cluster.members": members,
            "aeron.cluster.ingress.channel": "aeron:udp?term-length=1m",
            "aeron.cluster.log.channel": "aeron:udp?term-length=1m",
            "aeron.cluster.replication.channel": "aeron:udp?endpoint=127.0.0.1:0",
            "aeron.cluster.startup.canvass.timeout": "5s",
            "aeron.cluster.leader.heartbeat.timeout": "2s",
            **settings,
        }
        self._command = java.command(MAIN, properties=properties)
        self.start()

    def start(self) -> None:
        """Runs it, again and again while its files still look as if the process that was killed used them."""
        for _ in range(20):
            begin = len(self.lines)
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT
            )
            self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
            self._reader.start()
            await_true(lambda begin=begin: "READY" in self.lines[begin:] or self._process.poll() is not None)
            if self._process.poll() is None:
                return
            self._reap()
            assert "active" in "".join(self.lines[begin:]), "\n".join(self.lines)
        raise AssertionError("\n".join(self.lines))

    def _read(self, output: TextIO) -> None:
        with output:
            for line in output:
                self.lines.append(line.strip())

    def _reap(self) -> None:
        self._process.wait()
        self._reader.join()

    def kill(self) -> None:
        self._process.kill()
        self._reap()

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reap()
        shutil.rmtree(self._directory, ignore_errors=True)


@contextmanager
def java_cluster(java: JavaPeer, place: Path, count: int = 1, **settings: str) -> Iterator[list[Member]]:
    """A cluster of so many members."""
    names = [",".join([str(number), *(free_endpoint() for _ in range(5))]) for number in range(count)]
    with ExitStack() as stack:
        members = []
        for number in range(count):
            properties = {
                f"aeron.cluster.{name.replace('_', '.')}": value for name, value in settings.items()
            }
            members.append(Member(java, place, number, "|".join(names), **properties))
            stack.callback(members[-1].close)
        yield members


def endpoints(members: list[Member]) -> str:
    return ",".join(f"{member.number}={member.ingress}" for member in members)


def connect(driver: headrace.MediaDriver, members: list[Member], **settings: object) -> ClusterClient:
    """A session; a cluster that has just begun takes a while to have a leader."""
    return ClusterClient.connect(
        driver=driver,
        ingress_endpoints=endpoints(members),
        egress_channel=EGRESS,
        message_timeout_ns=CONNECT_NS,
        **settings,  # type: ignore[arg-type]
    )


def echoed(cluster: ClusterClient, messages: list[bytes]) -> list[bytes]:
    answers: list[bytes] = []
    for message in messages:
        cluster.offer_blocking(message, timeout_s=TIMEOUT_S)
        cluster.poll(lambda received: answers.append(received.payload))
    while len(answers) < len(messages):
        received = cluster.receive(TIMEOUT_S)
        assert received is not None, f"{len(answers)} of {len(messages)}"
        answers.append(received.payload)
    return answers


def test_messages_come_back_and_a_session_lives_by_keepalives(
    java: JavaPeer, driver: headrace.MediaDriver, tmp_path: Path
) -> None:
    events: list[SessionEvent] = []
    with java_cluster(java, tmp_path, session_timeout="3s") as members:
        with connect(driver, members, client_name="ours") as cluster:
            assert cluster.leader_member_id == 0
            messages = [b"%d " % number * (1 + number % 50) for number in range(1000)]
            assert echoed(cluster, messages) == messages
            large = [bytes([number]) * (50_000 + number) for number in range(20)]
            assert echoed(cluster, large) == large
            # More than twice as long as the cluster waits for a client.
            assert cluster.receive(7) is None
            assert echoed(cluster, [b"still there"]) == [b"still there"]
            with pytest.raises(AdminRequestError, match="not authorised") as refused:
                cluster.request_snapshot()
            assert refused.value.code == AdminResponseCode.UNAUTHORISED_ACCESS
        await_true(lambda: "CLOSED CLIENT_ACTION" in members[0].lines)
        silent = connect(driver, members, keep_alive_interval_ns=0, on_session_event=events.append)
        with pytest.raises(SessionClosedError, match="TIMEOUT"):
            silent.receive(TIMEOUT_S)
        assert [(event.code, event.detail) for event in events] == [(EventCode.CLOSED, "TIMEOUT")]
        silent.close()
        # One that an application keeps alive by hand.
        with connect(driver, members, keep_alive_interval_ns=0) as kept:
            for _ in range(10):
                assert kept.receive(0.5) is None
                assert kept.send_keep_alive()
            assert echoed(kept, [b"count?"]) == [b"1021"]


def test_a_group_is_the_way_to_the_leader(
    java: JavaPeer, driver: headrace.MediaDriver, tmp_path: Path
) -> None:
    group = f"aeron:udp?endpoint=239.255.45.3:{free_port()}|interface=127.0.0.1"
    with java_cluster(java, tmp_path, ingress_channel=f"{group}|term-length=1m") as members:
        to_group = {"egress_channel": EGRESS, "message_timeout_ns": CONNECT_NS, "ingress_channel": group}
        with (
            ClusterClient.connect(driver=driver, **to_group) as cluster,
            ClusterClient.connect(driver=driver, **to_group) as other,
        ):
            messages = [b"%d " % number * (1 + number % 50) for number in range(1000)]
            large = [bytes([number]) * (50_000 + number) for number in range(20)]
            for one in (cluster, other):
                assert echoed(one, messages) == messages
                assert echoed(one, large) == large
            other.close()
            await_true(lambda: "CLOSED CLIENT_ACTION" in members[0].lines)
            assert echoed(cluster, [b"count?"]) == [b"2040"]


def test_a_simple_authenticator_and_snapshots_that_are_allowed(
    java: JavaPeer, driver: headrace.MediaDriver, tmp_path: Path
) -> None:
    plug_ins = {
        "authenticator_supplier": f"{MAIN}$Simple",
        "authorisation_service_supplier": f"{MAIN}$Allowing",
    }
    with java_cluster(java, tmp_path, **plug_ins) as members:
        with connect(driver, members, credentials=UserCredentials("alice", "secret")) as cluster:
            assert echoed(cluster, [b"hello"]) == [b"hello"]
            cluster.request_snapshot()
            await_true(lambda: cluster.poll(print) or "SNAPSHOT" in members[0].lines)
        for credentials, advice in ((b"", "give credentials"), (b"alice:wrong", "does not accept")):
            with pytest.raises(ClusterAuthenticationError, match=advice):
                connect(driver, members, credentials=credentials)


class Answering:
    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.challenges: list[bytes] = []

    def encoded_credentials(self) -> bytes:
        return b""

    def on_challenge(self, challenge: bytes) -> bytes:
        self.challenges.append(challenge)
        return self.answer


def test_a_challenge_is_answered(java: JavaPeer, driver: headrace.MediaDriver, tmp_path: Path) -> None:
    with java_cluster(java, tmp_path, authenticator_supplier=f"{MAIN}$Asking") as members:
        right = Answering(b"it is me")
        with connect(driver, members, credentials=right) as cluster:
            assert right.challenges == [b"who is there?"]
            assert echoed(cluster, [b"hello"]) == [b"hello"]
        with pytest.raises(ClusterAuthenticationError, match="session failed authentication"):
            connect(driver, members, credentials=Answering(b"it is not"))


class Load:
    """Sends numbered messages and reads the echoes; a message without an echo may be lost, and none comes twice."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster
        self.sent = 0
        self.echoes: list[int] = []

    def step(self) -> None:
        if self._cluster.offer(b"%d" % self.sent) > 0:
            self.sent += 1
        self._cluster.poll(lambda message: self.echoes.append(int(message.payload)), 100)

    def until(self, condition: Callable[[], bool]) -> None:
        await_true(lambda: self.step() or condition())

    def goes_on_after(self, condition: Callable[[], bool]) -> None:
        self.until(condition)
        seen = len(self.echoes)
        self.until(lambda: len(self.echoes) > seen + 1000)

    def check(self) -> None:
        assert all(earlier < later for earlier, later in zip(self.echoes, self.echoes[1:], strict=False))


def test_three_members_of_which_leaders_are_killed_under_load(
    java: JavaPeer, driver: headrace.MediaDriver, tmp_path: Path
) -> None:
    led: list[NewLeaderEvent] = []
    with (
        java_cluster(java, tmp_path, 3) as members,
        connect(driver, members, on_new_leader=led.append, new_leader_timeout_ns=CONNECT_NS) as cluster,
    ):
        load = Load(cluster)
        load.until(lambda: len(load.echoes) > 1000)
        for count in (1, 2):
            old = members[cluster.leader_member_id]
            old.kill()
            load.goes_on_after(lambda count=count: len(led) == count)
            assert cluster.leader_member_id != old.number
            old.start()
            load.goes_on_after(lambda: True)
        load.check()
        assert cluster.state is ClientState.CONNECTED
        # What was on its way is waited for, then the service says how many messages it had.
        cluster.offer_blocking(b"count?", timeout_s=TIMEOUT_S)
        answers = [message.payload for message in iter(lambda: cluster.receive(5), None)]
        load.echoes += [int(answer) for answer in answers[:-1]]
        load.check()
        assert len(load.echoes) <= int(answers[-1]) <= load.sent
