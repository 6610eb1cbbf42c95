"""Every pairing of our driver and clients with the reference's unmodified ones."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from benches.processes import JavaPeer

from headrace.testing import Conditions, Relay
from tests.interop.conftest import Peers, our_driver_process
from tests.ports import free_endpoint, free_port

pytestmark = pytest.mark.interop

IPC = "aeron:ipc?term-length=64k"
UDP = f"aeron:udp?endpoint={free_endpoint()}|term-length=64k"
LOSSY_PORT = free_port()
SMALL = (16, 200)
# With 64 KiB terms a message may be 8 KiB, six fragments of the default MTU.
FRAGMENTED = (16, 8000)


@pytest.mark.parametrize("channel", [IPC, UDP], ids=["ipc", "udp"])
@pytest.mark.parametrize("lengths", [SMALL, FRAGMENTED], ids=["small", "fragmented"])
def test_java_clients_on_our_driver(
    our_driver: Path, peers: Peers, channel: str, lengths: tuple[int, int]
) -> None:
    """(a) with enough bytes to rotate 64 KiB terms many times."""
    peers.run(
        peers.command("java", "subscribe", our_driver, channel, 7, 5000),
        peers.command("java", "publish", our_driver, channel, 7, 5000, *lengths, 11),
    )


@pytest.mark.parametrize("channel", [IPC, UDP], ids=["ipc", "udp"])
@pytest.mark.parametrize("lengths", [SMALL, FRAGMENTED], ids=["small", "fragmented"])
def test_our_clients_on_the_java_driver(
    java_driver: Path, peers: Peers, channel: str, lengths: tuple[int, int]
) -> None:
    """(b) the same the other way round."""
    peers.run(
        peers.command("python", "subscribe", java_driver, channel, 7, 5000),
        peers.command("python", "publish", java_driver, channel, 7, 5000, *lengths, 12),
    )


@pytest.mark.parametrize("publisher", ["java", "python"])
@pytest.mark.parametrize("loss", [0.0, 0.05], ids=["lossless", "5-percent-loss"])
def test_streams_between_the_two_drivers(java: JavaPeer, peers: Peers, publisher: str, loss: float) -> None:
    """(c) fragmented messages over UDP between drivers, with term rotation, without and with random loss."""
    subscriber = "python" if publisher == "java" else "java"
    with ExitStack() as stack:
        relay = stack.enter_context(
            Relay(("127.0.0.1", LOSSY_PORT), forward=Conditions(loss=loss), seed=20_261)
        )
        ours = stack.enter_context(our_driver_process("interop-c-ours"))
        theirs = stack.enter_context(java.driver("interop-c-java", "SHARED"))
        directories = {"java": theirs, "python": ours}
        peers.run(
            peers.command(
                subscriber,
                "subscribe",
                directories[subscriber],
                f"aeron:udp?endpoint=127.0.0.1:{LOSSY_PORT}",
                9,
                2000,
            ),
            peers.command(
                publisher,
                "publish",
                directories[publisher],
                f"aeron:udp?endpoint={relay.endpoint}|term-length=64k",
                9,
                2000,
                *FRAGMENTED,
                13,
            ),
        )
        assert (relay.forward.dropped > 0) == (loss > 0), relay.forward


SPIED = UDP + "|ssc=true"


@pytest.mark.parametrize("spy", ["java", "python"])
@pytest.mark.parametrize("publisher", ["java", "python"])
def test_spies_on_our_driver(our_driver: Path, peers: Peers, spy: str, publisher: str) -> None:
    """(e) a spy alone keeps the stream going, and sees all of it, fragmented and rotated."""
    peers.run(
        peers.command(spy, "subscribe", our_driver, f"aeron-spy:{SPIED}", 7, 3000),
        peers.command(publisher, "publish", our_driver, SPIED, 7, 3000, *FRAGMENTED, 31),
    )


def test_a_java_spy_beside_a_subscriber_of_another_driver(java: JavaPeer, peers: Peers) -> None:
    """(f) what our driver sends to the Java driver, a Java spy on ours sees as well."""
    with ExitStack() as stack:
        ours = stack.enter_context(our_driver_process("interop-f-ours"))
        theirs = stack.enter_context(java.driver("interop-f-java", "SHARED"))
        peers.run(
            peers.command("java", "subscribe", theirs, UDP, 7, 3000),
            peers.command("java", "subscribe", ours, f"aeron-spy:{UDP}", 7, 3000),
            peers.command("python", "publish", ours, UDP, 7, 3000, *SMALL, 32),
        )


@pytest.mark.parametrize("driver", ["ours", "java"])
def test_both_languages_share_one_publication(
    request: pytest.FixtureRequest, peers: Peers, driver: str
) -> None:
    """(d) two publishers append to one log, two subscribers read it; both pairs are of mixed language."""
    directory = request.getfixturevalue("our_driver" if driver == "ours" else "java_driver")
    peers.run(
        peers.command("java", "subscribe", directory, IPC, 8, 4000),
        peers.command("python", "subscribe", directory, IPC, 8, 4000),
        peers.command("java", "publish", directory, IPC, 8, 2000, *FRAGMENTED, 21),
        peers.command("python", "publish", directory, IPC, 8, 2000, *FRAGMENTED, 22),
    )


# The fastest receiver of a group leads. One that is half a term behind it gets no more repairs: that is further here
# than all messages take together.
GROUP = f"aeron:udp?endpoint=239.255.42.1:{free_port()}|interface=127.0.0.1"
# The Java driver loses what it sends and what it receives, so both sides repair and are repaired.
LOSSES = {
    "aeron.SendChannelEndpoint.supplier": "io.aeron.driver.ext.DebugSendChannelEndpointSupplier",
    "aeron.ReceiveChannelEndpoint.supplier": "io.aeron.driver.ext.DebugReceiveChannelEndpointSupplier",
    "aeron.debug.send.data.loss.rate": "0.05",
    "aeron.debug.send.data.loss.seed": "20261",
    "aeron.debug.receive.data.loss.rate": "0.05",
    "aeron.debug.receive.data.loss.seed": "20262",
}


@pytest.mark.parametrize("publisher", ["java", "python"])
@pytest.mark.parametrize("losses", [{}, LOSSES], ids=["lossless", "5-percent-loss"])
def test_a_group_of_both_drivers(
    java: JavaPeer, peers: Peers, publisher: str, losses: dict[str, str]
) -> None:
    """(g) one stream to receivers on our driver and on the Java driver, of which one also sends it."""
    with ExitStack() as stack:
        ours = stack.enter_context(our_driver_process("interop-g-ours"))
        theirs = stack.enter_context(java.driver("interop-g-java", "SHARED", losses))
        publishes = theirs if publisher == "java" else ours
        peers.run(
            peers.command("python", "subscribe", ours, GROUP, 9, 1000),
            peers.command("java", "subscribe", theirs, GROUP, 9, 1000),
            peers.command(publisher, "publish", publishes, GROUP, 9, 1000, *FRAGMENTED, 14),
        )


# Both receivers must be there before the first message, or the later one joins the stream after it.
BOTH_NEEDED = "fc=min,g:/2"
CONTROL = f"control={free_endpoint()}"
ENDPOINTS = {
    "python": f"aeron:udp?endpoint={free_endpoint()}",
    "java": f"aeron:udp?endpoint={free_endpoint()}",
}


@pytest.mark.parametrize("publisher", ["java", "python"])
@pytest.mark.parametrize("losses", [{}, LOSSES], ids=["lossless", "5-percent-loss"])
@pytest.mark.parametrize("mode", ["dynamic", "manual"])
def test_destinations_on_both_drivers(
    java: JavaPeer, peers: Peers, publisher: str, losses: dict[str, str], mode: str
) -> None:
    """(h) one publication to a receiver on our driver and one on the Java driver, of which one also sends it."""
    if mode == "dynamic":
        channel, destinations = f"aeron:udp?{CONTROL}|control-mode=dynamic|{BOTH_NEEDED}", []
        listen = {language: f"{text}|{CONTROL}|control-mode=dynamic" for language, text in ENDPOINTS.items()}
    else:
        channel, destinations = f"aeron:udp?control-mode=manual|{BOTH_NEEDED}", list(ENDPOINTS.values())
        listen = ENDPOINTS
    with ExitStack() as stack:
        ours = stack.enter_context(our_driver_process("interop-h-ours"))
        theirs = stack.enter_context(java.driver("interop-h-java", "SHARED", losses))
        directories = {"java": theirs, "python": ours}
        peers.run(
            *(
                peers.command(language, "subscribe", directory, listen[language], 9, 1000)
                for language, directory in directories.items()
            ),
            peers.command(
                publisher,
                "publish",
                directories[publisher],
                channel,
                9,
                1000,
                *FRAGMENTED,
                15,
                *destinations,
            ),
        )


PATHS = [free_port(), free_port()]


@pytest.mark.parametrize("subscriber", ["java", "python"])
@pytest.mark.parametrize("receives", ["java", "python"])
@pytest.mark.parametrize("loss", [0.0, 0.05], ids=["lossless", "5-percent-loss"])
def test_a_stream_over_two_paths(
    java: JavaPeer, peers: Peers, subscriber: str, receives: str, loss: float
) -> None:
    """(i) clients of both add two sockets to a subscription, on either driver; the other driver sends to both."""
    sends = "python" if receives == "java" else "java"
    with ExitStack() as stack:
        relays = [
            stack.enter_context(Relay(("127.0.0.1", port), forward=Conditions(loss=loss), seed=port))
            for port in PATHS
        ]
        ours = stack.enter_context(our_driver_process("interop-i-ours"))
        theirs = stack.enter_context(java.driver("interop-i-java", "SHARED"))
        directories = {"java": theirs, "python": ours}
        peers.run(
            peers.command(
                subscriber,
                "subscribe",
                directories[receives],
                "aeron:udp?control-mode=manual",
                9,
                1000,
                *(f"aeron:udp?endpoint=127.0.0.1:{port}" for port in PATHS),
            ),
            peers.command(
                sends,
                "publish",
                directories[sends],
                "aeron:udp?control-mode=manual|term-length=64k",
                9,
                1000,
                *FRAGMENTED,
                16,
                *(f"aeron:udp?endpoint=127.0.0.1:{relay.address[1]}" for relay in relays),
            ),
        )


@pytest.mark.parametrize("subscriber", ["java", "python"])
def test_local_destinations_on_our_driver(our_driver: Path, peers: Peers, subscriber: str) -> None:
    """(j) IPC as a destination; the Java client knows its images by the subscription's registration id."""
    publisher = "python" if subscriber == "java" else "java"
    peers.run(
        peers.command(
            subscriber, "subscribe", our_driver, "aeron:udp?control-mode=manual", 9, 1000, "aeron:ipc"
        ),
        peers.command(publisher, "publish", our_driver, IPC, 9, 1000, *SMALL, 17),
    )


