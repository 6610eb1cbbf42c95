"""Where a subscription begins: with `start="now"` after what was published before, in each way of adding one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import headrace
from tests.helpers import TIMEOUT_S, await_true, take

pytestmark = pytest.mark.boundary

IPC = "aeron:ipc?term-length=64k"
STREAM = 4901

PUBLISHER = """
import sys, headrace
client = headrace.connect(sys.argv[1])
publication = client.add_publication(sys.argv[2], int(sys.argv[3]))
publication.offer_blocking(b"of the dead")
print("published", flush=True)
sys.stdin.read()
"""

Add = Callable[[headrace.Client], Any]


def add(client: headrace.Client) -> headrace.Subscription:
    return client.add_subscription(IPC, STREAM, start="now")


def ask(client: headrace.Client) -> headrace.Subscription:
    async def add_one() -> headrace.Subscription:
        return await client.request_subscription(IPC, STREAM, start="now")

    return asyncio.run(add_one())


@pytest.mark.parametrize("add_from_now", [add, ask])
def test_it_passes_over_what_was_published_before_and_nothing_after(
    media_client: headrace.Client, add_from_now: Add
) -> None:
    publication = media_client.add_publication(IPC, STREAM)
    # The specification has a default subscription begin where the slowest reader is.
    with media_client.add_subscription(IPC, STREAM), media_client.add_subscription(IPC, STREAM) as default:
        assert publication.wait_for_subscribers(2, timeout_s=TIMEOUT_S)
        publication.offer_blocking(b"old")
        late = add_from_now(media_client)
        publication.offer_blocking(b"new")
        assert take(default, 2) == [b"old", b"new"]
        assert take(late, 1) == [b"new"]


def test_what_a_closed_reader_left_unread_is_not_for_it(media_client: headrace.Client) -> None:
    publication = media_client.add_publication(IPC, STREAM)
    with media_client.add_subscription(IPC, STREAM):
        assert publication.wait_until_connected(TIMEOUT_S)
        publication.offer_blocking(b"left")
    late = add(media_client)
    publication.offer_blocking(b"new")
    assert take(late, 1) == [b"new"]


def test_a_poller_and_a_reconnecting_client_begin_at_now(
    media_driver: headrace.MediaDriver, media_client: headrace.Client
) -> None:
    publication = media_client.add_publication(IPC, STREAM)
    with (
        media_client.add_subscription(IPC, STREAM),
        headrace.connect(media_driver.directory, reconnect=True) as reconnecting,
    ):
        assert publication.wait_until_connected(TIMEOUT_S)
        publication.offer_blocking(b"old")
        polled = add(media_client)
        back = reconnecting.add_subscription(IPC, STREAM, start="now")
        publication.offer_blocking(b"new")
        got: list[bytes] = []
        poller = headrace.Poller(polled)

        def enough() -> bool:
            poller.poll(lambda _, payload, header: got.append(bytes(payload)))
            return bool(got)

        await_true(enough)
        message = back.receive(TIMEOUT_S)
        assert got == [b"new"]
        assert message is not None
        assert message.payload == b"new"


def test_nothing_comes_of_a_publisher_that_was_killed(
    media_driver: headrace.MediaDriver, media_client: headrace.Client
) -> None:
    with media_client.add_subscription(IPC, STREAM):
        dead = subprocess.Popen(
            [sys.executable, "-c", PUBLISHER, media_driver.directory, IPC, str(STREAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert dead.stdout is not None
        assert dead.stdout.readline() == b"published\n"
        dead.kill()
        dead.communicate()
        late = add(media_client)
        publication = media_client.add_publication(IPC, STREAM)
        publication.offer_blocking(b"new")
        assert take(late, 1) == [b"new"]


def test_another_beginning_is_refused(media_client: headrace.Client) -> None:
    with pytest.raises(headrace.ConfigError, match=r'start=.*must be "now"'):
        media_client.add_subscription(IPC, STREAM, start="earliest")  # type: ignore[arg-type]
    with pytest.raises(headrace.ConfigError, match=r'start=.*must be "now"'):
        media_client.request_subscription(IPC, STREAM, start="earliest")  # type: ignore[arg-type]
