"""Text messages in and out as Arrow arrays, with positions and sessions as columns. Starts its own driver."""

import argparse

import pyarrow as pa
import pyarrow.compute as pc

import headrace

CHANNEL = "aeron:ipc"
STREAM_ID = 11


def main() -> None:
    words = pa.array([f"event {number}".encode() for number in range(10_000)], type=pa.binary())
    tables = []
    with (
        headrace.MediaDriver.embedded() as driver,
        driver.connect() as client,
        client.add_subscription(CHANNEL, STREAM_ID) as subscription,
        client.add_publication(CHANNEL, STREAM_ID) as publication,
    ):
        publication.wait_until_connected(10.0)
        publication.offer_batch_blocking(words)
        received = 0
        while received < len(words):
            batch = subscription.poll_batch(4096)
            if len(batch):
                tables.append(batch.to_arrow())
                received += len(batch)
    table = pa.Table.from_batches(tables)
    print(table.schema)
    print(f"{table.num_rows} rows, positions to {pc.max(table['position'])}")
    assert table["payload"].to_pylist() == words.to_pylist()


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
