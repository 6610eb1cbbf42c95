"""Two asyncio tasks that talk over two streams. Starts its own driver."""

import argparse
import asyncio

import headrace
from headrace import aio

CHANNEL = "aeron:ipc"
ANNA_STREAM_ID = 21
BERT_STREAM_ID = 22
LINES = ("hello", "how are you?", "bye")


async def talk(client: headrace.Client, name: str, speak_on: int, listen_to: int) -> list[str]:
    """Says each line and waits for the other's; returns what was heard."""
    heard = []
    with (
        await client.request_subscription(CHANNEL, listen_to) as subscription,
        await client.request_publication(CHANNEL, speak_on) as publication,
    ):
        for line in LINES:
            await publication.offer_async(f"{name}: {line}".encode())
        async for message in subscription:
            heard.append(message.payload.decode())
            print(heard[-1])
            if len(heard) == len(LINES):
                return heard
    return heard


async def main(directory: str) -> None:
    async with await aio.connect(directory) as client:
        heard_by_anna, heard_by_bert = await asyncio.gather(
            talk(client, "anna", ANNA_STREAM_ID, BERT_STREAM_ID),
            talk(client, "bert", BERT_STREAM_ID, ANNA_STREAM_ID),
        )
    assert heard_by_anna == [f"bert: {line}" for line in LINES]
    assert heard_by_bert == [f"anna: {line}" for line in LINES]


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    # Outside the event loop: starting a driver, and closing it, would block it.
    with headrace.MediaDriver.embedded() as embedded:
        asyncio.run(main(embedded.directory))
