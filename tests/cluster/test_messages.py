"""The messages of a cluster. Their bytes are compared with the reference's in tests/interop/test_cluster_files.py."""

import dataclasses
import random
from typing import Any

import pytest

from headrace.cluster.protocol.codes import ClusterTimeUnit, EventCode
from headrace.cluster.protocol.consensus import BackupResponse, SnapshotRecording
from headrace.cluster.protocol.control import ServiceTerminationPosition
from headrace.cluster.protocol.header import pack_header, with_header
from headrace.cluster.protocol.log import NewLeadershipTermEvent
from headrace.cluster.protocol.messages import MessageError, decode, encode, schema
from headrace.cluster.protocol.session import SessionConnectRequest, SessionEvent, SessionMessageHeader
from headrace.positions import NULL_VALUE

EVENT = SessionEvent(
    cluster_session_id=1,
    correlation_id=2,
    leadership_term_id=3,
    leader_member_id=4,
    code=EventCode.REDIRECT,
    version=5,
    leader_heartbeat_timeout_ns=6,
    detail="0=localhost:9010",
)
RECORDING = SnapshotRecording(
    recording_id=1,
    leadership_term_id=2,
    term_base_log_position=3,
    log_position=4,
    timestamp=5,
    service_id=-1,
)
RESPONSE = BackupResponse(
    correlation_id=1,
    log_recording_id=2,
    log_leadership_term_id=3,
    log_term_base_log_position=4,
    last_leadership_term_id=5,
    last_term_base_log_position=6,
    commit_position_counter_id=7,
    leader_member_id=8,
    member_id=9,
    snapshots=(RECORDING, dataclasses.replace(RECORDING, service_id=0)),
    cluster_members="0,a,b",
)


@pytest.mark.parametrize("message", [EVENT, RESPONSE])
def test_a_message_comes_back_as_it_was(message: object) -> None:
    assert decode(encode(message)) == message


@pytest.mark.parametrize(
    "message",
    [b"", b"short", b"x" * 5000, bytearray(b"array"), memoryview(b"view"), (b"two", b" parts"), [b"one"]],
)
def test_what_is_sent_is_the_header_and_then_the_message(message: Any) -> None:
    header = pack_header(1, 2, 3)
    offered = with_header(header, message)
    whole = offered if isinstance(offered, bytes) else b"".join(map(bytes, offered))
    parts = message if isinstance(message, tuple | list) else [message]
    assert whole == header + b"".join(map(bytes, parts))


def test_a_session_message_header_is_32_bytes_long_and_its_data_follows() -> None:
    header = SessionMessageHeader(leadership_term_id=1, cluster_session_id=2, timestamp=3)
    assert len(encode(header)) == 32
    assert decode(encode(header) + b"data") == header


def shortened(message: object, block_length: int, version: int) -> bytes:
    """The message as a sender with an older schema would have written it."""
    data = encode(message)
    end = 8 + int.from_bytes(data[:2], "little")
    return (
        block_length.to_bytes(2, "little")
        + data[2:6]
        + version.to_bytes(2, "little")
        + data[8 : 8 + block_length]
        + data[end:]
    )


def test_what_an_older_sender_leaves_out_has_its_default() -> None:
    old = decode(shortened(EVENT, 32, 5))
    assert old == dataclasses.replace(EVENT, version=0, leader_heartbeat_timeout_ns=NULL_VALUE)
    term = NewLeadershipTermEvent(
        leadership_term_id=1,
        log_position=2,
        timestamp=3,
        term_base_log_position=4,
        leader_member_id=5,
        log_session_id=6,
        time_unit=ClusterTimeUnit.NANOS,
        app_version=7,
    )
    assert decode(shortened(term, 40, 3)) == dataclasses.replace(
        term, time_unit=ClusterTimeUnit.MILLIS, app_version=0
    )
    end = ServiceTerminationPosition(log_position=8, ack_required=False)
    assert decode(shortened(end, 8, 16)) == dataclasses.replace(end, ack_required=True)


def test_a_client_of_version_13_says_nothing_of_itself() -> None:
    request = SessionConnectRequest(correlation_id=1, response_stream_id=2, response_channel="aeron:ipc")
    data = encode(request)
    assert decode(data[:6] + (13).to_bytes(2, "little") + data[8:-4]) == request


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "length=0 is below the 8 bytes"),
        (encode(EVENT)[:4] + b"\x65\0" + encode(EVENT)[6:], "schema_id=101 where 111 is expected"),
        (encode(EVENT)[:30], "SessionEvent"),
        (encode(EVENT)[:36] + b"\x63" + encode(EVENT)[37:], "99"),
        (encode(RESPONSE)[:-3], "BackupResponse"),
    ],
)
def test_bytes_that_are_no_message_are_refused(data: bytes, said: str) -> None:
    with pytest.raises(MessageError, match=said):
        decode(data)


def test_an_unknown_template_is_ignored() -> None:
    assert decode(b"\0\0\xe7\x03\x6f\0\x11\0") is None


def test_damaged_bytes_give_a_message_or_an_error() -> None:
    chance = random.Random(7)
    for _ in range(2_000):
        data = bytearray(encode(chance.choice((EVENT, RESPONSE))))
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            decode(bytes(data[: chance.randrange(len(data) + 1)]))
        except MessageError:
            continue


@pytest.mark.parametrize("message", schema().model.messages, ids=lambda message: message.name)
def test_each_template_has_a_class_of_its_name(message: Any) -> None:
    zeros = decode(schema()[message.name].header_bytes + bytes(200))
    assert type(zeros).__name__ == message.name
    assert decode(encode(zeros)) == zeros
