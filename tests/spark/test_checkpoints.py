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


def test_a_delta_table_refuses_batches_older_than_its_last(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="delta-rs is not installed: pip install deltalake")
    from pyspark.errors import StreamingQueryException

    from headrace.spark import delta_sink

    record(tmp_path / "archive", 200)
    append = delta_sink(tmp_path / "table", "orders")
    stream(spark, tmp_path).foreachBatch(append).start().awaitTermination()
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(StreamingQueryException, match=r"application=orders has batch [1-9]"):
        stream(spark, tmp_path).foreachBatch(append).start().awaitTermination()
