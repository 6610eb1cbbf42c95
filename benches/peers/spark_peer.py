"""Times batch reads of a recording and of the same rows in Parquet: ``spark_peer.py DIRECTORY ROWS``.

Prints ``rate NAME NANOSECONDS`` for each pass that counts.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from headrace.archive.files.catalog import Catalog
from headrace.archive.files.storage import DirectoryStorage
from headrace.archive.protocol.descriptor import RecordingDescriptor

TERM_LENGTH = 16 << 20
SEGMENT_LENGTH = 128 << 20
STREAM_ID = 1001
PAYLOAD_LENGTH = 64
# Rates rise until the JVM has compiled what it runs, through the first three passes.
WARM_PASSES = 3
PASSES = 5
FRAME = np.dtype(
    [
        ("length", "<i4"),
        ("flags", "<u2"),
        ("type", "<u2"),
        ("term_offset", "<i4"),
        ("session", "<i4"),
        ("stream", "<i4"),
        ("term", "<i4"),
        ("reserved", "<i8"),
        ("payload", "u1", PAYLOAD_LENGTH),
    ]
)
SPAN = FRAME.itemsize
assert SPAN == 96, "the frame of a 64-byte message"


def record(directory: Path, count: int) -> None:
    """Write a recording of `count` messages, a term at a time."""
    storage = DirectoryStorage(directory)
    catalog = Catalog(storage)  # the first file, as an archive has it: it refuses to be made beside segments
    per_term = TERM_LENGTH // SPAN
    generator = np.random.default_rng(1)
    term = np.zeros(per_term, FRAME)
    term["length"], term["flags"], term["type"] = SPAN, 0xC000, 1
    term["term_offset"] = np.arange(per_term) * SPAN
    term["session"], term["stream"] = 7, STREAM_ID
    padding = np.zeros(1, FRAME)
    padding["length"], padding["flags"] = TERM_LENGTH - per_term * SPAN, 0xC000
    padding["term_offset"], padding["session"], padding["stream"] = per_term * SPAN, 7, STREAM_ID
    position, left, file = 0, count, None
    while left:
        if position % SEGMENT_LENGTH == 0:
            file = storage.create(f"0-{position}.rec", SEGMENT_LENGTH)
        assert file is not None, "position 0 begins a segment"
        now = min(left, per_term)
        term["term"] = padding["term"] = position // TERM_LENGTH
        term["reserved"] = np.arange(count - left, count - left + per_term)
        term["payload"] = generator.integers(0, 256, (per_term, PAYLOAD_LENGTH), np.uint8)
        file.write(position % SEGMENT_LENGTH, memoryview(term[:now]).cast("B"))
        if now == per_term:
            file.write(position % SEGMENT_LENGTH + per_term * SPAN, padding.tobytes()[:32])
        position += TERM_LENGTH if now == per_term else now * SPAN
        left -= now
    channel = "aeron:ipc"
    numbers = (0, 0, 0, 0, 1, 0, position, 0, SEGMENT_LENGTH, TERM_LENGTH, 1408, 7, STREAM_ID)
    catalog.add(RecordingDescriptor(*numbers, channel, channel, channel))
    catalog.close()


def timed(name: str, frame: DataFrame, is_warm: bool) -> None:
    """Read everything into a sink that drops it."""
    start = time.perf_counter_ns()
    frame.write.format("noop").mode("overwrite").save()
    if is_warm:
        print(f"rate {name} {time.perf_counter_ns() - start}", flush=True)


def main(directory: Path, count: int) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    record(directory / "archive", count)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")

    def recorded() -> DataFrame:
        return spark.read.format("headrace").load(str(directory / "archive"))

    parquet = str(directory / "parquet")
    recorded().write.option("compression", "none").parquet(parquet)
    # Each message carries its number: together they are there once each.
    total = spark.read.parquet(parquet).agg({"reserved_value": "sum"}).first()[0]
    assert total == count * (count - 1) // 2, f"the numbers 0 to {count - 1} add up to {total}"
    for number in range(WARM_PASSES + PASSES):
        is_warm = number >= WARM_PASSES
        timed("headrace", recorded(), is_warm=is_warm)
        timed("parquet", spark.read.parquet(parquet), is_warm=is_warm)
    spark.stop()


main(Path(sys.argv[1]), int(sys.argv[2]))
