"""One publisher, receivers that say where they are, and one that the publisher is told of. Starts its own drivers.

Each receiver gets packets of its own, to its own address: this needs no multicast on the network.
"""

import argparse
from contextlib import ExitStack

import headrace

# On a network: the publisher's own address, which receivers can reach.
CONTROL = "127.0.0.1:20451"
DYNAMIC = f"aeron:udp?control={CONTROL}|control-mode=dynamic|term-length=64k"
MANUAL = "aeron:udp?control-mode=manual|term-length=64k"
STREAM_ID = 10
RECEIVERS = 3
COUNT = 1_000


def main() -> None:
    with ExitStack() as stack:

        def client() -> headrace.Client:
            # A receiver is a driver: as many programs as there may be on it, it gets each packet once.
            driver = stack.enter_context(headrace.MediaDriver.embedded())
            return stack.enter_context(headrace.Client.connect(directory=driver.directory))

        # The receivers report to the control address, and the publisher sends to all that do.
        subscriptions = [
            client().add_subscription(f"aeron:udp?control={CONTROL}", STREAM_ID) for _ in range(RECEIVERS)
        ]
        send(client().add_publication(DYNAMIC, STREAM_ID), subscriptions)
        print(f"dynamic: {RECEIVERS} receivers, {COUNT} messages each")

        # This receiver knows nothing of the publisher. With a port of your choice the channel needs no asking.
        listening = client().add_subscription("aeron:udp?endpoint=127.0.0.1:0", STREAM_ID)
        publication = client().add_publication(MANUAL, STREAM_ID)
        publication.add_destination(f"aeron:udp?endpoint={listening.resolved_endpoint}")
        send(publication, [listening])
        print(f"manual: 1 receiver, {COUNT} messages")


def send(publication: headrace.Publication, subscriptions: list[headrace.Subscription]) -> None:
    for subscription in subscriptions:
        # A receiver that comes later reads the stream from then on.
        assert subscription.wait_until_connected(10.0)
    for number in range(COUNT):
        publication.offer_blocking(number.to_bytes(8, "little"), timeout_s=10.0)
        for subscription in subscriptions:
            message = subscription.receive(timeout_s=10.0)
            assert message is not None
            assert int.from_bytes(message.payload, "little") == number


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
