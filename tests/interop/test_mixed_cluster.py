"""Members of the reference and of ours in one cluster: one of ours with two in Java, and one in Java with two of ours.

In a third mix a container of Java's is under the module of ours, and one of ours under each module in Java. The tests
of a mix tell one story: the member that is alone of its kind leads first, then follows the others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from benches.processes import JavaPeer, output

import headrace
from headrace.archive.files import ArchiveDirectory
from headrace.cluster.common.counters import ClusterCounter
from headrace.cluster.files.directory import ClusterDirectory
from headrace.cluster.files.recording_log_entries import Entry
from headrace.cluster.member.states import ModuleState
from tests.cli.test_cluster_member import run
from tests.helpers import TIMEOUT_S, await_true
from tests.interop.members import Member, connect, endpoints, running_cluster
from tests.interop.test_cluster_node import tool

pytestmark = [pytest.mark.interop, pytest.mark.slow]

RECORDING_POSITION = 100
# How long nothing comes any more from a leader that is gone.
QUIET_S = 5.0


@dataclass
class Mixed:
    """A cluster with a client of ours."""

    java: JavaPeer
    members: list[Member]
    driver: headrace.MediaDriver
    failed_before: int
    count: int = 0

    def __post_init__(self) -> None:
        self.leaders: list[int] = []
        self.connect()

    def connect(self) -> None:
        """Begin a session; members that have all been started again have closed the one before."""
        self.client = connect(
            self.driver, self.members, on_new_leader=lambda event: self.leaders.append(event.leader_member_id)
        )

    @property
    def leader(self) -> Member:
        return self.members[self.client.leader_member_id]

    @property
    def followers(self) -> list[Member]:
        return [member for member in self.members if member is not self.leader]

    def echo(self, count: int, length: int = 100) -> None:
        """Each message comes back, once and in order.

        On a busy machine a leader may be taken for dead: then what was on its way may be lost, and nothing else.
        """
        messages = [bytes([(self.count + number) % 251]) * length for number in range(count)]
        answers: list[bytes] = []
        leaders = len(self.leaders)
        for message in messages:
            self.client.offer_blocking(message, timeout_s=TIMEOUT_S)
            self.client.poll(lambda received: answers.append(received.payload))
        while len(answers) < count and (answer := self._answer(leaders)) is not None:
            answers.append(answer)
        if len(answers) == count:
            assert answers == messages
            self.count += count
        else:
            sent = iter(messages)
            assert all(answer in sent for answer in answers), "once and in order"
            taken = int(self._state().split(" ")[0]) - self.count
            assert len(answers) <= taken <= count
            self.count += taken

    def _answer(self, leaders: int) -> bytes | None:
        """The next one; none if the cluster has another leader than the first so many, and nothing more comes."""
        deadline = time.monotonic() + TIMEOUT_S
        while (received := self.client.receive(QUIET_S)) is None:
            if len(self.leaders) > leaders:
                return None
            assert time.monotonic() < deadline, "no answer"
        return received.payload

    def _state(self) -> str:
        """The state of the service, without the number of sessions."""
        while True:
            leaders = len(self.leaders)
            self.client.offer_blocking(b"state?", timeout_s=TIMEOUT_S)
            answer = self._answer(leaders)
            if answer is not None:
                return answer.decode().rpartition(" ")[0]

    def settled_state(self) -> str:
        """The state of the service once its timers and messages to itself, one each for 50 messages, have come."""
        state = ""

        def is_settled() -> bool:
            nonlocal state
            state = self._state()
            return state.split(" ")[2:] == [str(self.count // 50)] * 2

        await_true(is_settled)
        assert state.startswith(f"{self.count} ")
        return state

    def agree(self) -> str:
        """A snapshot shows that all members have the same state, which it returns."""
        state = self.settled_state()
        self.client.request_snapshot()
        self.await_snapshots(state)
        return state

    def await_snapshots(self, state: str) -> None:
        await_true(lambda: all(state in member.said("SNAPSHOT") for member in self.members))


@pytest.fixture(scope="module", params=["ojj", "joo", "mnn"])
def mixed(
    request: pytest.FixtureRequest, java: JavaPeer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mixed]:
    with (
        running_cluster(
            java,
            tmp_path_factory.mktemp("mixed"),
            request.param,
            appointed_leader_id="0",
            session_timeout="60s",
            log_channel="aeron:udp?term-length=4m",
        ) as members,
        headrace.MediaDriver.embedded(threading_mode="SHARED") as driver,
    ):
        mixed = Mixed(java, members, driver, request.session.testsfailed)
        yield mixed
        mixed.client.close()


def recording_log(member: Member) -> list[Entry]:
    with ClusterDirectory(member.cluster_directory).recording_log() as log:
        return list(log)


def _without_version(message: bytes) -> bytes:
    """A message of a snapshot without the version of the schema in its header: the reference's artifacts are older."""
    return message[:6] + message[8:]


def described(member: Member) -> tuple[Any, ...]:
    """What members have alike on their disks.

    Terms, snapshots, the log without the ids of its streams, and what the latest snapshot has.
    """
    entries = recording_log(member)
    terms = [(one.leadership_term_id, one.term_base_log_position) for one in entries if one.is_term]
    snapshots = {
        (one.leadership_term_id, one.log_position, one.service_id) for one in entries if one.is_snapshot
    }
    with ArchiveDirectory(member.archive_directory) as archive:
        [log] = [one for one in archive.recordings() if one.stream_id == 100]
        frames = [
            (one.position, one.header.flags, one.header.type, one.payload)
            for one in archive.frames(log.recording_id)
        ]
        contents = {
            one.service_id: [_without_version(frame.payload) for frame in archive.frames(one.recording_id)]
            for one in entries
            if one.is_snapshot
        }
    return terms, snapshots, frames, contents


