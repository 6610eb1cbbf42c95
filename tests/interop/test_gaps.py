"""Holes at known places of a stream, as the reference's harness makes them, and what both drivers do about them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from benches.processes import JavaPeer

import headrace
from headrace.testing import fixed_loss, gap_loss
from headrace.tools.counter_types import RECEIVER_HIGH_WATER_MARK
from tests.helpers import await_true
from tests.interop.messages import message
from tests.interop.pairs import SENDS, Pair, counted, driver_pair, ends, position
from tests.interop.test_changes import Reader, flow
from tests.ports import free_endpoint, free_port

pytestmark = pytest.mark.interop

STREAM = 9
COUNT = 115
LONG_LINGER = {"aeron.retransmit.unicast.linger": "300ms"}


@contextmanager
def losing_pair(java: JavaPeer, ours: dict[str, str], theirs: str, more: dict[str, str]) -> Iterator[Pair]:
    """Both drivers lose the same of what they receive."""
    losses = {"aeron.ReceiveChannelEndpoint.supplier": "Losses", "losses": theirs}
    with driver_pair(java, ours | more, losses | more) as clients:
        yield clients


@pytest.fixture(scope="module")
def hole(java: JavaPeer) -> Iterator[Pair]:
    """They lose one long part of term 5."""
    ours = fixed_loss(term_id=5, term_offset=102, length=100_000)
    with losing_pair(java, ours, "5,102,100000", {}) as pair:
        yield pair


@pytest.fixture(scope="module")
def gaps(java: JavaPeer) -> Iterator[Pair]:
    """They lose a hundred short parts of term 0."""
    ours = gap_loss(term_id=0, distance=4096, length=128, count=100)
    with losing_pair(java, ours, "0,4096,128,100", {}) as pair:
        yield pair


@pytest.fixture(scope="module")
def few_gaps(java: JavaPeer) -> Iterator[Pair]:
    """They lose three, and what they have sent again they keep in mind for long."""
    ours = gap_loss(term_id=0, distance=4096, length=128, count=3)
    with losing_pair(java, ours, "0,4096,128,3", LONG_LINGER) as pair:
        yield pair


def begins_at(term_id: int) -> str:
    """Parameters of a publication."""
    return f"term-length=1m|init-term-id={term_id}|term-id={term_id}|term-offset=0"


# Each gap is asked for; the hole in fewer requests than it has datagrams.
@SENDS
@pytest.mark.parametrize(
    ("losses", "term_id", "expected"),
    [("hole", 5, range(1, 72)), ("gaps", 0, range(100, 201))],
    ids=["hole", "gaps"],
)
def test_what_is_lost_is_asked_for_and_sent_again(
    request: pytest.FixtureRequest, sends: str, losses: str, term_id: int, expected: range
) -> None:
    publisher, subscriber = ends(request.getfixturevalue(losses), sends)
    channel = f"aeron:udp?endpoint={free_endpoint()}"
    # The Java driver asks again after 0.1 ms if it is not told otherwise, however long the way is.
    reader = Reader(subscriber, f"{channel}|nak-delay=1ms" if sends == "ours" else channel)
    with publisher.add_publication(f"{channel}|{begins_at(term_id)}", STREAM) as publication:
        flow(publication, [reader], seed=1)
    reader.subscription.close()
    assert counted(subscriber, "NAKs sent") in expected
    assert counted(publisher, "NAKs received") in expected
    assert counted(publisher, "Retransmits sent") in expected


class Stream:
    """A stream that has a hole at its beginning, and goes on after it."""

    def __init__(self, publisher: headrace.Client, subscriber: headrace.Client, parameters: str) -> None:
        """Sends until the receiver knows of what comes after the hole."""
        channel = f"aeron:udp?endpoint={free_endpoint()}"
        self.reader = Reader(subscriber, f"{channel}|{parameters}")
        self.publication = publisher.add_publication(f"{channel}|{begins_at(5)}", STREAM)
        for index in range(COUNT):
            self.publication.offer_blocking(message(1, index, 1000, 1000))
        end = self.publication.position
        await_true(lambda: position(subscriber, RECEIVER_HIGH_WATER_MARK, self.publication) == end)

    def has_all(self) -> bool:
        """Reads what is there."""
        return self.reader.poll() == COUNT


@SENDS
def test_a_receiver_asks_after_its_delay_and_one_of_a_group_after_that_of_groups(
    hole: Pair, sends: str
) -> None:
    """The one that is to wait for an hour still waits when the others have all."""
    publisher, subscriber = ends(hole, sends)
    waits = Stream(publisher, subscriber, "nak-delay=3600s")
    for parameters in ("nak-delay=3600s|group=true", "nak-delay=1ms"):
        asks = Stream(publisher, subscriber, parameters)
        await_true(asks.has_all)
    assert waits.reader.poll() == 0


@SENDS
@pytest.mark.parametrize("most", [1, 256])
def test_a_sender_repairs_as_many_losses_of_a_group_at_a_time_as_its_channel_says(
    few_gaps: Pair, sends: str, most: int
) -> None:
    """It counts the requests that are too many."""
    publisher, subscriber = ends(few_gaps, sends)
    group = f"aeron:udp?endpoint=239.255.49.1:{free_port()}|interface=127.0.0.1"
    reader = Reader(subscriber, group)
    before = counted(publisher, "Retransmit Pool Overflow count")
    with publisher.add_publication(f"{group}|max-resend={most}|{begins_at(0)}", STREAM) as publication:
        flow(publication, [reader], seed=1)
    reader.subscription.close()
    assert (counted(publisher, "Retransmit Pool Overflow count") > before) == (most == 1)
