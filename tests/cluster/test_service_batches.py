"""Batches of messages: the same messages as one by one, in the same order, whatever lies between them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from headrace import ConfigError
from headrace.client import Header
from headrace.cluster import (
    ClientSession,
    Cluster,
    ClusteredService,
    ClusterError,
    DeterminismCheck,
    EventCode,
    Role,
)
from headrace.cluster.protocol.header import HEADER_LENGTH, unpack_header
from headrace.cluster.protocol.messages import decode
from headrace.cluster.service.batch_runs import MessageBatch
from headrace.testing import World
from tests.cluster.scripted import EGRESS, Recorder, Rig, ScriptedModule

SELF = -(1 << 63) + 1


@pytest.fixture
def rig() -> Iterator[Rig]:
    with World(13) as world:
        yield Rig(world)


class Batching(Recorder):
    """Notes the messages of batches as those that come one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self.arrays: list[Any] = []
        self.wrong = False

    def on_session_messages(self, batch: MessageBatch) -> None:
        assert self.cluster is not None
        self.sizes.append(len(batch))
        assert self.cluster.log_position == batch.positions[-1]
        assert self.cluster.time == batch.timestamps[-1]
        for index, message in enumerate(batch):
            session_id = int(batch.session_ids[index])
            self.state.append(message)
            self._note(
                "on_session_message",
                session_id if self.cluster.session(session_id) else None,
                int(batch.timestamps[index]),
                message,
                int(batch.positions[index]),
            )
        if len(set(batch.lengths.tolist())) == 1:
            rows = batch.as_array()
            assert [bytes(row) for row in rows] == list(batch)
        if self.wrong:
            raise ValueError("a batch")


def everything(module: ScriptedModule, chance: random.Random) -> int:
    """Entries of all kinds, committed together."""
    for number in range(300):
        kind = chance.random()
        if kind < 0.9:
            size = chance.choice((0, 1, 40, 40, 40, 90, 3000))
            module.message(chance.choice((5, 5, SELF)), chance.randbytes(size), number, commit=False)
        elif kind < 0.95:
            module.timer(number, number)
        else:
            module.open(100 + number, number)
    return module.log.position or 0


@pytest.mark.parametrize("seed", range(5))
def test_batches_have_what_single_messages_have(rig: Rig, seed: int) -> None:
    """The same log is read by two services, one message by message."""
    single, batching = Recorder(), Batching()
    module = rig.module()
    rig.container(single, service_id=0)
    rig.container(batching, service_id=1)
    module.acked_by(2)
    module.join_all(2)
    module.term()
    module.open(5)
    module.commit.value = everything(module, random.Random(seed))
    rig.until(lambda: len(single.state) == len(batching.state) > 200)
    rig.world.run_for(0.1)
    assert single.calls == batching.calls
    assert max(batching.sizes) > 1
    assert rig.errors == []


def test_the_log_waits_within_a_block_while_a_snapshot_is_taken(rig: Rig) -> None:
    service = Batching()
    module, _ = rig.started(service)
    module.term()
    begin = module.commit.value
    for number in range(10):
        module.message(SELF, b"before %d" % number, commit=False)
    position = module.snapshot()
    module.commit.value = begin
    for number in range(10):
        module.message(SELF, b"after %d" % number, commit=False)
    module.commit.value = module.log.position or 0
    rig.until(lambda: "on_take_snapshot" in service.names())
    assert len(service.state) == 10
    assert service.cluster is not None
    assert service.cluster.log_position == position
    assert module.acked().log_position == position
    rig.until(lambda: len(service.state) == 20)


def test_a_batch_whose_handler_raises_ends_the_container(rig: Rig) -> None:
    """A restart makes other batches of the log: to go on would give another state than the replay."""
    service = Batching()
    service.wrong = True
    module, container = rig.started(service)
    module.term()
    position = module.message(SELF, b"one")
    rig.until(lambda: container.failure)
    text = str(container.failure)
    assert (
        f"on_session_messages of service_id=0 raised ValueError('a batch'), at log_position={position}"
        in text
    )
    assert "Catch the exceptions of" in text


