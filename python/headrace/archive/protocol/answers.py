"""The messages of an archive: answers to requests, signals, pings, and the events of its recordings."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.archive.protocol.codes import RecordingSignal, Response, SourceLocation
from headrace.archive.protocol.descriptor import RecordingDescriptor

__all__ = [
    "ANSWERS",
    "EVENTS",
    "Answer",
    "Challenge",
    "ControlResponse",
    "Event",
    "GroupAssignment",
    "GroupDescriptor",
    "NamedStreamDescriptor",
    "Ping",
    "RecordingDescriptor",
    "RecordingProgress",
    "RecordingSignalEvent",
    "RecordingStarted",
    "RecordingStopped",
    "RecordingSubscriptionDescriptor",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlResponse:
    """The last answer to a request, or an error that came later.

    ``relevant_id`` is a result, or for ``ERROR`` a code of :class:`ErrorCode`.
    """

    control_session_id: int
    correlation_id: int
    relevant_id: int
    code: Response
    error_message: str
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """The archive asks the client to prove its identity."""

    control_session_id: int
    correlation_id: int
    encoded_challenge: bytes = field(repr=False)
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingSubscriptionDescriptor:
    """One subscription of the archive for recording."""

    control_session_id: int
    correlation_id: int
    subscription_id: int
    stream_id: int
    stripped_channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedStreamDescriptor:
    """One declared stream; not of the published protocol."""

    control_session_id: int
    correlation_id: int
    stream_id: int
    source_location: SourceLocation
    keys: bool
    name: str
    channel: str
    former: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAssignment:
    """What a member of a group is to read; not of the published protocol."""

    control_session_id: int
    correlation_id: int
    generation: int
    member_index: int
    member_count: int
    places: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescriptor:
    """One group of a stream; not of the published protocol."""

    control_session_id: int
    correlation_id: int
    lag: int
    generation: int
    name: str
    group: str
    members: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingSignalEvent:
    """A change of a recording that the client asked for."""

    control_session_id: int
    correlation_id: int
    recording_id: int
    subscription_id: int
    position: int
    signal: RecordingSignal


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping:
    """The archive checks that the client is connected; it need not answer."""

    control_session_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingStarted:
    """An image is being recorded."""

    recording_id: int
    start_position: int
    session_id: int
    stream_id: int
    channel: str
    source_identity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingProgress:
    """A recording has grown."""

    recording_id: int
    start_position: int
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingStopped:
    """A recording has ended."""

    recording_id: int
    start_position: int
    stop_position: int


Answer = (
    ControlResponse
    | Challenge
    | RecordingDescriptor
    | RecordingSubscriptionDescriptor
    | NamedStreamDescriptor
    | GroupAssignment
    | GroupDescriptor
    | RecordingSignalEvent
)
"""A message that belongs to a request."""
Event = RecordingStarted | RecordingProgress | RecordingStopped
"""An event of a recording, which an archive publishes to all subscribers."""

ANSWERS = (
    ControlResponse,
    Challenge,
    RecordingDescriptor,
    RecordingSubscriptionDescriptor,
    NamedStreamDescriptor,
    GroupAssignment,
    GroupDescriptor,
    RecordingSignalEvent,
    Ping,
)
EVENTS = (RecordingStarted, RecordingProgress, RecordingStopped)
