"""Values of options that are nearly right. Without a JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install '.[spark]'")

from pyspark.sql.types import BinaryType, StructField, StructType

import headrace
from headrace.spark import _source
from headrace.spark._options import ReadOptions
from tests.spark.recordings import RecordingFiles

INT64_MAX = (1 << 63) - 1


def parsed(**given: str) -> ReadOptions:
    return ReadOptions.parse({"path": "archive", **given})


ISO = "must be ISO 8601, such as 2026-01-31T12:00:00Z, or milliseconds since 1970"


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("startTime", "²", ISO),
        ("endTime", "--5", ISO),
        ("startTime", "+-5", ISO),
        ("startTime", "٣", ISO),
        ("startTime", "-", ISO),
        ("startTime", "", ISO),
        ("startTime", "9" * 20, ISO),
        ("startTime", "9" * 5000, ISO),
        ("recordings", "²", "must be recording ids separated by commas, or all"),
        ("recordings", "1,٣", "must be recording ids separated by commas, or all"),
        ("recordings", "9" * 19, f"must be at most {INT64_MAX}"),
        ("recordings", "9" * 5000, f"must be at most {INT64_MAX}"),
    ],
    ids=lambda text: text[:20],
)
def test_numbers_that_are_none_are_refused_by_name(name: str, value: str, rule: str) -> None:
    with pytest.raises(headrace.ConfigError) as refusal:
        parsed(**{name: value})
    assert str(refusal.value).startswith(f"{name}={value}: {rule}")


@pytest.mark.parametrize("name", ["startTime", "endTime"])
def test_eight_digits_are_no_time(name: str) -> None:
    """ISO 8601 takes them for a day, and this option would take them for a morning of 1970."""
    with pytest.raises(headrace.ConfigError) as refusal:
        parsed(**{name: "20260131"})
    text = f"{name}=20260131: may be a day or milliseconds: write 2026-01-31 for the day, or 1970-01-01T05:37:40.131Z"
    assert str(refusal.value).startswith(text)
    # What is no day has no other reading that could be proposed.
    with pytest.raises(headrace.ConfigError, match=f"{name}=99999999: may be .* 1970-01-02T03:46:39.999Z"):
        parsed(**{name: "99999999"})
    for given in ("2026-01-31", "20260131T00", "1769817600000", "+1769817600000"):
        assert getattr(
            parsed(**{name: given}), "start_time_ns" if name == "startTime" else "end_time_ns"
        ) == (1_769_817_600_000_000_000)
    assert parsed(startTime="-5").start_time_ns == -5_000_000
    assert parsed(startTime="0020260131").start_time_ns == 20_260_131_000_000


@pytest.mark.parametrize("unit", ["ns", "us", "ms"])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"startTime": "9999-12-31"}, []),
        ({"startTime": "9" * 19}, []),
        ({"endTime": "9" * 19}, [b"first", b"now", b"last"]),
        ({"startTime": "-" + "9" * 19}, [b"first", b"now", b"last"]),
        ({"endTime": "-" + "9" * 19}, []),
        ({"startTime": "0001-01-01T00:00:00+23:59", "endTime": "2100-01-01"}, [b"now"]),
    ],
    ids=str,
)
def test_times_that_no_message_can_have_are_bounds_as_others(
    tmp_path: Path, unit: str, given: dict[str, str], expected: list[bytes]
) -> None:
    """A reserved value is a number of 64 bits, and no time that a user may write is refused for it."""
    nanoseconds = {"ns": 1, "us": 1000, "ms": 1_000_000}[unit]
    files = RecordingFiles(tmp_path)
    reserved = {
        b"first": -INT64_MAX - 1,
        b"now": 1_800_000_000_000_000_000 // nanoseconds,
        b"last": INT64_MAX,
    }
    files.append(reserved.items())
    files.stop()
    if unit != "ns" and "9999-12-31" in given.values():
        expected = [b"last"]  # in these units there are later times
    if unit == "ns" and len(given) == 2:
        expected = [b"first", b"now"]  # in nanoseconds no time is as early as the year 1
    options = {"path": str(tmp_path), "timestamps": f"reserved_value_{unit}", "columns": "payload", **given}
    reader = _source.reader(options, StructType([StructField("payload", BinaryType())]))
    rows = [
        row["payload"] for part in reader.partitions() for one in reader.read(part) for row in one.to_pylist()
    ]
    assert rows == expected
