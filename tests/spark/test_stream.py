"""Recordings as streams: which messages are in which batch, and what fails a query."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.recordings import _HEADER, INITIAL_TERM_ID, RecordingFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.system, pytest.mark.slow]


class Follower:
    """A query over an archive's directory into Parquet files, run to what is there by :meth:`catch_up`."""

    def __init__(self, spark: SparkSession, base: Path, **options: object) -> None:
        self.spark, self.options = spark, options
        self.archive, self.output, self.checkpoint = base / "archive", base / "output", base / "checkpoint"

    def catch_up(self) -> list[dict[str, Any]]:
        reader = self.spark.readStream.format("headrace")
        for name, value in self.options.items():
            reader = reader.option(name, str(value))
        writer = reader.load(str(self.archive)).writeStream.format("parquet").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(self.checkpoint)).start(str(self.output))
        query.awaitTermination()
        return [each for each in query.recentProgress if each["numInputRows"]]

    def payloads(self) -> list[bytes]:
        rows = self.spark.read.parquet(str(self.output)).orderBy("recording_id", "position").collect()
        assert len({(row.recording_id, row.position) for row in rows}) == len(rows)
        return [bytes(row.payload) for row in rows]


def payload_of(index: int) -> bytes:
    return b"%d " % index * (index * 7 % 700)


def test_batches_follow_a_growing_recording_within_the_limit(spark: SparkSession, tmp_path: Path):
    follower = Follower(spark, tmp_path, maxBytesPerTrigger="60k", bytesPerPartition="30k")
    files = RecordingFiles(follower.archive, start_position=96)
    files.append((payload_of(index), 0) for index in range(250))
    progress = follower.catch_up()
    assert len(progress) > 3
    offset = progress[-1]["sources"][0]["endOffset"]
    assert json.loads(offset) == {"0": files.position}
    files.append((payload_of(index), 0) for index in range(250, 300))
    late = RecordingFiles(follower.archive)
    late.append([(b"late", 0)])
    follower.catch_up()
    assert follower.payloads() == [payload_of(index) for index in range(300)] + [b"late"]
    assert follower.catch_up() == []


def test_a_message_that_is_half_recorded_waits_for_its_end(spark: SparkSession, tmp_path: Path):
    follower = Follower(spark, tmp_path)
    files = RecordingFiles(follower.archive)
    files.append([(b"whole", 0)])
    frames = list(files._frames(b"x" * 2000, 0))
    first, span = frames[0]
    files._writer.write(first, span)
    follower.catch_up()
    assert follower.payloads() == [b"whole"]
    second = bytearray(frames[1][0])
    _HEADER.pack_into(
        second, 0, 32 + 2000 - 1376, 0, 0x40, 1, files.position, files.session_id, 1001, INITIAL_TERM_ID, 0
    )
    files._writer.write(bytes(second), frames[1][1])
    follower.catch_up()
    assert follower.payloads() == [b"whole", b"x" * 2000]


def test_a_batch_that_is_replayed_adds_nothing(spark: SparkSession, tmp_path: Path):
    follower = Follower(spark, tmp_path, maxBytesPerTrigger="100k")
    files = RecordingFiles(follower.archive)
    files.append((payload_of(index), 0) for index in range(200))
    last = follower.catch_up()[-1]["batchId"]
    (follower.checkpoint / "commits" / str(last)).unlink()
    (follower.checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)
    follower.catch_up()
    assert follower.payloads() == [payload_of(index) for index in range(200)]


def test_delta_takes_each_batch_once(spark: SparkSession, tmp_path: Path):
    deltalake = pytest.importorskip("deltalake", reason="delta-rs is not installed: pip install deltalake")
    from headrace.spark import delta_sink

    files = RecordingFiles(tmp_path / "archive")
    files.append((payload_of(index), 0) for index in range(200))
    table, checkpoint = tmp_path / "table", tmp_path / "checkpoint"

    def catch_up() -> None:
        stream = spark.readStream.format("headrace").option("maxBytesPerTrigger", "100k")
        writer = stream.load(str(tmp_path / "archive")).writeStream.trigger(availableNow=True)
        writer = writer.foreachBatch(delta_sink(table, "test")).option("checkpointLocation", str(checkpoint))
        writer.start().awaitTermination()

    catch_up()
    last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
    (checkpoint / "commits" / str(last)).unlink()
    (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)
    catch_up()
    rows = deltalake.DeltaTable(str(table)).to_pyarrow_table().sort_by("position")
    assert rows.column("payload").to_pylist() == [payload_of(index) for index in range(200)]


def test_a_missing_segment_fails_the_query_and_is_named(spark: SparkSession, tmp_path: Path):
    from pyspark.errors import StreamingQueryException

    follower = Follower(spark, tmp_path)
    files = RecordingFiles(follower.archive)
    files.append((bytes(1000), 0) for _ in range(400))
    files.stop()
    segment = follower.archive / "0-131072.rec"
    segment.unlink()
    with pytest.raises(StreamingQueryException) as failed:
        follower.catch_up()
    assert str(segment) in str(failed.value)


def test_a_truncated_recording_is_no_silent_loss(spark: SparkSession, tmp_path: Path):
    from pyspark.errors import StreamingQueryException

    from headrace.archive import Catalog, DirectoryStorage

    follower = Follower(spark, tmp_path)
    files = RecordingFiles(follower.archive)
    files.append([(b"one", 0), (b"two", 0)])
    files.stop()
    follower.catch_up()
    catalog = Catalog(DirectoryStorage(follower.archive))
    catalog.update(0, stop_position=64)
    catalog.close()
    with pytest.raises(StreamingQueryException, match="it was truncated"):
        follower.catch_up()
