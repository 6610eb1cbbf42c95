"""Streams and channels beside Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import headrace
from tests.ports import free_endpoint

CHANNEL = "aeron:ipc?term-length=256k"


@contextmanager
def listening(client: headrace.Client, stream_id: int) -> Iterator[list[bytes]]:
    """What comes on a stream of ``CHANNEL``, while Spark publishes from other processes."""
    received: list[bytes] = []
    done = threading.Event()

    def listen() -> None:
        with client.add_subscription(CHANNEL, stream_id) as subscription:
            while not done.is_set():
                message = subscription.poll_batch(1000).to_list()
                received.extend(message)
                if not message:
                    done.wait(0.001)

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield received
    finally:
        done.set()
        thread.join()


def free_udp_channel() -> str:
    """A channel on loopback with a port that no program uses, for an archive that must say where it is."""
    return f"aeron:udp?endpoint={free_endpoint()}"
