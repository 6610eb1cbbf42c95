"""Messages described by an SBE schema: encoded one by one, decoded as columns of a batch. Starts its own driver."""

import argparse
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import headrace
from headrace import sbe

CHANNEL = "aeron:ipc"
STREAM_ID = 12
COUNT = 20_000


def main() -> None:
    schema = sbe.Schema.from_file(Path(__file__).with_name("sbe_trades.xml"), snake_case=True)
    trade, notice = schema["Trade"], schema["Notice"]
    messages = [
        trade.encode(
            trade_id=number,
            symbol=("ACME", "ZEBRA")[number % 2],
            side="BUY" if number % 3 else "SELL",
            price=100 + number % 50 / 10,
            quantity=number % 7 + 1,
        )
        for number in range(COUNT)
    ]
    messages.insert(COUNT // 2, notice.encode(text="half of them"))
    tables = []
    with (
        headrace.MediaDriver.embedded() as driver,
        driver.connect() as client,
        client.add_subscription(CHANNEL, STREAM_ID) as subscription,
        client.add_publication(CHANNEL, STREAM_ID) as publication,
    ):
        publication.wait_until_connected(10.0)
        received = 0
        for start in range(0, len(messages), 4096):
            publication.offer_batch_blocking(messages[start : start + 4096])
            while received < min(start + 4096, len(messages)):
                batch = subscription.poll_batch(4096)
                tables.append(trade.to_arrow(batch))
                # A batch may hold several kinds of message; each kind decodes its own.
                for text in notice.to_arrow(batch)["text"].to_pylist():
                    print("notice:", text)
                received += len(batch)
    table = pa.Table.from_batches(tables)
    print(table.schema)
    for row in (
        table.group_by(["symbol", "side"]).aggregate([("quantity", "sum"), ("price", "mean")]).to_pylist()
    ):
        print(row)
    print(f"{table.num_rows} trades, {pc.sum(table['quantity'])} shares")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
