"""The messages between members, backups and standbys."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.positions import NULL_VALUE

__all__ = [
    "CONSENSUS",
    "AddPassiveMember",
    "AppendPosition",
    "BackupQuery",
    "BackupResponse",
    "CanvassPosition",
    "CatchupPosition",
    "ClusterMembersChange",
    "CommitAnswer",
    "CommitPosition",
    "CommitQuery",
    "Divergence",
    "FollowerSnapshot",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "JoinCluster",
    "LeaderProbe",
    "LeaderProbeAck",
    "MemberList",
    "MemberStateHash",
    "NewLeadershipTerm",
    "RequestVote",
    "SnapshotRecording",
    "SnapshotRecordingQuery",
    "SnapshotRecordings",
    "StandbySnapshot",
    "StandbySnapshotRecording",
    "StopCatchup",
    "TerminationAck",
    "TerminationPosition",
    "TransferLeadership",
    "Vote",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRecording:
    """One recording of a snapshot: of the consensus module, or of a service."""

    recording_id: int
    leadership_term_id: int
    term_base_log_position: int
    log_position: int
    timestamp: int
    service_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StandbySnapshotRecording(SnapshotRecording):
    """The same, in the archive of a standby."""

    archive_endpoint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvassPosition:
    """A member that has no leader says how far its log goes."""

    log_leadership_term_id: int
    log_position: int
    leadership_term_id: int
    follower_member_id: int
    protocol_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestVote:
    """A candidate asks for votes."""

    log_leadership_term_id: int
    log_position: int
    candidate_term_id: int
    candidate_member_id: int
    protocol_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """A vote."""

    candidate_term_id: int
    log_leadership_term_id: int
    log_position: int
    candidate_member_id: int
    follower_member_id: int
    vote: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLeadershipTerm:
    """A leader announces its term."""

    log_leadership_term_id: int
    next_leadership_term_id: int
    next_term_base_log_position: int
    next_log_position: int
    leadership_term_id: int
    term_base_log_position: int
    log_position: int
    leader_recording_id: int
    timestamp: int
    leader_member_id: int
    log_session_id: int
    app_version: int = 0
    is_startup: bool
    commit_position: int = NULL_VALUE


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendPosition:
    """A follower has appended so far."""

    leadership_term_id: int
    log_position: int
    follower_member_id: int
    flags: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPosition:
    """The leader has committed so far; also its heartbeat."""

    leadership_term_id: int
    log_position: int
    leader_member_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchupPosition:
    """A follower asks to catch up."""

    leadership_term_id: int
    log_position: int
    follower_member_id: int
    catchup_endpoint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopCatchup:
    """A follower need not catch up any longer."""

    leadership_term_id: int
    follower_member_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPassiveMember:
    """Deprecated since 12; unused."""

    correlation_id: int
    member_endpoints: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMembersChange:
    """Deprecated since 12; unused."""

    correlation_id: int
    leader_member_id: int
    active_members: str = ""
    passive_members: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRecordingQuery:
    """Deprecated since 12; unused."""

    correlation_id: int
    request_member_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRecordings:
    """Deprecated since 12; unused."""

    correlation_id: int
    snapshots: tuple[SnapshotRecording, ...] = ()
    member_endpoints: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinCluster:
    """Deprecated since 12; unused."""

    leadership_term_id: int
    member_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationPosition:
    """The leader has followers end at this position."""

    leadership_term_id: int
    log_position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationAck:
    """A follower has ended."""

    leadership_term_id: int
    log_position: int
    member_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupQuery:
    """A backup asks for recordings."""

    correlation_id: int
    response_stream_id: int
    version: int = 0
    log_position: int | None = None
    response_channel: str = ""
    encoded_credentials: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupResponse:
    """The recordings that a backup is to copy."""

    correlation_id: int
    log_recording_id: int
    log_leadership_term_id: int
    log_term_base_log_position: int
    last_leadership_term_id: int
    last_term_base_log_position: int
    commit_position_counter_id: int
    leader_member_id: int
    member_id: int = NULL_VALUE
    snapshots: tuple[SnapshotRecording, ...] = ()
    cluster_members: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatRequest:
    """A standby shows that it is there."""

    correlation_id: int
    response_stream_id: int
    response_channel: str = ""
    encoded_credentials: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatResponse:
    """The answer to a HeartbeatRequest."""

    correlation_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StandbySnapshot:
    """A standby announces its snapshots."""

    correlation_id: int
    version: int = 0
    response_stream_id: int
    snapshots: tuple[StandbySnapshotRecording, ...] = ()
    response_channel: str = ""
    encoded_credentials: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferLeadership:
    """A leader steps down, and names the member that is to stand. Ours alone: a member of Aeron skips it."""

    leadership_term_id: int
    log_position: int
    leader_member_id: int
    successor_member_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberStateHash:
    """A member sends the leader the hash of a service's state at a position. Ours alone."""

    leadership_term_id: int
    log_position: int
    hash: int
    member_id: int
    service_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The leader informs a member that its service has another state than a majority's. Ours alone."""

    leadership_term_id: int
    log_position: int
    service_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderProbe:
    """A leader asks whether it is still followed. Ours alone, as is the answer."""

    leadership_term_id: int
    probe_id: int
    leader_member_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderProbeAck:
    """A follower follows the leader that has asked."""

    leadership_term_id: int
    probe_id: int
    member_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberList:
    """A member tells the others which members it has listed. Ours alone.

    The position is that of the entry of the log that has changed the list; -1 if it is as the settings have it.
    """

    member_id: int
    log_position: int
    is_admitted: bool
    is_asking: bool
    members: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitQuery:
    """A follower asks its leader what is committed. Ours alone, as is the answer."""

    leadership_term_id: int
    query_id: int
    member_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitAnswer:
    """What was committed after the query came, when a quorum still followed the leader."""

    leadership_term_id: int
    query_id: int
    log_position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerSnapshot:
    """A follower has taken a snapshot that the others are to copy. Ours alone."""

    member_id: int
    snapshots: tuple[SnapshotRecording, ...] = ()


CONSENSUS: tuple[type, ...] = (
    CanvassPosition,
    RequestVote,
    Vote,
    NewLeadershipTerm,
    AppendPosition,
    CommitPosition,
    CatchupPosition,
    StopCatchup,
    AddPassiveMember,
    ClusterMembersChange,
    SnapshotRecordingQuery,
    SnapshotRecordings,
    JoinCluster,
    TerminationPosition,
    TerminationAck,
    BackupQuery,
    BackupResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    StandbySnapshot,
    TransferLeadership,
    MemberStateHash,
    Divergence,
    LeaderProbe,
    LeaderProbeAck,
    MemberList,
    CommitQuery,
    CommitAnswer,
    FollowerSnapshot,
)
"""All of them."""
