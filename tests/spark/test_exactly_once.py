"""Queries killed at any moment, and the archive once: each recorded message once in each sink, and nothing more.

All sinks go through the same faults together, as starting Spark is most of what this takes.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import headrace
from headrace.archive import DirectoryStorage
from headrace.archive.files.mark_file import read_mark_fields
from headrace.spark import CommittedBatches
from tests.helpers import await_true
from tests.spark.recordings import CHECKSUM
from tests.spark.sinks import MARKED_STREAM_ID, PATIENT_CLIENT, PATIENT_DRIVER, SINKS, start
from tests.spark.streams import listening

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]
SEED = 20_261
BUSY_S = 120.0


@contextmanager
def program(name: str, *args: object) -> Iterator[subprocess.Popen[str]]:
    """Runs a module of this package, and kills it and all its processes at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"tests.spark.{name}", *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        # A process group of its own, because a Python driver program that is killed leaves its JVM running.
        start_new_session=True,
    )
    try:
        yield process
    finally:
        kill(process)
        process.communicate()


def kill(process: subprocess.Popen[str]) -> None:
    """Kills a program and all that it started, a JVM for one."""
    os.killpg(process.pid, signal.SIGKILL)


def said(process: subprocess.Popen[str], word: str) -> int:
    """The number that a program prints after a word."""
    assert process.stdout is not None
    found, number = process.stdout.readline().split()
    assert found == word
    return int(number)


def batches_of(
    query: subprocess.Popen[str], is_enough: Callable[[Counter[str], dict[str, int]], bool]
) -> None:
    """Reads what the queries print until the number of batches of each sink, and all sinks' least offset, will do."""
    assert query.stdout is not None
    counts: Counter[str] = Counter()
    offsets: dict[str, dict[str, int]] = {}
    for line in query.stdout:
        sink, _, offset = line.partition(" ")
        counts[sink] += 1
        offsets[sink] = json.loads(offset)
        if len(counts) == len(SINKS):
            recordings = ({key for key in each if key.isdigit()} for each in offsets.values())
            keys = set.intersection(*recordings)
            if is_enough(counts, {key: min(each[key] for each in offsets.values()) for key in keys}):
                return
    pytest.fail("the queries ended by themselves")


@dataclass
class Outcome:
    """Payloads, in the order of recordings and of positions in them."""

    recorded: list[bytes]
    in_sink: dict[str, list[bytes]]
    published: int
    """By each publisher after the archive was killed."""


@pytest.fixture(scope="module")
def outcome(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    deltalake = pytest.importorskip("deltalake", reason="delta-rs is not installed: pip install deltalake")
    base = tmp_path_factory.mktemp("faults")
    generator = random.Random(SEED)

    def some_batches_of(query: subprocess.Popen[str]) -> None:
        enough = generator.randint(1, 3)
        batches_of(query, lambda counts, _: min(counts.values()) >= enough)

    def follow() -> None:
        """Follow for some batches, and die somewhere in those after them."""
        with program("follow", base, driver.directory) as query:
            some_batches_of(query)
            time.sleep(generator.uniform(0, 0.5))

    def is_abandoned() -> bool:
        seen = read_mark_fields(DirectoryStorage(base / "archive")).activity_timestamp
        return time.time() * 1000 - seen > 1500

    with (
        headrace.MediaDriver.embedded(**PATIENT_DRIVER) as driver,
        driver.connect(**PATIENT_CLIENT) as client,
        listening(client, MARKED_STREAM_ID) as messages,
    ):
        with program("record", base / "archive", base / "driver-1", "before") as recorder:
            assert said(recorder, "recording") == 0
            follow()
            with program("follow", base, driver.directory) as query:
                some_batches_of(query)
                recorder.kill()
                await_true(is_abandoned, BUSY_S)
                with program("record", base / "archive", base / "driver-2", "after") as again:
                    resumed = said(again, "recording")
                    batches_of(query, lambda _, offset: "1" in offset and offset["0"] > resumed)
                    kill(query)
                    follow()
                    assert again.stdin is not None
                    again.stdin.write("stop\n")
                    again.stdin.flush()
                    published = said(again, "published")
        for sink in SINKS:
            start(spark, sink, base, driver.directory, to_the_end=True).awaitTermination()
        source = spark.read.format("headrace").option("recordChecksum", CHECKSUM).load(str(base / "archive"))
        recorded = payloads_of(source.toArrow())
        await_true(lambda: len(committed(messages)) >= len(recorded), BUSY_S)
    in_sink = {
        "parquet": payloads_of(spark.read.parquet(str(base / "parquet")).toArrow()),
        "delta": payloads_of(deltalake.DeltaTable(str(base / "delta")).to_pyarrow_table()),
        "marked": committed(messages),
    }
    return Outcome(recorded, in_sink, published)


def payloads_of(table: pa.Table) -> list[bytes]:
    payloads: list[bytes] = (
        table.sort_by([("recording_id", "ascending"), ("position", "ascending")])
        .column("payload")
        .to_pylist()
    )
    return payloads


def committed(messages: list[bytes]) -> list[bytes]:
    """What came out of marked delivery, recording by recording, each as it came."""
    batches = CommittedBatches(-1)
    rows = [row for message in messages for batch in batches.on_message(message) for row in batch.payloads]
    return sorted(rows, key=lambda row: int(row.split()[1]))


def test_what_was_published_is_recorded(outcome: Outcome):
    numbers: dict[tuple[bytes, int], list[int]] = defaultdict(list)
    for payload in outcome.recorded:
        name, recording_id, number, *_ = payload.split()
        numbers[name, int(recording_id)].append(int(number))
    before = numbers.pop((b"before", 0))
    assert before == list(range(len(before)))
    assert dict(numbers) == {(b"after", id_): list(range(outcome.published)) for id_ in (0, 1)}


@pytest.mark.parametrize("sink", SINKS)
def test_what_was_recorded_is_there_once(outcome: Outcome, sink: str):
    assert outcome.in_sink[sink] == outcome.recorded
