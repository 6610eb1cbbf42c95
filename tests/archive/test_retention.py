"""Retention: which segment files of a recording go, which never do, and what is refused."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace
from headrace._agent.storage import DirectoryStorage
from headrace.archive import Archive, ArchiveServer, ErrorCode, RecordingSignal, Retention, extension_channel
from headrace.archive.aio import AsyncArchive
from headrace.archive.files import hold, holds, release
from headrace.archive.server import retention as expiry
from headrace.event_log import EventFilter, read_events
from tests.archive.test_segments import (
    CHANNEL,
    PER_SEGMENT,
    SEGMENT,
    bases,
    messages,
    notes,
    record,
    replayed,
)
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.system

HOUR_S = 3600
DAY = Retention(hours=24)


class RefusingStorage(DirectoryStorage):
    """A disk that refuses to delete segment files, or to make notes, while it is told to."""

    refused = ""

    def _check(self, name: str) -> None:
        if self.refused and name.endswith(self.refused):
            raise OSError(errno.EIO, "the disk refuses", name)

    def delete(self, name: str) -> None:
        self._check(name)
        super().delete(name)

    def create(self, name: str, length: int, *, may_exist: bool = False):  # type: ignore[no-untyped-def]
        self._check(name)
        return super().create(name, length, may_exist=may_exist)


@pytest.fixture(autouse=True)
def every_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retention is applied in every turn, so that what it keeps was looked at after a few requests."""
    monkeypatch.setattr(expiry, "PASS_INTERVAL_NS", 0)


@pytest.fixture
def storage(tmp_path: Path) -> RefusingStorage:
    """The disk of the archive."""
    return RefusingStorage(tmp_path / "archive")


@pytest.fixture
def driver() -> Iterator[headrace.MediaDriver]:
    """A driver for the archive."""
    with headrace.MediaDriver.embedded() as driver:
        yield driver


def started(driver: headrace.MediaDriver, storage: RefusingStorage) -> ArchiveServer:
    """An archive with segment files of one term."""
    return ArchiveServer(
        driver=driver,
        archive_directory=storage.directory,
        storage=storage,
        segment_file_length=SEGMENT,
        control_channel_enabled=False,
    )


@pytest.fixture
def server(driver: headrace.MediaDriver, storage: RefusingStorage) -> Iterator[ArchiveServer]:
    """A running archive."""
    with started(driver, storage) as server:
        yield server
        assert server.failure is None


@pytest.fixture
def archive(server: ArchiveServer, driver: headrace.MediaDriver) -> Iterator[Archive]:
    """A session with it, in which nothing is refused but on purpose."""
    with Archive.connect(driver=driver) as archive:
        yield archive


def make_old(directory: Path, recording_id: int, *, hours: float, until: int) -> None:
    """Have it look as if the files before a position had been written long ago, and the recording begun before."""
    for base in bases(directory, recording_id):
        if base < until:
            when = time.time() - hours * HOUR_S
            os.utime(directory / f"{recording_id}-{base}.rec", (when, when))


@pytest.fixture(autouse=True)
def long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings have begun in 2001, so that their files may be of any time since then."""
    whole = expiry.Expiry._written_ms

    def written_ms(self: expiry.Expiry, descriptor, base):  # type: ignore[no-untyped-def]
        return whole(self, descriptor.replace(start_timestamp=1_000_000_000_000), base)

    monkeypatch.setattr(expiry.Expiry, "_written_ms", written_ms)


def noted(directory: Path) -> str:
    """The archive's error log, and all else of its mark file."""
    return (directory / "archive-mark.dat").read_bytes().decode("ascii", "replace")


def settle(archive: Archive) -> None:
    """Until the archive has taken some turns more."""
    for _ in range(50):
        archive.list_recording_subscriptions()


