"""What changes while a stream flows between our driver and the reference's, with loss: where it goes, and how."""

import mmap
import os
import shutil
import signal
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import pytest
from benches.processes import JavaPeer

import headrace
from headrace.cnc.cnc_file import HEADER_LENGTH, CncFile
from headrace.cnc.counters import VALUE_LENGTH
from headrace.testing import Conditions, Relay
from headrace.tools.counter_types import DESTINATION_COUNT
from tests.helpers import await_true
from tests.interop.conftest import our_driver_process
from tests.interop.messages import Checker, message
from tests.interop.test_streams import FRAGMENTED, LOSSES
from tests.ports import free_endpoint, free_port

pytestmark = pytest.mark.interop

STREAM = 9
COUNT = 300
MANUAL = "aeron:udp?control-mode=manual"
LOSS = Conditions(loss=0.05)
SENDS = pytest.mark.parametrize("sends", ["ours", "java"])


@contextmanager
def drivers(
    java: JavaPeer, sends: str, ours: dict[str, str] | None = None, theirs: dict[str, str] | None = None
) -> Iterator[tuple[Path, Path]]:
    """Directories of the driver that sends and of the one that receives; the Java driver loses both ways."""
    with ExitStack() as stack:
        our = stack.enter_context(our_driver_process("interop-change-ours", properties=ours))
        their = stack.enter_context(java.driver("interop-change-java", "SHARED", LOSSES | (theirs or {})))
        yield (our, their) if sends == "ours" else (their, our)


class Reader:
    """A subscription and what it has read."""

    def __init__(self, client: headrace.Client, channel: str, stream_id: int = STREAM) -> None:
        """Nothing read yet."""
        self.subscription = client.add_subscription(channel, stream_id)
        self.checker = Checker()

    def poll(self) -> int:
        """Reads what is there; each message once, whole, in order."""
        self.subscription.poll(self.checker, 64)
        return self.checker.count

    def is_past(self, position: int | None) -> bool:
        """Reads unchecked, as a reader that comes late has the rest of a message only, up to a position."""
        self.subscription.poll(lambda *_: None, 64)
        return [image.position for image in self.subscription.images] == [position]


def flow(
    publication: headrace.Publication, readers: Sequence[Reader], seed: int, late: Reader | None = None
) -> None:
    """So many messages, which each of the readers reads, and none that comes late has to."""
    for reader in readers:
        await_true(lambda reader=reader: reader.subscription.is_connected)
    ends = [reader.checker.count + COUNT for reader in readers]

    def read() -> list[int]:
        if late is not None:
            late.is_past(publication.position)
        return [reader.poll() for reader in readers]

    for index in range(COUNT):
        payload = message(seed, index, *FRAGMENTED)

        def is_sent(payload: bytes = payload) -> bool:
            read()
            return bool(publication.offer(payload))

        await_true(is_sent)
    await_true(lambda: read() == ends)


@SENDS
def test_a_destination_that_is_removed_gets_nothing_more(java: JavaPeer, sends: str) -> None:
    """And those that stay go on."""
    ports = [free_port(), free_port()]
    with ExitStack() as stack:
        sending, receiving = stack.enter_context(drivers(java, sends))
        relays = [stack.enter_context(Relay(("127.0.0.1", port), forward=LOSS, seed=port)) for port in ports]
        publisher = stack.enter_context(headrace.Client.connect(directory=sending))
        subscriber = stack.enter_context(headrace.Client.connect(directory=receiving))
        readers = [Reader(subscriber, f"aeron:udp?endpoint=127.0.0.1:{port}") for port in ports]
        publication = publisher.add_publication(f"{MANUAL}|fc=min,t:1s|term-length=64k", STREAM)
        for relay in relays:
            publication.add_destination(f"aeron:udp?endpoint={relay.endpoint}")
        flow(publication, readers, seed=1)
        publication.remove_destination(f"aeron:udp?endpoint={relays[0].endpoint}")
        forwarded = relays[0].forward.received
        flow(publication, readers[1:], seed=2)
        assert relays[0].forward.received == forwarded, "removed, and still sent to"
        assert readers[0].poll() == COUNT
        assert all(relay.forward.dropped > 0 for relay in relays)


