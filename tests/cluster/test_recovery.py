"""What a member begins with."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace._agent.storage import DirectoryStorage
from headrace.archive.files.catalog import Catalog
from headrace.cli.app import app
from headrace.cluster.errors import ClusterFileError
from headrace.cluster.files.recording_log import RecordingLog
from headrace.cluster.files.recovery_plan import recovery_plan
from tests.archive.streams import descriptor
from tests.cluster.test_recording_log import LOG_ID, TIME, add_snapshot, opened

LOG = descriptor().replace(recording_id=LOG_ID, start_position=0, stop_position=8192)


def plan(log: RecordingLog, service_count: int = 2):
    return recovery_plan(log, service_count, lambda recording_id: LOG if recording_id == LOG_ID else None)


def test_a_new_member_begins_with_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        found = plan(log)
    assert (found.last_leadership_term_id, found.last_term_base_log_position) == (-1, 0)
    assert (found.appended_log_position, found.committed_log_position) == (0, 0)
    assert (found.snapshots, found.log) == ((), None)


def test_the_log_is_replayed_from_the_snapshot(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append_term(LOG_ID, 0, 0, TIME)
        add_snapshot(log, 10, 0, 0, 640)
        log.append_term(LOG_ID, 1, 1024, TIME)
        found = plan(log)
        assert found.log is not None
        assert (found.log.start_position, found.log.stop_position, found.log.log_position) == (640, 8192, -1)
        assert [one.recording_id for one in found.snapshots] == [12, 11, 10]
        assert (found.last_leadership_term_id, found.last_term_base_log_position) == (1, 1024)
        assert (found.appended_log_position, found.committed_log_position) == (8192, 640)
        log.commit_log_position(1, 4096)
        assert plan(log).committed_log_position == 4096
        log.invalidate_latest_snapshot()
        found = plan(log)
        assert found.snapshots == ()
        assert found.log is not None
        assert found.log.start_position == LOG.start_position


def test_a_seed_begins_a_new_log(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append_term(LOG_ID, 3, 0, TIME)
        add_snapshot(log, 10, 3, 0, 640)
        log.seed_from_latest_snapshot()
        found = plan(log)
    assert found.log is None
    assert (found.last_leadership_term_id, found.appended_log_position) == (3, 0)
    assert [one.recording_id for one in found.snapshots] == [12, 11, 10]


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append_term(LOG_ID, 2, 0, TIME)
        with pytest.raises(
            ClusterFileError, match=f"no recording {LOG_ID}, which holds the log up to term 2"
        ):
            recovery_plan(log, 0, lambda _: None)
        add_snapshot(log, 10, 2, 0, 640)
        with pytest.raises(ClusterFileError, match="snapshot missing for service"):
            plan(log, service_count=4)
        with pytest.raises(
            ClusterFileError, match="at log_position=640 is of 2 services, and service_count=3"
        ):
            plan(log, service_count=3)


def test_the_command_shows_the_plan(tmp_path: Path) -> None:
    cluster, archive = tmp_path / "cluster", tmp_path / "archive"
    cluster.mkdir()
    catalog = Catalog(DirectoryStorage(archive))
    recording_id = catalog.add(LOG)
    catalog.close()
    with opened(cluster) as log:
        log.append_term(recording_id, 0, 0, TIME)
        add_snapshot(log, 10, 0, 0, 640)
    command = ["cluster", "recovery-plan", str(cluster), "2", "-a", str(archive)]
    shown = CliRunner().invoke(app, command, catch_exceptions=False).output
    assert "recording 12, recording 11, recording 10" in shown
    found = json.loads(CliRunner().invoke(app, [*command, "--json"], catch_exceptions=False).output)
    assert (found["log"]["start_position"], found["appended_log_position"]) == (640, 8192)


def test_a_snapshot_that_a_start_cannot_do_without_is_not_invalidated(tmp_path: Path) -> None:
    """The archive, which the command finds beside the directory, says where the log begins."""
    cluster = tmp_path / "cluster"
    cluster.mkdir()
    catalog = Catalog(DirectoryStorage(tmp_path / "archive"))
    recording_id = catalog.add(LOG.replace(start_position=2048))
    catalog.close()
    with opened(cluster) as log:
        log.append_term(recording_id, 0, 0, TIME)
        for first, position in ((10, 1024), (20, 4096), (30, 6144)):
            add_snapshot(log, first, 0, 0, position)
    command = ["cluster", "invalidate-latest-snapshot", str(cluster)]

    def told(*words: str, status: int = 0) -> str:
        done = CliRunner().invoke(app, [*command, *words], catch_exceptions=False)
        assert done.exit_code == status, done.output
        return done.output

    then = "the next start replays the log from position 4096\n"
    assert told("-n") == f"would invalidate the snapshot at position 6144 of term 0; {then}"
    assert told("-y") == (
        f" invalidate latest snapshot: true\nthe snapshot at position 6144 of term 0 is invalid now; {then}"
    )
    refusal = told("-y", status=255)
    assert "needs the log from position 1024 on" in refusal
    assert "has it from position 2048 on only; nothing was changed" in refusal
    with opened(cluster) as log:
        assert log.latest_snapshot(0)[0].log_position == 4096
    # Where no archive is found, a person is told what the start will need.
    (tmp_path / "archive").rename(tmp_path / "elsewhere")
    assert "replays the log from position 1024" in told("-y")
