"""The whole archive: recording, replaying, asking, truncating, through our client."""

import asyncio
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.archive import (
    Archive,
    ArchiveConfig,
    ArchiveFileError,
    Catalog,
    DirectoryStorage,
    ErrorCode,
    RecordingSignal,
    SourceLocation,
    extension_channel,
)
from headrace.archive.aio import AsyncArchive
from headrace.archive.protocol.answers import RecordingProgress, RecordingStarted, RecordingStopped
from headrace.archive.protocol.counters import REPLAY_SESSIONS
from headrace.archive.protocol.messages import decode
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_port

CHANNEL = "aeron:ipc?term-length=64k"
STREAM_ID = 1001
# Some are longer than the MTU, so that they are recorded as several frames.
MESSAGES = [b"message %d " % index * (1 + index % 300) for index in range(1200)]
SEGMENT = 128 * 1024

pytestmark = pytest.mark.system


@pytest.fixture
def archiving(tmp_path: Path) -> Iterator[headrace.ArchivingMediaDriver]:
    """An archive with small segments, and a driver of its own."""
    with headrace.ArchivingMediaDriver.embedded(
        archive_directory=tmp_path / "archive",
        segment_file_length=SEGMENT,
        recording_events_enabled=True,
        recording_events_channel="aeron:ipc",
    ) as archiving:
        yield archiving


@pytest.fixture
def archive(archiving: headrace.ArchivingMediaDriver) -> Iterator[Archive]:
    """A session with it."""
    with archiving.connect_archive() as archive:
        yield archive


def record(archive: Archive, messages: list[bytes] = MESSAGES, stream_id: int = STREAM_ID) -> tuple[int, int]:
    """Records messages from the first to the last; gives the recording's id and where it ended."""
    with archive.add_recorded_publication(CHANNEL, stream_id) as publication:
        for message in messages:
            publication.offer_blocking(message)
        position = publication.position
    assert position is not None
    stopped = archive.await_signal(RecordingSignal.STOP)
    assert stopped.position == position
    archive.await_signal(RecordingSignal.START)
    return stopped.recording_id, position


def replayed(archive: Archive, recording_id: int, **settings: int) -> list[bytes]:
    """All messages of a replay."""
    with archive.replay(recording_id, **settings) as replay:
        return [message.payload for message in replay]


def test_an_embedded_archive_leaves_nothing_behind_unless_its_directory_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with headrace.ArchivingMediaDriver.embedded() as archiving:
        made = Path(archiving.archive.config.archive_directory)
        assert made.is_dir()
    assert not made.exists()
    with pytest.raises(headrace.ConfigError):
        headrace.ArchivingMediaDriver.embedded(segment_file_length=1)
    assert list(tmp_path.iterdir()) == []
    with headrace.ArchivingMediaDriver.embedded(archive_directory="named"):
        pass
    monkeypatch.setenv("AERON_ARCHIVE_DIR", "by the environment")
    with headrace.ArchivingMediaDriver.embedded():
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"named", "by the environment"}


def test_what_was_recorded_is_replayed(archiving: headrace.ArchivingMediaDriver, archive: Archive) -> None:
    """Over many terms and segments, whole; and the files are what the catalog says."""
    recording_id, end = record(archive)
    recording = archive.find_recording(recording_id)
    assert recording is not None
    assert (recording.start_position, recording.stop_position) == (0, end)
    assert end > 3 * SEGMENT
    assert replayed(archive, recording_id) == MESSAGES
    files = {path.name for path in Path(archiving.archive.directory).glob("*.rec")}
    assert files == {f"{recording_id}-{base}.rec" for base in range(0, end + 1, SEGMENT)}


