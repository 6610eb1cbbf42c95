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
    ArchiveClientConfig,
    ArchiveError,
    ErrorCode,
    RecordingDescriptor,
    RecordingSignal,
    Replication,
    extension_channel,
)
from headrace.archive.aio import AsyncArchive
from headrace.archive.client.replication import ReplicationSettings
from headrace.archive.protocol.messages import schema
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
    archive.take_signals()
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


def ends(archive: Archive) -> list[tuple[int, int]]:
    """Which recordings the archive has, and where they end."""
    return [(one.recording_id, one.stop_position) for one in archive.list_recordings()]


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
    rest = standby.archive.replicate(recording_id, source.control, destination_id=replication.recording_id)
    assert rest.wait(TIMEOUT_S) == end
    assert replayed(standby.archive, replication.recording_id) == MESSAGES


def test_a_stop_position_before_the_recording_is_refused_and_leaves_no_copy(
    places: tuple[Place, Place],
) -> None:
    """Nothing is in the catalog that was not there before."""
    source, standby = places
    with source.archive.client.add_exclusive_publication(
        f"{CHANNEL}|init-term-id=0|term-id=2|term-offset=0", STREAM_ID + 5
    ) as publication:
        source.archive.start_recording(f"aeron:ipc?session-id={publication.session_id}", STREAM_ID + 5)
        recording_id = source.archive.await_signal(RecordingSignal.START, timeout_s=TIMEOUT_S).recording_id
        publication.offer_blocking(b"later", timeout_s=TIMEOUT_S)
        replication = standby.archive.replicate(recording_id, source.control, stop_position=64)
        with pytest.raises(ArchiveError, match="stopPosition=64 is before position="):
            replication.wait(TIMEOUT_S)
    assert signalled(replication) == ["REPLICATE_END"]
    assert standby.archive.list_recordings() == []


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


@contextmanager
def hidden(directory: Path, replication_channel: str | None) -> Iterator[Archive]:
    """A session with an archive that has no control channel."""
    with (
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=directory,
            segment_file_length=SEGMENT,
            control_channel_enabled=False,
            replication_channel=replication_channel,
        ) as archiving,
        archiving.connect_archive() as standby,
    ):
        yield standby


def test_an_archive_without_a_control_channel_is_answered_where_its_copy_comes(tmp_path: Path) -> None:
    """Whether its settings or the request say where; without an address the refusal says what to give."""
    copies = "aeron:udp?endpoint=127.0.0.1:0"
    with place(tmp_path / "source", free_endpoint()) as source:
        recording_id, end = record(source.archive)
        with hidden(tmp_path / "a", copies) as standby:
            assert standby.replicate(recording_id, source.control).wait(TIMEOUT_S) == end
        with hidden(tmp_path / "b", None) as standby:
            replication = standby.replicate(recording_id, source.control, replication_channel=copies)
            assert replication.wait(TIMEOUT_S) == end
            with pytest.raises(ArchiveError, match="so give srcResponseChannel"):
                standby.replicate(recording_id, source.control, replication_channel="aeron:ipc")


@pytest.mark.parametrize("has_response_channel", [True, False])
def test_a_copy_comes_through_a_connection_to_the_source(tmp_path: Path, has_response_channel: bool) -> None:
    """The standby has no address: neither answers nor the replay need one. The copy goes on as any other does."""
    address = free_endpoint()
    with place(tmp_path / "source", address) as source, hidden(tmp_path / "standby", None) as standby:
        recording_id, end = record(source.archive)
        way_back: ReplicationSettings = {
            "replication_channel": f"aeron:udp?control-mode=response|control={free_endpoint()}",
        }
        if has_response_channel:
            way_back["source_response_channel"] = f"aeron:udp?control-mode=response|control={free_endpoint()}"
        replication = standby.replicate(recording_id, source.control, **way_back)
        assert replication.wait(TIMEOUT_S) == end
        copy_id = replication.recording_id
        assert copy_id is not None
        more = extend(source.archive, recording_id, MESSAGES[:50])
        again = standby.replicate(recording_id, source.control, destination_id=copy_id, **way_back)
        assert again.wait(TIMEOUT_S) == more
        assert replayed(standby, copy_id) == MESSAGES + MESSAGES[:50]
        several = [standby.replicate(recording_id, source.control, **way_back) for _ in range(3)]
        assert [one.wait(TIMEOUT_S) for one in several] == [more] * 3


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


