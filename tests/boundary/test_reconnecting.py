"""Clients that outlive their driver: what comes back, what waits, what is told, and what ends it."""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import headrace
from headrace import OfferResult, aio
from headrace.client import (
    ConnectionState,
    ReconnectingClient,
    ReconnectingPublication,
    ReconnectingSubscription,
    _reconnecting,
    _reconnecting_streams,
)
from headrace.client._destinations import Destinations
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.boundary

IPC = "aeron:ipc?term-length=64k"
# Far longer than a loaded machine keeps a driver from its duty cycle, and short enough to wait for.
TIMEOUT_MS = 2000


class Site:
    """A directory in which one driver after another runs, and a client that goes on."""

    def __init__(self, directory: Path) -> None:
        self.directory = str(directory)
        self.events: list[object] = []
        self.start()
        self.client = headrace.connect(
            self.directory,
            reconnect=True,
            on_disconnect=self.events.append,
            on_reconnect=self.events.append,
            driver_timeout_ms=TIMEOUT_MS,
        )

    def start(self) -> None:
        self.driver = headrace.MediaDriver(directory=self.directory, threading_mode="SHARED")

    def lose_driver(self) -> None:
        self.driver.close()
        await_true(lambda: self.client.state is ConnectionState.DISCONNECTED)

    def restart(self) -> None:
        before = self.client.reconnect_count
        self.start()
        await_true(lambda: self.client.reconnect_count > before)

    def close(self) -> None:
        self.client.close()
        self.driver.close()


@pytest.fixture
def site() -> Iterator[Site]:
    directory = Path(headrace.default_directory() + "-reconnecting")
    shutil.rmtree(directory, ignore_errors=True)
    site = Site(directory)
    yield site
    site.close()
    shutil.rmtree(directory, ignore_errors=True)


def test_a_poller_follows_its_subscriptions_to_the_next_driver(site: Site) -> None:
    """It says which of the given subscriptions a message came from, takes turns, and waits for a driver."""
    publications = [site.client.add_publication(IPC, stream_id) for stream_id in (1, 2)]
    subscriptions = [site.client.add_subscription(IPC, stream_id) for stream_id in (1, 2)]
    poller = headrace.Poller(*subscriptions)
    assert isinstance(poller, headrace.Poller)
    assert poller.subscriptions == tuple(subscriptions)
    for life in range(2):
        assert all(one.wait_until_connected(TIMEOUT_S) for one in subscriptions)
        for _ in range(2):
            for number, publication in enumerate(publications):
                publication.offer_blocking(b"%d %d" % (life, number), timeout_s=TIMEOUT_S)
        found = [poller.receive(TIMEOUT_S), poller.poll_message(), *(next(poller) for _ in range(2))]
        expected = [
            (subscription, b"%d %d" % (life, number)) for number, subscription in enumerate(subscriptions)
        ]
        assert [(pair[0], pair[1].payload) for pair in found if pair is not None] == expected * 2
        site.lose_driver()
        assert poller.poll_message() is None
        assert poller.poll(lambda *_: None) == 0
        assert poller.receive(0.01) is None
        site.restart()
    polled: list[tuple[object, bytes]] = []
    publications[1].offer_blocking(b"polled", timeout_s=TIMEOUT_S)
    await_true(lambda: poller.poll(lambda *event: polled.append(event[:2])) == 1)
    assert polled == [(subscriptions[1], b"polled")]
    subscriptions[0].close()
    publications[1].offer_blocking(b"last", timeout_s=TIMEOUT_S)

    async def first() -> list[tuple[object, bytes]]:
        return [(one, message.payload) async for one, message in poller if subscriptions[1].close() is None]

    assert asyncio.run(first()) == [(subscriptions[1], b"last")]
    with pytest.raises(headrace.ClosedError, match="all subscriptions of the poller are closed"):
        poller.poll_message()
    assert list(poller) == []


