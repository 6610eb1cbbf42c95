"""Settings of a driver that the driver at the other end of a stream notices."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
from benches.processes import JavaPeer

import headrace
from headrace.cnc.cnc_file import CncFile
from headrace.cnc.error_log import read_error_log
from tests.helpers import await_true
from tests.interop.conftest import Peers, our_driver_process
from tests.interop.messages import Checker
from tests.interop.test_streams import FRAGMENTED, LOSSES
from tests.ports import free_endpoint, free_port

pytestmark = pytest.mark.interop

STREAM = 9
SMALL = (16, 200)
COUNT = 100
LOSSY = pytest.mark.parametrize("losses", [{}, LOSSES], ids=["lossless", "5-percent-loss"])


@contextmanager
def drivers(
    java: JavaPeer, make: str, properties: dict[str, str], losses: dict[str, str]
) -> Iterator[tuple[Path, Path]]:
    """Directories of a driver of this make with settings, and of one of the other make."""
    with ExitStack() as stack:
        ours = stack.enter_context(
            our_driver_process("interop-set-ours", properties=properties if make == "python" else None)
        )
        theirs = stack.enter_context(
            java.driver("interop-set-java", "SHARED", losses | (properties if make == "java" else {}))
        )
        yield (theirs, ours) if make == "java" else (ours, theirs)


@LOSSY
@pytest.mark.parametrize("receives", ["java", "python"])
def test_a_wildcard_port_of_a_range(
    java: JavaPeer, peers: Peers, receives: str, losses: dict[str, str]
) -> None:
    """A subscription with port 0 has a port of the range, where the other driver finds it."""
    sends = "python" if receives == "java" else "java"
    port = free_port()
    with drivers(java, receives, {"aeron.receiver.wildcard.port.range": f"{port} {port}"}, losses) as (
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


@LOSSY
@pytest.mark.parametrize("sends", ["java", "python"])
def test_a_wildcard_control_port_of_a_range(
    java: JavaPeer, peers: Peers, sends: str, losses: dict[str, str]
) -> None:
    """Publications whose control address has port 0 send from a port of the range, where receivers find them."""
    ports, endpoints = [free_port(), free_port()], [free_endpoint(), free_endpoint()]
    channels = [
        # The first one finds its receivers by what comes to its port.
        (
            "control-mode=dynamic",
            f"aeron:udp?endpoint={endpoints[0]}|control=127.0.0.1:{ports[0]}|control-mode=dynamic",
        ),
        (f"endpoint={endpoints[1]}", f"aeron:udp?endpoint={endpoints[1]}"),
    ]
    with (
        drivers(java, sends, {"aeron.sender.wildcard.port.range": f"{ports[0]} {ports[1]}"}, losses) as (
            sending,
            receiving,
        ),
        headrace.Client.connect(directory=receiving) as client,
    ):
        for port, (sent, received) in zip(ports, channels, strict=True):
            channel = f"aeron:udp?control=127.0.0.1:0|{sent}"
            publisher = peers.command(sends, "publish", sending, channel, STREAM, COUNT, *SMALL, 42)
            with client.add_subscription(received, STREAM) as subscription:
                end = _started(partial(peers.run, publisher))
                _read(subscription)
                assert [image.source_identity for image in subscription.images] == [f"127.0.0.1:{port}"]
            end()


@LOSSY
@pytest.mark.parametrize("receives", ["java", "python"])
def test_a_stream_with_as_many_sessions_as_it_may_have(
    java: JavaPeer, peers: Peers, receives: str, losses: dict[str, str]
) -> None:
    """A second session waits until the first one leaves, and loses nothing."""
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    limit = {"aeron.driver.stream.session.limit": "1"}
    with (
        drivers(java, receives, limit, losses) as (receiving, sending),
        headrace.Client.connect(directory=receiving) as client,
        client.add_subscription(f"{channel}|session-id=1", STREAM) as first,
        client.add_subscription(f"{channel}|session-id=2", STREAM) as second,
    ):
        publishers = [
            peers.command(
                "python",
                "publish",
                directory,
                f"{channel}|session-id={session}",
                STREAM,
                COUNT,
                *SMALL,
                session,
            )
            for session, directory in [(1, receiving), (2, sending)]
        ]
        # Each ends when its receiver has left. The second one is of the other driver.
        ends = [_started(lambda: peers.run(publishers[0]))]
        await_true(lambda: first.is_connected)
        ends.append(_started(lambda: peers.run(publishers[1])))
        await_true(lambda: _is_refused(receiving))
        assert not second.is_connected
        _read(first)
        first.close()
        _read(second)
        second.close()
        for end in ends:
            end()


@pytest.mark.parametrize("sends", ["java", "python"])
def test_the_flow_control_of_groups(java: JavaPeer, peers: Peers, sends: str) -> None:
    """The publisher's driver waits for both receivers, though its channel does not say so."""
    group = f"aeron:udp?endpoint=239.255.46.1:{free_port()}|interface=127.0.0.1"
    size = {"aeron.flow.control.group.min.size": "2"}
    ours = size | {"aeron.multicast.FlowControl.supplier": "multicast_min"}
    theirs = size | {
        "aeron.multicast.FlowControl.supplier": "io.aeron.driver.MinMulticastFlowControlSupplier"
    }
    with ExitStack() as stack:
        directories = {
            "python": stack.enter_context(our_driver_process("interop-set-ours", properties=ours)),
            "java": stack.enter_context(java.driver("interop-set-java", "SHARED", LOSSES | theirs)),
        }
        peers.run(
            *(
                peers.command(language, "subscribe", directory, group, STREAM, COUNT)
                for language, directory in directories.items()
            ),
            peers.command(
                sends,
                "publish",
                directories[sends],
                f"{group}|term-length=64k",
                STREAM,
                COUNT,
                *FRAGMENTED,
                14,
            ),
        )


def _started(run: Callable[[], None]) -> Callable[[], None]:
    """Runs in a thread. Returns what waits for its end and raises what it raised."""
    raised: list[BaseException] = []

    def catching() -> None:
        try:
            run()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=catching, daemon=True)
    thread.start()

    def end() -> None:
        thread.join()
        if raised:
            raise raised[0]

    return end


def _is_refused(directory: Path) -> bool:
    with CncFile.open(directory) as cnc:
        return any("exceeded session limit" in entry.text for entry in read_error_log(cnc.error_log))


def _read(subscription: headrace.Subscription) -> None:
    checker = Checker()

    def all_came() -> bool:
        subscription.poll(checker, 64)
        return checker.count == COUNT

    await_true(all_came)
