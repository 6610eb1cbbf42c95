"""Exchanges stepped by hand: answers are given, time is moved, and nothing is sent or awaited."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import TypeVar

import pytest

import headrace
from headrace.archive import ErrorCode, RecordingDescriptor, RecordingSignal
from headrace.archive.client import calls, steps
from headrace.archive.client.exchange import Exchange, Steps, Terms, Unanswered
from headrace.archive.client.session import ArchiveSession, Streams
from headrace.archive.client.settings import ArchiveClientConfig
from headrace.archive.protocol.answers import (
    ANSWERS,
    EVENTS,
    ControlResponse,
    RecordingSignalEvent,
)
from headrace.archive.protocol.codes import Response
from headrace.archive.protocol.messages import MessageError, decode, encode, schema
from headrace.archive.protocol.requests import (
    REQUESTS,
    AuthConnectRequest,
    KeepAliveRequest,
    ListRecordingsRequest,
    Request,
    StartRecordingRequest2,
    StopPositionRequest,
    StopRecordingSubscriptionRequest,
    StopReplayRequest,
)
from headrace.testing import ManualClock
from tests.archive.streams import descriptor

R = TypeVar("R")
SESSION_ID = 17
TIMEOUT_S = 10.0


def exchange_of(what: Steps[R], clock: ManualClock | None = None) -> Exchange[R]:
    """An exchange whose requests have the ids 100, 101 and so on."""
    terms = Terms(SESSION_ID, itertools.count(100).__next__, clock or ManualClock(), TIMEOUT_S)
    return Exchange(what, terms)


def sent(exchange: Exchange[R]) -> object:
    """What the archive is sent now."""
    assert exchange.to_send is not None
    message = decode(exchange.to_send)
    exchange.sent()
    return message


def response(
    correlation_id: int, relevant_id: int = 0, code: Response = Response.OK, text: str = ""
) -> ControlResponse:
    return ControlResponse(
        control_session_id=SESSION_ID,
        correlation_id=correlation_id,
        relevant_id=relevant_id,
        code=code,
        error_message=text,
    )


def signal(correlation_id: int, what: RecordingSignal) -> RecordingSignalEvent:
    return RecordingSignalEvent(
        control_session_id=SESSION_ID,
        correlation_id=correlation_id,
        recording_id=3,
        subscription_id=7,
        position=0,
        signal=what,
    )


def test_a_request_is_sent_with_its_ids_and_answered_with_a_number() -> None:
    exchange = exchange_of(calls.stop_position(3))
    assert sent(exchange) == StopPositionRequest(
        control_session_id=SESSION_ID, correlation_id=100, recording_id=3
    )
    assert not exchange.awaits(response(99))
    assert exchange.awaits(response(100))
    assert not exchange.is_done
    exchange.take(response(100, 4096))
    assert exchange.is_done
    assert exchange.result() == 4096
    assert exchange.undo() is None


def test_no_position_is_none() -> None:
    exchange = exchange_of(calls.stop_position(3))
    sent(exchange)
    exchange.take(response(100, -1))
    assert exchange.result() is None


def test_a_refusal_is_the_error_that_the_archive_gave() -> None:
    exchange = exchange_of(calls.stop_position(3))
    sent(exchange)
    exchange.take(response(100, ErrorCode.UNKNOWN_RECORDING, Response.ERROR, "no such thing"))
    with pytest.raises(headrace.ArchiveError, match="no such thing") as refusal:
        exchange.result()
    assert (refusal.value.code, refusal.value.recording_id) == (ErrorCode.UNKNOWN_RECORDING, 3)


def test_a_list_ends_at_its_count_or_where_the_archive_has_no_more() -> None:
    for count, given, wanted in ((2, 2, 2), (5, 3, 3), (5, 0, 0)):
        exchange = exchange_of(calls.list_recordings(0, count))
        request = sent(exchange)
        assert isinstance(request, ListRecordingsRequest)
        assert (request.from_recording_id, request.record_count) == (0, count)
        for number in range(given):
            assert not exchange.is_done
            exchange.take(descriptor().replace(recording_id=number, correlation_id=100))
        if given < count:
            exchange.take(response(100, given, Response.RECORDING_UNKNOWN))
        assert [one.recording_id for one in exchange.result()] == list(range(wanted))


def test_a_channel_without_a_stream_is_looked_for_in_all_recordings() -> None:
    """The protocol has no such request."""
    exchange = exchange_of(calls.list_recordings(0, 1, channel="orders"))
    request = sent(exchange)
    assert isinstance(request, ListRecordingsRequest)
    assert request.record_count == calls.COUNT_MAX
    for number, channel in enumerate(("aeron:ipc", "aeron:ipc?alias=orders", "aeron:ipc?alias=orders-2")):
        exchange.take(descriptor().replace(recording_id=number, original_channel=channel))
    exchange.take(response(100, 3, Response.RECORDING_UNKNOWN))
    assert [one.recording_id for one in exchange.result()] == [1]


def test_nothing_is_asked_for_a_list_of_none() -> None:
    exchange = exchange_of(calls.list_recordings(count=0))
    assert exchange.to_send is None
    assert exchange.result() == []


RECORD_REQUEST = StartRecordingRequest2(
    control_session_id=SESSION_ID,
    correlation_id=77,
    stream_id=1001,
    source_location=headrace.archive.SourceLocation.LOCAL,
    auto_stop=True,
    channel="aeron:ipc",
)


def recording() -> Steps[int]:
    return steps.recorded(RECORD_REQUEST)


def test_a_recording_has_begun_with_its_signal() -> None:
    exchange = exchange_of(recording())
    sent(exchange)
    exchange.take(response(100, 7))
    exchange.take(signal(100, RecordingSignal.STOP))
    assert not exchange.is_done
    exchange.take(signal(100, RecordingSignal.START))
    assert exchange.result() == 3, "the id of the recording, not of its subscription"
    assert exchange.undo() is None


@pytest.mark.parametrize("how", ["refused", "too late", "abandoned"])
def test_a_recording_that_does_not_begin_is_taken_back(how: str) -> None:
    clock = ManualClock()
    exchange = exchange_of(recording(), clock)
    sent(exchange)
    assert exchange_of(recording()).undo() is None, "nothing was begun yet"
    exchange.take(response(100, 7))
    if how == "refused":
        exchange.take(response(100, 0, Response.ERROR, "no room"))
    elif how == "too late":
        clock.advance(TIMEOUT_S)
        exchange.check()
    undo = exchange.undo()
    assert undo is not None
    assert exchange.is_done
    assert decode(undo) == StopRecordingSubscriptionRequest(control_session_id=SESSION_ID, subscription_id=7)
    assert exchange.undo() is None, "once"


@pytest.mark.parametrize(
    ("request_of", "undo"),
    [
        (calls.start_recording, StopRecordingSubscriptionRequest(subscription_id=7)),
        (partial(calls.extend_recording, 3), StopRecordingSubscriptionRequest(subscription_id=7)),
        (partial(calls.start_replay, 3), StopReplayRequest(replay_session_id=7)),
    ],
    ids=["recording", "extension", "replay"],
)
def test_what_was_begun_is_taken_back_unless_its_owner_has_the_id(
    request_of: Callable[[str, int], Steps[int]], undo: Request
) -> None:
    """Nothing else could stop it: an owner that is interrupted does not know the id."""
    for has_it in (False, True):
        exchange = exchange_of(request_of("aeron:ipc", 1001))
        sent(exchange)
        assert exchange.may_begin
        exchange.take(response(100, 7))
        assert exchange.is_done
        if has_it:
            assert exchange.result() == 7
            assert exchange.undo() is None
        else:
            bytes_to_send = exchange.undo()
            assert bytes_to_send is not None
            assert decode(bytes_to_send) == dataclasses.replace(undo, control_session_id=SESSION_ID)
    exchange = exchange_of(request_of("aeron:ipc", 1001))
    sent(exchange)
    exchange.take(response(100, 1, Response.ERROR, "no room"))
    assert exchange.undo() is None


def test_a_request_that_is_too_late_says_whether_it_was_sent_and_what_it_may_begin() -> None:
    for is_sent, text in ((False, "the request was not sent"), (True, "may still carry out")):
        clock = ManualClock()
        exchange = exchange_of(calls.start_recording("aeron:ipc", 1001), clock)
        if is_sent:
            sent(exchange)
        clock.advance(TIMEOUT_S)
        exchange.check()
        with pytest.raises(headrace.ArchiveTimeoutError, match=text):
            exchange.result()


def test_an_answer_to_one_request_lets_the_others_wait_longer() -> None:
    """They wait for their turn, and the archive is at work."""
    clock = ManualClock()
    stream = SimpleNamespace(is_connected=True)
    client = SimpleNamespace(clock=clock, next_correlation_id=itertools.count(100).__next__, is_closed=False)
    session = ArchiveSession(Streams(client, stream, stream, False), ArchiveClientConfig())  # type: ignore[arg-type]
    asked = [session._begin(calls.stop_position(number)) for number in range(2)]
    asked[0].sent()
    clock.advance(session._timeout_s / 2)
    session._take(encode(dataclasses.replace(response(100, 4096), control_session_id=-1)))
    clock.advance(session._timeout_s / 2)
    asked[1].check()
    assert not asked[1].is_done
    clock.advance(session._timeout_s / 2)
    asked[1].check()
    assert asked[1].is_done


def test_the_time_out_begins_anew_with_each_answer() -> None:
    clock = ManualClock()
    exchange = exchange_of(calls.list_recordings(), clock)
    sent(exchange)
    for number in range(3):
        clock.advance(TIMEOUT_S * 0.9)
        exchange.check()
        assert not exchange.is_done
        exchange.take(descriptor().replace(recording_id=number))
    clock.advance(TIMEOUT_S)
    exchange.check()
    with pytest.raises(headrace.ArchiveTimeoutError, match=r"did not answer within 10\.0 s"):
        exchange.result()


def test_a_request_that_is_not_answered_is_followed_by_the_next() -> None:
    def both() -> Steps[int]:
        yield Unanswered(KeepAliveRequest())
        return (yield from steps.answered(StopPositionRequest(recording_id=1)))

    exchange = exchange_of(both())
    assert isinstance(sent(exchange), KeepAliveRequest)
    assert isinstance(sent(exchange), StopPositionRequest)
    exchange.take(response(100, 5))
    assert exchange.result() == 5


def test_what_its_owner_finds_ends_it() -> None:
    exchange = exchange_of(recording())
    sent(exchange)
    exchange.fail(headrace.ArchiveError("the archive is gone"))
    assert not exchange.awaits(response(100))
    with pytest.raises(headrace.ArchiveError, match="gone"):
        exchange.result()


KINDS = (*REQUESTS, *ANSWERS, *EVENTS)


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
def test_each_class_has_the_fields_of_its_template(kind: type) -> None:
    """By name; and a default where older senders have no such field, or one that means "not given"."""
    model = schema()[kind.__name__].model
    members = [*model.body.fields, *model.body.data]
    names = {re.sub("([A-Z])", lambda upper: f"_{upper[1].lower()}", one.name): one for one in members}
    fields = {one.name: one for one in dataclasses.fields(kind)}
    assert fields.keys() == names.keys()
    for name, member in names.items():
        is_newer = member.since > min(one.since for one in members)
        assert not is_newer or fields[name].default is not dataclasses.MISSING, name


def test_what_is_encoded_is_decoded_as_it_was() -> None:
    for message in (
        AuthConnectRequest(correlation_id=1, response_stream_id=2, response_channel="aeron:ipc", version=5),
        StartRecordingRequest2(
            control_session_id=1,
            correlation_id=2,
            stream_id=3,
            source_location=headrace.archive.SourceLocation.REMOTE,
            auto_stop=True,
            channel="aeron:ipc",
        ),
        signal(1, RecordingSignal.DELETE),
        response(1, 2, Response.ERROR, "text"),
        descriptor(),
    ):
        again = decode(encode(message))
        assert again == message
        assert repr(again) == repr(message)
    assert isinstance(descriptor(), RecordingDescriptor)


def test_a_value_that_the_schema_takes_for_none_is_refused() -> None:
    """With the ids, so that the client is told."""
    data = bytearray(encode(RECORD_REQUEST))
    data[8 + 20 : 8 + 24] = (-(1 << 31)).to_bytes(4, "little", signed=True)
    with pytest.raises(MessageError, match="source_location is missing") as wrong:
        decode(bytes(data))
    assert wrong.value.ids == (SESSION_ID, 77)
