"""Reads that followers answer: never from a state older than they say, whatever becomes of members and network."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.cluster import ClientSession, ClusterClient, ClusteredService, FollowerRead
from headrace.cluster.client.follower_reads import PendingFollowerRead
from headrace.testing.cluster import ClusterMember, ClusterWorld

pytestmark = pytest.mark.sim


class Counting(ClusteredService):
    """Counts its messages."""

    def __init__(self) -> None:
        self.count = 0

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        self.count += 1
        if session is not None:
            session.offer(b"%d" % self.count)

    def on_read(self, session: ClientSession, message: bytes) -> bytes:
        return b"%d" % self.count

    def on_start(self, cluster: object, snapshot: Iterator[bytes] | None) -> None:
        for message in snapshot or ():
            self.count = int(message)

    def on_take_snapshot(self) -> Iterator[bytes]:
        yield b"%d" % self.count


class Lab(ClusterWorld):
    """A cluster with a client that counts on, and one that reads."""

    def __init__(self, seed: int | None = 1, member_count: int = 3) -> None:
        super().__init__(Counting, seed=seed, member_count=member_count, state_of=lambda one: one.count)
        self.await_agreement()
        self.writer = self.add_client(lambda _: b"1", rate=50.0)
        pending = ClusterClient.request(
            self.desk.connect(),
            ingress_endpoints=self.ingress_endpoints,
            ingress_channel="aeron:udp",
            egress_channel=f"aeron:udp?endpoint={self.desk.name}:0",
            keep_alive_interval_ns=200_000_000,
            message_timeout_ns=60_000_000_000,
            new_leader_timeout_ns=60_000_000_000,
        )
        found: list[ClusterClient] = []

        def is_open() -> bool:
            one = None if found else pending.poll()
            if one is not None:
                found.append(one)
            return bool(found)

        self.run_until(is_open, what="a session")
        self.reader = found[0]

    def await_answers(self, count: int = 20) -> None:
        wanted = len(self.writer.answers) + count
        self.run_until(lambda: len(self.writer.answers) >= wanted, what=f"{count} answers")

    def ask(
        self, max_staleness_s: float, members: list[ClusterMember] | None = None, within_s: float = 60.0
    ) -> FollowerRead:
        """Read, from these followers if some are named; then from the leader."""
        reader = self.reader
        pending: PendingFollowerRead = reader._follower_read(b"", 0, max_staleness_s, within_s)
        if members is not None:
            pending._to_ask = [one.member_id for one in members]
        found: list[FollowerRead] = []

        def is_there() -> bool:
            reader.poll(lambda _: None)
            answer = pending.step(reader._check_refusal)
            if answer is not None:
                found.append(answer)
            return bool(found)

        try:
            self.run_until(is_there, within_s=within_s + 1, what="a read")
        finally:
            pending.close()
        return found[0]

    def answered_before(self, time_ns: float) -> int:
        """Up to what the writer had been answered."""
        return max((int(one.payload) for one in self.writer.answers if one.received_ns <= time_ns), default=0)


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab() as made:
        yield made


def test_followers_answer_in_turn_and_the_leader_has_no_part_in_it(lab: Lab) -> None:
    lab.await_answers()
    followers = lab.followers
    answers = [lab.ask(10.0, followers[one % 2 :] + followers[: one % 2]) for one in range(4)]
    assert [one.member_id for one in answers] == [followers[one % 2].member_id for one in range(4)]
    assert all(0 <= one.staleness_s <= 10.0 for one in answers)
    counts = [int(one.payload) for one in answers]
    assert counts == sorted(counts)
    assert counts[0] >= 20


def test_an_answer_is_not_older_than_what_the_session_was_answered(lab: Lab) -> None:
    cut, other = lab.followers
    assert lab.ask(60.0, [cut]).member_id == cut.member_id
    lab.world.partition([cut.node], [one.node for one in lab.members if one is not cut])
    lab.await_answers()
    seen = lab.ask(60.0, [other])
    assert cut.is_elected
    # The bound allows what it knows, which is less than the session has seen.
    assert int(lab.ask(60.0, [cut]).payload) >= int(seen.payload)


def test_an_answer_is_dated_back_to_the_question(lab: Lab) -> None:
    follower = lab.followers[0]
    lab.await_answers()
    assert follower.module is not None
    reads = follower.module._clients.follower_reads
    pending = lab.reader._follower_read(b"", 0, 0.3, 5.0)
    pending._to_ask = [follower.member_id]
    lab.run_until(
        lambda: pending.step(lab.reader._check_refusal) or reads._asked_ns >= 0,
        what="a question to the leader",
    )
    # The leader answers at once; the follower reads that later, when it is of no use.
    follower.stall("module", 0.6)
    found: list[FollowerRead] = []

    def is_there() -> bool:
        lab.reader.poll(lambda _: None)
        answer = pending.step(lab.reader._check_refusal)
        found.extend([] if answer is None else [answer])
        return bool(found)

    pending._try = lab.world.nodes["desk"].connect().clock.deadline(5.0)
    lab.run_until(is_there, what="an answer")
    assert found[0].member_id == lab.await_leader().member_id
    assert reads._known.as_of_ns >= 0


def test_a_follower_that_is_cut_off_refuses(lab: Lab) -> None:
    cut = lab.followers[0]
    lab.await_answers()
    assert lab.ask(0.5, [cut]).member_id == cut.member_id
    others = [one.node for one in lab.members if one is not cut]
    # Clients reach it, and it reaches nobody.
    lab.world.partition([cut.node], others)
    lab.run_for(0.5)
    leader = lab.await_leader()
    answer = lab.ask(0.5, [cut])
    assert (answer.member_id, answer.staleness_s) == (leader.member_id, 0.0)
    lab.world.heal()
    lab.run_until(lambda: cut.is_elected, what="the follower")
    assert lab.ask(0.5, [cut]).member_id == cut.member_id


def test_a_follower_of_a_leader_that_has_been_replaced_refuses() -> None:
    with Lab(member_count=5) as lab:
        lab.await_answers()
        old = lab.await_leader()
        follower = lab.followers[0]
        assert lab.ask(0.2, [follower]).member_id == follower.member_id
        majority = [one for one in lab.members if one not in (old, follower)]
        lab.world.partition([old.node, follower.node], [one.node for one in majority])
        # It hears its leader, which does not yet know that it is alone.
        lab.run_for(0.4)
        assert follower.is_elected
        assert old.is_leader
        known = follower.module._clients.follower_reads._known if follower.module else None
        pending = lab.reader._follower_read(b"", 0, 0.2, 5.0)
        pending._to_ask = [follower.member_id]
        refused: list[int] = []
        step = lab.reader._session._on_answer

        lab.reader._session._on_answer = lambda one: (refused.append(one.is_refused), step(one))  # type: ignore
        pending.step(lab.reader._check_refusal)
        lab.run_until(lambda: lab.reader.poll(lambda _: None) or refused, what="a refusal")
        assert refused == [True]
        pending.close()
        assert known == (follower.module._clients.follower_reads._known if follower.module else None)


@pytest.mark.parametrize("seed", range(4))
def test_no_answer_is_older_than_it_says(seed: int) -> None:
    with Lab(seed) as lab:
        chance = lab._chance
        answers: list[FollowerRead] = []
        for _ in range(12):
            lab.run_faults(0.5, ("pause", "partition", "isolation", "one-way cut", "stall", "bad links"))
            lab.world.heal()
            bound_s = chance.choice((0.05, 0.3, 2.0))
            asked_ns = lab.world.now_ns
            members = [chance.choice(lab.members)] if chance.random() < 0.7 else None
            answer = lab.ask(bound_s, members)
            assert answer.staleness_s <= bound_s
            assert int(answer.payload) >= lab.answered_before(asked_ns - answer.staleness_s * 1e9)
            answers.append(answer)
        counts = [int(one.payload) for one in answers]
        assert counts == sorted(counts)
        assert len({one.member_id for one in answers}) > 1
        lab.settle()
