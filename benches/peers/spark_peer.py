"""Times batch reads of a recording and of the same rows elsewhere: ``spark_peer.py DIRECTORY ROWS parquet|replay``.

``replay`` is the same recording through the control channel of an archive, in a process of its own, that replays it.
Prints ``rate NAME NANOSECONDS`` for each pass that counts; the recording's files have the name ``files``.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from headrace._agent.storage import DirectoryStorage
from headrace.archive.files.catalog import Catalog
from headrace.archive.protocol.descriptor import RecordingDescriptor

TERM_LENGTH = 16 << 20
SEGMENT_LENGTH = 128 << 20
STREAM_ID = 1001
CONTROL_CHANNEL = "aeron:udp?endpoint=127.0.0.1:24996"
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


@contextlib.contextmanager
def archive_of(directory: Path) -> Iterator[None]:
    """An archive on the files, which clients reach."""
    program = Path(__file__).with_name("archive_peer.py")
    command = [
        sys.executable,
        str(program),
        str(directory / "driver"),
        str(directory / "archive"),
        CONTROL_CHANNEL,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "READY\n", "the archive says when it runs"
            yield
        finally:
            process.terminate()


def checked(rows: DataFrame, count: int) -> None:
    """Each message carries its number: together they are there once each."""
    total = rows.agg({"reserved_value": "sum"}).first()[0]
    assert total == count * (count - 1) // 2, f"the numbers 0 to {count - 1} add up to {total}"


def main(directory: Path, count: int, other: str) -> None:
    """Both ways of reading, in turns."""
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
    parquet = str(directory / "parquet")

    def files() -> DataFrame:
        return spark.read.format("headrace").load(str(directory / "archive"))

    def elsewhere() -> DataFrame:
        if other == "parquet":
            return spark.read.parquet(parquet)
        return spark.read.format("headrace").option("controlChannel", CONTROL_CHANNEL).load()

    if other == "parquet":
        files().write.option("compression", "none").parquet(parquet)
    with archive_of(directory) if other == "replay" else contextlib.nullcontext():
        checked(elsewhere(), count)
        for number in range(WARM_PASSES + PASSES):
            is_warm = number >= WARM_PASSES
            timed("files", files(), is_warm=is_warm)
            timed(other, elsewhere(), is_warm=is_warm)
    spark.stop()


if len(sys.argv) != 4 or sys.argv[3] not in ("parquet", "replay"):
    sys.exit(__doc__)
main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
