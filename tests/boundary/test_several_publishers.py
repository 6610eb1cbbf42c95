"""Every way of receiving, with several publishers: each message comes once, and in its publisher's order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import headrace
from headrace import aio
from tests.helpers import await_true
from tests.receiving import WAYS, Take

pytestmark = pytest.mark.boundary

PUBLISHERS = 3
ROUNDS = 5
COUNT = PUBLISHERS * ROUNDS


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
# Each is called until all have come, so one that loses never ends.
@pytest.mark.parametrize("way", [*WAYS, iterate_async, receive_async], ids=lambda way: way.__name__)
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
