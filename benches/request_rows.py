"""Requests and answers, one at a time and many in flight."""

import numpy as np

from benches.figures import rates, rtt_row, samples, thrice
from benches.processes import background, headrace_driver, output, python_peer
from benches.report import Row

ADDRESS = "127.0.0.1:24985"
SAMPLES = 10_000
IN_FLIGHT = 1_000
WINDOWS = 6
WINDOW_S = 1.0
_CONFIGURATION = (
    "40 byte requests that are echoed, a requester's process and a server's; ours Requester and Server of headrace "
    "over aeron:ipc, which wait as they do by default, driver process beside in SHARED mode with default settings; "
    "grpcio over loopback"
)


def _ours(*role: object) -> list[str]:
    with (
        headrace_driver("requests", "SHARED") as directory,
        background(python_peer("request_peer.py", "server", directory), ready="READY"),
    ):
        return output(python_peer("request_peer.py", role[0], directory, *role[1:]))


def _grpc(server: str, *role: object) -> list[str]:
    with background(python_peer("grpc_peer.py", server, ADDRESS), ready="READY"):
        return output(python_peer("grpc_peer.py", role[0], ADDRESS, *role[1:]))


def request_response_python() -> Row:
    """One request at a time."""

    def ours() -> np.ndarray:
        return samples(_ours("one", SAMPLES))

    def peer() -> np.ndarray:
        return samples(_grpc("server", "client", SAMPLES))

    return rtt_row(
        "request-response-python", thrice(ours), "grpcio unary", thrice(peer), ">= 5 x", _CONFIGURATION
    )


def request_response_many_python() -> Row:
    """A thousand in flight, from threads and from coroutines; of each side the better counts."""
    window = (IN_FLIGHT, WINDOWS, WINDOW_S)
    ours = {
        "submit and result": rates(_ours("many", *window)),
        "request_async": rates(_ours("many-async", *window)),
    }
    peers = {
        "futures": rates(_grpc("server", "many", *window)),
        "asyncio": rates(_grpc("server-async", "many-async", *window)),
    }
    best, best_peer = (max(side, key=lambda name: side[name].value) for side in (ours, peers))
    return Row(
        name="request-response-many-python",
        unit="msg/s",
        ours=ours[best],
        peer_name=f"grpcio unary, {best_peer}",
        peer=peers[best_peer],
        target=">= 20 x",
        configuration=f"{IN_FLIGHT:,} in flight, {best}; {_CONFIGURATION}",
        notes={
            **{f"ours, {name}, a second": side.value for name, side in ours.items()},
            **{f"grpcio, {name}, a second": side.value for name, side in peers.items()},
        },
    )
