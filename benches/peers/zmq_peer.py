"""pyzmq as users write it: PUSH/PULL for throughput, PAIR for round trips.

usage: zmq_peer.py push|pull|ping|pong ADDRESS [LENGTH WINDOWS WINDOW_S | SAMPLES]
"""

import sys

import zmq
from meter import round_trips, spend

BATCH = 512


def push(address: str, length: int) -> None:
    """Sends until killed."""
    socket = zmq.Context().socket(zmq.PUSH)
    socket.connect(address)
    data = b"x" * length
    send = socket.send
    while True:
        send(data)


def pull(address: str, windows: int, window_s: float) -> None:
    """Counts what arrives."""
    socket = zmq.Context().socket(zmq.PULL)
    socket.bind(address)
    recv = socket.recv

    def receive() -> int:
        for _ in range(BATCH):
            recv()
        return BATCH

    spend(windows, window_s, receive)


def ping(address: str, samples: int) -> None:
    """One message out, one back, spinning on non-blocking calls."""
    socket = zmq.Context().socket(zmq.PAIR)
    socket.connect(address)
    data = b"x" * 40
    again = zmq.Again

    def once() -> None:
        socket.send(data)
        while True:
            try:
                socket.recv(zmq.NOBLOCK)
                return
            except again:
                continue

    round_trips(samples, samples // 10, once)


def pong(address: str) -> None:
    """Echoes until killed."""
    socket = zmq.Context().socket(zmq.PAIR)
    socket.bind(address)
    again = zmq.Again
    while True:
        try:
            message = socket.recv(zmq.NOBLOCK)
        except again:
            continue
        socket.send(message)


def main() -> None:
    """Plays the role named on the command line."""
    role, address, *rest = sys.argv[1:]
    match role:
        case "push":
            push(address, int(rest[0]))
        case "pull":
            pull(address, int(rest[0]), float(rest[1]))
        case "ping":
            ping(address, int(rest[0]))
        case "pong":
            pong(address)
        case _:
            sys.exit(f"unknown role {role}")


main()
