"""A member's directory: its mark file, and the commands that look at it and change it."""

import dataclasses
import json
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace._agent.storage import DirectoryStorage
from headrace.cli.app import app
from headrace.clock import SYSTEM_CLOCK
from headrace.cluster.errors import ClusterFileError
from headrace.cluster.files.directory import ClusterDirectory
from headrace.cluster.files.mark_file import MARK_NAME, ClusterComponentType, ClusterMarkFile
from headrace.cluster.files.recording_log import RECORDING_LOG_NAME, RecordingLog
from headrace.testing import ManualClock
from tests.cluster.test_mark_file import FIELDS
from tests.cluster.test_recording_log import TIME, add_snapshot, snapshot

NOW_MS = 1_700_000_000_000
TEXTS = ("/dev/shm/aeron", "aeron:ipc", "aeron:udp", "", "some.Supplier", "/services")
LINK_NAME = "cluster-mark.lnk"


def mark(directory: Path, activity_ms: int = -1, texts: Sequence[str] = TEXTS) -> bytes:
    """Write the mark file of a consensus module."""
    fields = struct.pack(
        "<iiqqqqiiiiiiiii", 768, 1, activity_ms, NOW_MS, 4711, -1, 10, 104, 105, 101, 2, -1, 8192, 1 << 20, 7
    )
    data = (struct.pack("<HHHH", 128, 200, 110, 2) + fields).ljust(136, b"\0")
    for text in texts:
        data += struct.pack("<I", len(text)) + text.encode()
    (directory / MARK_NAME).write_bytes(data.ljust(8192 + 4096, b"\0"))
    return data


def make_log(directory: Path) -> None:
    with RecordingLog(DirectoryStorage(directory)) as log:
        log.append_term(7, 0, 0, TIME)
        add_snapshot(log, 10, 0, 0, 640)
        log.append_term(7, 1, 1024, TIME)


def run(*args: str, answer: str = "") -> Result:
    return CliRunner().invoke(app, ["cluster", *args], input=answer, catch_exceptions=False)


def test_a_mark_file_is_described(tmp_path: Path) -> None:
    mark(tmp_path)
    described = json.loads(run("describe", str(tmp_path), "--json").output)
    assert described["component"] == "CONSENSUS_MODULE"
    assert (described["pid"], described["member_id"], described["cluster_id"]) == (4711, 2, 7)
    assert described["services_cluster_directory"] == "/services"
    assert run("pid", str(tmp_path)).output == "4711\n"
    assert "services_cluster_directory" in run("describe", str(tmp_path)).output


def test_texts_of_strangers_are_text(tmp_path: Path) -> None:
    texts = ("/tmp/[/x]", "[red]aeron:ipc", "\x1b[2Jaeron", ":100:", *TEXTS[4:])
    mark(tmp_path, texts=texts)
    make_log(tmp_path)
    with RecordingLog(DirectoryStorage(tmp_path)) as log:
        log.append_snapshot(snapshot(12, 1, 1024, 2048, endpoint="[/x]\x1b[2J:100:" + 100 * "e"))
    described, listed = run("describe", str(tmp_path)).output, run("recording-log", str(tmp_path)).output
    for shown in (*texts[:2], "\u241b[2Jaeron", *texts[3:]):
        assert shown in described
    assert "[/x]\u241b[2J:100:" + 100 * "e" in listed
    assert "\x1b" not in described + listed


def test_a_link_leads_to_the_mark_file(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    mark(elsewhere)
    (tmp_path / LINK_NAME).write_text(str(elsewhere))
    assert ClusterDirectory(tmp_path).mark().pid == 4711


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("{}/nowhere/deep", "nowhere/deep/cluster-mark.dat does not exist: no member has run"),
        ("", "cluster-mark.lnk: '' is not the path of a directory"),
        ("{}\0{}", "is not the path of a directory"),
        ("{}/file", "file/cluster-mark.dat"),
    ],
)
def test_a_link_that_leads_nowhere_is_told_and_nothing_is_made(tmp_path: Path, link: str, said: str) -> None:
    (tmp_path / LINK_NAME).write_text(link.format(tmp_path, tmp_path))
    (tmp_path / "file").write_text("")
    result = run("describe", str(tmp_path))
    assert result.exit_code == (0 if "no member has run" in said else 255)
    assert said in result.output
    assert sorted(one.name for one in tmp_path.iterdir()) == [LINK_NAME, "file"]


