"""Our client on the reference's cluster: one member, then three of which leaders are killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from benches.processes import JavaPeer

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
from tests.interop.members import CONNECT_NS, EGRESS, connect, running_cluster
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.slow]

MAIN = "EchoMember"
PLUG_INS = {
    "authenticator_supplier": f"{MAIN}$Simple",
    "authorisation_service_supplier": f"{MAIN}$Allowing",
}


@pytest.fixture(scope="module")
def driver() -> Iterator[headrace.MediaDriver]:
    """The driver of our client."""
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver:
        yield driver


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
    with running_cluster(java, tmp_path, "e", session_timeout="3s") as members:
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
    with running_cluster(java, tmp_path, "e", ingress_channel=f"{group}|term-length=1m") as members:
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
    with running_cluster(java, tmp_path, "e", **PLUG_INS) as members:
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
    with running_cluster(java, tmp_path, "e", authenticator_supplier=f"{MAIN}$Asking") as members:
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
    alice = UserCredentials("alice", "secret")
    with (
        running_cluster(java, tmp_path, "eee", session_timeout="4s", **PLUG_INS) as members,
        connect(driver, members, credentials=alice, on_new_leader=led.append) as cluster,
    ):
        load = Load(cluster)
        load.until(lambda: len(load.echoes) > 1000)
        for count in (1, 2):
            old = members[cluster.leader_member_id]
            old.kill()
            load.goes_on_after(lambda count=count: len(led) == count)
            assert cluster.leader_member_id != old.number
            old.restart()
            load.goes_on_after(lambda: True)
        load.check()
        assert cluster.state is ClientState.CONNECTED
        # What was on its way is waited for, longer than a client may be silent; then the service says how many
        # messages it had.
        cluster.offer_blocking(b"count?", timeout_s=TIMEOUT_S)
        answers = [message.payload for message in iter(lambda: cluster.receive(5), None)]
        load.echoes += [int(answer) for answer in answers[:-1]]
        load.check()
        assert len(load.echoes) <= int(answers[-1]) <= load.sent
        cluster.request_snapshot()
        await_true(lambda: cluster.poll(print) or all("SNAPSHOT" in member.lines for member in members))
        followers = [member for member in members if member.number != cluster.leader_member_id]
        with connect(driver, followers, credentials=alice) as other:
            assert other.leader_member_id == cluster.leader_member_id
            assert echoed(other, [b"hello"]) == [b"hello"]
