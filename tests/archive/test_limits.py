"""What one client's recordings, replays and requests leave for others: limits, siblings, threads, the log."""

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import headrace
from headrace.archive import Archive, ErrorCode, RecordingSignal
from tests.archive.test_archive import CHANNEL, MESSAGES, SEGMENT, STREAM_ID, record, replayed
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.system


@pytest.fixture
def archiving(tmp_path: Path) -> Iterator[headrace.ArchivingMediaDriver]:
    """An archive with small segments, and a driver of its own."""
    with headrace.ArchivingMediaDriver.embedded(
        archive_directory=tmp_path / "archive", segment_file_length=SEGMENT
    ) as archiving:
        yield archiving


@pytest.fixture
def archive(archiving: headrace.ArchivingMediaDriver) -> Iterator[Archive]:
    """A session with it."""
    with archiving.connect_archive() as archive:
        yield archive


def test_subscriptions_whose_recordings_have_ended_are_no_recordings(tmp_path: Path) -> None:
    """However often a client records one publisher and forgets to stop; what awaits its publisher is one."""
    with (
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=tmp_path / "archive", segment_file_length=SEGMENT, max_concurrent_recordings=2
        ) as archiving,
        archiving.connect_archive() as archive,
    ):
        for _ in range(5):
            with archive.client.add_exclusive_publication(CHANNEL, STREAM_ID) as publication:
                archive.start_recording(f"aeron:ipc?session-id={publication.session_id}", STREAM_ID)
                archive.await_signal(RecordingSignal.START)
            archive.await_signal(RecordingSignal.STOP)
        archive.start_recording(CHANNEL, STREAM_ID + 1)
        with (
            archive.add_recorded_publication(CHANNEL, STREAM_ID + 2),
            pytest.raises(headrace.ArchiveError, match="max concurrent recordings reached 2"),
        ):
            archive.start_recording(CHANNEL, STREAM_ID + 3)
        archive.await_signal(RecordingSignal.STOP)
        archive.start_recording(CHANNEL, STREAM_ID + 3)


def test_a_recording_that_is_stopped_by_its_id_stops_no_other_of_its_subscription(archive: Archive) -> None:
    """Nor one that begins afterwards: the subscription is closed when none of its recordings is left."""
    archive.start_recording(CHANNEL, STREAM_ID)
    publications = [archive.client.add_exclusive_publication(CHANNEL, STREAM_ID) for _ in range(2)]
    ids = [archive.await_signal(RecordingSignal.START).recording_id for _ in publications]
    assert archive.stop_recording_by_id(ids[0])
    assert archive.await_signal(RecordingSignal.STOP).recording_id == ids[0]
    assert archive.list_recording_subscriptions() == []
    publications.append(archive.client.add_exclusive_publication(CHANNEL, STREAM_ID))
    ids.append(archive.await_signal(RecordingSignal.START).recording_id)
    for recording_id, publication in list(zip(ids, publications, strict=True))[1:]:
        publication.offer_blocking(b"recorded")
        await_true(lambda: archive.recording_position(recording_id) == publication.position)  # noqa: B023
        assert not archive.stop_recording_by_id(recording_id)
        assert archive.await_signal(RecordingSignal.STOP, recording_id).position == publication.position
    for publication in publications:
        await_true(lambda: not publication.is_connected)  # noqa: B023
        publication.close()


def test_a_recorded_publication_comes_with_its_recording(archive: Archive) -> None:
    """It is in the catalog and its position can be seen when the publication is returned."""
    for number in range(3):
        with archive.add_recorded_publication(CHANNEL, STREAM_ID):
            recordings = archive.list_recordings(number)
            assert [one.recording_id for one in recordings] == [number]
            assert archive.recording_position(number) == recordings[0].start_position
            assert archive.await_signal(RecordingSignal.START).recording_id == number
        archive.await_signal(RecordingSignal.STOP)


def test_whether_a_replay_has_ended_is_known_while_another_thread_awaits_an_answer(
    archiving: headrace.ArchivingMediaDriver, archive: Archive
) -> None:
    """Nothing that never blocks waits for a request."""
    recording_id, _ = record(archive, MESSAGES[:3])
    with archive.replay(recording_id) as replay:
        assert [next(replay).payload for _ in range(3)] == MESSAGES[:3]
        with ThreadPoolExecutor(1) as other:
            awaited = threading.Event()

            def hold() -> None:
                with archive._lock:
                    awaited.set()
                    release.wait()

            release = threading.Event()
            held = other.submit(hold)
            try:
                assert awaited.wait(TIMEOUT_S)
                await_true(replay.has_ended)
                assert archive.poll() == 0
                assert archive.late_error(0) is None
                assert [one.signal for one in archive.signals()] == []
            finally:
                release.set()
            held.result()


def test_events_and_late_errors_are_logged(archive: Archive, caplog: pytest.LogCaptureFixture) -> None:
    """What a client is told in no other way as a warning; nothing for a message."""
    caplog.set_level(logging.INFO, "headrace.archive")
    recording_id, end = record(archive)
    assert replayed(archive, recording_id) == MESSAGES
    archive.start_replay(recording_id, CHANNEL, 77)
    archive.extend_recording(recording_id, CHANNEL, STREAM_ID)
    with archive.client.add_publication(CHANNEL, STREAM_ID):
        await_true(lambda: archive.poll() >= 0 and "the archive reports" in caplog.text)
    wanted = [
        (logging.INFO, f"recording_id={recording_id} START at position=0"),
        (logging.INFO, f"recording_id={recording_id} STOP at position={end}"),
        (logging.INFO, f"of recording_id={recording_id} ended at position={end}"),
        (logging.WARNING, "WARN - a publisher cannot be recorded: cannot extend recording"),
        (logging.WARNING, "the archive reports: cannot extend recording"),
    ]
    records = [(one.levelno, one.getMessage()) for one in caplog.records]
    for level, words in wanted:
        assert any(found == level and words in text for found, text in records), words
    assert len(records) < 40


def test_limits_are_kept(tmp_path: Path) -> None:
    """Recordings, replays and space for them."""
    settings = {"max_concurrent_recordings": 1, "max_concurrent_replays": 1}
    with (
        headrace.ArchivingMediaDriver.embedded(archive_directory=tmp_path / "a", **settings) as archiving,
        archiving.connect_archive() as archive,
    ):
        recording_id, _ = record(archive)
        archive.start_recording(CHANNEL, STREAM_ID)
        with pytest.raises(headrace.ArchiveError) as refusal:
            archive.start_recording(CHANNEL, 5)
        assert refusal.value.code == ErrorCode.MAX_RECORDINGS
        with archive.replay(recording_id):
            with pytest.raises(headrace.ArchiveError) as refusal:
                archive.replay(recording_id)
            assert refusal.value.code == ErrorCode.MAX_REPLAYS
    with (
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=tmp_path / "b", low_storage_space_threshold=1 << 60
        ) as archiving,
        archiving.connect_archive() as archive,
    ):
        with pytest.raises(headrace.ArchiveError) as refusal:
            archive.start_recording(CHANNEL, STREAM_ID)
        assert refusal.value.code == ErrorCode.STORAGE_SPACE
