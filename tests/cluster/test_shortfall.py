"""A start compares what it has with what was committed: nothing is written over a log of which something is missing."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace._agent.storage import DirectoryStorage
from headrace.cluster import ClusteredService, ClusterError, ClusterFileError, ClusterNode
from headrace.cluster.files.missing_log import find_shortfall
from headrace.cluster.files.recording_log import RECORDING_LOG_NAME, RecordingLog
from headrace.cluster.files.recording_log_entries import Entry, EntryType
from headrace.positions import NULL_VALUE
from tests.helpers import TIMEOUT_S

SYNCED: dict[str, Any] = {
    "file_sync_level": 2,
    "archive_settings": {"file_sync_level": 2, "catalog_file_sync_level": 2},
}


class Keeps(ClusteredService):
    def __init__(self) -> None:
        self.items: list[bytes] = []

    def on_session_message(self, session: Any, timestamp: int, message: bytes, position: int) -> None:
        self.items.append(bytes(message))
        if session is not None:
            session.offer(b", ".join(self.items))


def answered(node: ClusterNode, message: bytes) -> bytes:
    with node.connect() as client:
        client.offer_blocking(message, timeout_s=TIMEOUT_S)
        found = client.receive(timeout_s=TIMEOUT_S)
        assert found is not None
        return found.payload


def term(number: int, base: int, end: int = NULL_VALUE) -> Entry:
    return Entry(
        recording_id=7,
        leadership_term_id=number,
        term_base_log_position=base,
        log_position=end,
        timestamp=0,
        type=EntryType.TERM,
    )


def snapshot(term_id: int, base: int, position: int, service_id: int = NULL_VALUE) -> Entry:
    return dataclasses.replace(
        term(term_id, base, position), type=EntryType.SNAPSHOT, service_id=service_id, recording_id=8
    )


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RecordingLog]:
    with RecordingLog(DirectoryStorage(tmp_path)) as made:
        made.append_term(7, 0, 0, 0)
        made.append_term(7, 1, 512, 0)
        for service_id in (0, NULL_VALUE):
            made.append_snapshot(snapshot(1, 512, 640, service_id))
        for service_id in (0, NULL_VALUE):
            made.append_snapshot(snapshot(1, 512, 896, service_id))
        made.append_term(7, 2, 1024, 0)
        yield made


@pytest.mark.parametrize(
    ("entries", "end", "told"),
    [
        ([term(0, 0, 512), term(1, 512)], 512, None),
        ([term(0, 0, 512), term(1, 512)], 4096, None),
        ([term(0, 0, 512)], 511, "term 0 ended at position 512"),
        ([term(0, 0), term(1, 512)], 300, "term 1 began at position 512"),
        ([term(0, 0), snapshot(0, 0, 640)], 600, "a snapshot was taken at position 640"),
        ([term(0, 0), dataclasses.replace(snapshot(0, 0, 640), is_valid=False)], 600, None),
    ],
)
def test_what_is_missing_is_named(entries: list[Entry], end: int, told: str | None) -> None:
    missing = find_shortfall(entries, end)
    if told is None:
        assert missing is None
    else:
        assert told in str(missing)
        assert f"the archive has the log up to position {end} only" in str(missing)


def test_what_a_power_failure_took_is_taken_back(log: RecordingLog) -> None:
    log.cut_back(700)
    assert find_shortfall(log, 700) is None
    assert [(one.leadership_term_id, one.log_position) for one in log if one.is_term] == [(0, 512), (1, -1)]
    assert [one.log_position for one in log.latest_snapshot(1)] == [640, 640]
    # The next term begins where the log ends now.
    log.ensure_coherent(7, None, term(3, 700))
    found = [(one.leadership_term_id, one.term_base_log_position) for one in log if one.is_term]
    assert found == [(0, 0), (1, 512), (2, 700), (3, 700)]


def test_no_begin_of_a_term_is_made_up(log: RecordingLog) -> None:
    log.commit_log_position(2, 2048)
    before = list(log)
    with pytest.raises(
        ClusterFileError, match="term 2 ended at position 2048, and term 3 is to begin at 1500"
    ):
        log.ensure_coherent(7, None, term(3, 1500))
    assert list(log) == before


def test_a_node_that_closes_notes_where_its_term_ends(tmp_path: Path) -> None:
    with ClusterNode(Keeps(), directory=tmp_path) as node:
        answered(node, b"one")
    with RecordingLog(DirectoryStorage(tmp_path / "cluster"), read_only=True) as log:
        assert log.last_term is not None
        assert log.last_term.log_position > 0
    with ClusterNode(Keeps(), directory=tmp_path) as node:
        assert answered(node, b"two") == b"one, two"


def test_an_older_archive_is_refused_by_name_and_nothing_is_written_over_it(tmp_path: Path) -> None:
    directory = tmp_path / "node"
    with ClusterNode(Keeps(), directory=directory, **SYNCED) as node:
        answered(node, b"old")
    shutil.copytree(directory / "archive", tmp_path / "older")
    with ClusterNode(Keeps(), directory=directory, **SYNCED) as node:
        answered(node, b"new")
    (directory / "archive").rename(tmp_path / "newer")
    (tmp_path / "older").rename(directory / "archive")
    before = (directory / "cluster" / RECORDING_LOG_NAME).read_bytes()
    with (
        ClusterNode(Keeps(), directory=directory, **SYNCED) as node,
        pytest.raises(ClusterError, match="only, but term 1 ended at position"),
    ):
        node.wait_until_leader(TIMEOUT_S)
    assert (directory / "cluster" / RECORDING_LOG_NAME).read_bytes() == before
    # The right one is taken as before.
    shutil.rmtree(directory / "archive")
    (tmp_path / "newer").rename(directory / "archive")
    with ClusterNode(Keeps(), directory=directory, **SYNCED) as node:
        assert answered(node, b"newest") == b"old, new, newest"
