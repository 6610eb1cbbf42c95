"""Whatever the network does, all bytes arrive in order, once, or the image goes unavailable as specified."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches.processes import background, fresh_directory

import headrace
from headrace.testing import Conditions, Namespace, Namespaces, Relay
from headrace.tools import CncFile, read_error_log
from tests.faults.test_kills import await_condition
from tests.helpers import TIMEOUT_S, take
from tests.interop.conftest import our_driver_process
from tests.interop.messages import Checker, message
from tests.ports import free_port

pytestmark = pytest.mark.faults

STREAM_ID = 55
TARGET = ("127.0.0.1", free_port())
SUBSCRIPTION = f"aeron:udp?endpoint=127.0.0.1:{TARGET[1]}"
SEED = 20_261
COUNT = 2000
# With 64 KiB terms: rotation every few dozen messages, fragments up to six datagrams.
LENGTHS = (16, 8000)
NETWORKS = {
    "loss-5": Conditions(loss=0.05),
    "loss-20": Conditions(loss=0.20),
    "reordering": Conditions(reorder=0.2, reorder_depth=5),
    "duplication": Conditions(duplicate=0.3),
    "delay": Conditions(delay_s=0.005, jitter_s=0.002),
    "everything": Conditions(loss=0.1, reorder=0.1, duplicate=0.1, delay_s=0.001, jitter_s=0.001),
}


@pytest.fixture
def driver() -> Iterator[headrace.MediaDriver]:
    """An embedded driver that gives an image up after five silent seconds."""
    with headrace.MediaDriver(
        directory=fresh_directory("networks"),
        threading_mode="SHARED",
        dir_delete_on_shutdown=True,
        properties={"aeron.image.liveness.timeout": "5s", "aeron.timer.interval": "200ms"},
    ) as driver:
        yield driver


def publish(publication: headrace.Publication, count: int = COUNT) -> threading.Thread:
    """Offers the messages from a thread of their own."""

    def run() -> None:
        for index in range(count):
            publication.offer_blocking(message(SEED, index, *LENGTHS), timeout_s=TIMEOUT_S)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def receive(subscription: headrace.Subscription, checker: Checker, count: int) -> None:
    """Polls until `count` messages were checked."""

    def poll() -> bool:
        while subscription.poll(checker, 64):
            pass
        return checker.count >= count

    deadline = time.monotonic() + TIMEOUT_S
    while not poll():
        assert time.monotonic() < deadline, f"received {checker.count} of {count}"
        time.sleep(0.0005)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_byte_arrives_in_order_once(driver: headrace.MediaDriver, name: str) -> None:
    """On the way to the subscriber; the way back loses status messages and NAKs at the same rate."""
    conditions = NETWORKS[name]
    with (
        Relay(TARGET, forward=conditions, backward=conditions, seed=SEED) as relay,
        headrace.Client.connect(directory=driver.directory) as client,
        client.add_subscription(SUBSCRIPTION, STREAM_ID) as subscription,
        client.add_publication(
            f"aeron:udp?endpoint={relay.endpoint}|term-length=64k", STREAM_ID
        ) as publication,
    ):
        thread = publish(publication)
        checker = Checker()
        receive(subscription, checker, COUNT)
        thread.join()
        assert checker.count == COUNT
        assert subscription.poll(checker, 10) == 0


def test_a_cut_of_three_seconds_is_survived(driver: headrace.MediaDriver) -> None:
    """Shorter than the image's liveness time-out: the stream pauses and goes on where it was."""
    gone: list[object] = []
    with (
        Relay(TARGET, seed=SEED) as relay,
        headrace.Client.connect(directory=driver.directory) as client,
        client.add_subscription(SUBSCRIPTION, STREAM_ID, on_unavailable_image=gone.append) as subscription,
        client.add_publication(
            f"aeron:udp?endpoint={relay.endpoint}|term-length=64k", STREAM_ID
        ) as publication,
    ):
        thread = publish(publication)
        checker = Checker()
        receive(subscription, checker, 200)
        with relay.cut():
            # The length of the cut is the test's subject, not a wait for something.
            time.sleep(3.0)
        receive(subscription, checker, COUNT)
        thread.join()
        assert checker.count == COUNT
        assert not gone


