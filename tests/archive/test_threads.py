"""An archive whose recordings have a thread of their own: ``threading_mode="DEDICATED"``, the default."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import headrace
from headrace._agent.storage import DirectoryStorage, StorageFile
from headrace.archive import Archive, ArchiveError, RecordingSignal
from headrace.archive.files import ArchiveDirectory
from headrace.archive.server.recorder_thread import RecorderThread
from headrace.testing import ManualClock
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.system

CHANNEL = "aeron:ipc?term-length=64k"


class HeldFile:
    """A file whose writes take as long as a test wants."""

    def __init__(self, file: StorageFile, disk: HeldDisk) -> None:
        self._file, self._disk = file, disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, offset: int, data: bytes) -> None:
        if not self._disk.may_write.is_set():
            self._disk.is_held.set()
            assert self._disk.may_write.wait(TIMEOUT_S)
        if self._disk.refusal is not None:
            raise self._disk.refusal
        self._file.write(offset, data)


class HeldDisk(DirectoryStorage):
    """A directory whose segment files are such files."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.may_write, self.is_held = threading.Event(), threading.Event()
        self.may_write.set()
        self.refusal: OSError | None = None

    def create(self, name: str, length: int, *, may_exist: bool = False) -> StorageFile:
        file = super().create(name, length, may_exist=may_exist)
        return HeldFile(file, self) if name.endswith(".rec") else file  # type: ignore[return-value]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[HeldDisk]:
    held = HeldDisk(tmp_path / "archive")
    yield held
    held.may_write.set()


@pytest.fixture
def driver() -> Iterator[headrace.MediaDriver]:
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver:
        yield driver


@pytest.fixture
def server(driver: headrace.MediaDriver, disk: HeldDisk) -> Iterator[headrace.ArchiveServer]:
    with headrace.ArchiveServer(
        driver=driver,
        archive_directory=disk.directory,
        storage=disk,
        control_channel_enabled=False,
        segment_file_length=128 * 1024,
        max_concurrent_recordings=100,
    ) as server:
        yield server
        assert server.failure is None
        disk.may_write.set()


@pytest.fixture
def archive(server: headrace.ArchiveServer, driver: headrace.MediaDriver) -> Iterator[Archive]:
    with Archive.connect(driver=driver) as archive:
        yield archive


def replayed(archive: Archive, recording_id: int) -> list[bytes]:
    with archive.replay(recording_id, stream_id=70) as replay:
        return [message.payload for message in replay]


def test_a_write_that_the_disk_takes_long_over_keeps_no_client_waiting(
    archive: Archive, disk: HeldDisk, driver: headrace.MediaDriver
) -> None:
    """Neither the one that records, nor others; what waits for the disk is recorded afterwards."""
    with archive.add_recorded_publication(CHANNEL, 1) as publication:
        publication.offer_blocking(b"before", timeout_s=TIMEOUT_S)
        await_true(lambda: archive.recording_position(0) == publication.position)
        before = publication.position
        disk.may_write.clear()
        publication.offer_blocking(b"during", timeout_s=TIMEOUT_S)
        assert disk.is_held.wait(TIMEOUT_S)
        assert archive.recording_position(0) == before
        with Archive.connect(driver=driver) as other:
            assert [one.stream_id for one in other.list_recordings()] == [1]
            with archive.replay(0, length=before) as replay:
                assert [message.payload for message in replay] == [b"before"]
            with pytest.raises(ArchiveError, match="unknown recording id"):
                other.truncate_recording(99, 0)
            subscription_id = other.start_recording(CHANNEL, 2)
            other.stop_recording_by_id(0)
        assert archive.recording_position(0) == before
        disk.may_write.set()
    stopped = archive.await_signal(RecordingSignal.STOP, timeout_s=TIMEOUT_S)
    assert stopped.recording_id == 0
    assert replayed(archive, 0) == [b"before", b"during"]
    archive.stop_recording_subscription(subscription_id)


