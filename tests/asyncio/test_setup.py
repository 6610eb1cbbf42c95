"""Connecting, adding and closing without blocking the event loop."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

import headrace
from headrace import aio
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.asyncio
CHANNEL = "aeron:ipc?term-length=64k"


async def test_a_program_is_set_up_and_closed_from_coroutines():
    with headrace.MediaDriver.embedded() as driver:
        async with await aio.connect(driver.directory) as client:
            subscription = await client.request_subscription(CHANNEL, 4921)
            shared = await client.request_publication(CHANNEL, 4921)
            exclusive = await client.request_exclusive_publication(CHANNEL, 4921)
            counter = await client.request_counter(1701, b"", "label")
            assert type(shared) is headrace.Publication
            assert counter.value == 0
            for publication in (shared, exclusive):
                await publication.offer_async(b"hello", timeout_s=TIMEOUT_S)
                assert (await aio.receive(subscription)).payload == b"hello"
        assert client.is_closed


async def test_the_loop_runs_while_it_waits_for_a_driver(tmp_path: Path):
    """The driver is started by a coroutine of the same loop, which a connect that blocks would never let run."""
    connecting = asyncio.create_task(aio.connect(tmp_path / "later", driver_timeout_ms=30_000))
    await asyncio.sleep(0)
    assert not connecting.done()
    with headrace.MediaDriver(directory=str(tmp_path / "later"), dir_delete_on_shutdown=True):
        async with await connecting as client:
            assert not client.is_closed


async def test_connecting_can_be_cancelled_and_leaves_no_client(tmp_path: Path):
    directory = tmp_path / "later"
    connecting = asyncio.create_task(aio.connect(directory, driver_timeout_ms=30_000, client_name="given up"))
    await asyncio.sleep(0)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    with (
        headrace.MediaDriver(directory=str(directory), dir_delete_on_shutdown=True) as driver,
        driver.connect() as client,
    ):
        # The thread may have connected meanwhile; then it closes what no coroutine takes.
        await asyncio.to_thread(
            await_true, lambda: not any("given up" in record.label for record in client.counters)
        )


async def test_a_client_that_comes_as_the_wait_for_it_is_cancelled_is_closed(monkeypatch: pytest.MonkeyPatch):
    """A time-out may be due in the turn of the loop in which the client comes."""
    loop = asyncio.get_running_loop()
    make_future = loop.create_future

    def create_future() -> asyncio.Future[object]:
        monkeypatch.undo()
        future = make_future()
        future.add_done_callback(lambda _: connecting.cancel())
        return future

    with headrace.MediaDriver.embedded() as driver, driver.connect() as client:
        monkeypatch.setattr(loop, "create_future", create_future)
        connecting = asyncio.create_task(
            aio.connect(driver.directory, reconnect=True, client_name="given up", driver_timeout_ms=2_000)
        )
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await asyncio.to_thread(
            await_true, lambda: all(thread.name != "headrace-reconnect" for thread in threading.enumerate())
        )
        await asyncio.to_thread(
            await_true, lambda: not any("given up" in record.label for record in client.counters)
        )


async def test_what_goes_wrong_is_raised_where_it_is_awaited(tmp_path: Path):
    with pytest.raises(headrace.DriverTimeoutError, match="headrace driver --dir"):
        await aio.connect(tmp_path, driver_timeout_ms=100)
    with pytest.raises(headrace.ConfigError):
        await aio.connect(tmp_path, no_such_setting=1)
    with headrace.MediaDriver.embedded() as driver:
        async with await aio.connect(driver.directory) as client:
            with pytest.raises(headrace.RegistrationError):
                await client.request_publication("aeron:udp?endpoint=nowhere", 10)


async def test_a_request_that_is_cancelled_is_given_up():
    with headrace.MediaDriver.embedded() as driver:
        async with await aio.connect(driver.directory) as client:
            asked = client.request_subscription(CHANNEL, 4922)
            waiting = asyncio.ensure_future(aio.added(asked))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            # Whether or not the driver had answered, no subscription of the stream is left.
            publication = await client.request_publication(CHANNEL, 4922)
            assert not await asyncio.to_thread(publication.wait_until_connected, 0.2)


async def test_a_cancelled_request_of_a_client_that_has_ended_is_cancelled_all_the_same():
    with headrace.MediaDriver.embedded() as driver:
        async with await aio.connect(driver.directory) as client:
            waiting = asyncio.ensure_future(aio.added(client.request_counter(1702)))
            await asyncio.sleep(0)
            waiting.cancel()
            client.close()
            with pytest.raises(asyncio.CancelledError):
                await waiting
