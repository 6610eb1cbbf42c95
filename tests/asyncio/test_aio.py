"""asyncio: waiting without blocking the loop, losing nothing when cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import os
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest

import headrace
from headrace import aio
from headrace.cnc.cnc_file import CncFile
from headrace.cnc.error_log import read_error_log
from tests.helpers import TIMEOUT_S, await_true


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
            return runner.run(asyncio.wait_for(coroutine, TIMEOUT_S))

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
        driver=driver, keepalive_interval_ns=50_000_000, on_error=lambda error: None
    )
    subscription = client.add_subscription("aeron:ipc?term-length=64k", 1)

    async def read():
        async for _ in subscription:
            pass

    driver.close()
    with pytest.raises(headrace.DriverTimeoutError):
        run(read())
    client.close()


def test_many_coroutines_wait_without_a_thread(open_stream, run):
    streams = [open_stream() for _ in range(20)]

    async def talk():
        before = threading.active_count()
        readers = [asyncio.create_task(aio.receive(subscription)) for _, subscription in streams]
        await asyncio.sleep(0.01)
        for publication, _ in reversed(streams):
            await publication.offer_async(publication.session_id.to_bytes(4, "little", signed=True))
        messages = await asyncio.gather(*readers)
        # One of a test before may have ended meanwhile.
        assert threading.active_count() <= before
        return [
            (int.from_bytes(message.payload, "little", signed=True), message.session_id)
            for message in messages
        ]

    assert all(sent == session_id for sent, session_id in run(talk()))


def test_the_loop_wakes_only_when_there_is_something(stream, run, monkeypatch):
    publication, subscription = stream
    wake_ups = []
    on_ring = aio._Waker._on_ring
    monkeypatch.setattr(aio._Waker, "_on_ring", lambda self: (wake_ups.append(1), on_ring(self)))

    async def silence():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await aio.receive(subscription)

    async def one_message():
        reader = asyncio.create_task(aio.receive(subscription))
        await asyncio.sleep(0)
        publication.offer(b"one")
        assert (await reader).payload == b"one"

    async def wakes(count, what):
        # What the driver does for a stream that has just begun may ring too, and on a crowded machine the look that the
        # loop takes without a ring may be first: one clean turn is enough, for a loop that wakes too often has none.
        while True:
            wake_ups.clear()
            await what()
            if len(wake_ups) == count:
                return

    async def wait():
        await wakes(0, silence)
        await wakes(1, one_message)

    run(wait())


async def begin_to_wait(*awaitables):
    """Tasks that have found nothing and wait."""
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    await asyncio.sleep(0)
    return tasks


def test_a_loop_that_closes_gives_up_its_watcher(stream, run):
    """At once, without a garbage collection, also when a coroutine was left waiting."""
    _, subscription = stream
    watchers = []

    async def wait():
        (reader,) = await begin_to_wait(aio.receive(subscription))
        watchers.append(weakref.ref(aio._waker()._watcher))
        return reader

    async def leave():
        reader = await wait()
        reader.cancel()
        await asyncio.wait([reader])

    for _ in range(3):
        run(leave())
    loop = asyncio.new_event_loop()
    left = loop.run_until_complete(wait())
    loop.close()
    # It was never finished, and says so when it goes.
    left._log_destroy_pending = False
    del left, loop

    def are_gone():
        # Does nothing while another thread collects.
        gc.collect()
        return [watcher() for watcher in watchers] == [None] * 4

    await_true(are_gone)
    assert len(aio._wakers) == 0


def test_a_cancelled_wait_leaves_nothing_to_watch(stream, run):
    _, subscription = stream

    async def wait():
        readers = await begin_to_wait(*(aio.receive(subscription) for _ in range(3)))
        waker = aio._waker()
        assert len(waker._waits) == 3
        assert waker._watcher.look_after_s == 0.02
        for reader in readers:
            reader.cancel()
        await asyncio.wait(readers)
        assert len(waker._waits) == 0
        assert waker._watcher.look_after_s is None

    run(wait())


def test_a_loop_that_stops_listening_looks_every_millisecond(stream, run):
    """After doorbells that rang for nothing, and not when the look that was planned before is due."""
    publication, subscription = stream

    async def main():
        (task,) = await begin_to_wait(aio.receive(subscription))
        waker, loop = aio._waker(), asyncio.get_running_loop()
        for _ in range(4):
            waker._on_ring()
        assert waker._watcher.look_after_s == 0.001
        assert waker._look_at_s <= loop.time() + 0.001
        publication.offer_blocking(b"heard")
        assert (await task).payload == b"heard"

    run(main())


def test_one_message_wakes_all_that_wait_for_it(stream, run):
    publication, subscription = stream

    async def wait():
        readers = await begin_to_wait(*(aio.receive(subscription) for _ in range(3)))
        for number in range(3):
            publication.offer(bytes([number]))
            await asyncio.wait(
                [reader for reader in readers if not reader.done()], return_when="FIRST_COMPLETED"
            )
        return sorted(reader.result().payload for reader in readers)

    assert run(wait()) == [bytes([number]) for number in range(3)]


def test_a_thousand_subscriptions_are_waited_for_by_one_slot(media_client, media_driver, run):
    channel, count = "aeron:ipc?term-length=64k|sparse=true", 1000
    publication = media_client.add_publication(channel, 4910)
    subscriptions = [media_client.add_subscription(channel, 4910) for _ in range(count)]
    assert publication.wait_for_subscribers(count, timeout_s=TIMEOUT_S)

    async def talk():
        readers = await begin_to_wait(*map(aio.receive, subscriptions))
        assert aio._waker()._watcher.look_after_s == 0.02
        publication.offer_blocking(b"to all")
        return [message.payload for message in await asyncio.gather(*readers)]

    assert run(talk()) == [b"to all"] * count
    for subscription in subscriptions:
        subscription.close()


def test_streams_of_several_drivers_wake_one_loop(run):
    with contextlib.ExitStack() as stack:
        streams = []
        for number in range(3):
            driver = stack.enter_context(headrace.MediaDriver.embedded(threading_mode="SHARED"))
            client = stack.enter_context(driver.connect())
            subscription = client.add_subscription("aeron:ipc?term-length=64k", number)
            publication = client.add_publication("aeron:ipc?term-length=64k", number)
            assert publication.wait_until_connected(TIMEOUT_S)
            streams.append((publication, subscription))

        async def talk():
            readers = await begin_to_wait(*(aio.receive(subscription) for _, subscription in streams))
            assert aio._waker()._watcher.look_after_s == 0.02
            for publication, subscription in reversed(streams):
                publication.offer(bytes([subscription.stream_id]))
            received = [(await reader).payload for reader in readers]
            # A poller of all three is woken by one driver, and looks for the others' messages.
            poller = headrace.Poller(*(subscription for _, subscription in streams))
            messages = aiter(poller)
            for publication, _ in streams:
                (reader,) = await begin_to_wait(anext(messages))
                publication.offer(b"polled")
                received.append((await reader)[1].payload)
            return received

        assert run(talk()) == [bytes([0]), bytes([1]), bytes([2]), *[b"polled"] * 3]


def test_a_driver_that_ends_wakes_what_waits_for_it(run):
    driver = headrace.MediaDriver.embedded(threading_mode="SHARED")
    with driver.connect(on_error=lambda error: None) as client:
        subscriptions = [client.add_subscription("aeron:ipc?term-length=64k", number) for number in range(3)]
        publication = client.add_publication("aeron:ipc?term-length=64k", 77)

        async def wait():
            waits = [*map(aio.receive, subscriptions), publication.offer_async(b"no subscriber")]
            tasks = await begin_to_wait(*waits)
            await asyncio.to_thread(driver.close)
            return await asyncio.gather(*tasks, return_exceptions=True)

        *readers, offer = run(wait())
        assert [type(error) for error in readers] == [headrace.DriverTimeoutError] * 3
        assert type(offer) is headrace.PublicationClosedError


COPY = """
import pathlib, sys
for path in pathlib.Path(sys.argv[1]).rglob("*"):
    if not path.is_dir():
        path.open("rb").read()
