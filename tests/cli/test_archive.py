"""`headrace archive`: looking at files, and asking a running archive."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches.processes import ROOT, fresh_directory

import headrace
from headrace.archive import RecordingSignal

pytestmark = pytest.mark.system

LINES = [f"line {number}" for number in range(500)]


def run(*args: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself."""
    command = [sys.executable, "-m", "headrace", "archive", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False, cwd=ROOT)
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
    assert f"aeron_directory: {archiving.directory}" in described
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


def test_recordings_are_replayed_and_cut(archiving: headrace.ArchivingMediaDriver) -> None:
    """As a running archive does it."""
    assert run("replay", 0, "-d", archiving.directory).stdout.splitlines() == LINES
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
    killer = threading.Timer(40, server.kill)
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
            publication.offer_blocking(b"recorded", timeout_s=20)
            assert json.loads(recorder.stdout.readline()) == {
                "signal": "START",
                "recording_id": 0,
                "position": 0,
            }
            recorder.send_signal(2)
            assert json.loads(recorder.stdout.readline())["signal"] == "STOP"
        assert recorder.wait(20) == 0
        server.terminate()
        assert server.wait(20) == 0
        assert "archive stopped" in server.stdout.read()
    finally:
        killer.cancel()
        server.kill()
        server.wait()
        server.stdout.close()
        recorder.stdout.close()
    assert "VALID" in run("list", "-a", tmp_path / "a").stdout
