"""A server and its clients: one answer for each request, many requests at once, errors. Starts its own driver."""

import argparse
import asyncio
import threading

import headrace

CHANNEL = "aeron:ipc?term-length=64k"
STREAM_ID = 10


def handle(request: bytes) -> bytes:
    """Runs on the server's thread, one request at a time. For an error, the server logs the traceback."""
    return str(int(request) ** 2).encode()


async def ask_many(requester: headrace.Requester) -> None:
    answers = await asyncio.gather(*(requester.request_async(b"%d" % number) for number in range(100)))
    print(f"100 requests at once: the last answer is {answers[-1].decode()}")


def main() -> None:
    with headrace.MediaDriver.embedded() as driver, driver.connect() as client:
        with headrace.Server(client, CHANNEL, STREAM_ID, handle) as server:
            # Usually a separate program.
            serving = threading.Thread(target=server.serve)
            serving.start()
            with headrace.Requester(client, CHANNEL, STREAM_ID) as requester:
                print("7 * 7 =", requester.request(b"7").decode())
                try:
                    requester.request(b"seven")
                except headrace.RemoteError as error:
                    print("the server says:", error)
            # Use a requester from threads or from one event loop, not from both.
            with headrace.Requester(client, CHANNEL, STREAM_ID) as requester:
                asyncio.run(ask_many(requester))
        serving.join()


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
