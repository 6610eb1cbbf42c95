"""A hostile client: every request with every kind of number and text, damaged, foreign, or none at all.

The archive answers each request that can be told to be one, once, and goes on.
"""

import logging
import os
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import headrace
from headrace._agent.rate_limit import RateLimit
from headrace.archive import Archive, Catalog, DirectoryStorage, ErrorCode, RecordingSignal
from headrace.archive.files.catalog import CATALOG_NAME
from headrace.archive.protocol import answers
from headrace.archive.protocol.answers import Answer, ControlResponse, RecordingDescriptor
from headrace.archive.protocol.codes import Response, SourceLocation
from headrace.archive.protocol.messages import PROTOCOL_VERSION, MessageError, decode, encode, schema
from headrace.archive.protocol.requests import (
    AuthConnectRequest,
    CloseSessionRequest,
    ListRecordingsRequest,
    StartRecordingRequest2,
)
from tests.archive.streams import descriptor
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.system

CHANNEL = "aeron:ipc?term-length=64k"
CONTROL_STREAM_ID = 10
TEMPLATES = {message.name: message for message in schema().model.messages}
# No request of a session, or one without an answer.
UNANSWERED = {"AuthConnectRequest", "ChallengeResponse", "CloseSessionRequest", "KeepAliveRequest"}
STORES = {"DeclareStreamRequest", "JoinGroupRequest", "CommitPlaceRequest"}
ANSWERED = sorted(name for name in TEMPLATES if "Request" in name and name not in UNANSWERED)
NUMBERS = {
    4: [0, 1, -1, -2, 7, 31, 32, 33, 1001, 2**31 - 1, -(2**31)],
    8: [0, 1, 2, -1, -2, -32, 32, 33, 64, 2**32, 2**63 - 1, -(2**63)],
}
TEXTS = [
    b"",
    b"aeron:ipc",
    b"aeron:udp",
    b"aeron:udp?endpoint=127.0.0.1:0",
    b"aeron-spy:aeron:udp?endpoint=127.0.0.1:24999",
    b"udp://nowhere",
    b"aeron:ipc?a",
    b"aeron:ipc?=|",
    b"\xff\xfe",
    b"\0",
    b"aeron:ipc?alias=\xfc",
    b"a" * 5000,
    b"aeron:ipc?alias=" + b"b" * 4000,
    b"aeron:ipc?alias=" + b"b" * 7000,
    b"aeron:ipc?control-mode=response",
    b"aeron:ipc?linger=x",
    b"aeron:ipc?session-id=x",
    b"aeron:ipc?term-length=3",
    b"aeron:ipc?so-sndbuf=x",
    b"aeron:ipc?eos=perhaps",
]


@pytest.fixture(scope="module")
def archiving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[headrace.ArchivingMediaDriver]:
    """An archive with a recording of ten messages, and limits that no test reaches."""
    with headrace.ArchivingMediaDriver.embedded(
        archive_directory=tmp_path_factory.mktemp("archive"),
        max_concurrent_recordings=10_000,
        max_concurrent_replays=10_000,
    ) as archiving:
        with archiving.connect_archive() as archive:
            with archive.add_recorded_publication(CHANNEL, 1001) as publication:
                for _ in range(10):
                    publication.offer_blocking(b"kept" * 50)
            archive.await_signal(RecordingSignal.STOP)
        yield archiving
        assert archiving.archive.failure is None
        assert archiving.archive.error_count == 0


@pytest.fixture
def archive(archiving: headrace.ArchivingMediaDriver) -> Iterator[Archive]:
    """A session with it."""
    with archiving.connect_archive() as archive:
        yield archive


def message_of(name: str, choose: random.Random, **given: int) -> bytes:
    """A message with numbers and texts that no client should send, except those given."""
    template = TEMPLATES[name]
    block = bytearray(template.body.block_length)
    for field in template.body.wire_fields:
        number = given.get(field.name, choose.choice(NUMBERS[field.size]))
        block[field.offset : field.offset + field.size] = number.to_bytes(field.size, "little", signed=True)
    texts = [choose.choice(TEXTS) for _ in template.body.data]
    header = struct.pack("<HHHH", len(block), template.template_id, 101, 14)
    return header + bytes(block) + b"".join(struct.pack("<I", len(text)) + text for text in texts)


