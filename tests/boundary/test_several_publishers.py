"""Every way of receiving, with several publishers: each message comes once, and in its publisher's order."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
from collections.abc import Callable, Iterator

import pytest

import headrace
from headrace import Action, aio
from headrace.client import native
from tests.helpers import await_true

pytestmark = pytest.mark.boundary

PUBLISHERS = 3
ROUNDS = 5
COUNT = PUBLISHERS * ROUNDS

# One call of a way of receiving: what it took. Each is called until all have come, so one that loses never ends.
Take = Callable[[headrace.Subscription], list[bytes]]


def poll(subscription: headrace.Subscription) -> list[bytes]:
    taken: list[bytes] = []
    subscription.poll(lambda payload, header: taken.append(payload), 2)
    return taken


def poll_views(subscription: headrace.Subscription) -> list[bytes]:
    taken: list[bytes] = []
    subscription.poll(lambda payload, header: taken.append(bytes(payload)), 2, view=True)
    return taken


def controlled_poll(subscription: headrace.Subscription) -> list[bytes]:
    taken: list[bytes] = []

    def handler(payload: bytes, header: headrace.Header) -> Action:
        taken.append(payload)
        return Action.BREAK

    subscription.controlled_poll(handler, 100)
    return taken


def aborting_poll(subscription: headrace.Subscription) -> list[bytes]:
    taken: list[bytes] = []

    def handler(payload: bytes, header: headrace.Header) -> Action:
        if taken:
            return Action.ABORT
        taken.append(payload)
        return Action.CONTINUE

    subscription.controlled_poll(handler, 100)
    return taken


def raising_poll(subscription: headrace.Subscription) -> list[bytes]:
    taken: list[bytes] = []

    def handler(payload: bytes, header: headrace.Header) -> None:
        taken.append(payload)
        raise LookupError

    with contextlib.suppress(LookupError):
        subscription.poll(handler, 100)
    return taken


def poll_batch(subscription: headrace.Subscription) -> list[bytes]:
    return list(subscription.poll_batch(2))


def poll_large_batch(subscription: headrace.Subscription) -> list[bytes]:
    return list(subscription.poll_batch(4096))


def poll_native(subscription: headrace.Subscription) -> list[bytes]:
    taken: list[bytes] = []

    @native.HANDLER_TYPE
    def handler(context: int, payload: object, length: int, header: object) -> None:
        taken.append(ctypes.string_at(payload, length))  # type: ignore[arg-type]

    subscription.poll_native(handler, 0, 2)
    return taken


def poll_message(subscription: headrace.Subscription) -> list[bytes]:
    message = subscription.poll_message()
    return [] if message is None else [message.payload]


def receive(subscription: headrace.Subscription) -> list[bytes]:
    message = subscription.receive(timeout_s=0.01)
    return [] if message is None else [message.payload]


def iterate(subscription: headrace.Subscription) -> list[bytes]:
    for message in subscription:
        return [message.payload]
    raise AssertionError("the iteration ended")


def iterate_async(subscription: headrace.Subscription) -> list[bytes]:
    async def one() -> list[bytes]:
        async for message in subscription:
            return [message.payload]
        raise AssertionError("the iteration ended")

    return asyncio.run(one())


def receive_async(subscription: headrace.Subscription) -> list[bytes]:
    async def one() -> list[bytes]:
        return [(await aio.receive(subscription)).payload]

    return asyncio.run(one())


def images(subscription: headrace.Subscription) -> list[bytes]:
    return [payload for image in subscription.images for payload in image.poll_batch(1)]


WAYS = [
    poll,
    poll_views,
    controlled_poll,
    aborting_poll,
    raising_poll,
    poll_batch,
    poll_large_batch,
    poll_native,
    poll_message,
    receive,
    iterate,
    iterate_async,
    receive_async,
    images,
]


@pytest.fixture(params=["aeron:ipc?term-length=64k", "aeron:udp?endpoint=127.0.0.1:0|term-length=64k"])
def publishers(
    request: pytest.FixtureRequest, media_client: headrace.Client
) -> Iterator[tuple[headrace.Subscription, list[headrace.ExclusivePublication]]]:
    """A subscription to three publishers."""
    with media_client.add_subscription(request.param, 7001) as subscription:
        if "udp" in request.param:
            await_true(lambda: subscription.resolved_channel is not None)
        channel = subscription.resolved_channel or request.param
        publications = [media_client.add_exclusive_publication(channel, 7001) for _ in range(PUBLISHERS)]
        await_true(lambda: subscription.image_count == PUBLISHERS)
        yield subscription, publications
        for publication in publications:
            publication.close()


# One fragment, and several: over UDP and IPC a frame carries less than 1408 bytes.
@pytest.mark.parametrize("length", [8, 3000])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_way_of_receiving_loses_or_repeats(
    publishers: tuple[headrace.Subscription, list[headrace.ExclusivePublication]], way: Take, length: int
) -> None:
    subscription, publications = publishers
    sent: list[list[bytes]] = [[] for _ in publications]
    for number in range(ROUNDS):
        for index, publication in enumerate(publications):
            message = bytes([index, number]) * (length // 2)
            publication.offer_blocking(message)
            sent[index].append(message)
    came: list[bytes] = []

    def enough() -> bool:
        came.extend(way(subscription))
        return len(came) >= COUNT

    await_true(enough)
    assert [[message for message in came if message[0] == index] for index in range(PUBLISHERS)] == sent
    assert subscription.poll_message() is None