def test_a_poller_whose_receive_waits_goes_on_with_the_next_driver(site: Site) -> None:
    subscription = site.client.add_subscription(IPC, 1)
    poller = headrace.Poller(subscription)
    found: list[object] = []
    waiting = threading.Thread(target=lambda: found.append(poller.receive(TIMEOUT_S)))
    waiting.start()
    site.lose_driver()
    site.restart()
    with site.client.current.add_publication(IPC, 1) as publication:
        publication.offer_blocking(b"later", timeout_s=TIMEOUT_S)
        waiting.join(TIMEOUT_S)
    ((source, message),) = found  # type: ignore[misc]
    assert (source, message.payload) == (subscription, b"later")


def test_what_a_handler_of_a_poller_raises_comes_out(site: Site) -> None:
    publication, subscription = site.client.add_publication(IPC, 1), site.client.add_subscription(IPC, 1)
    poller = headrace.Poller(subscription)
    publication.offer_blocking(b"x", timeout_s=TIMEOUT_S)

    def fail(*_: object) -> None:
        raise headrace.ClosedError("mine")

    assert subscription.wait_until_connected(TIMEOUT_S)
    with pytest.raises(headrace.ClosedError, match="mine"):
        await_true(lambda: poller.poll(fail) != 0)


def test_publications_and_subscriptions_come_back_and_it_is_told(site: Site) -> None:
    publication = site.client.add_publication(IPC, 1)
    exclusive = site.client.add_exclusive_publication(IPC, 1)
    subscription = site.client.add_subscription(IPC, 1)
    for life in range(1, 3):
        publication.offer_blocking(b"shared")
        exclusive.offer_blocking(b"exclusive")
        received = [subscription.receive(timeout_s=TIMEOUT_S) for _ in range(2)]
        assert sorted(message.payload for message in received if message) == [b"exclusive", b"shared"]
        site.lose_driver()
        site.restart()
        assert site.client.reconnect_count == life
    # In turn: why, and that everything came back. A handler is told after the count has changed.
    await_true(lambda: len(site.events) == 4)
    assert [type(event) for event in site.events[1::2]] == [ReconnectingClient] * 2
    assert all(isinstance(event, headrace.HeadraceError) for event in site.events[::2])
    assert [each.is_closed for each in (publication, subscription, site.client)] == [False] * 3
    assert "connected" in repr(publication)


def test_without_a_driver_nothing_is_connected_and_nothing_arrives(site: Site) -> None:
    publication = site.client.add_publication(IPC, 1)
    subscription = site.client.add_subscription(IPC, 1)
    site.lose_driver()
    assert publication.offer(b"x") is OfferResult.NOT_CONNECTED
    assert publication.try_claim(1) is OfferResult.NOT_CONNECTED
    batch = publication.offer_batch([b"x", b"y"])
    assert (batch.accepted, batch.requested, batch.stopped_by) == (0, 2, OfferResult.NOT_CONNECTED)
    with pytest.raises(headrace.PublicationTimeoutError, match=r"no driver in .* came back within"):
        publication.offer_blocking(b"x", timeout_s=0.01)
    with pytest.raises(headrace.PublicationTimeoutError):
        publication.claim_blocking(1, timeout_s=0.01)
    assert not publication.wait_until_connected(0.01)
    assert not publication.wait_for_subscribers(1, 0.01)
    assert subscription.poll(print) == subscription.controlled_poll(print) == 0
    assert subscription.poll_message() is None
    assert subscription.receive(timeout_s=0.01) is None
    assert not subscription.wait_until_connected(0.01)
    assert list(subscription.poll_batch()) == []
    assert not subscription.is_connected


def in_thread(call: Callable[[], object]) -> Callable[[], object]:
    """Starts a call; gives what waits for its result."""
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()

    def result() -> object:
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()
        return results[0]

    return result


def test_what_waits_goes_on_with_the_next_driver(site: Site) -> None:
    publication = site.client.add_publication(IPC, 1)
    subscription = site.client.add_subscription(IPC, 1)
    first = in_thread(lambda: next(subscription).payload)
    site.lose_driver()
    sent = in_thread(lambda: publication.offer_blocking(b"after", timeout_s=None))
    site.restart()
    assert sent() == 64
    assert first() == b"after"