def answer_to(archive: Archive, correlation_id: int) -> Answer:
    """The first answer to a request."""
    found: list[Answer] = []

    def look() -> bool:
        while (received := archive._subscription.poll_message()) is not None:
            message = decode(received.payload)
            assert message is not None
            if isinstance(message, answers.Answer) and message.correlation_id == correlation_id:
                found.append(message)
        return bool(found)

    await_true(look)
    return found[0]


def test_every_request_is_answered_whatever_it_says(archive: Archive) -> None:
    """And afterwards the recording is what it was, unless it was asked to be shorter or gone."""
    seed = int(os.environ.get("HEADRACE_SEED", "20261"))
    print(f"seed={seed}; again with HEADRACE_SEED={seed}")
    choose = random.Random(seed)
    for round_ in range(8):
        for index, name in enumerate(ANSWERED):
            correlation_id = 1_000_000 + round_ * 1000 + index
            given = {"controlSessionId": archive.control_session_id, "correlationId": correlation_id}
            # A token that nobody has is not answered: over the connection of such a request there is no session.
            given["replayToken"] = -1
            if name in ("PurgeRecordingRequest", "TruncateRecordingRequest"):
                given["recordingId"] = 4711
            request = message_of(name, choose, **given)
            if len(request) > archive._publication.max_message_length:
                continue
            archive._publication.offer_blocking(request, timeout_s=TIMEOUT_S)
            assert answer_to(archive, correlation_id), (name, request)
    # Of what was started meanwhile, nothing is in the way.
    archive.stop_all_replays()
    with archive.replay(0, stream_id=4100) as replay:
        assert [one.payload for one in replay] == [b"kept" * 50] * 10


RIGHT: dict[str, int | str] = {
    "streamId": 1001,
    "position": 0,
    "length": -1,
    "replayStreamId": 4300,
    "fileIoMaxLength": -1,
    "replayToken": -1,
    "recordCount": 10,
    "subscriptionCount": 10,
    "sourceLocation": 0,
    "autoStop": 1,
    "limitCounterId": -1,
    "sessionId": 5,
}


def request_of(name: str, /, **given: int | bytes) -> bytes:
    """A request that is right, but for what is given."""
    template = TEMPLATES[name]
    block = bytearray(template.body.block_length)
    for field in template.body.wire_fields:
        number = given.get(field.name, RIGHT.get(field.name, 0))
        assert isinstance(number, int)
        block[field.offset : field.offset + field.size] = number.to_bytes(field.size, "little", signed=True)
    texts = [given.get(data.name, CHANNEL.encode()) for data in template.body.data]
    header = struct.pack("<HHHH", len(block), template.template_id, 101, 14)
    return header + bytes(block) + b"".join(struct.pack("<I", len(text)) + text for text in texts)  # type: ignore[arg-type]


KNOWN = (0, 1, 2)
# With these numbers a request is right, and takes away what the others are about.
TAKES_AWAY: dict[tuple[str, str], tuple[int, ...]] = {
    ("PurgeRecordingRequest", "recordingId"): KNOWN,
    ("TruncateRecordingRequest", "recordingId"): KNOWN,
    ("TruncateRecordingRequest", "position"): (0,),
}
# The one request of those here that is right with most of its texts, and changes the catalog then.
CHANGES = "UpdateChannelRequest"
# Which numbers of a field are right, and with which code all others are refused.
CODES: dict[tuple[str, str], tuple[tuple[int, ...], ErrorCode]] = {
    **{
        (f"{name}Request", field): (KNOWN, ErrorCode.UNKNOWN_RECORDING)
        for name, field in (
            ("AttachSegments", "recordingId"),
            ("DeleteDetachedSegments", "recordingId"),
            ("DetachSegments", "recordingId"),
            ("ExtendRecording", "recordingId"),
            ("MaxRecordedPosition", "recordingId"),
            ("MigrateSegments", "dstRecordingId"),
            ("MigrateSegments", "srcRecordingId"),
            ("PurgeRecording", "recordingId"),
            ("PurgeSegments", "recordingId"),
            ("RecordingPosition", "recordingId"),
            ("Replay", "recordingId"),
            ("StartPosition", "recordingId"),
            ("StopPosition", "recordingId"),
            ("StopRecordingByIdentity", "recordingId"),
            ("TruncateRecording", "recordingId"),
        )
    },
    ("ExtendRecordingRequest2", "recordingId"): (KNOWN, ErrorCode.UNKNOWN_RECORDING),
    ("ExtendRecordingRequest", "streamId"): ((1001,), ErrorCode.UNKNOWN_RECORDING),
    ("ExtendRecordingRequest2", "streamId"): ((1001,), ErrorCode.UNKNOWN_RECORDING),
    ("ReplicateRequest", "dstRecordingId"): ((*KNOWN, -1), ErrorCode.UNKNOWN_RECORDING),
    ("ReplicateRequest2", "dstRecordingId"): ((*KNOWN, -1), ErrorCode.UNKNOWN_RECORDING),
    ("TaggedReplicateRequest", "dstRecordingId"): ((*KNOWN, -1), ErrorCode.UNKNOWN_RECORDING),
    ("StopRecordingRequest", "streamId"): ((), ErrorCode.UNKNOWN_SUBSCRIPTION),
    ("StopRecordingSubscriptionRequest", "subscriptionId"): ((), ErrorCode.UNKNOWN_SUBSCRIPTION),
    ("StopReplicationRequest", "replicationId"): ((), ErrorCode.UNKNOWN_REPLICATION),
    ("TruncateRecordingRequest", "position"): ((0,), ErrorCode.INVALID_POSITION),
    ("DetachSegmentsRequest", "newStartPosition"): ((), ErrorCode.GENERIC),
    ("PurgeSegmentsRequest", "newStartPosition"): ((), ErrorCode.GENERIC),
    ("StartRecordingRequest", "sourceLocation"): ((0, 1), ErrorCode.GENERIC),
    ("StartRecordingRequest2", "autoStop"): ((0, 1), ErrorCode.GENERIC),
    ("ListRecordingSubscriptionsRequest", "applyStreamId"): ((0, 1), ErrorCode.GENERIC),
}


