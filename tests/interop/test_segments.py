"""Segments that leave and join recordings: Aeron's client on our archive, and our client on Aeron's archive."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from benches.processes import JavaPeer, background, fresh_directory

import headrace
from headrace.archive import Archive, ErrorCode, RecordingSignal, extension_channel, files
from tests.interop.test_archive import ANY_PORT, run_java
from tests.ports import free_endpoint

pytestmark = pytest.mark.interop

TOOL = "io.aeron.archive.ArchiveTool"
CHANNEL = "aeron:ipc?term-length=64k"
STREAM_ID = 1203
SEGMENT = 64 * 1024
# So many messages, each with its header, fill a segment file to its last byte.
FRAME = 1024
PER_SEGMENT = SEGMENT // FRAME


@contextmanager
def java_archive(java: JavaPeer, archive_directory: Path) -> Iterator[Path]:
    """The driver directory of a running, unmodified Java archive."""
    directory = fresh_directory("interop-segments")
    properties = {
        "aeron.dir": str(directory),
        "aeron.threading.mode": "SHARED",
        "aeron.dir.delete.on.shutdown": "true",
        "aeron.archive.threading.mode": "SHARED",
        "aeron.archive.dir": str(archive_directory),
        "aeron.archive.control.channel": f"aeron:udp?endpoint={free_endpoint()}",
        "aeron.archive.replication.channel": ANY_PORT,
        "aeron.archive.segment.file.length": "64k",
    }
    command = java.command("io.aeron.archive.ArchivingMediaDriver", properties=properties)
    with background(command, ready=directory / "cnc.dat"):
        yield directory


def test_java_client_on_our_archive(java: JavaPeer, tmp_path: Path) -> None:
    """All five requests, with counts, signals, replays and refusals; then Aeron's tool verifies our files."""
    directory = tmp_path / "archive"
    with headrace.ArchivingMediaDriver.embedded(
        archive_directory=directory, segment_file_length=SEGMENT
    ) as archiving:
        assert "DONE" in run_java(java, "ArchiveSegments", archiving.directory, "aeron:ipc")
        assert archiving.archive.error_count == 0
    verified = run_java(java, TOOL, directory, "verify", "-a")
    for recording_id in range(4):
        assert f"(recordingId={recording_id}) OK" in verified


def test_java_client_on_the_java_archive(java: JavaPeer, tmp_path: Path) -> None:
    """The program asks for nothing that Aeron's own archive does otherwise."""
    with java_archive(java, tmp_path / "archive") as directory:
        assert "DONE" in run_java(java, "ArchiveSegments", directory, "aeron:ipc")


def messages(first: int, last: int) -> list[bytes]:
    """Messages that say which they are."""
    return [index.to_bytes(4, "little") * ((FRAME - 32) // 4) for index in range(first, last)]


def record(archive: Archive, channel: str, first: int, last: int) -> int:
    """Record messages to the end; gives the recording's id."""
    with archive.add_recorded_publication(channel, STREAM_ID) as publication:
        for message in messages(first, last):
            publication.offer_blocking(message)
    return archive.await_signal(RecordingSignal.STOP).recording_id


def after(archive: Archive, recording_id: int) -> str:
    """A channel that begins where a recording stops."""
    found = archive.find_recording(recording_id)
    assert found is not None
    return extension_channel(CHANNEL, found)


def replayed(archive: Archive, recording_id: int) -> list[bytes]:
    """All that a replay gives."""
    with archive.replay(recording_id, stream_id=70) as replay:
        return [bytes(message.payload) for message in replay]


def test_our_client_on_the_java_archive(java: JavaPeer, tmp_path: Path) -> None:
    """All five requests; then our tool verifies its files."""
    archive_directory = tmp_path / "archive"
    with (
        java_archive(java, archive_directory) as directory,
        headrace.Client.connect(directory=directory) as client,
        Archive.connect(client) as archive,
    ):
        one = record(archive, CHANNEL, 0, 4 * PER_SEGMENT + 5)
        archive.detach_segments(one, 2 * SEGMENT)
        assert archive.start_position(one) == 2 * SEGMENT
        assert archive.attach_segments(one) == 2
        assert replayed(archive, one) == messages(0, 4 * PER_SEGMENT + 5)
        archive.detach_segments(one, 2 * SEGMENT)
        assert archive.delete_detached_segments(one) == 2
        archive.await_signal(RecordingSignal.DELETE)
        assert archive.purge_segments(one, 3 * SEGMENT) == 1
        archive.await_signal(RecordingSignal.DELETE)
        assert replayed(archive, one) == messages(3 * PER_SEGMENT, 4 * PER_SEGMENT + 5)
        with pytest.raises(headrace.ArchiveError) as refusal:
            archive.purge_segments(one, 3 * SEGMENT + 32)
        assert refusal.value.code == ErrorCode.GENERIC
        with pytest.raises(headrace.ArchiveError) as refusal:
            archive.migrate_segments(one, 4711)
        assert refusal.value.code == ErrorCode.UNKNOWN_RECORDING
        source = record(archive, CHANNEL, 0, 2 * PER_SEGMENT)
        destination = record(archive, after(archive, source), 2 * PER_SEGMENT, 2 * PER_SEGMENT + 3)
        assert archive.migrate_segments(source, destination) == 2
        archive.await_signal(RecordingSignal.DELETE)
        assert replayed(archive, destination) == messages(0, 2 * PER_SEGMENT + 3)
    with files.ArchiveDirectory(archive_directory) as stored:
        assert [finding.text for finding in stored.verify(is_thorough=True) if not finding.is_ok] == []


def test_our_archive_and_theirs_take_turns_on_one_directory(java: JavaPeer, tmp_path: Path) -> None:
    """What ours has detached theirs attaches, and what theirs has detached ours does: the files say enough."""
    archive_directory = tmp_path / "archive"
    with (
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=archive_directory, segment_file_length=SEGMENT
        ) as archiving,
        archiving.connect_archive() as archive,
    ):
        recording_id = record(archive, CHANNEL, 0, 3 * PER_SEGMENT + 1)
        archive.detach_segments(recording_id, SEGMENT)
    with (
        java_archive(java, archive_directory) as directory,
        headrace.Client.connect(directory=directory) as client,
        Archive.connect(client) as archive,
    ):
        assert archive.attach_segments(recording_id) == 1
        archive.detach_segments(recording_id, 2 * SEGMENT)
    with (
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=archive_directory, segment_file_length=SEGMENT
        ) as archiving,
        archiving.connect_archive() as archive,
    ):
        assert archive.attach_segments(recording_id) == 2
        assert replayed(archive, recording_id) == messages(0, 3 * PER_SEGMENT + 1)
