"""However messages are sent and however they are read, the subscriber sees the publisher's bytes, in order, once."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace
from headrace import Action, OfferResult

pytestmark = pytest.mark.property

PAYLOADS = st.one_of(
    st.binary(max_size=200),
    st.builds(lambda length, byte: bytes([byte]) * length, st.integers(1300, 8192), st.integers(0, 255)),
)
SENDS = st.one_of(
    st.tuples(st.just("offer"), PAYLOADS),
    st.tuples(st.just("parts"), st.lists(st.binary(max_size=100), max_size=4)),
    st.tuples(st.just("claim"), st.binary(max_size=1376)),
    st.tuples(st.just("abort"), st.binary(max_size=1376)),
    st.tuples(st.just("padding"), st.integers(0, 1000)),
    st.tuples(st.just("batch"), st.lists(PAYLOADS, max_size=5)),
    st.tuples(st.just("rows"), st.integers(0, 20)),
)
READS = st.sampled_from(["poll", "view", "fail", "controlled", "abort", "batch", "message", "nothing"])


class HandlerFailedError(Exception):
    """Raised by handlers that are meant to."""


class Reader:
    """Reads in many ways and keeps what came."""

    def __init__(self, subscription: headrace.Subscription) -> None:
        self.subscription = subscription
        self.received: list[bytes] = []

    def keep(self, payload: bytes | memoryview, header: headrace.Header) -> None:
        self.received.append(bytes(payload))

    def keep_and_fail(self, payload: bytes, header: headrace.Header) -> None:
        self.received.append(payload)
        raise HandlerFailedError

    def keep_second_time(self, payload: bytes, header: headrace.Header) -> Action:
        if self.aborted:
            self.received.append(payload)
            return Action.COMMIT
        self.aborted = True
        return Action.ABORT

    def read(self, how: str, limit: int) -> None:
        subscription = self.subscription
        match how:
            case "poll":
                subscription.poll(self.keep, limit)
            case "view":
                subscription.poll(self.keep, limit, view=True)
            case "fail":
                with contextlib.suppress(HandlerFailedError):
                    subscription.poll(self.keep_and_fail, limit)
            case "controlled":
                subscription.controlled_poll(self.keep, limit)
            case "abort":
                self.aborted = False
                subscription.controlled_poll(self.keep_second_time, limit)
            case "batch":
                self.received.extend(subscription.poll_batch(limit))
            case "message":
                message = subscription.poll_message()
                if message is not None:
                    self.received.append(message.payload)


def send(publication: headrace.ExclusivePublication, how: str, what) -> tuple[object, list[bytes]]:
    """Tries once; gives the refusal, if any, and what was accepted."""
    match how:
        case "offer":
            result, sent = publication.offer(what), [what]
        case "parts":
            result, sent = publication.offer(what), [b"".join(what)]
        case "claim" | "abort":
            result = publication.try_claim(len(what))
            sent = [what]
            if isinstance(result, headrace.Claim):
                result.view[:] = what
                if how == "claim":
                    result.commit()
                else:
                    result.abort()
                    sent = []
                result = 1
        case "padding":
            result, sent = publication.append_padding(what), []
        case "batch" | "rows":
            rows = np.arange(what * 24, dtype=np.uint8).reshape(what, 24) if how == "rows" else what
            batch = publication.offer_batch(rows)
            messages = [bytes(row) for row in rows]
            return batch.stopped_by, messages[: batch.accepted]
    return (result, []) if isinstance(result, OfferResult) else (None, sent)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(st.tuples(SENDS, READS, st.integers(1, 12)), max_size=40))
def test_what_was_accepted_is_what_is_read(open_stream, steps):
    publication, subscription = open_stream(exclusive=True)
    reader = Reader(subscription)
    sent: list[bytes] = []
    for (how, what), read, limit in steps:
        while True:
            refusal, accepted = send(publication, how, what)
            sent += accepted
            if how == "batch" and accepted:
                what = what[len(accepted) :]
            elif how == "rows" and accepted:
                # The rows differ only by their place, so the rest is given up.
                break
            if refusal is None:
                break
            assert refusal in (OfferResult.ADMIN_ACTION, OfferResult.BACK_PRESSURED)
            reader.read("poll", 100)
        reader.read(read, limit)
    publication.close()
    image = subscription.image_by_session_id(publication.session_id)
    while image is not None and not image.is_end_of_stream and not subscription.is_closed:
        reader.read("poll", 100)
    assert reader.received == sent
    subscription.close()
