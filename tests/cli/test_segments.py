"""`headrace archive purge-segments` and the like: what they say, ask and do."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace
from headrace.archive import RecordingSignal, extension_channel
from tests.cli.test_archive import run

pytestmark = pytest.mark.system

CHANNEL = "aeron:ipc?term-length=64k"
SEGMENT = 64 * 1024
# So many messages, each with its header, fill a segment file to its last byte.
PER_SEGMENT = 64


@pytest.fixture
def archiving(tmp_path: Path) -> Iterator[headrace.ArchivingMediaDriver]:
    """A running archive with a recording of three segment files, and one of the rest of the stream."""
    with headrace.ArchivingMediaDriver.embedded(
        archive_directory=tmp_path / "archive", segment_file_length=SEGMENT
    ) as archiving:
        with archiving.connect_archive() as archive:
            channel = CHANNEL
            for count in (3 * PER_SEGMENT, 5):
                with archive.add_recorded_publication(channel, 7) as publication:
                    for _ in range(count):
                        publication.offer_blocking(bytes(1024 - 32))
                archive.await_signal(RecordingSignal.STOP)
                channel = extension_channel(CHANNEL, archive.list_recordings()[-1])
        yield archiving


def test_segments_are_detached_attached_and_purged(archiving: headrace.ArchivingMediaDriver) -> None:
    """Any position will do: the file that has it is the first to stay."""
    where = ("-d", archiving.directory)
    said = run("detach-segments", 0, 2 * SEGMENT + 77, *where).stdout
    assert said == "recording 0 now begins at position 131072\n"
    said = run("attach-segments", 0, *where).stdout
    assert said == "2 files attached; recording 0 begins at position 0\n"
    would = run("purge-segments", 0, SEGMENT + 1, "--dry-run", *where).stdout
    assert would == "would delete 1 file: recording 0 would begin at position 65536 instead of 0\n"
    unanswered = run("purge-segments", 0, SEGMENT, *where, status=1)
    assert "delete 1 file of recording 0 before position 65536?" in unanswered.stdout
    assert "nothing was changed" in unanswered.stderr
    said = run("purge-segments", 0, SEGMENT, "--yes", *where).stdout
    assert said == "recording 0 now begins at position 65536; 1 file deleted\n"
    run("detach-segments", 0, 2 * SEGMENT, *where)
    assert "before its start position 131072?" in run("delete-detached-segments", 0, *where, status=1).stdout
    assert run("delete-detached-segments", 0, "--yes", *where).stdout == "1 file deleted\n"
    said = run("migrate-segments", 0, 1, "--yes", *where).stdout
    assert said == "1 file moved; recording 1 now begins at position 131072 and ends at 201728\n"
    assert "recording 1: OK" in run("verify", "-a", archiving.archive.directory, "--thorough").stdout


def test_what_is_refused_is_said_in_one_line(archiving: headrace.ArchivingMediaDriver) -> None:
    """With the status of a failure."""
    where = ("-d", archiving.directory)
    refused = {
        ("detach-segments", 0, 1000): "newStartPosition=0 is in the first segment file for recording 0",
        ("purge-segments", 0, 1 << 40, "--yes"): "is after the last segment file for recording 0",
        ("purge-segments", 9, 0, "--dry-run"): "unknown recording id: 9",
        ("attach-segments", 9): "unknown recording id: 9",
        ("migrate-segments", 1, 0, "--yes"): "destination segment file is there already",
    }
    for command, words in refused.items():
        stderr = run(*command, *where, status=1).stderr
        assert words in stderr, command
        assert "Traceback" not in stderr
    assert "positions 0 to 196608, to recording 1?" in run("migrate-segments", 0, 1, *where, status=1).stdout