# Of two messages in one datagram only the first has the time of sending: these fill more than half of one each.
ALONE = (700, 1300)


@pytest.mark.parametrize("publisher", ["java", "python"])
@pytest.mark.parametrize("key", ["channel-snd-ts-offset", "channel-rcv-ts-offset"])
@pytest.mark.parametrize("losses", [{}, LOSSES], ids=["lossless", "5-percent-loss"])
def test_timestamps_between_the_two_drivers(
    java: JavaPeer, peers: Peers, publisher: str, key: str, losses: dict[str, str]
) -> None:
    """(k) the driver that sends, or the one that receives, writes the time into each message."""
    subscriber = "python" if publisher == "java" else "java"
    channel = f"{UDP}|{key}=reserved"
    with ExitStack() as stack:
        ours = stack.enter_context(our_driver_process("interop-k-ours"))
        theirs = stack.enter_context(java.driver("interop-k-java", "SHARED", losses))
        directories = {"java": theirs, "python": ours}
        peers.run(
            peers.command(subscriber, "subscribe", directories[subscriber], channel, 7, 3000),
            peers.command(publisher, "publish", directories[publisher], channel, 7, 3000, *ALONE, 33),
        )


@pytest.mark.parametrize("losses", [{}, LOSSES], ids=["lossless", "5-percent-loss"])
def test_media_timestamps_of_what_the_java_driver_sends(
    java: JavaPeer, peers: Peers, losses: dict[str, str]
) -> None:
    """(l) the kernel's time of arrival; the Java driver refuses that parameter on subscriptions."""
    with ExitStack() as stack:
        ours = stack.enter_context(our_driver_process("interop-l-ours"))
        theirs = stack.enter_context(java.driver("interop-l-java", "SHARED", losses))
        peers.run(
            peers.command("python", "subscribe", ours, f"{UDP}|media-rcv-ts-offset=reserved", 7, 3000),
            peers.command("java", "publish", theirs, UDP, 7, 3000, *ALONE, 34),
        )


