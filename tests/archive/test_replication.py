"""Recordings of one archive copied by another: two archives, each with a driver of its own, over UDP."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import headrace
from headrace.archive import (
    Archive,
    ArchiveError,
    ErrorCode,
    RecordingDescriptor,
    RecordingSignal,
    Replication,
    extension_channel,
)
from headrace.archive.aio import AsyncArchive
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_endpoint

CHANNEL = "aeron:ipc?term-length=64k"
STREAM_ID = 1001
# Some are longer than the MTU, so that they are recorded as several frames.
MESSAGES = [b"message %d " % index * (1 + index % 300) for index in range(600)]
SEGMENT = 128 * 1024

pytestmark = pytest.mark.system


@dataclass
class Place:
    """An archive, and a session with it."""

    control: str
    archiving: headrace.ArchivingMediaDriver
    archive: Archive


@contextmanager
def place(directory: Path, control: str, **settings: str) -> Iterator[Place]:
    """An archive that others reach at an endpoint."""
    with (
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=directory,
            segment_file_length=SEGMENT,
            control_channel=f"aeron:udp?endpoint={control}",
            replication_channel="aeron:udp?endpoint=127.0.0.1:0",
            **settings,  # type: ignore[arg-type]
        ) as archiving,
        archiving.connect_archive() as archive,
    ):
        yield Place(f"aeron:udp?endpoint={control}", archiving, archive)


@pytest.fixture
def places(tmp_path: Path) -> Iterator[tuple[Place, Place]]:
    """A source, and a standby."""
    with ExitStack() as stack:
        yield (
            stack.enter_context(place(tmp_path / "source", free_endpoint())),
            stack.enter_context(place(tmp_path / "standby", free_endpoint())),
        )


def record(archive: Archive, messages: list[bytes] = MESSAGES) -> tuple[int, int]:
    """Records messages from the first to the last; gives the recording's id and where it ended."""
    with archive.add_recorded_publication(CHANNEL, STREAM_ID) as publication:
        for message in messages:
            publication.offer_blocking(message)
    stopped = archive.await_signal(RecordingSignal.STOP, timeout_s=TIMEOUT_S)
    return stopped.recording_id, stopped.position


def extend(archive: Archive, recording_id: int, messages: list[bytes]) -> int:
    """Goes on with a stopped recording; gives where it ended."""
    channel = extension_channel(CHANNEL, described(archive, recording_id))
    archive.signals()
    with archive.client.add_exclusive_publication(channel, STREAM_ID) as publication:
        archive.extend_recording(recording_id, CHANNEL, STREAM_ID, auto_stop=True)
        for message in messages:
            publication.offer_blocking(message, timeout_s=TIMEOUT_S)
    return archive.await_signal(RecordingSignal.STOP, timeout_s=TIMEOUT_S).position


def replayed(archive: Archive, recording_id: int) -> list[bytes]:
    """All messages of a replay."""
    with archive.replay(recording_id) as replay:
        return [message.payload for message in replay]


def described(archive: Archive, recording_id: int) -> RecordingDescriptor:
    """A recording that the archive has."""
    found = archive.find_recording(recording_id)
    assert found is not None
    return found


def signalled(replication: Replication) -> list[str]:
    """What the archive has said of it, in order."""
    return [one.signal.name for one in replication.signals]


def test_a_stopped_recording_is_copied(places: tuple[Place, Place]) -> None:
    """With its numbers and channels, under an id of the standby, and the signals of the specification."""
    source, standby = places
    record(standby.archive, MESSAGES[:3])
    recording_id, end = record(source.archive)
    replication = standby.archive.replicate(recording_id, source.control)
    assert replication.wait(TIMEOUT_S) == end
    assert signalled(replication)[:3] == ["REPLICATE", "EXTEND", "SYNC"]
    assert sorted(signalled(replication)[3:]) == ["REPLICATE_END", "STOP"]
    copy_id = replication.recording_id
    assert copy_id == 1
    assert replayed(standby.archive, copy_id) == MESSAGES
    original, copy = described(source.archive, recording_id), described(standby.archive, copy_id)
    for name in ("start_position", "stop_position", "initial_term_id", "segment_file_length", "mtu_length"):
        assert getattr(copy, name) == getattr(original, name), name
    for name in ("stream_id", "term_buffer_length", "original_channel", "source_identity", "start_timestamp"):
        assert getattr(copy, name) == getattr(original, name), name
    by_signal = {one.signal: one for one in replication.signals}
    assert by_signal[RecordingSignal.REPLICATE].position == original.start_position
    assert by_signal[RecordingSignal.REPLICATE].subscription_id == -1
    assert by_signal[RecordingSignal.SYNC].position == end
    assert by_signal[RecordingSignal.REPLICATE_END].position == -1
    assert {one.recording_id for one in replication.signals} == {copy_id}
    assert source.archiving.archive.error_count == standby.archiving.archive.error_count == 0