@SENDS
def test_a_stream_goes_on_over_the_path_that_lives_and_ends_on_both(java: JavaPeer, sends: str) -> None:
    ports = [free_port(), free_port()]
    with ExitStack() as stack:
        sending, receiving = stack.enter_context(drivers(java, sends))
        relays = [stack.enter_context(Relay(("127.0.0.1", port), forward=LOSS, seed=port)) for port in ports]
        publisher = stack.enter_context(headrace.Client.connect(directory=sending))
        subscriber = stack.enter_context(headrace.Client.connect(directory=receiving))
        reader = Reader(subscriber, MANUAL)
        for port in ports:
            reader.subscription.add_destination(f"aeron:udp?endpoint=127.0.0.1:{port}")
        publication = publisher.add_publication(f"{MANUAL}|term-length=64k", STREAM)
        for relay in relays:
            publication.add_destination(f"aeron:udp?endpoint={relay.endpoint}")
        flow(publication, [reader], seed=1)
        (image,) = reader.subscription.images
        with relays[0].cut():
            flow(publication, [reader], seed=2)
        with relays[1].cut():
            flow(publication, [reader], seed=3)
        # Both bring it again.
        flow(publication, [reader], seed=4)
        assert [image.session_id for image in reader.subscription.images] == [publication.session_id]
        publication.close()
        await_true(lambda: image.is_end_of_stream or image.is_closed)
        await_true(lambda: not reader.subscription.images)
        assert image.is_end_of_stream


def set_counter(directory: Path, label: str, value: int) -> None:
    """As the reference's harness does: into the counters of a running driver."""
    with CncFile.open(directory) as cnc:
        (record,) = [record for record in cnc.counters if record.label.startswith(label)]
        header = cnc.header
        before = header.to_driver_length + header.to_clients_length + header.counters_metadata_length
        offset = HEADER_LENGTH + before + VALUE_LENGTH * record.counter_id
    with (directory / "cnc.dat").open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        struct.pack_into("<q", mapped, offset, value)


@SENDS
def test_a_name_that_moves_is_followed(java: JavaPeer, sends: str) -> None:
    """Our driver looks the name up, of the endpoint that it sends to or of the control address that it reports to."""
    port = free_port()
    table = {
        "aeron.name.resolver.supplier": "csv_table",
        "aeron.name.resolver.init.args": "moving,127.0.0.1,127.0.0.2|",
    }
    with ExitStack() as stack:
        sending, receiving = stack.enter_context(drivers(java, sends, table))
        publisher = stack.enter_context(headrace.Client.connect(directory=sending))
        subscriber = stack.enter_context(headrace.Client.connect(directory=receiving))
        hosts = ["127.0.0.1", "127.0.0.2"]
        if sends == "ours":
            publication = publisher.add_publication(
                f"aeron:udp?endpoint=moving:{port}|term-length=64k", STREAM
            )
            for seed, host in enumerate(hosts):
                set_counter(sending, "NameEntry{name='moving'", seed)
                reader = Reader(subscriber, f"aeron:udp?endpoint={host}:{port}")
                flow(publication, [reader], seed)
                reader.subscription.close()
                await_true(lambda: not publication.is_connected)
        else:
            reader = Reader(subscriber, f"aeron:udp?control=moving:{port}|control-mode=dynamic")
            for seed, host in enumerate(hosts):
                set_counter(receiving, "NameEntry{name='moving'", seed)
                with publisher.add_publication(
                    f"aeron:udp?control={host}:{port}|control-mode=dynamic|term-length=64k", STREAM
                ) as publication:
                    flow(publication, [reader], seed)
                await_true(lambda: not reader.subscription.is_connected)


class Names:
    """Names that the driver that sends looks up, of either make."""

    def __init__(self, hosts: Path) -> None:
        """The file that the Java driver reads; ours has a table."""
        self._hosts = hosts
        self.ours = {
            "aeron.name.resolver.supplier": "csv_table",
            "aeron.name.resolver.init.args": "moving,127.0.0.1,127.0.0.2|",
        }
        self.java = {"jdk.net.hosts.file": str(hosts), "sun.net.inetaddr.ttl": "0"}
        self._write("127.0.0.1")

    def move(self, sending: Path, sends: str) -> None:
        """The name has its second address."""
        if sends == "ours":
            set_counter(sending, "NameEntry{name='moving'", 1)
        else:
            self._write("127.0.0.2")

    def _write(self, address: str) -> None:
        new = self._hosts.with_suffix(".new")
        new.write_text(f"{address} moving\n127.0.0.1 localhost {socket.gethostname()}\n")
        new.rename(self._hosts)


