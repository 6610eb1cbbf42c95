"""Headrace as users write it; the roles mirror those of the other peers.

usage: headrace_peer.py push-messages|push-batches DIR CHANNEL LENGTH
       headrace_peer.py pull-messages|pull-batches DIR CHANNEL LENGTH WINDOWS WINDOW_S
       headrace_peer.py ping DIR CHANNEL LENGTH SAMPLES | pong DIR CHANNEL | start
       headrace_peer.py udp-ping CHANNEL BACK LENGTH SAMPLES | udp-pong CHANNEL BACK
"""

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from meter import expect, round_trips, spend

import headrace

STREAM_ID = 1001
PONG_STREAM_ID = 1002
POLL_LIMIT = 512
POLLS_PER_TURN = 8
BATCH = 8192


def push_messages(directory: str, channel: str, length: int) -> None:
    """Offers until killed, one call a message."""
    with headrace.Client.connect(directory=directory) as client:
        publication = client.add_publication(channel, STREAM_ID)
        offer = publication.offer
        data = b"x" * length
        idle = headrace.BackoffIdleStrategy()
        while True:
            while offer(data) > 0:
                pass
            idle.idle()


def push_batches(directory: str, channel: str, length: int) -> None:
    """Offers until killed, many messages a call."""
    with headrace.Client.connect(directory=directory) as client:
        publication = client.add_publication(channel, STREAM_ID)
        rows = np.full((BATCH, length), ord("x"), dtype=np.uint8)
        while True:
            publication.offer_batch_blocking(rows, timeout_s=60)


def pull_messages(directory: str, channel: str, length: int, windows: int, window_s: float) -> None:
    """Counts what arrives, one handler call a message."""
    with headrace.Client.connect(directory=directory) as client:
        subscription = client.add_subscription(channel, STREAM_ID)
        expect(subscription.receive().payload, length)
        idle = headrace.BackoffIdleStrategy()
        count = 0

        def handler(payload: bytes, header: headrace.Header) -> None:
            nonlocal count
            count += 1

        def receive() -> int:
            nonlocal count
            count = 0
            for _ in range(POLLS_PER_TURN):
                idle.idle(subscription.poll(handler, POLL_LIMIT))
            return count

        spend(windows, window_s, receive)


def pull_batches(directory: str, channel: str, length: int, windows: int, window_s: float) -> None:
    """Counts what arrives, many messages a call."""
    with headrace.Client.connect(directory=directory) as client:
        subscription = client.add_subscription(channel, STREAM_ID)
        expect(subscription.receive().payload, length)
        idle = headrace.BackoffIdleStrategy()

        def receive() -> int:
            batch = subscription.poll_batch(BATCH)
            idle.idle(len(batch))
            return len(batch)

        spend(windows, window_s, receive)


def ping(directory: str, channel: str, length: int, samples: int) -> None:
    """One message out, one back, spinning."""
    with headrace.Client.connect(directory=directory) as client:
        subscription = client.add_subscription(channel, PONG_STREAM_ID)
        publication = client.add_publication(channel, STREAM_ID)
        while not (publication.is_connected and subscription.is_connected):
            time.sleep(0.001)
        data = b"x" * length
        offer, poll = publication.offer, subscription.poll

        def handler(payload: bytes, header: headrace.Header) -> None:
            pass

        def once() -> None:
            while offer(data) <= 0:
                pass
            while not poll(handler, 1):
                pass

        publication.offer_blocking(data)
        expect(subscription.receive().payload, length)
        round_trips(samples, samples // 10, once)


def pong(directory: str, channel: str) -> None:
    """Echoes until killed."""
    with headrace.Client.connect(directory=directory) as client:
        subscription = client.add_subscription(channel, STREAM_ID)
        publication = client.add_publication(channel, PONG_STREAM_ID)
        offer, poll = publication.offer, subscription.poll

        def handler(payload: bytes, header: headrace.Header) -> None:
            while offer(payload) <= 0:
                pass

        print("READY", flush=True)
        while True:
            poll(handler, 1)


@contextmanager
def driven() -> Iterator[tuple[headrace.Client, Callable[[], object]]]:
    """A client of a driver in this process, and a turn of both: one busy thread."""
    with (
        headrace.MediaDriver.embedded(threading_mode="INVOKER") as driver,
        headrace.connect(driver=driver, use_invoker=True) as client,
    ):
        turns = 0

        def drive() -> None:
            nonlocal turns
            driver.invoke()
            turns += 1
            # The client's own duties are seldom due.
            if turns & 1023 == 0:
                client.invoke()

        yield client, drive


def udp_ping(channel: str, back: str, length: int, samples: int) -> None:
    """One message out, one back; the thread that waits runs its driver."""
    with driven() as (client, drive):
        subscription = client.add_subscription(back, PONG_STREAM_ID)
        publication = client.add_publication(channel, STREAM_ID)
        while not (publication.is_connected and subscription.is_connected):
            drive()
        data = b"x" * length
        offer, poll = publication.offer, subscription.poll
        last: list[bytes] = []

        def handler(payload: bytes, header: headrace.Header) -> None:
            last[:] = [payload]

        def once() -> None:
            while offer(data) <= 0:
                drive()
            while not poll(handler, 1):
                drive()

        once()
        expect(last[0], length)
        round_trips(samples, samples // 10, once)


def udp_pong(channel: str, back: str) -> None:
    """Echoes until killed."""
    with driven() as (client, drive):
        subscription = client.add_subscription(channel, STREAM_ID)
        publication = client.add_publication(back, PONG_STREAM_ID)
        offer, poll = publication.offer, subscription.poll

        def handler(payload: bytes, header: headrace.Header) -> None:
            while offer(payload) <= 0:
                drive()

        print("READY", flush=True)
        while True:
            drive()
            poll(handler, 1)


def start() -> None:
    """Prints nanoseconds from `MediaDriver()` to the first message, and resident memory in KiB."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as base:
        begin = time.perf_counter_ns()
        with (
            headrace.MediaDriver(directory=f"{base}/driver") as driver,
            headrace.Client.connect(directory=driver.directory) as client,
        ):
            subscription = client.add_subscription("aeron:ipc", STREAM_ID)
            publication = client.add_publication("aeron:ipc", STREAM_ID)
            publication.offer_blocking(b"hello", timeout_s=10)
            while not subscription.poll(lambda payload, header: None, 1):
                pass
            elapsed_ns = time.perf_counter_ns() - begin
        print(elapsed_ns, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def main() -> None:
    """Plays the role named on the command line."""
    role, *rest = sys.argv[1:]
    match role, rest:
        case "push-messages", [directory, channel, length]:
            push_messages(directory, channel, int(length))
        case "push-batches", [directory, channel, length]:
            push_batches(directory, channel, int(length))
        case "pull-messages", [directory, channel, length, windows, window_s]:
            pull_messages(directory, channel, int(length), int(windows), float(window_s))
        case "pull-batches", [directory, channel, length, windows, window_s]:
            pull_batches(directory, channel, int(length), int(windows), float(window_s))
        case "ping", [directory, channel, length, samples]:
            ping(directory, channel, int(length), int(samples))
        case "pong", [directory, channel]:
            pong(directory, channel)
        case "udp-ping", [channel, back, length, samples]:
            udp_ping(channel, back, int(length), int(samples))
        case "udp-pong", [channel, back]:
            udp_pong(channel, back)
        case "start", []:
            start()
        case _:
            sys.exit(__doc__)


main()
