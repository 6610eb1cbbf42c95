"""The steps of exchanges (``exchange.py``): the requests of a client, and what it does with the answers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from headrace._base.exceptions import ArchiveError
from headrace.archive.client.exchange import Awaiting, Beginning, Steps
from headrace.archive.protocol.answers import (
    ControlResponse,
    GroupAssignment,
    GroupDescriptor,
    NamedStreamDescriptor,
    RecordingDescriptor,
    RecordingSignalEvent,
    RecordingSubscriptionDescriptor,
)
from headrace.archive.protocol.codes import ErrorCode, RecordingSignal, Response
from headrace.archive.protocol.named_stream import NamedStream, StreamAddress
from headrace.archive.protocol.requests import (
    ExtendRecordingRequest2,
    JoinGroupRequest,
    ListGroupsRequest,
    ListRecordingRequest,
    ListRecordingsForUriRequest,
    ListRecordingsRequest,
    ListRecordingSubscriptionsRequest,
    ListStreamRecordingsRequest,
    ListStreamsRequest,
    RecordingRequest,
    ReplayRequest,
    ReplayTokenRequest,
    ReplicateRequest2,
    Request,
    StartRecordingRequest2,
    StopRecordingSubscriptionRequest,
    StopReplayRequest,
    StopReplicationRequest,
)
from headrace.archive.protocol.retention import Retention, without_retention
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.archive.protocol.answers import Answer
    from headrace.client import ExclusivePublication

__all__ = [
    "all_listed",
    "answered",
    "done",
    "group_joined",
    "groups_listed",
    "listed",
    "position_or_none",
    "recorded",
    "recording_started",
    "refusal_of",
    "replay_started",
    "replication_started",
    "streams_listed",
    "subscriptions_listed",
]


def _response(step: Request | Beginning) -> Steps[ControlResponse]:
    """The response to a request, if it is not a refusal."""
    answer = yield step
    while not isinstance(answer, ControlResponse):
        answer = yield Awaiting()
    if answer.code is not Response.OK:
        request = step.request if isinstance(step, Beginning) else step
        raise refusal_of(answer, request.recording_id if isinstance(request, RecordingRequest) else None)
    return answer


def answered(request: Request) -> Steps[int]:
    """The number in the answer to a request."""
    return (yield from _response(request)).relevant_id


def done(request: Request) -> Steps[None]:
    """Make a request whose answer has no result."""
    yield from _response(request)


def position_or_none(request: Request) -> Steps[int | None]:
    """The position, or the id, in the answer to a request; ``None`` if it has none."""
    found = (yield from _response(request)).relevant_id
    return None if found == NULL_VALUE else found


def recording_started(request: StartRecordingRequest2 | ExtendRecordingRequest2) -> Steps[int]:
    """Record; returns the subscription's id. Stopped if the owner does not get the id."""
    return (yield from _response(Beginning(request, _stop_recording))).relevant_id


def _stop_recording(subscription_id: int) -> Request:
    return StopRecordingSubscriptionRequest(subscription_id=subscription_id)


def replay_started(
    request: ReplayRequest, over: ExclusivePublication | None = None
) -> Steps[tuple[int, int]]:
    """Replay; returns the replay's id, and the request's id, which later errors carry. Stopped as a recording is.

    A replay that is requested over a separate publication comes back through its connection.
    """
    if over is not None:
        token = yield from answered(ReplayTokenRequest(recording_id=request.recording_id))
        request = dataclasses.replace(request, replay_token=token)
    response = yield from _response(Beginning(request, _stop_replay, over))
    return response.relevant_id, response.correlation_id


def _stop_replay(replay_id: int) -> Request:
    return StopReplayRequest(replay_session_id=replay_id)


def replication_started(request: ReplicateRequest2) -> Steps[int]:
    """Replicate; returns the replication's id. Stopped as a recording is."""
    return (yield from _response(Beginning(request, _stop_replication))).relevant_id


def _stop_replication(replication_id: int) -> Request:
    return StopReplicationRequest(replication_id=replication_id)


def all_listed(request: ListStreamRecordingsRequest) -> Steps[list[RecordingDescriptor]]:
    """Take descriptors until the archive has sent all."""
    found: list[RecordingDescriptor] = []
    answer: Answer = yield request
    while isinstance(answer, RecordingDescriptor):
        found.append(answer)
        answer = yield Awaiting()
    _check_end(answer, Response.OK)
    return found


