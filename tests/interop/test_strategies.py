"""Flow control, congestion control, and parameters of channels between our driver and the reference's, with loss."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from benches.processes import JavaPeer

from headrace.testing import Conditions, Relay
from tests.interop.conftest import Peers, our_driver_process
from tests.interop.test_streams import FRAGMENTED, LOSSES
from tests.ports import free_endpoint, free_port

pytestmark = pytest.mark.interop

COUNT = 1000
STREAM_ID = 9
PUBLISHERS = pytest.mark.parametrize("publisher", ["java", "python"])


@contextmanager
def drivers(
    java: JavaPeer, losses: dict[str, str], ours: dict[str, str] | None = None
) -> Iterator[dict[str, Path]]:
    """One driver of each make, by the language whose clients use it."""
    with ExitStack() as stack:
        our = stack.enter_context(our_driver_process("interop-strategies-ours", properties=ours or {}))
        their = stack.enter_context(java.driver("interop-strategies-java", "SHARED", losses))
        yield {"python": our, "java": their}


def stream(
    peers: Peers,
    directories: dict[str, Path],
    publisher: str,
    received: str,
    sent: str,
    destinations: Sequence[str] = (),
) -> None:
    """Messages of one side's publisher, all of which a subscriber of the other side checks."""
    subscriber = "python" if publisher == "java" else "java"
    peers.run(
        peers.command(
            subscriber, "subscribe", directories[subscriber], received, STREAM_ID, COUNT, *destinations
        ),
        peers.command(publisher, "publish", directories[publisher], sent, STREAM_ID, COUNT, *FRAGMENTED, 15),
    )


@PUBLISHERS
def test_tagged_receivers_hold_a_stream_back_on_both_drivers(
    java: JavaPeer, peers: Peers, publisher: str
) -> None:
    """Two destinations with the tag of the group, which needs both."""
    endpoints = {"python": free_endpoint(), "java": free_endpoint()}
    with drivers(java, LOSSES) as directories:
        peers.run(
            *(
                peers.command(
                    language,
                    "subscribe",
                    directory,
                    f"aeron:udp?endpoint={endpoints[language]}|gtag=1001",
                    STREAM_ID,
                    COUNT,
                )
                for language, directory in directories.items()
            ),
            peers.command(
                publisher,
                "publish",
                directories[publisher],
                "aeron:udp?control-mode=manual|fc=tagged,g:1001/2,t:1s",
                STREAM_ID,
                COUNT,
                *FRAGMENTED,
                15,
                *(f"aeron:udp?endpoint={endpoint}" for endpoint in endpoints.values()),
            ),
        )


@PUBLISHERS
def test_a_window_that_follows_round_trips_and_loss(java: JavaPeer, peers: Peers, publisher: str) -> None:
    """``cc=cubic`` at the receiver, with round trips measured."""
    port = free_port()
    measured = {"aeron.CubicCongestionControl.measureRtt": "true"}
    received = f"aeron:udp?endpoint=127.0.0.1:{port}|cc=cubic|rcv-wnd=128k"
    with (
        Relay(("127.0.0.1", port), forward=Conditions(loss=0.05), seed=5) as relay,
        drivers(java, measured, measured) as directories,
    ):
        sent = f"aeron:udp?endpoint={relay.endpoint}|term-length=64k"
        stream(peers, directories, publisher, received, sent)
        assert relay.forward.dropped > 0


@PUBLISHERS
def test_a_group_as_a_destination_of_a_subscription(java: JavaPeer, peers: Peers, publisher: str) -> None:
    group = f"aeron:udp?endpoint=239.255.42.1:{free_port()}|interface=127.0.0.1"
    with drivers(java, LOSSES) as directories:
        manual = "aeron:udp?control-mode=manual"
        stream(peers, directories, publisher, manual, f"{group}|term-length=64k", [group])


@PUBLISHERS
def test_the_parameters_of_repair_windows_and_sockets(java: JavaPeer, peers: Peers, publisher: str) -> None:
    """Each end takes the other's stream with all of them set."""
    channel = f"aeron:udp?endpoint={free_endpoint()}"
    received = "nak-delay=2ms|rcv-wnd=64k|so-rcvbuf=256k|so-sndbuf=256k|group=true|tether=false|rejoin=false"
    sent = "term-length=64k|max-resend=4|so-sndbuf=256k|so-rcvbuf=256k"
    with drivers(java, LOSSES) as directories:
        stream(peers, directories, publisher, f"{channel}|{received}", f"{channel}|{sent}")