def wrong_fields(name: str) -> Iterator[tuple[str, int | bytes]]:
    """Each field of a request after its ids, with each number or text that it may be wrong with."""
    body = TEMPLATES[name].body
    for field in body.wire_fields:
        if field.name not in ("controlSessionId", "correlationId"):
            taken = TAKES_AWAY.get((name, field.name), ())
            yield from ((field.name, number) for number in NUMBERS[field.size] if number not in taken)
    for data in body.data:
        yield from ((data.name, text) for text in TEXTS if len(text) < 5000)


def check_code(name: str, field: str, value: int | bytes, answer: Answer) -> None:
    """An error has the code of the specification, and words; what has one is an error."""
    case = name, field, value, answer
    right, code = CODES.get((name, field), ((), None))
    if code is not None and value not in right:
        assert isinstance(answer, ControlResponse), case
        assert (answer.code, answer.relevant_id) == (Response.ERROR, code), case
    if isinstance(answer, ControlResponse) and answer.code is Response.ERROR:
        assert answer.error_message, case


def test_every_request_is_answered_with_each_field_wrong_in_turn(tmp_path: Path) -> None:
    """With the code of the specification; nothing of it changes a recording or fails the archive, which goes on."""
    limits = {"max_concurrent_recordings": 10_000, "max_concurrent_replays": 10_000}
    directory = tmp_path / "archive"

    def stored() -> tuple[bytes, list[str]]:
        # The note of a deletion, also of nothing, is there until the archive has done it.
        names = sorted(path.name for path in directory.iterdir() if path.suffix != ".begun")
        return (directory / CATALOG_NAME).read_bytes(), names

    with (
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=directory, segment_file_length=64 * 1024, **limits
        ) as archiving,
        archiving.connect_archive() as archive,
    ):
        for _ in KNOWN:
            with archive.add_recorded_publication(CHANNEL, 1001) as publication:
                publication.offer_blocking(b"kept" * 50)
            archive.await_signal(RecordingSignal.STOP)
        ids = {"controlSessionId": archive.control_session_id}
        correlation_id = 1_000_000
        before = stored()
        # Replays and replications publish, which is recorded where a request before has asked for that. A declaration
        # and a place are to be stored.
        names = [name for name in ANSWERED if name not in STORES]
        for name in sorted(names, key=lambda name: "Repl" in name):
            for field, value in wrong_fields(name):
                correlation_id += 1
                request = request_of(name, **ids, correlationId=correlation_id, **{field: value})
                archive._publication.offer_blocking(request, timeout_s=TIMEOUT_S)
                answer = answer_to(archive, correlation_id)
                check_code(name, field, value, answer)
                is_done = isinstance(answer, ControlResponse) and answer.code is Response.OK
                if name == CHANGES and is_done:
                    before = stored()
                assert stored() == before, (name, field, value)
            archive.stop_all_replays()
            for subscription_id, _, _ in archive.list_recording_subscriptions():
                archive.stop_recording_subscription(subscription_id)
        assert archiving.archive.failure is None
        assert archiving.archive.error_count == 0
        for recording_id in KNOWN:
            with archive.replay(recording_id, stream_id=4301) as replay:
                assert [one.payload for one in replay] == [b"kept" * 50]
        with archive.add_recorded_publication(CHANNEL, 1009) as publication:
            publication.offer_blocking(b"and on")
        recording_id = archive.await_signal(RecordingSignal.STOP).recording_id
        with archive.replay(recording_id, stream_id=4301) as replay:
            assert [one.payload for one in replay] == [b"and on"]


