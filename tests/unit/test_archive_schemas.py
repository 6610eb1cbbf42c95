"""The archive's schemas as data: every template with its id and block length, and bytes of the protocol."""

from __future__ import annotations

from importlib import resources

import pytest

from headrace import sbe

# Template id and block length of the newest version.
TEMPLATES = {
    "ControlResponse": (1, 32),
    "CloseSessionRequest": (3, 8),
    "StartRecordingRequest": (4, 24),
    "StopRecordingRequest": (5, 20),
    "ReplayRequest": (6, 56),
    "StopReplayRequest": (7, 24),
    "ListRecordingsRequest": (8, 28),
    "ListRecordingsForUriRequest": (9, 32),
    "ListRecordingRequest": (10, 24),
    "ExtendRecordingRequest": (11, 32),
    "RecordingPositionRequest": (12, 24),
    "TruncateRecordingRequest": (13, 32),
    "StopRecordingSubscriptionRequest": (14, 24),
    "StopPositionRequest": (15, 24),
    "FindLastMatchingRecordingRequest": (16, 32),
    "ListRecordingSubscriptionsRequest": (17, 32),
    "BoundedReplayRequest": (18, 60),
    "StopAllReplaysRequest": (19, 24),
    "CatalogHeader": (20, 32),
    "RecordingDescriptorHeader": (21, 32),
    "RecordingDescriptor": (22, 80),
    "RecordingSubscriptionDescriptor": (23, 28),
    "RecordingSignalEvent": (24, 44),
    "ReplicateRequest": (50, 36),
    "StopReplicationRequest": (51, 24),
    "StartPositionRequest": (52, 24),
    "DetachSegmentsRequest": (53, 32),
    "DeleteDetachedSegmentsRequest": (54, 24),
    "PurgeSegmentsRequest": (55, 32),
    "AttachSegmentsRequest": (56, 24),
    "MigrateSegmentsRequest": (57, 32),
    "AuthConnectRequest": (58, 16),
    "Challenge": (59, 20),
    "ChallengeResponse": (60, 16),
    "KeepAliveRequest": (61, 16),
    "TaggedReplicateRequest": (62, 52),
    "StartRecordingRequest2": (63, 28),
    "ExtendRecordingRequest2": (64, 36),
    "StopRecordingByIdentityRequest": (65, 24),
    "ReplicateRequest2": (66, 68),
    "MaxRecordedPositionRequest": (67, 24),
    "ArchiveIdRequest": (68, 16),
    "RecordingStarted": (101, 24),
    "RecordingProgress": (102, 24),
    "RecordingStopped": (103, 24),
    "PurgeRecordingRequest": (104, 24),
    "ReplayTokenRequest": (105, 24),
    "Ping": (106, 8),
    "UpdateChannelRequest": (107, 24),
    # Not of the published protocol.
    "DeclareStreamRequest": (120, 28),
    "UndeclareStreamRequest": (121, 16),
    "ListStreamsRequest": (122, 16),
    "NamedStreamDescriptor": (123, 28),
    "ListStreamRecordingsRequest": (124, 32),
    "JoinGroupRequest": (125, 28),
    "GroupAssignment": (126, 32),
    "CommitPlaceRequest": (127, 24),
    "LeaveGroupRequest": (128, 16),
    "ListGroupsRequest": (129, 16),
    "GroupDescriptor": (130, 32),
}
# Schema version, block length: what older clients send.
HISTORIC_BLOCKS = {
    "ReplayRequest": ((6, 44), (7, 48), (9, 48), (10, 56)),
    "BoundedReplayRequest": ((6, 48), (7, 52), (10, 60)),
    "ReplicateRequest2": ((6, 60), (7, 64), (8, 68)),
    "ControlResponse": ((3, 28), (4, 32)),
}


def schema(name: str) -> sbe.Schema:
    with resources.as_file(resources.files("headrace.archive.protocol") / "schemas" / name) as path:
        return sbe.Schema.from_file(path, snake_case=True)


@pytest.fixture(scope="module")
def archive() -> sbe.Schema:
    return schema("archive.xml")


def test_the_schema_says_what_it_is(archive: sbe.Schema) -> None:
    assert (archive.schema_id, archive.version, archive.semantic_version) == (101, 14, "5.2")


def test_every_template_is_there(archive: sbe.Schema) -> None:
    assert {name: (codec.template_id, codec.block_length) for name, codec in archive.items()} == TEMPLATES


def test_a_keep_alive_is_these_bytes(archive: sbe.Schema) -> None:
    data = bytes.fromhex("10003d0065000e00 0700000000000000 ffffffffffffffff")
    codec = archive["KeepAliveRequest"]
    assert codec.encode(control_session_id=7, correlation_id=-1) == data
    assert archive.decode(data) == (7, -1)


@pytest.mark.parametrize(
    ("name", "version", "block_length"),
    [(name, *variant) for name, variants in HISTORIC_BLOCKS.items() for variant in variants],
)
def test_older_versions_are_read(archive: sbe.Schema, name: str, version: int, block_length: int) -> None:
    codec = archive[name]
    data = bytes(block_length) + b"\x03\0\0\0abc"
    if name == "ReplicateRequest2":
        data += bytes(4 * (2 + (version >= 8)))
    message, end = codec.decode_body(data, version=version, block_length=block_length)
    assert end == len(data)
    assert "abc" in message
    with pytest.raises(sbe.DecodeError):
        codec.decode_body(data, version=version, block_length=block_length - 1)


def test_the_mark_file_header_leaves_room() -> None:
    codec = schema("archive-mark.xml")["MarkFileHeader"]
    assert codec.block_length == 128
    data = codec.encode(
        version=196864,
        activity_timestamp=-1,
        start_timestamp=2,
        pid=3,
        control_stream_id=10,
        local_control_stream_id=10,
        events_stream_id=0,
        header_length=8192,
        error_buffer_length=1 << 20,
        archive_id=77,
        control_channel="aeron:udp?endpoint=localhost:8010",
        local_control_channel="aeron:ipc",
        events_channel="",
        aeron_directory="/dev/shm/aeron",
    )
    assert data[8 + 56 : 8 + 64] == (77).to_bytes(8, "little")
    assert codec.decode(data).aeron_directory == "/dev/shm/aeron"
