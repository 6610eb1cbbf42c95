"""Publications with several destinations over the loopback interface: real sockets, several drivers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.testing import World
from headrace.tools import CncFile, StreamState, group_streams
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_endpoint, free_port
from tests.system.conftest import NewClient

pytestmark = pytest.mark.system

STREAM_ID = 11
MANUAL = "aeron:udp?control-mode=manual|term-length=64k"
ANY_PORT = "aeron:udp?endpoint=127.0.0.1:0"
# Receivers of one group may lose what they have no room for; each message is read before the next is sent.
MESSAGES = [bytes([number % 251]) * (100 + 37 * number % 4000) for number in range(100)]


def listen(client: headrace.Client) -> tuple[headrace.Subscription, str]:
    """A subscription, and the channel by which a publication sends to it."""
    subscription = client.add_subscription(ANY_PORT, STREAM_ID)
    await_true(lambda: subscription.resolved_endpoint)
    return subscription, f"aeron:udp?endpoint={subscription.resolved_endpoint}"


def sent_stream(publication: headrace.Publication, client: headrace.Client) -> StreamState:
    """As ``headrace streams`` shows it."""
    with CncFile.open(Path(client.directory)) as cnc:
        (found,) = [
            stream
            for stream in group_streams(cnc.counters)
            if stream.session_id == publication.session_id and stream.sender_position is not None
        ]
    return found


def destination_count(publication: headrace.Publication, client: headrace.Client) -> int | None:
    return sent_stream(publication, client).destination_count


def destinations(publication: headrace.Publication, client: headrace.Client) -> list[str]:
    return sorted(map(str, sent_stream(publication, client).destinations or []))


def read_by_each(
    publication: headrace.Publication | headrace.client.ReconnectingPublication,
    *subscriptions: headrace.Subscription,
) -> None:
    for subscription in subscriptions:
        assert subscription.wait_until_connected(TIMEOUT_S)
    for expected in MESSAGES:
        publication.offer_blocking(expected, timeout_s=TIMEOUT_S)
        for subscription in subscriptions:
            message = subscription.receive(timeout_s=TIMEOUT_S)
            assert message is not None
            assert message.payload == expected


@pytest.mark.parametrize("kind", ["add_publication", "add_exclusive_publication"])
def test_destinations_come_and_go_while_messages_flow(new_client: NewClient, kind: str) -> None:
    client = new_client()
    publication: headrace.Publication = getattr(client, kind)(MANUAL, STREAM_ID)
    (one, to_one), (two, to_two) = (listen(new_client()) for _ in range(2))
    assert publication.offer(b"to none") == headrace.OfferResult.NOT_CONNECTED
    first = publication.add_destination(to_one)
    read_by_each(publication, one)
    second = publication.add_destination(to_two)
    assert first != second
    read_by_each(publication, one, two)
    await_true(lambda: destination_count(publication, client) == 2)
    addresses = [one.resolved_endpoint, two.resolved_endpoint]
    await_true(lambda: destinations(publication, client) == sorted(filter(None, addresses)))
    publication.remove_destination(to_one)
    read_by_each(publication, two)
    assert one.poll(lambda payload, header: pytest.fail("removed, and still sent to")) == 0
    publication.remove_destination_by_id(second)
    await_true(lambda: destination_count(publication, client) == 0)
    await_true(lambda: destinations(publication, client) == [])
    # Nothing tells a sender that it has left a receiver, which it hears for 5 s more.
    publication.add_destination(to_two)
    read_by_each(publication, two)


def test_receivers_that_report_to_the_control_address_are_sent_to(new_client: NewClient) -> None:
    client = new_client()
    publication = client.add_publication(
        "aeron:udp?control=127.0.0.1:0|control-mode=dynamic|term-length=64k", STREAM_ID
    )
    assert destination_count(publication, client) == 0
    await_true(lambda: publication.local_socket_addresses)
    (control,) = publication.local_socket_addresses
    channels = [f"{ANY_PORT}|control={control}", f"aeron:udp?control={control}|control-mode=dynamic"]
    subscriptions = [new_client().add_subscription(channel, STREAM_ID) for channel in channels]
    read_by_each(publication, *subscriptions)
    assert destination_count(publication, client) == 2
    await_true(lambda: len(destinations(publication, client)) == 2)
    # One is bound to every address of the machine.
    ports = {address.rpartition(":")[2] for each in subscriptions for address in each.local_socket_addresses}
    assert set(destinations(publication, client)) == {f"127.0.0.1:{port}" for port in ports}


def test_a_multicast_group_is_a_destination_with_its_own_interface(new_client: NewClient) -> None:
    client = new_client()
    publication = client.add_publication(MANUAL, STREAM_ID)
    group = f"aeron:udp?endpoint=239.255.43.1:{free_port()}|interface=127.0.0.1"
    members = [new_client().add_subscription(group, STREAM_ID) for _ in range(2)]
    added = publication.add_destination(f"{group}|ttl=1")
    read_by_each(publication, *members)
    single, to_single = listen(new_client())
    publication.add_destination(to_single)
    read_by_each(publication, *members, single)
    publication.remove_destination_by_id(added)
    read_by_each(publication, single)
    for member in members:
        assert member.poll(lambda payload, header: pytest.fail("removed, and still sent to")) == 0


def test_destinations_change_without_blocking_a_loop(new_client: NewClient) -> None:
    publication = new_client().add_publication(MANUAL, STREAM_ID)
    (one, to_one), (two, to_two) = (listen(new_client()) for _ in range(2))

    async def change() -> None:
        first, second = await asyncio.gather(
            publication.add_destination_async(to_one), publication.add_destination_async(to_two)
        )
        assert first != second
        await asyncio.to_thread(read_by_each, publication, one, two)
        assert await publication.remove_destination_async(to_one) is None
        assert await publication.remove_destination_by_id_async(second) is None
        with pytest.raises(headrace.RegistrationError, match="aeron:ipc"):
            await publication.add_destination_async("aeron:ipc")

    asyncio.run(change())


@pytest.mark.parametrize(
    ("channel", "words"),
    [
        ("aeron:ipc", ["aeron:udp with an endpoint", "channel=aeron:ipc"]),
        ("aeron:udp?control=127.0.0.1:1", ["aeron:udp with an endpoint"]),
        ("aeron-spy:aeron:udp?endpoint=127.0.0.1:1", ["spies", "channel=aeron-spy:"]),
        ("aeron:udp?endpoint=127.0.0.1:0", ["port=0", "port of the receiver"]),
        ("aeron:udp?endpoint=127.0.0.1", ["127.0.0.1", "port"]),
        ("aeron:udp?endpoint=127.0.0.1:1|mtu=1408", ["must not contain the key: mtu"]),
        ("udp://127.0.0.1:1", ["udp://127.0.0.1:1"]),
    ],
)
def test_what_is_no_destination_is_refused_with_the_reason(
    new_client: NewClient, channel: str, words: list[str]
) -> None:
    client = new_client()
    publication = client.add_publication(MANUAL, STREAM_ID)
    with pytest.raises(headrace.RegistrationError) as refusal:
        publication.add_destination(channel)
    for word in words:
        assert word in str(refusal.value)
    assert destination_count(publication, client) == 0


@pytest.mark.parametrize(
    "channel", ["aeron:ipc?term-length=64k", f"aeron:udp?endpoint={free_endpoint()}"], ids=["ipc", "udp"]
)
def test_publications_with_one_destination_take_no_other(new_client: NewClient, channel: str) -> None:
    publication = new_client().add_publication(channel, STREAM_ID)
    changes: list[Callable[[], Any]] = [
        lambda: publication.add_destination("aeron:udp?endpoint=127.0.0.1:1"),
        lambda: publication.remove_destination("aeron:udp?endpoint=127.0.0.1:1"),
        lambda: publication.remove_destination_by_id(7),
    ]
    for change in changes:
        with pytest.raises(headrace.RegistrationError, match="control-mode=manual"):
            change()


def test_removing_what_is_not_there_does_nothing(new_client: NewClient) -> None:
    client = new_client()
    publication = client.add_publication(MANUAL, STREAM_ID)
    publication.add_destination("aeron:udp?endpoint=127.0.0.1:1")
    publication.remove_destination("aeron:udp?endpoint=127.0.0.1:2")
    publication.remove_destination_by_id(77)
    publication.add_destination("aeron:udp?endpoint=127.0.0.1:1")
    await_true(lambda: destination_count(publication, client) == 2)
    publication.remove_destination("aeron:udp?endpoint=127.0.0.1:1")
    await_true(lambda: destination_count(publication, client) == 1)


def test_wrong_arguments_are_named(new_client: NewClient) -> None:
    publication: Any = new_client().add_publication(MANUAL, STREAM_ID)
    for change in (publication.add_destination, publication.remove_destination):
        with pytest.raises(TypeError, match="channel=5: must be text, such as"):
            change(5)
    with pytest.raises(headrace.ConfigError, match=f"registration_id={2**63}"):
        publication.remove_destination_by_id(2**63)


def test_a_closed_publication_says_so(new_client: NewClient) -> None:
    publication = new_client().add_publication(MANUAL, STREAM_ID)
    publication.close()
    changes: list[Callable[[], Any]] = [
        lambda: publication.add_destination("aeron:udp?endpoint=127.0.0.1:1"),
        lambda: publication.remove_destination("aeron:udp?endpoint=127.0.0.1:1"),
        lambda: publication.remove_destination_by_id(1),
        lambda: publication.add_destination_async("aeron:udp?endpoint=127.0.0.1:1"),
    ]
    for change in changes:
        with pytest.raises(headrace.ClosedError, match="publication"):
            change()


def test_destinations_are_added_again_when_the_client_is_told_of_a_new_driver() -> None:
    """The publication of the next driver has none."""
    directory = headrace.default_directory() + "-destinations"

    def driver() -> headrace.MediaDriver:
        return headrace.MediaDriver(
            directory=directory,
            threading_mode="SHARED",
            dir_delete_on_start=True,
            dir_delete_on_shutdown=True,
        )

    with ExitStack() as stack:
        listening_driver = stack.enter_context(headrace.MediaDriver.embedded(threading_mode="SHARED"))
        subscription, to_it = listen(stack.enter_context(listening_driver.connect()))

        def back(client: headrace.client.ReconnectingClient) -> None:
            publication.add_destination(to_it)

        first = stack.enter_context(driver())
        client = stack.enter_context(
            headrace.connect(directory, reconnect=True, on_reconnect=back, driver_timeout_ms=2000)
        )
        publication = client.add_publication(MANUAL, STREAM_ID)
        publication.add_destination(to_it)
        read_by_each(publication, subscription)
        first.close()
        await_true(lambda: client.state is headrace.client.ConnectionState.DISCONNECTED)
        stack.enter_context(driver())
        publication.offer_blocking(b"after", timeout_s=TIMEOUT_S)
        message = subscription.receive(timeout_s=TIMEOUT_S)
        assert message is not None
        assert message.payload == b"after"


def test_a_name_without_an_address_is_sent_to_once_it_has_one() -> None:
    """And the call that adds it does not wait for that."""
    with World(seed=11) as world:
        publication = world.add_node("center").connect().add_publication(MANUAL, STREAM_ID)
        publication.add_destination("aeron:udp?endpoint=late:40123")
        assert not publication.wait_until_connected(10.0)
        late = world.add_node("late").connect().add_subscription("aeron:udp?endpoint=late:40123", STREAM_ID)
        assert late.wait_until_connected(30.0)
        publication.offer_blocking(b"found")
        message = late.receive(timeout_s=10.0)
        assert message is not None
        assert message.payload == b"found"


def test_a_coroutine_of_a_simulated_world_adds_destinations() -> None:
    with World(seed=12) as world:
        publication = world.add_node("center").connect().add_publication(MANUAL, STREAM_ID)
        reader = world.add_node("one").connect().add_subscription("aeron:udp?endpoint=one:40123", STREAM_ID)

        async def talk() -> bytes:
            adding: Awaitable[int] = publication.add_destination_async("aeron:udp?endpoint=one:40123")
            await adding
            await publication.offer_async(b"over it", timeout_s=10.0)
            async for message in reader:
                return bytes(message.payload)
            raise AssertionError

        assert world.run_async(talk()) == b"over it"
