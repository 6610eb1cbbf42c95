"""Payloads that are not what the codec was told, and times that nobody stamped, without Spark."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install '.[spark]'")

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DecimalType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace import sbe
from headrace.spark import _source
from headrace.spark._columns import source_columns
from headrace.spark._decoding import PayloadError
from headrace.spark._options import ReadOptions
from tests.spark.recordings import RecordingFiles
from tests.spark.test_batch import SBE_SCHEMA

BAD = [
    b'{"a": 1, "this is": "json"}',
    b"\xff" * 64,
    b"",
    b"abc",
    struct.pack("<4H", 12, 1, 77, 0) + bytes(56),
    struct.pack("<4H", 12, 1, 9, 0) + bytes(3),
]


def rows(directory: Path, columns: str, **options: str) -> list[dict[str, object]]:
    """What a task makes of all recordings."""
    given = {"path": str(directory), "columns": columns, **options}
    parsed = ReadOptions.parse(given)
    schema = _schema(source_columns(parsed))
    reader = _source.reader(given, schema)
    return [row for part in reader.partitions() for one in reader.read(part) for row in one.to_pylist()]


def _schema(columns: list[str]) -> StructType:
    """The type of columns, as Spark parses them, without its JVM."""
    types = {
        "binary": BinaryType(),
        "boolean": BooleanType(),
        "string": StringType(),
        "bigint": LongType(),
        "decimal(20,0)": DecimalType(20, 0),
        "timestamp": TimestampType(),
    }
    pairs = (column.split(" ") for column in columns)
    return StructType([StructField(name.strip("`"), types[kind]) for name, kind in pairs])


def recorded(directory: Path, payloads: list[bytes]) -> None:
    files = RecordingFiles(directory)
    files.append([(payload, number) for number, payload in enumerate(payloads)])
    files.stop()


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "orders.xml"
    path.write_text(SBE_SCHEMA)
    return path


@pytest.mark.parametrize("bad", BAD, ids=["json", "ones", "empty", "short", "other-schema", "truncated"])
def test_what_is_not_of_the_schema_is_bad_and_not_left_out(tmp_path: Path, schema: Path, bad: bytes) -> None:
    codecs = sbe.Schema.from_file(schema)
    good = codecs["Order"].encode(id=5, quantity=1, side="BUY")
    noise = codecs["Noise"].encode(level=1)
    recorded(tmp_path / "archive", [good, noise, bad, good])
    options = {"codec": "sbe", "sbeSchema": str(schema), "sbeMessage": "Order"}
    with pytest.raises(PayloadError, match="recording_id=0"):
        rows(tmp_path / "archive", "id", **options)
    found = rows(tmp_path / "archive", "id, payload, bad, error", **options, onBadPayload="null")
    assert [(one["id"], one["payload"], one["bad"]) for one in found] == [
        (5, good, False),
        (None, bad, True),
        (5, good, False),
    ]
    assert [one["error"] is None for one in found] == [True, False, True]


def test_dead_letters_of_any_codec_are_whole(tmp_path: Path) -> None:
    recorded(tmp_path, [b'{"id": 1}', b"{", b'{"id": 2}'])
    options = {"codec": "json", "payloadSchema": "id bigint", "onBadPayload": "null"}
    found = rows(tmp_path, "position, payload, bad, error", **options)
    assert [(one["payload"], one["bad"]) for one in found] == [
        (b'{"id": 1}', False),
        (b"{", True),
        (b'{"id": 2}', False),
    ]
    assert found[1]["error"]
    assert rows(tmp_path, "id, payload", **options)[2] == {"id": 2, "payload": b'{"id": 2}'}


@pytest.mark.parametrize("unit", ["ns", "us", "ms"])
def test_a_time_that_nobody_stamped_is_null(tmp_path: Path, unit: str) -> None:
    recorded(tmp_path, [b"unstamped", b"stamped"])
    found = rows(tmp_path, "timestamp", timestamps=f"reserved_value_{unit}")
    assert found[0] == {"timestamp": None}
    assert found[1]["timestamp"] is not None
