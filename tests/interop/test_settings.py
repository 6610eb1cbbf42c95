"""Settings of a driver that the driver at the other end of a stream notices."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from benches.processes import JavaPeer

from tests.interop.conftest import Peers, our_driver_process
from tests.ports import free_port

pytestmark = pytest.mark.interop

STREAM = 9
SMALL = (16, 200)
COUNT = 100


@contextmanager
def drivers(java: JavaPeer, receives: str, properties: dict[str, str]) -> Iterator[tuple[Path, Path]]:
    """Directories of a receiving driver with settings, and of a sending one of the other make."""
    with ExitStack() as stack:
        ours = stack.enter_context(
            our_driver_process("interop-set-ours", properties=properties if receives == "python" else None)
        )
        theirs = stack.enter_context(
            java.driver("interop-set-java", "SHARED", properties if receives == "java" else None)
        )
        yield (theirs, ours) if receives == "java" else (ours, theirs)


@pytest.mark.parametrize("receives", ["java", "python"])
def test_a_wildcard_port_of_a_range(java: JavaPeer, peers: Peers, receives: str) -> None:
    """A subscription with port 0 has a port of the range, where the other driver finds it."""
    sends = "python" if receives == "java" else "java"
    port = free_port()
    with drivers(java, receives, {"aeron.receiver.wildcard.port.range": f"{port} {port}"}) as (
        receiving,
        sending,
    ):
        peers.run(
            peers.command(sends, "subscribe", receiving, "aeron:udp?endpoint=127.0.0.1:0", STREAM, COUNT),
            peers.command(
                receives,
                "publish",
                sending,
                f"aeron:udp?endpoint=127.0.0.1:{port}",
                STREAM,
                COUNT,
                *SMALL,
                41,
            ),
        )
