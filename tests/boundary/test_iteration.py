"""``for message in subscription``: what ends it, and what does not."""

from __future__ import annotations

import signal
import threading

import pytest

import headrace
from tests.helpers import TIMEOUT_S

pytestmark = pytest.mark.boundary


def test_it_gives_each_message_once_and_leaving_it_takes_none(stream):
    publication, subscription = stream
    publication.offer_batch([b"first", b"second", b"third"])
    for message in subscription:
        assert message.payload == b"first"
        break
    assert next(subscription).payload == b"second"
    assert subscription.receive(timeout_s=TIMEOUT_S).payload == b"third"


def test_it_waits_and_ends_when_the_program_closes_the_subscription(stream):
    publication, subscription = stream
    received, third = [], threading.Event()

    def read():
        for message in subscription:
            received.append(message.payload)
            if len(received) == 3:
                third.set()

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(3):
        publication.offer_blocking(bytes([number]))
    assert third.wait(TIMEOUT_S)
    subscription.close()
    reader.join(TIMEOUT_S)
    assert not reader.is_alive()
    assert received == [b"\0", b"\1", b"\2"]
    assert list(subscription) == []


def test_what_a_signal_handler_raises_that_has_closed_the_subscription_comes_out(stream):
    _, subscription = stream

    class Stop(Exception):
        pass

    def stop(*_):
        subscription.close()
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Stop):
            next(subscription)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_it_ends_when_the_program_closes_the_client(media_driver):
    client = media_driver.connect()
    subscription = client.add_subscription("aeron:ipc", 8100)
    client.close()
    assert list(subscription) == []


def test_a_driver_that_ends_is_an_error_and_not_an_end():
    with (
        headrace.MediaDriver.embedded(threading_mode="SHARED") as driver,
        driver.connect() as client,
    ):
        subscription = client.add_subscription("aeron:ipc", 8101)
        driver.close()
        with pytest.raises(headrace.HeadraceError) as raised:
            next(subscription)
        assert not isinstance(raised.value, headrace.ClosedError)


def test_ctrl_c_ends_the_wait_and_not_the_iteration(stream):
    publication, subscription = stream
    messages = iter(subscription)
    interrupt = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])

    def wait():
        # Here, that a signal which comes before the wait is expected as well.
        interrupt.start()
        next(messages)

    with pytest.raises(KeyboardInterrupt):
        wait()
    interrupt.join()
    publication.offer(b"after Ctrl-C")
    assert next(messages).payload == b"after Ctrl-C"
