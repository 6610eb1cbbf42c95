"""What one client's recordings, replays and requests leave for others: limits, siblings, threads, the log."""

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace._agent.mark_file import HEADER_LENGTH
from headrace.archive import Archive, ArchiveServer, DirectoryStorage, ErrorCode, RecordingSignal
from headrace.archive.protocol.counters import REPLAY_SESSIONS
from headrace.cnc.error_log import read_error_log
from tests.archive.test_archive import CHANNEL, MESSAGES, SEGMENT, STREAM_ID, record, replayed
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_endpoint

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
                await_true(lambda: replay.has_ended)
                assert archive.poll() == 0
                assert archive.late_error(0) is None
                assert [one.signal for one in archive.take_signals()] == []
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


# --- limits: at the limit, above it, and after one has ended -------------------------------------------------------

Embed = Callable[..., Archive]


@pytest.fixture
def embed(tmp_path: Path) -> Iterator[Embed]:
    """Starts an archive with settings, and gives a session with it; what was refused was a warning and no error."""
    with ExitStack() as stack:

        def start(**settings: Any) -> Archive:
            archiving = stack.enter_context(
                headrace.ArchivingMediaDriver.embedded(
                    archive_directory=tmp_path / "archive", segment_file_length=SEGMENT, **settings
                )
            )
            stack.callback(lambda: check_errors(archiving.archive))
            return stack.enter_context(archiving.connect_archive())

        yield start


def check_errors(server: ArchiveServer) -> None:
    """No fault of a client is an error of the archive."""
    assert server.error_count == 0


def refused(code: ErrorCode, text: str, call: Callable[[], object]) -> None:
    """What is asked for is refused with a code and these words."""
    with pytest.raises(headrace.ArchiveError) as refusal:
        call()
    assert (refusal.value.code, refusal.value.code_name) == (code, code.name)
    assert str(refusal.value) == f"{text} ({code.name})"


def refusals(tmp_path: Path, text: str) -> list[int]:
    """How often the archive's error log has a warning."""
    mark = (tmp_path / "archive" / "archive-mark.dat").read_bytes()
    entries = read_error_log(mark[HEADER_LENGTH:])
    return [entry.observation_count for entry in entries if entry.text == f"WARN - {text}"]


def test_as_many_recordings_as_the_limit_are_recorded(embed: Embed, tmp_path: Path) -> None:
    """One that waits for its publisher is one, and so is an extension; each that ends makes room for another."""
    archive = embed(max_concurrent_recordings=2)
    ended, _ = record(archive, MESSAGES[:3])
    waiting = archive.start_recording(CHANNEL, STREAM_ID)
    publication = archive.add_recorded_publication(CHANNEL, STREAM_ID + 1)
    text = "max concurrent recordings reached 2"
    refused(ErrorCode.MAX_RECORDINGS, text, lambda: archive.start_recording(CHANNEL, STREAM_ID + 2))
    refused(ErrorCode.MAX_RECORDINGS, text, lambda: archive.extend_recording(ended, CHANNEL, STREAM_ID))
    # Before anything else that is wrong with a request.
    refused(ErrorCode.MAX_RECORDINGS, text, lambda: archive.extend_recording(77, "aeron:tcp", 5))
    assert refusals(tmp_path, "StartRecordingRequest2 refused: MAX_RECORDINGS") == [1]
    assert refusals(tmp_path, "ExtendRecordingRequest2 refused: MAX_RECORDINGS") == [2]
    archive.stop_recording_subscription(waiting)
    archive.extend_recording(ended, CHANNEL, STREAM_ID)
    refused(ErrorCode.MAX_RECORDINGS, text, lambda: archive.start_recording(CHANNEL, STREAM_ID + 2))
    publication.close()
    archive.await_signal(RecordingSignal.STOP)
    archive.start_recording(CHANNEL, STREAM_ID + 2)