def test_a_replay_follows_what_another_thread_records_to_its_end(archive: Archive) -> None:
    """Many times, because the end comes while the replay looks."""
    chance = random.Random(7)
    for turn in range(30):
        messages = [b"%d-%d" % (turn, index) * chance.randint(1, 300) for index in range(200)]
        with archive.add_recorded_publication(CHANNEL, 3) as publication:
            publication.offer_blocking(messages[0], timeout_s=TIMEOUT_S)
            (recording,) = archive.list_recordings(turn, 1)
            replay = archive.replay(recording.recording_id, stream_id=70)
            for message in messages[1:]:
                publication.offer_blocking(message, timeout_s=TIMEOUT_S)
        with replay:
            assert [message.payload for message in replay] == messages
        assert archive.await_signal(RecordingSignal.STOP, timeout_s=TIMEOUT_S).recording_id == turn


def test_many_recordings_begin_and_stop_in_any_order(archive: Archive) -> None:
    """By the end of their streams, by a client, and by an archive that closes; none is lost, none is left active."""
    chance = random.Random(11)
    publications = {}
    for stream_id in range(100, 140):
        publications[stream_id] = archive.add_recorded_publication(CHANNEL, stream_id)
        publications[stream_id].offer_blocking(b"%d" % stream_id, timeout_s=TIMEOUT_S)
    await_true(lambda: len([one for one in archive.list_recordings() if one.is_active]) == 40)
    recordings = {one.stream_id: one.recording_id for one in archive.list_recordings()}
    order = list(publications)
    chance.shuffle(order)
    for stream_id in order[:30]:
        position = publications[stream_id].position
        await_true(lambda id=recordings[stream_id], end=position: archive.recording_position(id) == end)
        if chance.random() < 0.5:
            publications[stream_id].close()
        else:
            assert archive.stop_recording_by_id(recordings[stream_id])
    await_true(lambda: len([one for one in archive.list_recordings() if one.is_active]) == 10)
    for stream_id in order[:30]:
        assert replayed(archive, recordings[stream_id]) == [b"%d" % stream_id]


def test_a_disk_that_fails_in_the_other_thread_ends_that_recording_alone(
    archive: Archive, disk: HeldDisk, server: headrace.ArchiveServer
) -> None:
    with archive.add_recorded_publication(CHANNEL, 5) as publication:
        publication.offer_blocking(b"whole", timeout_s=TIMEOUT_S)
        await_true(lambda: archive.recording_position(0) == publication.position)
        disk.refusal = OSError(28, "No space left on device")
        publication.offer_blocking(b"refused", timeout_s=TIMEOUT_S)
        stopped = archive.await_signal(RecordingSignal.STOP, timeout_s=TIMEOUT_S)
    disk.refusal = None
    assert stopped.recording_id == 0
    assert replayed(archive, 0) == [b"whole"]
    assert server.error_count == 1
    with archive.add_recorded_publication(CHANNEL, 6) as publication:
        publication.offer_blocking(b"next", timeout_s=TIMEOUT_S)
    assert archive.await_signal(RecordingSignal.STOP, timeout_s=TIMEOUT_S).recording_id == 1
    assert replayed(archive, 1) == [b"next"]


def test_an_archive_that_closes_while_the_disk_works_waits_for_it(
    driver: headrace.MediaDriver, disk: HeldDisk
) -> None:
    """And knows where its recordings end: nothing is to be recovered."""
    settings: dict[str, Any] = {
        "driver": driver,
        "archive_directory": disk.directory,
        "storage": disk,
        "control_channel_enabled": False,
    }
    server = headrace.ArchiveServer(**settings)
    with Archive.connect(driver=driver) as archive:
        publication = archive.add_recorded_publication(CHANNEL, 8)
        disk.may_write.clear()
        publication.offer_blocking(b"last", timeout_s=TIMEOUT_S)
        assert disk.is_held.wait(TIMEOUT_S)
        end = publication.position
        closing = threading.Thread(target=server.close)
        closing.start()
        disk.may_write.set()
        closing.join(TIMEOUT_S)
        assert not closing.is_alive()
    with headrace.ArchiveServer(**settings) as server, Archive.connect(driver=driver) as archive:
        assert [one.stop_position for one in archive.list_recordings()] == [end]
        assert server.error_count == 0
        assert replayed(archive, 0) == [b"last"]


