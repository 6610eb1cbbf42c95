"""A directory that a test leaves is found, with the test and the files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from tests import leftovers
from tests.leftovers import TestDirectories


@pytest.fixture
def directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestDirectories:
    for name in ("AERON_DIR", "SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS", "MAVEN_OPTS"):
        monkeypatch.setenv(name, "")
    for name in ("temporary", "memory"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(leftovers, "SHARED_MEMORY", tmp_path / "memory")
    monkeypatch.setattr(leftovers, "_TIDY_UP_S", 0.0)
    directories = TestDirectories()
    directories.open()
    return directories


def test_what_a_test_leaves_is_told_with_the_test_and_the_files(directories: TestDirectories) -> None:
    driver = Path(os.environ["AERON_DIR"] + "-1")
    directories.after("first")
    (driver / "waiters").mkdir(parents=True)
    directories.after("second")
    (driver / "waiters" / "00").touch()
    directories.after("third")
    assert [str(left) for left in directories.close(keep=False)] == [
        f"{driver}, there since second, with waiters/00"
    ]
    assert not driver.exists()


def test_what_is_removed_in_time_is_not_left(directories: TestDirectories) -> None:
    made = Path(tempfile.mkdtemp())
    directories.after("first")
    made.rmdir()
    assert directories.close(keep=False) == []


def test_what_other_programs_leave_is_removed_and_not_told(directories: TestDirectories) -> None:
    made = Path(tempfile.mkdtemp(prefix="hsperfdata_"))
    assert directories.close(keep=False) == []
    assert not made.exists()


def test_a_benchmarks_driver_directory_is_removed_too(directories: TestDirectories) -> None:
    made = leftovers.SHARED_MEMORY / f"headrace-bench-{os.getpid()}-pong"
    made.mkdir()
    directories.after("pong")
    assert [left.test for left in directories.close(keep=False)] == ["pong"]
    assert not made.exists()
