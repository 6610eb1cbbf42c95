"""What a streaming query plans when recordings and options change under it. Without a JVM."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install '.[spark]'")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

import headrace
from headrace.archive import Catalog, DirectoryStorage
from headrace.archive.errors import ArchiveFileError
from headrace.archive.files import holds
from headrace.archive.files.catalog import STATE_DELETED, STATE_INVALID, STATE_VALID
from headrace.positions import NULL_VALUE
from headrace.spark import _recordings
from headrace.spark._offset import Offset, positions
from headrace.spark._options import ReadOptions
from headrace.spark._stream import RecordingStreamReader
from tests.spark.recordings import SEGMENT_LENGTH, RecordingFiles

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMA = StructType([StructField("recording_id", LongType()), StructField("payload", BinaryType())])


class Query:
    """A query over an archive's directory, as far as Spark asks the source; it may be started again at any offset."""

    def __init__(self, directory: Path, **options: object) -> None:
        self._directory, self._options = directory, options
        self.reader = self.restarted()

    def restarted(self, **options: object) -> RecordingStreamReader:
        given = {name: str(value) for name, value in (self._options | options).items()}
        self.reader = RecordingStreamReader(
            ReadOptions.parse({"path": str(self._directory), **given}), SCHEMA
        )
        return self.reader

    def latest(self, start: Offset, max_bytes: int | None = None) -> Offset:
        limit = ReadAllAvailable() if max_bytes is None else ReadMaxBytes(max_bytes)
        latest = self.reader.latestOffset(start, limit)
        # Spark keeps offsets as text, and compares them so.
        read = positions(latest)
        assert [*read] == sorted(read, key=int)
        again: Offset = json.loads(json.dumps(latest))
        return again

    def rows(self, start: Offset, end: Offset) -> list[tuple[int, bytes]]:
        return [
            (row["recording_id"], row["payload"])
            for part in self.reader.partitions(start, end)
            for batch in self.reader.read(part)
            for row in batch.to_pylist()
        ]


def recorded(directory: Path, payloads: Iterable[bytes], **settings: Any) -> RecordingFiles:
    files = RecordingFiles(directory, **settings)
    files.append((payload, 0) for payload in payloads)
    files.stop()
    return files


def set_state(directory: Path, recording_id: int, state: int) -> None:
    catalog = Catalog(DirectoryStorage(directory))
    catalog.set_state(recording_id, state)
    catalog.close()


def purge(directory: Path, recording_id: int) -> None:
    set_state(directory, recording_id, STATE_DELETED)
    for segment in directory.glob(f"{recording_id}-*.rec"):
        segment.unlink()


def begin_at_segment(directory: Path, recording_id: int, number: int) -> int:
    """What ``purge_segments`` does: the recording begins at a later segment."""
    position = number * SEGMENT_LENGTH
    catalog = Catalog(DirectoryStorage(directory))
    catalog.update(recording_id, start_position=position)
    catalog.close()
    for before in range(number):
        (directory / f"{recording_id}-{before * SEGMENT_LENGTH}.rec").unlink()
    return position


def test_a_recording_that_was_read_to_its_end_may_be_purged(tmp_path: Path):
    query = Query(tmp_path)
    one, two = (recorded(tmp_path, [b"%d" % number]) for number in range(2))
    first = query.latest({})
    assert first == {"0": one.position, "1": two.position, "ended": [0, 1], "began": {"0": 0, "1": 0}}
    purge(tmp_path, 0)
    three = recorded(tmp_path, [b"2"])
    for _ in range(2):  # the query that goes on, and the one that is started again from its checkpoint
        second = query.latest(first)
        assert second == {"1": two.position, "2": three.position, "ended": [1, 2], "began": {"2": 0}}
        assert query.rows(first, second) == [(2, b"2")]
        assert query.latest(second) == second
        query.restarted()