# No first fragment has room beside it: a datagram begins with each.
ALWAYS_FRAGMENTED = (1400, 8000)
# Some messages of `FRAGMENTED` are too short for it: they stay as they are.
PAYLOAD_OFFSET = 200


@pytest.mark.parametrize("publisher", ["java", "python"])
@pytest.mark.parametrize("key", ["channel-snd-ts-offset", "channel-rcv-ts-offset"])
@pytest.mark.parametrize("losses", [{}, LOSSES], ids=["lossless", "5-percent-loss"])
def test_timestamps_in_the_payload_between_the_two_drivers(
    java: JavaPeer, peers: Peers, publisher: str, key: str, losses: dict[str, str]
) -> None:
    """(o) eight bytes of each message's first fragment are the time, and all others are as published."""
    subscriber = "python" if publisher == "java" else "java"
    # The Java driver writes the time of arrival where a datagram begins, as both write that of sending; ours does so
    # in all messages.
    is_in_all = subscriber == "python" and key == "channel-rcv-ts-offset"
    lengths = FRAGMENTED if is_in_all else ALWAYS_FRAGMENTED
    channel = f"{UDP}|{key}={PAYLOAD_OFFSET}"
    with ExitStack() as stack:
        ours = stack.enter_context(our_driver_process("interop-o-ours"))
        theirs = stack.enter_context(java.driver("interop-o-java", "SHARED", losses))
        directories = {"java": theirs, "python": ours}
        peers.run(
            peers.command(subscriber, "subscribe", directories[subscriber], channel, 7, 1000),
            peers.command(publisher, "publish", directories[publisher], channel, 7, 1000, *lengths, 35),
        )


