"""How long the reference's receivers take to join a dynamic channel of many streams, on either driver."""

import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from benches.processes import JavaPeer

import headrace
from tests.helpers import TIMEOUT_S, await_true
from tests.interop.conftest import our_driver_process
from tests.ports import free_endpoint

pytestmark = pytest.mark.interop

STREAMS = range(1001, 1051)


def seconds_to_join(publisher: Path, receiver: Path, endpoint_count: int, at_most_s: float) -> float:
    """Until each stream of a dynamic channel has an image at the endpoint whose turn it is."""
    endpoints = [free_endpoint() for _ in range(endpoint_count)]
    control = f"control={free_endpoint()}|control-mode=dynamic"
    with ExitStack() as stack:
        sends, receives = (
            stack.enter_context(headrace.Client.connect(directory=directory))
            for directory in (publisher, receiver)
        )
        for stream_id in STREAMS:
            channel = f"aeron:udp?{control}|term-length=64k"
            stack.enter_context(sends.add_publication(channel, stream_id))
        start = time.monotonic()
        subscriptions = [
            stack.enter_context(
                receives.add_subscription(
                    f"aeron:udp?endpoint={endpoints[index % endpoint_count]}|{control}", stream_id
                )
            )
            for index, stream_id in enumerate(STREAMS)
        ]
        await_true(lambda: all(subscription.is_connected for subscription in subscriptions), at_most_s)
        return time.monotonic() - start


@pytest.mark.parametrize("endpoint_count", [1, len(STREAMS)])
def test_receivers_of_the_reference_join_our_channel_as_soon_as_the_references(
    java: JavaPeer, endpoint_count: int
) -> None:
    """They ask for all streams: one that has none yet cannot say which it wants. So fifty endpoints ask for fifty."""
    with (
        java.driver("interop-joining-receiver", "SHARED") as receiver,
        java.driver("interop-joining-java", "SHARED") as reference,
        our_driver_process("interop-joining-ours") as ours,
    ):
        reference_s = seconds_to_join(reference, receiver, endpoint_count, TIMEOUT_S)
        ours_s = seconds_to_join(ours, receiver, endpoint_count, 3 * reference_s + 2)
    print(f"{endpoint_count} endpoints: {reference_s:.2f} s on Aeron's driver, {ours_s:.2f} s on ours")
