"""`headrace archive`: looking at files, and asking a running archive."""

import errno
import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches.processes import ROOT, fresh_directory
from rich.console import Console
from rich.text import Text

import headrace
from headrace._agent.storage import StorageFile
from headrace.archive import Catalog, DirectoryStorage, RecordingSignal
from headrace.tools.views.recordings import ListedRecording, recordings_table
from tests.golden.archive import MESSAGE_COUNTS, unpack
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.system

CHANNEL = "aeron:ipc?term-length=64k"
LINES = [f"line {number}" for number in range(500)]


def run(*args: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself."""
    command = [sys.executable, "-m", "headrace", "archive", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=ROOT)
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.fixture
def archiving(tmp_path: Path) -> Iterator[headrace.ArchivingMediaDriver]:
    """A running archive with one recording."""
    with headrace.ArchivingMediaDriver.embedded(archive_directory=tmp_path / "archive") as archiving:
        with archiving.connect_archive() as archive:
            with archive.add_recorded_publication("aeron:ipc?term-length=64k", 1001) as publication:
                for line in LINES:
                    publication.offer_blocking(line.encode())
            archive.await_signal(RecordingSignal.STOP)
        yield archiving


def test_files_are_read_while_the_archive_runs(archiving: headrace.ArchivingMediaDriver) -> None:
    """list, describe, dump and verify; --json gives one object a line."""
    directory = archiving.archive.directory
    assert "VALID" in run("list", "-a", directory).stdout
    (recording,) = [json.loads(line) for line in run("list", "-a", directory, "--json").stdout.splitlines()]
    assert (recording["recording_id"], recording["stop_position"]) == (0, 64 * len(LINES))
    described = run("describe", "-a", directory).stdout
    assert f"aeron_directory: {archiving.directory}" in described.replace("\n", "")
    frames = [
        json.loads(line) for line in run("dump", 0, "-a", directory, "-n", 3, "--json").stdout.splitlines()
    ]
    assert [bytes.fromhex(frame["payload"]).decode() for frame in frames] == LINES[:3]
    assert "recording 0: OK" in run("verify", "-a", directory, "--thorough").stdout


def test_what_is_wrong_is_said_and_shown_in_the_status(
    archiving: headrace.ArchivingMediaDriver, tmp_path: Path
) -> None:
    """An unknown recording, a directory without an archive, a damaged file."""
    directory = Path(archiving.archive.directory)
    assert "unknown recording_id=9" in run("describe", 9, "-a", directory, status=1).stderr
    assert "there is no catalog" in run("list", "-a", tmp_path / "nowhere", status=1).stderr
    assert "UNKNOWN_RECORDING" in run("replay", 9, "-d", archiving.directory, status=1).stderr
    path = directory / "0-0.rec"
    data = bytearray(path.read_bytes())
    data[64 + 16] ^= 1
    path.write_bytes(data)
    found = run("verify", "-a", directory, status=1).stdout
    assert "recording 0: ERROR" in found
    assert "position=64" in found


WRONG_POSITIONS = {
    -64: "positions from 0 to 32000",
    33: "multiples of 32",
    32: "the frame at position=32",
    64_000: "positions from 0 to 32000",
}


@pytest.mark.parametrize("position", WRONG_POSITIONS)
def test_a_dump_from_where_no_frame_begins_says_so(
    archiving: headrace.ArchivingMediaDriver, position: int
) -> None:
    """In a line; nothing is printed that is not a frame."""
    done = run("dump", 0, "-a", archiving.archive.directory, "--from", position, status=1)
    assert done.stdout == ""
    assert WRONG_POSITIONS[position] in done.stderr
    assert done.stderr.count("\n") == 1


def test_files_are_not_repaired_under_a_running_archive(
    archiving: headrace.ArchivingMediaDriver, tmp_path: Path
) -> None:
    """It would be told nothing of it. A directory without a catalog is no archive, and is not made one."""
    directory = Path(archiving.archive.directory)
    before = (directory / "archive.catalog").read_bytes()
    assert "another archive is running" in run("verify", "-a", directory, "--repair", status=1).stderr
    assert (directory / "archive.catalog").read_bytes() == before
    archiving.close()
    assert "recording 0: OK" in run("verify", "-a", directory, "--repair").stdout
    (tmp_path / "empty").mkdir()
    assert "there is no catalog" in run("verify", "-a", tmp_path / "empty", "--repair", status=1).stderr
    assert list((tmp_path / "empty").iterdir()) == []
    (tmp_path / "file").touch()
    assert "is a file and not a directory" in run("-a", tmp_path / "file", status=1).stderr


def test_a_mark_file_elsewhere_is_found_by_its_link(tmp_path: Path) -> None:
    """As the specification has it, for looking and for keeping off."""
    with headrace.ArchivingMediaDriver.embedded(
        archive_directory=tmp_path / "a", mark_file_directory=tmp_path / "marks"
    ):
        assert "archive_id: " in run("describe", "-a", tmp_path / "a").stdout
        assert (
            "another archive is running" in run("verify", "-a", tmp_path / "a", "--repair", status=1).stderr
        )


def test_a_directory_of_an_older_layout_is_migrated(tmp_path: Path) -> None:
    """Other commands name the one that does it; it asks, does it, and then finds nothing to do."""
    unpack("1.0.0", tmp_path)
    assert "`headrace archive migrate`" in run("list", "-a", tmp_path, status=1).stderr
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    planned = run("migrate", "-a", tmp_path, "--dry-run").stdout
    assert "  1-262144.rec -> 1-327680.rec\n" in planned
    assert planned.endswith("would migrate from version 1.0.0 to 3.1.0\n")
    assert "not confirmed" in run("migrate", "-a", tmp_path, status=1).stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    done = json.loads(run("migrate", "-a", tmp_path, "--yes", "--json").stdout)["upgrade"]
    assert done["recording_ids"] == [*MESSAGE_COUNTS]
    assert run("count", "-a", tmp_path).stdout == f"{len(MESSAGE_COUNTS)}\n"
    assert run("migrate", "-a", tmp_path).stdout == "version 3.1.0: nothing to migrate\n"


def test_an_operator_looks_after_a_directory(archiving: headrace.ArchivingMediaDriver) -> None:
    """Looking works while the archive runs; changing does not, and asks before it deletes."""
    directory = archiving.archive.directory
    assert run("count", "-a", directory).stdout == "1\n"
    assert run("pid", "-a", directory).stdout == f"{os.getpid()}\n"
    capacity = int(run("capacity", "-a", directory).stdout)
    assert run("migrate", "-a", directory).stdout == "version 3.1.0: nothing to migrate\n"
    errors = [json.loads(line) for line in run("errors", "-a", directory, "--json").stdout.splitlines()]
    assert [one["source"] for one in errors] == ["archive", "driver"]
    assert json.loads(run("compact", "-a", directory, "--dry-run", "--json").stdout)["files"] == []
    for change in (
        ["mark-invalid", 0],
        ["checksum", "CRC-32"],
        ["capacity", capacity + 1],
        ["compact", "--yes"],
        ["delete-orphaned-segments", "--yes"],
    ):
        assert "another archive is running" in run(*change, "-a", directory, status=1).stderr
    archiving.close()
    assert run("capacity", capacity + 64, "-a", directory).stdout == f"{capacity + 64}\n"
    assert "have checksums" in run("checksum", "CRC-32", "-a", directory).stdout
    assert "OK" in run("verify", "--checksum", "CRC-32", "-a", directory).stdout
    (Path(directory) / "0-x.rec").touch()
    assert (
        run("delete-orphaned-segments", 0, "-y", "-a", directory).stdout
        == "  0-x.rec\ndeleted 1 file with 0 B\n"
    )
    assert run("mark-invalid", 0, "-a", directory).stdout == "recording 0 is INVALID\n"
    assert run("count", "-a", directory).stdout == "0\n"
    would = run("compact", "-n", "-a", directory).stdout
    assert "  0-0.rec\n" in would
    assert "would delete 1 recording and 1 file with" in would
    refused = run("compact", "-a", directory, status=1)
    assert "delete 1 recording and 1 file" in refused.stdout
    assert "not confirmed; nothing was changed" in refused.stderr
    assert (Path(directory) / "0-0.rec").exists()
    assert run("mark-valid", 0, "-a", directory).stdout == "recording 0 is VALID\n"
    run("mark-invalid", 0, "-a", directory)
    assert "deleted 1 recording and 1 file with" in run("compact", "-y", "-a", directory).stdout
    assert not (Path(directory) / "0-0.rec").exists()
    assert run("compact", "-a", directory).stdout == "deleted 0 files with 0 B\n"
    assert run("delete-orphaned-segments", "-y", "-a", directory).stdout == "deleted 0 files with 0 B\n"
    assert "unknown recording_id=5" in run("delete-orphaned-segments", 5, "-a", directory, status=1).stderr
    assert "unknown recording_id=9" in run("mark-valid", 9, "-a", directory, status=1).stderr


def test_the_status_tells_scripts_whether_an_error_is_noted(
    archiving: headrace.ArchivingMediaDriver,
) -> None:
    """Of the archive: here that a replay found its segment file gone."""
    where = ("-a", archiving.archive.directory)
    assert run("errors", "--exit-code", *where).returncode == 0
    (Path(archiving.archive.directory) / "0-0.rec").unlink()
    with archiving.connect_archive() as archive, pytest.raises(headrace.ArchiveError):
        list(archive.replay(0))
    assert "0-0.rec" in run("errors", "--exit-code", *where, status=4).stdout
    assert run("errors", *where).returncode == 0


class FullAfterOneSegment(DirectoryStorage):
    """A disk with room for one segment file of each recording."""

    def create(self, name: str, length: int, *, may_exist: bool = False) -> StorageFile:
        if name.endswith("-65536.rec"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
        return super().create(name, length, may_exist=may_exist)


def test_a_recording_that_fails_is_not_a_success(tmp_path: Path) -> None:
    """`record` says why, and so does its status; when the archive goes, it does not wait for it."""
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver:
        server = headrace.ArchiveServer(
            driver=driver,
            archive_directory=tmp_path / "a",
            storage=FullAfterOneSegment(tmp_path / "a"),
            control_channel_enabled=False,
            segment_file_length=64 * 1024,
        )
        command = [
            sys.executable,
            "-m",
            "headrace",
            "archive",
            "record",
            "-d",
            driver.directory,
            "-c",
            CHANNEL,
        ]
        recorder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        killer = threading.Timer(TIMEOUT_S, recorder.kill)
        killer.start()
        try:
            with driver.connect() as client, client.add_publication(CHANNEL, 1001) as publication:
                publication.offer_blocking(b"recorded", timeout_s=TIMEOUT_S)
                assert recorder.stdout is not None
                assert "start recording 0" in recorder.stdout.readline()
                while publication.position is not None and publication.position < 65536:
                    publication.offer_blocking(bytes(1000))
                assert "stop recording 0" in recorder.stdout.readline()
                server.close()
                _, errors = recorder.communicate(timeout=TIMEOUT_S)
            assert recorder.returncode == 1
            assert "No space left on device" in errors
            assert "the archive is gone" in errors
        finally:
            killer.cancel()
            recorder.kill()
            recorder.wait()


@pytest.mark.parametrize("is_published", [True, False])
def test_a_recording_that_another_client_stops_ends_the_command(
    archiving: headrace.ArchivingMediaDriver, is_published: bool
) -> None:
    """With status 0 and without Ctrl-C, also where no publisher has come."""
    where = ("-d", archiving.directory)
    command = [sys.executable, "-m", "headrace", "archive", "record", "-c", CHANNEL, "-s", "1003", *where]
    with archiving.connect_archive() as archive, archive.client.add_publication(CHANNEL, 1003) as publication:
        if not is_published:
            publication.close()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
            await_true(lambda: bool(archive.list_recording_subscriptions("", 1003)))
            if is_published:
                await_true(lambda: archive.recording_position(1) is not None)
            archive.stop_recording(CHANNEL, 1003)
            said, errors = recorder.communicate(timeout=TIMEOUT_S)
    assert recorder.returncode == 0
    assert ("stop recording 1" in said) == is_published
    assert "another client has stopped the recording" in errors


def test_who_records_a_stream_of_the_archive_itself_is_warned(
    archiving: headrace.ArchivingMediaDriver,
) -> None:
    command = [sys.executable, "-m", "headrace", "archive", "record", "-c", CHANNEL, "-s", "10"]
    with subprocess.Popen(
        [*command, "-d", archiving.directory], stderr=subprocess.PIPE, text=True
    ) as recorder:
        assert recorder.stderr is not None
        try:
            assert "stream 10 of aeron:ipc is where an archive takes requests" in recorder.stderr.readline()
            assert "Ctrl-C ends it" in recorder.stderr.readline()
        finally:
            recorder.send_signal(signal.SIGINT)
        assert recorder.wait(timeout=TIMEOUT_S) == 0


def test_the_list_fits_a_narrow_terminal(archiving: headrace.ArchivingMediaDriver) -> None:
    """What matters is whole: ids, states, positions and channels; the rest is left out."""
    catalog = Catalog(DirectoryStorage(archiving.archive.directory), read_only=True)
    found = [ListedRecording.of(entry, {}) for entry in catalog]
    catalog.close()
    for width in (80, 140):
        console = Console(width=width, file=io.StringIO(), color_system=None)
        console.print(recordings_table(Text("recordings"), found, width))
        assert isinstance(console.file, io.StringIO)
        printed = console.file.getvalue()
        assert "\u2026" not in printed, "nothing is cut"
        row = printed.splitlines()[2].split()
        assert row[:3] == ["0", "VALID", "1001"]
        assert "32000" in row
        assert ("session" in printed.splitlines()[1]) == (width == 140)
        assert "aeron:ipc?term-length=64k" in printed


def test_a_recording_that_runs_is_shown_alike_by_list_and_describe_with_its_length(
    archiving: headrace.ArchivingMediaDriver,
) -> None:
    where = ("-a", archiving.archive.directory)
    with (
        archiving.connect_archive() as archive,
        archive.add_recorded_publication(CHANNEL, 1002) as publication,
    ):
        for line in LINES[:10]:
            publication.offer_blocking(line.encode())
        await_true(lambda: archive.recording_position(1) == publication.position)
        assert publication.position is not None
        row = run("list", *where).stdout.splitlines()[3].split()
        assert row[:2] == ["1", "ACTIVE"]
        assert "640" in row
        details = dict(
            line.split(maxsplit=1) for line in run("describe", 1, *where).stdout.splitlines() if line.strip()
        )
        assert (details["state"].strip(), details["length"].strip()) == ("ACTIVE", "640")
        for words in (("list", "--json"), ("describe", "--json")):
            found = [json.loads(line) for line in run(*words, *where).stdout.splitlines()]
            assert [(one["state"], one["length"]) for one in found] == [
                ("VALID", 64 * len(LINES)),
                ("ACTIVE", 640),
            ]


def test_what_a_killed_program_had_recorded_is_stopped_and_purged(
    archiving: headrace.ArchivingMediaDriver,
) -> None:
    """By the channel and stream that it gave, or by the id of the recording; with nothing there it says so."""
    where = ("-d", archiving.directory)
    with archiving.connect_archive() as archive, archive.client.add_publication(CHANNEL, 1003) as publication:
        archive.start_recording("aeron:ipc", 1003)
        publication.offer_blocking(b"x", timeout_s=TIMEOUT_S)
        await_true(lambda: archive.recording_position(1) == publication.position)
        said = run("purge", 1, "--yes", *where, status=1).stderr
        assert "cannot purge active recording 1: stop it first: `headrace archive stop 1`" in said
        said = run("record", "-c", "aeron:ipc", "-s", 1003, *where, status=1).stderr
        assert "`headrace archive stop -c 'aeron:ipc' -s 1003` stops it" in said
        of_stream = ("stop", "-c", "aeron:ipc", "-s", 1003)
        assert "would be stopped" in run(*of_stream, "-n", *where).stdout
        assert run(*of_stream, *where).stdout == "stream 1003 of aeron:ipc is stopped\n"
        await_true(lambda: archive.stop_position(1) is not None)
        assert "no recording found for streamId=1003" in run(*of_stream, *where, status=1).stderr
        assert run("stop", 1, *where).stdout == "recording 1 is not being recorded; nothing to stop\n"
        archive.start_recording("aeron:ipc", 1003)
        await_true(lambda: archive.recording_position(2) is not None)
        assert run("stop", 2, "-n", *where).stdout == "recording 2 would be stopped\n"
        assert run("stop", 2, *where).stdout == "recording 2 is stopped\n"
        for wrong in (
            ("stop",),
            ("stop", 1, "-s", 5, "-c", "aeron:ipc"),
            ("stop", "-s", 5),
            ("stop", 1, "-s", 5),
        ):
            assert (
                "give the id of a recording, or else --channel and --stream" in run(*wrong, status=2).stderr
            )
    purge = ("purge", 1, *where)
    assert "would delete recording 1, stream 1003 of aeron:ipc, from position 0" in run(*purge, "-n").stdout
    assert "permanently delete recording 1" in run(*purge, status=1).stdout
    assert run(*purge, "--yes").stdout == "recording 1 is deleted, with 1 file\n"
    assert "unknown recording id: 1" in run(*purge, "--yes", status=1).stderr


def test_with_no_archive_running_a_command_says_to_start_one() -> None:
    with headrace.MediaDriver.embedded() as driver:
        said = run("stop", 0, "-d", driver.directory, status=1).stderr
    assert "no archive takes requests on aeron:ipc" in said
    assert "start one, with `headrace archive`" in said


def test_recordings_are_replayed_and_cut(archiving: headrace.ArchivingMediaDriver) -> None:
    """As a running archive does it."""
    assert run("replay", 0, "-d", archiving.directory).stdout.splitlines() == LINES
    unanswered = run("truncate", 0, 640, "-d", archiving.directory, status=1)
    assert "which ends at position 32000?" in unanswered.stdout
    assert "nothing was changed" in unanswered.stderr
    assert "ends at position 640" in run("truncate", 0, 640, "--yes", "-d", archiving.directory).stdout
    found = run("replay", 0, "-d", archiving.directory, "--from", 320, "--json").stdout.splitlines()
    assert [json.loads(line)["text"] for line in found] == LINES[5:10]


def test_an_archive_runs_until_it_is_stopped_and_records(tmp_path: Path) -> None:
    """With a driver of its own, until SIGTERM; `record` until Ctrl-C."""
    directory = fresh_directory("cli-archive")
    command = [sys.executable, "-m", "headrace", "archive"]
    serve = [
        *command,
        "--with-driver",
        "-d",
        directory,
        "-a",
        tmp_path / "a",
        "-D",
        "aeron.dir.delete.on.shutdown=true",
    ]
    server = subprocess.Popen([str(word) for word in serve], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    killer = threading.Timer(TIMEOUT_S, server.kill)
    killer.start()
    try:
        assert "Ctrl-C ends it" in server.stdout.readline()
        recorder = subprocess.Popen(
            [*command, "record", "-d", str(directory), "-c", "aeron:ipc", "-s", "1001", "--json"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert recorder.stdout is not None
        with headrace.connect(directory) as client, client.add_publication("aeron:ipc", 1001) as publication:
            publication.offer_blocking(b"recorded", timeout_s=TIMEOUT_S)
            assert json.loads(recorder.stdout.readline()) == {
                "signal": "START",
                "recording_id": 0,
                "position": 0,
            }
            recorder.send_signal(2)
            assert json.loads(recorder.stdout.readline())["signal"] == "STOP"
        assert recorder.wait(TIMEOUT_S) == 0
        server.terminate()
        assert server.wait(TIMEOUT_S) == 0
        assert "archive stopped" in server.stdout.read()
    finally:
        killer.cancel()
        server.kill()
        server.wait()
        server.stdout.close()
        recorder.stdout.close()
    assert "VALID" in run("list", "-a", tmp_path / "a").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["replay", "0"],
        ["record", "-s", "10"],
        ["replicate", "0", "aeron:udp?endpoint=127.0.0.1:1"],
    ],
    ids=["replay", "record", "replicate"],
)
def test_ctrl_c_ends_the_wait_for_an_archive(arguments: list[str]) -> None:
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver, driver.connect() as client:
        command = [sys.executable, "-m", "headrace", "archive", *arguments, "--dir", driver.directory]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            name = f" name=headrace archive {arguments[0]} "
            await_true(lambda: any(name in record.label for record in client.counters))
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 130


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_an_archive_that_is_told_to_end_while_it_waits_for_a_driver_does_so(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    """Without that it waits for ten seconds, and ends with status 3."""
    command = [
        sys.executable,
        "-m",
        "headrace",
        "archive",
        "--dir",
        tmp_path / "none",
        "-a",
        tmp_path / "archive",
    ]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "waiting up to 10 s for a media driver" in process.stderr.readline()
        process.send_signal(number)
        process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == status
