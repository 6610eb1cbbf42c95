"""Trades as a structured array: a thousand messages in one call, and back as an array. Starts its own driver."""

import argparse

import numpy as np

import headrace

TRADE = np.dtype([("instrument", "i4"), ("quantity", "i4"), ("price", "f8")])
CHANNEL = "aeron:ipc"
STREAM_ID = 10
COUNT = 100_000
BATCH = 1_000


def main() -> None:
    generator = np.random.default_rng(7)
    trades = np.zeros(COUNT, dtype=TRADE)
    trades["instrument"] = generator.integers(0, 50, COUNT)
    trades["quantity"] = generator.integers(1, 500, COUNT)
    trades["price"] = generator.normal(100.0, 5.0, COUNT)

    received = 0
    turnover = 0.0
    with (
        headrace.MediaDriver.embedded() as driver,
        driver.connect() as client,
        client.add_subscription(CHANNEL, STREAM_ID) as subscription,
        client.add_publication(CHANNEL, STREAM_ID) as publication,
    ):
        publication.wait_until_connected(10.0)
        for start in range(0, COUNT, BATCH):
            publication.offer_batch_blocking(trades[start : start + BATCH])
            while received < start + BATCH:
                batch = subscription.poll_batch(BATCH)
                rows = batch.as_array(TRADE)
                turnover += float((rows["quantity"] * rows["price"]).sum())
                received += len(batch)
    expected = float((trades["quantity"] * trades["price"]).sum())
    print(f"{received} trades, turnover {turnover:,.2f}, expected {expected:,.2f}")
    assert abs(turnover - expected) < 1e-6 * expected


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
