"""Two publishers of the same messages, and a subscriber that reads each message once. Starts its own drivers.

Half-way, one publisher dies, and its client reports that its driver has stopped. The subscriber reads on.
"""

import argparse
from contextlib import ExitStack

import headrace

STREAM_ID = 10
COUNT = 1_000
# Two publications are one stream if session, first term and term length agree. `linger` and `mtu` may differ.
SAME_STREAM = "session-id=1001|init-term-id=0|term-id=0|term-offset=0|term-length=64k"


def main() -> None:
    with ExitStack() as stack:
        reader = stack.enter_context(headrace.MediaDriver.embedded())
        client = stack.enter_context(reader.connect())
        subscription = client.add_subscription("aeron:udp?control-mode=manual", STREAM_ID)
        # On a network: one address of this host for each line, or one multicast group each.
        for _ in range(2):
            subscription.add_destination("aeron:udp?endpoint=127.0.0.1:0")

        sides = [stack.enter_context(headrace.MediaDriver.embedded()) for _ in range(2)]
        feeds = [
            side.connect().add_publication(f"aeron:udp?endpoint={address}|{SAME_STREAM}", STREAM_ID)
            for side, address in zip(sides, subscription.local_socket_addresses, strict=True)
        ]
        for feed in feeds:
            assert feed.wait_until_connected(10.0)

        for number in range(COUNT):
            if number == COUNT // 2:
                feeds.pop(0)
                sides[0].close()  # the first side is dead
            for feed in feeds:
                feed.offer_blocking(number.to_bytes(8, "little"), timeout_s=10.0)
            message = subscription.receive(timeout_s=10.0)
            assert message is not None
            assert int.from_bytes(message.payload, "little") == number

        assert len(subscription.images) == 1
        assert subscription.receive(timeout_s=0.1) is None  # no message arrived twice
    print(f"{COUNT} messages, each once; one of two publishers died after {COUNT // 2}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
