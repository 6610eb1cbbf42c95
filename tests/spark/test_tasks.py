"""Which ranges of recordings one task reads. Without a JVM, and without files."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install '.[spark]'")

import itertools

from headrace.spark._options import ReadOptions
from headrace.spark._ranges import RangeTask, RecordingRange, tasks_of

MIB = 1 << 20
SEGMENT = 128 * MIB
TERM = 16 * MIB


def part(recording_id: int, start: int, stop: int) -> RecordingRange:
    geometry: dict[str, Any] = {"start_position": 0, "initial_term_id": 1, "term_length": TERM}
    publisher = {"segment_length": SEGMENT, "stream_id": 1001, "session_id": 7}
    return RecordingRange(recording_id, **geometry, **publisher, start=start, stop=stop, limit=stop)


def tasks(*ranges: RecordingRange, **options: str) -> list[RangeTask]:
    given = {"archiveDirectory": "/archive"} if "controlChannel" not in options else {}
    planned = tasks_of(list(ranges), ReadOptions.parse(given | options))
    read: dict[int, list[tuple[int, int]]] = {}
    for task in planned:
        for each in task.ranges:
            read.setdefault(each.recording_id, []).append((each.start, each.stop))
    for each in ranges:
        pieces = read[each.recording_id]
        assert (pieces[0][0], pieces[-1][1]) == (each.start, each.stop)
        assert all(one[1] == next_one[0] for one, next_one in itertools.pairwise(pieces))
    return planned


def test_many_small_recordings_share_a_few_tasks():
    assert len(tasks(*(part(number, 0, MIB // 4) for number in range(201)))) <= 32
    assert len(tasks(*(part(number, 0, 96) for number in range(10_000)))) <= 40


def test_shared_tasks_are_as_many_as_there_is_work_for():
    one_gib = tasks(*(part(number, 0, MIB) for number in range(1024)))
    assert 30 <= len(one_gib) <= 40
    assert len(tasks(part(0, 0, 2 * MIB), part(1, 0, MIB))) == 1
    assert len(tasks(part(0, 0, 3 * MIB), part(1, 0, 3 * MIB))) == 2


def test_shared_tasks_read_no_more_than_they_may():
    small = [part(number, 0, MIB) for number in range(64)]
    assert len(tasks(*small, bytesPerPartition="1m")) == 64
    assert all(len(task.ranges) == 1 for task in tasks(*(part(each, 0, SEGMENT) for each in range(100))))


def test_a_micro_batch_that_crosses_a_segment_is_one_task():
    # Two would have to wait for a second Python worker, which may take seconds to start.
    assert len(tasks(part(0, SEGMENT - 5 * MIB, SEGMENT + 5 * MIB))) == 1


def test_a_long_range_is_cut_at_segments():
    starts = [task.ranges[0].start for task in tasks(part(0, MIB, 3 * SEGMENT + MIB))]
    assert starts[:3] == [MIB, SEGMENT, 2 * SEGMENT]
    halves = tasks(part(0, 0, SEGMENT), bytesPerPartition="64m")
    assert [task.ranges[0].start for task in halves] == [0, SEGMENT // 2]


def test_replays_share_tasks_and_are_no_shorter_than_a_term():
    archive = {"controlChannel": "aeron:udp?endpoint=localhost:8010"}
    assert len(tasks(*(part(number, 0, 96) for number in range(201)), **archive)) <= 34
    pieces = tasks(part(0, 0, 4 * TERM), **archive, bytesPerPartition="1k")
    assert [task.ranges[0].start for task in pieces] == [0, TERM, 2 * TERM, 3 * TERM]


def test_nothing_to_read_is_no_task():
    assert tasks() == []