def test_a_recording_has_ended_when_it_has_stopped_and_was_read_to_there(tmp_path: Path):
    query = Query(tmp_path)
    files = RecordingFiles(tmp_path)
    files.append((b"x" * 1000, 0) for _ in range(20))
    active = query.latest({})
    assert active == {"0": files.position, "began": {"0": 0}}
    files.stop()
    half = query.latest({}, max_bytes=files.position // 2)
    assert half.keys() == {"0", "began"}
    assert query.latest(half) == {"0": files.position, "ended": [0]}
    assert query.latest(active) == active | {"ended": [0]}
    catalog = Catalog(DirectoryStorage(tmp_path))
    catalog.update(0, stop_position=NULL_VALUE)  # it is extended
    catalog.close()
    assert query.latest(active | {"ended": [0]}) == active


def test_a_batch_whose_recording_was_purged_before_it_ran_again_names_it(tmp_path: Path):
    query = Query(tmp_path)
    files = recorded(tmp_path, [b"0"])
    end = query.latest({})
    purge(tmp_path, 0)
    with pytest.raises(
        ArchiveFileError, match=f"recording_id=0 was to be read .* to position={files.position}"
    ):
        query.rows({}, end)
    query.restarted(failOnDataLoss="false")
    assert query.rows({}, end) == []


def test_messages_purged_before_they_were_read_fail_the_query_by_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    query = Query(tmp_path)
    files = recorded(tmp_path, [b"x" * 1000] * 20)
    half = query.latest({}, max_bytes=files.position // 2)
    purge(tmp_path, 0)
    later = recorded(tmp_path, [b"1"])
    expected = f"recording_id=0 was deleted, and was read up to position={half['0']} of {files.position} only"
    with pytest.raises(ArchiveFileError, match=f"{expected}; .* set the option failOnDataLoss to false"):
        query.latest(half)
    query.restarted(failOnDataLoss="false")
    with caplog.at_level(logging.WARNING):
        end = query.latest(half)
        assert end == {"1": later.position, "ended": [1], "began": {"1": 0}}
        assert query.rows(half, end) == [(1, b"1")]
    assert [expected in text for text in caplog.messages] == [True]


@pytest.mark.parametrize("is_read", [True, False])
def test_segments_may_be_purged_up_to_where_the_query_is(tmp_path: Path, is_read: bool):
    query = Query(tmp_path)
    payloads = [b"%d " % number * 200 for number in range(300)]
    files = recorded(tmp_path, payloads)
    start = query.latest({}, max_bytes=2 * SEGMENT_LENGTH if is_read else SEGMENT_LENGTH // 2)
    read = query.rows({}, start)
    begin = begin_at_segment(tmp_path, 0, 1)
    if is_read:
        end = query.latest(start)
        assert [payload for _, payload in read + query.rows(start, end)] == payloads
        return
    with pytest.raises(
        ArchiveFileError, match=f"position={start['0']}, but begins at start_position={begin} now"
    ):
        query.latest(start)
    query.restarted(failOnDataLoss="false")
    end = query.latest(start)
    assert end == {"0": files.position, "ended": [0]}
    rest = [payload for _, payload in query.rows(start, end)]
    assert rest == payloads[-len(rest) :]
    assert len(rest) > 100


@pytest.mark.parametrize("number", [1, 3, 4])
def test_a_planned_first_batch_of_which_segments_were_purged_fails_by_name(
    tmp_path: Path, number: int
) -> None:
    """The plan says where it began; what is gone of it, be it all, is no smaller batch."""
    payloads = [b"message %4d" % index * 20 for index in range(2500)]
    query = Query(tmp_path)
    recorded(tmp_path, payloads)
    first = query.latest({}, 3 * SEGMENT_LENGTH)
    begin = begin_at_segment(tmp_path, 0, number)
    query.restarted()
    with pytest.raises(
        ArchiveFileError, match=f"recording_id=0 was to be read on from position=0, but begins at .*={begin} "
    ):
        query.rows({}, first)
    query.restarted(failOnDataLoss="false")
    rest = [payload for _, payload in query.rows({}, first)]
    after = [payload for _, payload in query.rows(first, query.latest(first))]
    assert after == payloads[-len(after) :]
    assert rest == payloads[len(payloads) - len(after) - len(rest) : len(payloads) - len(after)]
    assert bool(rest) == (begin < first["0"])


def test_a_batch_planned_from_a_later_beginning_stays_as_it_was_planned(tmp_path: Path) -> None:
    """Where the recording began, or what startPosition said then, is in the offset, and nothing is lost of it."""
    payloads = [b"message %4d" % index * 20 for index in range(1000)]
    recorded(tmp_path, payloads)
    begin = begin_at_segment(tmp_path, 0, 1)
    query = Query(tmp_path)
    first = query.latest({})
    assert first["began"] == {"0": begin}
    rows = query.rows({}, first)
    assert [payload for _, payload in rows] == payloads[-len(rows) :]
    query.restarted(startPosition=begin + 1000)
    later = query.latest({})
    assert later["began"] == {"0": begin + 1000}
    fewer = query.rows({}, later)
    assert fewer == rows[-len(fewer) :] != rows
    query.restarted()
    assert query.rows({}, later) == fewer


def test_a_planned_batch_of_an_older_version_fails_if_all_of_it_was_purged(tmp_path: Path) -> None:
    """Its offsets do not say where a recording began, so the rest of a batch is taken for the whole."""
    recorded(tmp_path, [b"message %4d" % index * 20 for index in range(1000)])
    query = Query(tmp_path)
    first = {"0": query.latest({}, SEGMENT_LENGTH // 2)["0"]}
    assert len(query.rows({}, first)) > 100
    begin = begin_at_segment(tmp_path, 0, 1)
    query.restarted()
    with pytest.raises(
        ArchiveFileError, match=f"from its start to position={first['0']}, but begins at .*={begin} "
    ):
        query.rows({}, first)
    query.restarted(failOnDataLoss="false")
    assert query.rows({}, first) == []


@pytest.mark.parametrize("is_active", [True, False])
@pytest.mark.parametrize("change", ["purged", "begins later", "nothing"])
def test_a_recording_that_was_read_to_end_position_has_ended(
    tmp_path: Path, is_active: bool, change: str
) -> None:
    """Nothing that the query wants of it can go any more."""
    payloads = [b"message %4d" % index * 20 for index in range(2000)]
    files = RecordingFiles(tmp_path) if is_active else recorded(tmp_path, payloads)
    if is_active:
        files.append((payload, 0) for payload in payloads)
    query = Query(tmp_path, endPosition=5000, retentionHold="orders")
    first = query.latest({})
    assert first == {"0": first["0"], "ended": [0], "began": {"0": 0}}
    assert 5000 <= first["0"] < 6000
    query.reader.commit(first)
    assert holds(tmp_path) == []
    if change == "begins later":
        begin_at_segment(tmp_path, 0, 1)
    elif change == "purged":
        if is_active:
            files.stop()
        purge(tmp_path, 0)
    for _ in range(2):
        assert query.latest(first) == ({} if change == "purged" else first)
        assert holds(tmp_path) == []
        query.restarted()
    # What another endPosition asks for is missing.
    query.restarted(endPosition=50_000)
    if change == "nothing":
        assert query.latest(first)["0"] > first["0"]
    else:
        with pytest.raises(ArchiveFileError, match="recording_id=0 was"):
            query.latest(first)


def test_a_truncation_before_end_position_is_told(tmp_path: Path) -> None:
    """The recording may go on with other messages that the query wants."""
    recorded(tmp_path, [b"message %4d" % index * 20 for index in range(100)])
    query = Query(tmp_path, endPosition=5000)
    first = query.latest({})
    for stop, is_told in ((5120, False), (2592, True)):
        catalog = Catalog(DirectoryStorage(tmp_path))
        catalog.update(0, stop_position=stop)
        catalog.close()
        if is_told:
            with pytest.raises(ArchiveFileError, match=f"ends at position={stop} now: it was truncated"):
                query.latest(first)
        else:
            assert query.latest(first) == first


def stopped_within_a_message(directory: Path, whole: int) -> RecordingFiles:
    files = RecordingFiles(directory)
    files.append((b"x", 0) for _ in range(whole))
    files.append_fragment(b"y" * 100, 0x80)
    return files


@pytest.mark.parametrize("whole", [0, 1])
@pytest.mark.parametrize("options", [{}, {"endPosition": 100}], ids=["all", "endPosition"])
def test_a_recording_that_stopped_within_a_message_has_ended(
    tmp_path: Path, whole: int, options: dict[str, object]
) -> None:
    """The rest of that message does not come, so nothing of the recording is missing when it is purged."""
    query = Query(tmp_path, retentionHold="orders", **options)
    files = stopped_within_a_message(tmp_path, whole)
    running = query.latest({})
    assert running == ({"0": 64, "began": {"0": 0}} if whole else {})
    assert len(holds(tmp_path)) == 1
    files.stop()
    at = 64 * whole
    for start in ({}, running):
        first = query.latest(start)
        assert first == {"0": at, "ended": [0], "began": {"0": 0}, "unfinished": {"0": files.position}}
        assert len(query.rows({}, first)) == whole
        assert query.latest(first) == first
    query.reader.commit(first)
    assert holds(tmp_path) == []
    query.restarted()
    query.reader.prepareForTriggerAvailableNow()
    assert query.latest(first) == first
    assert holds(tmp_path) == []
    set_state(tmp_path, 0, STATE_INVALID)
    assert query.latest(first) == first
    purge(tmp_path, 0)
    assert query.latest(first) == {}


def test_a_message_that_an_extension_finishes_is_read(tmp_path: Path) -> None:
    """So the query stays at its beginning; and what an extension adds is missing if it is purged."""
    files = stopped_within_a_message(tmp_path, 1)
    query = Query(tmp_path, retentionHold="orders")
    stop = files.position
    files.append_fragment(b"z", 0x40)
    files.append([(b"next", 0)])
    files.stop()
    end = files.position
    catalog = Catalog(DirectoryStorage(tmp_path))
    catalog.update(0, stop_position=stop)
    catalog.close()
    first = query.latest({})
    assert first["unfinished"] == {"0": stop}
    query.reader.commit(first)
    catalog = Catalog(DirectoryStorage(tmp_path))
    catalog.update(0, stop_position=end)
    catalog.close()
    second = query.latest(first)
    assert second == {"0": end, "ended": [0]}
    assert [one.position for one in holds(tmp_path)] == [64]
    assert query.rows(first, second) == [(0, b"y" * 100 + b"z"), (0, b"next")]
    purge(tmp_path, 0)
    with pytest.raises(ArchiveFileError, match=f"was read up to position=64 of {end} only"):
        query.latest(first)


def test_a_query_that_finds_nothing_new_stays_at_its_offset(tmp_path: Path) -> None:
    """Another text would be a batch to Spark."""
    query = Query(tmp_path)
    files = RecordingFiles(tmp_path)
    files.append([(b"one", 0)])
    first = query.latest({})
    assert query.latest(first) == first
    files.append([(b"two", 0)])
    assert query.latest(first) == {"0": files.position}


def test_a_truncated_recording_goes_on_where_it_was_cut_if_losses_are_accepted(tmp_path: Path):
    query = Query(tmp_path)
    files = RecordingFiles(tmp_path)
    one, two = files.append([(b"one", 0), (b"two", 0)])
    files.stop()
    start = query.latest({})
    catalog = Catalog(DirectoryStorage(tmp_path))
    catalog.update(0, stop_position=one)
    catalog.close()
    with pytest.raises(ArchiveFileError, match=f"read up to position={two}, but ends at position={one} now"):
        query.latest(start)
    with pytest.raises(ArchiveFileError, match=f"to position={two}, but ends at position={one} now"):
        query.rows({}, start)
    query.restarted(failOnDataLoss="false")
    assert query.rows({}, start) == [(0, b"one")]
    cut = query.latest(start)
    assert cut == {"0": one, "ended": [0]}
    assert query.rows(start, cut) == []
    assert query.latest(cut) == cut


def test_a_recording_that_is_invalid_for_a_while_is_not_read_twice(tmp_path: Path):
    query = Query(tmp_path)
    recorded(tmp_path, [b"0"])
    start = query.latest({})
    set_state(tmp_path, 0, STATE_INVALID)
    assert query.latest(start) == start
    set_state(tmp_path, 0, STATE_VALID)
    assert query.latest(start) == start


def test_a_recording_that_the_options_name_may_be_purged_when_it_was_read(tmp_path: Path):
    query = Query(tmp_path, recordings="0,1")
    for number in range(2):
        recorded(tmp_path, [b"%d" % number])
    start = query.latest({})
    purge(tmp_path, 0)
    query.reader.prepareForTriggerAvailableNow()
    assert query.reader.reportLatestOffset().keys() == {"1"}
    assert query.latest(start) == start
    assert query.restarted().latestOffset(start, ReadAllAvailable()) == start


def test_a_pattern_that_matches_nothing_yet_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    recorded(tmp_path, [b"0"])
    query = Query(tmp_path, channel="orders")
    with caplog.at_level(logging.WARNING):
        assert query.latest({}) == query.latest({}) == {}
    (text,) = caplog.messages
    assert text.startswith(
        f"channel=orders: no recording in {tmp_path} has it; known are aeron:ipc; the query waits"
    )
    files = recorded(tmp_path, [b"1"], channel="aeron:udp?endpoint=orders:1")
    assert query.latest({}) == {"1": files.position, "ended": [1], "began": {"1": 0}}


def test_a_recording_whose_end_is_unknown_is_left_out_of_a_run_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    # As it is for ten seconds after an archive was killed.
    monkeypatch.setattr(_recordings, "_live_ends", lambda *_: {})
    RecordingFiles(tmp_path).append([(b"0", 0)])
    query = Query(tmp_path)
    with caplog.at_level(logging.WARNING):
        query.reader.prepareForTriggerAvailableNow()
        assert query.latest({}) == {}
    (text,) = caplog.messages
    assert text.startswith("recording_id=0 is active in the catalog, but no archive shows how far it is")


CHANGES = [
    {"bytesPerPartition": "64"},
    {"bytesPerPartition": "1g"},
    {"maxBytesPerTrigger": "1k"},
    {"streamId": 7},
    {"channel": "nowhere"},
    {"recordings": "1"},
    {"startPosition": 4096},
    {"endPosition": 4096},
]


@pytest.mark.parametrize("changes", CHANGES, ids=lambda changes: next(iter(changes)))
def test_a_batch_is_the_same_after_a_restart_with_other_options(tmp_path: Path, changes: dict[str, object]):
    query = Query(tmp_path, bytesPerPartition="8k")
    for number in range(2):
        recorded(tmp_path, [b"%d %d " % (number, index) * 30 for index in range(100)])
    start = query.latest({}, max_bytes=9000)
    end = query.latest(start, max_bytes=15_000)
    rows = query.rows(start, end)
    assert {recording_id for recording_id, _ in rows} == {0, 1}
    query.restarted(**changes)
    assert query.rows(start, end) == rows
    assert positions(query.latest(end)).keys() == end.keys()


@pytest.mark.parametrize(
    ("offset", "rule"),
    [
        ({"1": 64, "ended": None}, "ended=null must be a list of recording ids"),
        ({"ended": [1, "two"]}, r'ended=\[1, "two"\] must be a list of recording ids'),
        ({"ended": [True]}, r"ended=\[true\] must be a list of recording ids"),
        ({"1": None}, "the position of recording 1, null, must be an integer of at least 0"),
        ({"1": -1}, "the position of recording 1, -1, must be an integer of at least 0"),
        ({"one": 64}, 'the key "one" must be a recording id, or "ended"'),
        ({"1": 64, "began": [1]}, r"began=\[1\] must be an object of recording ids and positions"),
        ({"began": {"1": -1}}, r'began=\{"1": -1\} must be an object of recording ids and positions'),
        ({"unfinished": {"x": 1}}, r'unfinished=\{"x": 1\} must be an object of recording ids and positions'),
        ([64], "is not a JSON object"),
    ],
)
def test_an_offset_that_this_source_has_not_written_is_refused(
    tmp_path: Path, offset: Any, rule: str
) -> None:
    """With the value and the rule; a checkpoint is a file that other programs can write."""
    recorded(tmp_path, [b"one"])
    query = Query(tmp_path)
    for use in (query.reader.latestOffset, lambda start, _: query.reader.partitions(start, {})):
        with pytest.raises(headrace.HeadraceError, match=rule):
            use(offset, ReadAllAvailable())