def test_a_copy_goes_on_where_it_ends(places: tuple[Place, Place]) -> None:
    """After the source was extended; and when nothing was, nothing is recorded."""
    source, standby = places
    recording_id, _ = record(source.archive, MESSAGES[:100])
    first = standby.archive.replicate(recording_id, source.control)
    first.wait(TIMEOUT_S)
    copy_id = first.recording_id
    again = standby.archive.replicate(recording_id, source.control, destination_id=copy_id)
    again.wait(TIMEOUT_S)
    assert signalled(again) == ["SYNC", "REPLICATE_END"]
    end = extend(source.archive, recording_id, MESSAGES[100:])
    more = standby.archive.replicate(recording_id, source.control, destination_id=copy_id)
    assert more.wait(TIMEOUT_S) == end
    assert signalled(more)[:2] == ["EXTEND", "SYNC"]
    assert copy_id is not None
    assert replayed(standby.archive, copy_id) == MESSAGES


def test_an_active_recording_is_followed_until_it_stops(places: tuple[Place, Place]) -> None:
    """What is published arrives at the copy at once; the end of the source is the end of the copy."""
    source, standby = places
    with source.archive.add_recorded_publication(CHANNEL, STREAM_ID) as publication:
        for message in MESSAGES[:100]:
            publication.offer_blocking(message)
        (recording,) = source.archive.list_recordings()
        replication = standby.archive.replicate(recording.recording_id, source.control)
        replication.wait_for_position(publication.position, TIMEOUT_S)
        for message in MESSAGES[100:]:
            publication.offer_blocking(message, timeout_s=TIMEOUT_S)
        replication.wait_for_position(publication.position, TIMEOUT_S)
        end = publication.position
        assert not replication.has_ended
    assert replication.wait(TIMEOUT_S) == end
    assert "SYNC" not in signalled(replication)
    assert replication.recording_id is not None
    assert replayed(standby.archive, replication.recording_id) == MESSAGES


def test_a_copy_ends_at_the_stop_position(places: tuple[Place, Place]) -> None:
    """At the end of the frame with it; then it can go on to the end."""
    source, standby = places
    recording_id, end = record(source.archive)
    replication = standby.archive.replicate(recording_id, source.control, stop_position=SEGMENT)
    position = replication.wait(TIMEOUT_S)
    assert position is not None
    assert SEGMENT <= position < SEGMENT + 2048
    assert "SYNC" not in signalled(replication)
    assert replication.recording_id is not None
    copied = replayed(standby.archive, replication.recording_id)
    assert copied == MESSAGES[: len(copied)]
    rest = standby.archive.replicate(
        recording_id, source.control, destination_id=replication.recording_id
    )
    assert rest.wait(TIMEOUT_S) == end
    assert replayed(standby.archive, replication.recording_id) == MESSAGES


def test_a_copy_merges_with_the_live_stream(places: tuple[Place, Place]) -> None:
    """Then the source archive is not needed any longer, and the copy goes on until the publisher ends."""
    source, standby = places
    control = free_endpoint()
    publication = source.archive.add_recorded_publication(
        f"aeron:udp?control={control}|control-mode=dynamic|fc=min|term-length=64k|ssc=true", STREAM_ID
    )
    with publication:
        for message in MESSAGES[:200]:
            publication.offer_blocking(message, timeout_s=TIMEOUT_S)
        (recording,) = source.archive.list_recordings()
        replication = standby.archive.replicate(
            recording.recording_id,
            source.control,
            live_destination=f"aeron:udp?endpoint=127.0.0.1:0|control={control}|control-mode=dynamic",
        )
        is_merged = threading.Event()

        def publish() -> None:
            # A live stream without a message is one whose position no one hears of.
            index = 200
            while not is_merged.is_set() or index < len(MESSAGES):
                publication.offer_blocking(MESSAGES[index % len(MESSAGES)], timeout_s=TIMEOUT_S)
                index += 1
                if index > 400:
                    is_merged.wait(0.001)
            sent.append(index)

        sent: list[int] = []
        publisher = threading.Thread(target=publish)
        publisher.start()
        try:
            replication.wait_for(RecordingSignal.MERGE, TIMEOUT_S)
        finally:
            is_merged.set()
            publisher.join()
        replication.wait(TIMEOUT_S)
        source.archiving.archive.close()
        publication.offer_blocking(b"last", timeout_s=TIMEOUT_S)
    (count,) = sent
    stopped = standby.archive.await_signal(RecordingSignal.STOP, timeout_s=TIMEOUT_S)
    messages = [MESSAGES[index % len(MESSAGES)] for index in range(count)]
    assert replayed(standby.archive, stopped.recording_id) == [*messages, b"last"]
    assert signalled(replication)[:3] == ["REPLICATE", "EXTEND", "MERGE"]


def test_tags_name_the_subscription(places: tuple[Place, Place]) -> None:
    """It has the replay as a destination; a program can add others to it."""
    source, standby = places
    recording_id, end = record(source.archive)
    replication = standby.archive.replicate(
        recording_id,
        source.control,
        channel_tag_id=4711,
        subscription_tag_id=4712,
        replication_channel=f"aeron:udp?endpoint={free_endpoint()}",
    )
    assert replication.wait(TIMEOUT_S) == end
    assert replication.recording_id is not None
    assert replayed(standby.archive, replication.recording_id) == MESSAGES