@pytest.fixture(autouse=True)
def _is_whole(mixed: Mixed, request: pytest.FixtureRequest) -> None:
    """What follows a part of the story that has failed says nothing."""
    if request.session.testsfailed > mixed.failed_before:
        pytest.skip("an earlier part of the story has failed")


def test_the_appointed_member_leads_and_takes_messages_of_all_lengths(mixed: Mixed) -> None:
    assert mixed.leader.number == 0
    await_true(lambda: mixed.leader.said("LEADER"))
    for length, count in ((1, 100), (1376, 50), (1377, 50), (8000, 25), (60_000, 10)):
        mixed.echo(count, length)
    lines = output(
        mixed.java.command("ClusterEcho", mixed.driver.directory, endpoints(mixed.members), 0, 500, 0)
    )
    assert lines[-1] == "DONE 500"
    mixed.count += 500
    mixed.agree()
    assert not any(member.said("LEADER") for member in mixed.followers)


def test_a_follower_catches_up_from_nothing(mixed: Mixed) -> None:
    follower = mixed.followers[0]
    follower.kill_and_empty()
    mixed.echo(110)
    mixed.echo(5, 60_000)
    del follower.settings["appointed_leader_id"]
    follower.restart()
    mixed.echo(100)
    assert follower.awaited("STARTED") == "0 0 0 0"
    mixed.agree()


def test_a_follower_catches_up_from_its_snapshot(mixed: Mixed) -> None:
    follower = mixed.followers[1]
    at_snapshot = mixed.agree()
    follower.kill()
    mixed.echo(200, 3000)
    del follower.settings["appointed_leader_id"]
    follower.restart()
    mixed.echo(100)
    assert follower.awaited("STARTED") == at_snapshot
    mixed.agree()


def test_the_other_kind_leads_when_the_leader_is_killed(mixed: Mixed) -> None:
    alone = mixed.members[0]
    state = mixed.agree()
    alone.kill()
    await_true(lambda: mixed.client.poll(print) or mixed.leaders)
    assert mixed.leader.number in (1, 2)
    mixed.echo(100)
    mixed.echo(5, 60_000)
    del alone.settings["appointed_leader_id"]
    alone.restart()
    mixed.echo(95)
    assert alone.awaited("STARTED") == state
    mixed.agree()


def test_the_former_leader_catches_up_from_nothing(mixed: Mixed) -> None:
    alone = mixed.members[0]
    alone.kill_and_empty()
    mixed.echo(50)
    alone.restart()
    mixed.echo(50, 3000)
    mixed.agree()
    assert alone.awaited("STARTED") == "0 0 0 0"


def test_what_only_a_lost_leader_has_is_cut_off(mixed: Mixed) -> None:
    before, lost = mixed.settled_state(), mixed.leader
    others = mixed.followers
    for other in others:
        other.kill()
    for number in range(20):
        mixed.client.offer(bytes([number]) * 500)
    await_true(
        lambda: lost.counter(RECORDING_POSITION) > lost.counter(ClusterCounter.COMMIT_POSITION) + 10_000
    )
    end = lost.counter(RECORDING_POSITION)
    lost.kill()
    for other in others:
        other.restart()
    mixed.client.close()
    mixed.connect()
    assert mixed.settled_state() == before
    mixed.echo(50)
    lost.restart()
    mixed.echo(50)
    mixed.agree()
    [*_, last] = [entry for entry in recording_log(lost) if entry.is_term]
    assert last.term_base_log_position < end


def test_a_follower_that_stood_still_catches_up(mixed: Mixed) -> None:
    for follower in mixed.followers:
        follower.pause()
        mixed.echo(50, 20_000)
        follower.go_on()
    mixed.agree()


def test_members_go_on_with_each_others_directories(mixed: Mixed) -> None:
    state = mixed.agree()
    for member in mixed.followers:
        member.kill()
        member.become_the_other_kind()
        mixed.echo(25)
        member.restart()
        assert member.awaited("STARTED") == state
        mixed.echo(25)
        state = mixed.agree()


def test_suspend_and_resume(mixed: Mixed) -> None:
    leader = mixed.leader
    for command in "suspend", "resume":
        if not leader.is_ours:
            run(command, leader.cluster_directory)
        else:
            assert f"{command.upper()} applied successfully" in tool(
                mixed.java, leader.cluster_directory, command
            )
        wanted = ModuleState.SUSPENDED if command == "suspend" else ModuleState.ACTIVE
        for member in mixed.members:
            await_true(
                lambda member=member, wanted=wanted: member.counter(ClusterCounter.MODULE_STATE) == wanted
            )
    mixed.echo(50)


def test_all_end_at_one_position_and_have_the_same_log(mixed: Mixed) -> None:
    state, leader = mixed.settled_state(), mixed.leader
    if not leader.is_ours:
        run("shutdown", leader.cluster_directory)
    else:
        assert "SHUTDOWN applied successfully" in tool(mixed.java, leader.cluster_directory, "shutdown")
    for member in mixed.members:
        member.ended()
        assert member.said("TERMINATED") == [state]
    first, *others = [described(member) for member in mixed.members]
    *_, contents = first
    assert contents.keys() == {-1, 0}
    assert all(other == first for other in others)
