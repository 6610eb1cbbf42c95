"""A backup of a member of ours, in a simulated world, and a member that starts from it."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace import Archive, ConfigError
from headrace.archive import ArchiveServer
from headrace.cluster import BackupState, ClusterBackup, ClusterBackupConfig
from headrace.cluster.common.counters import ClusterCounter, find
from headrace.cluster.files.recording_log import RecordingLog
from headrace.cluster.member.states import Toggle
from headrace.testing import Link, Node, World
from headrace.testing.storage import Killed
from tests.cluster.members import SEGMENT_LENGTH, WITHIN_S, Member, Script

MEMBERS = "0,leader:9002,leader:9003,leader:9004,leader:9005,leader:8010"
BACKED_UP = "0,backup:9002,backup:9003,backup:9004,backup:9005,backup:8010"
NS = 1_000_000_000


class Backup:
    """A backup on a node of its own, which can be started again."""

    def __init__(self, world: World, node: Node, **settings: Any) -> None:
        self.world = world
        self.node = node
        self.settings: dict[str, Any] = {
            "consensus_endpoints": "leader:9003",
            "consensus_channel": "aeron:udp?endpoint=backup:9103",
            "cool_down_interval_ns": NS,
        } | settings
        self.errors: list[str] = []
        self.states: list[str] = []
        self.start()

    def start(self) -> None:
        self.archive: ArchiveServer = self.node.run_archive(segment_file_length=SEGMENT_LENGTH)
        self.agent = self.node.host(
            lambda: ClusterBackup(
                driver=self.node,
                is_invoked=True,
                storage=self.node.disk("cluster"),
                chance=random.Random(1),
                on_error=self.errors.append,
                on_event=lambda text: self.states.append(text.split(": ")[1].split(" ")[-1]),
                **self.settings,
            )
        )

    def kill(self, chance: random.Random) -> None:
        """End its processes before a step of one of its disks, and start them again, whenever that comes."""
        disk = self.node.disk(chance.choice(("cluster", "archive")))
        disk.kill_before(chance.randrange(60))
        deadline = self.node.clock.deadline(chance.uniform(0, 3))
        self.until(lambda: not self.node.is_up or deadline.is_over, "a kill")
        while True:
            if self.node.is_up:
                self.node.crash(keeps_writes=True)
            self.node.start()
            with contextlib.suppress(Killed):
                self.start()
                return

    def until(self, condition: Callable[[], object], what: str) -> None:
        self.world.run_until(condition, within_s=WITHIN_S, what=what)

    def await_copy(self, member: Member) -> None:
        self.until(
            lambda: (
                self.agent.state is BackupState.BACKING_UP
                and self.agent.live_position == member.module.commit_position
            ),
            "a copy of all that is committed",
        )

    @property
    def source_id(self) -> int:
        """The member that it copies from."""
        source = self.agent._copying._source
        assert source is not None
        return source.member_id

    def counter(self, kind: ClusterCounter) -> int:
        with self.node.connect() as client:
            found = find(client, kind, 0)
        assert found is not None
        return found.value

    def recording_log(self) -> RecordingLog:
        return RecordingLog(self.node.disk("cluster"), read_only=True)


@pytest.fixture
def world() -> Iterator[World]:
    with World(20261129) as made:
        yield made


@pytest.fixture
def member(world: World) -> Member:
    member = Member(world, world.add_node("leader"), members=MEMBERS)
    member.await_leader()
    return member


@pytest.fixture
def script(world: World, member: Member) -> Script:
    script = Script(member, world.add_node("client"))
    script.connect()
    return script


def snapshot(member: Member) -> None:
    count = member.module.snapshot_count
    member.context.counters.toggle.value = Toggle.SNAPSHOT
    member.until(lambda: member.module.snapshot_count > count, "a snapshot")


def send(script: Script, count: int) -> None:
    for number in range(count):
        script.message(bytes([number % 251]) * 1000)
    member = script.member
    member.until(lambda: member.module.has_committed_all, "the messages")


def started_from(world: World, backup: Backup) -> Member:
    """A member on the disks of a backup, which ends."""
    backup.agent.close()
    backup.archive.close()
    member = Member(world, backup.node, members=BACKED_UP)
    member.await_leader()
    return member


def test_a_member_starts_from_a_backup(world: World, member: Member, script: Script) -> None:
    send(script, 50)
    snapshot(member)
    send(script, 50)
    backup = Backup(world, world.add_node("backup"))
    backup.await_copy(member)
    assert (backup.agent.snapshot_count, backup.errors) == (1, [])
    assert backup.counter(ClusterCounter.BACKUP_STATE) == BackupState.BACKING_UP
    assert backup.counter(ClusterCounter.BACKUP_SNAPSHOTS) == 1
    assert backup.counter(ClusterCounter.BACKUP_ERRORS) == 0
    backup.until(
        lambda: backup.counter(ClusterCounter.BACKUP_LIVE_POSITION) == member.module.commit_position,
        "the position for tools",
    )
    send(script, 50)
    backup.await_copy(member)
    end = member.module.commit_position
    again = started_from(world, backup)
    assert again.context.plan.snapshots[0].log_position < end
    assert again.module.commit_position >= end
    assert again.module.leadership_term_id == 1
    assert len(again.context.applied.sessions) == 1
    assert again.module.error_count == 0


def test_a_snapshot_is_noted_once_the_log_has_come_so_far(
    world: World, member: Member, script: Script
) -> None:
    """A member that started from the copy before would lack the log after the snapshot."""
    send(script, 200)
    snapshot(member)
    node = world.add_node("backup")
    member.node.set_link(node, Link(bytes_per_second=100_000))
    backup = Backup(world, node)
    seen: list[int] = []

    def is_noted() -> bool:
        seen.append(backup.agent.live_position)
        return any(one.is_snapshot for one in backup.recording_log())

    backup.until(is_noted, "the snapshot")
    [noted] = [one.log_position for one in backup.recording_log() if one.is_snapshot]
    assert len(set(seen)) > 2
    assert backup.agent.live_position >= noted
    # The term was there before, so that another attempt would have gone on.
    assert backup.recording_log().last_term is not None


def test_copies_of_an_attempt_that_failed_are_deleted(world: World, member: Member, script: Script) -> None:
    send(script, 10)
    snapshot(member)
    backup = Backup(world, world.add_node("backup"))
    backup.until(lambda: backup.agent.state is BackupState.LIVE_LOG_REPLAY, "the copy of the snapshot")
    member.node.cut(backup.node)
    backup.until(lambda: backup.errors, "the end of the attempt")
    member.node.mend(backup.node)
    backup.await_copy(member)
    backup.agent.close()
    with backup.node.connect() as client, Archive.connect(client) as archive:
        streams = sorted(one.stream_id for one in archive.list_recordings() if one.stop_position > 0)
    assert streams == [100, 107]


def test_a_query_that_is_due_brings_what_is_new(world: World, member: Member, script: Script) -> None:
    backup = Backup(world, world.add_node("backup"))
    backup.await_copy(member)
    for count in (1, 2):
        send(script, 10)
        snapshot(member)
        with backup.node.connect() as client:
            due = find(client, ClusterCounter.BACKUP_NEXT_QUERY, 0)
            assert due is not None
            # As an operator does.
            assert client.counters.compare_and_set(due, 0)
        backup.until(lambda count=count: backup.agent.snapshot_count == count, "a snapshot")
    backup.await_copy(member)
    assert backup.states.count("Live_log_record") == 1
    assert backup.errors == []


def test_a_backup_follows_its_member_into_another_term(world: World, member: Member, script: Script) -> None:
    backup = Backup(world, world.add_node("backup"), interval_ns=NS)
    send(script, 20)
    backup.await_copy(member)
    member.restart(keeps_writes=True)
    backup.until(lambda: backup.errors, "the end of the log")
    backup.await_copy(member)
    assert [one.leadership_term_id for one in backup.recording_log() if one.is_term] == [0, 1]
    again = started_from(world, backup)
    assert again.module.commit_position > member.module.commit_position


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_backup_that_is_killed_again_and_again_has_a_whole_copy_at_last(
    world: World, member: Member, script: Script, seed: int
) -> None:
    """At any step of its disks; a member that starts from it has all."""
    chance = random.Random(seed)
    backup = Backup(world, world.add_node("backup"), interval_ns=NS // 10)
    for _ in range(6):
        send(script, chance.randrange(1, 40))
        if chance.random() < 0.5:
            snapshot(member)
        backup.kill(chance)
    backup.await_copy(member)
    end, snapshots = member.module.commit_position, member.module.snapshot_count
    again = started_from(world, backup)
    assert again.module.commit_position >= end
    assert bool(again.context.plan.snapshots) == bool(snapshots)
    assert again.module.error_count == 0


NAMES = ("alpha", "beta", "gamma")
THREE = "|".join(
    f"{number},{name}:9002,{name}:9003,{name}:9004,{name}:0,{name}:8010" for number, name in enumerate(NAMES)
)


@pytest.mark.parametrize("source_type", ["LEADER", "FOLLOWER", "ANY"])
def test_a_backup_goes_on_with_another_member_when_its_source_dies(world: World, source_type: str) -> None:
    members = [
        Member(
            world,
            world.add_node(name),
            members=THREE,
            member_id=number,
            log_channel="aeron:udp?term-length=128k",
            replication_channel=f"aeron:udp?endpoint={name}:0",
        )
        for number, name in enumerate(NAMES)
    ]

    def leader() -> Member:
        def leads() -> list[Member]:
            return [one for one in members if one.node.is_up and one.module.is_leader]

        world.run_until(leads, within_s=WITHIN_S, what="a leader")
        return leads()[0]

    first = leader()
    backup = Backup(
        world, world.add_node("backup"), source_type=source_type, consensus_endpoints="", members=THREE
    )
    backup.await_copy(first)
    source = members[backup.source_id]
    assert source_type == "ANY" or (source is first) == (source_type == "LEADER")
    snapshot(first)
    source.node.crash(keeps_writes=True)
    backup.until(lambda: backup.errors, "the end of the log")
    second = leader()
    backup.await_copy(second)
    assert backup.agent.snapshot_count == 1
    assert members[backup.source_id] is not source
    again = started_from(world, backup)
    assert again.module.commit_position > second.module.commit_position


def test_settings_name_members_and_an_address() -> None:
    members = "alpha,beta,gamma"
    channel = "aeron:udp?endpoint=delta:9003"
    config = ClusterBackupConfig.of(members=members, consensus_channel=channel)
    assert config.endpoints == ("alpha:9003", "beta:9103", "gamma:9203")
    assert config.own_catchup_endpoint == "delta:0"
    for wrong, name in (
        ({"consensus_channel": channel}, "consensus_endpoints"),
        ({"members": members}, "consensus_channel"),
        ({"members": members, "consensus_channel": channel, "catchup_endpoint": "delta"}, "catchup_endpoint"),
        ({"members": members, "consensus_channel": channel, "source_type": "BEST"}, "source_type"),
    ):
        with pytest.raises(ConfigError, match=name):
            ClusterBackupConfig.of(**wrong)