def test_a_directory_that_is_looked_at_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(ClusterFileError, match="does not exist"):
        ClusterDirectory(tmp_path / "nowhere").mark()
    with pytest.raises(ClusterFileError, match="does not exist"):
        ClusterDirectory(tmp_path / "nowhere").recording_log()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("length", [0, 8, 135])
def test_a_mark_file_that_is_too_short_is_refused(tmp_path: Path, length: int) -> None:
    (tmp_path / MARK_NAME).write_bytes(mark(tmp_path)[:length])
    with pytest.raises(ClusterFileError, match=f"length={length} is below the 136 bytes"):
        ClusterDirectory(tmp_path).mark()


def test_another_file_is_no_mark_file(tmp_path: Path) -> None:
    data = bytearray(mark(tmp_path).ljust(8192, b"\0"))
    data[4] = 100
    (tmp_path / MARK_NAME).write_bytes(data)
    with pytest.raises(ClusterFileError, match="template=200 schema=100 where 200 and 110"):
        ClusterDirectory(tmp_path).mark()
    data[4], data[136:140] = 110, b"\xff\xff\xff\x7f"
    (tmp_path / MARK_NAME).write_bytes(data)
    with pytest.raises(ClusterFileError, match="text of length=2147483647 at offset=136"):
        ClusterDirectory(tmp_path).mark()


def test_files_of_another_version_are_neither_read_nor_changed(tmp_path: Path) -> None:
    make_log(tmp_path)
    data = bytearray(mark(tmp_path).ljust(8192, b"\0"))
    data[8:12] = (2 << 16).to_bytes(4, "little")
    (tmp_path / MARK_NAME).write_bytes(data)
    before = (tmp_path / RECORDING_LOG_NAME).read_bytes()
    for args in (["describe"], ["pid"], ["is-leader"], ["list-members"], ["seed", "-y"]):
        result = run(*args, str(tmp_path))
        assert result.exit_code == 255
        assert "cluster-mark.dat: the file has version 2.0.0, and 0.x is read here" in result.output
    assert (tmp_path / RECORDING_LOG_NAME).read_bytes() == before


def test_the_log_of_a_member_that_runs_is_not_changed(tmp_path: Path) -> None:
    make_log(tmp_path)
    clock = ManualClock()
    now_ms = clock.epoch_ms()
    mark(tmp_path, now_ms)
    with (
        pytest.raises(ClusterFileError, match="pid=4711 runs a CONSENSUS_MODULE"),
        ClusterDirectory(tmp_path, clock=clock).changed_recording_log(),
    ):
        pass
    clock.advance(10.001)
    with ClusterDirectory(tmp_path, clock=clock).changed_recording_log() as log:
        assert len(log) == 5
    with ClusterDirectory(tmp_path, clock=clock).recording_log() as log:
        assert len(log) == 5


def test_a_lock_keeps_the_log_of_a_member_that_stands_still(tmp_path: Path) -> None:
    """One that was stopped for long writes into its files when it goes on; one that was killed does not."""
    make_log(tmp_path)
    fields = dataclasses.replace(FIELDS, component_type=ClusterComponentType.CONSENSUS_MODULE)
    member = ClusterMarkFile(DirectoryStorage(tmp_path), MARK_NAME, fields, NOW_MS)
    member.ready(NOW_MS)
    with (
        pytest.raises(ClusterFileError, match=f"locked by pid={fields.pid}, which runs a CONSENSUS_MODULE"),
        ClusterDirectory(tmp_path).changed_recording_log(),
    ):
        pass
    member.update(SYSTEM_CLOCK.epoch_ms())
    member.forget()
    with (
        ClusterDirectory(tmp_path).changed_recording_log(),
        pytest.raises(ClusterFileError, match="active mark file"),
    ):
        ClusterMarkFile(DirectoryStorage(tmp_path), MARK_NAME, fields, NOW_MS)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    for args in (["recording-log"], ["sort"], ["seed", "-y"], ["invalidate-latest-snapshot", "-y"]):
        result = run(*args, str(tmp_path))
        assert result.exit_code == 255
        assert str(tmp_path / RECORDING_LOG_NAME) in result.output
        assert list(tmp_path.iterdir()) == []


