"""What a member answers to backups and standbys, which are scripts here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.cluster.common.counters import ClusterCounter, find
from headrace.cluster.files.recording_log_entries import EntryType
from headrace.cluster.member.states import NodeToggle, Toggle
from headrace.cluster.protocol.codes import EventCode
from headrace.cluster.protocol.consensus import (
    BackupQuery,
    BackupResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    StandbySnapshot,
    StandbySnapshotRecording,
)
from headrace.cluster.protocol.messages import decode, encode
from headrace.cluster.protocol.session import Challenge, ChallengeResponse, SessionEvent
from headrace.security import Accepted, Rejected, Verdict
from headrace.security import Challenge as Ask
from headrace.testing import World
from tests.cluster.members import MEMBERS, Member
from tests.cluster.test_cluster_backup import Backup

VERSION = 3 << 8
NOT_GIVEN = -(1 << 63)


class Asker:
    """A program outside of the cluster, on the consensus stream."""

    def __init__(self, member: Member, name: str = "asker") -> None:
        self.member = member
        self.client = member.world.add_node(name).connect()
        self.channel = f"aeron:udp?endpoint={name}:9103"
        self.subscription = self.client.add_subscription(self.channel, 108)
        self.publication = self.client.add_exclusive_publication("aeron:udp?endpoint=leader:9003", 108)
        self.heard: list[Any] = []

    def send(self, kind: type, **values: Any) -> None:
        fields: dict[str, Any] = {
            "correlation_id": 7,
            "response_stream_id": 108,
            "response_channel": self.channel,
        }
        if kind is not HeartbeatRequest:
            fields["version"] = VERSION
        if kind is BackupQuery:
            fields["log_position"] = NOT_GIVEN
        self.put(kind(**fields | values))

    def put(self, message: Any) -> None:
        data = encode(message)
        self.member.until(lambda: self.publication.offer(data) > 0, "a place in the stream")

    def answer(self) -> Any:
        def is_there() -> list[Any]:
            self.subscription.poll(lambda data, _: self.heard.append(decode(data)))
            return self.heard

        self.member.until(is_there, "an answer")
        return self.heard.pop(0)

    def refusal(self) -> tuple[EventCode, str]:
        event = self.answer()
        assert isinstance(event, SessionEvent)
        assert (event.correlation_id, event.cluster_session_id) == (7, -1)
        return event.code, event.detail


@pytest.fixture
def world() -> Iterator[World]:
    with World(20261130) as made:
        yield made


def made(world: World, **settings: Any) -> tuple[Member, Asker]:
    member = Member(world, world.add_node("leader"), **settings)
    member.await_leader()
    return member, Asker(member)


def positions(answer: Any) -> list[tuple[int, int]]:
    assert isinstance(answer, BackupResponse)
    return [(one.service_id, one.log_position) for one in answer.snapshots]


def snapshot(member: Member) -> int:
    count = member.module.snapshot_count
    member.context.counters.toggle.value = Toggle.SNAPSHOT
    member.until(lambda: member.module.snapshot_count > count, "a snapshot")
    position = [one.log_position for one in member.context.recording_log if one.is_snapshot][-1]
    assert isinstance(position, int)
    return position


def test_a_backup_is_told_where_the_log_and_a_snapshot_are(world: World) -> None:
    member, asker = made(world)
    asker.send(BackupQuery)
    answer = asker.answer()
    commit = find(asker.member.node.connect(), ClusterCounter.COMMIT_POSITION, 0)
    assert commit is not None
    assert answer == BackupResponse(
        correlation_id=7,
        log_recording_id=member.context.recording_log.log_recording_id,
        log_leadership_term_id=0,
        log_term_base_log_position=0,
        last_leadership_term_id=0,
        last_term_base_log_position=0,
        commit_position_counter_id=commit.counter_id,
        leader_member_id=0,
        member_id=0,
        snapshots=(),
        cluster_members=MEMBERS,
    )
    first, second = snapshot(member), snapshot(member)
    for log_position, expected in (
        (NOT_GIVEN, second),
        ((1 << 63) - 1, second),
        (second - 1, first),
        (first, first),
        (first - 1, first),
    ):
        asker.send(BackupQuery, log_position=log_position)
        assert positions(asker.answer()) == [(-1, expected)]
    # Its session has ended, and nothing of it is left at the driver.
    member.until(
        lambda: find(asker.member.node.connect(), ClusterCounter.SESSION, 0) is None, "the end of the session"
    )


def test_a_session_is_shown_while_its_backup_does_not_listen_and_ends_by_time(world: World) -> None:
    member, asker = made(world, session_timeout_ns=2_000_000_000)
    asker.send(BackupQuery, response_channel="aeron:udp?endpoint=asker:9104")
    client = member.node.connect()
    member.until(lambda: find(client, ClusterCounter.SESSION, 0), "a session for operators")
    shown = find(client, ClusterCounter.SESSION, 0)
    assert shown is not None
    assert shown.label.startswith("cluster-session: BACKUP sourceIdentity=")
    member.until(lambda: find(client, ClusterCounter.SESSION, 0) is None, "its end")
    assert member.context.counters.timed_out_clients.value == 1


def test_a_standby_hears_that_the_member_lives_and_takes_none_of_its_snapshots(world: World) -> None:
    _, asker = made(world)
    asker.send(HeartbeatRequest)
    assert asker.answer() == HeartbeatResponse(correlation_id=7)
    asker.send(StandbySnapshot)
    assert asker.refusal() == (EventCode.ERROR, "Not configured to accept StandbySnapshot")


def test_another_version_is_refused(world: World) -> None:
    _, asker = made(world)
    asker.send(BackupQuery, version=1 << 16)
    assert asker.refusal() == (EventCode.ERROR, "invalid client version 1.0.0, cluster=0.3.0")


@pytest.mark.parametrize(("kind", "name"), [(BackupQuery, "BackupQuery"), (HeartbeatRequest, "Heartbeat")])
def test_what_is_not_authorised_is_refused(world: World, kind: type, name: str) -> None:
    _, asker = made(world, authorisation="DENY_ALL")
    asker.send(kind)
    assert asker.refusal() == (EventCode.AUTHENTICATION_REJECTED, f"Not authorised for {name}")


class Asking:
    """Lets in who gives the answer to a question."""

    def on_connect(self, credentials: bytes) -> Verdict:
        return Ask(b"who is there?", self._answered) if credentials == b"me" else Rejected()

    @staticmethod
    def _answered(answer: bytes) -> Verdict:
        return Accepted(b"backup") if answer == b"it is me" else Rejected()


def test_who_asks_proves_who_it_is_on_its_own_stream(world: World) -> None:
    member, asker = made(world, authenticator=Asking())
    other = Asker(member, "other")
    asker.send(BackupQuery)
    assert asker.refusal() == (EventCode.AUTHENTICATION_REJECTED, "session failed authentication")
    asker.send(BackupQuery, encoded_credentials=b"me")
    challenge = asker.answer()
    assert challenge == Challenge(correlation_id=7, cluster_session_id=-1, encoded_challenge=b"who is there?")
    proof = ChallengeResponse(correlation_id=8, cluster_session_id=-1, encoded_credentials=b"it is not")
    other.put(proof)
    asker.put(ChallengeResponse(correlation_id=9, cluster_session_id=-1, encoded_credentials=b"it is me"))
    answer = asker.answer()
    assert isinstance(answer, BackupResponse)
    assert answer.correlation_id == 9


def test_a_suspended_member_answers_once_it_goes_on(world: World) -> None:
    member, asker = made(world)
    toggle = member.context.counters.toggle
    toggle.value = Toggle.SUSPEND
    member.until(lambda: member.module.state.name == "SUSPENDED", "the suspension")
    asker.send(HeartbeatRequest)
    world.run_for(1)
    assert not asker.subscription.poll(print)
    toggle.value = Toggle.RESUME
    assert asker.answer() == HeartbeatResponse(correlation_id=7)


def test_answers_do_not_go_to_the_member_itself(world: World) -> None:
    member, asker = made(world)
    for channel in ("aeron:udp?endpoint=leader:9003", "aeron:ipc", "no channel"):
        asker.send(HeartbeatRequest, response_channel=channel)
    asker.send(HeartbeatRequest)
    assert asker.answer() == HeartbeatResponse(correlation_id=7)
    assert len(member.module._backup_queries) == 0


# --- standbys ------------------------------------------------------------------------------------------------------


def recordings(endpoint: str, position: int, *recording_ids: int) -> tuple[StandbySnapshotRecording, ...]:
    """Of the consensus module alone, or before that of services."""
    return tuple(
        StandbySnapshotRecording(
            recording_id=recording_id,
            leadership_term_id=0,
            term_base_log_position=0,
            log_position=position,
            timestamp=7,
            service_id=len(recording_ids) - 2 - number,
            archive_endpoint=endpoint,
        )
        for number, recording_id in enumerate(recording_ids)
    )


def noted(member: Member) -> list[tuple[int, str | None]]:
    return [
        (one.log_position, one.archive_endpoint)
        for one in member.context.recording_log
        if one.type is EntryType.STANDBY_SNAPSHOT
    ]


def test_a_snapshot_of_a_standby_is_noted_once_the_cluster_has_come_so_far(world: World) -> None:
    member, asker = made(world, accept_standby_snapshots=True, standby_snapshot_delay_ns=500_000_000)
    position = member.module.commit_position
    asker.send(StandbySnapshot, snapshots=recordings("one:8010", position, 3))
    asker.send(StandbySnapshot, snapshots=recordings("two:8010", position + 96, 4))
    member.until(lambda: noted(member) == [(position, "one:8010")], "the first")
    world.run_for(1)
    assert noted(member) == [(position, "one:8010")]
    member.context.counters.toggle.value = Toggle.STANDBY_SNAPSHOT
    member.until(lambda: len(noted(member)) == 2, "the second")
    assert noted(member)[1] == (position + 96, "two:8010")
    counter = find(member.node.connect(), ClusterCounter.STANDBY_SNAPSHOTS, 0)
    assert counter is not None
    assert counter.value == 2
    assert len(member.module._backup_queries) == 0
    assert member.module.snapshot_count == 0


def test_a_snapshot_that_no_recording_log_can_hold_ends_nothing(world: World) -> None:
    member, asker = made(world, accept_standby_snapshots=True)
    asker.send(StandbySnapshot, snapshots=recordings("x" * 5000, 96, 3))
    asker.send(StandbySnapshot, snapshots=recordings("one:8010", -96, 3))
    asker.send(StandbySnapshot)
    asker.send(HeartbeatRequest)
    assert asker.answer() == HeartbeatResponse(correlation_id=7)
    world.run_for(1)
    assert noted(member) == []
    assert member.module.failure is None


@pytest.mark.parametrize("at_start", [False, True])
def test_the_latest_snapshot_of_a_standby_becomes_the_member_s_own(world: World, at_start: bool) -> None:
    """Copied when an operator asks, or when the member starts; here what a backup has copied is the standby's."""
    members = "0,leader:9002,leader:9003,leader:9004,leader:9005,leader:8010"
    member, asker = made(
        world,
        members=members,
        accept_standby_snapshots=True,
        replication_channel="aeron:udp?endpoint=leader:0",
    )
    position = snapshot(member)
    standby = Backup(world, world.add_node("backup"))
    standby.await_copy(member)
    [copy] = [one for one in standby.recording_log() if one.is_snapshot]
    log = member.context.recording_log
    log.invalidate(next(one for one in log if one.is_snapshot))
    # Archives that are gone, and a snapshot that is not whole, are passed over.
    asker.send(StandbySnapshot, snapshots=recordings("nobody:8010", position, copy.recording_id))
    asker.send(StandbySnapshot, snapshots=recordings("backup:8010", position, copy.recording_id))
    asker.send(StandbySnapshot, snapshots=recordings("other:8010", position, 5, 6)[:1])
    member.until(lambda: len(noted(member)) == 3, "notes")
    if at_start:
        member.restart(keeps_writes=True)
    else:
        member.context.counters.node_toggle.value = NodeToggle.REPLICATE_STANDBY_SNAPSHOT
    member.until(lambda: member.module.snapshot_count == 1 or at_start, "a copy")
    assert member.context.plan.snapshots[0].log_position == position
    member.restart(keeps_writes=True)
    assert member.context.plan.snapshots[0].log_position == position
    assert member.context.counters.node_toggle.value == NodeToggle.NEUTRAL
