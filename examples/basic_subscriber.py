"""Print text messages. Needs a driver (`headrace driver`); send with `basic_publisher.py`, or with Aeron's.

usage: python basic_subscriber.py [CHANNEL] [COUNT]
"""

import sys

import headrace

CHANNEL = "aeron:udp?endpoint=localhost:20121"
STREAM_ID = 1001


def main(channel: str = CHANNEL, count: str = "10") -> None:
    received = 0

    def on_message(payload: bytes, header: headrace.Header) -> None:
        nonlocal received
        received += 1
        print(f"stream {header.stream_id} session {header.session_id}: {payload.decode()}")

    with (
        headrace.Client.connect() as client,
        client.add_subscription(channel, STREAM_ID) as subscription,
    ):
        idle = headrace.BlockingIdleStrategy(subscription)
        while received < int(count):
            # Does nothing after a poll that brought something; after others it soon sleeps until a message comes.
            idle.idle(subscription.poll(on_message))


if __name__ == "__main__":
    main(*sys.argv[1:])
