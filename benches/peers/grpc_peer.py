"""grpcio as users write it: a unary echo of bytes.

usage: grpc_peer.py server|server-async ADDRESS | client ADDRESS SAMPLES
       grpc_peer.py many|many-async ADDRESS IN_FLIGHT WINDOWS WINDOW_S
"""

import asyncio
import sys
from collections import deque
from concurrent import futures

import grpc
from meter import expect, round_trips, spend, spend_async

METHOD = "/Echo/Echo"
REQUEST = b"x" * 40


def echo(request: bytes, _context: object) -> bytes:
    """Returns what it was sent."""
    return request


async def echo_async(request: bytes, _context: object) -> bytes:
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


async def server_async(address: str) -> None:
    """Serves from an event loop until killed."""
    instance = grpc.aio.server()
    handler = grpc.method_handlers_generic_handler(
        "Echo", {"Echo": grpc.unary_unary_rpc_method_handler(echo_async)}
    )
    instance.add_generic_rpc_handlers((handler,))
    instance.add_insecure_port(address)
    await instance.start()
    print("READY", flush=True)
    await instance.wait_for_termination()


def client(address: str, samples: int) -> None:
    """Times calls over one channel."""
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary(METHOD)
        expect(call(REQUEST), len(REQUEST))
        round_trips(samples, samples // 10, lambda: call(REQUEST))


def many(address: str, in_flight: int, windows: int, window_s: float) -> None:
    """Counts answers while as many calls are under way."""
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary(METHOD)
        expect(call(REQUEST), len(REQUEST))
        calls = deque(call.future(REQUEST) for _ in range(in_flight))

        def receive() -> int:
            for _ in range(in_flight):
                calls.popleft().result()
                calls.append(call.future(REQUEST))
            return in_flight

        spend(windows, window_s, receive)


async def many_async(address: str, in_flight: int, windows: int, window_s: float) -> None:
    """The same from as many coroutines."""
    async with grpc.aio.insecure_channel(address) as channel:
        call = channel.unary_unary(METHOD)
        expect(await call(REQUEST), len(REQUEST))
        await spend_async(windows, window_s, in_flight, lambda: call(REQUEST))


def main() -> None:
    """Plays the role named on the command line."""
    role, address, *rest = sys.argv[1:]
    match role, rest:
        case "server", []:
            server(address)
        case "server-async", []:
            asyncio.run(server_async(address))
        case "client", [samples]:
            client(address, int(samples))
        case "many", [in_flight, windows, window_s]:
            many(address, int(in_flight), int(windows), float(window_s))
        case "many-async", [in_flight, windows, window_s]:
            asyncio.run(many_async(address, int(in_flight), int(windows), float(window_s)))
        case _:
            sys.exit(__doc__)


main()
