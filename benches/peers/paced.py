"""One message every 3 ms, received as each library documents it, and how late each comes.

usage: paced.py headrace|pyzmq|pipe WAY push ADDRESS | pull ADDRESS SAMPLES
       paced.py pipe relayed relay ADDRESS

`pull` prints the latency of each message in nanoseconds. ADDRESS is a driver's directory, an endpoint of ZeroMQ, or a
FIFO that is there. WAY is `receive` or `async`; headrace also has `udp` and `room`. `pipe` uses no library: it is what
the machine itself takes to wake a process, and an event loop; with a `relay` between two of them, to wake two processes
one after the other, as a message over UDP wakes a driver and then its receiver. For `room` the receiver takes a message
every 3 ms and the sender waits for room; the latency is the time from a message taken to the end of the offer that it
makes room for.
"""

import asyncio
import os
import signal
import sys
import time
from bisect import bisect_right
from collections.abc import Awaitable, Callable

PERIOD_S = 0.003
STREAM_ID = 1001
CHANNELS = {
    "receive": "aeron:ipc",
    "async": "aeron:ipc",
    "udp": "aeron:udp?endpoint=127.0.0.1:24987",
    "room": "aeron:ipc?term-length=64k",
}
# As much as the publisher's limit rises at a time at least, so that each message taken makes room for one.
ROOM_LENGTH = 8 << 10
# A write to a FIFO comes as it is; so messages are told apart by their length.
PIPE_LENGTH = 32
# Messages of the first seconds, until driver and clients run evenly.
SKIPPED = 1000


def send_paced(send: Callable[[bytes], object]) -> None:
    """Sends the time of the monotonic clock until killed."""
    while True:
        time.sleep(PERIOD_S)
        send(b"%d" % time.monotonic_ns())


def receive_paced(receive: Callable[[], bytes], samples: int) -> None:
    """Prints `READY` before the first message that counts, and then how late each is."""
    for _ in range(SKIPPED):
        receive()
    print("READY", flush=True)
    latencies = []
    for _ in range(samples):
        sent_ns = int(receive())
        latencies.append(time.monotonic_ns() - sent_ns)
    print("\n".join(map(str, latencies)), flush=True)


def _send_into_room(send: Callable[[bytes], object]) -> None:
    """Sends without a pause. Each message says when the offer of the one before it returned."""
    returned_ns = 0
    while True:
        send((b"%d" % returned_ns).ljust(ROOM_LENGTH))
        returned_ns = time.monotonic_ns()


def _make_room(receive: Callable[[], bytes], samples: int) -> None:
    """Takes a message every 3 ms, then prints how long after each one the sender's offer returned."""
    taken_ns: list[int] = []
    latencies = []
    while len(latencies) < SKIPPED + samples:
        time.sleep(PERIOD_S)
        returned_ns = int(receive())
        taken_ns.append(time.monotonic_ns())
        if len(taken_ns) == SKIPPED:
            print("READY", flush=True)
        before = bisect_right(taken_ns, returned_ns)
        if before:
            latencies.append(returned_ns - taken_ns[before - 1])
    print("\n".join(map(str, latencies[SKIPPED:])), flush=True)


def headrace_push(way: str, directory: str) -> None:
    """`offer_blocking`."""
    import headrace

    with (
        headrace.connect(directory) as client,
        client.add_publication(CHANNELS[way], STREAM_ID) as publication,
    ):
        paced = _send_into_room if way == "room" else send_paced
        paced(lambda data: publication.offer_blocking(data, timeout_s=None))


def headrace_pull(way: str, directory: str, samples: int) -> None:
    """`receive`."""
    import headrace

    with (
        headrace.connect(directory) as client,
        client.add_subscription(CHANNELS[way], STREAM_ID) as subscription,
    ):
        paced = _make_room if way == "room" else receive_paced
        paced(lambda: subscription.receive().payload, samples)


async def headrace_pull_async(directory: str, samples: int) -> None:
    """`async for`."""
    import headrace.aio

    latencies: list[int] = []
    async with await headrace.aio.connect(directory) as client:
        subscription = await client.request_subscription(CHANNELS["async"], STREAM_ID)
        seen = 0
        async for message in subscription:
            now_ns = time.monotonic_ns()
            seen += 1
            if seen == SKIPPED:
                print("READY", flush=True)
            elif seen > SKIPPED:
                latencies.append(now_ns - int(message.payload))
            if len(latencies) == samples:
                break
    print("\n".join(map(str, latencies)), flush=True)