def test_a_source_that_does_not_answer_is_told_of(
    places: tuple[Place, Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the code of the specification, after the time-out of a connection; then the archive has forgotten it."""
    monkeypatch.setitem(ArchiveClientConfig.__init__.__kwdefaults__, "message_timeout_s", 0.2)
    _, standby = places
    replication = standby.archive.replicate(0, f"aeron:udp?endpoint={free_endpoint()}")
    with pytest.raises(ArchiveError, match="Replication connection failed=") as failure:
        replication.wait()
    assert failure.value.code == ErrorCode.REPLICATION_CONNECTION_FAILURE
    assert signalled(replication) == ["REPLICATE_END"]
    assert replication.recording_id is None
    await_true(lambda: standby.archive.list_recordings() == [])


def asked(archive: Archive, name: str = "ReplicateRequest2", **changes: int | str | bytes) -> ArchiveError:
    """The error with which the archive answers a request with other fields than a client would send."""
    fields: dict[str, int | str | bytes] = {
        "src_recording_id": 0,
        "dst_recording_id": -1,
        "src_control_stream_id": 10,
        "src_control_channel": "aeron:ipc",
        "live_destination": "",
        "channel_tag_id": -1,
        "subscription_tag_id": -1,
        "stop_position": -1,
        "file_io_max_length": -1,
        "replication_session_id": -1,
        "replication_channel": "aeron:udp?endpoint=127.0.0.1:0",
        "encoded_credentials": b"",
        "src_response_channel": "",
    }
    if name == "ReplicateRequest":
        fields = dict(list(fields.items())[:5])
    correlation_id = archive.client.next_correlation_id()
    request = schema()[name].encode(
        control_session_id=archive.control_session_id, correlation_id=correlation_id, **fields | changes
    )
    archive._publication.offer_blocking(request, timeout_s=TIMEOUT_S)
    errors: list[ArchiveError] = []

    def look() -> bool:
        error = archive.late_error(correlation_id)
        errors.extend([error] if error is not None else [])
        return bool(errors)

    await_true(look)
    return errors[0]


RESPONSE = "aeron:udp?control-mode=response|control=127.0.0.1:0"
REFUSED_AT_ONCE: dict[str, tuple[dict[str, int | str | bytes], ErrorCode, str]] = {
    "destination": (
        {"dst_recording_id": 99},
        ErrorCode.UNKNOWN_RECORDING,
        "unknown destination recording id 99",
    ),
    "destination below 0": (
        {"dst_recording_id": -5},
        ErrorCode.UNKNOWN_RECORDING,
        "unknown destination recording id -5",
    ),
    "active destination": (
        {"dst_recording_id": 1},
        ErrorCode.ACTIVE_RECORDING,
        "cannot replicate to active recording 1",
    ),
    "source channel": ({"src_control_channel": "udp://there"}, ErrorCode.GENERIC, "starts with aeron:"),
    "no source channel": ({"src_control_channel": ""}, ErrorCode.GENERIC, "starts with aeron:"),
    "live destination": ({"live_destination": "aeron:tcp"}, ErrorCode.GENERIC, "the media is ipc or udp"),
    "spy": ({"live_destination": "aeron-spy:aeron:ipc"}, ErrorCode.GENERIC, "not spied on"),
    "replication channel": ({"replication_channel": "aeron:udp?endpoint"}, ErrorCode.GENERIC, "name=value"),
    "no endpoint": ({"replication_channel": "aeron:udp"}, ErrorCode.GENERIC, "needs an endpoint"),
    "response channel of another medium": (
        {"replication_channel": RESPONSE},
        ErrorCode.GENERIC,
        "whose connection the answers use",
    ),
    "response channel without an address": (
        {
            "replication_channel": "aeron:udp?control-mode=response",
            "src_control_channel": "aeron:udp?endpoint=127.0.0.1:7",
        },
        ErrorCode.GENERIC,
        "must have control=host:port",
    ),
    "response channel with live": (
        {"replication_channel": RESPONSE, "live_destination": "aeron:udp?endpoint=127.0.0.1:7"},
        ErrorCode.GENERIC,
        "cannot be used with live destinations",
    ),
    "response channel with tags": (
        {"replication_channel": RESPONSE, "channel_tag_id": 5},
        ErrorCode.GENERIC,
        "cannot be used with tagged replication",
    ),
    "answers": ({"src_response_channel": "aeron:"}, ErrorCode.GENERIC, "the media is ipc or udp"),
    "answers through a response channel": (
        {"src_response_channel": RESPONSE},
        ErrorCode.GENERIC,
        "whose connection the answers use",
    ),
}


def test_what_cannot_be_replicated_is_refused_with_the_protocols_code(
    places: tuple[Place, Place],
) -> None:
    """Each field wrong: nothing has changed, and the session goes on."""
    archive = places[0].archive
    record(archive, MESSAGES[:3])
    with archive.add_recorded_publication(CHANNEL, STREAM_ID):
        before = ends(archive)
        for case, (changes, code, text) in REFUSED_AT_ONCE.items():
            error = asked(archive, **changes)
            assert (error.code, text in str(error)) == (code, True), f"{case}: {error}"
        old = asked(archive, "ReplicateRequest", src_control_channel="aeron:", dst_recording_id=-1)
        assert old.code == ErrorCode.GENERIC
        assert ends(archive) == before
        with pytest.raises(ArchiveError) as refusal:
            archive.stop_replication(12345)
        assert refusal.value.code == ErrorCode.UNKNOWN_REPLICATION
        assert "unknown replication id 12345" in str(refusal.value)
        assert archive.is_connected


def test_what_the_source_shows_to_be_wrong_ends_the_replication(
    places: tuple[Place, Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an error under the id of the replication, and its end; what was copied before is as it was."""
    source, standby = places
    recording_id, end = record(source.archive)
    copy_id, copied = record(standby.archive, MESSAGES[:3])
    with standby.archive.client.add_exclusive_publication(CHANNEL, 77) as other:
        standby.archive.start_recording(CHANNEL, 77, auto_stop=True)
        other.offer_blocking(b"other", timeout_s=TIMEOUT_S)
    standby.archive.await_signal(RecordingSignal.STOP, 1, timeout_s=TIMEOUT_S)
    live = f"aeron:udp?endpoint={free_endpoint()}"
    cases: list[tuple[int, dict[str, int | str], ErrorCode, str]] = [
        (99, {}, ErrorCode.UNKNOWN_RECORDING, "unknown src recording id 99"),
        (-7, {}, ErrorCode.UNKNOWN_RECORDING, "unknown src recording id -7"),
        (recording_id, {"file_io_max_length": 100}, ErrorCode.GENERIC, "fileIoMaxLength=100 < mtuLength="),
        (recording_id, {"live_destination": live}, ErrorCode.GENERIC, "without active source recording"),
        (
            recording_id,
            {"destination_id": copy_id, "stop_position": 32},
            ErrorCode.GENERIC,
            "stopPosition=32",
        ),
        (
            recording_id,
            {"destination_id": copy_id, "stop_position": -9},
            ErrorCode.GENERIC,
            "stopPosition=-9",
        ),
        (recording_id, {"destination_id": copy_id}, ErrorCode.INVALID_EXTENSION, "initialTermId"),
        (recording_id, {"destination_id": 1}, ErrorCode.UNKNOWN_RECORDING, "for existing streamId=77"),
        (
            recording_id,
            {"source_stream_id": 4},
            ErrorCode.REPLICATION_CONNECTION_FAILURE,
            "connection failed",
        ),
    ]
    before = ends(standby.archive)
    for source_id, settings, code, text in cases:
        if code is ErrorCode.REPLICATION_CONNECTION_FAILURE:
            monkeypatch.setitem(ArchiveClientConfig.__init__.__kwdefaults__, "message_timeout_s", 0.2)
        replication = standby.archive.replicate(source_id, source.control, **settings)  # type: ignore[arg-type]
        with pytest.raises(ArchiveError) as failure:
            replication.wait(TIMEOUT_S)
        assert (failure.value.code, text in str(failure.value)) == (code, True), str(failure.value)
        assert signalled(replication)[-1] == "REPLICATE_END"
    monkeypatch.undo()
    assert ends(standby.archive) == before
    assert described(standby.archive, copy_id).stop_position == copied
    assert standby.archive.replicate(recording_id, source.control).wait(TIMEOUT_S) == end


def test_a_copy_of_another_recording_is_none_also_when_it_ends_at_the_same_position(
    places: tuple[Place, Place],
) -> None:
    """And when the other recording is empty, or nothing more is asked for than is there."""
    source, standby = places
    recording_id, end = record(source.archive)
    others = [record(source.archive), record(source.archive, MESSAGES[:10]), record(source.archive, [])]
    first = standby.archive.replicate(recording_id, source.control)
    assert first.wait(TIMEOUT_S) == end == others[0][1]
    for (other_id, _), stop_position in zip(others, (None, end, None), strict=True):
        again = standby.archive.replicate(
            other_id, source.control, destination_id=first.recording_id, stop_position=stop_position
        )
        with pytest.raises(ArchiveError, match=r"source\.initialTermId=") as refusal:
            again.wait(TIMEOUT_S)
        assert refusal.value.code == ErrorCode.INVALID_EXTENSION
        assert signalled(again) == ["REPLICATE_END"]
    assert ends(standby.archive) == [(first.recording_id, end)]


def test_a_recording_is_filled_by_one_replication_at_a_time(places: tuple[Place, Place]) -> None:
    """While the first has not begun to record, too; and all together are limited as recordings are."""
    source, standby = places
    record(standby.archive, MESSAGES[:3])
    nowhere = f"aeron:udp?endpoint={free_endpoint()}"
    first = standby.archive.replicate(0, nowhere, destination_id=0)
    with pytest.raises(ArchiveError) as refusal:
        standby.archive.replicate(0, source.control, destination_id=0)
    assert refusal.value.code == ErrorCode.ACTIVE_RECORDING
    others = [standby.archive.replicate(0, nowhere) for _ in range(19)]
    with pytest.raises(ArchiveError) as refusal:
        standby.archive.replicate(0, nowhere)
    assert refusal.value.code == ErrorCode.MAX_RECORDINGS
    for one in (first, *others):
        standby.archive.stop_replication(one.replication_id)
        one.wait(TIMEOUT_S)
        assert signalled(one) == ["REPLICATE_END"]


def test_wrong_arguments_are_refused_before_anything_is_asked(places: tuple[Place, Place]) -> None:
    """By the client, in words."""
    archive = places[0].archive
    with pytest.raises(headrace.ConfigError, match="did you mean"):
        archive.replicate(0, "aeron:ipc", stop_positon=5)  # type: ignore[call-arg]
    with pytest.raises(headrace.ConfigError, match="live_destination"):
        archive.replicate(0, "aeron:ipc", live_destination="aeron:ipc", session_id=5)
    with pytest.raises(headrace.ConfigError, match="the other archive names the stream"):
        archive.replicate(0, "aeron:ipc", replication_channel="aeron:ipc?control-mode=response", session_id=5)
    with pytest.raises(headrace.ConfigError):
        archive.replicate(0, "there")