def test_a_stream_that_is_connected_is_in_the_list_of_recordings(tmp_path: Path) -> None:
    """Although the archive hears of both in one turn."""
    with (
        headrace.MediaDriver.embedded(threading_mode="SHARED") as driver,
        headrace.ArchiveServer(
            driver=driver,
            archive_directory=tmp_path / "archive",
            control_channel_enabled=False,
            is_invoked=True,
        ) as server,
        driver.connect() as client,
        ThreadPoolExecutor(1) as requests,
    ):

        def answer_to(request: Future[Any]) -> Any:
            await_true(lambda: server.do_work() >= 0 and request.done())
            return request.result()

        archive = answer_to(requests.submit(Archive.connect, client))
        answer_to(requests.submit(archive.start_recording, CHANNEL, STREAM_ID))
        publication = client.add_publication(CHANNEL, STREAM_ID)
        assert publication.wait_until_connected(TIMEOUT_S)
        before = archive._publication.position
        listing = requests.submit(archive.list_recordings)
        await_true(lambda: archive._publication.position > before)
        assert [one.stream_id for one in answer_to(listing)] == [STREAM_ID]


def test_a_replay_begins_and_ends_where_it_is_asked_to(archive: Archive) -> None:
    """At positions that messages reported; a length within a frame is rounded up to its end."""
    recording_id, end = record(archive)
    with archive.replay(recording_id) as replay:
        positions = [message.position for message in replay]
    first, last = 400, 900
    start, stop = positions[first - 1], positions[last - 1]
    assert replayed(archive, recording_id, position=start) == MESSAGES[first:]
    assert replayed(archive, recording_id, position=start, length=stop - start) == MESSAGES[first:last]
    assert replayed(archive, recording_id, position=start, length=stop - start - 1) == MESSAGES[first:last]
    assert replayed(archive, recording_id, position=positions[-2], length=end) == MESSAGES[-1:]


@pytest.mark.parametrize("channel", ["aeron:ipc", "aeron:udp?endpoint=127.0.0.1:0"])
def test_several_replays_come_each_to_its_own_reader(archive: Archive, channel: str) -> None:
    """Also where the system chooses ports."""
    recording_id, end = record(archive)
    with (
        archive.replay(recording_id, channel=channel) as first,
        archive.replay(recording_id, channel=channel, length=end) as second,
    ):
        assert [message.payload for message in second] == MESSAGES
        assert [message.payload for message in first] == MESSAGES


def test_a_reader_that_takes_its_time_over_the_last_message_sees_the_end(tmp_path: Path) -> None:
    """Although the stream of the replay has gone by then."""
    with (
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=tmp_path / "archive", replay_linger_timeout_ns=1
        ) as archiving,
        archiving.connect_archive() as archive,
    ):
        recording_id, end = record(archive, [b"only"])
        with archive.replay(recording_id) as replay:
            assert next(replay).payload == b"only"
            await_true(lambda: not replay.subscription.images)
            assert next(replay, None) is None
            assert replay.position == end


def test_a_replay_is_read_in_batches(archive: Archive) -> None:
    """By the reader of files, which takes a replay's image as well and gives it the recording's session."""
    recording_id, end = record(archive)
    descriptor = archive.find_recording(recording_id)
    assert descriptor is not None
    with archive.replay(recording_id, stream_id=7) as replay:
        assert replay.subscription.wait_until_connected(TIMEOUT_S)
        (image,) = replay.subscription.images

        frames = headrace.RecordedFrames(
            recording_id,
            start_position=descriptor.start_position,
            initial_term_id=descriptor.initial_term_id,
            term_length=descriptor.term_buffer_length,
            segment_length=descriptor.segment_file_length,
            stream_id=7,
            session_id=descriptor.session_id,
        )

        def reader_from(start: int) -> headrace.RecordingReader:
            return headrace.RecordingReader(
                image, frames, start=start, stop=end, limit=end, is_frame_at_start=True
            )

        with pytest.raises(ArchiveFileError, match="continues at position=0, expected position=1024"):
            reader_from(1024).read_batch(10, timeout_s=TIMEOUT_S)
        reader, payloads = reader_from(0), []
        while not reader.is_at_end:
            batch = reader.read_batch(100, timeout_s=TIMEOUT_S)
            assert len(batch) == 100 or reader.is_at_end
            assert set(batch.session_ids) == {descriptor.session_id}
            payloads += batch.to_list()
    assert payloads == MESSAGES
    assert not reader.read_batch(100)


