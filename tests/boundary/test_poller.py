"""A poller of several subscriptions: fair, nothing lost, and each message with its subscription."""

from __future__ import annotations

import asyncio
import itertools
import signal
import threading

import pytest

import headrace
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.boundary


@pytest.fixture
def streams(open_stream):
    """Three streams of 64 KiB terms, and a poller of their subscriptions."""
    opened = [open_stream() for _ in range(3)]
    publications, subscriptions = zip(*opened, strict=True)
    return publications, subscriptions, headrace.Poller(*subscriptions)


def fill(publications, rounds):
    """Sends `rounds` messages to each stream, each named for its stream and its place there."""
    for number in range(rounds):
        for index, publication in enumerate(publications):
            publication.offer_blocking(bytes([index, number]))


def expected(subscriptions, rounds):
    return {
        subscription: [bytes([index, number]) for number in range(rounds)]
        for index, subscription in enumerate(subscriptions)
    }


def by_subscription(pairs):
    came = {}
    for subscription, payload in pairs:
        came.setdefault(subscription, []).append(bytes(payload))
    return came


def poll(poller, count):
    pairs = []

    def handler(subscription, payload, header):
        assert header.stream_id == subscription.stream_id
        pairs.append((subscription, payload))

    await_true(lambda: poller.poll(handler, 4) == 0 and len(pairs) >= count)
    return pairs


def poll_views(poller, count):
    pairs = []
    take = lambda subscription, view, header: pairs.append((subscription, bytes(view)))  # noqa: E731
    await_true(lambda: poller.poll(take, 4, view=True) == 0 and len(pairs) >= count)
    return pairs


def poll_message(poller, count):
    pairs = []
    while (taken := poller.poll_message()) is not None:
        pairs.append((taken[0], taken[1].payload))
    return pairs


def receive(poller, count):
    return [
        (taken[0], taken[1].payload) for taken in (poller.receive(timeout_s=TIMEOUT_S) for _ in range(count))
    ]


def iterate(poller, count):
    taken = itertools.islice(poller, count)
    return [(subscription, message.payload) for subscription, message in taken]


def iterate_async(poller, count):
    async def take():
        pairs = []
        async for subscription, message in poller:
            pairs.append((subscription, message.payload))
            if len(pairs) == count:
                break
        return pairs

    return asyncio.run(asyncio.wait_for(take(), TIMEOUT_S))


@pytest.mark.parametrize(
    "way", [poll, poll_views, poll_message, receive, iterate, iterate_async], ids=lambda way: way.__name__
)
def test_every_way_gives_each_message_once_with_its_subscription(streams, way):
    publications, subscriptions, poller = streams
    fill(publications, 5)
    assert by_subscription(way(poller, 15)) == expected(subscriptions, 5)
    assert poller.poll_message() is None


def test_single_messages_take_turns(streams):
    publications, subscriptions, poller = streams
    for number in range(50):
        publications[0].offer(bytes([number]))
    publications[1].offer(b"one")
    publications[2].offer(b"two")
    first = [poller.receive(timeout_s=TIMEOUT_S)[0] for _ in range(3)]
    assert first == list(subscriptions)


def test_a_stream_that_uses_up_the_limit_does_not_keep_it(streams):
    publications, subscriptions, poller = streams
    for _ in range(50):
        publications[0].offer(b"many")
    publications[2].offer(b"one")
    seen = []
    for _ in range(3):
        poller.poll(lambda subscription, payload, header: seen.append(subscription), 5)
    assert subscriptions[2] in seen


def test_a_poller_waits_for_whichever_comes(streams):
    publications, subscriptions, poller = streams
    assert poller.receive(timeout_s=0.01) is None
    sender = threading.Timer(0.05, publications[1].offer, [b"late"])
    sender.start()
    subscription, message = poller.receive(timeout_s=TIMEOUT_S)
    sender.join()
    assert (subscription, message.payload) == (subscriptions[1], b"late")


def test_asyncio_waits_for_whichever_comes_and_survives_time_outs(streams):
    publications, subscriptions, poller = streams

    async def talk():
        messages = aiter(poller)
        subscriptions[0].close()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(messages), 0.05)
        waiting = asyncio.create_task(anext(messages))
        await asyncio.sleep(0.02)
        publications[2].offer(b"late")
        return await asyncio.wait_for(waiting, TIMEOUT_S)

    subscription, message = asyncio.run(talk())
    assert (subscription, message.payload) == (subscriptions[2], b"late")


def test_what_the_program_closes_is_passed_over_until_nothing_is_left(streams):
    publications, subscriptions, poller = streams
    fill(publications, 1)
    subscriptions[0].close()
    assert sorted(
        message.payload[0] for _, message in (poller.receive(TIMEOUT_S), poller.receive(TIMEOUT_S))
    ) == [1, 2]
    subscriptions[1].close()
    subscriptions[2].close()
    for call in (poller.poll_message, poller.receive, lambda: poller.poll(print)):
        with pytest.raises(headrace.ClosedError):
            call()
    assert list(poller) == []

    async def read():
        return [pair async for pair in poller]

    assert asyncio.run(read()) == []


def test_a_handler_that_raises_loses_nothing_after_its_message(streams):
    publications, subscriptions, poller = streams
    fill(publications, 3)

    seen = []

    def handler(subscription, payload, header):
        seen.append((subscription, payload))
        if len(seen) == 2:
            raise LookupError("the second")

    with pytest.raises(LookupError, match="the second"):
        poller.poll(handler, 100)
    await_true(lambda: poller.poll(handler, 100) == 0 and len(seen) >= 9)
    assert by_subscription(seen) == expected(subscriptions, 3)


def test_ctrl_c_ends_the_wait_and_not_the_poller(streams):
    publications, _, poller = streams
    interrupt = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])

    def wait():
        # Here, that a signal which comes before the wait is expected as well.
        interrupt.start()
        next(poller)

    with pytest.raises(KeyboardInterrupt):
        wait()
    interrupt.join()
    publications[0].offer(b"after Ctrl-C")
    assert next(poller)[1].payload == b"after Ctrl-C"


def test_a_poller_of_nothing_or_of_one_twice_is_refused(streams):
    _, subscriptions, poller = streams
    with pytest.raises(headrace.ConfigError, match="at least one"):
        headrace.Poller()
    with pytest.raises(headrace.ConfigError, match="once"):
        headrace.Poller(subscriptions[0], subscriptions[1], subscriptions[0])
    assert poller.subscriptions == subscriptions
    assert "3 subscriptions" in repr(poller)
