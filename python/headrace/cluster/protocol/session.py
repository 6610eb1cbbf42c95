"""The messages between clients and consensus modules, and the header of each application message."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.cluster.protocol.codes import AdminRequestType, AdminResponseCode, EventCode
from headrace.positions import NULL_VALUE

__all__ = [
    "SESSION",
    "AdminRequest",
    "AdminResponse",
    "Challenge",
    "ChallengeResponse",
    "FollowerReadRequest",
    "FollowerReadResponse",
    "NewLeaderEvent",
    "ReadRequest",
    "ReadResponse",
    "SessionCloseRequest",
    "SessionConnectRequest",
    "SessionEvent",
    "SessionKeepAlive",
    "SessionMessageHeader",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMessageHeader:
    """Stands before each application message: ingress, log, messages of services, egress."""

    leadership_term_id: int
    cluster_session_id: int
    timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEvent:
    """The outcome of a session, or of the request to open one."""

    cluster_session_id: int
    correlation_id: int
    leadership_term_id: int
    leader_member_id: int
    code: EventCode
    version: int = 0
    leader_heartbeat_timeout_ns: int = NULL_VALUE
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConnectRequest:
    """Open a session."""

    correlation_id: int
    response_stream_id: int
    version: int = 0
    response_channel: str = ""
    encoded_credentials: bytes = field(default=b"", repr=False)
    client_info: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCloseRequest:
    """Close a session."""

    leadership_term_id: int
    cluster_session_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKeepAlive:
    """Show that the client is there."""

    leadership_term_id: int
    cluster_session_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLeaderEvent:
    """The new leader, and the ingress endpoints of the members."""

    leadership_term_id: int
    cluster_session_id: int
    leader_member_id: int
    ingress_endpoints: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """Ask a client to prove who it is."""

    correlation_id: int
    cluster_session_id: int
    encoded_challenge: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChallengeResponse:
    """The answer to a challenge."""

    correlation_id: int
    cluster_session_id: int
    encoded_credentials: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminRequest:
    """An administrative request, such as for a snapshot."""

    leadership_term_id: int
    cluster_session_id: int
    correlation_id: int
    request_type: AdminRequestType | None = None
    payload: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminResponse:
    """The answer to an AdminRequest."""

    cluster_session_id: int
    correlation_id: int
    request_type: AdminRequestType | None = None
    response_code: AdminResponseCode
    message: str = ""
    payload: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """A read of a client, which does not change the service. Ours alone, as is the response."""

    leadership_term_id: int
    cluster_session_id: int
    correlation_id: int
    service_id: int = 0
    payload: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadResponse:
    """The answer of a service that has processed the log up to a position, or the error that its handler raised."""

    cluster_session_id: int
    correlation_id: int
    log_position: int
    payload: bytes = b""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerReadRequest:
    """A read of a client that a follower may answer: from this position on, and so old at most. Ours alone."""

    cluster_session_id: int
    correlation_id: int
    log_position: int
    max_staleness_ns: int
    service_id: int = 0
    payload: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerReadResponse:
    """The answer of a follower's service, and its age; or a refusal, since the member knows nothing so young."""

    cluster_session_id: int
    correlation_id: int
    log_position: int
    staleness_ns: int
    member_id: int
    is_refused: bool
    payload: bytes = b""
    error: str = ""


SESSION: tuple[type, ...] = (
    SessionMessageHeader,
    SessionEvent,
    SessionConnectRequest,
    SessionCloseRequest,
    SessionKeepAlive,
    NewLeaderEvent,
    Challenge,
    ChallengeResponse,
    AdminRequest,
    AdminResponse,
    ReadRequest,
    ReadResponse,
    FollowerReadRequest,
    FollowerReadResponse,
)
"""All of them."""