def test_as_many_replays_as_the_limit_are_sent(embed: Embed, tmp_path: Path) -> None:
    """One that waits for its subscriber is one, and so is a bounded one."""
    archive = embed(max_concurrent_replays=2)
    recording_id, end = record(archive)
    limit = archive.client.add_counter(1001, b"", "limit")
    bounded = {"limit_counter_id": limit.counter_id}
    waiting = archive.start_replay(recording_id, CHANNEL, 70)
    text = "max concurrent replays reached 2"
    with archive.replay(recording_id, stream_id=71, **bounded):
        refused(ErrorCode.MAX_REPLAYS, text, lambda: archive.start_replay(recording_id, CHANNEL, 72))
        refused(
            ErrorCode.MAX_REPLAYS, text, lambda: archive.start_replay(recording_id, CHANNEL, 72, **bounded)
        )
        # Before anything else that is wrong with a request, but for a counter that is not there.
        refused(ErrorCode.MAX_REPLAYS, text, lambda: archive.start_replay(77, CHANNEL, 72, position=-5))
        gone = "unable to create replay limit counter id=4000: it is not allocated"
        ask = partial(archive.start_replay, 77, CHANNEL, 72, limit_counter_id=4000)
        refused(ErrorCode.GENERIC, gone, ask)
        assert refusals(tmp_path, "ReplayRequest refused: MAX_REPLAYS") == [2]
        assert refusals(tmp_path, "BoundedReplayRequest refused: MAX_REPLAYS") == [1]
        archive.stop_replay(waiting)
        await_true(lambda: of_type(archive, REPLAY_SESSIONS) == 1)
        archive.start_replay(recording_id, CHANNEL, 72)
        refused(ErrorCode.MAX_REPLAYS, text, lambda: archive.start_replay(recording_id, CHANNEL, 73))
    archive.stop_all_replays()
    await_true(lambda: of_type(archive, REPLAY_SESSIONS) == 0)
    assert replayed(archive, recording_id) == MESSAGES
    assert end


def of_type(archive: Archive, type_id: int) -> int:
    """The value of the archive's counter of a type."""
    (value,) = [
        archive.client.counters.value(one.counter_id)
        for one in archive.client.counters
        if one.type_id == type_id
    ]
    return value


def test_as_many_replications_as_recordings_go_on(embed: Embed, tmp_path: Path) -> None:
    """One that still looks for the other archive is one; when it is stopped there is room for another."""
    archive = embed(max_concurrent_recordings=1, replication_channel="aeron:udp?endpoint=127.0.0.1:0")
    nowhere = f"aeron:udp?endpoint={free_endpoint()}"
    answers = {"source_response_channel": "aeron:udp?endpoint=127.0.0.1:0"}
    replication = archive.replicate(0, nowhere, **answers)
    text = "max concurrent replications reached 1"
    refused(ErrorCode.MAX_RECORDINGS, text, lambda: archive.replicate(0, nowhere, **answers))
    assert refusals(tmp_path, "ReplicateRequest2 refused: MAX_RECORDINGS") == [1]
    archive.stop_replication(replication.replication_id)
    again = archive.replicate(0, nowhere, **answers)
    refused(ErrorCode.MAX_RECORDINGS, text, lambda: archive.replicate(0, nowhere, **answers))
    archive.stop_replication(again.replication_id)


def test_nothing_is_recorded_when_space_is_low(
    embed: Embed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte above the threshold is enough; what is being recorded goes on."""
    threshold = 1 << 20
    free = threshold + 1
    monkeypatch.setattr(DirectoryStorage, "usable_bytes", lambda self: free)
    archive = embed(low_storage_space_threshold=threshold)
    ended, _ = record(archive, MESSAGES[:3])
    with archive.add_recorded_publication(CHANNEL, STREAM_ID) as publication:
        free = threshold
        text = f"low storage threshold={threshold} >= usableSpace={threshold}"
        refused(ErrorCode.STORAGE_SPACE, text, lambda: archive.start_recording(CHANNEL, 5))
        refused(ErrorCode.STORAGE_SPACE, text, lambda: archive.extend_recording(ended, CHANNEL, STREAM_ID))
        # A recording that cannot be extended is said before that; a channel that is recorded, after.
        unknown = "unknown recording id: 77"
        refused(ErrorCode.UNKNOWN_RECORDING, unknown, lambda: archive.extend_recording(77, CHANNEL, 5))
        same = f"{CHANNEL}?session-id={publication.session_id}"
        refused(ErrorCode.STORAGE_SPACE, text, lambda: archive.start_recording(same, STREAM_ID))
        publication.offer_blocking(MESSAGES[0])
        assert refusals(tmp_path, "StartRecordingRequest2 refused: STORAGE_SPACE") == [2]
        assert refusals(tmp_path, "ExtendRecordingRequest2 refused: STORAGE_SPACE") == [1]
    recorded = archive.await_signal(RecordingSignal.STOP)
    assert recorded.position > 0
    free = threshold + 1
    archive.start_recording(CHANNEL, 5)
