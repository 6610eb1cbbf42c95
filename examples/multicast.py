"""One publisher, three receivers with a driver each, in one multicast group. Starts its own drivers.

All run on this machine, with the group on the loopback interface. On a network, leave `interface` out or name one:
`interface=192.168.0.0/24`.
"""

import argparse
from contextlib import ExitStack

import headrace

CHANNEL = "aeron:udp?endpoint=224.20.30.41:20441|interface=127.0.0.1|term-length=64k"
STREAM_ID = 10
RECEIVERS = 3
COUNT = 1_000


def main() -> None:
    with ExitStack() as stack:

        def client() -> headrace.Client:
            driver = stack.enter_context(headrace.MediaDriver.embedded())
            return stack.enter_context(driver.connect())

        subscriptions = [client().add_subscription(CHANNEL, STREAM_ID) for _ in range(RECEIVERS)]
        publication = client().add_publication(CHANNEL, STREAM_ID)
        for subscription in subscriptions:
            # A receiver that joins later misses the messages sent before.
            assert subscription.wait_until_connected(10.0)

        for number in range(COUNT):
            publication.offer_blocking(number.to_bytes(8, "little"), timeout_s=10.0)
            for subscription in subscriptions:
                message = subscription.receive(timeout_s=10.0)
                assert message is not None
                assert int.from_bytes(message.payload, "little") == number
    print(f"{RECEIVERS} receivers, {COUNT} messages each")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