def await_files(archive: Archive, directory: Path, recording_id: int, wanted: list[int]) -> None:
    """Until these segment files are left, and nothing is under way."""
    await_true(lambda: bases(directory, recording_id) == wanted and not notes(directory))
    settle(archive)
    assert bases(directory, recording_id) == wanted
    assert archive.start_position(recording_id) == wanted[0]


# --- what goes, and what stays -------------------------------------------------------------------------------------


def test_files_beyond_the_newest_bytes_go_and_no_other(archive: Archive, storage: RefusingStorage) -> None:
    """A file stays as long as one byte of it is among the newest."""
    recording_id = record(archive, 3 * PER_SEGMENT + 5)
    length = 5 * 1024
    for kept, wanted in (
        (length + 2 * SEGMENT + 1, [0, SEGMENT, 2 * SEGMENT, 3 * SEGMENT]),
        (length + 2 * SEGMENT, [SEGMENT, 2 * SEGMENT, 3 * SEGMENT]),
        (length + 1, [2 * SEGMENT, 3 * SEGMENT]),
        (1, [3 * SEGMENT]),
    ):
        archive.set_retention(recording_id, Retention(bytes=kept))
        await_files(archive, storage.directory, recording_id, wanted)
    assert replayed(archive, recording_id) == messages(3 * PER_SEGMENT, 5)


def test_files_that_were_written_long_ago_go_and_no_other(archive: Archive, storage: RefusingStorage) -> None:
    """Nor does one after a younger one, however old it looks."""
    recording_id = record(archive, 3 * PER_SEGMENT + 5)
    archive.set_retention(recording_id, DAY)
    directory = storage.directory
    make_old(directory, recording_id, hours=23, until=4 * SEGMENT)
    settle(archive)
    make_old(directory, recording_id, hours=25, until=SEGMENT)
    os.utime(directory / f"{recording_id}-{2 * SEGMENT}.rec", (1e9, 1e9))
    await_files(archive, directory, recording_id, [SEGMENT, 2 * SEGMENT, 3 * SEGMENT])
    assert replayed(archive, recording_id) == messages(PER_SEGMENT, 2 * PER_SEGMENT + 5)


def test_the_file_with_the_newest_data_always_stays(archive: Archive, storage: RefusingStorage) -> None:
    """Also if the recording ends where it does, and the next one is there, empty and young."""
    recording_id = record(archive, 2 * PER_SEGMENT)
    assert bases(storage.directory, recording_id) == [0, SEGMENT, 2 * SEGMENT]
    make_old(storage.directory, recording_id, hours=1e4, until=9 * SEGMENT)
    archive.set_retention(recording_id, DAY)
    await_files(archive, storage.directory, recording_id, [SEGMENT, 2 * SEGMENT])
    assert replayed(archive, recording_id) == messages(PER_SEGMENT, PER_SEGMENT)
    empty = record(archive, 0)
    archive.set_retention(empty, Retention(bytes=1))
    settle(archive)
    assert archive.start_position(empty) == 0


def test_with_time_and_bytes_a_file_goes_when_neither_keeps_it(
    archive: Archive, storage: RefusingStorage
) -> None:
    """Each is a promise of what is kept."""
    recording_id = record(archive, 4 * PER_SEGMENT + 5)
    make_old(storage.directory, recording_id, hours=25, until=3 * SEGMENT)
    archive.set_retention(recording_id, Retention(hours=24, bytes=2 * SEGMENT + 5 * 1024))
    await_files(archive, storage.directory, recording_id, [2 * SEGMENT, 3 * SEGMENT, 4 * SEGMENT])
    archive.set_retention(recording_id, Retention(hours=24, bytes=1))
    await_files(archive, storage.directory, recording_id, [3 * SEGMENT, 4 * SEGMENT])


