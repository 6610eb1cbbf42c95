"""Recordings chosen by the names of their streams, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install '.[spark]'")

import headrace
from headrace.archive import DirectoryStorage, NamedStream
from headrace.archive.files.declarations import store_streams
from headrace.spark._options import ReadOptions
from headrace.spark._recordings import refuse_patterns_without_match, select
from tests.helpers import TIMEOUT_S, await_true

CHANNEL = "aeron:ipc"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """An archive with streams `orders` and `trades`, and a recording of neither."""
    with (
        headrace.ArchivingMediaDriver.embedded(archive_directory=tmp_path) as archiving,
        archiving.connect_archive() as archive,
    ):
        for stream_id in (1, 2, 3, 1):
            with archive.add_recorded_publication(CHANNEL, stream_id) as publication:
                publication.offer_blocking(b"message", timeout_s=TIMEOUT_S)
            await_true(lambda: not archive.list_recordings()[-1].is_active)
    storage = DirectoryStorage(tmp_path)
    store_streams(storage, [NamedStream("trades", CHANNEL, 1), NamedStream("orders", CHANNEL, 2)])
    return tmp_path


def chosen(directory: Path, **options: str) -> list[int]:
    return [one.recording_id for one in select(ReadOptions.parse({"path": str(directory), **options}))]


def test_names_choose_all_recordings_of_their_streams(directory: Path) -> None:
    assert chosen(directory, subscribe="trades") == [0, 3]
    assert chosen(directory, subscribe="orders, trades") == [0, 1, 3]
    assert chosen(directory, subscribePattern="ord.*") == [1]
    assert chosen(directory, subscribePattern="ord") == []
    assert chosen(directory, subscribe="trades", recordings="3") == [3]
    assert chosen(directory) == [0, 1, 2, 3]


def test_unknown_names_and_wrong_patterns_are_refused(directory: Path) -> None:
    for options, text in (
        ({"subscribe": "quotes"}, "no such stream is declared in .*; known are orders, trades"),
        ({"subscribePattern": "x.*"}, "no such stream is declared"),
    ):
        parsed = ReadOptions.parse({"path": str(directory), **options})
        assert select(parsed) == []
        with pytest.raises(headrace.ConfigError, match=text):
            refuse_patterns_without_match(parsed)
    for options, text in (
        ({"subscribePattern": "("}, "must be a regular expression"),
        ({"subscribePattern": "a", "subscribe": "b"}, "give one of both"),
        ({"subscribe": "a,,b"}, "must be names separated by commas"),
    ):
        with pytest.raises(headrace.ConfigError, match=text):
            ReadOptions.parse({"path": str(directory), **options})
