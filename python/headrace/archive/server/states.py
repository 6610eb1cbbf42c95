"""The states of long-lived things in an archive, and their transitions. ``docs/reference/states.md`` shows them."""

from __future__ import annotations

from enum import Enum, auto

from headrace._base.states import StateTable

__all__ = [
    "ARCHIVE",
    "CONTROL_SESSION",
    "RECORDING",
    "RECORDING_SUBSCRIPTION",
    "REPLAY",
    "REPLICATION",
    "SEGMENT_PURGE",
    "STORED_RECORDING",
    "TABLES",
    "ArchiveState",
    "RecordingState",
    "RecordingSubscriptionState",
    "ReplayState",
    "ReplicationState",
    "SegmentPurgeState",
    "SessionState",
    "StoredState",
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
    SENT = auto()
    DONE = auto()


class RecordingSubscriptionState(Enum):
    """See :data:`RECORDING_SUBSCRIPTION`."""

    ADDING = auto()
    WAITING = auto()
    RECORDING = auto()
    RELEASED = auto()
    STOPPING = auto()
    CLOSED = auto()


class ReplicationState(Enum):
    """See :data:`REPLICATION`."""

    CONNECTING = auto()
    DESCRIBING = auto()
    MEASURING = auto()
    EXTENDING = auto()
    OPENING = auto()
    AWAITING = auto()
    REPLICATING = auto()
    CATCHING_UP = auto()
    JOINING = auto()
    DONE = auto()


class StoredState(Enum):
    """See :data:`STORED_RECORDING`."""

    ACTIVE = auto()
    STOPPED = auto()
    TRUNCATING = auto()
    PURGING = auto()
    DELETED = auto()
    SKIPPED = auto()


class SegmentPurgeState(Enum):
    """See :data:`SEGMENT_PURGE`."""

    DELETING = auto()
    DONE = auto()


class SessionState(Enum):
    """See :data:`CONTROL_SESSION`."""

    INIT = auto()
    CONNECTING = auto()
    CONNECTED = auto()
    CHALLENGED = auto()
    AUTHENTICATED = auto()
    ACTIVE = auto()
    REJECTED = auto()
    CLOSED = auto()
    ABORTED = auto()


ARCHIVE = StateTable(
    "archive",
    "The archive itself. The event log of a killed archive ends without a last state.",
    {
        ArchiveState.RUNNING: "It serves its clients.",
        ArchiveState.FAILED: "Its thread failed.",
        ArchiveState.CLOSED: "It has stopped in order.",
    },
    {
        ArchiveState.RUNNING: (ArchiveState.FAILED, ArchiveState.CLOSED),
        ArchiveState.FAILED: (ArchiveState.CLOSED,),
        ArchiveState.CLOSED: (),
    },
)

RECORDING = StateTable(
    "recording",
    "One image on its way into segment files.",
    {
        RecordingState.INIT: "It waits for its position counter and its first file.",
        RecordingState.RECORDING: "It writes what arrives.",
        RecordingState.INACTIVE: "It writes nothing more.",
        RecordingState.STOPPED: "Its files are closed, and the catalog has its end.",
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
    "A recording on its way to a client.",
    {
        ReplayState.INIT: "It waits for its publication, and checks its first frame.",
        ReplayState.CONNECTING: "It waits for a subscriber.",
        ReplayState.REPLAYING: "It sends the recording.",
        ReplayState.SENT: "It has sent all; its stream is about to end in order.",
        ReplayState.DONE: "It has closed its publication, or revoked it if it has not sent all.",
    },
    {
        ReplayState.INIT: (ReplayState.CONNECTING, ReplayState.DONE),
        ReplayState.CONNECTING: (ReplayState.REPLAYING, ReplayState.DONE),
        ReplayState.REPLAYING: (ReplayState.SENT, ReplayState.DONE),
        ReplayState.SENT: (ReplayState.DONE,),
        ReplayState.DONE: (),
    },
)

CONTROL_SESSION = StateTable(
    "control-session",
    "A client's conversation with the archive.",
    {
        SessionState.INIT: "It waits for its stream and its counter.",
        SessionState.CONNECTING: "It waits for the client to subscribe.",
        SessionState.CONNECTED: "It waits for the authenticator.",
        SessionState.CHALLENGED: "It waits for the answer to a challenge, and for the authenticator.",
        SessionState.AUTHENTICATED: "It repeats the answer to the connect request.",
        SessionState.ACTIVE: "The client has sent its first request.",
        SessionState.REJECTED: "It repeats the refusal until the client leaves.",
        SessionState.CLOSED: "It has ended in order: the client left, or the archive closes.",
        SessionState.ABORTED: "The archive has ended it, and sends the client the reason.",
    },
    {
        SessionState.INIT: (SessionState.CONNECTING, SessionState.CLOSED, SessionState.ABORTED),
        SessionState.CONNECTING: (
            SessionState.CONNECTED,
            SessionState.REJECTED,
            SessionState.CLOSED,
            SessionState.ABORTED,
        ),
        SessionState.CONNECTED: (
            SessionState.CHALLENGED,
            SessionState.AUTHENTICATED,
            SessionState.REJECTED,
            SessionState.CLOSED,
            SessionState.ABORTED,
        ),
        SessionState.CHALLENGED: (
            SessionState.AUTHENTICATED,
            SessionState.REJECTED,
            SessionState.CLOSED,
            SessionState.ABORTED,
        ),
        SessionState.AUTHENTICATED: (SessionState.ACTIVE, SessionState.CLOSED, SessionState.ABORTED),
        SessionState.ACTIVE: (SessionState.CLOSED, SessionState.ABORTED),
        SessionState.REJECTED: (SessionState.CLOSED, SessionState.ABORTED),
        SessionState.CLOSED: (),
        SessionState.ABORTED: (),
    },
)

RECORDING_SUBSCRIPTION = StateTable(
    "recording-subscription",
    "A request to record a channel and stream, whose images become recordings.",
    {
        RecordingSubscriptionState.ADDING: "The driver has not added its subscription yet.",
        RecordingSubscriptionState.WAITING: "It has no image yet.",
        RecordingSubscriptionState.RECORDING: "It records each image.",
        RecordingSubscriptionState.RELEASED: (
            "A client has stopped one of its recordings; it ends with the last of the others."
        ),
        RecordingSubscriptionState.STOPPING: "It takes no further image; its recordings end.",
        RecordingSubscriptionState.CLOSED: "Its subscription is closed.",
    },
    {
        RecordingSubscriptionState.ADDING: (
            RecordingSubscriptionState.WAITING,
            RecordingSubscriptionState.STOPPING,
            RecordingSubscriptionState.CLOSED,
        ),
        RecordingSubscriptionState.WAITING: (
            RecordingSubscriptionState.RECORDING,
            RecordingSubscriptionState.STOPPING,
            RecordingSubscriptionState.CLOSED,
        ),
        RecordingSubscriptionState.RECORDING: (
            RecordingSubscriptionState.RELEASED,
            RecordingSubscriptionState.STOPPING,
            RecordingSubscriptionState.CLOSED,
        ),
        RecordingSubscriptionState.RELEASED: (
            RecordingSubscriptionState.STOPPING,
            RecordingSubscriptionState.CLOSED,
        ),
        RecordingSubscriptionState.STOPPING: (RecordingSubscriptionState.CLOSED,),
        RecordingSubscriptionState.CLOSED: (),
    },
)

STORED_RECORDING = StateTable(
    "stored-recording",
    "A recording in the catalog. Events of an older one begin with its first change.",
    {
        StoredState.ACTIVE: "The archive records it: the catalog has no end of it.",
        StoredState.STOPPED: "The catalog has its end.",
        StoredState.TRUNCATING: "The catalog has its new end; the archive deletes the files after it.",
        StoredState.PURGING: "The catalog has it as deleted; the archive deletes its files.",
        StoredState.DELETED: "It is gone. The next start deletes files that could not be deleted.",
        StoredState.SKIPPED: "Its entry or its files are damaged; the archive leaves it alone until it is repaired.",
    },
    {
        StoredState.ACTIVE: (StoredState.STOPPED, StoredState.SKIPPED),
        StoredState.STOPPED: (
            StoredState.ACTIVE,
            StoredState.TRUNCATING,
            StoredState.PURGING,
            StoredState.SKIPPED,
        ),
        StoredState.TRUNCATING: (StoredState.STOPPED,),
        StoredState.PURGING: (StoredState.DELETED,),
        StoredState.DELETED: (),
        StoredState.SKIPPED: (),
    },
)

REPLICATION = StateTable(
    "replication",
    "The copy of another archive's recording.",
    {
        ReplicationState.CONNECTING: "It opens a session with the other archive.",
        ReplicationState.DESCRIBING: "It asks for the recording's description.",
        ReplicationState.MEASURING: "It asks how far the recording has come, to join the live stream there.",
        ReplicationState.EXTENDING: "It prepares to extend the copy.",
        ReplicationState.OPENING: "It asks the other archive for a replay.",
        ReplicationState.AWAITING: "It waits for the image of the replay.",
        ReplicationState.REPLICATING: "It records the replay.",
        ReplicationState.CATCHING_UP: "It records the replay up to where the source was at first.",
        ReplicationState.JOINING: "The live stream is about to take over from the replay.",
        ReplicationState.DONE: "It has ended. After a merge the recording goes on with the live stream.",
    },
    {
        ReplicationState.CONNECTING: (ReplicationState.DESCRIBING, ReplicationState.DONE),
        ReplicationState.DESCRIBING: (
            ReplicationState.MEASURING,
            ReplicationState.EXTENDING,
            ReplicationState.DONE,
        ),
        ReplicationState.MEASURING: (ReplicationState.EXTENDING, ReplicationState.DONE),
        ReplicationState.EXTENDING: (ReplicationState.OPENING, ReplicationState.DONE),
        ReplicationState.OPENING: (ReplicationState.AWAITING, ReplicationState.DONE),
        ReplicationState.AWAITING: (
            ReplicationState.REPLICATING,
            ReplicationState.CATCHING_UP,
            ReplicationState.DONE,
        ),
        ReplicationState.REPLICATING: (ReplicationState.DONE,),
        ReplicationState.CATCHING_UP: (ReplicationState.JOINING, ReplicationState.DONE),
        ReplicationState.JOINING: (ReplicationState.DONE,),
        ReplicationState.DONE: (),
    },
)

SEGMENT_PURGE = StateTable(
    "segment-purge",
    "Segment files that a request or retention has cut off a recording.",
    {
        SegmentPurgeState.DELETING: "The recording begins after them; the archive deletes them one by one.",
        SegmentPurgeState.DONE: "They are gone, except those that could not be deleted.",
    },
    {
        SegmentPurgeState.DELETING: (SegmentPurgeState.DONE,),
        SegmentPurgeState.DONE: (),
    },
)

TABLES = (
    ARCHIVE,
    CONTROL_SESSION,
    RECORDING_SUBSCRIPTION,
    RECORDING,
    STORED_RECORDING,
    SEGMENT_PURGE,
    REPLAY,
    REPLICATION,
)