def test_a_file_is_never_older_than_its_recording(
    archive: Archive, storage: RefusingStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy that lost its times, back to 1970, keeps what the recording says is young."""
    monkeypatch.undo()
    monkeypatch.setattr(expiry, "PASS_INTERVAL_NS", 0)
    recording_id = record(archive, 3 * PER_SEGMENT)
    for base in bases(storage.directory, recording_id):
        os.utime(storage.directory / f"{recording_id}-{base}.rec", (0, 0))
    archive.set_retention(recording_id, Retention(hours=1))
    settle(archive)
    assert archive.start_position(recording_id) == 0


def make_future(directory: Path, recording_id: int, *wanted: int) -> None:
    """Have it look as if files had been written in ten years."""
    for base in wanted:
        when = time.time() + 10 * 365 * 24 * HOUR_S
        os.utime(directory / f"{recording_id}-{base}.rec", (when, when))


def test_a_file_time_in_the_future_counts_as_that_of_the_next_file(
    archive: Archive, storage: RefusingStorage
) -> None:
    """So it does not stop a retention for ten years; the error log says so once."""
    recording_id = record(archive, 5 * PER_SEGMENT)
    make_old(storage.directory, recording_id, hours=25, until=3 * SEGMENT)
    make_future(storage.directory, recording_id, 0, SEGMENT)
    archive.set_retention(recording_id, DAY)
    await_files(archive, storage.directory, recording_id, [3 * SEGMENT, 4 * SEGMENT, 5 * SEGMENT])
    make_future(storage.directory, recording_id, 3 * SEGMENT)
    settle(archive)
    assert archive.start_position(recording_id) == 3 * SEGMENT
    assert noted(storage.directory).count("segment files were last written in the future") == 1


def test_files_of_the_future_alone_are_kept_from_when_they_are_looked_at(
    archive: Archive, storage: RefusingStorage
) -> None:
    recording_id = record(archive, 3 * PER_SEGMENT + 5)
    make_future(storage.directory, recording_id, *bases(storage.directory, recording_id))
    archive.set_retention(recording_id, DAY)
    settle(archive)
    assert archive.start_position(recording_id) == 0
    archive.set_retention(recording_id, Retention(hours=0.1 / HOUR_S))
    await_files(archive, storage.directory, recording_id, [3 * SEGMENT])


def test_a_recording_that_has_ended_goes_whole_when_its_time_is_over(
    archive: Archive, storage: RefusingStorage
) -> None:
    """With its files and its entry; one that still runs, or has ended later, stays."""
    rule = Retention(ended_hours=0.1 / HOUR_S)
    kept = record(archive, PER_SEGMENT, stream_id=8)
    archive.set_retention(kept, Retention(ended_hours=1))
    with archive.add_recorded_publication(CHANNEL, 7, retention=rule) as publication:
        for message in messages(0, 2 * PER_SEGMENT):
            publication.offer_blocking(message)
        active = archive.list_recordings(channel="ipc")[-1]
        await_true(lambda: archive.recording_position(active.recording_id) == publication.position)
        settle(archive)
        assert archive.start_position(active.recording_id) == 0
    await_true(lambda: [one.recording_id for one in archive.list_recordings()] == [kept])
    await_true(lambda: bases(storage.directory, active.recording_id) == [] and not notes(storage.directory))
    assert replayed(archive, kept) == messages(0, PER_SEGMENT)
    assert active.retention == rule
    assert "retain-ended=100ms" in active.original_channel


def test_an_end_in_the_future_counts_from_when_it_is_looked_at(
    archive: Archive, server: ArchiveServer, storage: RefusingStorage
) -> None:
    recording_id = record(archive, PER_SEGMENT)
    make_future(storage.directory, recording_id, *bases(storage.directory, recording_id))
    assert server._catalog is not None
    server._catalog.update(recording_id, stop_timestamp=round((time.time() + 365 * 24 * HOUR_S) * 1000))
    archive.set_retention(recording_id, Retention(ended_hours=0.1 / HOUR_S))
    await_true(lambda: archive.list_recordings() == [])
    assert "it ended in the future" in noted(storage.directory)


def test_a_replay_and_a_hold_keep_a_recording_that_has_ended(
    archive: Archive, storage: RefusingStorage
) -> None:
    recording_id = record(archive, 4 * PER_SEGMENT)
    hold(storage.directory, "reader", recording_id, 0)
    with archive.replay(recording_id, stream_id=70) as replay:
        next(replay)
        archive.set_retention(recording_id, Retention(ended_hours=0.01 / HOUR_S))
        settle(archive)
        release(storage.directory, "reader")
        settle(archive)
        assert archive.find_recording(recording_id) is not None
        hold(storage.directory, "reader", recording_id, 0)
    settle(archive)
    assert archive.find_recording(recording_id) is not None
    assert "the hold 'reader' keeps it, although its retention no longer does" in noted(storage.directory)
    release(storage.directory, "reader")
    await_true(lambda: archive.find_recording(recording_id) is None)


def test_an_active_recording_keeps_its_newest_bytes_while_it_goes_on(
    archive: Archive, storage: RefusingStorage
) -> None:
    """The retention came with the request to record; the driver never hears of it."""
    with archive.add_recorded_publication(CHANNEL, 7, retention=Retention(bytes=2 * SEGMENT)) as publication:
        assert "retain" not in publication.channel
        for message in messages(0, 10 * PER_SEGMENT):
            publication.offer_blocking(message)
        recording_id = archive.list_recordings()[-1].recording_id
        await_files(archive, storage.directory, recording_id, [8 * SEGMENT, 9 * SEGMENT, 10 * SEGMENT])
        publication.offer_blocking(messages(10 * PER_SEGMENT, 1)[0])
        await_files(archive, storage.directory, recording_id, [8 * SEGMENT, 9 * SEGMENT, 10 * SEGMENT])
    archive.await_signal(RecordingSignal.STOP)
    assert replayed(archive, recording_id) == messages(8 * PER_SEGMENT, 2 * PER_SEGMENT + 1)


def test_a_retention_outlives_the_archive_and_can_be_taken_back(
    driver: headrace.MediaDriver, storage: RefusingStorage
) -> None:
    """It is in the catalog; without it everything is kept again."""
    with started(driver, storage), Archive.connect(driver=driver) as archive:
        kept, bound = record(archive, 3 * PER_SEGMENT), record(archive, 3 * PER_SEGMENT)
        for recording_id in (kept, bound):
            archive.set_retention(recording_id, DAY)
        archive.set_retention(kept, None)
    for recording_id in (kept, bound):
        make_old(storage.directory, recording_id, hours=25, until=SEGMENT)
    with started(driver, storage), Archive.connect(driver=driver) as archive:
        await_files(archive, storage.directory, bound, [SEGMENT, 2 * SEGMENT, 3 * SEGMENT])
        assert bases(storage.directory, kept) == [0, SEGMENT, 2 * SEGMENT, 3 * SEGMENT]
        found = [archive.find_recording(recording_id) for recording_id in (kept, bound)]
        assert [one and one.retention for one in found] == [None, DAY]


def test_a_retention_is_asked_for_in_every_way_to_record(
    archive: Archive, driver: headrace.MediaDriver
) -> None:
    """And with asyncio; an extension leaves it as it is."""
    archive.start_recording(CHANNEL, 7, retention=Retention(bytes=5))
    archive.client.add_exclusive_publication(CHANNEL, 7).close()
    archive.await_signal(RecordingSignal.STOP)
    archive.stop_recording(CHANNEL, 7)
    archive.add_durable_publication(CHANNEL, 8, retention=Retention(bytes=6)).close()
    archive.await_signal(RecordingSignal.STOP)

    async def ask() -> None:
        async with await AsyncArchive.connect(driver=driver) as awaited:
            (await awaited.add_recorded_publication(CHANNEL, 9, retention=Retention(bytes=7))).close()
            (await awaited.add_durable_publication(CHANNEL, 9, retention=Retention(bytes=8))).close()
            await awaited.set_retention(0, Retention(hours=1.5, bytes=9))

    asyncio.run(ask())
    found = [one.retention for one in archive.list_recordings()]
    assert found == [Retention(hours=1.5, bytes=9), *(Retention(bytes=kept) for kept in (6, 7, 8))]
    await_true(lambda: not any(one.is_active for one in archive.list_recordings()))
    first = archive.list_recordings()[0]
    with archive.client.add_exclusive_publication(extension_channel(CHANNEL, first), 7):
        archive.extend_recording(0, f"{CHANNEL}|retain-time=5400s|retain-bytes=9", 7)
        archive.await_signal(RecordingSignal.EXTEND)
    assert archive.list_recordings()[0].retention == first.retention


# --- what keeps a file ---------------------------------------------------------------------------------------------


def test_a_replay_keeps_the_file_that_it_reads(archive: Archive, storage: RefusingStorage) -> None:
    """And those after it; when it goes on, or ends, they go."""
    recording_id = record(archive, 4 * PER_SEGMENT)
    with archive.client.add_subscription(CHANNEL, 70) as subscription:
        replay_id = archive.start_replay(recording_id, CHANNEL, 70)
        await_true(lambda: subscription.is_connected)
        archive.set_retention(recording_id, Retention(bytes=1))
        await_true(lambda: archive.start_position(recording_id) == SEGMENT)
        settle(archive)
        # It sends a term ahead of what is read, and has closed the first file.
        assert archive.start_position(recording_id) == SEGMENT
        assert subscription.receive(TIMEOUT_S).payload == messages(0, 1)[0]
        archive.stop_replay(replay_id)
    await_files(archive, storage.directory, recording_id, [3 * SEGMENT, 4 * SEGMENT])


def test_a_follow_that_catches_up_keeps_what_it_has_still_to_read(
    archive: Archive, storage: RefusingStorage
) -> None:
    """It reads a recording that may lose all but its last file from the beginning to the end."""
    recording_id = record(archive, 8 * PER_SEGMENT)
    with archive.follow(recording_id) as following:
        first = following.receive(TIMEOUT_S)
        assert first is not None
        archive.set_retention(recording_id, Retention(bytes=1))
        await_true(lambda: archive.start_position(recording_id) > 0)
        settle(archive)
        assert archive.start_position(recording_id) < 7 * SEGMENT
        found = [first, *(following.receive(TIMEOUT_S) for _ in range(8 * PER_SEGMENT - 1))]
        assert [one and bytes(one.payload) for one in found] == messages(0, 8 * PER_SEGMENT)


def test_a_replication_keeps_what_it_has_still_to_copy(
    archive: Archive, driver: headrace.MediaDriver, storage: RefusingStorage, tmp_path: Path
) -> None:
    """However long the standby takes; the copy is whole, and has no retention of its own."""
    recording_id = record(archive, 8 * PER_SEGMENT)
    with ArchiveServer(
        driver=driver,
        archive_directory=tmp_path / "standby",
        local_control_stream_id=12,
        control_channel_enabled=False,
        segment_file_length=SEGMENT,
        is_invoked=True,
    ) as standby:
        runs, has_ended = threading.Event(), threading.Event()

        def step() -> None:
            while not has_ended.is_set():
                if runs.wait(0.01):
                    standby.do_work()

        runs.set()
        stepper = threading.Thread(target=step)
        stepper.start()
        try:
            with Archive.connect(driver=driver, control_stream_id=12) as other:
                ways = {"replication_channel": "aeron:ipc", "source_response_channel": "aeron:ipc"}
                replication = other.replicate(recording_id, "aeron:ipc", **ways)  # type: ignore[arg-type]
                replication.wait_for_position(2 * SEGMENT)
                runs.clear()
                archive.set_retention(recording_id, Retention(bytes=1))
                await_true(lambda: archive.start_position(recording_id) > 0)
                settle(archive)
                runs.set()
                replication.wait(TIMEOUT_S)
                assert replayed(other, 0) == messages(0, 8 * PER_SEGMENT)
                assert other.list_recordings()[0].retention is None
                await_files(archive, storage.directory, recording_id, [7 * SEGMENT, 8 * SEGMENT])
        finally:
            runs.set()
            has_ended.set()
            stepper.join()


def test_a_hold_keeps_the_file_with_its_position(
    archive: Archive, server: ArchiveServer, storage: RefusingStorage
) -> None:
    """It outlives the reader, moves with it, and ends when it is released; the error log names it."""
    recording_id, directory = record(archive, 4 * PER_SEGMENT + 1), storage.directory
    hold(directory, "slow", recording_id, SEGMENT + 32)
    hold(directory, "fast", recording_id, 3 * SEGMENT)
    hold(directory, "other", recording_id + 1, 0)
    archive.set_retention(recording_id, Retention(bytes=1))
    await_files(archive, directory, recording_id, [SEGMENT, 2 * SEGMENT, 3 * SEGMENT, 4 * SEGMENT])
    hold(directory, "slow", recording_id, 2 * SEGMENT)
    await_files(archive, directory, recording_id, [2 * SEGMENT, 3 * SEGMENT, 4 * SEGMENT])
    assert release(directory, "slow") == 1
    await_files(archive, directory, recording_id, [3 * SEGMENT, 4 * SEGMENT])
    assert [(one.name, one.position) for one in holds(directory)] == [("fast", 3 * SEGMENT), ("other", 0)]
    assert server.error_count == 0
    assert (
        noted(directory).count("the hold 'slow' keeps segment files that its retention no longer keeps") == 1
    )
    archive.purge_recording(recording_id)
    await_true(lambda: [one.name for one in holds(directory)] == ["other"])


def test_other_work_on_the_files_goes_first(archive: Archive, storage: RefusingStorage) -> None:
    """A purge of segments that a client asked for, and the retention, do not meet; the client hears of its own."""
    recording_id = record(archive, 6 * PER_SEGMENT)
    archive.purge_segments(recording_id, 2 * SEGMENT)
    archive.set_retention(recording_id, Retention(bytes=1))
    assert archive.await_signal(RecordingSignal.DELETE).recording_id == recording_id
    await_files(archive, storage.directory, recording_id, [5 * SEGMENT, 6 * SEGMENT])
    assert RecordingSignal.DELETE not in [one.signal for one in archive.take_signals()]


# --- faults --------------------------------------------------------------------------------------------------------


def test_a_disk_that_refuses_is_told_once_and_tried_again(
    archive: Archive, server: ArchiveServer, storage: RefusingStorage
) -> None:
    """Nothing has changed then; other recordings lose what they may, and recording goes on."""
    recording_id = record(archive, 4 * PER_SEGMENT)
    storage.refused = ".begun"
    archive.set_retention(recording_id, Retention(bytes=1))
    await_true(lambda: server.error_count == 1)
    settle(archive)
    assert server.error_count == 1
    assert archive.start_position(recording_id) == 0
    storage.refused = ""
    await_files(archive, storage.directory, recording_id, [3 * SEGMENT, 4 * SEGMENT])


def test_files_that_the_disk_did_not_delete_go_with_the_next_purge(
    archive: Archive, server: ArchiveServer, storage: RefusingStorage
) -> None:
    """They are before the recording meanwhile, and its replays do not miss them."""
    recording_id = record(archive, 4 * PER_SEGMENT)
    storage.refused = ".rec"
    archive.set_retention(recording_id, Retention(bytes=3 * SEGMENT))
    await_true(lambda: server.error_count == 1)
    assert archive.start_position(recording_id) == SEGMENT
    assert bases(storage.directory, recording_id)[0] == 0
    storage.refused = ""
    archive.set_retention(recording_id, Retention(bytes=2 * SEGMENT))
    await_files(archive, storage.directory, recording_id, [2 * SEGMENT, 3 * SEGMENT, 4 * SEGMENT])
    assert replayed(archive, recording_id) == messages(2 * PER_SEGMENT, 2 * PER_SEGMENT)


def test_a_file_that_is_missing_keeps_those_after_it(
    archive: Archive, server: ArchiveServer, storage: RefusingStorage
) -> None:
    """Its time is not known; the error says which it is."""
    recording_id = record(archive, 3 * PER_SEGMENT)
    make_old(storage.directory, recording_id, hours=25, until=4 * SEGMENT)
    (storage.directory / f"{recording_id}-0.rec").unlink()
    archive.set_retention(recording_id, DAY)
    await_true(lambda: server.error_count == 1)
    settle(archive)
    assert archive.start_position(recording_id) == 0


def test_events_say_what_was_purged_and_why(archive: Archive, storage: RefusingStorage) -> None:
    """From when the recording begins later to when the files are gone."""
    recording_id = record(archive, 3 * PER_SEGMENT)
    archive.set_retention(recording_id, Retention(bytes=2 * SEGMENT))
    await_files(archive, storage.directory, recording_id, [SEGMENT, 2 * SEGMENT, 3 * SEGMENT])
    archive.purge_segments(recording_id, 2 * SEGMENT)
    archive.await_signal(RecordingSignal.DELETE)
    events = read_events(storage.directory, EventFilter(kinds=["segment-purge"]))
    told = [(one.id, one.new, one.reason) for one in events]
    begins = "it begins at position={}; the segment files before are deleted: {}"
    assert told == [
        (
            recording_id,
            "Deleting",
            begins.format(SEGMENT, "its retention retain-bytes=128k no longer keeps them"),
        ),
        (recording_id, "Done", "all its files were deleted"),
        (recording_id, "Deleting", begins.format(2 * SEGMENT, "a client asked for it")),
        (recording_id, "Done", "all its files were deleted"),
    ]


# --- values --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({}, "needs hours, bytes or ended_hours"),
        ({"hours": 0}, "hours=0: must be at least a millisecond"),
        ({"hours": -1.5}, "hours=-1.5: must be"),
        ({"hours": float("nan")}, "hours=nan: must be"),
        ({"hours": float("inf")}, "hours=inf: must be"),
        ({"hours": 1e9}, "less than 292 years"),
        ({"bytes": 0}, "bytes=0: must be from 1"),
        ({"bytes": -1}, "bytes=-1: must be"),
        ({"bytes": 1 << 63}, "bytes=9223372036854775808: must be"),
        ({"bytes": 1.5}, "bytes=1.5: must be"),
    ],
)
def test_a_retention_that_cannot_be_is_refused(values: dict[str, object], rule: str) -> None:
    """By name, with the value and the rule."""
    with pytest.raises(headrace.ConfigError) as refusal:
        Retention(**values)  # type: ignore[arg-type]
    assert rule in str(refusal.value)


WRONG = {
    "retain-time=7d": "retain-time='7d': must be a whole number, with a unit if need be",
    "retain-time=0s": "retain-time='0s': must be at least a millisecond",
    "retain-time=-5s": "retain-time='-5s': must be at least a millisecond",
    "retain-bytes=much": "retain-bytes='much': must be a whole number",
    "retain-bytes=0|retain-time=1s": "retain-bytes='0': must be from 1",
    "retain-bytes=8589934592g": "retain-bytes='8589934592g': must be from 1 to 9223372036854775807",
}


@pytest.mark.parametrize(("parameters", "rule"), WRONG.items(), ids=WRONG)
def test_a_channel_with_a_retention_that_cannot_be_is_refused(
    archive: Archive, parameters: str, rule: str
) -> None:
    """By the archive, whichever client asks; nothing changes."""
    recording_id = record(archive, 1)
    before = archive.find_recording(recording_id)
    channel = f"{CHANNEL}|{parameters}"
    for ask in (
        lambda: archive.start_recording(channel, 9),
        lambda: archive.extend_recording(recording_id, channel, 7),
        lambda: archive.update_channel(recording_id, channel),
    ):
        with pytest.raises(headrace.ArchiveError) as refusal:
            ask()
        assert rule in str(refusal.value)
        assert refusal.value.code == ErrorCode.GENERIC
    after = archive.find_recording(recording_id)
    assert before
    assert after
    assert after.replace(correlation_id=before.correlation_id) == before
    assert archive.list_recording_subscriptions() == []


def test_a_retention_is_refused_where_it_would_have_no_effect(archive: Archive) -> None:
    """Of an unknown recording, and of an extension that would change it."""
    with pytest.raises(headrace.ArchiveError, match="unknown recording id: 5") as refusal:
        archive.set_retention(5, DAY)
    assert refusal.value.code == ErrorCode.UNKNOWN_RECORDING
    recording_id = record(archive, 1)
    with pytest.raises(headrace.ArchiveError, match="with retain-bytes=5: it has none; leave it out"):
        archive.extend_recording(recording_id, f"{CHANNEL}|retain-bytes=5", 7)


def test_a_catalog_with_a_retention_that_cannot_be_keeps_everything(
    driver: headrace.MediaDriver, storage: RefusingStorage
) -> None:
    """Another archive may have taken it; a warning names it, once."""
    with started(driver, storage), Archive.connect(driver=driver) as archive:
        recording_id = record(archive, 3 * PER_SEGMENT)
        archive.update_channel(recording_id, f"{CHANNEL}|retain-bytes=1g")
    catalog = storage.directory / "archive.catalog"
    catalog.write_bytes(catalog.read_bytes().replace(b"retain-bytes=1g", b"retain-bytes=xg"))
    with started(driver, storage) as server, Archive.connect(driver=driver) as archive:
        settle(archive)
        assert archive.start_position(recording_id) == 0
        assert server.error_count == 0
        found = archive.find_recording(recording_id)
        assert found is not None
        assert found.retention is None
    text = "it keeps everything, because its retention is invalid: retain-bytes='xg'"
    assert noted(storage.directory).count(text) == 1


@pytest.mark.parametrize("name", ["", "a/b", "../x", "a b", "x" * 101, "\u00e4"])
def test_a_hold_that_cannot_be_is_refused(tmp_path: Path, name: str) -> None:
    """Its name is that of a file."""
    with pytest.raises(headrace.ConfigError, match="must be 1 to 100 letters"):
        hold(tmp_path, name, 0, 0)
    for recording_id, position in ((-1, 0), (0, -1)):
        with pytest.raises(headrace.ConfigError, match="=-1: must be at least 0"):
            hold(tmp_path, "fine", recording_id, position)
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_no_holds_are_left_alone(tmp_path: Path) -> None:
    """Whatever a person puts there; a hold may move back, and two files of one become one."""
    for name in ("1-2.hold", "-1-2-x.hold", "01-2-x.hold", "1-2-.hold", "1-2-x.hold.part", "1-2-a b.hold"):
        (tmp_path / name).touch()
    assert holds(tmp_path) == []
    for name in ("1-64-x.hold", "1-32-x.hold", "1-32-x-y.hold"):
        (tmp_path / name).touch()
    hold(tmp_path, "x", 1, 0)
    assert [(one.name, one.position) for one in holds(tmp_path)] == [("x", 0), ("x-y", 32)]
    hold(tmp_path, "x", 2, 5)
    assert release(tmp_path, "x", 1) == 1
    assert [(one.name, one.recording_id) for one in holds(tmp_path)] == [("x-y", 1), ("x", 2)]