def test_a_longer_cut_makes_the_image_unavailable(driver: headrace.MediaDriver) -> None:
    """After the liveness time-out the subscriber is told, and the publisher is no longer connected."""
    gone: list[object] = []
    with (
        Relay(TARGET, seed=SEED) as relay,
        headrace.Client.connect(directory=driver.directory) as client,
        client.add_subscription(SUBSCRIPTION, STREAM_ID, on_unavailable_image=gone.append) as subscription,
        client.add_publication(f"aeron:udp?endpoint={relay.endpoint}", STREAM_ID) as publication,
    ):
        publication.offer_blocking(b"x" * 64, timeout_s=TIMEOUT_S)
        # An image goes when its readers have read it to its end.
        assert subscription.receive(timeout_s=TIMEOUT_S) is not None
        with relay.cut():
            await_condition("the image to go", lambda: bool(gone))
            await_condition("the publisher to notice", lambda: not publication.is_connected)
        assert not subscription.is_connected


@pytest.mark.parametrize("chance", [0.05, 0.20])
def test_the_kernel_dropping_packets_between_two_namespaces(chance: float) -> None:
    """Two drivers, two network namespaces, a cable between them and random drops on arrival."""
    reason = Namespaces.unavailable(loss=True)
    if reason is not None:
        pytest.skip(reason)
    with Namespaces() as spaces:
        left, right = spaces.left, spaces.right
        right.drop(chance)
        with (
            our_driver_process("left", prefix=left.command([])) as here,
            our_driver_process("right", prefix=right.command([])) as there,
        ):
            channel = f"aeron:udp?endpoint={right.address}:24672|term-length=64k"
            subscribe = peer("subscribe", there, channel, 600)
            with background(subscribe, ready="READY") as subscriber:
                publish_ = peer("publish", here, channel, 600, *LENGTHS, SEED)
                with background(publish_, ready="READY") as publisher:
                    for process in (subscriber, publisher):
                        assert process.wait(timeout=TIMEOUT_S) == 0


def test_a_publication_that_is_added_before_its_network_is_up_sends_when_it_is() -> None:
    reason = Namespaces.unavailable()
    if reason is not None:
        pytest.skip(reason)
    with Namespaces() as spaces:
        left, right = spaces.left, spaces.right
        with (
            our_driver_process("early-left", prefix=left.command([])) as here,
            our_driver_process("early-right", prefix=right.command([])) as there,
            headrace.Client.connect(directory=here) as writer,
            headrace.Client.connect(directory=there) as reader,
        ):
            channel = f"aeron:udp?endpoint={right.address}:24672|term-length=64k"
            subscription = reader.add_subscription(channel, STREAM_ID)
            with spaces.cut():
                publication = writer.add_publication(channel, STREAM_ID)
                await_condition("the error log to name it", lambda: unreachable(here, right.address))
                assert not publication.is_connected
            publication.offer_blocking(b"first", timeout_s=TIMEOUT_S)
            assert take(subscription, 1) == [b"first"]
            # The socket hears its peer alone from now on, as one that was opened later.
            await_condition("the socket to be connected", lambda: connected_sockets(left) == 1)


def unreachable(directory: Path, address: str) -> bool:
    """True once a driver's error log says that a datagram cannot be sent there."""
    with CncFile.open(directory) as cnc:
        texts = [entry.text for entry in read_error_log(cnc.error_log)]
    return any(
        "failed to send datagram" in text and f"{address}:24672: Network is unreach" in text for text in texts
    )


def connected_sockets(space: Namespace) -> int:
    """UDP sockets of a namespace that have a peer."""
    command = space.command(["cat", "/proc/net/udp"])
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT_S).stdout
    return sum(row.split()[2] != "00000000:0000" for row in listed.splitlines()[1:])


def peer(role: str, directory: Path, channel: str, *rest: object) -> list[str]:
    """The interoperability tests' publisher or subscriber, which speaks to its driver through shared memory."""
    return [
        sys.executable,
        "-m",
        "tests.interop.peer",
        role,
        str(directory),
        channel,
        str(STREAM_ID),
        *map(str, rest),
    ]
