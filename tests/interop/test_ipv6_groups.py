"""IPv6 multicast between our driver and the Java driver, at the two ends of a cable."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest
from benches.processes import JavaPeer, background, fresh_directory

import headrace
from headrace.testing import Namespace, Namespaces
from tests.helpers import await_true
from tests.interop.conftest import our_driver_process
from tests.interop.pairs import SENDS, Pair, counted, ends
from tests.interop.test_changes import Reader, flow
from tests.interop.test_streams import LOSSES
from tests.ports import free_port

NO_NAMESPACES = Namespaces.unavailable()
pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(NO_NAMESPACES is not None, reason=str(NO_NAMESPACES)),
]

STREAM = 9


def has_settled(side: Namespace) -> bool:
    """Whether the kernel no longer asks if another host has the address of the link."""
    tentative = ["ip", "-6", "address", "show", "dev", side.device, "tentative"]
    return not subprocess.check_output(side.command(tentative))


@pytest.fixture(scope="module")
def pair(java: JavaPeer) -> Iterator[Pair]:
    """Our driver at the left end; at the right end the Java driver, which loses both ways."""
    with ExitStack() as stack:
        cable = stack.enter_context(Namespaces())
        for number, side in enumerate((cable.left, cable.right), start=1):
            address = ["ip", "-6", "address", "add", f"fd00:214::{number}/64", "dev", side.device, "nodad"]
            subprocess.run(side.command(address), check=True)
            await_true(partial(has_settled, side))
        ours = stack.enter_context(our_driver_process("interop-ipv6-ours", prefix=cable.left.command([])))
        theirs = fresh_directory("interop-ipv6-java")
        properties = LOSSES | {"aeron.dir": str(theirs), "aeron.dir.delete.on.shutdown": "true"}
        command = java.command("io.aeron.driver.MediaDriver", properties=properties)
        stack.enter_context(background(cable.right.command(command), ready=theirs / "cnc.dat"))
        yield {
            make: stack.enter_context(headrace.Client.connect(directory=directory))
            for make, directory in {"ours": ours, "java": theirs}.items()
        }


@SENDS
@pytest.mark.parametrize(
    ("group", "left", "right"),
    [
        ("[ff15::5]", "[fd00:214::1]", "[fd00:214::2]"),
        ("[ff15::7]", "[fd00:214::]/64", "[fd00:214::]/64"),
        ("[ff02::1:3]", "{hr-left}", "{hr-right}"),
    ],
    ids=["address", "prefix", "link-local"],
)
def test_ipv6_groups(pair: Pair, sends: str, group: str, left: str, right: str) -> None:
    """A receiver at each end of the cable."""
    publisher, subscriber = ends(pair, sends)
    channel = f"aeron:udp?endpoint={group}:{free_port()}"
    interfaces = {pair["ours"]: left, pair["java"]: right}
    readers = [Reader(client, f"{channel}|interface={interface}") for client, interface in interfaces.items()]
    sent = f"{channel}|interface={interfaces[publisher]}|fc=min,g:/2|term-length=64k"
    with publisher.add_publication(sent, STREAM) as publication:
        flow(publication, readers, seed=1)
    for reader in readers:
        reader.subscription.close()
    assert counted(subscriber, "NAKs sent") > 0
