"""The states between a recording's history and its live stream: ``docs/reference/states.md`` shows their table."""

from __future__ import annotations

from enum import Enum

from headrace._base.states import StateTable

__all__ = ["FOLLOW", "FollowState"]


class FollowState(Enum):
    """The state of a :class:`headrace.archive.Follow`."""

    CONNECTING = "connecting"
    """No session with the archive, and one is needed."""
    LOOKING = "looking"
    """The archive is asked how far the recording goes."""
    OPENING = "opening"
    """A replay was asked for."""
    REPLAYING = "replaying"
    """Messages come from the archive."""
    JOINING = "joining"
    """Messages come from the archive, and the live stream is about to take over."""
    LIVE = "live"
    """Messages come from the publisher."""
    WAITING = "waiting"
    """All was delivered, and the recording has stopped: it may be extended."""
    FAILED = "failed"
    """Nothing more comes; polls raise the reason."""
    CLOSED = "closed"
    """This program has closed it."""


_F = FollowState
FOLLOW: StateTable[FollowState] = StateTable(
    "follow",
    "A client that follows a recording and then its publisher.",
    {
        _F.CONNECTING: "It needs a session with the archive, and has none.",
        _F.LOOKING: "The archive is asked how far the recording goes.",
        _F.OPENING: "A replay was asked for.",
        _F.REPLAYING: "Messages come from the archive.",
        _F.JOINING: "Messages come from the archive, if it has any; the live stream is about to take over.",
        _F.LIVE: "Messages come from the publisher.",
        _F.WAITING: "All was delivered, and the recording has stopped: it may be extended.",
        _F.FAILED: "Nothing more comes; polls raise the reason.",
        _F.CLOSED: "The program has closed it.",
    },
    {
        _F.CONNECTING: (_F.LOOKING, _F.FAILED, _F.CLOSED),
        _F.LOOKING: (_F.CONNECTING, _F.OPENING, _F.JOINING, _F.WAITING, _F.FAILED, _F.CLOSED),
        _F.OPENING: (_F.CONNECTING, _F.LOOKING, _F.REPLAYING, _F.FAILED, _F.CLOSED),
        _F.REPLAYING: (_F.CONNECTING, _F.LOOKING, _F.JOINING, _F.FAILED, _F.CLOSED),
        _F.JOINING: (_F.CONNECTING, _F.LOOKING, _F.REPLAYING, _F.LIVE, _F.FAILED, _F.CLOSED),
        _F.LIVE: (_F.LOOKING, _F.CLOSED),
        _F.WAITING: (_F.CONNECTING, _F.LOOKING, _F.CLOSED),
        _F.FAILED: (_F.CLOSED,),
        _F.CLOSED: (),
    },
)