def test_asyncio_goes_on_with_the_next_driver(site: Site) -> None:
    publication = site.client.add_publication(IPC, 1)
    subscription = site.client.add_subscription(IPC, 1)

    async def talk() -> list[bytes]:
        received = []
        messages = aiter(subscription)
        await publication.offer_async(b"before", timeout_s=TIMEOUT_S)
        received.append((await anext(messages)).payload)
        waiting = asyncio.create_task(anext(messages))
        await asyncio.to_thread(site.lose_driver)
        with pytest.raises(headrace.PublicationTimeoutError):
            await publication.offer_async(b"too early", timeout_s=0.01)
        offering = asyncio.create_task(publication.offer_async(b"after", timeout_s=TIMEOUT_S))
        await asyncio.to_thread(site.restart)
        await offering
        received.append((await waiting).payload)
        # A cancelled wait takes nothing with it.
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(messages), 0.01)
        await publication.offer_async(b"last", timeout_s=TIMEOUT_S)
        received.append((await anext(messages)).payload)
        site.client.close()
        with pytest.raises(StopAsyncIteration):
            await anext(messages)
        return received

    assert asyncio.run(asyncio.wait_for(talk(), TIMEOUT_S)) == [b"before", b"after", b"last"]


def test_closing_is_for_good_with_and_without_a_driver(site: Site) -> None:
    closed = site.client.add_publication(IPC, 1)
    kept = site.client.add_subscription(IPC, 1)
    waiting = in_thread(lambda: list(kept))
    closed.close()
    assert closed.offer(b"x") is OfferResult.CLOSED
    site.lose_driver()
    site.restart()
    assert closed.is_closed
    assert closed.offer(b"x") is OfferResult.CLOSED
    site.lose_driver()
    site.client.close()
    assert waiting() == []
    assert kept.is_closed
    with pytest.raises(headrace.ClosedError):
        kept.receive()
    with pytest.raises(headrace.ClosedError):
        site.client.add_publication(IPC, 2)
    with pytest.raises(headrace.PublicationClosedError):
        closed.offer_blocking(b"x")
    assert not closed.wait_until_connected()
    site.client.close()


def test_what_is_added_without_a_driver_waits_for_one(site: Site) -> None:
    site.lose_driver()
    added = in_thread(lambda: site.client.add_subscription(IPC, 3))
    site.restart()
    subscription = added()
    publication = site.client.add_publication(IPC, 3)
    publication.offer_blocking(b"x")
    assert subscription.receive(timeout_s=TIMEOUT_S).payload == b"x"  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", [LookupError("of the handler"), SystemExit("of the handler")])
def test_a_handler_that_raises_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    def raising(_: object) -> None:
        raise error

    with headrace.MediaDriver.embedded(threading_mode="SHARED", dir_delete_on_shutdown=False) as driver:
        client = headrace.connect(
            driver=driver, reconnect=True, on_disconnect=raising, driver_timeout_ms=TIMEOUT_MS
        )
        directory = driver.directory
    with (
        headrace.MediaDriver(directory=directory, threading_mode="SHARED", dir_delete_on_shutdown=True),
        client,
    ):
        await_true(lambda: client.reconnect_count == 1)
    assert "a handler raised" in caplog.text


