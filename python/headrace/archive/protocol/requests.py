"""The messages of clients to an archive, one class for each template of the schema, with the template's name.

The session that sends a request sets the ids at its beginning. Older clients do not send fields with a default, which
is what their absence means.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.archive.protocol.codes import SourceLocation
from headrace.positions import NULL_VALUE

__all__ = [
    "REQUESTS",
    "ArchiveIdRequest",
    "AttachSegmentsRequest",
    "AuthConnectRequest",
    "BoundedReplayRequest",
    "ChallengeResponse",
    "CloseSessionRequest",
    "CommitPlaceRequest",
    "DeclareStreamRequest",
    "DeleteDetachedSegmentsRequest",
    "DetachSegmentsRequest",
    "ExtendRecordingRequest",
    "ExtendRecordingRequest2",
    "FindLastMatchingRecordingRequest",
    "JoinGroupRequest",
    "KeepAliveRequest",
    "LeaveGroupRequest",
    "ListGroupsRequest",
    "ListRecordingRequest",
    "ListRecordingSubscriptionsRequest",
    "ListRecordingsForUriRequest",
    "ListRecordingsRequest",
    "ListStreamRecordingsRequest",
    "ListStreamsRequest",
    "MaxRecordedPositionRequest",
    "MigrateSegmentsRequest",
    "PurgeRecordingRequest",
    "PurgeSegmentsRequest",
    "RecordingPositionRequest",
    "RecordingRequest",
    "ReplayRequest",
    "ReplayTokenRequest",
    "ReplicateRequest",
    "ReplicateRequest2",
    "Request",
    "StartPositionRequest",
    "StartRecordingRequest",
    "StartRecordingRequest2",
    "StopAllReplaysRequest",
    "StopPositionRequest",
    "StopRecordingByIdentityRequest",
    "StopRecordingRequest",
    "StopRecordingSubscriptionRequest",
    "StopReplayRequest",
    "StopReplicationRequest",
    "TaggedReplicateRequest",
    "TruncateRecordingRequest",
    "UndeclareStreamRequest",
    "UpdateChannelRequest",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthConnectRequest:
    """Open a control session."""

    correlation_id: int
    response_stream_id: int
    response_channel: str
    version: int = 0
    encoded_credentials: bytes = field(default=b"", repr=False)
    client_info: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseSessionRequest:
    """End a control session; not answered."""

    control_session_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request that a control session carries out and answers."""

    control_session_id: int = NULL_VALUE
    correlation_id: int = NULL_VALUE

    @property
    def template(self) -> str:
        """Its name in the schema."""
        return type(self).__name__


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingRequest(Request):
    """A request about one recording."""

    recording_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAliveRequest(Request):
    """Make a session active, or show that the client lives; not answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChallengeResponse(Request):
    """The response to a challenge; answered as a connect request is."""

    encoded_credentials: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveIdRequest(Request):
    """Which archive this is."""


# --- recording -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRecordingRequest(Request):
    """Record a channel and stream; answered with the id of the archive's subscription."""

    stream_id: int
    source_location: SourceLocation
    channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRecordingRequest2(StartRecordingRequest):
    """The same, until the first of the publishers ends if `auto_stop` is set."""

    auto_stop: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendRecordingRequest(RecordingRequest):
    """Extend a stopped recording; answered as a start is."""

    stream_id: int
    source_location: SourceLocation
    channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendRecordingRequest2(ExtendRecordingRequest):
    """The same, until the publisher ends if `auto_stop` is set."""

    auto_stop: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRecordingRequest(Request):
    """Stop the recordings of a channel and stream."""

    stream_id: int
    channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRecordingSubscriptionRequest(Request):
    """Stop the recordings of a subscription, by the id in the answer to the start."""

    subscription_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRecordingByIdentityRequest(RecordingRequest):
    """Stop one recording; answered with 1 if it was active, else 0."""


