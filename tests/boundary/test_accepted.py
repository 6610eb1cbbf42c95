"""`accepted` makes an exception of a refusal, and `wait_for_subscribers` counts subscribers."""

from __future__ import annotations

import threading

import pytest

import headrace
from headrace import OfferResult, accepted
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.boundary

IPC = "aeron:ipc?term-length=64k"


def test_what_was_accepted_is_given_as_it_is(stream):
    publication, subscription = stream
    assert accepted(publication.offer(b"x")) == 64
    with accepted(publication.try_claim(4)) as view:
        view[:] = b"four"
    batch = accepted(publication.offer_batch([b"a", b"b"]))
    assert batch.accepted == 2
    assert list(subscription.poll_batch()) == [b"x", b"four", b"a", b"b"]


def test_a_refusal_is_raised_with_its_reason(media_client):
    with media_client.add_publication(IPC, 9100) as publication:
        for refused in (publication.offer(b"x"), publication.try_claim(1), publication.offer_batch([b"x"])):
            with pytest.raises(headrace.PublicationError, match="NOT_CONNECTED: no subscriber") as raised:
                accepted(refused)
            assert raised.value.result is OfferResult.NOT_CONNECTED
            assert raised.value.accepted == 0
    with pytest.raises(headrace.PublicationClosedError):
        accepted(publication.offer(b"x"))
    with pytest.raises(headrace.MaxPositionExceededError):
        accepted(OfferResult.MAX_POSITION_EXCEEDED)


def test_of_a_batch_it_tells_how_many_were_accepted(stream):
    publication, _ = stream
    with pytest.raises(headrace.PublicationError, match="BACK_PRESSURED") as raised:
        accepted(publication.offer_batch([b"x" * 1000] * 1000))
    assert 0 < raised.value.accepted < 1000
    assert f"after {raised.value.accepted} messages" in str(raised.value)


def test_subscribers_over_ipc_are_counted_and_waited_for(media_client):
    with media_client.add_publication(IPC, 9101) as publication:
        assert publication.subscriber_count == 0
        assert publication.wait_for_subscribers(0)
        assert not publication.wait_for_subscribers(1, timeout_s=0.01)
        first = media_client.add_subscription(IPC, 9101)
        assert publication.wait_for_subscribers(1, TIMEOUT_S)
        assert not publication.wait_for_subscribers(2, timeout_s=0.01)
        waited = []
        waiter = threading.Thread(
            target=lambda: waited.append(publication.wait_for_subscribers(2, TIMEOUT_S))
        )
        waiter.start()
        # Another stream's subscriber does not count.
        with (
            media_client.add_subscription(IPC, 9102),
            media_client.add_subscription(IPC, 9101) as second,
        ):
            waiter.join()
            assert waited == [True]
            assert publication.subscriber_count == 2
            accepted(publication.offer(b"to both"))
            assert (
                first.receive(timeout_s=TIMEOUT_S).payload
                == second.receive(timeout_s=TIMEOUT_S).payload
                == b"to both"
            )
        await_true(lambda: publication.subscriber_count == 1)
        first.close()


def test_a_publication_that_is_closed_ends_the_wait(media_client):
    publication = media_client.add_publication(IPC, 9103)
    waited = []
    waiter = threading.Thread(
        target=lambda: waited.append(publication.wait_for_subscribers(1, timeout_s=None))
    )
    waiter.start()
    publication.close()
    waiter.join(TIMEOUT_S)
    assert waited == [False]
    assert publication.subscriber_count == 0


def test_receivers_that_the_driver_does_not_count_are_one_or_none(media_client):
    channel = "aeron:udp?endpoint=127.0.0.1:0|term-length=64k"
    with media_client.add_subscription(channel, 9104) as subscription:
        await_true(lambda: subscription.resolved_channel is not None)
        with media_client.add_publication(subscription.resolved_channel, 9104) as publication:
            assert publication.wait_for_subscribers(1, timeout_s=TIMEOUT_S)
            assert publication.subscriber_count is None
            with pytest.raises(headrace.ConfigError, match="count=2: must be 1 on this channel"):
                publication.wait_for_subscribers(2)
