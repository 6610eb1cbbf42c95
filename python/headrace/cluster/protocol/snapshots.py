"""The messages of snapshots."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.cluster.protocol.codes import CloseReason, ClusterTimeUnit, SnapshotMark

__all__ = [
    "SNAPSHOTS",
    "ClientSession",
    "ClusterMembers",
    "ClusterSession",
    "ConsensusModule",
    "PendingMessageTracker",
    "SnapshotMarker",
    "Timer",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotMarker:
    """Begin and end of a snapshot."""

    type_id: int
    log_position: int
    leadership_term_id: int
    index: int
    mark: SnapshotMark
    time_unit: ClusterTimeUnit = ClusterTimeUnit.MILLIS
    app_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSession:
    """A session, in a service's snapshot."""

    cluster_session_id: int
    response_stream_id: int
    response_channel: str = ""
    encoded_principal: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSession:
    """A session, in the consensus module's snapshot."""

    cluster_session_id: int
    correlation_id: int
    opened_log_position: int
    time_of_last_activity: int
    close_reason: CloseReason | None = None
    response_stream_id: int
    response_channel: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """A timer, in a snapshot."""

    correlation_id: int
    deadline: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusModule:
    """Counters of the consensus module, in its snapshot."""

    next_session_id: int
    next_service_session_id: int = 0
    log_service_session_id: int = 0
    pending_message_capacity: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMembers:
    """Legacy; ignored on load."""

    member_id: int
    high_member_id: int
    cluster_members: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingMessageTracker:
    """Pending messages of a service, in a snapshot."""

    next_service_session_id: int
    log_service_session_id: int
    pending_message_capacity: int
    service_id: int


SNAPSHOTS: tuple[type, ...] = (
    SnapshotMarker,
    ClientSession,
    ClusterSession,
    Timer,
    ConsensusModule,
    ClusterMembers,
    PendingMessageTracker,
)
"""All of them."""
