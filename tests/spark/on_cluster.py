"""A Spark program on a cluster: ``on_cluster.py MASTER OUTPUT DRIVER_DIRECTORY NAME=OPTIONS...``, options as JSON.

With each set of options it reads the recordings as a batch, follows them into Parquet files, and publishes them to a
stream of their own, 9000 and up. Writes under ``OUTPUT/NAME``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
from pyspark.sql import SparkSession

from headrace.spark import packed

CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def decode(payloads: Any) -> dict[str, Any]:
    """The payload itself, and the process it was read in, named by its parent: each executor has one of its own."""
    import os

    import pyarrow as pa

    return {"message": payloads, "executor": pa.array([os.getppid()] * len(payloads), pa.int64())}


def main(master: str, output: str, directory: str, *sources: str) -> None:
    spark = (
        SparkSession.builder.master(master)
        .config("spark.cores.max", "2")
        .config("spark.executor.memory", "512m")
        .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        # Starts fewer processes for each batch.
        .config("spark.sql.streaming.checkpointFileManagerClass", CHECKPOINTS)
        # Nothing runs before both executors are there, so both get tasks.
        .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    for number, source in enumerate(sources):
        name, _, options = source.partition("=")
        base = Path(output) / name
        run(spark, base, json.loads(options), {"aeronDirectory": directory, "streamId": str(9000 + number)})
    spark.stop()


def run(spark: SparkSession, base: Path, options: dict[str, str], stream: dict[str, str]) -> None:
    batch = spark.read.format("headrace").options(**options)
    batch = batch.option("codec", "python").option("decoder", packed(decode))
    table = batch.option("payloadSchema", "message binary, executor bigint").load().toArrow()
    base.mkdir(parents=True)
    parquet.write_table(table, base / "batch.parquet")

    follow = spark.readStream.format("headrace").options(**options).option("maxBytesPerTrigger", "400k")
    for format_name, more in (
        ("parquet", {"path": str(base / "followed")}),
        ("headrace", {"channel": "aeron:ipc?term-length=256k", "delivery": "marked", **stream}),
    ):
        writer = follow.load().writeStream.format(format_name).options(**more)
        writer = writer.option("checkpointLocation", str(base / f"checkpoint-{format_name}"))
        writer.trigger(availableNow=True).start().awaitTermination()


main(*sys.argv[1:])
