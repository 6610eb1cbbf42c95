"""Requests in the forms of older clients: templates that newer ones have replaced, and blocks that end earlier."""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace
from headrace.archive import Archive, RecordingSignal, extension_channel
from headrace.archive.protocol.answers import ControlResponse
from headrace.archive.protocol.codes import Response
from headrace.archive.protocol.messages import SCHEMA_ID
from tests.archive.test_archive import CHANNEL, MESSAGES, SEGMENT, STREAM_ID, record, replayed
from tests.archive.test_requests import TEMPLATES, answer_to
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_endpoint

pytestmark = pytest.mark.system


@pytest.fixture
def archiving(tmp_path: Path) -> Iterator[headrace.ArchivingMediaDriver]:
    """An archive that can copy recordings of its own."""
    with headrace.ArchivingMediaDriver.embedded(
        archive_directory=tmp_path / "archive",
        segment_file_length=SEGMENT,
        control_channel=f"aeron:udp?endpoint={free_endpoint()}",
        replication_channel="aeron:udp?endpoint=127.0.0.1:0",
    ) as archiving:
        yield archiving


@pytest.fixture
def archive(archiving: headrace.ArchivingMediaDriver) -> Iterator[Archive]:
    """A session with it."""
    with archiving.connect_archive() as archive:
        yield archive


def ask(archive: Archive, name: str, version: int, *values: int | str) -> int:
    """What the archive answers to a request as a client of a version of the schema sends it, with all its fields."""
    body = TEMPLATES[name].body
    fields = [field for field in body.wire_fields if field.since <= version]
    texts = [data for data in body.data if data.since <= version]
    correlation_id = archive.client.next_correlation_id()
    sent = iter((archive.control_session_id, correlation_id, *values))
    block = b"".join(int(next(sent)).to_bytes(field.size, "little", signed=True) for field in fields)
    tail = b"".join(struct.pack("<I", len(text)) + text for text in (str(next(sent)).encode() for _ in texts))
    assert next(sent, None) is None
    header = struct.pack("<HHHH", len(block), TEMPLATES[name].template_id, SCHEMA_ID, version)
    archive._publication.offer_blocking(header + block + tail, timeout_s=TIMEOUT_S)
    answer = answer_to(archive, correlation_id)
    assert isinstance(answer, ControlResponse)
    assert (answer.code, answer.error_message) == (Response.OK, ""), (name, version)
    return answer.relevant_id


def test_a_recording_is_begun_and_extended(archive: Archive) -> None:
    """Without a word on when it stops: the archive goes on recording the channel until it is told to stop."""
    started = ask(archive, "StartRecordingRequest", 3, STREAM_ID, 0, CHANNEL)
    with archive.client.add_exclusive_publication(CHANNEL, STREAM_ID) as publication:
        recording_id = archive.await_signal(RecordingSignal.START).recording_id
        for message in MESSAGES[:20]:
            publication.offer_blocking(message, timeout_s=TIMEOUT_S)
    archive.await_signal(RecordingSignal.STOP)
    assert [id_ for id_, _, _ in archive.list_recording_subscriptions()] == [started]
    archive.stop_recording_subscription(started)
    recording = archive.find_recording(recording_id)
    assert recording is not None
    extended = ask(archive, "ExtendRecordingRequest", 3, recording_id, STREAM_ID, 0, CHANNEL)
    with archive.client.add_exclusive_publication(
        extension_channel(CHANNEL, recording), STREAM_ID
    ) as publication:
        archive.await_signal(RecordingSignal.EXTEND)
        for message in MESSAGES[20:40]:
            publication.offer_blocking(message, timeout_s=TIMEOUT_S)
    archive.await_signal(RecordingSignal.STOP)
    assert [id_ for id_, _, _ in archive.list_recording_subscriptions()] == [extended]
    assert replayed(archive, recording_id) == MESSAGES[:40]


@pytest.mark.parametrize("version", [6, 7, 9, 10])
def test_a_recording_is_replayed(archive: Archive, version: int) -> None:
    """Before 7 without a length of reads, before 10 without a token; bounded by a counter or not."""
    recording_id, end = record(archive, MESSAGES[:20])
    given = ([-1] if version >= 7 else []) + ([-1] if version >= 10 else [])
    limit = archive.client.add_counter(1500, b"", "limit")
    limit.value = end
    for name, bound in (("ReplayRequest", []), ("BoundedReplayRequest", [limit.counter_id])):
        with archive.client.add_subscription("aeron:ipc", 70 + len(bound)) as subscription:
            numbers = [recording_id, 0, end, *bound, 70 + len(bound), *given]
            session_id = ask(archive, name, version, *numbers, "aeron:ipc")
            found: list[tuple[bytes, int]] = []

            def take() -> bool:
                while (message := subscription.poll_message()) is not None:
                    found.append((message.payload, message.session_id))  # noqa: B023
                return len(found) == 20  # noqa: B023

            await_true(take)
        assert [payload for payload, _ in found] == MESSAGES[:20]
        assert {session for _, session in found} == {
            struct.unpack("<i", struct.pack("<q", session_id)[:4])[0]
        }


OLD_REPLICATIONS: dict[str, tuple[str, int, list[int], list[str]]] = {
    "oldest": ("ReplicateRequest", 3, [10], []),
    "tagged": ("TaggedReplicateRequest", 5, [4711, 4712, 10], []),
    "6": ("ReplicateRequest2", 6, [-1, -1, -1, 10], [""]),
    "7": ("ReplicateRequest2", 7, [-1, -1, -1, 10, -1], [""]),
    "8": ("ReplicateRequest2", 8, [-1, -1, -1, 10, -1, -1], ["", ""]),
    "9": ("ReplicateRequest2", 9, [-1, -1, -1, 10, -1, -1], ["", ""]),
}


@pytest.mark.parametrize("form", OLD_REPLICATIONS)
def test_a_recording_is_copied(archiving: headrace.ArchivingMediaDriver, archive: Archive, form: str) -> None:
    """To its end, over the archive's own replication channel."""
    recording_id, end = record(archive, MESSAGES[:20])
    name, version, numbers, texts = OLD_REPLICATIONS[form]
    source = archiving.archive.config.control_channel
    assert source is not None
    ask(archive, name, version, recording_id, -1, *numbers, source, "", *texts)
    await_true(lambda: [one.stop_position for one in archive.list_recordings()] == [end, end])
    assert replayed(archive, recording_id + 1) == MESSAGES[:20]
