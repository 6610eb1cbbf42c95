"""The states of what lives long in an archive, and which may follow which. ``docs/reference/states.md`` shows them."""

from __future__ import annotations

from enum import Enum, auto

from headrace._states import StateTable

__all__ = [
    "ARCHIVE",
    "CONTROL_SESSION",
    "RECORDING",
    "REPLAY",
    "TABLES",
    "ArchiveState",
    "RecordingState",
    "ReplayState",
    "SessionState",
]


class ArchiveState(Enum):
    """See :data:`ARCHIVE`."""

    RUNNING = auto()
    FAILED = auto()
    CLOSED = auto()


class RecordingState(Enum):
    """See :data:`RECORDING`."""

    INIT = auto()
    RECORDING = auto()
    INACTIVE = auto()
    STOPPED = auto()


class ReplayState(Enum):
    """See :data:`REPLAY`."""

    INIT = auto()
    CONNECTING = auto()
    REPLAYING = auto()
    DONE = auto()


class SessionState(Enum):
    """See :data:`CONTROL_SESSION`."""

    INIT = auto()
    CONNECTING = auto()
    CONNECTED = auto()
    ACTIVE = auto()
    DONE = auto()


ARCHIVE = StateTable(
    "archive",
    "The archive itself. What a killed archive left ends without a last state.",
    {
        ArchiveState.RUNNING: "It serves its clients.",
        ArchiveState.FAILED: "Its thread stopped by itself.",
        ArchiveState.CLOSED: "It was stopped in order.",
    },
    {
        ArchiveState.RUNNING: (ArchiveState.FAILED, ArchiveState.CLOSED),
        ArchiveState.FAILED: (ArchiveState.CLOSED,),
        ArchiveState.CLOSED: (),
    },
)

RECORDING = StateTable(
    "recording",
    "One image on its way into segment files: begun, or continued by an extension.",
    {
        RecordingState.INIT: "It waits for its position counter and its first file.",
        RecordingState.RECORDING: "What arrives is written.",
        RecordingState.INACTIVE: "Nothing more is written.",
        RecordingState.STOPPED: "Its files are closed; the catalog learns where it stopped.",
    },
    {
        RecordingState.INIT: (RecordingState.RECORDING, RecordingState.INACTIVE, RecordingState.STOPPED),
        RecordingState.RECORDING: (RecordingState.INACTIVE, RecordingState.STOPPED),
        RecordingState.INACTIVE: (RecordingState.STOPPED,),
        RecordingState.STOPPED: (),
    },
)

REPLAY = StateTable(
    "replay",
    "A recording that is sent to a client.",
    {
        ReplayState.INIT: "It waits for its publication, and looks at its first frame.",
        ReplayState.CONNECTING: "It waits for a subscriber.",
        ReplayState.REPLAYING: "It sends what was recorded.",
        ReplayState.DONE: "It has ended; its publication is closed.",
    },
    {
        ReplayState.INIT: (ReplayState.CONNECTING, ReplayState.DONE),
        ReplayState.CONNECTING: (ReplayState.REPLAYING, ReplayState.DONE),
        ReplayState.REPLAYING: (ReplayState.DONE,),
        ReplayState.DONE: (),
    },
)

CONTROL_SESSION = StateTable(
    "control-session",
    "A client of the archive, and the way back to it.",
    {
        SessionState.INIT: "It waits for its stream and its counter.",
        SessionState.CONNECTING: "It waits for the client to subscribe.",
        SessionState.CONNECTED: "It repeats the answer to the connect request.",
        SessionState.ACTIVE: "The client has sent its first request.",
        SessionState.DONE: "It has ended.",
    },
    {
        SessionState.INIT: (SessionState.CONNECTING, SessionState.DONE),
        SessionState.CONNECTING: (SessionState.CONNECTED, SessionState.DONE),
        SessionState.CONNECTED: (SessionState.ACTIVE, SessionState.DONE),
        SessionState.ACTIVE: (SessionState.DONE,),
        SessionState.DONE: (),
    },
)

TABLES = (ARCHIVE, CONTROL_SESSION, RECORDING, REPLAY)
