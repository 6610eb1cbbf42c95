"""Our backup of the reference's cluster and its backup of ours, and nodes of both that start from the copies."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from benches.processes import JavaPeer, background, fresh_directory

import headrace
from headrace.archive.files import ArchiveDirectory
from headrace.cluster import BackupState, ClusterBackup, ClusterClient, ClusterNode
from headrace.cluster.common.counters import ClusterCounter
from headrace.cluster.common.members import parse_members
from headrace.cnc.cnc_file import CncFile
from headrace.security import UserCredentials
from tests.helpers import TIMEOUT_S, await_true
from tests.interop.counter_service import Counter
from tests.interop.members import EGRESS, Member, connect, running_cluster
from tests.ports import free_endpoint, free_member

pytestmark = [pytest.mark.interop, pytest.mark.slow]

NS = 1_000_000_000
LOCALHOST = "aeron:udp?endpoint=127.0.0.1:0"


@pytest.fixture(scope="module")
def driver() -> Iterator[headrace.MediaDriver]:
    """The driver of our client."""
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver:
        yield driver


@contextmanager
def our_backup(directory: Path, members: list[Member], **settings: Any) -> Iterator[ClusterBackup]:
    """Our backup on a driver and an archive of ours."""
    with (
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=directory / "archive", segment_file_length=1 << 20
        ) as archiving,
        ClusterBackup(
            driver=archiving.driver,
            cluster_directory=directory / "cluster",
            consensus_endpoints=",".join(member.consensus for member in members),
            **{"consensus_channel": LOCALHOST, "cool_down_interval_ns": 100_000_000} | settings,
        ) as backup,
    ):
        yield backup
        assert backup.failure is None


def await_copy(backup: ClusterBackup, member: Member) -> None:
    await_true(lambda: backup.failure or backup.state is BackupState.BACKING_UP)
    await_true(
        lambda: backup.failure or backup.live_position == member.counter(ClusterCounter.COMMIT_POSITION)
    )
    assert backup.failure is None


def echo(cluster: ClusterClient, count: int, length: int = 100) -> None:
    for number in range(count):
        cluster.offer_blocking(bytes([number % 251]) * length, timeout_s=TIMEOUT_S)
        assert cluster.receive(TIMEOUT_S) is not None


def state_of(cluster: ClusterClient, count: int) -> str:
    """The state of the service, once its timers and messages to itself have come."""
    expected = [str(count // 50)] * 2

    def settled() -> str:
        cluster.offer_blocking(b"state?", timeout_s=TIMEOUT_S)
        message = cluster.receive(TIMEOUT_S)
        assert message is not None
        state = message.payload.decode().rpartition(" ")[0]
        return state if state.split(" ")[2:] == expected else ""

    states: list[str] = []
    await_true(lambda: states.append(settled()) or states[-1])
    return states[-1]


def goes_on(cluster: ClusterClient) -> None:
    """Messages are answered, in whatever term."""
    answers: list[bytes] = []

    def has_answers() -> bool:
        cluster.offer(b"more")
        cluster.poll(lambda message: answers.append(message.payload))
        return len(answers) > 100

    await_true(has_answers)


def await_snapshot(member: Member, cluster: ClusterClient, count: int) -> None:
    """Have the cluster take a snapshot, which is its so many-th."""
    cluster.request_snapshot()
    await_true(lambda: sum(line.startswith("SNAPSHOT") for line in member.lines) == count)
    await_true(lambda: member.counter(ClusterCounter.SNAPSHOT_COUNT) == count)


@contextmanager
def our_node(directory: Path) -> Iterator[Counter]:
    """A node of ours on a copy of a backup's directory."""
    copy = directory.with_name(f"{directory.name}-ours")
    shutil.copytree(directory, copy)
    service = Counter()
    with ClusterNode(service, directory=copy) as node:
        node.wait_until_leader(TIMEOUT_S)
        yield service
        assert node.module.error_count == 0


def check_java_starts(java: JavaPeer, driver: headrace.MediaDriver, directory: Path, state: str) -> None:
    """A node of Java's on a copy of a backup's directory comes to a state."""
    copy = directory.with_name(f"{directory.name}-java")
    shutil.copytree(directory, copy / "member-0")
    with running_cluster(java, copy, "j") as [member], connect(driver, [member]) as cluster:
        assert not any(line.startswith("STARTED 0 ") for line in member.lines)
        assert state_of(cluster, int(state.split(" ")[0])) == state