def test_terms_and_snapshots_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_log(tmp_path)
    lines = [json.loads(line) for line in run("recording-log", str(tmp_path), "--json").output.splitlines()]
    assert [(one["type"], one["service_id"]) for one in lines] == [
        ("TERM", -1),
        ("SNAPSHOT", 1),
        ("SNAPSHOT", 0),
        ("SNAPSHOT", -1),
        ("TERM", -1),
    ]
    (line,) = run("recording-log", str(tmp_path)).output.splitlines()
    assert line.startswith("RecordingLog{entries=[Entry{recordingId=7, leadershipTermId=0, ")
    assert line.endswith("isValid=true, entryIndex=4}], cacheIndex={0=0, 1=4}}")
    monkeypatch.setattr("headrace.cli.cluster.recording_log.is_for_a_person", lambda: True)
    table = run("recording-log", str(tmp_path)).output.splitlines()
    assert len(table) == 6
    assert "open" in table[-1]


def test_a_dry_run_and_a_no_change_nothing(tmp_path: Path) -> None:
    make_log(tmp_path)
    # What a kill left of a record that was being appended.
    before = (tmp_path / RECORDING_LOG_NAME).read_bytes() + b"torn"
    (tmp_path / RECORDING_LOG_NAME).write_bytes(before)
    where = "the snapshot at position 640 of term 0"
    assert run("invalidate-latest-snapshot", str(tmp_path), "-n").output == (
        f"would invalidate {where}; the next start replays the log from position 0\n"
    )
    assert run("seed", str(tmp_path), "-n").output == (
        f"the next start would begin a new log from {where}, without the messages after it\n"
    )
    assert run("invalidate-latest-snapshot", str(tmp_path), answer="n\n").exit_code == 255
    assert run("seed", str(tmp_path), answer="n\n").exit_code == 255
    assert run("sort", str(tmp_path)).exit_code == 255
    assert (tmp_path / RECORDING_LOG_NAME).read_bytes() == before


@pytest.mark.parametrize("command", ["seed", "invalidate-latest-snapshot"])
@pytest.mark.parametrize(
    ("meanwhile", "said"),
    [
        (lambda directory: mark(directory, SYSTEM_CLOCK.epoch_ms()), "pid=4711 runs a CONSENSUS_MODULE"),
        (lambda directory: take_a_snapshot(directory), "another latest snapshot now; nothing was changed"),
    ],
)
def test_a_member_that_ran_while_a_person_was_asked_keeps_its_log(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    meanwhile: Callable[[Path], object],
    said: str,
) -> None:
    make_log(tmp_path)
    after = []

    def confirm(question: str, *, is_confirmed: bool) -> None:
        meanwhile(tmp_path)
        after.append((tmp_path / RECORDING_LOG_NAME).read_bytes())

    monkeypatch.setattr("headrace.cli.cluster.recording_log.confirm", confirm)
    result = run(command, str(tmp_path))
    assert result.exit_code == 255
    assert said in result.output
    assert [(tmp_path / RECORDING_LOG_NAME).read_bytes()] == after


def take_a_snapshot(directory: Path) -> None:
    with RecordingLog(DirectoryStorage(directory)) as log:
        add_snapshot(log, 20, 1, 1024, 2048)


def test_a_snapshot_is_invalidated_and_then_there_is_none(tmp_path: Path) -> None:
    make_log(tmp_path)
    assert run("invalidate-latest-snapshot", str(tmp_path), "-y").exit_code == 0
    assert run("recording-log", str(tmp_path)).output.count("isValid=false") == 3
    again = run("invalidate-latest-snapshot", str(tmp_path), "-y")
    assert again.exit_code == 255
    assert "has no snapshot; nothing was changed" in again.output


def test_a_log_is_seeded(tmp_path: Path) -> None:
    make_log(tmp_path)
    before = (tmp_path / RECORDING_LOG_NAME).read_bytes()
    assert "has 3 entries" in run("seed", str(tmp_path), "-y").output
    assert (tmp_path / "recording.log.bak").read_bytes() == before
    again = run("seed", str(tmp_path), "-y")
    assert again.exit_code == 255
    assert "already has only a snapshot at position 0; nothing was changed" in again.output
    with ClusterDirectory(tmp_path).changed_recording_log() as log:
        assert log.seed_from_latest_snapshot() == 3
    assert (tmp_path / "recording.log.bak").read_bytes() == before
    assert run("recording-log", str(tmp_path)).output.count("Entry{") == 3