def rests(server: headrace.ArchiveServer, count: int) -> bool:
    """Whether so many recordings rest."""
    recorder = server._recorder
    assert isinstance(recorder, RecorderThread)
    return len(recorder._resting) == count


def test_a_recording_that_rests_goes_on_with_the_next_message(
    archive: Archive, server: headrace.ArchiveServer
) -> None:
    """Again and again, and it ends in each way while it rests: by its publisher, by a client, and with the archive."""
    with archive.add_recorded_publication(CHANNEL, 3) as publication:
        for index in range(3):
            await_true(lambda: rests(server, 1))
            publication.offer_blocking(b"%d" % index, timeout_s=TIMEOUT_S)
            await_true(lambda: archive.recording_position(0) == publication.position)
        await_true(lambda: rests(server, 1))
        end = publication.position
    assert archive.await_signal(RecordingSignal.STOP, timeout_s=TIMEOUT_S).recording_id == 0
    assert replayed(archive, 0) == [b"0", b"1", b"2"]
    with archive.add_recorded_publication(CHANNEL, 4), archive.add_recorded_publication(CHANNEL, 5):
        await_true(lambda: rests(server, 2))
        assert archive.stop_recording_by_id(1)
        assert archive.await_signal(RecordingSignal.STOP, timeout_s=TIMEOUT_S).recording_id == 1
        await_true(lambda: rests(server, 1))
        server.close()
    with ArchiveDirectory(server.directory) as stored:
        assert [one.stop_position for one in stored.recordings()] == [end, 0, 0]


class Session:
    """A recording that moves when the test says so."""

    def __init__(self) -> None:
        self.position = 0
        self.is_recording = True
        self.is_stopped = False
        self.turns = 0
        self.is_waiting = False

    def do_work(self) -> int:
        self.turns += 1
        self.is_waiting = False
        return 0

    @property
    def has_work(self) -> bool:
        return self.is_waiting


def test_only_a_recording_that_has_not_moved_for_a_while_rests() -> None:
    """The recorder's thread has it until then, the archive's thread while it rests."""
    clock = ManualClock()
    recorder = RecorderThread(cast(Any, None), clock)
    moving, still, starting = Session(), Session(), Session()
    starting.is_recording = False
    for session in (moving, still, starting):
        recorder.take(cast(Any, session))
    for _ in range(10):
        recorder.do_work()
        moving.position += 32
        clock.advance(0.05)
    assert still.turns == 3
    assert (moving.turns, starting.turns) == (10, 10)
    assert recorder.look_at_resting() == 0
    still.is_waiting = True
    assert recorder.look_at_resting() == 1
    assert recorder.look_at_resting() == 0
    recorder.do_work()
    assert (still.turns, still.is_waiting) == (4, False)


def test_the_thread_waits_for_a_recording_and_for_the_end() -> None:
    """It makes no turn meanwhile."""
    recorder = RecorderThread(cast(Any, None), ManualClock())
    turns = threading.Semaphore(0)

    def run() -> None:
        for _ in range(3):
            recorder.do_work()
            turns.release()

    thread = threading.Thread(target=run)
    thread.start()
    session = Session()
    session.is_stopped = True
    recorder.take(cast(Any, session))
    assert turns.acquire(timeout=TIMEOUT_S)
    assert not turns.acquire(blocking=False)
    recorder.wake_for_good()
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()
    assert session.turns == 1


def test_the_mode_is_in_the_labels_of_the_counters(archive: Archive) -> None:
    labels = [one.label for one in archive.client.counters]
    assert any("archive-conductor max cycle time in ns: DEDICATED" in label for label in labels)
