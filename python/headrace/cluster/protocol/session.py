"""What clients and consensus modules send each other, and the header of each application message."""

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
    "NewLeaderEvent",
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
    """What became of a session."""

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
    """Which member leads now, and where members take ingress."""

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
    """Have something done by the cluster."""

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
)
"""All of them."""
