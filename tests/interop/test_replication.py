"""Recordings copied between Aeron's archive and ours, in both directions, asked for by clients of both."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from benches.processes import JavaPeer, background, fresh_directory

import headrace
from headrace.archive import Archive, ArchiveError, ErrorCode, RecordingSignal, extension_channel
from tests.helpers import TIMEOUT_S
from tests.interop.test_archive import ANY_PORT, run_java
from tests.ports import free_endpoint

pytestmark = pytest.mark.interop

TOOL = "io.aeron.archive.ArchiveTool"
CHANNEL = "aeron:ipc?term-length=64k"
STREAM_ID = 1301
SEGMENT = 128 * 1024
# Some are longer than the MTU, so that they are recorded as several frames.
MESSAGES = [b"message %d " % index * (1 + index % 300) for index in range(500)]


@dataclass
class Place:
    """A running archive: where its driver and its files are, and where others reach it."""

    driver: Path
    files: Path
    control: str


@contextmanager
def theirs(java: JavaPeer, files: Path) -> Iterator[Place]:
    """A running, unmodified Java archive."""
    directory = fresh_directory("interop-replication")
    control = f"aeron:udp?endpoint={free_endpoint()}"
    properties = {
        "aeron.dir": str(directory),
        "aeron.threading.mode": "SHARED",
        "aeron.dir.delete.on.shutdown": "true",
        "aeron.archive.threading.mode": "SHARED",
        "aeron.archive.dir": str(files),
        "aeron.archive.control.channel": control,
        "aeron.archive.replication.channel": ANY_PORT,
        "aeron.archive.segment.file.length": str(SEGMENT),
    }
    command = java.command("io.aeron.archive.ArchivingMediaDriver", properties=properties)
    with background(command, ready=directory / "cnc.dat"):
        yield Place(directory, files, control)


@contextmanager
def ours(files: Path) -> Iterator[Place]:
    """Our archive."""
    control = f"aeron:udp?endpoint={free_endpoint()}"
    with headrace.ArchivingMediaDriver.embedded(
        archive_directory=files,
        segment_file_length=SEGMENT,
        control_channel=control,
        replication_channel=ANY_PORT,
    ) as archiving:
        yield Place(Path(archiving.directory), files, control)


@contextmanager
def pair(java: JavaPeer, direction: str, directory: Path) -> Iterator[tuple[Place, Place]]:
    """A source and a destination of two makes."""
    with theirs(java, directory / "theirs") as their, ours(directory / "ours") as our:
        yield (their, our) if direction == "java to ours" else (our, their)


@contextmanager
def session(where: Place) -> Iterator[Archive]:
    """Our client on an archive."""
    with headrace.Client.connect(directory=where.driver) as client, Archive.connect(client) as archive:
        yield archive


def record(archive: Archive, messages: list[bytes], extended_id: int | None = None) -> tuple[int, int]:
    """Record messages to the end, as a new recording or as the rest of one; gives its id and its end."""
    archive.take_signals()
    channel = CHANNEL
    if extended_id is not None:
        found = archive.find_recording(extended_id)
        assert found is not None
        channel = extension_channel(CHANNEL, found)
    with archive.client.add_exclusive_publication(channel, STREAM_ID) as publication:
        if extended_id is None:
            archive.start_recording(CHANNEL, STREAM_ID, auto_stop=True)
        else:
            archive.extend_recording(extended_id, CHANNEL, STREAM_ID, auto_stop=True)
        for message in messages:
            publication.offer_blocking(message, timeout_s=TIMEOUT_S)
    stopped = archive.await_signal(RecordingSignal.STOP, timeout_s=TIMEOUT_S)
    return stopped.recording_id, stopped.position


def replayed(archive: Archive, recording_id: int) -> list[bytes]:
    """All that a replay gives."""
    with archive.replay(recording_id, stream_id=70) as replay:
        return [bytes(message.payload) for message in replay]


DIRECTIONS = pytest.mark.parametrize("direction", ["java to ours", "ours to java"])


@DIRECTIONS
def test_our_client_has_a_recording_copied(java: JavaPeer, tmp_path: Path, direction: str) -> None:
    """A stopped one, then what was added to it; the copy is the same to both tools."""
    with (
        pair(java, direction, tmp_path) as (source, destination),
        session(source) as primary,
        session(destination) as standby,
    ):
        recording_id, _ = record(primary, MESSAGES[:200])
        first = standby.replicate(recording_id, source.control)
        first.wait(TIMEOUT_S)
        assert [one.signal.name for one in first.signals][:3] == ["REPLICATE", "EXTEND", "SYNC"]
        copy_id = first.recording_id
        assert copy_id is not None
        _, end = record(primary, MESSAGES[200:], recording_id)
        rest = standby.replicate(recording_id, source.control, destination_id=copy_id)
        assert rest.wait(TIMEOUT_S) == end
        assert replayed(standby, copy_id) == MESSAGES
        with pytest.raises(ArchiveError) as failure:
            standby.replicate(99, source.control).wait(TIMEOUT_S)
        assert failure.value.code == ErrorCode.UNKNOWN_RECORDING
        with pytest.raises(ArchiveError) as failure:
            standby.stop_replication(99)
        assert failure.value.code == ErrorCode.UNKNOWN_REPLICATION
    assert "OK" in run_java(java, TOOL, destination.files, "verify", "-a")


@DIRECTIONS
def test_an_active_recording_is_followed_to_its_end(java: JavaPeer, tmp_path: Path, direction: str) -> None:
    with (
        pair(java, direction, tmp_path) as (source, destination),
        session(source) as primary,
        session(destination) as standby,
    ):
        with primary.add_recorded_publication(CHANNEL, STREAM_ID) as publication:
            for message in MESSAGES[:100]:
                publication.offer_blocking(message, timeout_s=TIMEOUT_S)
            (recording,) = primary.list_recordings()
            replication = standby.replicate(recording.recording_id, source.control)
            replication.wait_for_position(publication.position, TIMEOUT_S)
            for message in MESSAGES[100:]:
                publication.offer_blocking(message, timeout_s=TIMEOUT_S)
            end = publication.position
        assert replication.wait(TIMEOUT_S) == end
        assert replication.recording_id is not None
        assert replayed(standby, replication.recording_id) == MESSAGES


@DIRECTIONS
def test_a_copy_joins_the_live_stream(java: JavaPeer, tmp_path: Path, direction: str) -> None:
    control = free_endpoint()
    live = f"aeron:udp?control={control}|control-mode=dynamic|fc=min|term-length=64k|ssc=true"
    with (
        pair(java, direction, tmp_path) as (source, destination),
        session(source) as primary,
        session(destination) as standby,
    ):
        with primary.add_recorded_publication(live, STREAM_ID) as publication:
            for message in MESSAGES[:100]:
                publication.offer_blocking(message, timeout_s=TIMEOUT_S)
            (recording,) = primary.list_recordings()
            replication = standby.replicate(
                recording.recording_id,
                source.control,
                live_destination=f"aeron:udp?endpoint=127.0.0.1:0|control={control}|control-mode=dynamic",
                replication_channel=f"aeron:udp?endpoint={free_endpoint()}",
            )
            sent, pace = 100, threading.Event()
            while not any(one.signal is RecordingSignal.MERGE for one in replication.signals):
                assert replication.error is None
                publication.offer_blocking(MESSAGES[sent % len(MESSAGES)], timeout_s=TIMEOUT_S)
                sent += 1
                # Slower than a replay, which could not catch up otherwise.
                pace.wait(0.001)
            publication.offer_blocking(b"last", timeout_s=TIMEOUT_S)
            end = publication.position
            replication.wait_for_position(end, TIMEOUT_S)
        standby.await_signal(RecordingSignal.STOP, timeout_s=TIMEOUT_S)
        assert replication.recording_id is not None
        published = [MESSAGES[index % len(MESSAGES)] for index in range(sent)]
        assert replayed(standby, replication.recording_id) == [*published, b"last"]


@DIRECTIONS
def test_the_java_client_has_a_recording_copied(java: JavaPeer, tmp_path: Path, direction: str) -> None:
    """With the signals, the errors and the tags that Aeron's client knows."""
    with pair(java, direction, tmp_path) as (source, destination):
        with session(source) as primary:
            recording_id, end = record(primary, MESSAGES)
        told = run_java(java, "ArchiveReplication", destination.driver, source.control, recording_id, end)
        assert "DONE" in told
        with session(destination) as standby:
            copies = [one.recording_id for one in standby.list_recordings()]
            assert copies == [0, 1, 2]
            for copy_id in (0, 1):
                assert replayed(standby, copy_id) == MESSAGES
            part = replayed(standby, 2)
            assert part == MESSAGES[: len(part)]


@DIRECTIONS
def test_a_copy_comes_through_a_connection_to_the_source(
    java: JavaPeer, tmp_path: Path, direction: str
) -> None:
    """Neither the answers nor the replay need an address of the archive that asks."""
    with (
        pair(java, direction, tmp_path) as (source, destination),
        session(source) as primary,
        session(destination) as standby,
    ):
        recording_id, end = record(primary, MESSAGES)
        replication = standby.replicate(
            recording_id,
            source.control,
            replication_channel=f"aeron:udp?control-mode=response|control={free_endpoint()}",
            source_response_channel=f"aeron:udp?control-mode=response|control={free_endpoint()}",
        )
        assert replication.wait(TIMEOUT_S) == end
        assert replication.recording_id is not None
        assert replayed(standby, replication.recording_id) == MESSAGES
    assert "OK" in run_java(java, TOOL, destination.files, "verify", "-a")
