"""Subscriptions with several destinations over the loopback interface: real sockets, several drivers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.testing import World
from headrace.tools import CncFile, group_streams
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_endpoint
from tests.system.conftest import NewClient

pytestmark = pytest.mark.system

STREAM_ID = 12
MANUAL = "aeron:udp?control-mode=manual"
ANY_PORT = "aeron:udp?endpoint=127.0.0.1:0"
SAME_STREAM = "term-length=64k|session-id=7|init-term-id=3|term-id=3|term-offset=0"


def message(number: int) -> bytes:
    return bytes([number % 251]) * (100 + 37 * number % 4000)


def read(subscription: headrace.Subscription) -> bytes:
    received = subscription.receive(timeout_s=TIMEOUT_S)
    assert received is not None
    return bytes(received.payload)


def receive_addresses(client: headrace.Client) -> list[str] | None:
    """As ``headrace streams`` shows them."""
    with CncFile.open(Path(client.directory)) as cnc:
        (addresses,) = [
            stream.receive_addresses
            for stream in group_streams(cnc.counters)
            if stream.receiver_position is not None
        ]
    return addresses


def test_a_stream_goes_on_over_the_path_that_is_left(new_client: NewClient) -> None:
    client = new_client()
    subscription = client.add_subscription(MANUAL, STREAM_ID)
    ids = [subscription.add_destination(ANY_PORT) for _ in range(2)]
    addresses = subscription.local_socket_addresses
    assert len(addresses) == 2
    feeds = [
        new_client().add_publication(f"aeron:udp?endpoint={address}|{SAME_STREAM}", STREAM_ID)
        for address in addresses
    ]
    for feed in feeds:
        assert feed.wait_until_connected(TIMEOUT_S)
    for number in range(200):
        if number == 100:
            feeds.pop(0)
            subscription.remove_destination_by_id(ids[0])
            assert subscription.local_socket_addresses == addresses[1:]
        for feed in feeds:
            feed.offer_blocking(message(number), timeout_s=TIMEOUT_S)
        assert read(subscription) == message(number)
    (image,) = subscription.images
    assert image.active_transport_count == 1
    assert receive_addresses(client) == addresses[1:]
    assert subscription.poll(lambda payload, header: pytest.fail("read twice")) == 0


def test_local_streams_are_destinations_too(new_client: NewClient) -> None:
    client = new_client()
    subscription = client.add_subscription(MANUAL, STREAM_ID)
    far = f"aeron:udp?endpoint={free_endpoint()}"
    local = client.add_publication("aeron:ipc?term-length=64k", STREAM_ID)
    spied = client.add_publication(f"{far}|term-length=64k|ssc=true", STREAM_ID)
    for channel in ("aeron:ipc", f"aeron-spy:{far}"):
        subscription.add_destination(channel)
    for publication in (local, spied):
        publication.offer_blocking(b"hello", timeout_s=TIMEOUT_S)
        assert read(subscription) == b"hello"
    subscription.remove_destination("aeron:ipc")
    await_true(lambda: len(subscription.images) == 1)
    subscription.remove_destination(f"aeron-spy:{far}")
    await_true(lambda: not subscription.images)
    with pytest.raises(headrace.RegistrationError, match="no such destination"):
        subscription.remove_destination("aeron:ipc")


def test_destinations_change_without_blocking_a_loop(new_client: NewClient) -> None:
    subscription = new_client().add_subscription(MANUAL, STREAM_ID)

    async def change() -> None:
        first, second = await asyncio.gather(
            subscription.add_destination_async(ANY_PORT), subscription.add_destination_async(ANY_PORT)
        )
        assert first != second
        assert len(subscription.local_socket_addresses) == 2
        assert await subscription.remove_destination_async(ANY_PORT) is None
        assert await subscription.remove_destination_by_id_async(second) is None
        assert not subscription.local_socket_addresses
        with pytest.raises(headrace.RegistrationError, match="the key: mtu"):
            await subscription.add_destination_async("aeron:ipc?mtu=1408")

    asyncio.run(change())


def test_a_port_is_free_when_its_removal_is_answered(new_client: NewClient) -> None:
    subscription = new_client().add_subscription(MANUAL, STREAM_ID)
    subscription.add_destination(ANY_PORT)
    (address,) = subscription.local_socket_addresses
    channel = f"aeron:udp?endpoint={address}"
    subscription.remove_destination(ANY_PORT)
    for _ in range(50):
        subscription.add_destination(channel)
        with pytest.raises(headrace.RegistrationError, match=f"(?i)address.*in use.*{address}"):
            subscription.add_destination(channel)
        subscription.remove_destination(channel)


@pytest.mark.parametrize(
    ("channel", "words"),
    [
        ("aeron:udp?tags=5", ["endpoint or control"]),
        ("aeron:udp?endpoint=127.0.0.1", ["127.0.0.1", "port"]),
        (f"{ANY_PORT}|rcv-wnd=4k", ["must not contain the key: rcv-wnd"]),
        ("aeron:udp?endpoint=does.not.exist.invalid:5", ["does.not.exist.invalid"]),
        ("udp://127.0.0.1:1", ["udp://127.0.0.1:1"]),
    ],
)
def test_what_is_no_destination_is_refused_with_the_reason(
    new_client: NewClient, channel: str, words: list[str]
) -> None:
    subscription = new_client().add_subscription(MANUAL, STREAM_ID)
    with pytest.raises(headrace.RegistrationError) as refusal:
        subscription.add_destination(channel)
    for word in words:
        assert word in str(refusal.value)
    assert not subscription.local_socket_addresses
    assert subscription.channel_status == "active"


@pytest.mark.parametrize("channel", ["aeron:ipc", ANY_PORT])
def test_subscriptions_with_an_address_take_no_other(new_client: NewClient, channel: str) -> None:
    subscription = new_client().add_subscription(channel, STREAM_ID)
    changes: list[Callable[[], Any]] = [
        lambda: subscription.add_destination(ANY_PORT),
        lambda: subscription.remove_destination(ANY_PORT),
        lambda: subscription.remove_destination_by_id(7),
    ]
    for change in changes:
        with pytest.raises(headrace.RegistrationError, match="control-mode=manual"):
            change()


def test_wrong_arguments_are_named(new_client: NewClient) -> None:
    subscription: Any = new_client().add_subscription(MANUAL, STREAM_ID)
    for change in (subscription.add_destination, subscription.remove_destination):
        with pytest.raises(TypeError, match="channel=5: must be text, such as"):
            change(5)
    with pytest.raises(headrace.ConfigError, match=f"registration_id={2**63}"):
        subscription.remove_destination_by_id(2**63)


def test_a_closed_subscription_says_so(new_client: NewClient) -> None:
    subscription = new_client().add_subscription(MANUAL, STREAM_ID)
    subscription.close()
    changes: list[Callable[[], Any]] = [
        lambda: subscription.add_destination(ANY_PORT),
        lambda: subscription.remove_destination(ANY_PORT),
        lambda: subscription.remove_destination_by_id(1),
        lambda: subscription.add_destination_async(ANY_PORT),
    ]
    for change in changes:
        with pytest.raises(headrace.ClosedError, match="subscription"):
            change()


def test_a_coroutine_of_a_simulated_world_adds_destinations() -> None:
    with World(seed=13) as world:
        reader = world.add_node("reader").connect().add_subscription(MANUAL, STREAM_ID)
        publication = (
            world.add_node("far").connect().add_publication("aeron:udp?endpoint=reader:40123", STREAM_ID)
        )

        async def talk() -> bytes:
            await reader.add_destination_async("aeron:udp?endpoint=reader:40123")
            await publication.offer_async(b"over it", timeout_s=10.0)
            async for received in reader:
                return bytes(received.payload)
            raise AssertionError

        assert world.run_async(talk()) == b"over it"
