"""Whole batches out of marked delivery, without Spark."""

from __future__ import annotations

import logging
import random
import uuid
from typing import Any

import pyarrow as pa
import pytest

import headrace
from headrace.spark import CommittedBatches, EnvelopeError
from headrace.spark._envelope import Attempt, marker_message, row_messages

QUERY = uuid.UUID(int=7)


def marker(query: uuid.UUID, batch_id: int, counts: list[int], run: int = 0) -> bytes:
    """The marker of a batch whose tasks were all taken from one run of it."""
    attempts = [Attempt(100 * run + partition, count) for partition, count in enumerate(counts) if count]
    return marker_message(query, batch_id, attempts)


def published(batch_id: int, partitions: list[list[bytes]], run: int = 0) -> list[bytes]:
    """What the tasks of one run of a batch publish."""
    return [
        message
        for partition, payloads in enumerate(partitions)
        for message in row_messages(
            pa.array(payloads, pa.binary()), QUERY, batch_id, 100 * run + partition, 0
        ).to_pylist()
    ]


def messages_of(batch_id: int, partitions: int = 2, count: int = 3) -> list[bytes]:
    texts = [
        [f"{batch_id}.{partition}.{row}".encode() for row in range(count)] for partition in range(partitions)
    ]
    return published(batch_id, texts)


def expected(batch_id: int) -> list[bytes]:
    return [f"{batch_id}.{partition}.{row}".encode() for partition in range(2) for row in range(3)]


def taken(
    messages: list[bytes], after: int | dict[uuid.UUID, int] | None = None
) -> list[tuple[int, list[bytes]]]:
    batches = CommittedBatches(after)
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


def two_publications() -> list[bytes]:
    """Two batches whose rows and markers come over three streams: a late row of the first is the last message."""
    (first, late), second = messages_of(0, 1, 2), messages_of(1, 1, 1)
    return [first, marker(QUERY, 0, [2]), *second, marker(QUERY, 1, [1]), late]


@pytest.mark.parametrize("after", [-1, {QUERY: -1}])
def test_a_reader_that_knows_the_first_batch_skips_none(after: int | dict[uuid.UUID, int]) -> None:
    assert taken(two_publications(), after) == [(0, [b"0.0.0", b"0.0.1"]), (1, [b"1.0.0"])]


def test_a_reader_goes_on_after_the_batch_that_it_kept() -> None:
    messages = [
        message for number in (0, 1, 2) for message in (*messages_of(number), marker(QUERY, number, [3, 3]))
    ]
    assert [number for number, _ in taken(messages, 0)] == [1, 2]
    assert [number for number, _ in taken(messages, {QUERY: 1})] == [2]
    # Of a query that it does not know, the first whole batch decides.
    assert [number for number, _ in taken(messages, {uuid.UUID(int=8): 1})] == [0, 1, 2]


def test_batches_that_are_left_out_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """A reader that is not told where to begin takes them for those that began before it joined."""
    with caplog.at_level(logging.WARNING):
        assert taken(two_publications()) == [(1, [b"1.0.0"])]
    (text,) = caplog.messages
    assert text.startswith(
        f"query_id={QUERY}: batch 1 is whole first, so batch 0, of which 1 rows came, is left out"
    )


def row(attempt: int, number: int, payload: bytes = b"x", batch_id: int = 0) -> bytes:
    (message,) = row_messages(pa.array([payload]), QUERY, batch_id, attempt, number).to_pylist()
    return message


STRAYS = [
    ([row(1, 0), row(1, 2), marker_message(QUERY, 0, [Attempt(1, 2)])], "row 2 of attempt 1 .* has 2 rows"),
    ([marker_message(QUERY, 0, [Attempt(1, 2)]), row(1, 0), row(1, 2)], "row 2 of attempt 1 .* has 2 rows"),
    ([row(1, -1)], "row -1 of attempt 1"),
    (
        [
            marker_message(QUERY, 0, [Attempt(1, 3)]),
            row(1, 0),
            row(1, 2),
            marker_message(QUERY, 0, [Attempt(1, 2)]),
        ],
        "attempt 1 has 3 rows by one marker of batch 0, and 2 by another",
    ),
]


