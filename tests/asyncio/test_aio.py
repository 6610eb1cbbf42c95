"""asyncio: waiting without blocking the loop, losing nothing when cancelled."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

import headrace
from headrace import aio
from tests.helpers import TIMEOUT_S


def loops():
    yield pytest.param(asyncio.new_event_loop, id="asyncio")
    try:
        import uvloop
    except ImportError:
        return
    yield pytest.param(uvloop.new_event_loop, id="uvloop")


@pytest.fixture(params=loops())
def run(request):
    """Runs a coroutine on a fresh loop of each kind."""

    def run_one(coroutine):
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(asyncio.wait_for(coroutine, 30))

    return run_one


def test_messages_come_to_an_async_for(stream, run):
    publication, subscription = stream

    async def read(count):
        received = []
        async for message in subscription:
            received.append(message.payload)
            if len(received) == count:
                break
        return received

    async def talk():
        reader = asyncio.create_task(read(200))
        for number in range(200):
            await publication.offer_async(number.to_bytes(2, "little") * 200, timeout_s=TIMEOUT_S)
            if number % 50 == 0:
                await asyncio.sleep(0.002)
        return await reader

    assert run(talk()) == [number.to_bytes(2, "little") * 200 for number in range(200)]


def test_leaving_the_loop_early_leaves_the_rest(stream, run):
    publication, subscription = stream
    publication.offer_batch([b"first", b"second", b"third"])

    async def first():
        async for message in subscription:
            return message.payload
        return None

    assert run(first()) == b"first"
    assert run(aio.receive(subscription)).payload == b"second"
    assert subscription.poll_batch().to_list() == [b"third"]


def test_a_cancelled_receive_takes_nothing(stream, run):
    publication, subscription = stream

    async def cancel_while_messages_come():
        timeouts = 0
        received = []
        sender = threading.Thread(target=lambda: [publication.offer_blocking(bytes([n])) for n in range(200)])
        sender.start()
        while len(received) < 200:
            try:
                async with asyncio.timeout(0.0005):
                    received.append((await aio.receive(subscription)).payload[0])
            except TimeoutError:
                timeouts += 1
        sender.join()
        return received

    assert run(cancel_while_messages_come()) == list(range(200))


def test_a_cancelled_offer_sends_nothing(media_client, run):
    publication = media_client.add_publication("aeron:ipc?term-length=64k", 4900)

    async def cancel():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await publication.offer_async(b"no subscriber")

    run(cancel())
    assert publication.position == 0


def test_offers_wait_for_a_subscriber_and_for_room(media_client, run):
    channel, stream_id = "aeron:ipc?term-length=64k", 4901
    publication = media_client.add_publication(channel, stream_id)

    async def talk():
        sender = asyncio.create_task(send())
        await asyncio.sleep(0.01)
        assert not sender.done()
        subscription = await asyncio.to_thread(media_client.add_subscription, channel, stream_id)
        received = 0
        async for _ in subscription:
            received += 1
            if received == 300:
                break
        await sender
        subscription.close()

    async def send():
        for _ in range(300):
            await publication.offer_async(bytes(1000))

    run(talk())


def test_an_offer_gives_up_in_time(media_client, run):
    publication = media_client.add_publication("aeron:ipc?term-length=64k", 4902)
    with pytest.raises(headrace.PublicationTimeoutError, match=r"0\.01 s") as refusal:
        run(publication.offer_async(b"x", timeout_s=0.01))
    assert refusal.value.result is headrace.OfferResult.NOT_CONNECTED
    publication.close()
    with pytest.raises(headrace.PublicationClosedError):
        run(publication.offer_async(b"x"))


def test_closing_ends_the_iteration_and_wakes_who_waits(stream, run):
    publication, subscription = stream

    async def read_until_closed():
        async def read():
            return [message.payload async for message in subscription]

        reader = asyncio.create_task(read())
        publication.offer(b"last")
        await asyncio.sleep(0.02)
        subscription.close()
        return await reader

    assert run(read_until_closed()) == [b"last"]
    with pytest.raises(headrace.ClosedError):
        run(aio.receive(subscription))


def test_a_driver_that_ends_is_an_error_and_not_an_end(run):
    driver = headrace.MediaDriver.embedded(threading_mode="SHARED")
    client = headrace.Client.connect(
        driver=driver, driver_timeout_ms=500, keepalive_interval_ns=50_000_000, on_error=lambda error: None
    )
    subscription = client.add_subscription("aeron:ipc?term-length=64k", 1)

    async def read():
        async for _ in subscription:
            pass

    driver.close()
    with pytest.raises(headrace.DriverTimeoutError):
        run(read())
    client.close()


def test_many_coroutines_share_one_thread(open_stream, run):
    streams = [open_stream() for _ in range(20)]

    async def talk():
        before = threading.active_count()
        readers = [asyncio.create_task(aio.receive(subscription)) for _, subscription in streams]
        await asyncio.sleep(0.01)
        for publication, _ in reversed(streams):
            await publication.offer_async(publication.session_id.to_bytes(4, "little", signed=True))
        messages = await asyncio.gather(*readers)
        assert threading.active_count() == before
        return [
            (int.from_bytes(message.payload, "little", signed=True), message.session_id)
            for message in messages
        ]

    assert all(sent == session_id for sent, session_id in run(talk()))


def test_the_loop_wakes_only_when_there_is_something(stream, run, monkeypatch):
    publication, subscription = stream
    wake_ups = []
    on_ready = aio._Waker._on_ready
    monkeypatch.setattr(aio._Waker, "_on_ready", lambda self: (wake_ups.append(1), on_ready(self)))

    async def wait():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await aio.receive(subscription)
        assert len(wake_ups) == 0
        reader = asyncio.create_task(aio.receive(subscription))
        await asyncio.sleep(0)
        publication.offer(b"one")
        assert (await reader).payload == b"one"
        assert len(wake_ups) == 1

    run(wait())


def test_a_loop_takes_its_watcher_with_it(stream):
    _, subscription = stream

    async def wait():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await aio.receive(subscription)

    for _ in range(3):
        asyncio.run(wait())
    gc.collect()
    assert len(aio._wakers) == 0


def test_an_iterator_goes_on_after_a_time_out(stream, run):
    publication, subscription = stream

    async def talk():
        messages = aiter(subscription)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(messages), 0.01)
        publication.offer(b"after the time-out")
        return (await anext(messages)).payload

    assert run(talk()) == b"after the time-out"


def test_an_iterator_goes_on_after_a_cancellation_between_two_turns(stream, run):
    publication, subscription = stream
    publication.offer_batch([bytes([number]) for number in range(200)])

    async def read(messages, received):
        async for message in messages:
            received.append(message.payload[0])

    async def talk():
        messages, received = aiter(subscription), []
        while len(received) < 200:
            reader = asyncio.create_task(read(messages, received))
            # One turn each: the reader is cancelled where it lets other coroutines run.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader
        return received

    assert run(talk()) == list(range(200))