def test_messages_of_one_length_are_an_array_without_a_copy(rig: Rig) -> None:
    class Records(Batching):
        def on_session_messages(self, batch: MessageBatch) -> None:
            array = batch.as_array(np.dtype([("key", "<i8"), ("value", "<f8")]))
            assert np.shares_memory(array, batch.memory)
            self.arrays.append(array.tolist())
            with pytest.raises(ValueError, match="messages of 16 to 16 bytes cannot be an array of"):
                batch.as_array(np.dtype("V5"))

    service = Records()
    module, _ = rig.started(service)
    module.term()
    begin = module.commit.value
    for number in range(4):
        module.message(SELF, np.array([(number, 0.5)], "<i8,<f8").tobytes(), commit=False)
    assert module.commit.value == begin
    module.commit.value = module.log.position or 0
    rig.until(lambda: service.arrays)
    assert service.arrays == [[(number, 0.5) for number in range(4)]]
    assert rig.errors == []


class Answering(ClusteredService):
    """Answers each message of a batch with itself."""

    def __init__(self) -> None:
        self.cluster: Cluster | None = None
        self.results: list[int] = []
        self.positions: list[int] = []

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        self.cluster = cluster

    def on_session_messages(self, batch: MessageBatch) -> None:
        assert self.cluster is not None
        self.results.append(self.cluster.answer(batch, list(batch)))
        self.positions += batch.positions.tolist()

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        raise AssertionError("all messages here come in batches")


def test_each_message_of_a_batch_is_answered_to_its_sender_with_its_position(rig: Rig) -> None:
    service = Answering()
    module, _ = rig.started(service)
    got: list[tuple[int, bytes, int, int]] = []

    def take(data: bytes, header: Header) -> None:
        _, session_id, timestamp = unpack_header(data)
        got.append((session_id, data[HEADER_LENGTH:], timestamp, header.reserved_value))

    answers = rig.node.connect().add_subscription(EGRESS, 102)
    module.term()
    module.open(5)
    module.open(6)
    sent = [(5, b"a"), (5, b"bb"), (SELF, b"to itself"), (6, b"ccc"), (77, b"of no session"), (5, b"d" * 900)]
    for timestamp, (session_id, payload) in enumerate(sent):
        module.message(session_id, payload, timestamp, commit=False)
    module.commit.value = module.log.position or 0
    rig.until(lambda: service.results)
    assert service.results == [len(sent)]
    expected = [
        (session_id, payload, timestamp, service.positions[timestamp])
        for timestamp, (session_id, payload) in enumerate(sent)
        if session_id in (5, 6)
    ]
    rig.until(lambda: answers.poll(take, 10) == 0 and len(got) >= len(expected))
    assert got == expected
    assert rig.errors == []


def test_answers_stop_where_there_is_no_room_and_go_on_from_there(rig: Rig) -> None:
    class Waiting(Answering):
        def on_session_messages(self, batch: MessageBatch) -> None:
            assert self.cluster is not None
            rows = np.zeros((len(batch), 1000), np.uint8)
            rows[:, 0] = np.arange(len(batch))
            self.results.append(self.cluster.answer(batch, rows))
            while self.results[-1] < len(batch):
                rig.world.step()
                answers.poll(lambda data, _: got.append(data[HEADER_LENGTH]), 10)
                self.results.append(self.cluster.answer(batch, rows, self.results[-1]))

    got: list[int] = []
    service = Waiting()
    module, _ = rig.started(service)
    answers = rig.node.connect().add_subscription(EGRESS, 102)
    module.term()
    module.open(5)
    for number in range(100):
        module.message(5, b"%d" % number, commit=False)
    module.commit.value = module.log.position or 0
    rig.until(lambda: service.results)
    assert 10 < service.results[0] < 100
    assert service.results[-1] == 100
    rig.until(lambda: answers.poll(lambda data, _: got.append(data[HEADER_LENGTH]), 10) == 0)
    assert got == list(range(100))
    assert rig.errors == []


