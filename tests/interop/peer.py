"""Our side of the interoperability tests, with the same arguments as `java/Peer.java`.

usage: python -m tests.interop.peer publish DIR CHANNEL STREAM COUNT MIN_LENGTH MAX_LENGTH SEED [DESTINATION...]
       python -m tests.interop.peer subscribe DIR CHANNEL STREAM COUNT [DESTINATION...]
       python -m tests.interop.peer request DIR CHANNEL STREAM COUNT MIN_LENGTH MAX_LENGTH SEED ANSWERS ANSWERS_STREAM
       python -m tests.interop.peer answer DIR CHANNEL STREAM COUNT ANSWERS ANSWERS_STREAM

Requests come back as answers, on the channel and stream that the last two name.

Where a channel has `ts-offset=reserved`, the reserved value of each message is a time of this day, in nanoseconds.
Where it has `ts-offset=N`, so are the eight bytes from N on of each message that has them, and only the others are as
published.
"""

import re
import struct
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import headrace
from tests.interop.messages import HEADER, Checker, message

DEADLINE_S = 120.0
DAY_NS = 24 * 3600 * 1_000_000_000
TIME = struct.Struct("<q")
Handler = Callable[[bytes, headrace.Header], None]


def check_time(time_ns: int) -> None:
    """Insists on a time of this day."""
    assert abs(time.time_ns() - time_ns) < DAY_NS, f"timestamp {time_ns}"


class Stamped:
    """Insists on a timestamp in each message."""

    def __init__(self, checker: Checker, offset: int | None) -> None:
        """Hands messages on to the checker; the timestamp is in their payload, or else in the reserved value."""
        self._checker = checker
        self._offset = offset

    def __call__(self, payload: bytes, header: headrace.Header) -> None:
        """Checks one message."""
        if self._offset is None:
            check_time(header.reserved_value)
        elif len(payload) >= self._offset + TIME.size:
            payload = self._as_published(payload, self._offset)
        self._checker(payload, header)

    @staticmethod
    def _as_published(payload: bytes, offset: int) -> bytes:
        check_time(*TIME.unpack_from(payload, offset))
        index, seed = HEADER.unpack_from(payload)
        end = offset + TIME.size
        return payload[:offset] + message(seed, index, len(payload), len(payload))[offset:end] + payload[end:]


def handler_of(channel: str, checker: Checker) -> Handler:
    """What a channel's messages go to."""
    stamped = re.search(r"ts-offset=(reserved|\d+)", channel)
    if stamped is None:
        return checker
    return Stamped(checker, None if stamped[1] == "reserved" else int(stamped[1]))


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
    handler = handler_of(channel, checker)
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


def request(
    directory: str, requests: tuple[str, int], answers: tuple[str, int], messages: Sequence[bytes]
) -> None:
    """Sends messages, and insists that the same come back, and no others."""
    deadline = time.monotonic() + DEADLINE_S
    received: list[bytes] = []
    idle = headrace.BackoffIdleStrategy()
    with (
        headrace.Client.connect(directory=directory) as client,
        client.add_subscription(*answers) as subscription,
        client.add_publication(
            f"{requests[0]}|response-correlation-id={subscription.registration_id}", requests[1]
        ) as publication,
    ):
        print("READY", flush=True)
        sent = 0
        while len(received) < len(messages):
            work = subscription.poll(lambda payload, _: received.append(payload), 64)
            if sent < len(messages) and publication.offer(messages[sent]):
                sent += 1
                work += 1
            idle.idle(work)
            assert time.monotonic() < deadline, f"sent {sent}, received {len(received)} of {len(messages)}"
    assert received == list(messages), "the answers differ from the requests"
    print("DONE", len(received), flush=True)


def keep(messages: list[tuple[int, bytes]], image_id: int, payload: bytes, _: headrace.Header) -> None:
    """Takes a message of an image."""
    messages.append((image_id, payload))


def answer(directory: str, requests: tuple[str, int], answers: tuple[str, int], count: int) -> None:
    """Sends each message back to the one that sent it."""
    deadline = time.monotonic() + DEADLINE_S
    publications: dict[int, headrace.Publication] = {}
    idle = headrace.BackoffIdleStrategy()
    with (
        headrace.Client.connect(directory=directory) as client,
        client.add_subscription(*requests) as subscription,
    ):
        print("READY", flush=True)
        answered = 0
        while answered < count:
            messages: list[tuple[int, bytes]] = []
            for image in subscription.images:
                image.poll(partial(keep, messages, image.correlation_id), 10)
            for image_id, payload in messages:
                if image_id not in publications:
                    channel = f"{answers[0]}|response-correlation-id={image_id}"
                    publications[image_id] = client.add_publication(channel, answers[1])
                publications[image_id].offer_blocking(payload, timeout_s=DEADLINE_S)
            answered += len(messages)
            idle.idle(len(messages))
            assert time.monotonic() < deadline, f"answered {answered} of {count}"
        while any(publication.is_connected for publication in publications.values()):
            assert time.monotonic() < deadline, "a requester stays"
            time.sleep(0.01)
    print("DONE", answered, flush=True)


def main() -> None:
    """Plays the role named on the command line."""
    match sys.argv[1:]:
        case ["publish", directory, channel, stream_id, count, min_length, max_length, seed, *destinations]:
            lengths = int(min_length), int(max_length)
            publish(directory, channel, int(stream_id), int(count), lengths, int(seed), destinations)
        case ["subscribe", directory, channel, stream_id, count, *destinations]:
            subscribe(directory, channel, int(stream_id), int(count), destinations)
        case ["request", directory, channel, stream_id, count, low, high, seed, answers, answers_stream]:
            messages = [message(int(seed), index, int(low), int(high)) for index in range(int(count))]
            request(directory, (channel, int(stream_id)), (answers, int(answers_stream)), messages)
        case ["answer", directory, channel, stream_id, count, answers, answers_stream]:
            answer(directory, (channel, int(stream_id)), (answers, int(answers_stream)), int(count))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
