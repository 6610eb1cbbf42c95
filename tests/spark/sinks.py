"""The sinks that are claimed to take each message once, each with a query that follows an archive."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.spark import delta_sink
from tests.spark.recordings import CHECKSUM
from tests.spark.streams import CHANNEL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

SINKS = ("parquet", "delta", "marked")
MARKED_STREAM_ID = 8003
# Drivers for a machine so busy that processes stand still for a minute: no process is to be taken for dead then.
PATIENT_DRIVER: dict[str, Any] = {
    "threading_mode": "SHARED",
    "client_liveness_timeout_ns": 60_000_000_000,
    "publication_unblock_timeout_ns": 70_000_000_000,
}
PATIENT_CLIENT: dict[str, Any] = {"driver_timeout_ms": 60_000, "idle_sleep_ns": 1_000_000}


def start(
    spark: SparkSession, sink: str, base: Path, driver_directory: str, *, to_the_end: bool = False
) -> StreamingQuery:
    """Go on from the sink's checkpoint: for ever, or to what is recorded now."""
    source = spark.readStream.format("headrace").option("streamId", 1001).option("recordChecksum", CHECKSUM)
    stream = source.option("maxBytesPerTrigger", "400k").load(str(base / "archive")).writeStream
    stream = stream.option("checkpointLocation", str(base / f"{sink}-checkpoint"))
    if to_the_end:
        stream = stream.trigger(availableNow=True)
    if sink == "parquet":
        return stream.format("parquet").start(str(base / "parquet"))
    if sink == "delta":
        return stream.foreachBatch(delta_sink(base / "delta", "test")).start()
    stream = stream.option("channel", CHANNEL).option("streamId", MARKED_STREAM_ID)
    return (
        stream.option("aeronDirectory", driver_directory)
        .option("delivery", "marked")
        .option("timeoutMs", 120_000)
        .format("headrace")
        .start()
    )
