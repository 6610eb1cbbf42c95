"""Directories of a node whose parts do not belong together, or of which parts are gone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from headrace.archive.client import calls
from headrace.cluster import (
    ClusterError,
    ClusterNode,
)
from tests.cluster.test_node import Total, sums
from tests.helpers import TIMEOUT_S


def test_a_log_whose_archive_was_deleted_is_named_with_what_to_do(tmp_path: Path) -> None:
    with ClusterNode(Total(), directory=tmp_path) as node:
        assert sums(node, 1) == [1]
    shutil.rmtree(tmp_path / "archive")
    with ClusterNode(Total(), directory=tmp_path) as node, pytest.raises(ClusterError) as told:
        node.wait_until_leader(TIMEOUT_S)
    assert "recording.log: the archive has no recording 0, which holds the log up to term 0" in str(
        told.value
    )
    assert "Restore the archive's directory" in str(told.value)


@pytest.mark.parametrize("lives", [1, 2])
def test_the_log_of_another_cluster_is_refused_and_nothing_of_it_is_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lives: int
) -> None:
    """Both archives number their first recording 0, so that the number says nothing; and it may be active."""
    stopped: list[int] = []
    stop = calls.stop_recording_by_id
    monkeypatch.setattr(
        calls, "stop_recording_by_id", lambda number: (stopped.append(number), stop(number))[1]
    )
    for name in ("own", "other"):
        for life in range(lives):
            with ClusterNode(Total(), directory=tmp_path / name) as node:
                assert sums(node, 1) == [life + 1]
    for name in ("own", "other"):
        (tmp_path / name / "archive").rename(tmp_path / f"archive-{name}")
    (tmp_path / "archive-other").rename(tmp_path / "own" / "archive")
    stopped.clear()
    with ClusterNode(Total(), directory=tmp_path / "own") as node, pytest.raises(ClusterError) as told:
        node.wait_until_leader(TIMEOUT_S)
    assert "recording 0 of the archive is not the log of" in str(told.value)
    assert "Start the archive on the directory that belongs to this cluster's" in str(told.value)
    assert stopped == []
    # The right one is taken as before.
    shutil.rmtree(tmp_path / "own" / "archive")
    (tmp_path / "archive-own").rename(tmp_path / "own" / "archive")
    with ClusterNode(Total(), directory=tmp_path / "own") as node:
        assert sums(node, 1) == [lives + 1]


def test_what_an_older_archive_lacks_of_the_log_is_told(tmp_path: Path) -> None:
    for life in range(3):
        with ClusterNode(Total(), directory=tmp_path) as node:
            assert sums(node, 1) == [life + 1]
        if life == 0:
            shutil.copytree(tmp_path / "archive", tmp_path / "older")
    shutil.rmtree(tmp_path / "archive")
    (tmp_path / "older").rename(tmp_path / "archive")
    errors: list[str] = []
    with ClusterNode(Total(), directory=tmp_path, on_error=errors.append) as node:
        node.wait_until_leader(TIMEOUT_S)
    (told,) = errors
    assert "the archive has the log up to position " in told
    assert "only, but term 2 ended at position " in told
    assert "restore both from one copy" in told


@pytest.mark.parametrize("bit", [17, 30, 62])
def test_a_vote_for_a_term_that_cannot_be_is_refused(tmp_path: Path, bit: int) -> None:
    """The terms up to it would be filled into the recording log, one by one."""
    with ClusterNode(Total(), directory=tmp_path) as node:
        assert sums(node, 1) == [1]
    path = tmp_path / "cluster" / "node-state.dat"
    data = bytearray(path.read_bytes())
    data[24 + bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    with ClusterNode(Total(), directory=tmp_path) as node, pytest.raises(ClusterError) as told:
        node.wait_until_leader(TIMEOUT_S)
    assert f"{path}: the last vote was for term {1 << bit}" in str(told.value)
    path.unlink()
    with ClusterNode(Total(), directory=tmp_path) as node:
        assert sums(node, 1) == [2]


@pytest.mark.parametrize("is_deleted_by_hand", [False, True])
def test_a_new_cluster_begins_where_an_old_one_was_deleted(
    tmp_path: Path, *, is_deleted_by_hand: bool
) -> None:
    """The mark file stays, and what it says of the old log is over."""
    with ClusterNode(Total(), directory=tmp_path) as node:
        assert sums(node, 1) == [1]
    settings: dict[str, Any] = {}
    if is_deleted_by_hand:
        shutil.rmtree(tmp_path / "archive")
        (tmp_path / "cluster" / "recording.log").unlink()
    else:
        settings = {
            "directory_delete_on_start": True,
            "archive_settings": {"directory_delete_on_start": True},
        }
    with ClusterNode(Total(), directory=tmp_path, **settings) as node:
        assert sums(node, 1, 2) == [1, 3]
    with ClusterNode(Total(), directory=tmp_path) as node:
        assert sums(node, 4) == [7]


def test_a_directory_that_was_another_members_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ClusterNode(Total(), directory=tmp_path, cluster_id=3) as node:
        assert sums(node, 1) == [1]
    with ClusterNode(Total(), directory=tmp_path, cluster_id=4) as node:
        assert sums(node, 1) == [2]
    assert (
        "the directory belonged to cluster_id=3 member_id=0, and now belongs to cluster_id=4" in caplog.text
    )


def test_the_directories_of_a_new_node_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced, force = set[str](), os.fsync

    def noting(descriptor: int) -> None:
        forced.add(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        force(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    directory = tmp_path / "data" / "node"
    with ClusterNode(Total(), directory=directory) as node:
        assert sums(node, 1) == [1]
    holders = [directory / "cluster", directory / "archive", directory, directory.parent, tmp_path]
    assert [str(holder) for holder in holders if str(holder) not in forced] == []
