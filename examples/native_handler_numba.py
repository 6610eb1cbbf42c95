"""A handler compiled by numba adds up messages without the interpreter in the loop. Starts its own driver."""

import argparse
from typing import Any

import numba
import numpy as np
from numba import carray, cfunc

import headrace
from headrace.client import native

CHANNEL = "aeron:ipc"
STREAM_ID = 31
COUNT = 1_000_000
BATCH = 4_096


@cfunc(native.numba_signature())
def add_up(context: Any, payload: Any, length: int, header: Any) -> None:
    totals = carray(context, 2, numba.int64)
    totals[0] += 1
    totals[1] += carray(payload, length)[0]


def main() -> None:
    totals = np.zeros(2, dtype=np.int64)
    rows = np.arange(BATCH, dtype=np.uint8).reshape(BATCH, 1)
    with (
        headrace.MediaDriver.embedded() as driver,
        driver.connect() as client,
        client.add_subscription(CHANNEL, STREAM_ID) as subscription,
        client.add_publication(CHANNEL, STREAM_ID) as publication,
    ):
        publication.wait_until_connected(10.0)
        sent = 0
        while sent < COUNT:
            sent += publication.offer_batch(rows).accepted
            subscription.poll_native(add_up, totals.ctypes.data, BATCH)
        while totals[0] < sent:
            subscription.poll_native(add_up, totals.ctypes.data, BATCH)
    print(f"{totals[0]} messages, first bytes add up to {totals[1]}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