@pytest.mark.parametrize("losses", [{}, LOSSES], ids=["lossless", "5-percent-loss"])
def test_media_timestamps_in_the_payload_of_what_the_java_driver_sends(
    java: JavaPeer, peers: Peers, losses: dict[str, str]
) -> None:
    """(p) the kernel's time of arrival, in the same place."""
    channel = f"{UDP}|media-rcv-ts-offset={PAYLOAD_OFFSET}"
    with ExitStack() as stack:
        ours = stack.enter_context(our_driver_process("interop-p-ours"))
        theirs = stack.enter_context(java.driver("interop-p-java", "SHARED", losses))
        peers.run(
            peers.command("python", "subscribe", ours, channel, 7, 1000),
            peers.command("java", "publish", theirs, UDP, 7, 1000, *FRAGMENTED, 36),
        )


REQUESTS_UDP = f"aeron:udp?endpoint={free_endpoint()}"
ANSWERS_UDP = f"aeron:udp?control-mode=response|control={free_endpoint()}"
ANSWERS_IPC = "aeron:ipc?control-mode=response|term-length=64k"


@pytest.mark.parametrize("responder", ["java", "python"])
@pytest.mark.parametrize("losses", [{}, LOSSES], ids=["lossless", "5-percent-loss"])
def test_answers_between_the_two_drivers(
    java: JavaPeer, peers: Peers, responder: str, losses: dict[str, str]
) -> None:
    """(m) a requester on each driver reads the answers to its own requests; one comes before the responder."""
    with ExitStack() as stack:
        ours = stack.enter_context(our_driver_process("interop-m-ours"))
        theirs = stack.enter_context(java.driver("interop-m-java", "SHARED", losses))
        directories = {"java": theirs, "python": ours}

        def requester(language: str, seed: int) -> list[str]:
            directory, channel = directories[language], f"{REQUESTS_UDP}|term-length=64k"
            return peers.command(
                language, "request", directory, channel, 7, 1000, *FRAGMENTED, seed, ANSWERS_UDP, 8
            )

        channel = f"{ANSWERS_UDP}|term-length=64k"
        peers.run(
            requester("java", 41),
            peers.command(responder, "answer", directories[responder], REQUESTS_UDP, 7, 2000, channel, 8),
            requester("python", 42),
        )


@pytest.mark.parametrize("responder", ["java", "python"])
@pytest.mark.parametrize("driver", ["ours", "java"])
def test_answers_over_ipc(request: pytest.FixtureRequest, peers: Peers, driver: str, responder: str) -> None:
    """(n) requesters of both languages and a responder of one, on a driver of either kind."""
    directory = request.getfixturevalue("our_driver" if driver == "ours" else "java_driver")

    def requester(language: str, seed: int) -> list[str]:
        return peers.command(language, "request", directory, IPC, 7, 1000, *FRAGMENTED, seed, ANSWERS_IPC, 8)

    peers.run(
        requester("java", 43),
        peers.command(responder, "answer", directory, IPC, 7, 2000, ANSWERS_IPC, 8),
        requester("python", 44),
    )
