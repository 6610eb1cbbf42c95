"""Our side of the interoperability tests, with the same arguments as `java/Peer.java`.

usage: python -m tests.interop.peer publish DIR CHANNEL STREAM COUNT MIN_LENGTH MAX_LENGTH SEED [DESTINATION...]
       python -m tests.interop.peer subscribe DIR CHANNEL STREAM COUNT [DESTINATION...]

Where a channel has `ts-offset=reserved`, the reserved value of each message is a time of this day, in nanoseconds.
"""

import sys
import time
from collections.abc import Sequence

import headrace
from tests.interop.messages import Checker, message

DEADLINE_S = 120.0
DAY_NS = 24 * 3600 * 1_000_000_000


class Stamped:
    """Insists on a timestamp in each message."""

    def __init__(self, checker: Checker) -> None:
        """Hands messages on to the checker."""
        self._checker = checker

    def __call__(self, payload: bytes, header: headrace.Header) -> None:
        """Checks one message."""
        age_ns = time.time_ns() - header.reserved_value
        assert abs(age_ns) < DAY_NS, f"timestamp {header.reserved_value}"
        self._checker(payload, header)


def publish(
    directory: str,
    channel: str,
    stream_id: int,
    count: int,
    lengths: tuple[int, int],
    seed: int,
    destinations: Sequence[str] = (),
) -> None:
    """Offers all messages, then stays until the last subscriber has left."""
    deadline = time.monotonic() + DEADLINE_S
    with (
        headrace.Client.connect(directory=directory) as client,
        client.add_publication(channel, stream_id) as publication,
    ):
        for destination in destinations:
            publication.add_destination(destination)
        print("READY", flush=True)
        for index in range(count):
            publication.offer_blocking(message(seed, index, *lengths), timeout_s=DEADLINE_S)
        while publication.is_connected and time.monotonic() < deadline:
            time.sleep(0.01)
    print("DONE", count, flush=True)


def subscribe(
    directory: str, channel: str, stream_id: int, count: int, destinations: Sequence[str] = ()
) -> None:
    """Checks messages until all have come."""
    deadline = time.monotonic() + DEADLINE_S
    checker = Checker()
    handler = Stamped(checker) if "ts-offset=reserved" in channel else checker
    idle = headrace.BackoffIdleStrategy()
    with (
        headrace.Client.connect(directory=directory) as client,
        client.add_subscription(channel, stream_id) as subscription,
    ):
        for destination in destinations:
            subscription.add_destination(destination)
        print("READY", flush=True)
        while checker.count < count:
            idle.idle(subscription.poll(handler, 64))
            assert time.monotonic() < deadline, f"received {checker.count} of {count}"
    print("DONE", checker.count, flush=True)


def main() -> None:
    """Plays the role named on the command line."""
    match sys.argv[1:]:
        case ["publish", directory, channel, stream_id, count, min_length, max_length, seed, *destinations]:
            lengths = int(min_length), int(max_length)
            publish(directory, channel, int(stream_id), int(count), lengths, int(seed), destinations)
        case ["subscribe", directory, channel, stream_id, count, *destinations]:
            subscribe(directory, channel, int(stream_id), int(count), destinations)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