@pytest.mark.parametrize(("messages", "rule"), STRAYS)
def test_a_row_that_its_attempt_cannot_have_is_refused(messages: list[bytes], rule: str) -> None:
    """It comes from another program, and takes no row's place: what is good goes on."""
    batches = CommittedBatches(-1)
    *before, stray = messages
    for message in before:
        assert batches.on_message(message) == []
    with pytest.raises(EnvelopeError, match=rule):
        batches.on_message(stray)
    rest = [row(1, 1), row(1, 0), marker_message(QUERY, 0, [Attempt(1, 2)])]
    if "3 rows" in rule:
        rest = [row(1, 1)]
    whole = [each for message in rest for each in batches.on_message(message)]
    assert [(each.batch_id, each.payloads) for each in whole] == [
        (0, [b"x"] * (3 if "3 rows" in rule else 2))
    ]


def test_a_marker_that_names_an_attempt_twice_is_refused() -> None:
    """Its rows would come out twice."""
    batches = CommittedBatches(-1)
    batches.on_message(row(1, 0))
    with pytest.raises(EnvelopeError, match="a marker names attempt 1 twice"):
        batches.on_message(marker_message(QUERY, 0, [Attempt(1, 1), Attempt(1, 1)]))


def test_a_query_that_failed_can_be_forgotten() -> None:
    """Each write of a frame is a query of its own, whose rows wait for good if it fails."""
    batches = CommittedBatches()
    failed, done = uuid.UUID(int=1), uuid.UUID(int=2)
    for number in range(3):
        (message,) = row_messages(pa.array([b"x"]), failed, 0, 5, number).to_pylist()
        batches.on_message(message)
    (message,) = row_messages(pa.array([b"y"]), done, 0, 6, 0).to_pylist()
    batches.on_message(message)
    (whole,) = batches.on_message(marker_message(done, 0, [Attempt(6, 1)]))
    assert whole.payloads == [b"y"]
    assert batches.waiting() == {failed: 3, done: 0}
    batches.forget(failed)
    batches.forget(done)
    batches.forget(uuid.UUID(int=3))
    assert batches.waiting() == {}


@pytest.mark.parametrize(
    ("after", "error", "rule"),
    [
        (-2, headrace.ConfigError, "after=-2: must be at least -1"),
        ({QUERY: -2}, headrace.ConfigError, "after=-2: must be at least -1"),
    ],
)
def test_a_batch_to_begin_after_that_cannot_be_is_refused(
    after: Any, error: type[Exception], rule: str
) -> None:
    with pytest.raises(error, match=rule):
        CommittedBatches(after)


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_a_batch_that_is_cut_differently_when_it_runs_again_comes_out_once(size: int):
    data = [b"row %d" % number for number in range(8)]
    again = [data[at : at + size] for at in range(0, len(data), size)]
    # The query died before Spark committed the first run.
    messages = published(0, [data[:4], data[4:]]) + published(0, again, run=1)
    messages.append(marker(QUERY, 0, [len(part) for part in again], run=1))
    assert taken(messages) == [(0, data)]


def test_rows_in_another_order_do_not_mix_with_those_of_the_run_before():
    data = [b"row %d" % number for number in range(8)]
    messages = published(0, [data]) + published(0, [data[::-1]], run=1)
    assert taken([*messages, marker(QUERY, 0, [8], run=1)]) == [(0, data[::-1])]


def test_of_two_markers_the_one_whose_rows_are_there_counts():
    data = [b"row %d" % number for number in range(4)]
    first = [*published(0, [data])[2:], marker(QUERY, 0, [4])]  # this reader joined after two rows
    again = [*published(0, [data[:1], data[1:]], run=1), marker(QUERY, 0, [1, 3], run=1)]
    assert taken(first + again) == [(0, data)]


def test_a_speculative_copy_of_a_task_adds_nothing():
    data = [b"row %d" % number for number in range(4)]
    slow, copy = published(0, [data]), published(0, [data], run=1)
    mixed = [message for pair in zip(slow, copy, strict=True) for message in pair]
    assert taken([*mixed, marker(QUERY, 0, [4], run=1)]) == [(0, data)]


def test_an_empty_batch_is_a_batch():
    assert taken([marker(QUERY, 0, [0]), marker(QUERY, 1, [0, 0])]) == [(0, []), (1, [])]


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"hello",
        bytes(48),
        marker(QUERY, 0, [1, 2])[:-1],
        marker(QUERY, 0, [1]) + b"12345678",
        marker(QUERY, 0, [-1]),
        marker_message(QUERY, 0, [Attempt(1, 0)]),
    ],
)
def test_other_messages_are_refused(message: bytes):
    with pytest.raises(EnvelopeError):
        CommittedBatches().on_message(message)
