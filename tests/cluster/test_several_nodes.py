"""Three nodes in this process, each with a driver of its own: transfers, closes, an emptied directory."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import ConfigError, MediaDriver
from headrace.cluster import ClientSession, ClusterClient, ClusterError, ClusterNode, ServiceError
from headrace.cluster.member.states import Toggle
from tests.cluster.test_node import Total
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_member


class Hashed(Total):
    """Total, with a hash of its state."""

    def state_hash(self) -> int:
        return self.value

    def on_read(self, session: ClientSession, message: bytes) -> bytes:
        if message == b"raise":
            raise ValueError("asked to")
        return b"%d" % self.value


class Lab:
    """Nodes by member id, and a client."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.members = ",".join(free_member() for _ in range(3))
        self.nodes = {number: self.start(number) for number in range(3)}
        self.driver = MediaDriver(directory=directory / "driver")
        self.sum = 0
        self.await_leader()
        self.client = self.connect()

    def connect(self) -> ClusterClient:
        return ClusterClient.connect(
            driver=self.driver, members=self.members, new_leader_timeout_ns=20_000_000_000
        )

    def start(self, number: int, *, is_replacement: bool = False) -> ClusterNode:
        return ClusterNode(
            Hashed(),
            directory=self.directory / str(number),
            members=self.members,
            member_id=number,
            is_replacement=is_replacement,
            log_channel="aeron:udp?term-length=64k",
        )

    def command(
        self, number: int, name: str, *words: object, status: int = 0
    ) -> subprocess.CompletedProcess[str]:
        """A command of an operator on the directory of a node."""
        line = [sys.executable, "-m", "headrace", "cluster", name, str(self.directory / str(number))]
        done = subprocess.run(
            [*line, *map(str, words)], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done

    @property
    def leader_id(self) -> int | None:
        return next((number for number, node in self.nodes.items() if node.module.is_leader), None)

    def await_leader(self, *, other_than: int | None = None) -> int:
        await_true(lambda: self.leader_id not in (None, other_than))
        leader_id = self.leader_id
        assert leader_id is not None
        return leader_id

    def count(self, times: int) -> None:
        """Send that many ones; each answer is the sum so far, so that none is lost or doubled."""
        # What is sent to a leader that is gone may be lost before the client hears of the next one.
        await_true(lambda: not self.client.poll_message() and self.client.leader_member_id == self.leader_id)
        for _ in range(times):
            self.client.offer_blocking(b"1", timeout_s=20)
            self.sum += 1
            answer = self.client.receive(20)
            assert answer is not None
            assert int(answer.payload) == self.sum

    def await_equal(self) -> None:
        def is_equal() -> bool:
            modules = [node.module for node in self.nodes.values()]
            return len({one.commit_position for one in modules}) == 1 and all(
                one._election.is_closed for one in modules
            )

        await_true(is_equal)
        terms = [
            [
                (one.leadership_term_id, one.term_base_log_position)
                for one in node.module._context.recording_log
            ]
            for node in self.nodes.values()
        ]
        assert terms[0] == terms[1] == terms[2]

    def close(self) -> None:
        self.client.close()
        self.driver.close()
        for node in self.nodes.values():
            node.close()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    yield made
    made.close()


def test_three_nodes_survive_what_becomes_of_each(lab: Lab) -> None:
    lab.count(20)
    # An operator wants another leader.
    first = lab.await_leader()
    successor = (first + 1) % 3
    lab.nodes[first].module._context.counters.toggle.value = Toggle.TRANSFER_LEADERSHIP | (successor + 1) << 8
    assert lab.await_leader(other_than=first) == successor
    lab.count(20)
    lab.await_equal()
    # What the leader sends ends a pause of those that follow.
    followers = [node.module for number, node in lab.nodes.items() if number != successor]
    await_true(lambda: all(one._term_log.follower.subscription in one.awaited for one in followers))
    # The leader closes, and hands over before.
    lab.nodes.pop(successor).close()
    lab.await_leader()
    lab.count(20)
    lab.nodes[lab.await_leader()].take_snapshot()
    lab.nodes[successor] = lab.start(successor)
    lab.await_equal()
    # A follower loses its directory.
    follower = next(number for number in lab.nodes if number != lab.leader_id)
    lab.nodes.pop(follower).close()
    lab.count(20)
    shutil.rmtree(lab.directory / str(follower))
    lab.nodes[follower] = lab.start(follower)
    lab.await_equal()
    lab.count(1)


def test_a_machine_with_another_address_and_an_empty_disk_replaces_one(lab: Lab) -> None:
    lab.count(20)
    lab.nodes[lab.await_leader()].take_snapshot()
    lab.count(3)
    lab.await_equal()
    gone = next(number for number in lab.nodes if number != lab.leader_id)
    lab.client.close()
    for node in lab.nodes.values():
        node.close()
    shutil.rmtree(lab.directory / str(gone))
    hosts = lab.members.split(",")
    hosts[gone] = free_member()
    lab.members = ",".join(hosts)
    lab.nodes = {number: lab.start(number, is_replacement=number == gone) for number in range(3)}
    assert lab.await_leader() != gone
    lab.client = lab.connect()
    lab.count(3)
    lab.await_equal()
    # It is a member as any other: without its vote the two that are left would elect nobody.
    first = lab.await_leader()
    lab.nodes.pop(first).close()
    lab.await_leader(other_than=first)
    lab.count(3)


def test_a_member_whose_service_has_parted_from_the_others_stops(lab: Lab) -> None:
    lab.count(3)
    leader_id = lab.await_leader()
    alone = next(number for number in lab.nodes if number != leader_id)
    service = lab.nodes[alone].containers[0]._service
    assert isinstance(service, Total)
    lab.await_equal()
    service.value += 1
    lab.nodes[leader_id].take_snapshot()
    node = lab.nodes.pop(alone)
    await_true(lambda: node.has_ended)
    with pytest.raises(ClusterError, match="has another state than those of a majority, at log_position="):
        node.wait()
    node.close()
    lab.count(3)


def test_a_read_has_what_was_answered_before_it_and_enters_no_log(lab: Lab) -> None:
    lab.count(3)
    before = lab.nodes[lab.await_leader()].module.commit_position
    assert lab.client.read(b"") == b"3"
    with pytest.raises(ServiceError, match="on_read raised ValueError"):
        lab.client.read(b"raise")
    lab.await_equal()
    assert lab.nodes[lab.await_leader()].module.commit_position == before
    first = lab.await_leader()
    lab.nodes.pop(first).close()
    assert lab.client.read(b"", timeout_s=20) == b"3"
    lab.count(1)
    assert lab.client.read(b"") == b"4"


def test_a_command_replaces_a_member_by_a_machine_at_another_address(lab: Lab) -> None:
    lab.count(3)
    lab.await_equal()
    first = lab.await_leader()
    gone = (first + 1) % 3
    place = free_member()
    refused = lab.command(first, "replace-member", gone, place, status=1)
    assert f"Member [{first}]: member {gone} is heard from 127.0.0.1:" in refused.stderr
    lab.nodes.pop(gone).close()
    await_true(lambda: gone not in lab.nodes[first].module._election.active_ids)
    done = lab.command(first, "replace-member", gone, place)
    assert done.stdout.startswith(f"Member [{first}]: member {gone} is at {place.partition(':')[0]}:")
    members = lab.members.split(",")
    members[gone] = place
    lab.members = ",".join(members)
    shutil.rmtree(lab.directory / str(gone))
    lab.nodes[gone] = lab.start(gone, is_replacement=True)
    await_true(lambda: lab.nodes[gone].module._election.is_closed)
    lab.client.close()
    lab.client = lab.connect()
    # The new one is needed, and makes a majority with the leader.
    lab.nodes.pop(3 - first - gone).close()
    lab.count(3)


def test_a_command_has_a_follower_take_a_snapshot_for_all(lab: Lab) -> None:
    lab.count(3)
    lab.await_equal()
    leader_id = lab.await_leader()
    done = lab.command(leader_id, "snapshot", "--on-follower")
    follower_id = max({0, 1, 2} - {leader_id})
    assert done.stdout.startswith(f"Member [{leader_id}]: member {follower_id} has taken a snapshot")
    await_true(lambda: all(node.module.snapshot_count == 1 for node in lab.nodes.values()))
    plans = [node.module._context.plan for node in lab.nodes.values()]
    assert len({plan.snapshots[0].log_position for plan in plans if plan is not None}) == 1


def test_followers_answer_reads_and_say_how_old_they_are(lab: Lab) -> None:
    lab.count(3)
    leader_id = lab.await_leader()
    lab.await_equal()
    answers = [lab.client.read_from_follower(b"", max_staleness_s=20) for _ in range(4)]
    assert {one.payload for one in answers} == {b"3"}
    assert {one.member_id for one in answers} == {0, 1, 2} - {leader_id}
    assert all(0 < one.staleness_s <= 20 for one in answers)
    # No follower knows anything so young.
    first = lab.client.read_from_follower(b"", max_staleness_s=1e-9)
    assert (first.payload, first.member_id, first.staleness_s) == (b"3", leader_id, 0.0)
    with pytest.raises(ServiceError, match="on_read raised ValueError"):
        lab.client.read_from_follower(b"raise", max_staleness_s=20)
    with pytest.raises(ConfigError, match="max_staleness_s"):
        lab.client.read_from_follower(b"", max_staleness_s=0)


def test_a_cluster_of_one_answers_reads(tmp_path: Path) -> None:
    with ClusterNode(Hashed(), directory=tmp_path) as node, node.connect() as cluster:
        cluster.offer_blocking(b"7")
        assert cluster.receive().payload == b"7"
        assert cluster.read(b"") == b"7"
        assert cluster.read_from_follower(b"", max_staleness_s=1.0).payload == b"7"
