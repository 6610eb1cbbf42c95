"""What a client asks of an archive, and what becomes of the answers: the steps of exchanges (``exchange.py``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._exceptions import ArchiveError
from headrace.archive.client.exchange import Awaiting, Steps
from headrace.archive.protocol.answers import (
    Challenge,
    ControlResponse,
    RecordingDescriptor,
    RecordingSignalEvent,
    RecordingSubscriptionDescriptor,
)
from headrace.archive.protocol.codes import ErrorCode, RecordingSignal, Response
from headrace.archive.protocol.requests import (
    AuthConnectRequest,
    ListRecordingRequest,
    ListRecordingsForUriRequest,
    ListRecordingsRequest,
    ListRecordingSubscriptionsRequest,
    RecordingRequest,
    Request,
    StartRecordingRequest2,
    StopRecordingSubscriptionRequest,
)
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.archive.protocol.answers import Answer

__all__ = [
    "answered",
    "connected",
    "done",
    "listed",
    "position_or_none",
    "recorded",
    "refusal_of",
    "subscriptions_listed",
    "with_correlation_id",
]


def _response(request: AuthConnectRequest | Request) -> Steps[ControlResponse]:
    """The response to a request, if it is not a refusal."""
    answer = yield request
    while not isinstance(answer, ControlResponse):
        if isinstance(answer, Challenge):
            text = "the archive asks for a challenge to be answered, which is not built"
            raise ArchiveError(text, ErrorCode.AUTHENTICATION_REJECTED, "AUTHENTICATION_REJECTED")
        answer = yield Awaiting()
    if answer.code is not Response.OK:
        raise refusal_of(answer, request.recording_id if isinstance(request, RecordingRequest) else None)
    return answer


def connected(request: AuthConnectRequest) -> Steps[ControlResponse]:
    """Open a session: its id and the archive's version are in the response."""
    return (yield from _response(request))


def answered(request: Request) -> Steps[int]:
    """The number that a request is answered with."""
    return (yield from _response(request)).relevant_id


def done(request: Request) -> Steps[None]:
    """A request that is answered with nothing but that it was carried out."""
    yield from _response(request)


def position_or_none(request: Request) -> Steps[int | None]:
    """The position, or the id, that a request is answered with; ``None`` where there is none."""
    found = (yield from _response(request)).relevant_id
    return None if found == NULL_VALUE else found


def with_correlation_id(request: Request) -> Steps[tuple[int, int]]:
    """The number that a request is answered with, and the request's id, which later errors carry."""
    response = yield from _response(request)
    return response.relevant_id, response.correlation_id


def listed(
    request: ListRecordingsRequest | ListRecordingsForUriRequest | ListRecordingRequest, count: int
) -> Steps[list[RecordingDescriptor]]:
    """Descriptors, at most so many."""
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
    """What is being recorded now, as (subscription id, stream id, channel)."""
    found: list[tuple[int, int, str]] = []
    answer: Answer = yield request
    while isinstance(answer, RecordingSubscriptionDescriptor):
        found.append((answer.subscription_id, answer.stream_id, answer.stripped_channel))
        answer = yield Awaiting()
    _check_end(answer, Response.SUBSCRIPTION_UNKNOWN)
    return found


def _check_end(answer: Answer, end: Response) -> None:
    """Look whether an answer ends a list; a refusal is raised."""
    if not isinstance(answer, ControlResponse):
        raise ArchiveError(f"the archive answers a list with {type(answer).__name__}")
    if answer.code is not end:
        raise refusal_of(answer, None)


def recorded(request: StartRecordingRequest2) -> Steps[int]:
    """Record until the publisher ends, and wait until the recording has begun. Taken back if that does not come."""
    subscription_id = (yield from _response(request)).relevant_id
    undo = StopRecordingSubscriptionRequest(subscription_id=subscription_id)
    while True:
        answer = yield Awaiting(undo)
        if isinstance(answer, RecordingSignalEvent) and answer.signal is RecordingSignal.START:
            return subscription_id
        if isinstance(answer, ControlResponse) and answer.code is not Response.OK:
            raise refusal_of(answer, None)


def refusal_of(response: ControlResponse, recording_id: int | None) -> ArchiveError:
    """The exception that a refusal is."""
    if response.code is Response.RECORDING_UNKNOWN:
        code, text = int(ErrorCode.UNKNOWN_RECORDING), f"unknown recording id: {response.relevant_id}"
    else:
        code, text = response.relevant_id, response.error_message or "refused"
    name = ErrorCode(code).name if code in ErrorCode._value2member_map_ else str(code)
    return ArchiveError(f"{text} ({name})", code, name, recording_id, response.correlation_id)
