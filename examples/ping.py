"""Measure round trips to `pong.py`, or to the Pong sample of Aeron."""

import argparse
import time

from hdrh.histogram import HdrHistogram

import headrace

PING_CHANNEL = "aeron:udp?endpoint=localhost:20123"
PONG_CHANNEL = "aeron:udp?endpoint=localhost:20124"
PING_STREAM_ID = 1002
PONG_STREAM_ID = 1003


def main(ping_channel: str, pong_channel: str, count: int) -> None:
    durations_ns = []

    def on_pong(payload: bytes, header: headrace.Header) -> None:
        durations_ns.append(time.perf_counter_ns() - int.from_bytes(payload[:8], "little"))

    idle = headrace.YieldingIdleStrategy()
    with (
        headrace.connect() as client,
        client.add_subscription(pong_channel, PONG_STREAM_ID) as pongs,
        client.add_publication(ping_channel, PING_STREAM_ID) as pings,
    ):
        if not (pings.wait_until_connected(10.0) and pongs.wait_until_connected(10.0)):
            raise SystemExit("no pong connected within 10 s: is pong.py running?")
        for _ in range(count):
            pings.offer_blocking(time.perf_counter_ns().to_bytes(8, "little"), idle="yield")
            while not (fragments := pongs.poll(on_pong)):
                idle.idle(fragments)

    histogram = HdrHistogram(1, 10_000_000_000, 3)
    for duration_ns in durations_ns:
        histogram.record_value(duration_ns)
    for percentile in (50, 90, 99, 99.9, 100):
        print(f"{percentile:>5} % within {histogram.get_value_at_percentile(percentile) / 1000:.1f} us")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ping_channel", nargs="?", default=PING_CHANNEL)
    parser.add_argument("pong_channel", nargs="?", default=PONG_CHANNEL)
    parser.add_argument("count", nargs="?", type=int, default=10000)
    main(**vars(parser.parse_args()))
