"""What a task reads and decodes, without Spark."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install '.[spark]'")

from headrace.spark._decoded import Decoded, Unreadable
from headrace.spark._decoding import PayloadError, decode
from headrace.spark._options import ReadOptions
from headrace.spark._ranges import RecordingRange
from headrace.spark._reading import opened
from headrace.spark._recordings import select
from tests.spark.recordings import RecordingFiles

if TYPE_CHECKING:
    from headrace.client import FragmentBatch

BEGIN, END = 0x80, 0x40


def read(directory: Path, stop: int | None = None) -> list[FragmentBatch]:
    """Batches of the only recording in a directory, of the messages that begin before ``stop``."""
    options = ReadOptions.parse({"path": str(directory)})
    (selected,) = select(options)
    assert selected.end is not None
    part = RecordingRange.of(selected.descriptor, 0, selected.end if stop is None else stop, selected.end)
    with opened(part, options) as reader:
        return list(reader.batches(2))


def payloads(batches: list[FragmentBatch]) -> list[bytes]:
    return [payload for batch in batches for payload in batch]


def test_messages_that_lost_fragments_are_left_out_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    files = RecordingFiles(tmp_path)
    files.append([(b"first", 0)])
    begin = files.position
    for _ in range(3):
        files.append_fragment(b"begun", BEGIN)
        files.append_gap(64)
        files.append_fragment(b"ended", END)
    files.append([(b"last", 0)])
    files.stop()
    with caplog.at_level(logging.WARNING):
        assert payloads(read(tmp_path)) == [b"first", b"last"]
    (text,) = caplog.messages
    assert "recording_id=0 " in text
    assert "3 messages" in text
    assert f"position={begin}:" in text


def test_nothing_is_logged_of_messages_that_are_unfinished_or_of_another_range(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    files = RecordingFiles(tmp_path)
    files.append([(b"first", 0)])
    stop = files.position
    files.append_fragment(b"begun", BEGIN)
    files.append_gap(64)
    files.append_fragment(b"begun", BEGIN)
    files.stop()
    with caplog.at_level(logging.WARNING):
        assert payloads(read(tmp_path, stop)) == [b"first"]
        assert not caplog.messages
        assert payloads(read(tmp_path)) == [b"first"]
    assert len(caplog.messages) == 1
    assert "1 messages" in caplog.messages[0]


class Picky:
    """Decodes numbers, and remembers what it was asked to."""

    def __init__(self) -> None:
        self.asked: list[list[bytes]] = []

    def types(self) -> dict[str, str]:
        return {"id": "bigint"}

    def decode(self, payloads: pa.BinaryArray, wanted: pa.Schema) -> Decoded:
        texts = payloads.to_pylist()
        self.asked.append(texts)
        try:
            return {"id": pa.array([int(text) for text in texts], pa.int64())}, None
        except ValueError as wrong:
            raise Unreadable(str(wrong)) from wrong


def test_nothing_is_decoded_twice_to_find_what_cannot_be(tmp_path: Path):
    files = RecordingFiles(tmp_path)
    positions = files.append([(b"1", 0), (b"oh", 0), (b"?", 0)])
    files.stop()
    pair, single = read(tmp_path)
    codec, wanted = Picky(), pa.schema([("id", pa.int64())])
    decoded = decode(codec, pair, wanted, recording_id=0, nulls=True)
    assert decoded.columns["id"].to_pylist() == [1, None]
    assert list(decoded.errors) == [1]
    assert codec.asked == [[b"1", b"oh"], [b"1"], [b"oh"]]
    codec.asked.clear()
    with pytest.raises(PayloadError, match=f"position={positions[2]} .*invalid literal"):
        decode(codec, single, wanted, recording_id=0, nulls=False)
    assert codec.asked == [[b"?"]]