def test_the_end_of_a_driver_is_told_once(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """With its reason by the client that ended; the one that goes on says that it does."""
    caplog.set_level(logging.INFO, "headrace.client")
    site.lose_driver()
    site.start()
    await_true(lambda: site.client.reconnect_count == 1)
    told = [one.getMessage() for one in caplog.records if one.name == "headrace.client"]
    assert sum("stopped" in text or "lost" in text for text in told) == 1, told
    where = f"directory={site.client.directory}"
    assert f"headrace client: connecting again: {where}" in told


def test_what_the_next_driver_refuses_is_a_warning(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """The client asks again until the driver does it, and the log says why it is not back."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as first:
        first.bind(("127.0.0.1", 0))
        address = first.getsockname()
    site.client.add_subscription(f"aeron:udp?endpoint=127.0.0.1:{address[1]}", 1)
    site.lose_driver()

    def refusals() -> list[str]:
        texts = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
        return [text for text in texts if "not connected again yet" in text]

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(address)
        site.start()
        await_true(lambda: any("Address already in use" in text for text in refusals()))
    await_true(lambda: site.client.reconnect_count == 1)


def test_a_fault_while_everything_comes_back_is_told_and_tried_again(
    site: Site, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is no word of a driver too, such as too many open files."""
    subscription = site.client.add_subscription(IPC, 1)
    add, faults = subscription._add, [OSError("of the machine")]

    def add_at_the_second_time(client: headrace.Client) -> headrace.Subscription:
        if faults:
            raise faults.pop()
        return add(client)

    monkeypatch.setattr(subscription, "_add", add_at_the_second_time)
    site.lose_driver()
    site.restart()
    (told,) = (one for one in caplog.records if "of the machine" in one.getMessage())
    assert (told.levelno, bool(told.exc_info)) == (logging.WARNING, True)


@pytest.mark.parametrize("kind", ["poll", "controlled_poll"])
@pytest.mark.parametrize(
    "error",
    [headrace.ServerLostError("of a request"), LookupError("of the program")],
    ids=["of the package", "of the program"],
)
def test_what_a_handler_raises_comes_out_of_the_poll_also_while_the_driver_goes(
    site: Site, kind: str, error: Exception
) -> None:
    """Its message counts as consumed: a poll that took it for the driver's end would lose it without a word."""
    publication = site.client.add_publication(IPC, 1)
    subscription = site.client.add_subscription(IPC, 1)
    publication.offer_blocking(b"x", timeout_s=TIMEOUT_S)

    def handler(payload: bytes, header: headrace.Header) -> None:
        site.driver.close()
        await_true(lambda: subscription.current.is_closed)
        raise error

    with pytest.raises(type(error)) as raised:
        await_true(lambda: getattr(subscription, kind)(handler))
    assert raised.value is error
    # The same handler meets no message without a driver.
    assert getattr(subscription, kind)(handler) == 0
    with pytest.raises(TypeError, match="handler=None: must be callable"):
        getattr(subscription, kind)(None)


def test_an_event_loop_that_closes_at_that_moment_keeps_nothing_from_being_told(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that a thread closes between a look at it and the call."""
    publication = site.client.add_publication(IPC, 1)
    site.lose_driver()
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(publication.offer_async(b"x", timeout_s=None))
    while not site.client._wakers:
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    with monkeypatch.context() as race:
        race.setattr(loop, "is_closed", lambda: False)
        site.client.close()
    assert site.client.current.is_closed
    waiting._log_destroy_pending = False  # type: ignore[attr-defined]


def test_a_driver_that_no_thread_runs_is_refused() -> None:
    """The client would find it gone at its first request."""
    with headrace.MediaDriver.embedded(threading_mode="INVOKER") as driver:
        with pytest.raises(headrace.ConfigError, match=r'reconnect=True: .*threading_mode="SHARED"'):
            headrace.connect(driver=driver, reconnect=True)
        with headrace.connect(driver=driver) as client:
            client.add_publication(IPC, 1)


def test_handlers_without_reconnect_are_refused(media_driver: headrace.MediaDriver) -> None:
    with pytest.raises(headrace.ConfigError, match=r"on_reconnect=.*: is only called with reconnect=True"):
        headrace.connect(driver=media_driver, on_reconnect=print)  # type: ignore[call-overload]


def test_no_first_driver_is_an_error_as_without_reconnect(tmp_path: Path) -> None:
    with pytest.raises(headrace.DriverTimeoutError):
        headrace.connect(tmp_path, reconnect=True, driver_timeout_ms=50)


def test_asyncio_connects_and_closes_without_blocking_the_loop(media_driver: headrace.MediaDriver) -> None:
    async def talk() -> bytes:
        async with await aio.connect(driver=media_driver, reconnect=True) as client:
            subscription = await asyncio.to_thread(client.add_subscription, IPC, 8200)
            publication = await asyncio.to_thread(client.add_publication, IPC, 8200)
            await publication.offer_async(b"x", timeout_s=TIMEOUT_S)
            message = await anext(aiter(subscription))
        assert client.is_closed
        return message.payload

    assert asyncio.run(asyncio.wait_for(talk(), TIMEOUT_S)) == b"x"


def test_the_destinations_of_a_publication_come_back(site: Site) -> None:
    """Those that were added and not removed; the program's ids hold for each driver."""
    near, gone, by_id = ("aeron:udp?endpoint=127.0.0.1:0" for _ in range(3))
    receivers = [site.client.add_subscription(channel, 1) for channel in (near, gone, by_id)]
    await_true(lambda: all(receiver.resolved_endpoint for receiver in receivers))
    channels = [f"aeron:udp?endpoint={receiver.resolved_endpoint}" for receiver in receivers]
    for receiver in receivers:
        receiver.close()
    publication = site.client.add_publication("aeron:udp?control-mode=manual|control=127.0.0.1:0", 1)
    publication.add_destination(channels[0])
    asyncio.run(publication.add_destination_async(channels[1]))
    registration_id = publication.add_destination(channels[2])
    publication.remove_destination(channels[1])
    for _ in range(2):
        site.lose_driver()
        site.restart()
    again = [site.client.add_subscription(channel, 1) for channel in channels]
    assert again[0].wait_until_connected(TIMEOUT_S)
    assert again[2].wait_until_connected(TIMEOUT_S)
    assert not again[1].is_connected
    publication.remove_destination_by_id(registration_id)
    await_true(lambda: not again[2].is_connected)
    assert again[0].is_connected


def test_the_destinations_of_a_subscription_come_back(site: Site) -> None:
    subscription = site.client.add_subscription("aeron:udp?control-mode=manual", 1)
    registration_id = subscription.add_destination("aeron:ipc")
    site.lose_driver()
    site.restart()
    publication = site.client.add_publication("aeron:ipc", 1)
    publication.offer_blocking(b"x", timeout_s=TIMEOUT_S)
    assert subscription.receive(timeout_s=TIMEOUT_S).payload == b"x"
    subscription.remove_destination_by_id(registration_id)
    await_true(lambda: not publication.is_connected)


def test_the_id_of_a_removed_destination_removes_no_other_one_of_the_next_driver(site: Site) -> None:
    """The next driver gives the numbers of the last one again."""
    subscription = site.client.add_subscription("aeron:udp?control-mode=manual", 1)
    gone = [subscription.add_destination("aeron:udp?endpoint=127.0.0.1:0") for _ in range(3)]
    stays = subscription.add_destination("aeron:ipc")
    for registration_id in gone:
        subscription.remove_destination_by_id(registration_id)
    site.lose_driver()
    site.restart()
    publication = site.client.add_publication("aeron:ipc", 1)
    assert publication.wait_until_connected(TIMEOUT_S)
    for registration_id in range(stays):
        subscription.remove_destination_by_id(registration_id)
    assert publication.offer(b"x") == 64
    for wrong, error in ((None, TypeError), (1 << 63, headrace.ConfigError)):
        with pytest.raises(error, match="registration_id="):
            subscription.remove_destination_by_id(wrong)  # type: ignore[arg-type]
    subscription.remove_destination_by_id(stays)
    await_true(lambda: not publication.is_connected)


@pytest.mark.parametrize("is_publication", [True, False])
def test_a_destination_that_the_next_driver_refuses_is_told_and_can_be_removed(
    site: Site, monkeypatch: pytest.MonkeyPatch, is_publication: bool
) -> None:
    """Nothing comes back without it, so that the program has to be able to take it away, or to find out why."""
    manual = "aeron:udp?control-mode=manual"
    stream: ReconnectingPublication | ReconnectingSubscription
    if is_publication:
        stream = site.client.add_publication(f"{manual}|control=127.0.0.1:0", 1)
    else:
        stream = site.client.add_subscription(manual, 1)
    kept = stream.add_destination("aeron:udp?endpoint=127.0.0.1:40199")
    refused = stream.add_destination("aeron:udp?endpoint=127.0.0.1:40198")
    site.lose_driver()
    restore = Destinations.restore

    def restore_what_is_taken(destinations: Destinations, stream: headrace.Subscription) -> object:
        if "40198" in str(destinations._channels):
            raise headrace.RegistrationError("not that one", 11, 7)
        return restore(destinations, stream)

    monkeypatch.setattr(Destinations, "restore", restore_what_is_taken)
    for module in (_reconnecting, _reconnecting_streams):
        monkeypatch.setattr(module, "ADD_TIMEOUT_S", 0.01)
    site.start()
    await_true(lambda: site.client._refusal)
    calls: list[Callable[[], object]] = [
        lambda: stream.add_destination("aeron:udp?endpoint=127.0.0.1:40197"),
        lambda: stream.remove_destination("aeron:udp?endpoint=127.0.0.1:40197"),
        lambda: site.client.add_subscription(IPC, 2),
    ]
    for call in calls:
        with pytest.raises(
            headrace.DriverTimeoutError, match=r"did not accept all streams again.*not that one"
        ):
            call()
    stream.remove_destination_by_id(refused)
    await_true(lambda: site.client.state is ConnectionState.CONNECTED)
    stream.remove_destination_by_id(kept)


def restarting_before_the_first_note(
    site: Site, subscription: ReconnectingSubscription, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver has answered; before that is noted, the next driver is there."""
    noting = subscription._noting

    def later(native: headrace.Subscription) -> object:
        monkeypatch.undo()
        site.lose_driver()
        site.restart()
        return noting(native)

    monkeypatch.setattr(subscription, "_noting", later)


def test_a_destination_that_the_last_driver_took_at_its_end_is_added_to_the_next(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription = site.client.add_subscription("aeron:udp?control-mode=manual", 1)
    publication = site.client.add_publication("aeron:ipc", 1)
    for add in (
        subscription.add_destination,
        lambda text: asyncio.run(subscription.add_destination_async(text)),
    ):
        restarting_before_the_first_note(site, subscription, monkeypatch)
        registration_id = add("aeron:ipc")
        assert publication.wait_until_connected(TIMEOUT_S)
        subscription.remove_destination_by_id(registration_id)
        await_true(lambda: not publication.is_connected)


def test_a_destination_that_the_last_driver_removed_at_its_end_is_removed_from_the_next(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription = site.client.add_subscription("aeron:udp?control-mode=manual", 1)
    publication = site.client.add_publication("aeron:ipc", 1)
    removals: list[Callable[[int], object]] = [
        lambda _: subscription.remove_destination("aeron:ipc"),
        subscription.remove_destination_by_id,
        lambda _: asyncio.run(subscription.remove_destination_async("aeron:ipc")),
        lambda known: asyncio.run(subscription.remove_destination_by_id_async(known)),
    ]
    for remove in removals:
        registration_id = subscription.add_destination("aeron:ipc")
        assert publication.wait_until_connected(TIMEOUT_S)
        restarting_before_the_first_note(site, subscription, monkeypatch)
        remove(registration_id)
        await_true(lambda: not publication.is_connected)
        assert not subscription._destinations._channels


def test_a_change_of_destinations_while_they_are_restored_is_not_lost(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription = site.client.add_subscription("aeron:udp?control-mode=manual", 1)
    gone = subscription.add_destination("aeron:ipc?alias=gone")
    restore = Destinations.restore
    native = subscription.current

    def changed_meanwhile(destinations: Destinations, next_native: headrace.Subscription) -> object:
        monkeypatch.undo()
        restored = restore(destinations, next_native)
        subscription._note_added(native, "aeron:ipc?alias=new", 7)
        subscription.remove_destination_by_id(gone)
        return restored

    site.lose_driver()
    monkeypatch.setattr(Destinations, "restore", changed_meanwhile)
    site.restart()
    publication = site.client.add_publication("aeron:ipc", 1)
    assert publication.wait_until_connected(TIMEOUT_S)
    subscription.remove_destination("aeron:ipc?alias=new")
    await_true(lambda: not publication.is_connected)


def test_no_two_destinations_have_one_id(site: Site) -> None:
    """Also when the next driver gives the numbers of the last one again, and to threads that add at once."""
    subscription = site.client.add_subscription("aeron:udp?control-mode=manual", 1)
    known: list[int] = []
    for _ in range(2):
        known += [subscription.add_destination("aeron:udp?endpoint=127.0.0.1:0") for _ in range(2)]
        subscription.remove_destination_by_id(known[-1])
        site.lose_driver()
        site.restart()
    results = [in_thread(lambda: subscription.add_destination("aeron:ipc")) for _ in range(4)]
    known += [result() for result in results]  # type: ignore[misc]
    assert len(set(known)) == len(known) == 8
