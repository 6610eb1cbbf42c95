"""Send every message of one stream back on another. Ends when ping disconnects."""

import argparse

import headrace

PING_CHANNEL = "aeron:udp?endpoint=localhost:20123"
PONG_CHANNEL = "aeron:udp?endpoint=localhost:20124"
PING_STREAM_ID = 1002
PONG_STREAM_ID = 1003


def main(ping_channel: str, pong_channel: str) -> None:
    idle = headrace.YieldingIdleStrategy()
    with (
        headrace.connect() as client,
        client.add_subscription(ping_channel, PING_STREAM_ID) as pings,
        client.add_publication(pong_channel, PONG_STREAM_ID) as pongs,
    ):

        def answer(payload: bytes, header: headrace.Header) -> None:
            pongs.offer_blocking(payload)

        if not pings.wait_until_connected(30.0):
            raise SystemExit("no ping connected within 30 s: start ping.py")
        while pings.is_connected:
            idle.idle(pings.poll(answer))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ping_channel", nargs="?", default=PING_CHANNEL)
    parser.add_argument("pong_channel", nargs="?", default=PONG_CHANNEL)
    main(**vars(parser.parse_args()))
