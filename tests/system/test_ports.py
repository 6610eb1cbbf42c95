"""Ports that one channel lets go of and another takes at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from headrace import Client, MediaDriver, Subscription
from tests.ports import free_port

pytestmark = pytest.mark.system

TIMES = 30


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client of a driver with a thread for each agent: the receiver closes sockets some time after the answer."""
    directory = tmp_path / "driver"
    with MediaDriver(directory=directory, threading_mode="DEDICATED") as driver, driver.connect() as client:
        yield client


def as_a_subscription(client: Client, channel: str, _: Subscription) -> None:
    """Takes the port for a channel of its own."""
    client.add_subscription(channel, 1).close()


def as_a_destination(_: Client, channel: str, paths: Subscription) -> None:
    """Takes the port for a destination."""
    paths.remove_destination_by_id(paths.add_destination(channel))


def as_an_awaited_destination(_: Client, channel: str, paths: Subscription) -> None:
    """The same, awaited."""
    paths.remove_destination_by_id(asyncio.run(awaited(paths.add_destination_async(channel))))


async def awaited(adding: Awaitable[int]) -> int:
    """What a coroutine gives; the program may be at work on others meanwhile."""
    return await adding


@pytest.mark.parametrize("take", [as_a_subscription, as_a_destination, as_an_awaited_destination])
def test_a_port_can_be_taken_at_once_after_a_close(
    client: Client, take: Callable[[Client, str, Subscription], None]
) -> None:
    """By another channel, which the driver does not know to be the same."""
    paths = client.add_subscription("aeron:udp?control-mode=manual", 1)
    for _ in range(TIMES):
        endpoint = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
        client.add_subscription(f"{endpoint}|control=127.0.0.1:9", 1).close()
        take(client, endpoint, paths)
        client.add_subscription(f"{endpoint}|control=127.0.0.1:9", 1).close()
