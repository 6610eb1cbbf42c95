"""Parameters of channels whose effect the driver at the other end of the stream sees."""

from collections.abc import Iterator

import pytest
from benches.processes import JavaPeer

import headrace
from headrace.testing import Relay
from headrace.tools.counter_types import SENDER_LIMIT
from tests.helpers import TIMEOUT_S, await_true
from tests.interop.pairs import SENDS, Pair, counted, driver_pair, ends, position
from tests.interop.test_changes import Reader, flow
from tests.ports import free_endpoint, free_port

pytestmark = pytest.mark.interop

STREAM = 9
# Silence ends images and connections soon.
SOON = {
    "aeron.image.liveness.timeout": "500ms",
    "aeron.publication.connection.timeout": "500ms",
    "aeron.timer.interval": "100ms",
}


@pytest.fixture(scope="module")
def pair(java: JavaPeer) -> Iterator[Pair]:
    """Both drivers."""
    with driver_pair(java, SOON, SOON) as clients:
        yield clients


@SENDS
@pytest.mark.parametrize(
    ("parameters", "window"),
    [("rcv-wnd=64k", 65_536), ("rcv-wnd=256k|so-rcvbuf=256k", 262_144)],
    ids=["small", "large"],
)
def test_a_sender_may_go_as_far_as_the_window_of_its_receiver(
    pair: Pair, sends: str, parameters: str, window: int
) -> None:
    publisher, subscriber = ends(pair, sends)
    channel = f"aeron:udp?endpoint={free_endpoint()}"
    with (
        subscriber.add_subscription(f"{channel}|{parameters}", STREAM),
        publisher.add_publication(f"{channel}|term-length=1m", STREAM) as publication,
    ):
        assert publication.wait_until_connected(TIMEOUT_S)
        assert position(publisher, SENDER_LIMIT, publication) == window


@pytest.mark.parametrize("receives", ["ours", "java"])
def test_a_window_above_the_buffer_of_the_socket_is_refused(pair: Pair, receives: str) -> None:
    channel = f"aeron:udp?endpoint={free_endpoint()}|rcv-wnd=128k|so-rcvbuf=64k"
    with pytest.raises(headrace.RegistrationError, match="greater than SO_RCVBUF"):
        pair[receives].add_subscription(channel, STREAM)


@SENDS
@pytest.mark.parametrize(("sent", "received"), [(4, 2), (4, 4)], ids=["less", "same"])
def test_the_ttl_of_a_group_is_told_to_its_receivers(
    pair: Pair, sends: str, sent: int, received: int
) -> None:
    """One whose answers may not come as far counts that."""
    publisher, subscriber = ends(pair, sends)
    group = f"aeron:udp?endpoint=239.255.48.1:{free_port()}|interface=127.0.0.1"
    before = counted(subscriber, "Possible TTL Asymmetry")
    with (
        subscriber.add_subscription(f"{group}|ttl={received}", STREAM) as subscription,
        publisher.add_publication(f"{group}|ttl={sent}", STREAM),
    ):
        await_true(lambda: subscription.is_connected)
        assert counted(subscriber, "Possible TTL Asymmetry") - before == (received < sent)


@SENDS
def test_a_stream_that_was_silent_comes_back_to_those_that_rejoin(pair: Pair, sends: str) -> None:
    publisher, subscriber = ends(pair, sends)
    port = free_port()
    listen = f"aeron:udp?endpoint=127.0.0.1:{port}"
    with Relay(("127.0.0.1", port), seed=port) as relay:
        once, again = Reader(subscriber, f"{listen}|rejoin=false"), Reader(subscriber, listen, STREAM + 1)
        send = f"aeron:udp?endpoint={relay.endpoint}|term-length=64k"
        publications = [publisher.add_publication(send, STREAM + number) for number in range(2)]
        for publication, reader in zip(publications, (once, again), strict=True):
            flow(publication, [reader], seed=1)
        with relay.cut():
            await_true(lambda: not any(publication.is_connected for publication in publications))
            await_true(lambda: not once.subscription.images and not again.subscription.images)
        flow(publications[1], [again], seed=2)
        # Both say ten times a second that they are there.
        forwarded = relay.forward.received
        await_true(lambda: relay.forward.received > forwarded + 20)
        assert not once.subscription.images
        assert not publications[0].is_connected
        for publication, reader in zip(publications, (once, again), strict=True):
            publication.close()
            reader.subscription.close()
