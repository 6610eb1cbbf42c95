"""Whole batches out of marked delivery, without Spark."""

from __future__ import annotations

import random
import uuid

import pyarrow as pa
import pytest

from headrace.spark import CommittedBatches, EnvelopeError
from headrace.spark._envelope import marker, rows

QUERY = uuid.UUID(int=7)


def messages_of(batch_id: int, partitions: int = 2, count: int = 3) -> list[bytes]:
    messages = []
    for partition in range(partitions):
        payloads = pa.array([f"{batch_id}.{partition}.{row}".encode() for row in range(count)])
        messages += rows(payloads, QUERY, batch_id, partition, 0).to_pylist()
    return messages


def expected(batch_id: int) -> list[bytes]:
    return [f"{batch_id}.{partition}.{row}".encode() for partition in range(2) for row in range(3)]


def taken(messages: list[bytes]) -> list[tuple[int, list[bytes]]]:
    batches = CommittedBatches()
    return [(each.batch_id, each.payloads) for message in messages for each in batches.on_message(message)]


def test_rows_come_out_with_the_marker():
    batches = CommittedBatches()
    for message in messages_of(0):
        assert batches.on_message(message) == []
    (whole,) = batches.on_message(marker(QUERY, 0, [3, 3]))
    assert (whole.query_id, whole.batch_id, whole.payloads) == (QUERY, 0, expected(0))


def test_repeated_tasks_batches_and_markers_add_nothing():
    once = [*messages_of(0), marker(QUERY, 0, [3, 3]), *messages_of(1)]
    again = [*messages_of(0)[:4], *messages_of(1)[2:], marker(QUERY, 0, [3, 3]), marker(QUERY, 1, [3, 3])]
    late = [*messages_of(1), marker(QUERY, 1, [3, 3])]
    assert taken(once + again + late) == [(0, expected(0)), (1, expected(1))]


def test_any_order_within_a_batch_will_do():
    generator = random.Random(5)
    for _ in range(20):
        first, second = [[*messages_of(number), marker(QUERY, number, [3, 3])] for number in (4, 5)]
        generator.shuffle(first)
        generator.shuffle(second)
        assert taken(first + second) == [(4, expected(4)), (5, expected(5))]


def test_a_later_batch_waits_for_the_one_before():
    late = [*messages_of(2), marker(QUERY, 2, [3, 3]), *messages_of(1), marker(QUERY, 1, [3, 3])]
    start = [*messages_of(0), marker(QUERY, 0, [3, 3])]
    assert [batch_id for batch_id, _ in taken(start + late)] == [0, 1, 2]


def test_what_began_before_the_reader_joined_is_left_out():
    joined = [*messages_of(3)[2:], marker(QUERY, 3, [3, 3]), *messages_of(4), marker(QUERY, 4, [3, 3])]
    assert taken(joined) == [(4, expected(4))]


def test_an_empty_batch_is_a_batch():
    assert taken([marker(QUERY, 0, [0]), marker(QUERY, 1, [0, 0])]) == [(0, []), (1, [])]


@pytest.mark.parametrize(
    "message", [b"", b"hello", bytes(48), marker(QUERY, 0, [1, 2])[:-1], marker(QUERY, 0, [1]) + b"12345678"]
)
def test_other_messages_are_refused(message: bytes):
    with pytest.raises(EnvelopeError):
        CommittedBatches().on_message(message)