def listed(
    request: ListRecordingsRequest | ListRecordingsForUriRequest | ListRecordingRequest, count: int
) -> Steps[list[RecordingDescriptor]]:
    """Take descriptors, at most as many as requested."""
    found: list[RecordingDescriptor] = []
    answer: Answer = yield request
    while isinstance(answer, RecordingDescriptor):
        found.append(answer)
        if len(found) == count:
            return found
        answer = yield Awaiting()
    _check_end(answer, Response.RECORDING_UNKNOWN)
    return found


def subscriptions_listed(request: ListRecordingSubscriptionsRequest) -> Steps[list[tuple[int, int, str]]]:
    """The archive's subscriptions for recordings, as (subscription id, stream id, channel)."""
    found: list[tuple[int, int, str]] = []
    answer: Answer = yield request
    while isinstance(answer, RecordingSubscriptionDescriptor):
        found.append((answer.subscription_id, answer.stream_id, answer.stripped_channel))
        answer = yield Awaiting()
    _check_end(answer, Response.SUBSCRIPTION_UNKNOWN)
    return found


def streams_listed(request: ListStreamsRequest) -> Steps[list[NamedStream]]:
    """The streams that the archive has declared."""
    found: list[NamedStream] = []
    answer: Answer = yield request
    while isinstance(answer, NamedStreamDescriptor):
        former = tuple(StreamAddress.decode(line) for line in answer.former.splitlines())
        found.append(
            NamedStream(
                answer.name,
                without_retention(answer.channel),
                answer.stream_id,
                answer.source_location,
                Retention.of(answer.channel),
                answer.keys,
                former,
            )
        )
        answer = yield Awaiting()
    _check_end(answer, Response.OK)
    return found


def _check_end(answer: Answer, end: Response) -> None:
    """Check the answer that ends a list; raises if it is a refusal."""
    if not isinstance(answer, ControlResponse):
        raise ArchiveError(f"the archive answered a list request with {type(answer).__name__}")
    if answer.code is not end:
        raise refusal_of(answer, None)


def group_joined(request: JoinGroupRequest) -> Steps[GroupAssignment]:
    """What a member of a group is to read."""
    answer = yield request
    if isinstance(answer, ControlResponse):
        raise refusal_of(answer, None)
    assert isinstance(answer, GroupAssignment), "nothing else answers it"
    return answer


def groups_listed(request: ListGroupsRequest) -> Steps[list[GroupDescriptor]]:
    """The groups of a stream."""
    found: list[GroupDescriptor] = []
    answer: Answer = yield request
    while isinstance(answer, GroupDescriptor):
        found.append(answer)
        answer = yield Awaiting()
    _check_end(answer, Response.OK)
    return found


_BEGINNINGS = (RecordingSignal.START, RecordingSignal.EXTEND)


def recorded(request: StartRecordingRequest2 | ExtendRecordingRequest2) -> Steps[int]:
    """Record until the publisher ends, and wait until the recording has begun; returns its id.

    Stopped if the recording does not begin.
    """
    yield from recording_started(request)
    while True:
        answer = yield Awaiting()
        if isinstance(answer, RecordingSignalEvent) and answer.signal in _BEGINNINGS:
            return answer.recording_id
        if isinstance(answer, ControlResponse) and answer.code is not Response.OK:
            raise refusal_of(answer, None)


def unknown_recording(recording_id: int, correlation_id: int = NULL_VALUE) -> ArchiveError:
    """The exception for an id that the archive does not know."""
    code = ErrorCode.UNKNOWN_RECORDING
    text = f"unknown recording id: {recording_id} ({code.name})"
    return ArchiveError(text, int(code), code.name, recording_id, correlation_id)


def refusal_of(response: ControlResponse, recording_id: int | None) -> ArchiveError:
    """The exception for a refusal."""
    if response.code is Response.RECORDING_UNKNOWN:
        return unknown_recording(response.relevant_id, response.correlation_id)
    code, text = response.relevant_id, response.error_message or "refused"
    name = ErrorCode(code).name if code in ErrorCode._value2member_map_ else str(code)
    return ArchiveError(f"{text} ({name})", code, name, recording_id, response.correlation_id)
