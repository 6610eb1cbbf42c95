"""Multicast over the loopback interface, and over a cable with IPv6: several drivers, real sockets."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack

import pytest
from benches.processes import background, fresh_directory

import headrace
from headrace.testing import Namespaces
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_port
from tests.system.conftest import NewClient

pytestmark = pytest.mark.system

STREAM_ID = 9
ON_LOOPBACK = "interface=127.0.0.1|term-length=64k"
PORT = free_port()
GROUP = f"aeron:udp?endpoint=239.255.41.1:{PORT}|{ON_LOOPBACK}"
OTHER_GROUP = f"aeron:udp?endpoint=239.255.41.3:{PORT}|{ON_LOOPBACK}"
MESSAGES = [bytes([number % 251]) * (100 + 37 * number % 9000 % 4000) for number in range(300)]


def test_every_receiver_reads_every_message_and_a_neighbouring_group_none(new_client: NewClient) -> None:
    subscriptions = [new_client().add_subscription(GROUP, STREAM_ID) for _ in range(3)]
    other = new_client().add_subscription(OTHER_GROUP, STREAM_ID)
    with new_client().add_publication(GROUP, STREAM_ID) as publication:
        for subscription in subscriptions:
            assert subscription.wait_until_connected(TIMEOUT_S)
        for expected in MESSAGES:
            publication.offer_blocking(expected, timeout_s=TIMEOUT_S)
            for subscription in subscriptions:
                message = subscription.receive(timeout_s=TIMEOUT_S)
                assert message is not None
                assert message.payload == expected
    for subscription in subscriptions:
        await_true(lambda subscription=subscription: not subscription.is_connected)  # type: ignore[misc]
    assert other.images == []


def test_publisher_and_two_subscriptions_of_one_driver(new_client: NewClient) -> None:
    client = new_client()
    with (
        client.add_subscription(GROUP, STREAM_ID) as one,
        client.add_subscription(GROUP, STREAM_ID) as two,
        client.add_publication(GROUP, STREAM_ID) as publication,
    ):
        for expected in MESSAGES[:20]:
            publication.offer_blocking(expected, timeout_s=TIMEOUT_S)
            for subscription in (one, two):
                message = subscription.receive(timeout_s=TIMEOUT_S)
                assert message is not None
                assert message.payload == expected


def test_the_publisher_sees_at_once_that_the_last_receiver_has_left(new_client: NewClient) -> None:
    publication = new_client().add_publication(GROUP, STREAM_ID)
    one, two = (new_client().add_subscription(GROUP, STREAM_ID) for _ in range(2))
    assert publication.wait_until_connected(TIMEOUT_S)
    assert one.wait_until_connected(TIMEOUT_S)
    assert two.wait_until_connected(TIMEOUT_S)
    one.close()
    publication.offer_blocking(b"for the one that stays", timeout_s=TIMEOUT_S)
    message = two.receive(timeout_s=TIMEOUT_S)
    assert message is not None
    assert message.payload == b"for the one that stays"
    two.close()
    await_true(lambda: not publication.is_connected)


NO_NAMESPACES = Namespaces.unavailable()


@pytest.mark.skipif(NO_NAMESPACES is not None, reason=str(NO_NAMESPACES))
@pytest.mark.parametrize(
    ("group", "left", "right"),
    [
        ("[ff15::5]", "[fd00:213::1]", "[fd00:213::2]"),
        ("[ff15::7]", "[fd00:213::]/64", "[fd00:213::]/64"),
        ("[ff02::1:3]", "{hr-left}", "{hr-right}"),
    ],
    ids=["address", "prefix", "link-local"],
)
def test_ipv6_groups_reach_the_other_end_of_a_cable(group: str, left: str, right: str) -> None:
    """And a receiver beside the publisher."""
    channel = f"aeron:udp?endpoint={group}:{PORT}|term-length=64k|fc=min,g:/2"
    with ExitStack() as stack:
        cable = stack.enter_context(Namespaces())
        clients: list[headrace.Client] = []
        for number, side in enumerate((cable.left, cable.right), start=1):
            address = ["ip", "-6", "address", "add", f"fd00:213::{number}/64", "dev", side.device, "nodad"]
            subprocess.run(side.command(address), check=True)
            # The kernel still asks whether another host has the address of the link.
            tentative = side.command(["ip", "-6", "address", "show", "dev", side.device, "tentative"])
            await_true(lambda tentative=tentative: not subprocess.check_output(tentative))  # type: ignore[misc]
            directory = fresh_directory(f"ipv6-{number}")
            driver = [sys.executable, "-m", "headrace", "driver", "--threading-mode", "SHARED"]
            command = side.command([*driver, "--delete-on-shutdown", "--dir", str(directory)])
            stack.enter_context(background(command, ready=directory / "cnc.dat"))
            clients.append(stack.enter_context(headrace.connect(directory)))
        interfaces = [f"{channel}|interface={interface}" for interface in (left, right)]
        subscriptions = [
            client.add_subscription(interface, STREAM_ID)
            for client, interface in zip(clients, interfaces, strict=True)
        ]
        publication = clients[0].add_publication(interfaces[0], STREAM_ID)
        for subscription in subscriptions:
            assert subscription.wait_until_connected(TIMEOUT_S)
        for expected in MESSAGES[:50]:
            publication.offer_blocking(expected, timeout_s=TIMEOUT_S)
            for subscription in subscriptions:
                message = subscription.receive(timeout_s=TIMEOUT_S)
                assert message is not None
                assert message.payload == expected


@pytest.mark.parametrize(
    ("channel", "text"),
    [
        ("aeron:udp?endpoint=239.255.41.2:24781", "Multicast data address must be odd"),
        ("aeron:udp?endpoint=239.255.41.1:0", "endpoint has port=0"),
        (
            "aeron:udp?endpoint=239.255.41.1:24781|interface=192.0.2.77",
            "could not find matching interface=\\(192.0.2.77\\)",
        ),
        ("aeron:udp?endpoint=239.255.41.1:24781|ttl=300", "ttl=300 is not in range 0 to 255"),
    ],
)
def test_groups_that_cannot_be_are_refused_with_the_reason(
    new_client: NewClient, channel: str, text: str
) -> None:
    client = new_client()
    with pytest.raises(headrace.RegistrationError, match=text):
        client.add_publication(channel, STREAM_ID)
    with pytest.raises(headrace.RegistrationError, match=text):
        client.add_subscription(channel, STREAM_ID)
