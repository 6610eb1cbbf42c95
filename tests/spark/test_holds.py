"""What a streaming query has not committed is kept from retention. Without a JVM, but for the last."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install '.[spark]'")

from headrace import ConfigError
from headrace.archive import Catalog, DirectoryStorage
from headrace.archive.errors import ArchiveFileError
from headrace.archive.files import Hold, hold, holds, release
from headrace.spark._recordings import Selected, select
from tests.spark.recordings import SEGMENT_LENGTH, RecordingFiles
from tests.spark.test_checkpoints import record
from tests.spark.test_offsets import Query, begin_at_segment, purge, recorded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.spark._options import ReadOptions

PAYLOADS = [b"message %4d" % index * 20 for index in range(2000)]


def held(directory: Path) -> dict[int, int]:
    """Where the query's holds are."""
    return {one.recording_id: one.position for one in holds(directory) if one.name == "orders"}


def test_a_query_holds_what_it_has_not_committed(tmp_path: Path) -> None:
    """From its first look on, also what it has planned or read; until a recording was read to where it ended."""
    recorded(tmp_path, PAYLOADS)
    query = Query(tmp_path, retentionHold="orders")
    assert held(tmp_path) == {}
    first = query.latest({}, 2 * SEGMENT_LENGTH)
    assert held(tmp_path) == {0: 0}
    assert query.rows({}, first)
    second = query.latest(first, SEGMENT_LENGTH)
    assert held(tmp_path) == {0: 0}
    query.reader.commit(first)
    assert held(tmp_path) == {0: first["0"]}
    # A new start goes on from its checkpoint, with what is held already.
    query.restarted()
    assert query.latest(second, 32)["0"] >= second["0"]
    assert held(tmp_path) == {0: first["0"]}
    begin_at_segment(tmp_path, 0, first["0"] // SEGMENT_LENGTH)
    assert query.rows(first, second)
    end = query.latest(second)
    query.reader.commit(end)
    assert held(tmp_path) == {}
    recorded(tmp_path, PAYLOADS[:1])
    query.latest(end)
    assert held(tmp_path) == {1: 0}
    purge(tmp_path, 0)


def set_stop(directory: Path, position: int) -> None:
    """Have recording 0 end there; a later position is what an extension makes of it."""
    catalog = Catalog(DirectoryStorage(directory))
    catalog.update(0, stop_position=position)
    catalog.close()


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_recording_that_is_extended_is_held_again(tmp_path: Path, is_committed: bool) -> None:
    """From where the query has read it, whether Spark commits that before or after the query sees more."""
    files = recorded(tmp_path, PAYLOADS)
    query = Query(tmp_path, retentionHold="orders")
    half = query.latest({}, 2 * SEGMENT_LENGTH)
    set_stop(tmp_path, half["0"])
    half = query.latest({})
    assert half["ended"] == [0]
    if is_committed:
        query.reader.commit(half)
        assert held(tmp_path) == {}
        assert query.latest(half) == half
        assert held(tmp_path) == {}
    set_stop(tmp_path, files.position)
    end = query.latest(half)
    if not is_committed:
        query.reader.commit(half)
    assert held(tmp_path) == {0: half["0"]}
    query.reader.commit(end)
    assert held(tmp_path) == {}


def test_a_query_reads_a_new_recording_from_where_it_begins_once_it_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A retention may come between the first look and the hold."""
    recorded(tmp_path, PAYLOADS)
    later: list[RecordingFiles] = []

    def select_and_expire(options: ReadOptions) -> list[Selected]:
        chosen = select(options)
        if not later:
            begin_at_segment(tmp_path, 0, 1)
            later.append(recorded(tmp_path, PAYLOADS[:1]))
        return chosen

    monkeypatch.setattr("headrace.spark._stream.select", select_and_expire)
    query = Query(tmp_path, retentionHold="orders")
    first = query.latest({})
    rows = [payload for _, payload in query.rows({}, first)]
    assert first["began"] == {"0": SEGMENT_LENGTH}
    assert rows == PAYLOADS[-len(rows) :]
    # What began after the first look is not held yet, and waits for the next.
    assert held(tmp_path).keys() == {0}
    assert query.latest(first)["1"] == later[0].position
    assert held(tmp_path).keys() == {0, 1}


@pytest.mark.parametrize("options", [{}, {"startPosition": 5000, "endPosition": 5000}], ids=["all", "none"])
def test_a_recording_of_which_nothing_is_wanted_is_not_held(tmp_path: Path, options: dict[str, int]) -> None:
    """No commit would release it."""
    files = RecordingFiles(tmp_path)
    query = Query(tmp_path, retentionHold="orders", **options)
    for _ in range(2):
        assert query.latest({}) == {}
        assert held(tmp_path) == ({} if options else {0: 0})
    files.stop()
    for _ in range(2):
        assert query.latest({}) == {}
        assert held(tmp_path) == {}


def listings(directory: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[int]]:
    """How often looks and commits of a query over so many recordings list the directory."""
    calls = 0
    names = DirectoryStorage.names

    def counted(storage: DirectoryStorage) -> list[str]:
        nonlocal calls
        calls += 1
        return names(storage)

    def taken() -> int:
        nonlocal calls
        calls, before = 0, calls
        return before

    growing = [RecordingFiles(directory) for _ in range(count)]
    for each in growing:
        each.append([(b"x", 0)])
    query = Query(directory, retentionHold="orders")
    looks, commits, offset = [], [], query.latest({})
    with monkeypatch.context() as patch:
        patch.setattr(DirectoryStorage, "names", counted)
        query.restarted()
        for stop in (False, True, True):
            offset = query.latest(offset)
            looks.append(taken())
            query.reader.commit(offset)
            commits.append(taken())
            for each in growing if stop and not offset.get("ended") else ():
                each.append([(b"y", 0)])
                each.stop()
            taken()
    assert len(offset["ended"]) == count
    assert held(directory) == {}
    return looks, commits


def test_holds_of_many_recordings_cost_no_listing_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a directory that may have a hundred thousand files."""
    few, many = (listings(tmp_path / str(count), count, monkeypatch) for count in (2, 100))
    assert many == few
    assert max(many[1]) == 0


def test_no_commit_brings_back_the_hold_of_a_recording_that_was_purged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark commits a batch late."""
    files = RecordingFiles(tmp_path)
    files.append([(b"one", 0)])
    query = Query(tmp_path, retentionHold="orders")
    first = query.latest({})
    files.append([(b"two", 0)])
    second = query.latest(first)
    files.stop()
    rename = DirectoryStorage.rename

    def purge_and_rename(storage: DirectoryStorage, name: str, new_name: str) -> None:
        purge(tmp_path, 0)
        release(tmp_path, "orders", 0)
        rename(storage, name, new_name)

    # The purge comes while the hold is moved.
    monkeypatch.setattr(DirectoryStorage, "rename", purge_and_rename)
    query.reader.commit(first)
    assert held(tmp_path) == {}
    assert query.latest(second) == {}
    query.reader.commit(second)
    assert held(tmp_path) == {}
    # Nor does a program that is started again.
    query.restarted().commit(second)
    assert held(tmp_path) == {}


def test_holds_of_recordings_that_are_gone_are_released(tmp_path: Path) -> None:
    """Those of the query's name, whatever left them there; a recording that is not there yet may come."""
    for number in range(3):
        recorded(tmp_path, [b"%d" % number])
    for number in (0, 1, 7):
        hold(tmp_path, "orders", number, 0)
    hold(tmp_path, "others", 1, 0)
    purge(tmp_path, 1)
    query = Query(tmp_path, retentionHold="orders", failOnDataLoss="false")
    query.latest({})
    assert held(tmp_path) == {0: 0, 2: 0, 7: 0}
    assert [(one.name, one.recording_id) for one in holds(tmp_path) if one.name == "others"] == [
        ("others", 1)
    ]
    purge(tmp_path, 2)
    query.latest({})
    assert held(tmp_path) == {0: 0, 7: 0}


def test_of_several_holds_on_a_recording_the_one_that_holds_most_stays(tmp_path: Path) -> None:
    """As they are if a person copied files."""
    recorded(tmp_path, PAYLOADS)
    for position in (SEGMENT_LENGTH, 0, 2 * SEGMENT_LENGTH):
        Hold("orders", 0, position).put(tmp_path)
    query = Query(tmp_path, retentionHold="orders")
    first = query.latest({}, SEGMENT_LENGTH)
    assert [one.position for one in holds(tmp_path)] == [0]
    query.reader.commit(first)
    assert [one.position for one in holds(tmp_path)] == [first["0"]]


@pytest.mark.parametrize(
    ("one", "rule"),
    [
        (Hold("../x", 0, 0), "name='../x': must be 1 to 100 letters"),
        (Hold("x", -1, 0), "recording_id=-1: must be at least 0"),
        (Hold("x", 0, -1), "position=-1: must be at least 0"),
    ],
)
def test_no_hold_has_a_name_that_leads_elsewhere(tmp_path: Path, one: Hold, rule: str) -> None:
    for use in (one.put, one.end, lambda directory: one.moved(directory, one.position)):
        with pytest.raises(ConfigError) as refusal:
            use(tmp_path)
        assert rule in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


def test_a_recording_that_is_purged_before_it_is_held_leaves_no_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(tmp_path, PAYLOADS[:1])

    def select_and_purge(options: ReadOptions) -> list[Selected]:
        chosen = select(options)
        purge(tmp_path, 0)
        return chosen

    monkeypatch.setattr("headrace.spark._stream.select", select_and_purge)
    assert Query(tmp_path, retentionHold="orders").latest({}) == {}
    assert held(tmp_path) == {}


def test_a_query_without_the_option_holds_nothing(tmp_path: Path) -> None:
    """Retention is as it was."""
    recorded(tmp_path, PAYLOADS)
    query = Query(tmp_path)
    query.reader.commit(query.latest({}))
    assert holds(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"path": "x", "retentionHold": "a/b"}, "retentionHold=a/b: must be 1 to 100 letters"),
        ({"path": "x", "retentionHold": ""}, "retentionHold=: must be 1 to 100 letters"),
        (
            {"controlChannel": "aeron:udp?endpoint=localhost:1", "retentionHold": "a"},
            "is a file in the archive's directory",
        ),
    ],
)
def test_a_hold_that_cannot_be_is_refused(options: dict[str, str], rule: str) -> None:
    """By name, before the query begins."""
    from headrace.spark._options import ReadOptions

    with pytest.raises(ConfigError) as refusal:
        ReadOptions.parse(options)
    assert rule in str(refusal.value)


def test_a_directory_that_refuses_fails_the_query_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not held might be lost without a word."""
    recorded(tmp_path, PAYLOADS[:1])

    def refuse(*given: object, **named: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr(DirectoryStorage, "create", refuse)
    with pytest.raises(ArchiveFileError, match=r"retentionHold=orders: cannot write .* Permission denied"):
        Query(tmp_path, retentionHold="orders").latest({})


def test_spark_has_the_hold_moved(spark: SparkSession, tmp_path: Path) -> None:
    """When it has committed a batch."""
    archive = tmp_path / "archive"
    record(archive, 200)
    hold(archive, "orders", 0, 0)
    source = spark.readStream.format("headrace").option("maxBytesPerTrigger", "10k")
    loaded = source.option("retentionHold", "orders").load(str(archive))
    writer = loaded.writeStream.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / "c"))
    writer.format("parquet").start(str(tmp_path / "output")).awaitTermination()
    assert spark.read.parquet(str(tmp_path / "output")).count() == 200
    assert held(archive).get(0, 1 << 62) > 0
