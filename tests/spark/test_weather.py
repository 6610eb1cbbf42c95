"""The example `examples/weather`: whole, without Java, and its analysis of streams with faults in them."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from benches.processes import ROOT

from headrace import sbe
from tests.helpers import TIMEOUT_S
from tests.spark.recordings import RecordingFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = ROOT / "examples" / "weather"
FIRST_SENT_NS = 1_700_000_000_000_000_000
NS_PER_MESSAGE = 1_000_000
NEW_YEAR_S = 1_262_304_000


def run_example(results: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    # PySpark leaves files to the garbage collector when Java does not start.
    warnings = ["-W", "error", "-W", "ignore::ResourceWarning"]
    return subprocess.run(
        [sys.executable, *warnings, EXAMPLE, results],
        env={name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.usefixtures("spark")  # for its check of Java
def test_from_a_live_stream_to_a_picture(tmp_path: Path) -> None:
    done = run_example(tmp_path / "results")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "Gaps in the sequence numbers: 0, readings missing: 0" in done.stdout
    assert re.search(r"^ *17518 +17518 ", done.stdout, flags=re.MULTILINE), done.stdout
    for line in done.stdout.partition("Files\n")[2].splitlines():
        made = Path(line.strip())
        assert made.suffix == ".png" or list(made.glob("*.parquet")), made
    assert (tmp_path / "results/weather.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_without_java_it_ends_with_the_recording_and_says_so(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "env", "basename"):
        (tools / name).symlink_to(Path("/bin") / name)
    done = run_example(tmp_path / "results", PATH=str(tools))
    assert done.returncode == 3, done.stderr
    assert done.stderr == ""
    assert "Java 17 or later" in done.stdout
    assert "JAVA_HOME is not set" in (tmp_path / "results/spark.log").read_text()
    assert (tmp_path / "results/archive/archive.catalog").exists()


def test_results_that_cannot_be_written_are_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run_example(tmp_path / "file" / "results")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert str(tmp_path / "file") in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def analyse() -> ModuleType:
    specification = importlib.util.spec_from_file_location("analyse", EXAMPLE / "analyse.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["analyse"] = module  # where dataclasses look for it
    specification.loader.exec_module(module)
    return module


def recorded(directory: Path, sequences: list[int], lost: frozenset[int] = frozenset()) -> list[int]:
    """A recording of these readings, and one of receipts for all but the lost, n microseconds late for the n-th."""
    schema = sbe.Schema.from_file(EXAMPLE / "weather.xml")
    sent_ns = {sequence: FIRST_SENT_NS + sequence * NS_PER_MESSAGE for sequence in sequences}
    readings = RecordingFiles(directory, stream_id=2001)
    readings.append(
        (schema["Reading"].encode(each, sent_ns[each], NEW_YEAR_S + 3600 * each, "SEATTLE", 40.0 + each), 0)
        for each in sequences
    )
    receipts = RecordingFiles(directory, stream_id=2002)
    receipts.append(
        (schema["Receipt"].encode(each, sent_ns[each] + 1000 * each), 0)
        for each in sequences
        if each not in lost
    )
    for recording in (readings, receipts):
        recording.stop()
    return [readings.recording_id, receipts.recording_id]


@pytest.mark.parametrize(
    ("sequences", "expected"),
    [
        ([*range(50)], []),
        ([*range(20), *range(25, 50)], [(20, 25, 5)]),
        ([*range(3, 50)], [(0, 3, 3)]),
        ([0, 1, 4, 5, 5, 6, 9], [(2, 4, 2), (6, 5, -1), (7, 9, 2)]),
    ],
    ids=["whole", "five lost", "begins late", "several, and one repeated"],
)
def test_every_gap_is_found_where_it_is(
    spark: SparkSession,
    analyse: ModuleType,
    tmp_path: Path,
    sequences: list[int],
    expected: list[tuple[int, int, int]],
) -> None:
    stream = analyse.load(spark, tmp_path, recorded(tmp_path, sequences))
    found = [tuple(row) for row in analyse.gaps(stream).select("expected", "found", "missing").collect()]
    assert found == expected


def test_aggregates_are_those_of_the_messages(
    spark: SparkSession, analyse: ModuleType, tmp_path: Path
) -> None:
    stream = analyse.load(spark, tmp_path, recorded(tmp_path, [*range(103)], lost=frozenset({101, 102})))
    days = analyse.weather_by_day(stream).collect()
    assert [(str(row.day), row.readings, row.low, row.mean, row.high) for row in days[:2]] == [
        ("2010-01-01", 24, 40.0, 51.5, 63.0),
        ("2010-01-02", 24, 64.0, 75.5, 87.0),
    ]
    row = analyse.deliveries(stream).agg(*analyse.at_percentiles(50, 90, 99.9)).first()
    assert row is not None
    assert row.asDict() == pytest.approx(
        {"sent": 103, "received": 101, "p50": 50, "p90": 90, "p99.9": 99.9, "max": 100}
    )
    windows = analyse.latency_by_window(stream).collect()
    assert [(row.sent, row.received, row.max) for row in windows] == [(100, 100, 99), (3, 1, 100)]


def test_a_message_that_the_schema_lacks_is_refused_with_those_it_has(
    spark: SparkSession, tmp_path: Path
) -> None:
    from pyspark.errors import PySparkException

    reader = spark.read.format("headrace").option("codec", "sbe").option("sbeMessage", "Readings")
    with pytest.raises(
        PySparkException, match=r"weather\.xml has no such message; known are Reading, Receipt"
    ):
        reader.option("sbeSchema", str(EXAMPLE / "weather.xml")).load(str(tmp_path))
