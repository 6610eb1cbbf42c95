"""One publisher and several receivers over unicast, for networks without multicast. Starts its own drivers.

First the receivers report their addresses to the publisher; then the program adds a receiver's address itself.
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
            # A receiver is a driver: it gets each packet once, however many programs use it.
            driver = stack.enter_context(headrace.MediaDriver.embedded())
            return stack.enter_context(driver.connect())

        # The receivers report to the control address, and the publisher sends to each of them.
        subscriptions = [
            client().add_subscription(f"aeron:udp?control={CONTROL}", STREAM_ID) for _ in range(RECEIVERS)
        ]
        send(client().add_publication(DYNAMIC, STREAM_ID), subscriptions)
        print(f"dynamic: {RECEIVERS} receivers, {COUNT} messages each")

        # This receiver does not know the publisher. Port 0 lets the system choose; `resolved_endpoint` is the choice.
        listening = client().add_subscription("aeron:udp?endpoint=127.0.0.1:0", STREAM_ID)
        publication = client().add_publication(MANUAL, STREAM_ID)
        publication.add_destination(f"aeron:udp?endpoint={listening.resolved_endpoint}")
        send(publication, [listening])
        print(f"manual: 1 receiver, {COUNT} messages")


def send(publication: headrace.Publication, subscriptions: list[headrace.Subscription]) -> None:
    for subscription in subscriptions:
        # A receiver that joins later misses the messages sent before.
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
