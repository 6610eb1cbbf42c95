"""The codes of the cluster's protocol."""

from __future__ import annotations

from headrace._base.named_number import NamedNumber

__all__ = [
    "AdminRequestType",
    "AdminResponseCode",
    "ChangeType",
    "CloseReason",
    "ClusterAction",
    "ClusterTimeUnit",
    "EventCode",
    "Role",
    "SnapshotMark",
]


class EventCode(NamedNumber):
    """The outcome of a session, or of the request to open one."""

    OK = 0
    ERROR = 1
    REDIRECT = 2
    AUTHENTICATION_REJECTED = 3
    CLOSED = 4


class CloseReason(NamedNumber):
    """Why a session was closed."""

    CLIENT_ACTION = 0
    SERVICE_ACTION = 1
    TIMEOUT = 2


class ClusterAction(NamedNumber):
    """What the log asks of all members at a position."""

    SUSPEND = 0
    RESUME = 1
    SNAPSHOT = 2


class SnapshotMark(NamedNumber):
    """What a marker of a snapshot begins or ends."""

    BEGIN = 0
    SECTION = 1
    END = 2


class ChangeType(NamedNumber):
    """Legacy: what a member did."""

    JOIN = 0
    QUIT = 1


class ClusterTimeUnit(NamedNumber):
    """The unit of a cluster's time."""

    MILLIS = 0
    MICROS = 1
    NANOS = 2


class AdminRequestType(NamedNumber):
    """The administrative requests of clients."""

    SNAPSHOT = 0


class AdminResponseCode(NamedNumber):
    """The outcome of an administrative request."""

    OK = 0
    ERROR = 1
    UNAUTHORISED_ACCESS = 2


class Role(NamedNumber):
    """The role of a member in a term."""

    FOLLOWER = 0
    CANDIDATE = 1
    LEADER = 2
