"""The messages between a consensus module, the services of its node, and tools."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "CONTROL",
    "CancelTimer",
    "CloseSession",
    "ClusterMember",
    "ClusterMembersExtendedResponse",
    "ClusterMembersQuery",
    "ClusterMembersResponse",
    "JoinLog",
    "OperatorRequest",
    "OperatorResponse",
    "RemoveMember",
    "RequestServiceAck",
    "ScheduleTimer",
    "ServiceAck",
    "ServiceFollowerRead",
    "ServiceRead",
    "ServiceTerminationPosition",
    "StateHash",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMember:
    """A member, in an extended answer."""

    leadership_term_id: int
    log_position: int
    time_of_last_append_ns: int
    member_id: int
    ingress_endpoint: str = ""
    consensus_endpoint: str = ""
    log_endpoint: str = ""
    catchup_endpoint: str = ""
    archive_endpoint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseSession:
    """Service to consensus module: close a session."""

    cluster_session_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleTimer:
    """Service to consensus module: have a timer fire."""

    correlation_id: int
    deadline: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelTimer:
    """Service to consensus module: forget a timer."""

    correlation_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAck:
    """Service to consensus module: it has processed the log up to a position."""

    log_position: int
    timestamp: int
    ack_id: int
    relevant_id: int
    service_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMembersQuery:
    """Tool to consensus module: which members are there."""

    correlation_id: int
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveMember:
    """Deprecated since 12; ignored."""

    member_id: int
    is_passive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinLog:
    """Consensus module to services: read this log."""

    log_position: int
    max_log_position: int
    member_id: int
    log_session_id: int
    log_stream_id: int
    is_startup: bool
    role: int
    is_standby: bool = False
    log_channel: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMembersResponse:
    """The answer to a ClusterMembersQuery."""

    correlation_id: int
    leader_member_id: int
    active_members: str = ""
    passive_followers: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTerminationPosition:
    """Consensus module to services: end at this position. Modules before version 17 do not say that they wait."""

    log_position: int
    ack_required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMembersExtendedResponse:
    """The answer to an extended ClusterMembersQuery."""

    correlation_id: int
    current_time_ns: int
    leader_member_id: int
    member_id: int
    active_members: tuple[ClusterMember, ...] = ()
    passive_members: tuple[ClusterMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestServiceAck:
    """Consensus module to services: acknowledge this position."""

    log_position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateHash:
    """Service to consensus module: a hash of its state at a position. Ours alone, as are all ids from 120 on."""

    log_position: int
    service_id: int
    hash: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRead:
    """Consensus module to service: a read of a client, which does not change the service. Ours alone."""

    cluster_session_id: int
    correlation_id: int
    log_position: int
    service_id: int
    payload: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFollowerRead:
    """Consensus module of a follower to service: a read of a client. Ours alone.

    All that was committed at ``as_of_ns`` of the machine's monotonic clock is before ``log_position``. -1 refuses.
    """

    cluster_session_id: int
    correlation_id: int
    log_position: int
    as_of_ns: int
    max_staleness_ns: int
    service_id: int
    payload: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRequest:
    """Tool to consensus module: what takes longer than a toggle, or needs an argument. Ours alone, as is the answer.

    The kind is a number of :class:`headrace.cluster.member.states.Command`.
    """

    correlation_id: int
    kind: int
    member_id: int
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorResponse:
    """It is done, or why it is not."""

    correlation_id: int
    is_done: bool
    text: str = ""


CONTROL: tuple[type, ...] = (
    CloseSession,
    ScheduleTimer,
    CancelTimer,
    ServiceAck,
    ClusterMembersQuery,
    RemoveMember,
    JoinLog,
    ClusterMembersResponse,
    ServiceTerminationPosition,
    ClusterMembersExtendedResponse,
    RequestServiceAck,
    StateHash,
    ServiceRead,
    ServiceFollowerRead,
    OperatorRequest,
    OperatorResponse,
)
"""All of them."""