def test_a_replication_is_stopped_and_asked_for_again(places: tuple[Place, Place]) -> None:
    """What was copied stays."""
    source, standby = places
    with source.archive.add_recorded_publication(CHANNEL, STREAM_ID) as publication:
        for message in MESSAGES[:100]:
            publication.offer_blocking(message)
        (recording,) = source.archive.list_recordings()
        replication = standby.archive.replicate(recording.recording_id, source.control)
        replication.wait_for_position(publication.position, TIMEOUT_S)
        standby.archive.stop_replication(replication.replication_id)
        assert replication.wait(TIMEOUT_S) == publication.position
        with pytest.raises(ArchiveError) as refusal:
            standby.archive.stop_replication(replication.replication_id)
        assert refusal.value.code == ErrorCode.UNKNOWN_REPLICATION
        for message in MESSAGES[100:]:
            publication.offer_blocking(message)
    again = standby.archive.replicate(
        recording.recording_id, source.control, destination_id=replication.recording_id
    )
    again.wait(TIMEOUT_S)
    assert replication.recording_id is not None
    assert replayed(standby.archive, replication.recording_id) == MESSAGES


def test_what_broke_off_with_the_source_goes_on_where_it_ended(tmp_path: Path) -> None:
    """The source archive ends while it is followed, and comes back; the copy has each message once."""
    endpoint, directory = free_endpoint(), tmp_path / "source"
    with place(tmp_path / "standby", free_endpoint()) as standby:
        with place(directory, endpoint) as source:
            publication = source.archive.add_recorded_publication(CHANNEL, STREAM_ID)
            for message in MESSAGES[:100]:
                publication.offer_blocking(message)
            (recording,) = source.archive.list_recordings()
            replication = standby.archive.replicate(recording.recording_id, source.control)
            replication.wait_for_position(publication.position, TIMEOUT_S)
        with pytest.raises(ArchiveError):
            replication.wait(TIMEOUT_S)
        with place(directory, endpoint) as source:
            end = extend(source.archive, recording.recording_id, MESSAGES[100:])
            again = standby.archive.replicate(
                recording.recording_id, source.control, destination_id=replication.recording_id
            )
            assert again.wait(TIMEOUT_S) == end
        assert replication.recording_id is not None
        assert replayed(standby.archive, replication.recording_id) == MESSAGES


def test_an_archive_copies_a_recording_of_its_own(places: tuple[Place, Place]) -> None:
    """Nothing in its turn waits for the archive on the other side, which is itself."""
    source, _ = places
    recording_id, end = record(source.archive)
    over_ipc = source.archive.replicate(recording_id, "aeron:ipc", replication_channel="aeron:ipc")
    over_udp = source.archive.replicate(recording_id, source.control)
    for replication in (over_ipc, over_udp):
        assert replication.wait(TIMEOUT_S) == end
        assert replication.recording_id is not None
        assert replayed(source.archive, replication.recording_id) == MESSAGES


def test_a_copy_counts_for_a_durable_publication(places: tuple[Place, Place]) -> None:
    """What a publisher waits for is recorded in both archives."""
    source, standby = places
    with source.archive.add_durable_publication(CHANNEL, STREAM_ID) as publication:
        replication = standby.archive.replicate(publication.recording_id, source.control)
        replication.wait_for(RecordingSignal.EXTEND, TIMEOUT_S)
        publication.add_copy(standby.archive, replication.recording_id)
        for message in MESSAGES[:20]:
            position = publication.publish(message, copies=2, timeout_s=TIMEOUT_S)
        assert replication.recording_id is not None
        assert standby.archive.max_recorded_position(replication.recording_id) == position


def test_replications_are_awaited(places: tuple[Place, Place]) -> None:
    """With asyncio, as without."""
    source, standby = places
    recording_id, end = record(source.archive)

    async def run() -> None:
        async with await AsyncArchive.connect(standby.archive.client) as archive:
            replication = await archive.replicate(recording_id, source.control)
            await replication.wait_for_async(RecordingSignal.EXTEND, TIMEOUT_S)
            await replication.wait_for_position_async(end, TIMEOUT_S)
            assert await replication.wait_async(TIMEOUT_S) == end
            with pytest.raises(ArchiveError):
                await archive.stop_replication(replication.replication_id)

    asyncio.run(run())


def test_a_source_that_does_not_answer_is_told_of(places: tuple[Place, Place]) -> None:
    """With the code of the specification, after the time-out of a connection; then the archive has forgotten it."""
    _, standby = places
    replication = standby.archive.replicate(0, f"aeron:udp?endpoint={free_endpoint()}")
    with pytest.raises(ArchiveError, match="Replication connection failed=") as failure:
        replication.wait()
    assert failure.value.code == ErrorCode.REPLICATION_CONNECTION_FAILURE
    assert signalled(replication) == ["REPLICATE_END"]
    assert replication.recording_id is None
    await_true(lambda: standby.archive.list_recordings() == [])