def test_nodes_of_both_start_from_the_backup_of_a_member(
    java: JavaPeer, driver: headrace.MediaDriver, tmp_path: Path
) -> None:
    """With snapshots that were there before the backup and that came later, and what the log has after them."""
    directory = tmp_path / "backup"
    with running_cluster(java, tmp_path, "j") as [member], connect(driver, [member]) as cluster:
        echo(cluster, 250)
        await_snapshot(member, cluster, 1)
        echo(cluster, 50, 5000)
        with our_backup(directory, [member]) as backup:
            await_copy(backup, member)
            assert backup.snapshot_count == 1
            echo(cluster, 100)
            await_snapshot(member, cluster, 2)
            backup.query()
            await_true(lambda: backup.snapshot_count == 2)
            echo(cluster, 50)
            state = state_of(cluster, 450)
            await_copy(backup, member)
            assert backup.error_count == 0
    with our_node(directory) as service:
        assert service.started_with.startswith("400 ")
        await_true(lambda: service.state == state)
    check_java_starts(java, driver, directory, state)


@pytest.mark.parametrize("replay_start", ["BEGINNING", "LATEST_SNAPSHOT"])
def test_a_backup_that_was_stopped_goes_on(
    java: JavaPeer, driver: headrace.MediaDriver, tmp_path: Path, replay_start: str
) -> None:
    directory = tmp_path / "backup"
    settings = {"initial_replay_start": replay_start, "catchup_endpoint": free_endpoint()}
    with running_cluster(java, tmp_path, "j") as [member], connect(driver, [member]) as cluster:
        echo(cluster, 100)
        await_snapshot(member, cluster, 1)
        for count in (150, 200):
            echo(cluster, 50)
            with our_backup(directory, [member], **settings) as backup:
                await_copy(backup, member)
                assert backup.snapshot_count == (count == 150)
        state = state_of(cluster, 200)
        with our_backup(directory, [member], **settings) as backup:
            await_copy(backup, member)
    archive = ArchiveDirectory(directory / "archive")
    [log] = [one for one in archive.recordings() if one.stream_id == 100]
    assert (log.start_position > 0) == (replay_start == "LATEST_SNAPSHOT")
    with our_node(directory) as service:
        await_true(lambda: service.state == state)


class Answering:
    def __init__(self, answer: bytes) -> None:
        self.answer = answer

    def encoded_credentials(self) -> bytes:
        return b""

    def on_challenge(self, challenge: bytes) -> bytes:
        assert challenge == b"who is there?"
        return self.answer


@pytest.mark.parametrize(
    ("supplier", "credentials", "is_right"),
    [
        ("Simple", UserCredentials("alice", "secret"), True),
        ("Simple", b"alice:wrong", False),
        ("Asking", Answering(b"it is me"), True),
        ("Asking", Answering(b"it is not"), False),
    ],
)
def test_a_backup_says_who_it_is(
    java: JavaPeer, tmp_path: Path, supplier: str, credentials: object, is_right: bool
) -> None:
    authenticator = f"EchoMember${supplier}"
    errors: list[str] = []
    with (
        running_cluster(java, tmp_path, "e", authenticator_supplier=authenticator) as [member],
        our_backup(tmp_path / "backup", [member], credentials=credentials, on_error=errors.append) as backup,
    ):
        if is_right:
            await_copy(backup, member)
        else:
            rejected = "AUTHENTICATION_REJECTED: session failed authentication"
            await_true(lambda: any(rejected in error for error in errors))
            assert backup.live_position == 0


