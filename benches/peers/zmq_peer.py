"""pyzmq as users write it: PUSH/PULL for throughput, PAIR for round trips.

usage: zmq_peer.py push ADDRESS LENGTH | pull ADDRESS LENGTH WINDOWS WINDOW_S
       zmq_peer.py ping spinning|blocking ADDRESS LENGTH SAMPLES | pong spinning|blocking ADDRESS
"""

import sys
from collections.abc import Callable

import zmq
from meter import expect, round_trips, spend

BATCH = 512


def push(address: str, length: int) -> None:
    """Sends until killed."""
    socket = zmq.Context().socket(zmq.PUSH)
    socket.connect(address)
    data = b"x" * length
    send = socket.send
    while True:
        send(data)


def pull(address: str, length: int, windows: int, window_s: float) -> None:
    """Counts what arrives."""
    socket = zmq.Context().socket(zmq.PULL)
    socket.bind(address)
    recv = socket.recv
    expect(recv(), length)

    def receive() -> int:
        for _ in range(BATCH):
            recv()
        return BATCH

    spend(windows, window_s, receive)


def _receiver(socket: zmq.Socket, waiting: str) -> Callable[[], bytes]:
    """One message a call: spinning on non-blocking calls, or waiting in the kernel."""
    receive, again = socket.recv, zmq.Again
    if waiting == "blocking":
        return receive

    def spin() -> bytes:
        while True:
            try:
                return receive(zmq.NOBLOCK)
            except again:
                continue

    return spin


def ping(waiting: str, address: str, length: int, samples: int) -> None:
    """One message out, one back."""
    socket = zmq.Context().socket(zmq.PAIR)
    socket.connect(address)
    data = b"x" * length
    receive = _receiver(socket, waiting)
    socket.send(data)
    expect(receive(), length)

    def once() -> None:
        socket.send(data)
        receive()

    round_trips(samples, samples // 10, once)


def pong(waiting: str, address: str) -> None:
    """Echoes until killed."""
    socket = zmq.Context().socket(zmq.PAIR)
    socket.bind(address)
    receive = _receiver(socket, waiting)
    while True:
        socket.send(receive())


def main() -> None:
    """Plays the role named on the command line."""
    match sys.argv[1:]:
        case ["push", address, length]:
            push(address, int(length))
        case ["pull", address, length, windows, window_s]:
            pull(address, int(length), int(windows), float(window_s))
        case ["ping", ("spinning" | "blocking") as waiting, address, length, samples]:
            ping(waiting, address, int(length), int(samples))
        case ["pong", ("spinning" | "blocking") as waiting, address]:
            pong(waiting, address)
        case _:
            sys.exit(__doc__)


main()