def test_a_replay_follows_a_live_recording_until_it_stops(archive: Archive) -> None:
    """Several at once, begun before, in the middle and from there on."""
    publication = archive.add_recorded_publication(CHANNEL, STREAM_ID)
    recording_id = archive.await_signal(RecordingSignal.START).recording_id
    for message in MESSAGES[:500]:
        publication.offer_blocking(message)
    middle = publication.position
    replays = [
        archive.replay(recording_id, stream_id=2001),
        archive.replay(recording_id, stream_id=2002),
    ]
    found: list[list[bytes]] = [[], []]

    def take(index: int) -> None:
        found[index] = [message.payload for message in replays[index]]

    threads = [threading.Thread(target=take, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for message in MESSAGES[500:]:
        publication.offer_blocking(message)
    late = archive.replay(recording_id, position=middle, stream_id=2003)
    publication.close()
    assert [message.payload for message in late] == MESSAGES[500:]
    for thread in threads:
        thread.join()
    assert found == [MESSAGES, MESSAGES]
    for replay in (*replays, late):
        replay.close()


def test_a_replay_does_not_pass_a_counter(archiving: headrace.ArchivingMediaDriver, archive: Archive) -> None:
    """And goes on as the counter moves."""
    recording_id, end = record(archive)
    with archive.replay(recording_id) as replay:
        positions = [message.position for message in replay]
    with archive.client.add_counter(1500, b"", "limit") as counter:
        counter.value = positions[99]
        with archive.replay(recording_id, limit_counter_id=counter.counter_id) as replay:
            assert [next(replay).payload for _ in range(100)] == MESSAGES[:100]
            assert replay.subscription.receive(timeout_s=0.2) is None
            counter.value = end
            assert [message.payload for message in replay] == MESSAGES[100:]


def test_a_recording_goes_on_where_it_stopped(archive: Archive) -> None:
    """With another publisher that starts there; one that starts elsewhere is refused."""
    recording_id, end = record(archive, MESSAGES[:700])
    recording = archive.find_recording(recording_id)
    assert recording is not None
    archive.extend_recording(recording_id, CHANNEL, STREAM_ID)
    with archive.client.add_exclusive_publication(CHANNEL, STREAM_ID):
        archive_error = None
        while archive_error is None:
            archive.poll()
            archive_error = next(iter(archive._signals._errors.values()), None)
        assert archive_error.code == ErrorCode.INVALID_EXTENSION
    archive.stop_recording(CHANNEL, STREAM_ID)
    archive.extend_recording(recording_id, CHANNEL, STREAM_ID, auto_stop=True)
    channel = extension_channel(CHANNEL, recording)
    with archive.client.add_exclusive_publication(channel, STREAM_ID) as publication:
        assert publication.position == end
        assert archive.await_signal(RecordingSignal.EXTEND).position == end
        for message in MESSAGES[700:]:
            publication.offer_blocking(message)
    archive.await_signal(RecordingSignal.STOP)
    assert replayed(archive, recording_id) == MESSAGES


def test_recordings_are_listed_found_and_asked_for(archive: Archive) -> None:
    """By id, by stream, by publisher."""
    ids = [record(archive, MESSAGES[:50], stream_id)[0] for stream_id in (1001, 1002, 1001)]
    assert [one.recording_id for one in archive.list_recordings()] == ids
    assert [one.recording_id for one in archive.list_recordings(ids[1], 1)] == ids[1:2]
    assert [one.recording_id for one in archive.list_recordings(stream_id=1001)] == [ids[0], ids[2]]
    assert archive.list_recordings(channel="nowhere", stream_id=1001) == []
    assert archive.find_recording(99) is None
    recording = archive.find_recording(ids[2])
    assert recording is not None
    found = archive.find_last_matching_recording("aeron:ipc", 1001, recording.session_id)
    assert found == ids[2]
    assert archive.find_last_matching_recording("aeron:ipc", 1001, 4711) is None
    assert archive.start_position(ids[0]) == 0
    assert archive.stop_position(ids[0]) == archive.max_recorded_position(ids[0])
    assert archive.recording_position(ids[0]) is None
    archive.update_channel(ids[0], "aeron:ipc?alias=renamed")
    renamed = archive.find_recording(ids[0])
    assert renamed is not None
    assert renamed.original_channel == "aeron:ipc?alias=renamed"


def test_active_recordings_are_seen_and_stopped(archive: Archive) -> None:
    """By channel, by subscription, by recording."""
    stops = {
        "channel": lambda subscription_id, recording_id: archive.stop_recording(CHANNEL, STREAM_ID),
        "subscription": lambda subscription_id, recording_id: archive.stop_recording_subscription(
            subscription_id
        ),
        "recording": lambda subscription_id, recording_id: archive.stop_recording_by_id(recording_id),
    }
    for stop in stops.values():
        subscription_id = archive.start_recording(CHANNEL, STREAM_ID)
        with archive.client.add_publication(CHANNEL, STREAM_ID) as publication:
            publication.offer_blocking(b"recorded")
            recording_id = archive.await_signal(RecordingSignal.START).recording_id
            while archive.recording_position(recording_id) != publication.position:
                pass
            assert archive.stop_position(recording_id) is None
            assert archive.list_recording_subscriptions() == [(subscription_id, STREAM_ID, "aeron:ipc")]
            counters = [record for record in archive.client.counters if record.type_id == 100]
            assert [record.value for record in counters] == [publication.position]
            stop(subscription_id, recording_id)
            assert archive.await_signal(RecordingSignal.STOP).position == publication.position
        assert archive.list_recording_subscriptions() == []
        assert replayed(archive, recording_id) == [b"recorded"]


def test_a_cut_recording_ends_at_the_cut(archiving: headrace.ArchivingMediaDriver, archive: Archive) -> None:
    """Within a segment, and at its beginning; the files after it are deleted. A purged one is unknown."""
    recording_id, end = record(archive)
    with archive.replay(recording_id) as replay:
        positions = [message.position for message in replay]
    cut = positions[500]
    assert archive.truncate_recording(recording_id, cut) == end // SEGMENT - cut // SEGMENT
    archive.await_signal(RecordingSignal.DELETE)
    assert archive.stop_position(recording_id) == cut
    assert replayed(archive, recording_id) == MESSAGES[:501]
    assert archive.truncate_recording(recording_id, 0) == cut // SEGMENT + 1
    archive.await_signal(RecordingSignal.DELETE)
    assert not list(Path(archiving.archive.directory).glob("*.rec"))
    archive.purge_recording(recording_id)
    archive.await_signal(RecordingSignal.DELETE)
    assert archive.list_recordings() == []


REFUSALS = {
    "unknown recording": (lambda archive, id_, end: archive.start_position(99), ErrorCode.UNKNOWN_RECORDING),
    "replay of an unknown recording": (
        lambda archive, id_, end: archive.replay(99),
        ErrorCode.UNKNOWN_RECORDING,
    ),
    "position after the end": (
        lambda archive, id_, end: archive.replay(id_, position=end + 32),
        ErrorCode.INVALID_POSITION,
    ),
    "position within a frame": (
        lambda archive, id_, end: archive.replay(id_, position=32),
        ErrorCode.INVALID_POSITION,
    ),
    "position off the grid": (lambda archive, id_, end: archive.replay(id_, position=33), ErrorCode.GENERIC),
    "negative length": (lambda archive, id_, end: archive.replay(id_, length=-7), ErrorCode.GENERIC),
    "unknown counter": (
        lambda archive, id_, end: archive.replay(id_, limit_counter_id=900),
        ErrorCode.GENERIC,
    ),
    "malformed channel": (lambda archive, id_, end: archive.start_recording("udp://x", 1), ErrorCode.GENERIC),
    "nothing to stop": (
        lambda archive, id_, end: archive.stop_recording(CHANNEL, 99),
        ErrorCode.UNKNOWN_SUBSCRIPTION,
    ),
    "truncate after the end": (
        lambda archive, id_, end: archive.truncate_recording(id_, end + 32),
        ErrorCode.INVALID_POSITION,
    ),
    "truncate within a frame": (
        lambda archive, id_, end: archive.truncate_recording(id_, 32),
        ErrorCode.INVALID_POSITION,
    ),
    "extension with another stream": (
        lambda archive, id_, end: archive.extend_recording(id_, CHANNEL, 99),
        ErrorCode.UNKNOWN_RECORDING,
    ),
}


def test_what_cannot_be_done_is_refused_with_the_protocols_code(archive: Archive) -> None:
    """And the session goes on."""
    recording_id, end = record(archive, MESSAGES[:50])
    for case, (request, code) in REFUSALS.items():
        with pytest.raises(headrace.ArchiveError) as refusal:
            request(archive, recording_id, end)
        assert (refusal.value.code, refusal.value.code_name) == (code, code.name), case
    archive.start_recording(CHANNEL, STREAM_ID)
    with pytest.raises(headrace.ArchiveError) as refusal:
        archive.start_recording(CHANNEL, STREAM_ID)
    assert refusal.value.code == ErrorCode.ACTIVE_SUBSCRIPTION
    assert replayed(archive, recording_id) == MESSAGES[:50]


def refused(code: ErrorCode, words: str, call: Callable[[], object]) -> None:
    """What is asked for is refused with a code and these words."""
    with pytest.raises(headrace.ArchiveError) as refusal:
        call()
    assert (refusal.value.code, refusal.value.code_name) == (code, code.name)
    assert words in str(refusal.value)


def test_a_recording_that_is_replayed_is_not_purged(archive: Archive) -> None:
    """By anyone; the replay goes on, and afterwards the recording can be purged."""
    recording_id, _ = record(archive)
    with archive.replay(recording_id) as replay:
        found = [next(replay).payload]
        text = f"cannot purge recording with active replay {recording_id}"
        refused(ErrorCode.ACTIVE_RECORDING, text, lambda: archive.purge_recording(recording_id))
        found += [message.payload for message in replay]
    assert found == MESSAGES
    archive.stop_all_replays()

    # The archive forgets a replay in a turn after the one in which it stops it.
    await_true(
        lambda: all(one.value == 0 for one in archive.client.counters if one.type_id == REPLAY_SESSIONS)
    )
    assert archive.purge_recording(recording_id) > 0
    assert archive.list_recordings() == []


def test_a_replay_until_now_of_nothing_is_refused(archive: Archive) -> None:
    """Of an empty recording, active or stopped, and of an active one from where it ends."""
    until_now = {"length": -2}
    text = "the recording ends at position="
    with archive.add_recorded_publication(CHANNEL, STREAM_ID) as publication:
        refused(ErrorCode.EMPTY_RECORDING, f"{text}0", lambda: archive.replay(0, **until_now))
        end = publication.offer_blocking(MESSAGES[0])
        await_true(lambda: archive.recording_position(0) == end)
        ask = partial(archive.replay, 0, position=end, **until_now)
        refused(ErrorCode.EMPTY_RECORDING, f"{text}{end}", ask)
        assert replayed(archive, 0, **until_now) == MESSAGES[:1]
    archive.await_signal(RecordingSignal.STOP)
    empty, _ = record(archive, [])
    refused(ErrorCode.EMPTY_RECORDING, f"{text}0", lambda: archive.replay(empty, **until_now))


def test_an_unknown_recording_is_not_stopped_by_its_id(archive: Archive) -> None:
    """One that is not active is no error: there is nothing to stop."""
    recording_id, _ = record(archive, MESSAGES[:3])
    assert not archive.stop_recording_by_id(recording_id)
    for unknown in (recording_id + 1, -1):
        text = f"unknown recording id: {unknown}"
        refused(ErrorCode.UNKNOWN_RECORDING, text, partial(archive.stop_recording_by_id, unknown))


def test_two_archives_on_a_driver_have_two_ids(tmp_path: Path) -> None:
    """By default they do; the same one given twice is refused by name, and the first goes on."""
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver:

        def serve(name: str, stream_id: int, **settings: int) -> headrace.ArchiveServer:
            return headrace.ArchiveServer(
                driver=driver,
                archive_directory=tmp_path / name,
                control_channel_enabled=False,
                local_control_stream_id=stream_id,
                **settings,  # type: ignore[arg-type]
            )

        with serve("a", 10, archive_id=7) as first, serve("b", 11) as other:
            assert first.archive_id == 7 != other.archive_id
            with pytest.raises(headrace.ConfigError, match=r"archive_id=7: .*another archive on this driver"):
                serve("c", 12, archive_id=7)
            with Archive.connect(driver=driver) as archive:
                assert archive.archive_id == 7
                assert record(archive, MESSAGES[:10])
        with serve("c", 12, archive_id=7) as again:
            assert again.archive_id == 7


def test_a_second_archive_on_the_same_streams_of_a_driver_is_refused(tmp_path: Path) -> None:
    """By name; sessions of the first go on, and so does the first after a start beside it that failed."""
    endpoint = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver:

        def serve(name: str, **settings: Any) -> headrace.ArchiveServer:
            return headrace.ArchiveServer(driver=driver, archive_directory=tmp_path / name, **settings)

        with serve("a", archive_id=7, control_channel=endpoint), Archive.connect(driver=driver) as before:
            with pytest.raises(
                headrace.ConfigError, match=r"local_control_stream_id=10.*archive 7 takes"
            ) as wrong:
                serve("b", control_channel_enabled=False)
            assert wrong.value.setting == "local_control_stream_id"
            with pytest.raises(headrace.ConfigError, match=r"^control_stream_id=10 on .*archive 7 takes"):
                serve("b", local_control_stream_id=11, control_channel=endpoint)
            assert record(before, MESSAGES[:10])
            with Archive.connect(driver=driver) as after:
                assert len(after.list_recordings()) == 1
            others = {"local_control_stream_id": 11, "control_stream_id": 12}
            with serve("b", control_channel=endpoint, **others) as other:
                assert other.archive_id != 7
        with serve("b", control_channel=endpoint):
            pass


def test_counters_tell_tools_what_they_belong_to(
    archiving: headrace.ArchivingMediaDriver, archive: Archive
) -> None:
    """Types, keys, labels and references of the specification."""
    id_ = archiving.archive.archive_id
    key, suffix = struct.pack("<q", id_), f" - archiveId={id_}"
    with archive.add_recorded_publication(CHANNEL, STREAM_ID) as publication:
        started = archive.await_signal(RecordingSignal.START)
        found = {one.type_id: one for one in archive.client.counters if 100 <= one.type_id < 200}
        assert sorted(found) == list(range(100, 114))
        for type_id in range(101, 113):
            assert found[type_id].key.rstrip(b"\0") == key.rstrip(b"\0")
            assert suffix in found[type_id].label
        position = found[100]
        identity = b"aeron:ipc"
        assert position.key.startswith(
            struct.pack("<qii", started.recording_id, publication.session_id, len(identity)) + identity + key
        )
        assert position.label == (
            f"rec-pos: {started.recording_id} {publication.session_id} {STREAM_ID} "
            f"aeron:ipc?session-id={publication.session_id}{suffix}"
        )
        session = found[113]
        assert session.key.startswith(key + struct.pack("<q", archive.control_session_id))
        assert session.value == archive.control_session_id
        assert session.label.startswith("control-session: name= version=")
        assert session.label.endswith(suffix)
        streams = {one.registration_id for one in archive.client.counters if "20 aeron:ipc" in one.label}
        assert session.reference_id in streams


@pytest.mark.parametrize("location", SourceLocation)
def test_recordings_of_a_udp_stream(archive: Archive, location: SourceLocation) -> None:
    """REMOTE by an ordinary subscription; LOCAL by a spy, which needs no receiver where spies count as one."""
    channel = "aeron:udp?endpoint=127.0.0.1:24831|term-length=64k"
    subscribed = "aeron-spy:aeron:udp" if location is SourceLocation.LOCAL else "aeron:udp"
    archive.start_recording(channel, STREAM_ID, location=location, auto_stop=True)
    ((_, _, found),) = archive.list_recording_subscriptions()
    assert found.startswith(subscribed)
    if location is SourceLocation.LOCAL:
        channel += "|ssc=true"
    with archive.client.add_publication(channel, STREAM_ID) as publication:
        for message in MESSAGES:
            publication.offer_blocking(message)
    recording_id = archive.await_signal(RecordingSignal.STOP, timeout_s=TIMEOUT_S).recording_id
    assert replayed(archive, recording_id) == MESSAGES


def test_recording_events_tell_how_a_recording_goes(archive: Archive) -> None:
    """Started, progress, stopped."""
    with archive.client.add_subscription("aeron:ipc", 30) as events:
        assert events.wait_until_connected(TIMEOUT_S)
        recording_id, end = record(archive, MESSAGES[:100])
        names = []
        while not names or names[-1] != "RecordingStopped":
            event = decode(events.receive(timeout_s=TIMEOUT_S).payload)  # type: ignore[union-attr]
            assert isinstance(event, RecordingStarted | RecordingProgress | RecordingStopped)
            assert event.recording_id == recording_id
            names.append(type(event).__name__)
        assert isinstance(event, RecordingStopped)
        assert event.stop_position == end
    assert names[0] == "RecordingStarted"
    assert "RecordingProgress" in names


def test_stopping_the_archive_stops_recordings_where_they_are(tmp_path: Path) -> None:
    """So that nothing has to be recovered, and another archive may take the directory at once."""
    directory = tmp_path / "archive"
    with headrace.ArchivingMediaDriver.embedded(archive_directory=directory) as archiving:
        archive = archiving.connect_archive()
        publication = archive.add_recorded_publication(CHANNEL, STREAM_ID)
        for message in MESSAGES[:100]:
            publication.offer_blocking(message)
        end = publication.position
        while archive.max_recorded_position(0) != end:
            pass
    catalog = Catalog(DirectoryStorage(directory), read_only=True)
    assert [entry.descriptor.stop_position for entry in catalog] == [end]
    catalog.close()
    with (
        headrace.ArchivingMediaDriver.embedded(archive_directory=directory) as archiving,
        archiving.connect_archive() as archive,
    ):
        assert archiving.archive.error_count == 0
        assert replayed(archive, 0) == MESSAGES[:100]


def test_a_session_serves_asyncio(archiving: headrace.ArchivingMediaDriver) -> None:
    """Requests and replays, awaited; a replay that fails raises there too."""

    async def play() -> list[bytes]:
        async with await AsyncArchive.connect(driver=archiving.driver) as archive:
            publication = await archive.add_recorded_publication(CHANNEL, STREAM_ID)
            for message in MESSAGES:
                await publication.offer_async(message)
            publication.close()
            recording_id = (await archive.await_signal(RecordingSignal.STOP)).recording_id
            with pytest.raises(headrace.ArchiveError):
                await archive.start_position(99)
            async with await archive.replay(recording_id) as replay:
                return [message.payload async for message in replay]

    assert asyncio.run(play()) == MESSAGES


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, ["control_channel", "required"]),
        ({"control_channel": "aeron:ipc"}, ["control_channel", "aeron:udp"]),
        ({"segment_file_length": 100_000}, ["segment_file_length", "100000", "power of two"]),
        ({"file_sync_level": 1}, ["catalog_file_sync_level", "at least file_sync_level=1"]),
        ({"record_checksum": "MD5"}, ["record_checksum", "MD5", "CRC-32"]),
        ({"properties": {"aeron.archive.segment.file.length": "3k"}}, ["segment_file_length", "3072"]),
        ({"properties": {"aeron.archive.segmnt.file.length": "64k"}}, ["aeron.archive.segmnt.file.length"]),
        ({"properties": {"aeron.archive.authenticator.supplier": "x"}}, ["authenticator='x'", "users-file:"]),
        ({"colour": "blue"}, ["colour"]),
        ({"idle_strategy": "lazy"}, ["idle_strategy='lazy'", "backoff"]),
        ({"control_channel": 5}, ["control_channel=5"]),
        ({"control_stream_id": 1 << 40}, ["control_stream_id=1099511627776", "2147483647"]),
        ({"archive_directory": 5}, ["archive_directory=5", "directory"]),
        ({"file_io_max_length": 1 << 40}, ["file_io_max_length", "power of two"]),
        ({"max_concurrent_replays": 0}, ["max_concurrent_replays=0", "from 1"]),
        ({"connect_timeout_ns": -1}, ["connect_timeout_ns=-1", "nanoseconds"]),
        ({"recording_events_enabled": True}, ["recording_events_channel", "required"]),
        ({"properties": {"aeron.archive.dir": ""}}, ["archive_directory=None"]),
        ({"properties": {"aeron.archive.dir.delete.on.start": "yes"}}, ["true or false"]),
        ({"properties": {"aeron.archive.id": "x"}}, ["aeron.archive.id='x'", "whole number"]),
        ({"properties": {"aeron.archive.threading.mode": "INVOKER"}}, ["DEDICATED or SHARED"]),
        ({"threading_mode": 2}, ["threading_mode=2", "DEDICATED or SHARED"]),
        ({"properties": {"aeron.archive.recorder.idle.strategy": "spin"}}, ["aeron.archive.idle.strategy"]),
        ({"properties": {"aeron.archive.max.catalog.entries": "8192"}}, ["catalog.capacity"]),
    ],
)
def test_a_wrong_setting_is_refused_before_anything_starts(
    settings: dict[str, object], words: list[str]
) -> None:
    """Naming the setting, the value and the rule."""
    if settings and "control_channel" not in settings:
        settings = {"control_channel_enabled": False, **settings}
    with pytest.raises(headrace.ConfigError) as refusal:
        ArchiveConfig.of(environment={}, **settings)
    for word in words:
        assert word in str(refusal.value)


def test_a_property_of_what_there_is_anyway_is_accepted() -> None:
    """A configuration for the reference's archive that asks for one thread need not be changed."""
    properties = {
        "aeron.archive.threading.mode": "SHARED",
        "aeron.archive.authorisation.service.supplier": "ALLOW_ALL",
    }
    assert ArchiveConfig.of(properties=properties, environment={}, control_channel_enabled=False)


def test_settings_come_from_properties_and_the_environment() -> None:
    """Keywords win over properties, properties over the environment."""
    config = ArchiveConfig.of(
        properties={"aeron.archive.file.io.max.length": "2m", "aeron.archive.connect.timeout": "3s"},
        environment={
            "AERON_ARCHIVE_CONTROL_CHANNEL": "aeron:udp?endpoint=localhost:8010",
            "AERON_ARCHIVE_FILE_IO_MAX_LENGTH": "4m",
            "AERON_ARCHIVE_ID": "7",
        },
        connect_timeout_ns=5,
    )
    assert config.control_channel == "aeron:udp?endpoint=localhost:8010"
    assert (config.file_io_max_length, config.connect_timeout_ns, config.archive_id) == (2 << 20, 5, 7)