# --- replay --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest(RecordingRequest):
    """Replay to a channel; answered with the replay's id."""

    position: int
    length: int
    replay_stream_id: int
    replay_channel: str
    file_io_max_length: int = NULL_VALUE
    replay_token: int = NULL_VALUE


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedReplayRequest(ReplayRequest):
    """The same, but not past the value of a counter."""

    limit_counter_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayTokenRequest(RecordingRequest):
    """Ask for a token, with which a replay may be requested over a connection other than the session's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReplayRequest(Request):
    """Stop one replay."""

    replay_session_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAllReplaysRequest(RecordingRequest):
    """Stop all replays of a recording; of every recording for id -1."""


# --- queries -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRecordingsRequest(Request):
    """Descriptors from an id on."""

    from_recording_id: int
    record_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRecordingsForUriRequest(ListRecordingsRequest):
    """The same, of one stream, whose channel contains a text."""

    stream_id: int
    channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRecordingRequest(RecordingRequest):
    """One descriptor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRecordingSubscriptionsRequest(Request):
    """The archive's subscriptions for recordings."""

    pseudo_index: int
    subscription_count: int
    apply_stream_id: bool
    stream_id: int
    channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindLastMatchingRecordingRequest(Request):
    """The id of the latest recording of a publisher."""

    min_recording_id: int
    session_id: int
    stream_id: int
    channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPositionRequest(RecordingRequest):
    """Where a recording begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopPositionRequest(RecordingRequest):
    """Where a recording ended; -1 while it is active."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingPositionRequest(RecordingRequest):
    """The position that an active recording has reached; -1 when it is not active."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxRecordedPositionRequest(RecordingRequest):
    """The position that a recording has reached, active or not."""


# --- storage -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateRecordingRequest(RecordingRequest):
    """Delete everything recorded after a position."""

    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeRecordingRequest(RecordingRequest):
    """Delete a recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetachSegmentsRequest(RecordingRequest):
    """Make a recording begin in a later segment file; the files before it stay on disk."""

    new_start_position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteDetachedSegmentsRequest(RecordingRequest):
    """Delete the segment files before the start of a recording; answered with how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeSegmentsRequest(RecordingRequest):
    """Detach segment files and delete them; answered with how many."""

    new_start_position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachSegmentsRequest(RecordingRequest):
    """Attach the segment files that end where a recording begins again; answered with how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateSegmentsRequest(Request):
    """Make one recording the beginning, or the end, of another; answered with how many segment files moved."""

    src_recording_id: int
    dst_recording_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateChannelRequest(RecordingRequest):
    """Replace the channel in a recording's description."""

    channel: str


# --- replication ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicateRequest(Request):
    """Copy a recording of another archive into a new one, for destination -1, or into one of this archive.

    Answered with the replication's id, which all later messages about it carry.
    """

    src_recording_id: int
    dst_recording_id: int
    src_control_stream_id: int
    src_control_channel: str
    live_destination: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedReplicateRequest(ReplicateRequest):
    """The same, with tags for the subscription of the copy; -1 for none."""

    channel_tag_id: int
    subscription_tag_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicateRequest2(TaggedReplicateRequest):
    """The same, with all options; -1 and an empty text stand for the default."""

    stop_position: int
    replication_channel: str
    file_io_max_length: int = NULL_VALUE
    replication_session_id: int = NULL_VALUE
    encoded_credentials: bytes = field(default=b"", repr=False)
    src_response_channel: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReplicationRequest(Request):
    """Stop a replication."""

    replication_id: int


# --- named streams: not of the published protocol ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclareStreamRequest(Request):
    """Record a stream whenever the archive runs; its channel says what is kept of it."""

    stream_id: int
    source_location: SourceLocation
    keys: bool
    name: str
    channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UndeclareStreamRequest(Request):
    """Record a stream no longer; answered with 1 if it was declared, else with 0."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListStreamsRequest(Request):
    """List the declared streams by name; answered with a descriptor of each, then with OK."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListStreamRecordingsRequest(Request):
    """List the recordings of a stream that a reader may not have read whole, then OK.

    Those are recordings from an id on, those that are being recorded, and those that stopped at or after a time.
    """

    from_recording_id: int
    since_ms: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroupRequest(Request):
    """Read a named stream as a member of a group; sent again and again, it shows that the member lives."""

    generation: int
    lane_count: int
    name: str
    group: str
    member: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPlaceRequest(Request):
    """Keep how far a member has read, in the lanes that are its own in a generation."""

    generation: int
    name: str
    group: str
    member: str
    places: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroupRequest(Request):
    """Read no longer as a member of a group."""

    name: str
    group: str
    member: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroupsRequest(Request):
    """List the groups of a stream; answered with a descriptor of each, then with OK."""

    name: str


REQUESTS: tuple[type[AuthConnectRequest | CloseSessionRequest | Request], ...] = (
    AuthConnectRequest,
    CloseSessionRequest,
    ChallengeResponse,
    KeepAliveRequest,
    ArchiveIdRequest,
    StartRecordingRequest,
    StartRecordingRequest2,
    ExtendRecordingRequest,
    ExtendRecordingRequest2,
    StopRecordingRequest,
    StopRecordingSubscriptionRequest,
    StopRecordingByIdentityRequest,
    ReplayRequest,
    BoundedReplayRequest,
    ReplayTokenRequest,
    StopReplayRequest,
    StopAllReplaysRequest,
    ListRecordingsRequest,
    ListRecordingsForUriRequest,
    ListRecordingRequest,
    ListRecordingSubscriptionsRequest,
    FindLastMatchingRecordingRequest,
    StartPositionRequest,
    StopPositionRequest,
    RecordingPositionRequest,
    MaxRecordedPositionRequest,
    TruncateRecordingRequest,
    PurgeRecordingRequest,
    DetachSegmentsRequest,
    DeleteDetachedSegmentsRequest,
    PurgeSegmentsRequest,
    AttachSegmentsRequest,
    MigrateSegmentsRequest,
    UpdateChannelRequest,
    ReplicateRequest,
    TaggedReplicateRequest,
    ReplicateRequest2,
    StopReplicationRequest,
    DeclareStreamRequest,
    UndeclareStreamRequest,
    ListStreamsRequest,
    ListStreamRecordingsRequest,
    JoinGroupRequest,
    CommitPlaceRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
)
"""All that are messages of the schema."""
