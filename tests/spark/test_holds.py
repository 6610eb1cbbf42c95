"""What a streaming query has not committed is kept from retention. Without a JVM, but for the last."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install '.[spark]'")

from headrace import ConfigError
from headrace.archive.errors import ArchiveFileError
from headrace.archive.files import hold, holds
from tests.spark.recordings import SEGMENT_LENGTH
from tests.spark.test_checkpoints import record
from tests.spark.test_offsets import Query, begin_at_segment, purge, recorded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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

    def refuse(*given: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr("headrace.spark._hold.hold", refuse)
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
