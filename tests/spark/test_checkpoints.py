"""A query that begins anew while its output stays: what docs/user/guarantees.md warns of."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.recordings import RecordingFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import DataStreamWriter


def record(archive: Path, count: int) -> None:
    files = RecordingFiles(archive)
    files.append((b"message %d" % index * 20, 0) for index in range(count))
    files.stop()


def stream(spark: SparkSession, directory: Path) -> DataStreamWriter:
    source = spark.readStream.format("headrace").option("maxBytesPerTrigger", "30k")
    writer = source.load(str(directory / "archive")).writeStream.trigger(availableNow=True)
    return writer.option("checkpointLocation", str(directory / "checkpoint"))


def test_spark_leaves_out_batches_that_a_file_sink_has_by_number(spark: SparkSession, tmp_path: Path) -> None:
    record(tmp_path / "archive", 200)
    output = str(tmp_path / "output")
    for _ in range(2):
        stream(spark, tmp_path).format("parquet").start(output).awaitTermination()
        assert spark.read.parquet(output).count() == 200
        shutil.rmtree(tmp_path / "checkpoint")


def test_before_its_first_commit_a_file_sink_shows_rows_that_may_come_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    import pyarrow.dataset as dataset

    record(tmp_path / "archive", 200)
    output = tmp_path / "output"

    def write() -> None:
        writer = stream(spark, tmp_path).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.format("parquet").start(str(output)).awaitTermination()

    write()
    # What a kill leaves just before the first commit: files of a planned batch, and no list of files that count.
    shutil.rmtree(output / "_spark_metadata")
    for commit in (tmp_path / "checkpoint" / "commits").iterdir():
        commit.unlink()
    for offset in (tmp_path / "checkpoint" / "offsets").iterdir():
        if offset.name not in ("0", ".0.crc"):
            offset.unlink()
    assert spark.read.parquet(str(output)).count() == 200
    write()
    assert spark.read.parquet(str(output)).count() == 200
    assert dataset.dataset(output, exclude_invalid_files=True).count_rows() > 200


def test_a_delta_table_refuses_batches_older_than_its_last(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="delta-rs is not installed: pip install deltalake")
    from pyspark.errors import StreamingQueryException

    from headrace.spark import delta_sink

    record(tmp_path / "archive", 200)
    append = delta_sink(tmp_path / "table", "orders")
    stream(spark, tmp_path).foreachBatch(append).start().awaitTermination()
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(StreamingQueryException, match=r"application=orders already has batch [1-9]"):
        stream(spark, tmp_path).foreachBatch(append).start().awaitTermination()
