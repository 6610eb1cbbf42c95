"""Publications, subscriptions and counters that no call waits for."""

import asyncio
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.client import Pending
from tests.helpers import await_true, take

CHANNEL = "aeron:ipc?term-length=64k"
COUNTER_TYPE = 1700


def taken(pending: Pending[Any]) -> object:
    """What was asked for, once it is there."""
    found = None

    def look() -> bool:
        nonlocal found
        found = pending.poll()
        return found is not None

    await_true(look)
    return found


def test_what_was_asked_for_arrives_and_works(media_client: headrace.Client) -> None:
    """Each once, and an image that came first is told of."""
    arrived: list[headrace.Image] = []
    asked = media_client.request_subscription(CHANNEL, 4801, on_available_image=arrived.append)
    publication = taken(media_client.request_exclusive_publication(CHANNEL, 4801))
    assert isinstance(publication, headrace.ExclusivePublication)
    await_true(lambda: arrived)
    subscription = taken(asked)
    assert isinstance(subscription, headrace.Subscription)
    assert asked.poll() is None
    publication.offer_blocking(b"over it")
    assert take(subscription, 1) == [b"over it"]
    counter = taken(media_client.request_counter(COUNTER_TYPE, b"key", "label"))
    assert isinstance(counter, headrace.Counter)
    counter.value = 7
    counter.set_reference_id(-9)
    record = media_client.counters[counter.counter_id]
    assert (record.type_id, record.value, record.reference_id) == (COUNTER_TYPE, 7, -9)
    counter.close()
    with pytest.raises(headrace.ClosedError):
        counter.set_reference_id(0)


def test_a_refusal_is_raised_by_the_poll_that_finds_it(media_client: headrace.Client) -> None:
    """With the driver's reason, and not again."""
    pending = media_client.request_exclusive_publication("aeron:udp?endpoint=nowhere", 4802)
    with pytest.raises(headrace.RegistrationError, match="endpoint"):
        taken(pending)
    assert pending.poll() is None


@pytest.mark.parametrize("is_answered", [False, True])
def test_what_was_cancelled_is_taken_away_at_the_driver(
    media_client: headrace.Client, is_answered: bool
) -> None:
    """Whether its answer has come or not."""
    pending = media_client.request_counter(COUNTER_TYPE + 1, b"", "cancelled")
    if is_answered:
        # Answers come in order: once a later request is answered, this one was.
        media_client.add_counter(COUNTER_TYPE, b"", "later").close()
    pending.cancel()
    assert pending.poll() is None
    await_true(lambda: all(one.type_id != COUNTER_TYPE + 1 for one in media_client.counters))
    pending.cancel()


def test_a_client_without_a_thread_answers_when_it_is_invoked(media_driver: headrace.MediaDriver) -> None:
    """And not before."""
    with headrace.Client.connect(driver=media_driver, use_invoker=True) as client:
        pending = client.request_counter(COUNTER_TYPE, b"", "invoked")
        found = None
        while found is None:
            assert pending.poll() is None
            client.invoke()
            found = pending.poll()
    with pytest.raises(headrace.ClosedError):
        pending.poll()


@pytest.mark.parametrize("is_ended_by_driver", [False, True])
def test_nothing_is_left_to_cancel_at_a_client_that_has_ended(is_ended_by_driver: bool) -> None:
    """What closes things at the end of a driver cancels what was asked for, too."""
    driver = headrace.MediaDriver.embedded(threading_mode="SHARED")
    with driver, driver.connect() as client:
        pending = client.request_counter(COUNTER_TYPE, b"", "pending")
        (driver if is_ended_by_driver else client).close()
        await_true(lambda: client.is_closed)
        pending.cancel()
        with pytest.raises(headrace.HeadraceError):
            pending.poll()


def test_what_was_taken_or_cancelled_is_not_waited_for(media_client: headrace.Client) -> None:
    async def wait(pending: Pending[Any]) -> object:
        return await pending

    pending = media_client.request_counter(COUNTER_TYPE, b"", "awaited twice")
    assert asyncio.run(wait(pending)) is not None
    cancelled = media_client.request_counter(COUNTER_TYPE, b"", "cancelled")
    cancelled.cancel()
    refused = media_client.request_subscription("aeron:udp?endpoint=nowhere", 4803)
    with pytest.raises(headrace.RegistrationError):
        asyncio.run(wait(refused))
    for one in (pending, cancelled, refused):
        with pytest.raises(headrace.ClientError, match="make it again"):
            asyncio.run(wait(one))


def test_ctrl_c_ends_the_wait_for_a_driver_that_does_not_answer(tmp_path: Path) -> None:
    """No program turns the driver, and the client would wait for ten minutes."""
    with (
        headrace.MediaDriver(directory=tmp_path / "driver", threading_mode="INVOKER") as driver,
        headrace.Client.connect(driver.directory, driver_timeout_ms=600_000) as client,
    ):
        for ask in (
            lambda: client.next_available_session_id(1),
            lambda: client.add_publication("aeron:ipc", 1),
        ):
            interrupt = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
            interrupt.start()
            with pytest.raises(KeyboardInterrupt):
                ask()
            interrupt.join()
