"""Our driver and the Java driver tell each other their names, and each finds the other by its name."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from benches.processes import JavaPeer

from headrace.tools import CncFile
from tests.helpers import await_true
from tests.interop.conftest import Peers, our_driver_process
from tests.ports import free_endpoint, free_port

pytestmark = pytest.mark.interop

RESOLVERS = {name: free_endpoint() for name in ("ours", "java", "third")}
# What our drivers lose of what comes in: data, NAKs, status messages, and what tells names.
LOSES = {
    "aeron.udp.channel.incoming.interceptors": "loss",
    "aeron.udp.channel.transport.bindings.loss.args": "rate=0.15|seed=5|recv-msg-mask=0xce",
}
# What tells names is repeated soon.
SOON = {
    "aeron.driver.resolver.self.resolution.interval": "200ms",
    "aeron.driver.resolver.neighbor.resolution.interval": "400ms",
}
NAMES_KNOWN, NEIGHBORS = 16, 15


def settings(name: str, bootstrap: str) -> dict[str, str]:
    """A driver called `driver-NAME` that begins with another."""
    return {
        "aeron.driver.resolver.name": f"driver-{name}",
        "aeron.driver.resolver.interface": RESOLVERS[name],
        "aeron.driver.resolver.bootstrap.neighbor": RESOLVERS[bootstrap],
    }


def counters(directory: Path) -> tuple[int, int]:
    """How many names and neighbours a driver knows."""
    with CncFile.open(directory) as cnc:
        values = {record.type_id: record.value for record in cnc.counters}
    return values[NAMES_KNOWN], values[NEIGHBORS]


@pytest.mark.parametrize(
    ("first", "losses"),
    [("ours", {}), ("ours", LOSES), ("java", {}), ("java", LOSES)],
    ids=["ours", "ours-15-percent-loss", "java", "java-15-percent-loss"],
)
def test_names_of_both_drivers(java: JavaPeer, peers: Peers, first: str, losses: dict[str, str]) -> None:
    """The second driver speaks to the first, and a third learns of the second from the first."""
    second = "java" if first == "ours" else "ours"
    with ExitStack() as stack:

        def start(name: str, bootstrap: str) -> Path:
            properties = settings(name, bootstrap) | (SOON if losses else {})
            if name == "java":
                return stack.enter_context(java.driver("interop-names-java", "SHARED", properties))
            return stack.enter_context(
                our_driver_process(f"interop-names-{name}", properties=properties | losses)
            )

        directories = {first: start(first, first), second: start(second, first)}
        third = start("third", first)
        for directory in (*directories.values(), third):
            await_true(lambda directory=directory: counters(directory) == (2, 2))
        streams = [
            ("python", directories["ours"], "java", directories["java"], f"driver-java:{free_port()}"),
            ("java", directories["java"], "python", directories["ours"], f"driver-ours:{free_port()}"),
            ("python", third, "java", directories["java"], f"driver-java:{free_port()}"),
        ]
        for publisher, sends, subscriber, receives, endpoint in streams:
            port = endpoint.partition(":")[2]
            listen = f"aeron:udp?endpoint=127.0.0.1:{port}"
            channel = f"aeron:udp?endpoint={endpoint}|term-length=64k"
            peers.run(
                peers.command(subscriber, "subscribe", receives, listen, 9, 500),
                peers.command(publisher, "publish", sends, channel, 9, 500, 16, 8000, 41),
            )
