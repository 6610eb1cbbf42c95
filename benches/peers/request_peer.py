"""Requests and answers of Headrace as users write them: an echo of bytes.

usage: request_peer.py server DIR | one DIR SAMPLES | many|many-async DIR IN_FLIGHT WINDOWS WINDOW_S
"""

import asyncio
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from meter import expect, round_trips, spend, spend_async

import headrace

CHANNEL = "aeron:ipc"
STREAM_ID = 1001
REQUEST = b"x" * 40


def server(directory: str) -> None:
    """Serves until killed."""
    with (
        headrace.Client.connect(directory=directory) as client,
        headrace.Server(client, CHANNEL, STREAM_ID, lambda request: request) as instance,
    ):
        print("READY", flush=True)
        instance.serve()


@contextmanager
def requester(directory: str) -> Iterator[headrace.Requester]:
    """One that has been answered."""
    with (
        headrace.Client.connect(directory=directory) as client,
        headrace.Requester(client, CHANNEL, STREAM_ID, timeout_s=60) as instance,
    ):
        expect(instance.request(REQUEST), len(REQUEST))
        yield instance


def one(directory: str, samples: int) -> None:
    """Times calls, one after another."""
    with requester(directory) as asked:
        round_trips(samples, samples // 10, lambda: asked.request(REQUEST))


def many(directory: str, in_flight: int, windows: int, window_s: float) -> None:
    """Counts answers while as many calls are under way."""
    with requester(directory) as asked:
        calls = deque(asked.submit(REQUEST) for _ in range(in_flight))

        def receive() -> int:
            for _ in range(in_flight):
                calls.popleft().result()
                calls.append(asked.submit(REQUEST))
            return in_flight

        spend(windows, window_s, receive)


async def many_async(directory: str, in_flight: int, windows: int, window_s: float) -> None:
    """The same from as many coroutines."""
    async with await headrace.aio.connect(directory=directory) as client:
        with headrace.Requester(client, CHANNEL, STREAM_ID, timeout_s=60) as asked:
            expect(await asked.request_async(REQUEST), len(REQUEST))
            await spend_async(windows, window_s, in_flight, lambda: asked.request_async(REQUEST))


def main() -> None:
    """Plays the role named on the command line."""
    role, directory, *rest = sys.argv[1:]
    match role, rest:
        case "server", []:
            server(directory)
        case "one", [samples]:
            one(directory, int(samples))
        case "many", [in_flight, windows, window_s]:
            many(directory, int(in_flight), int(windows), float(window_s))
        case "many-async", [in_flight, windows, window_s]:
            asyncio.run(many_async(directory, int(in_flight), int(windows), float(window_s)))
        case _:
            sys.exit(__doc__)


main()