"""


def test_a_program_that_copies_the_directory_waits_for_nothing(media_driver, stream, run):
    publication, subscription = stream
    directory = Path(media_driver.directory)

    async def talk():
        (reader,) = await begin_to_wait(aio.receive(subscription))
        assert list((directory / "waiters").iterdir())
        # It opens and reads each file, as programs that copy do.
        copier = await asyncio.create_subprocess_exec(sys.executable, "-c", COPY, str(directory))
        assert await copier.wait() == 0
        publication.offer(b"still woken")
        return (await reader).payload

    assert run(talk()) == b"still woken"


def test_without_a_slot_messages_come_and_the_log_says_so(run, caplog):
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver, contextlib.ExitStack() as stack:
        waiters = Path(driver.directory) / "waiters"
        for number in range(64):
            path = waiters / f"{number:02}"
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
            stack.callback(os.close, descriptor)
            # Those that the driver and this process hold stay theirs.
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        client = stack.enter_context(driver.connect())
        subscription = client.add_subscription("aeron:ipc?term-length=64k", 1)
        publication = client.add_publication("aeron:ipc?term-length=64k", 1)
        assert publication.wait_until_connected(TIMEOUT_S)

        async def talk():
            received = []
            for number in range(20):
                (reader,) = await begin_to_wait(aio.receive(subscription))
                assert aio._waker()._watcher.look_after_s == 0.001
                publication.offer(bytes([number]))
                received.append((await reader).payload[0])
            return received

        with caplog.at_level("WARNING", logger="headrace.client"):
            assert run(talk()) == list(range(20))
        (warning,) = [record.getMessage() for record in caplog.records if "woken" in record.getMessage()]
        assert "all 64 slots" in warning
        with CncFile.open(Path(driver.directory)) as cnc:
            while not (told := [e.text for e in read_error_log(cnc.error_log) if "64 slots" in e.text]):
                time.sleep(0.01)
        assert told[0].startswith("WARN")


def test_a_forked_child_has_a_loop_and_a_watcher_of_its_own(stream, run):
    publication, subscription = stream

    async def wait():
        (reader,) = await begin_to_wait(aio.receive(subscription))
        inherited = aio._waker()
        child = os.fork()
        if child == 0:
            # It must not take what wakes its parent.
            try:
                inherited._watcher.take_rung()
            except headrace.ForkError:
                os._exit(0)
            os._exit(1)
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        publication.offer(b"for the parent")
        return (await reader).payload

    assert run(wait()) == b"for the parent"


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
