"""Entries of the log other than the messages of sessions."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.cluster.protocol.codes import ChangeType, CloseReason, ClusterAction, ClusterTimeUnit

__all__ = [
    "LOG",
    "ClusterActionRequest",
    "MemberReplacement",
    "MembershipChangeEvent",
    "NewLeadershipTermEvent",
    "SessionCloseEvent",
    "SessionOpenEvent",
    "TimerEvent",
    "flags_for",
    "takes_snapshot",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerEvent:
    """A timer has fired."""

    leadership_term_id: int
    correlation_id: int
    timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpenEvent:
    """A session was opened."""

    leadership_term_id: int
    correlation_id: int
    cluster_session_id: int
    timestamp: int
    response_stream_id: int
    response_channel: str = ""
    encoded_principal: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCloseEvent:
    """A session was closed."""

    leadership_term_id: int
    cluster_session_id: int
    timestamp: int
    close_reason: CloseReason


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterActionRequest:
    """Suspend, resume or take a snapshot at this position."""

    leadership_term_id: int
    log_position: int
    timestamp: int
    action: ClusterAction
    flags: int = 0


def flags_for(member_id: int) -> int:
    """The flags of a snapshot that one follower takes: that of standbys, which members of Aeron skip, and which one."""
    return 1 | (member_id + 1) << 8


def takes_snapshot(flags: int, member_id: int) -> bool:
    """Whether a member takes the snapshot of an action with these flags."""
    return flags in (0, flags_for(member_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLeadershipTermEvent:
    """First entry of a leadership term."""

    leadership_term_id: int
    log_position: int
    timestamp: int
    term_base_log_position: int
    leader_member_id: int
    log_session_id: int
    time_unit: ClusterTimeUnit = ClusterTimeUnit.MILLIS
    app_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipChangeEvent:
    """Legacy: a member joined or left; ignored."""

    leadership_term_id: int
    log_position: int
    timestamp: int
    leader_member_id: int
    cluster_size: int
    change_type: ChangeType
    member_id: int
    cluster_members: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberReplacement:
    """A member has other endpoints from here on. Ours alone."""

    leadership_term_id: int
    timestamp: int
    member_id: int
    members: str


LOG: tuple[type, ...] = (
    TimerEvent,
    SessionOpenEvent,
    SessionCloseEvent,
    ClusterActionRequest,
    NewLeadershipTermEvent,
    MembershipChangeEvent,
    MemberReplacement,
)
"""All of them."""
