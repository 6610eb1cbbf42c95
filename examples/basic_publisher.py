"""Send a few text messages. Needs a driver (`headrace driver`) and a subscriber (`basic_subscriber.py`)."""

import argparse

import headrace

CHANNEL = "aeron:udp?endpoint=localhost:20121"
STREAM_ID = 1001


def main(channel: str, count: int) -> None:
    with (
        headrace.connect() as client,
        client.add_publication(channel, STREAM_ID) as publication,
    ):
        if not publication.wait_until_connected(10.0):
            raise SystemExit(
                f"no subscriber connected to {channel} within 10 s: is basic_subscriber.py running?"
            )
        for number in range(count):
            position = publication.offer_blocking(f"Hello World! {number}".encode())
            print(f"sent {number}, stream position {position}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("channel", nargs="?", default=CHANNEL)
    parser.add_argument("count", nargs="?", type=int, default=10)
    main(**vars(parser.parse_args()))
