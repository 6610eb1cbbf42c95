"""Send a few text messages. Needs a driver (`headrace driver`) and a subscriber (`basic_subscriber.py`).

usage: python basic_publisher.py [CHANNEL] [COUNT]
"""

import sys

import headrace

CHANNEL = "aeron:udp?endpoint=localhost:20121"
STREAM_ID = 1001


def main(channel: str = CHANNEL, count: str = "10") -> None:
    with (
        headrace.Client.connect() as client,
        client.add_publication(channel, STREAM_ID) as publication,
    ):
        publication.wait_until_connected(10.0)
        for number in range(int(count)):
            position = publication.offer_blocking(f"Hello World! {number}".encode())
            print(f"sent {number}, stream position {position}")


if __name__ == "__main__":
    main(*sys.argv[1:])
