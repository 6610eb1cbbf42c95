"""Aeron's Java programs at both ends of each kind of stream between our driver and the Java driver, both of which lose.

In the other tests of streams with loss each driver has clients of its own language.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from benches.processes import JavaPeer

from headrace.tools import CncFile
from tests.interop.conftest import Peers, our_driver_process
from tests.interop.test_streams import FRAGMENTED, LOSSES
from tests.ports import free_endpoint, free_port

pytestmark = pytest.mark.interop

COUNT = 300
STREAM_ID = 9
ANSWERS_STREAM_ID = 8
SEED = 16
# Data, NAKs and status messages.
LOSES = {
    "aeron.udp.channel.incoming.interceptors": "loss",
    "aeron.udp.channel.transport.bindings.loss.args": "rate=0.05|seed=20263|recv-msg-mask=0xe",
}
MANUAL = "aeron:udp?control-mode=manual"


@dataclass
class Row:
    """One kind of stream: what the publisher's program is told, and what each subscriber's."""

    sent: str
    received: list[str]
    send_destinations: list[str] = field(default_factory=list)
    receive_destinations: list[str] = field(default_factory=list)


def unicast() -> Row:
    channel = f"aeron:udp?endpoint={free_endpoint()}"
    return Row(f"{channel}|term-length=64k", [channel])


def multicast() -> Row:
    channel = f"aeron:udp?endpoint=239.255.44.1:{free_port()}|interface=127.0.0.1"
    return Row(f"{channel}|term-length=64k", [channel])


def multicast_min() -> Row:
    channel = f"aeron:udp?endpoint=239.255.44.5:{free_port()}|interface=127.0.0.1"
    return Row(f"{channel}|fc=min,g:/2|term-length=64k", [channel] * 2)


def multicast_tagged() -> Row:
    channel = f"aeron:udp?endpoint=239.255.44.7:{free_port()}|interface=127.0.0.1"
    return Row(f"{channel}|fc=tagged,g:1001/2,t:1s|term-length=64k", [f"{channel}|gtag=1001"] * 2)


def dynamic() -> Row:
    control = f"control={free_endpoint()}|control-mode=dynamic"
    channels = [f"aeron:udp?endpoint={free_endpoint()}|{control}" for _ in range(2)]
    return Row(f"aeron:udp?{control}|fc=min,g:/2|term-length=64k", channels)


def manual() -> Row:
    channels = [f"aeron:udp?endpoint={free_endpoint()}" for _ in range(2)]
    return Row(f"{MANUAL}|fc=min,g:/2|term-length=64k", channels, send_destinations=channels)


def tagged() -> Row:
    channels = [f"aeron:udp?endpoint={free_endpoint()}" for _ in range(2)]
    tags = [f"{channel}|gtag=1001" for channel in channels]
    return Row(f"{MANUAL}|fc=tagged,g:1001/2,t:1s|term-length=64k", tags, send_destinations=channels)


def paths() -> Row:
    channels = [f"aeron:udp?endpoint={free_endpoint()}" for _ in range(2)]
    return Row(
        f"{MANUAL}|term-length=64k", [MANUAL], send_destinations=channels, receive_destinations=channels
    )


@pytest.fixture(scope="module")
def drivers(java: JavaPeer) -> Iterator[dict[str, Path]]:
    """The directory of each driver."""
    with ExitStack() as stack:
        ours = stack.enter_context(our_driver_process("interop-programs-ours", properties=LOSES))
        theirs = stack.enter_context(java.driver("interop-programs-java", "SHARED", LOSSES))
        yield {"ours": ours, "java": theirs}
        for directory in (ours, theirs):
            assert naks_sent(directory) > 0, f"nothing was lost: {directory}"


def naks_sent(directory: Path) -> int:
    with CncFile.open(directory) as cnc:
        (count,) = [record.value for record in cnc.counters if record.label == "NAKs sent"]
    return count


SENDS = pytest.mark.parametrize(("sends", "receives"), [("ours", "java"), ("java", "ours")])


@SENDS
@pytest.mark.parametrize(
    "make", [unicast, multicast, multicast_min, multicast_tagged, dynamic, manual, tagged, paths]
)
def test_java_programs_at_both_ends(
    drivers: dict[str, Path], peers: Peers, sends: str, receives: str, make: Callable[[], Row]
) -> None:
    """With two receivers, one is on each driver."""
    row = make()
    places = [drivers[receives], drivers[sends]]
    readers = [
        peers.command("java", "subscribe", place, channel, STREAM_ID, COUNT, *row.receive_destinations)
        for place, channel in zip(places, row.received, strict=False)
    ]
    numbers = (STREAM_ID, COUNT, *FRAGMENTED, SEED)
    publisher = peers.command("java", "publish", drivers[sends], row.sent, *numbers, *row.send_destinations)
    peers.run(*readers, publisher)


@SENDS
def test_java_programs_ask_and_answer(
    drivers: dict[str, Path], peers: Peers, sends: str, receives: str
) -> None:
    requests = f"aeron:udp?endpoint={free_endpoint()}"
    answers = f"aeron:udp?control-mode=response|control={free_endpoint()}"
    numbers = (STREAM_ID, COUNT, *FRAGMENTED, SEED)
    asked = f"{requests}|term-length=64k"
    answered = f"{answers}|term-length=64k"
    peers.run(
        peers.command(
            "java", "answer", drivers[receives], requests, STREAM_ID, COUNT, answered, ANSWERS_STREAM_ID
        ),
        peers.command("java", "request", drivers[sends], asked, *numbers, answers, ANSWERS_STREAM_ID),
    )


@SENDS
def test_a_java_program_adds_and_removes_destinations_in_every_form(
    drivers: dict[str, Path], java: JavaPeer, peers: Peers, sends: str, receives: str
) -> None:
    """At once and asynchronously, by channel and by id, of addresses, of a spy and of IPC."""
    ports = [free_port() for _ in range(6)]
    peers.run(java.command("Destinations", drivers[sends], drivers[receives], *ports))


def test_a_java_program_in_a_group_that_our_driver_sends_to_beside_one_address(
    drivers: dict[str, Path], peers: Peers
) -> None:
    """Aeron's drivers hear no receiver of such a group, so only ours sends."""
    group = f"aeron:udp?endpoint=239.255.44.3:{free_port()}|interface=127.0.0.1"
    single = f"aeron:udp?endpoint={free_endpoint()}"
    numbers = (STREAM_ID, COUNT, *FRAGMENTED, SEED)
    sent = f"{MANUAL}|fc=min,g:/2|term-length=64k"
    peers.run(
        peers.command("java", "subscribe", drivers["java"], group, STREAM_ID, COUNT),
        peers.command("java", "subscribe", drivers["ours"], single, STREAM_ID, COUNT),
        peers.command("java", "publish", drivers["ours"], sent, *numbers, f"{group}|ttl=1", single),
    )
