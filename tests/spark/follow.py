"""A streaming query in a process of its own, to be killed: ``follow.py ARCHIVE OUTPUT CHECKPOINT [once]``.

Without ``once`` it follows for ever and prints a line after each batch that had rows.
"""

from __future__ import annotations

import sys
import time

from pyspark.sql import SparkSession


def main(archive: str, output: str, checkpoint: str, mode: str = "follow") -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    stream = spark.readStream.format("headrace").option("maxBytesPerTrigger", "400k").load(archive)
    writer = stream.writeStream.format("parquet").option("path", output)
    writer = writer.option("checkpointLocation", checkpoint)
    if mode == "once":
        writer.trigger(availableNow=True).start().awaitTermination()
        return
    query = writer.start()
    seen = -1
    while not query.awaitTermination(0.05):
        progress = query.lastProgress
        if progress is not None and progress["batchId"] != seen and progress["numInputRows"] > 0:
            seen = progress["batchId"]
            print(f"batch {seen} {time.time():.3f}", flush=True)


main(*sys.argv[1:])