async def receive_paced_async(receive: Callable[[], Awaitable[bytes]], samples: int) -> None:
    """As `receive_paced`, in an event loop."""
    for _ in range(SKIPPED):
        await receive()
    print("READY", flush=True)
    latencies = []
    for _ in range(samples):
        sent_ns = int(await receive())
        latencies.append(time.monotonic_ns() - sent_ns)
    print("\n".join(map(str, latencies)), flush=True)


def pyzmq_push(address: str) -> None:
    """A PUSH socket."""
    import zmq

    socket = zmq.Context().socket(zmq.PUSH)
    socket.connect(address)
    send_paced(socket.send)


def pyzmq_pull(address: str, samples: int) -> None:
    """A PULL socket, waiting in the kernel."""
    import zmq

    socket = zmq.Context().socket(zmq.PULL)
    socket.bind(address)
    receive_paced(socket.recv, samples)


async def pyzmq_pull_async(address: str, samples: int) -> None:
    """A PULL socket of pyzmq's for asyncio."""
    import zmq.asyncio

    socket = zmq.asyncio.Context().socket(zmq.PULL)
    socket.bind(address)
    await receive_paced_async(socket.recv, samples)


def pipe_push(path: str) -> None:
    """`write` into a FIFO, until its reader is gone, which ends the process."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    pipe = os.open(path, os.O_WRONLY)
    send_paced(lambda data: os.write(pipe, data.ljust(PIPE_LENGTH)))


def pipe_pull(path: str, samples: int) -> None:
    """`read`, waiting in the kernel."""
    pipe = os.open(path, os.O_RDONLY)
    receive_paced(lambda: os.read(pipe, PIPE_LENGTH), samples)


def pipe_relay(path: str) -> None:
    """Writes into a FIFO what it reads from the one before it, until one of the other two processes is gone."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    pipe = os.open(path, os.O_WRONLY)
    first = os.open(f"{path}.first", os.O_RDONLY)
    while data := os.read(first, PIPE_LENGTH):
        os.write(pipe, data)


async def pipe_pull_async(path: str, samples: int) -> None:
    """`read` when the event loop finds the FIFO readable, in the callback itself: no future and no task are woken."""
    # With an end to write to, it is not at its end before the sender has opened it.
    pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    latencies: list[int] = []
    seen = 0

    def on_readable() -> None:
        nonlocal seen
        sent_ns, now_ns = int(os.read(pipe, PIPE_LENGTH)), time.monotonic_ns()
        seen += 1
        if seen == SKIPPED:
            print("READY", flush=True)
        elif seen > SKIPPED:
            latencies.append(now_ns - sent_ns)
        if len(latencies) == samples and not done.done():
            done.set_result(None)

    loop.add_reader(pipe, on_readable)
    await done
    print("\n".join(map(str, latencies[:samples])), flush=True)


def main() -> None:
    """Plays the role named on the command line."""
    match sys.argv[1:]:
        case ["headrace", way, "push", directory]:
            headrace_push(way, directory)
        case ["headrace", "async", "pull", directory, samples]:
            asyncio.run(headrace_pull_async(directory, int(samples)))
        case ["headrace", way, "pull", directory, samples]:
            headrace_pull(way, directory, int(samples))
        case ["pyzmq", _, "push", address]:
            pyzmq_push(address)
        case ["pyzmq", "async", "pull", address, samples]:
            asyncio.run(pyzmq_pull_async(address, int(samples)))
        case ["pyzmq", "receive", "pull", address, samples]:
            pyzmq_pull(address, int(samples))
        case ["pipe", "relayed", "relay", path]:
            pipe_relay(path)
        case ["pipe", "relayed", "push", path]:
            pipe_push(f"{path}.first")
        case ["pipe", _, "push", path]:
            pipe_push(path)
        case ["pipe", "async", "pull", path, samples]:
            asyncio.run(pipe_pull_async(path, int(samples)))
        case ["pipe", _, "pull", path, samples]:
            pipe_pull(path, int(samples))
        case _:
            sys.exit(__doc__)


main()