@pytest.mark.parametrize("source_type", ["LEADER", "FOLLOWER", "ANY"])
def test_a_backup_of_three_members_outlives_the_one_it_copies_from(
    java: JavaPeer, driver: headrace.MediaDriver, tmp_path: Path, source_type: str
) -> None:
    directory = tmp_path / "backup"
    events: list[str] = []
    with (
        running_cluster(java, tmp_path, "jjj") as members,
        connect(driver, members) as cluster,
    ):
        echo(cluster, 100)
        settings = {"source_type": source_type, "on_event": events.append, "interval_ns": NS // 2}
        with our_backup(directory, members, **settings) as backup:
            leader = members[cluster.leader_member_id]
            await_copy(backup, leader)
            [source] = {
                int(event.split("member ")[1].split(" ")[0]) for event in events if "has the log" in event
            }
            assert source_type == "ANY" or (source == leader.number) == (source_type == "LEADER")
            members[source].kill()
            goes_on(cluster)
            await_copy(backup, members[cluster.leader_member_id])


def test_archives_may_answer_through_the_connection_of_the_requests(
    java: JavaPeer, driver: headrace.MediaDriver, tmp_path: Path
) -> None:
    with (
        running_cluster(java, tmp_path, "j", has_archive_responses=True) as [member],
        connect(driver, [member]) as cluster,
        our_backup(tmp_path / "backup", [member]) as backup,
    ):
        echo(cluster, 50)
        await_snapshot(member, cluster, 1)
        await_copy(backup, member)
        backup.query()
        await_true(lambda: backup.snapshot_count == 1)


# --- their backup --------------------------------------------------------------------------------------------------


@contextmanager
def java_backup(java: JavaPeer, directory: Path, consensus: str) -> Iterator[Path]:
    """Java's backup with a driver and an archive of Java's; gives the driver's directory."""
    aeron = fresh_directory("java-backup")
    properties = {
        "aeron.dir": str(aeron),
        "aeron.dir.delete.on.shutdown": "true",
        "aeron.threading.mode": "SHARED",
        "aeron.archive.threading.mode": "SHARED",
        "aeron.archive.dir": str(directory / "archive"),
        "aeron.archive.segment.file.length": "1m",
        "aeron.archive.control.channel": f"aeron:udp?endpoint={free_endpoint()}",
        "aeron.archive.control.response.channel": LOCALHOST,
        "aeron.archive.replication.channel": LOCALHOST,
        "aeron.cluster.dir": str(directory / "cluster"),
        "aeron.cluster.consensus.endpoints": consensus,
        "aeron.cluster.consensus.channel": f"aeron:udp?endpoint={free_endpoint()}",
        "aeron.cluster.backup.catchup.endpoint": free_endpoint(),
        "aeron.cluster.backup.cool.down.interval": "1s",
        "aeron.cluster.backup.interval": "1s",
    }
    command = java.command("io.aeron.cluster.ClusterBackupMediaDriver", properties=properties)
    with background(command, ready=aeron / "cnc.dat"):
        yield aeron


def shown(aeron: Path) -> dict[int, int]:
    """The counters of a backup, by their type; none before it has started."""
    with CncFile.open(aeron) as cnc:
        return {one.type_id: one.value for one in cnc.counters}


def test_nodes_of_both_start_from_their_backup_of_our_member(
    java: JavaPeer, driver: headrace.MediaDriver, tmp_path: Path
) -> None:
    directory, members = tmp_path / "backup", free_member()
    [member] = parse_members(members)
    with ClusterNode(Counter(), directory=tmp_path / "node", members=members) as node:
        node.wait_until_leader(TIMEOUT_S)
        with java_backup(java, directory, member.consensus_endpoint) as aeron:
            with ClusterClient.connect(driver=driver, members=members, egress_channel=EGRESS) as cluster:
                echo(cluster, 200)
                await_true(lambda: shown(aeron).get(ClusterCounter.BACKUP_STATE) == BackupState.BACKING_UP)
                node.take_snapshot(TIMEOUT_S)
                echo(cluster, 50)
                state = state_of(cluster, 250)
            await_true(lambda: shown(aeron)[ClusterCounter.BACKUP_SNAPSHOTS] == 1)
            await_true(
                lambda: shown(aeron)[ClusterCounter.BACKUP_LIVE_POSITION] == node.module.commit_position
            )
            assert shown(aeron)[ClusterCounter.BACKUP_ERRORS] == 0
        assert node.module.error_count == 0
    with our_node(directory) as service:
        assert service.started_with.startswith("200 ")
        await_true(lambda: service.state == state)
    check_java_starts(java, driver, directory, state)