def test_an_answer_that_is_too_long_for_its_client_is_told_to_the_client_alone(rig: Rig) -> None:
    class Long(Answering):
        def on_session_messages(self, batch: MessageBatch) -> None:
            assert self.cluster is not None
            self.results.append(self.cluster.answer(batch, [b"first", bytes(10_000), b"last"]))

    service = Long()
    module, _ = rig.started(service)
    answers = rig.node.connect().add_subscription(EGRESS, 102)
    module.term()
    module.open(5)
    positions = [module.message(5, b"x", commit=False) for _ in range(3)]
    module.commit.value = positions[-1]
    rig.until(lambda: service.results)
    assert service.results == [3]
    got: list[tuple[bytes, int]] = []
    rig.until(lambda: answers.poll(lambda data, header: got.append((data, header.reserved_value)), 10) == 0)
    assert [position for _, position in got] == positions
    assert (got[0][0][HEADER_LENGTH:], got[2][0][HEADER_LENGTH:]) == (b"first", b"last")
    event = decode(got[1][0])
    assert event.code is EventCode.ERROR
    assert f"log_position={positions[1]}: the answer is too long for the client's stream" in event.detail
    assert rig.errors == []


@pytest.mark.parametrize("role", [Role.LEADER, Role.FOLLOWER])
def test_answers_are_as_many_as_messages_and_a_follower_sends_none(rig: Rig, role: Role) -> None:
    class Wrong(Answering):
        def on_session_messages(self, batch: MessageBatch) -> None:
            assert self.cluster is not None
            with pytest.raises(ConfigError, match=r"first=3: must be from 0 to 2, the length of the batch"):
                self.cluster.answer(batch, list(batch), 3)
            with pytest.raises(ConfigError, match=r"len\(answers\)=1: must be 2, one for each message"):
                self.cluster.answer(batch, [b"one"])
            with pytest.raises(TypeError, match="messages"):
                self.cluster.answer(batch, "text")
            with pytest.raises(ConfigError, match=r"len\(message\)=16777185: must be at most 16777184"):
                self.cluster.answer(batch, [b"", bytes((16 << 20) - 31)])
            self.results.append(self.cluster.answer(batch, list(batch)))

    service = Wrong()
    module = rig.module()
    rig.container(service)
    module.acked_by(1)
    module.recovery.close()
    module.join(role)
    got: list[bytes] = []
    answers = rig.node.connect().add_subscription(EGRESS, 102)
    module.term()
    module.open(5)
    for payload in (b"a", b"b"):
        module.message(5, payload, commit=False)
    module.commit.value = module.log.position or 0
    rig.until(lambda: service.results)
    assert service.results == [2]
    rig.world.run_for(0.1)
    answers.poll(lambda data, _: got.append(data[HEADER_LENGTH:]), 10)
    assert got == ([b"a", b"b"] if role is Role.LEADER else [])
    assert rig.errors == []


def test_messages_come_as_a_record_batch_of_arrow(rig: Rig) -> None:
    class Tables(Batching):
        def on_session_messages(self, batch: MessageBatch) -> None:
            table = batch.to_arrow()
            assert table.schema.names == ["payload", "position", "session_id", "timestamp"]
            assert table["position"].to_pylist() == batch.positions.tolist()
            self.arrays += list(zip(*(table[name].to_pylist() for name in table.schema.names), strict=True))

    service = Tables()
    module, _ = rig.started(service)
    module.term()
    positions = [
        module.message(SELF + number, b"x" * number, 10 + number, commit=False) for number in range(5)
    ]
    module.commit.value = module.log.position or 0
    rig.until(lambda: len(service.arrays) == 5)
    assert service.arrays == [
        (b"x" * number, positions[number], SELF + number, 10 + number) for number in range(5)
    ]
    assert rig.errors == []


def test_a_check_of_batches_is_refused() -> None:
    with pytest.raises(ClusterError, match="Batching has on_session_messages"):
        DeterminismCheck(Batching)
