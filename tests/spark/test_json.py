"""JSON payloads, good and bad, as columns. Without a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install '.[spark]'")

from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

import headrace
from headrace.spark import PayloadError, _source
from tests.spark.recordings import RecordingFiles

TYPES = {"id": LongType(), "s": StringType()}


def options_of(directory: Path, **given: str) -> dict[str, str]:
    return {"path": str(directory), "codec": "json", "payloadSchema": "id bigint, s string", **given}


def rows(
    directory: Path, payloads: Sequence[bytes], names: Sequence[str] = ("id",), on_bad: str = "null"
) -> list[tuple[Any, ...]]:
    """What the source makes of payloads."""
    files = RecordingFiles(directory)
    files.append((payload, 0) for payload in payloads)
    files.stop()
    columns = StructType([StructField(name, TYPES[name]) for name in names])
    reader = _source.reader(options_of(directory, onBadPayload=on_bad, columns=",".join(names)), columns)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    for batch in batches:
        batch.validate(full=True)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


DEEP = b"[" * 1500


@pytest.mark.parametrize("deep", [DEEP, b'{"id":' + DEEP, b"[" * 60_000, b'{"a":' * 10_000])
def test_a_payload_nested_without_end_is_bad_as_any_other(tmp_path: Path, deep: bytes) -> None:
    """A kilobyte of brackets from a stranger ends no query that leaves bad payloads out."""
    assert rows(tmp_path / "null", [b'{"id":7}', deep]) == [(7,), (None,)]
    with pytest.raises(PayloadError, match=r"recording_id=0: .*'(\[|\{)"):
        rows(tmp_path / "fail", [b'{"id":7}', deep], on_bad="fail")


def test_deep_nesting_in_fields_that_are_left_out_is_no_matter(tmp_path: Path) -> None:
    deep = b'{"x":%b%b,"id":8}' % (b"[" * 20_000, b"]" * 20_000)
    assert rows(tmp_path, [b'{"id":7}', deep]) == [(7,), (8,)]


def test_text_that_is_no_utf8_is_a_bad_payload(tmp_path: Path) -> None:
    """Spark takes columns unseen."""
    payloads = [b'{"id":1,"s":"\xc3\xa4"}', b'{"id":2,"s":"\xff\xfe"}', b'{"id":3}']
    assert rows(tmp_path / "null", payloads, ("id", "s")) == [(1, "ä"), (None, None), (3, None)]
    with pytest.raises(PayloadError, match=r"recording_id=0: .*codec can't decode byte 0xff"):
        rows(tmp_path / "fail", payloads, ("id", "s"), on_bad="fail")


CLOSERS = [
    b'{"id":1},"x":1',
    b'{"id":1},"x":{}',
    b'{"id":1}],"x":[1',
    b'{"id":1}],"x":[{}',
    b'{"id":1}},"x":{"y":1',
    b'{"id":1}]},"x":[{"y":1',
    b'{"id":1},{"id":2}',
    b'{"id":1}]}\n{"value":[{"id":2}',
    b'{"id":1}}\n{"index":1,"value":{"id":2}',
    b'{"id":1} {"id":2}',
    b'{"id":1}{"id":2}',
    b'[{"id":1}]',
    b'"id"',
    b"null",
    b"1",
    b"",
]


@pytest.mark.parametrize("payload", CLOSERS)
def test_a_payload_that_is_more_or_less_than_one_object_is_bad(tmp_path: Path, payload: bytes) -> None:
    """Whatever brackets of the codec's own it closes."""
    assert rows(tmp_path / "null", [b'{"id":7}', payload, b'{"id":8}']) == [(7,), (None,), (8,)]
    with pytest.raises(PayloadError, match="recording_id=0: "):
        rows(tmp_path / "fail", [payload], on_bad="fail")


def test_good_payloads_are_read_whatever_they_are_called(tmp_path: Path) -> None:
    payloads = [
        b"{}",
        b' \n{"id" : 1,\n "s":"a\\nb"} \r\n',
        b'{"value":[{"id":5}],"index":3,"id":2}',
        b'{"other":{"id":9},"id":3,"s":"]},{["}',
    ]
    assert rows(tmp_path, payloads, ("id", "s")) == [(None, None), (1, "a\nb"), (2, None), (3, "]},{[")]


@pytest.mark.parametrize(
    "kind",
    [
        MapType(StringType(), IntegerType()),
        ArrayType(MapType(StringType(), IntegerType())),
        StructType([StructField("m", MapType(StringType(), IntegerType()))]),
    ],
    ids=["map", "array", "struct"],
)
@pytest.mark.parametrize("make", [_source.reader, _source.stream_reader])
def test_a_type_that_cannot_be_made_of_json_is_refused_by_name(
    tmp_path: Path, kind: DataType, make: Any
) -> None:
    """When Spark plans the query, and not in a task."""
    columns = StructType([StructField("id", LongType()), StructField("m", kind)])
    schema = f"id bigint, m {kind.simpleString()}"
    with pytest.raises(headrace.ConfigError, match=r"payloadSchema=m map|payloadSchema=m (array|struct)<"):
        make(options_of(tmp_path, payloadSchema=schema), columns)
    make(options_of(tmp_path, payloadSchema=schema, columns="id"), StructType(columns.fields[:1]))
