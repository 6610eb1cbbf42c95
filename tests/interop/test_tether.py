"""A reader without tether that stops, on our driver or the reference's: the group goes on, and it comes back."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from benches.processes import JavaPeer

import headrace
from tests.helpers import await_true
from tests.interop.conftest import our_driver_process
from tests.interop.messages import Checker, message
from tests.interop.test_streams import FRAGMENTED, LOSSES
from tests.ports import free_port

pytestmark = pytest.mark.interop

STREAM = 9
COUNT = 200
SEED = 18
TIMEOUTS = (
    "untethered-window-limit-timeout=500ms|untethered-linger-timeout=500ms|untethered-resting-timeout=2s"
)
# How often a driver looks at such readers.
SOON = {"aeron.timer.interval": "100ms"}


@pytest.fixture(scope="module")
def clients(java: JavaPeer) -> Iterator[dict[str, headrace.Client]]:
    """A client of each driver; the Java driver loses both ways."""
    with ExitStack() as stack:
        directories = {
            "ours": stack.enter_context(our_driver_process("interop-tether-ours", properties=SOON)),
            "java": stack.enter_context(java.driver("interop-tether-java", "SHARED", LOSSES | SOON)),
        }
        yield {
            name: stack.enter_context(headrace.Client.connect(directory=directory))
            for name, directory in directories.items()
        }


@pytest.mark.parametrize("stops", ["ours", "java"])
@pytest.mark.parametrize("sends", ["ours", "java"])
def test_a_group_goes_on_without_the_untethered_reader_that_stops(
    clients: dict[str, headrace.Client], sends: str, stops: str
) -> None:
    """Beside the one that stops, a reader of the same driver reads on, and so does one of the other driver."""
    group = f"aeron:udp?endpoint=239.255.45.1:{free_port()}|interface=127.0.0.1"
    other = clients["java" if stops == "ours" else "ours"]
    with (
        clients[stops].add_subscription(f"{group}|tether=false|{TIMEOUTS}", STREAM) as stopped,
        clients[stops].add_subscription(group, STREAM) as beside,
        other.add_subscription(group, STREAM) as elsewhere,
        clients[sends].add_publication(f"{group}|fc=min,g:/2|term-length=64k", STREAM) as publication,
    ):
        readers = {beside: Checker(), elsewhere: Checker()}
        await_true(lambda: all(reader.is_connected for reader in (stopped, *readers)))

        lost = False

        def poll() -> None:
            nonlocal lost
            lost = lost or not stopped.is_connected
            for reader, checker in readers.items():
                reader.poll(checker, 64)

        for index in range(COUNT):
            payload = message(SEED, index, *FRAGMENTED)

            def is_sent(payload: bytes = payload) -> bool:
                poll()
                return bool(publication.offer(payload))

            await_true(is_sent)

        def all_read() -> bool:
            poll()
            return all(checker.count == COUNT for checker in readers.values())

        await_true(all_read)
        # A term holds a few of these messages only.
        assert lost
        await_true(lambda: stopped.is_connected)
        payload = message(SEED, COUNT, *FRAGMENTED)
        publication.offer_blocking(payload)
        got: list[bytes] = []

        def comes_back() -> bool:
            stopped.poll(lambda whole, _: got.append(bytes(whole)), 64)
            return got[-1:] == [payload]

        await_true(comes_back)
