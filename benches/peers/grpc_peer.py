"""grpcio as users write it: a unary echo of bytes.

usage: grpc_peer.py server ADDRESS | client ADDRESS SAMPLES
"""

import sys
from concurrent import futures

import grpc
from meter import expect, round_trips


def echo(request: bytes, _context: object) -> bytes:
    """Returns what it was sent."""
    return request


def server(address: str) -> None:
    """Serves until killed."""
    instance = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
    handler = grpc.method_handlers_generic_handler(
        "Echo", {"Echo": grpc.unary_unary_rpc_method_handler(echo)}
    )
    instance.add_generic_rpc_handlers((handler,))
    instance.add_insecure_port(address)
    instance.start()
    print("READY", flush=True)
    instance.wait_for_termination()


def client(address: str, samples: int) -> None:
    """Times calls over one channel."""
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary("/Echo/Echo")
        data = b"x" * 40
        expect(call(data), len(data))
        round_trips(samples, samples // 10, lambda: call(data))


def main() -> None:
    """Plays the role named on the command line."""
    role, address, *rest = sys.argv[1:]
    if role == "server":
        server(address)
    else:
        client(address, int(rest[0]))


main()