def test_bytes_that_are_no_request_are_noted_and_change_nothing(
    archiving: headrace.ArchivingMediaDriver,
    archive: Archive,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Truncated anywhere, of another schema, of an unknown template, for another session."""
    # Other tests may have used up what is told of one text in a second.
    monkeypatch.setattr(RateLimit, "take", lambda _, text: 0)
    choose = random.Random(20262)
    request = message_of("StartRecordingRequest2", choose, controlSessionId=5, correlationId=6)
    none = [request[:length] for length in range(0, len(request), 3)]
    none += [
        struct.pack("<HHHH", 24, 63, 7, 14) + bytes(100),
        struct.pack("<HHHH", 24, 999, 101, 14) + bytes(100),
        struct.pack("<HHHH", 65535, 63, 101, 14) + bytes(100),
        struct.pack("<HHHH", 0, 63, 101, 0),
        struct.pack("<HHHH", 28, 63, 101, 14) + bytes(28) + b"\xff\xff\xff\x7f",
        message_of("KeepAliveRequest", choose, controlSessionId=archive.control_session_id + 1),
        message_of("CloseSessionRequest", choose, controlSessionId=archive.control_session_id + 1),
        message_of("ControlResponse", choose, controlSessionId=archive.control_session_id, code=0),
        message_of("ChallengeResponse", choose, controlSessionId=archive.control_session_id),
    ]
    before = archiving.archive.error_count
    caplog.clear()
    for one in none:
        archive._publication.offer_blocking(one, timeout_s=TIMEOUT_S)
    assert archive.start_position(0) == 0
    texts = [record.getMessage() for record in caplog.records if record.name == "headrace.archive"]
    assert len(texts) > 20
    assert all(text.startswith("WARN - ") for text in texts)
    assert archiving.archive.error_count == before


def test_a_request_that_cannot_be_read_is_refused_in_words(archive: Archive) -> None:
    """When it says whose it is; its sender would wait for an answer otherwise."""
    request = StartRecordingRequest2(
        control_session_id=archive.control_session_id,
        correlation_id=77,
        stream_id=1,
        source_location=SourceLocation.LOCAL,
        auto_stop=False,
        channel="aeron:ipc",
    )
    whole = encode(request)
    location, text = 8 + 20, len(whole) - len("aeron:ipc")
    damaged = {
        "sourceLocation": whole[:location] + b"\x09" + whole[location + 1 :],
        "channel": whole[:text] + b"\xfc" + whole[text + 1 :],
        "cut": whole[:-1],
    }
    for case, data in damaged.items():
        with pytest.raises(MessageError):
            decode(data)
        archive._publication.offer_blocking(data)
        answer = answer_to(archive, 77)
        assert isinstance(answer, ControlResponse)
        assert (answer.code, answer.relevant_id) == (Response.ERROR, ErrorCode.GENERIC), case
        assert answer.error_message.startswith("malformed request: StartRecordingRequest2"), case


def test_an_answer_that_does_not_fit_the_clients_channel_is_an_error_and_not_silence(
    archiving: headrace.ArchivingMediaDriver, archive: Archive
) -> None:
    """A description with channels of 4000 characters is longer than an eighth of the smallest term."""
    long = "aeron:ipc?alias=" + "x" * 4070
    archive.update_channel(0, long)
    try:
        for ask in (archive.list_recordings, lambda: archive.find_recording(0)):
            with pytest.raises(headrace.ArchiveError, match="connect with a longer term"):
                ask()
        with archiving.connect_archive(
            response_channel="aeron:ipc?term-length=128k", response_stream_id=21
        ) as roomy:
            found = roomy.find_recording(0)
            assert found is not None
            assert found.original_channel == long
    finally:
        archive.update_channel(0, CHANNEL)


def test_a_session_lists_once_at_a_time(tmp_path: Path) -> None:
    """Whatever else it lists or whose channel it changes meanwhile is refused; others may, and it may again."""
    count, long = 100, "aeron:ipc?alias=" + "x" * 3000
    catalog = Catalog(DirectoryStorage(tmp_path / "archive"))
    for _ in range(count):
        catalog.add(descriptor(stop_position=0, stop_timestamp=5, original_channel=long))
    catalog.close()
    with (
        headrace.ArchivingMediaDriver.embedded(archive_directory=tmp_path / "archive") as archiving,
        archiving.connect_archive() as archive,
        archiving.connect_archive(response_stream_id=33) as other,
    ):
        ids = {"controlSessionId": archive.control_session_id}
        # The answers are more than the client's channel holds: the listing goes on until they are read.
        listing = request_of("ListRecordingsRequest", **ids, correlationId=901, recordCount=count + 1)
        archive._publication.offer_blocking(listing)
        refused = [
            "ListRecordingsRequest",
            "ListRecordingsForUriRequest",
            "ListRecordingRequest",
            "ListRecordingSubscriptionsRequest",
            "UpdateChannelRequest",
        ]
        for correlation_id, name in enumerate(refused, 902):
            request = request_of(name, **ids, correlationId=correlation_id)
            archive._publication.offer_blocking(request)
        assert len(other.list_recordings()) == count
        listed = 0
        told: list[tuple[int, int, str]] = []
        is_listed = False

        def look() -> bool:
            nonlocal listed, is_listed
            while (received := archive._subscription.poll_message()) is not None:
                answer = decode(received.payload)
                listed += isinstance(answer, RecordingDescriptor)
                if isinstance(answer, ControlResponse) and answer.correlation_id == 901:
                    is_listed = answer.code is Response.RECORDING_UNKNOWN
                elif isinstance(answer, ControlResponse):
                    told.append((answer.correlation_id, answer.relevant_id, answer.error_message))
            return is_listed

        await_true(look)
        assert listed == count
        text = "active listing already in progress"
        assert told == [(number, ErrorCode.ACTIVE_LISTING, text) for number, _ in enumerate(refused, 902)]
        assert [one.original_channel for one in archive.list_recordings()] == [long] * count


def silent_connect(
    client: headrace.Client, response_channel: str, *, version: int = PROTOCOL_VERSION
) -> headrace.ExclusivePublication:
    """Asks for a session of a response channel, and gives the publication, which leaves when nothing holds it."""
    publication = client.add_exclusive_publication("aeron:ipc?term-length=64k", CONTROL_STREAM_ID)
    assert publication.wait_until_connected(TIMEOUT_S)
    request = AuthConnectRequest(
        correlation_id=client.next_correlation_id(),
        response_stream_id=29,
        version=version,
        response_channel=response_channel,
    )
    publication.offer_blocking(encode(request))
    return publication


CONNECTS: dict[str, tuple[Callable[[headrace.Client], headrace.ExclusivePublication], str]] = {
    "malformed channel": (lambda client: silent_connect(client, "udp://nowhere"), "cannot answer a client"),
    "refused channel": (
        lambda client: silent_connect(client, "aeron:udp?endpoint=nowhere"),
        "cannot answer the client",
    ),
    "response mode": (
        lambda client: silent_connect(client, "aeron:udp?control-mode=response|control=127.0.0.1:24990"),
        "cannot answer the client",
    ),
}


@pytest.mark.parametrize("case", CONNECTS)
def test_a_connect_that_cannot_be_answered_is_noted_with_the_reason(
    archiving: headrace.ArchivingMediaDriver,
    archive: Archive,
    case: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """There is no other way to tell; others go on."""
    connect, words = CONNECTS[case]
    with archiving.connect() as client:
        # An archive does not warn of a client that has left by then.
        held = connect(client)
        await_true(lambda: any(words in text for text in caplog.messages))
        held.close()
    assert archive.start_position(0) == 0


def sessions(archive: Archive) -> int:
    """Sessions that the archive has now, by its counter."""
    (count,) = (one.value for one in archive.client.counters if one.type_id == 102)
    return count


def await_no_other(archive: Archive) -> None:
    """Waits until the archive has forgotten the clients of the tests before."""
    await_true(lambda: sessions(archive) == 1)


def test_clients_that_leave_at_any_stage_are_forgotten(
    archiving: headrace.ArchivingMediaDriver, archive: Archive
) -> None:
    """Before the archive can answer them, before they have spoken, in the middle of a listing, during a replay."""
    await_no_other(archive)

    def in_a_listing(client: headrace.Client) -> None:
        other = Archive.connect(client)
        listing = ListRecordingsRequest(
            control_session_id=other.control_session_id,
            correlation_id=client.next_correlation_id(),
            from_recording_id=0,
            record_count=2**31 - 1,
        )
        other._publication.offer_blocking(encode(listing), timeout_s=TIMEOUT_S)

    def in_a_replay(client: headrace.Client) -> None:
        Archive.connect(client).start_replay(0, CHANNEL, 4200)

    stages: list[Callable[[headrace.Client], object]] = [
        lambda client: silent_connect(client, "aeron:ipc"),
        lambda client: silent_connect(client, "aeron:ipc?session-id=12345"),
        in_a_listing,
        in_a_replay,
    ]
    for leave in stages:
        with archiving.connect() as client:
            held = leave(client)
            if leave in stages[:2]:
                await_true(lambda: sessions(archive) == 2)
            del held
        await_no_other(archive)


def test_clients_beyond_the_limit_are_refused_at_once_and_by_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Those that are there go on, and when one leaves there is room for another."""
    with headrace.ArchivingMediaDriver.embedded(
        archive_directory=tmp_path / "archive", max_control_sessions=2
    ) as archiving:
        with archiving.connect_archive() as first:
            with archiving.connect_archive() as second:
                with pytest.raises(headrace.ArchiveError, match="does not serve this client"):
                    archiving.connect_archive()
                assert first.list_recordings() == second.list_recordings() == []
            await_true(lambda: sessions(first) == 1)
            with archiving.connect_archive() as third:
                assert third.list_recordings() == []
        assert archiving.archive.error_count == 0
    assert "WARN - a client cannot connect: max control sessions reached 2" in caplog.messages


def test_a_client_that_closes_twice_or_leaves_is_no_error_and_no_warning(
    archiving: headrace.ArchivingMediaDriver, archive: Archive, caplog: pytest.LogCaptureFixture
) -> None:
    """Whichever way it goes, and however often it says so."""
    await_no_other(archive)
    caplog.clear()
    with archiving.connect() as client:
        other = Archive.connect(client)
        close = encode(CloseSessionRequest(control_session_id=other.control_session_id))
        other._publication.offer_blocking(close)
        await_no_other(archive)
        # The archive has seen the second close when it complains of what follows it.
        for request in (close, b"no request"):
            other._publication.offer_blocking(request)
        await_true(lambda: "a client sent a request that cannot be read: session_id" in caplog.text)
        left = Archive.connect(client)
        await_true(lambda: sessions(archive) == 2)
        del left
    await_no_other(archive)
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert not any("control session" in text or "CloseSession" in text for text in warnings)


def test_a_client_of_another_major_version_is_told_so(archiving: headrace.ArchivingMediaDriver) -> None:
    """With its session id for a code, as the reference does; a client shows it."""
    with archiving.connect() as client:
        answers = client.add_subscription("aeron:ipc", 29)
        with silent_connect(client, "aeron:ipc", version=2 << 16):
            received = answers.receive(timeout_s=TIMEOUT_S)
        assert received is not None
        answer = decode(received.payload)
        assert isinstance(answer, ControlResponse)
        assert answer.code is Response.ERROR
        assert "invalid client version 2.0" in answer.error_message


def test_a_path_that_is_not_ascii_does_not_stop_the_archive_from_saying_what_is_wrong(tmp_path: Path) -> None:
    """The protocol has no other characters, so they are shown as question marks."""
    directory = tmp_path / "Aufnähme"
    with (
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=directory, connect_timeout_ns=2_000_000_000
        ) as archiving,
        archiving.connect_archive() as archive,
    ):
        with archive.add_recorded_publication(CHANNEL, 1001) as publication:
            publication.offer_blocking(b"gone")
        archive.await_signal(RecordingSignal.STOP)
        (directory / "0-0.rec").unlink()
        with pytest.raises(headrace.ArchiveError, match=r"segment file not created.*Aufn\?hme/0-0\.rec"):
            archive.replay(0)
        assert archiving.archive.failure is None