@SENDS
def test_a_destination_by_name_that_moves_is_followed(java: JavaPeer, sends: str, tmp_path: Path) -> None:
    """Its receiver goes, and one at the name's new address joins the stream, which goes on to another meanwhile."""
    port, steady_port = free_port(), free_port()
    names = Names(tmp_path / "hosts")
    with ExitStack() as stack:
        sending, receiving = stack.enter_context(drivers(java, sends, names.ours, names.java))
        relay = stack.enter_context(Relay(("127.0.0.1", steady_port), forward=LOSS, seed=port))
        publisher = stack.enter_context(headrace.Client.connect(directory=sending))
        subscriber = stack.enter_context(headrace.Client.connect(directory=receiving))
        steady = Reader(subscriber, f"aeron:udp?endpoint=127.0.0.1:{steady_port}")
        before = Reader(subscriber, f"aeron:udp?endpoint=127.0.0.1:{port}")
        publication = publisher.add_publication(f"{MANUAL}|fc=min,t:1s|term-length=64k", STREAM)
        for endpoint in (relay.endpoint, f"moving:{port}"):
            publication.add_destination(f"aeron:udp?endpoint={endpoint}")
        flow(publication, [steady, before], seed=0)

        before.subscription.close()
        after = Reader(subscriber, f"aeron:udp?endpoint=127.0.0.2:{port}")
        names.move(sending, sends)
        seeds = count(1)

        def has_joined() -> bool:
            flow(publication, [steady], next(seeds), late=after)
            return after.subscription.is_connected

        await_true(has_joined)
        await_true(lambda: after.is_past(publication.position))
        flow(publication, [steady, after], next(seeds))
        assert relay.forward.dropped > 0


def destination_count(directory: Path) -> int:
    """How many destinations the only publication of a driver has."""
    with CncFile.open(directory) as cnc:
        (count,) = [record.value for record in cnc.counters if record.type_id == DESTINATION_COUNT]
    return count


@SENDS
# With `max` the fastest receiver leads, and a default term holds all that it may be ahead.
@pytest.mark.parametrize(
    "strategy",
    ["fc=min,t:1s|term-length=64k", "fc=tagged,g:1001,t:1s|term-length=64k", "fc=max"],
    ids=["min", "tagged", "max"],
)
def test_a_receiver_whose_driver_is_killed_is_no_longer_sent_to(
    java: JavaPeer, sends: str, strategy: str
) -> None:
    """Receivers are known by what they report: the publication goes on to the one that lives, and forgets the other."""
    control_port = free_port()
    with ExitStack() as stack:

        def start(make: str, name: str) -> Path:
            if make == "ours":
                return stack.enter_context(our_driver_process(f"interop-change-{name}"))
            return stack.enter_context(java.driver(f"interop-change-{name}", "SHARED", LOSSES))

        sending = start(sends, "sends")
        publisher = stack.enter_context(headrace.Client.connect(directory=sending))
        relays, readers, directories = [], [], []
        for name in ("lives", "dies"):
            directory = start("java" if sends == "ours" else "ours", name)
            relay = stack.enter_context(Relay(("127.0.0.1", control_port), backward=LOSS, seed=control_port))
            subscriber = stack.enter_context(headrace.Client.connect(directory=directory))
            control = f"control={relay.endpoint}|control-mode=dynamic"
            channel = f"aeron:udp?endpoint={free_endpoint()}|{control}|gtag=1001"
            directories.append(directory)
            relays.append(relay)
            readers.append(Reader(subscriber, channel))
        control = f"control=127.0.0.1:{control_port}|control-mode=dynamic"
        publication = publisher.add_publication(f"aeron:udp?{control}|{strategy}", STREAM)
        flow(publication, readers, seed=0)
        assert destination_count(sending) == len(readers)

        (lives, dies), seeds = relays, count(1)
        with CncFile.open(directories[1]) as cnc:
            os.kill(cnc.header.pid, signal.SIGKILL)
        stack.callback(shutil.rmtree, directories[1])

        def is_left_out() -> bool:
            before = dies.backward.received
            flow(publication, readers[:1], next(seeds))
            return dies.backward.received == before

        await_true(is_left_out)
        await_true(lambda: destination_count(sending) == 1)
        assert all(relay.backward.dropped > 0 for relay in (lives, dies))
