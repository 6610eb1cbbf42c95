"""What the event log costs: the same work with and without it, in turns. `python -m benches.events [ROUNDS]`.

Two kinds of work. Messages over IPC cause no event: their rate, by the clock. Images that come and go over UDP cause
some 15 events each: processor time of driver and client, which run in the thread that measures, for each image. Rounds
with and without the log follow each other, so other work on the machine falls on both. The ratio is of one round to
its neighbour; its median is what counts.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import headrace
from benches.processes import headrace_driver, native, output

_ROUNDS = 10
_IMAGES = 1000
_IPC = "aeron:ipc"
_UDP = "aeron:udp?endpoint=127.0.0.1:24983|term-length=64k|linger=0"
_STREAM_ID = 1
_EVENT_LIMIT = 1024


def ipc_throughput(event_limit: int) -> float:
    """Messages of 32 bytes a second, native."""
    settings = {"aeron.headrace.event.limit": str(event_limit)}
    with headrace_driver(f"events-{event_limit}", "SHARED", settings) as directory:
        lines = output(native("throughput", directory, _IPC, 32, 32, 3, 1000))
    windows = [tuple(map(int, line.split())) for line in lines]
    return statistics.median(count * 1e9 / duration for count, duration in windows[1:])


def image_churn(event_limit: int) -> float:
    """Microseconds of processor time for a publication that is added over UDP, makes an image, and is closed."""
    with (
        headrace.MediaDriver.embedded(threading_mode="INVOKER", event_limit=event_limit) as driver,
        driver.connect(use_invoker=True) as client,
        client.add_subscription(_UDP, _STREAM_ID) as subscription,
        # Keeps the socket.
        client.add_exclusive_publication(_UDP, _STREAM_ID + 1),
    ):
        start = time.process_time()
        for _ in range(_IMAGES):
            with client.add_exclusive_publication(_UDP, _STREAM_ID) as publication:
                while subscription.image_by_session_id(publication.session_id) is None:
                    driver.invoke()
                    client.invoke()
        return (time.process_time() - start) * 1e6 / _IMAGES


def main(round_count: int) -> None:
    """Print each pair of rounds, then the median ratio of each kind of work."""
    kinds: tuple[tuple[Callable[[int], float], str], ...] = (
        (image_churn, "us/image"),
        (ipc_throughput, "messages/s"),
    )
    for work, unit in kinds:
        ratios = []
        for number in range(round_count):
            # Whichever is second may find a quieter machine: they take turns.
            limits = (_EVENT_LIMIT, 0) if number % 2 else (0, _EVENT_LIMIT)
            values = {limit: work(limit) for limit in limits}
            on, off = values[_EVENT_LIMIT], values[0]
            ratios.append(on / off)
            print(
                f"{work.__name__}: on {on:,.1f}, off {off:,.1f} {unit}, on/off {ratios[-1]:.3f}", flush=True
            )
        low, _, high = statistics.quantiles(ratios, n=4)
        middle = statistics.median(ratios)
        print(f"{work.__name__}: median of on/off {middle:.3f}, half of all {low:.3f} to {high:.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else _ROUNDS)
