"""Driver, subscriber and publisher in one process; the publisher has its own thread."""

import argparse
import threading
import time

import headrace

CHANNEL = "aeron:ipc"
STREAM_ID = 41
MESSAGE = b"x" * 32


def main(seconds: int) -> None:
    received = 0

    def on_message(payload: bytes, header: headrace.Header) -> None:
        nonlocal received
        received += 1

    stop = threading.Event()
    with (
        headrace.MediaDriver.embedded() as driver,
        driver.connect() as client,
        client.add_subscription(CHANNEL, STREAM_ID) as subscription,
        client.add_exclusive_publication(CHANNEL, STREAM_ID) as publication,
    ):

        def publish() -> None:
            idle = headrace.BackoffIdleStrategy()
            while not stop.is_set():
                idle.idle(int(publication.offer(MESSAGE) > 0))

        publisher = threading.Thread(target=publish)
        publisher.start()
        for _ in range(seconds):
            begin, received = time.perf_counter(), 0
            while time.perf_counter() < begin + 1.0:
                subscription.poll(on_message, 512)
            print(f"{received / (time.perf_counter() - begin):,.0f} messages a second")
        stop.set()
        publisher.join()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", nargs="?", type=int, default=3)
    main(**vars(parser.parse_args()))
