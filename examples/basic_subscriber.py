"""Print text messages. Needs a driver (`headrace driver`); send with `basic_publisher.py`, or with Aeron's."""

import argparse

import headrace

CHANNEL = "aeron:udp?endpoint=localhost:20121"
STREAM_ID = 1001


def main(channel: str, count: int) -> None:
    received = 0

    def on_message(payload: bytes, header: headrace.Header) -> None:
        nonlocal received
        received += 1
        print(f"stream {header.stream_id} session {header.session_id}: {payload.decode()}")

    with (
        headrace.connect() as client,
        client.add_subscription(channel, STREAM_ID) as subscription,
    ):
        idle = headrace.BlockingIdleStrategy(subscription)
        while received < count:
            # Returns at once if the poll found messages; else it soon sleeps until one arrives.
            idle.idle(subscription.poll(on_message))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("channel", nargs="?", default=CHANNEL)
    parser.add_argument("count", nargs="?", type=int, default=10)
    main(**vars(parser.parse_args()))
