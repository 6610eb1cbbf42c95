"""Who holds a stream back and whom it waits for, where settings of the drivers say so and no channel does."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from benches.processes import JavaPeer

from tests.helpers import await_true
from tests.interop.pairs import SENDS, Pair, counted, driver_pair, ends, position
from tests.interop.test_changes import Reader, flow
from tests.interop.test_streams import LOSSES
from tests.ports import free_endpoint, free_port

pytestmark = pytest.mark.interop

STREAM = 9
RECEIVERS = 17
HEARD = "Status Messages received"


@dataclass
class Strategy:
    """A strategy, the kind of channel that it is set for, and how many receivers it needs."""

    kind: str
    name: str
    size: int

    def settings(self, supplier: str) -> dict[str, str]:
        """Of a driver that sends and receives."""
        return {
            f"aeron.{self.kind}.FlowControl.supplier": supplier,
            "aeron.flow.control.group.tag": "1001",
            "aeron.flow.control.group.min.size": str(self.size),
            "aeron.receiver.group.tag": "1001",
        }

    def channel(self) -> str:
        """One of that kind."""
        if self.kind == "unicast":
            return f"aeron:udp?endpoint={free_endpoint()}"
        return f"aeron:udp?endpoint=239.255.47.1:{free_port()}|interface=127.0.0.1"


STRATEGIES = [
    Strategy("multicast", "Min", 2),
    Strategy("multicast", "Tagged", 2),
    Strategy("unicast", "Min", 1),
    Strategy("unicast", "Tagged", 1),
]


@pytest.fixture(scope="module", params=STRATEGIES, ids=lambda strategy: f"{strategy.kind}-{strategy.name}")
def strategy(request: pytest.FixtureRequest) -> Strategy:
    """One of them."""
    chosen: Strategy = request.param
    return chosen


@pytest.fixture(scope="module")
def pair(java: JavaPeer, strategy: Strategy) -> Iterator[Pair]:
    """Both drivers with the strategy; the Java driver loses both ways."""
    ours = strategy.settings(f"multicast_{strategy.name.lower()}")
    theirs = strategy.settings(f"io.aeron.driver.{strategy.name}MulticastFlowControlSupplier")
    with driver_pair(java, ours, LOSSES | theirs) as clients:
        yield clients


@SENDS
def test_a_publication_waits_for_as_many_receivers_as_it_needs(
    pair: Pair, strategy: Strategy, sends: str
) -> None:
    publisher, subscriber = ends(pair, sends)
    channel = strategy.channel()
    with publisher.add_publication(f"{channel}|term-length=64k", STREAM) as publication:
        readers: list[Reader] = []
        for client in [subscriber, publisher][: strategy.size]:
            assert not publication.is_connected
            readers.append(Reader(client, channel))
            await_true(lambda: position(publisher, RECEIVERS, publication) == len(readers))
        flow(publication, readers, seed=1)
    for reader in readers:
        reader.subscription.close()


@SENDS
def test_a_receiver_of_another_group_counts_if_groups_do_not(
    pair: Pair, strategy: Strategy, sends: str
) -> None:
    publisher, subscriber = ends(pair, sends)
    channel = strategy.channel()
    heard = counted(publisher, HEARD)
    with (
        publisher.add_publication(channel, STREAM) as publication,
        subscriber.add_subscription(f"{channel}|gtag=7", STREAM) as subscription,
    ):
        await_true(lambda: subscription.is_connected and counted(publisher, HEARD) > heard + 3)
        count = position(publisher, RECEIVERS, publication)
        assert count == (strategy.name == "Min")
        await_true(lambda: publication.is_connected == (count == strategy.size))
