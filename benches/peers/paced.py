"""One message every 3 ms, received as each library documents it, and how late each comes.

usage: paced.py headrace|pyzmq push ADDRESS | pull ADDRESS SAMPLES

`pull` prints the latency of each message in nanoseconds. ADDRESS is a driver's directory, or an endpoint of ZeroMQ.
"""

import sys
import time
from collections.abc import Callable

PERIOD_S = 0.003
STREAM_ID = 1001
# Messages of the first seconds, in which driver and clients settle.
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


def headrace_push(directory: str) -> None:
    """`offer_blocking`."""
    import headrace

    with headrace.connect(directory) as client, client.add_publication("aeron:ipc", STREAM_ID) as publication:
        send_paced(lambda data: publication.offer_blocking(data, timeout_s=None))


def headrace_pull(directory: str, samples: int) -> None:
    """`receive`."""
    import headrace

    with (
        headrace.connect(directory) as client,
        client.add_subscription("aeron:ipc", STREAM_ID) as subscription,
    ):
        receive_paced(lambda: subscription.receive().payload, samples)


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


def main() -> None:
    """Plays the role named on the command line."""
    match sys.argv[1:]:
        case ["headrace", "push", directory]:
            headrace_push(directory)
        case ["headrace", "pull", directory, samples]:
            headrace_pull(directory, int(samples))
        case ["pyzmq", "push", address]:
            pyzmq_push(address)
        case ["pyzmq", "pull", address, samples]:
            pyzmq_pull(address, int(samples))
        case _:
            sys.exit(__doc__)


main()
