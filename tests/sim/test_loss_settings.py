"""When receivers ask for lost data, and how publishers send it again, as settings and channels have it."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pytest

from headrace.testing import Node, World

pytestmark = pytest.mark.sim

KIB = 1024
MS = 1_000_000
STREAM = 10
MTU = 1408
FRAME_HEADER = 32
UDP = "aeron:udp?endpoint=right:40123|term-length=64k"
GROUP = "aeron:udp?endpoint=239.255.41.1:40123|term-length=64k"
# Room for more on the way than the sender repairs at a time.
WIDE = "|term-length=1m|rcv-wnd=512k|so-rcvbuf=1m"
# A receiver of a group waits up to a second before it asks for lost data, another less than a millisecond.
SLOW_GROUPS: Any = {"adaptive_loss": False, "nak_multicast_max_backoff_ns": 1000 * MS}
QUICK_GROUPS: Any = {"adaptive_loss": False, "nak_multicast_max_backoff_ns": MS}
DATAGRAM = re.compile(r"^ *(\d+)\.(\d{9}) \S+ > \S+ (DATA|NAK) .* offset=(\d+) .*length=(\d+):", re.MULTILINE)
OVERFLOWS = "Retransmit Pool Overflow count"


class Datagram(NamedTuple):
    """When a piece of data, or a request for one, was sent; where the piece is in its term; length of the datagram."""

    time_ns: int
    offset: int
    length: int


class Stream:
    """A stream from one node to another, over a link that can be cut."""

    def __init__(self, world: World, left: Node, right: Node, sent: str = UDP, received: str = "") -> None:
        self.world, self.left, self.right = world, left, right
        self.publisher, self.subscriber = left.connect(), right.connect()
        self.subscription = self.subscriber.add_subscription(received or sent, STREAM)
        self.publication = self.publisher.add_publication(sent, STREAM)
        world.run_until(lambda: self.publication.is_connected, within_s=5)

    def send(self, count: int = 1) -> None:
        """Messages of a datagram each, and time for the driver to send them."""
        for _ in range(count):
            self.world.run_until(lambda: self.publication.offer(bytes(MTU - FRAME_HEADER)) > 0, within_s=5)
        self.world.run_for(0.002)

    def lose(self, count: int = 1) -> None:
        """Messages that do not arrive, between others that do."""
        self.send()
        self.left.cut(self.right)
        self.send(count)
        self.left.mend(self.right)
        self.send()

    def datagrams(self, kind: str) -> list[Datagram]:
        """Of a kind, so far."""
        found = DATAGRAM.findall(self.world.trace())
        return [
            Datagram(int(seconds + part), int(offset), int(length))
            for seconds, part, of, offset, length in found
            if of == kind
        ]

    def request(self) -> Datagram:
        """The first NAK, which must come within two seconds."""
        self.world.run_until(lambda: self.datagrams("NAK"), within_s=2)
        return self.datagrams("NAK")[0]

    def repairs(self) -> list[Datagram]:
        """What was sent again, which must be something within two seconds."""
        self.world.run_until(self._sent_again, within_s=2)
        return self._sent_again()

    def waited_ns(self) -> int:
        """From the packet that comes after a gap to the first NAK for the bytes in it."""
        asked_ns = self.request().time_ns
        return asked_ns - max(data.time_ns for data in self.datagrams("DATA") if data.time_ns < asked_ns)

    def _sent_again(self) -> list[Datagram]:
        sent = self.datagrams("DATA")
        first = {data.offset: data for data in reversed(sent)}
        return [data for data in sent if data is not first[data.offset]]


@pytest.mark.parametrize(("key", "waits"), [("", False), ("|nak-delay=50ms", True)])
def test_a_receiver_waits_as_long_as_its_channel_says(key: str, waits: bool) -> None:
    with World(1) as world:
        stream = Stream(world, world.add_node("left"), world.add_node("right"), UDP, UDP + key)
        stream.lose()
        assert (stream.waited_ns() > 50 * MS) is waits


@pytest.mark.parametrize(
    ("setting", "channel", "key", "is_group"),
    [
        ("infer", UDP, "", False),
        ("true", UDP, "", True),
        ("infer", GROUP, "", True),
        ("false", GROUP, "", False),
        ("infer", UDP, "|group=true", True),
        ("true", UDP, "|group=false", False),
        ("infer", GROUP, "|group=false", False),
        ("false", GROUP, "|group=infer", True),
    ],
)
def test_receivers_are_a_group_as_setting_and_channel_say(
    setting: str, channel: str, key: str, is_group: bool
) -> None:
    with World(1) as world:
        right = world.add_node("right", receiver_group_consideration=setting, **SLOW_GROUPS)
        stream = Stream(world, world.add_node("left"), right, channel, channel + key)
        stream.lose()
        assert (stream.waited_ns() > MS) is is_group


@pytest.mark.parametrize(("delay_ns", "waits"), [(0, False), (50 * MS, True)])
def test_a_sender_waits_before_it_sends_again_as_long_as_its_setting_says(delay_ns: int, waits: bool) -> None:
    with World(1) as world:
        left = world.add_node("left", retransmit_unicast_delay_ns=delay_ns)
        stream = Stream(world, left, world.add_node("right"))
        stream.lose()
        waited_ns = stream.repairs()[0].time_ns - stream.request().time_ns
        assert (waited_ns > 50 * MS) is waits


@pytest.mark.parametrize(
    ("setting", "key", "is_repaired"),
    [(None, "", True), (1, "", False), (None, "|max-resend=1", False), (1, "|max-resend=2", True)],
)
def test_as_many_repairs_are_under_way_as_setting_and_channel_say(
    setting: int | None, key: str, is_repaired: bool
) -> None:
    with World(1) as world:
        left = world.add_node("left", resend_max=setting, retransmit_unicast_linger_ns=5000 * MS)
        right = world.add_node("right", **QUICK_GROUPS)
        stream = Stream(world, left, right, GROUP + key, GROUP)
        stream.lose()
        stream.lose()
        # The first repair is under way for as long as the sender lingers.
        world.run_for(1)
        assert len(stream.repairs()) == 1 + is_repaired
        (overflows,) = [each.value for each in stream.publisher.counters if each.label == OVERFLOWS]
        assert (overflows == 0) is is_repaired


@pytest.mark.parametrize(
    ("channel", "setting"),
    [(UDP, "unicast_flow_control_rrwm"), (GROUP, "multicast_flow_control_rrwm")],
    ids=["one receiver", "group"],
)
@pytest.mark.parametrize("multiple", [1, 2])
def test_one_request_brings_back_as_many_windows_as_the_setting_says(
    channel: str, setting: str, multiple: int
) -> None:
    with World(1) as world:
        left, right = world.add_node("left", **{setting: multiple}), world.add_node("right", **QUICK_GROUPS)
        stream = Stream(world, left, right, channel + WIDE)
        stream.lose(300)
        repairs = stream.repairs()
        at_once = [repair for repair in repairs if repair.time_ns == repairs[0].time_ns]
        assert len(at_once) == multiple * 128 * KIB // MTU
