"""Settings that a driver was given, seen in its files and in what its streams do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.cnc.cnc_file import CncFile
from headrace.testing import World

pytestmark = pytest.mark.sim

KIB = 1024
SECOND = 1_000_000_000
STREAM = 10
IPC = "aeron:ipc?term-length=64k"
FRAME_HEADER = 32
UDP = "aeron:udp?endpoint=right:40123|term-length=64k"
# A broadcast has 128 bytes after its ring.
BROADCAST = 2 * KIB * KIB + 128
UNTETHERED: Any = {
    "timer_interval_ns": SECOND // 10,
    "untethered_window_limit_timeout_ns": SECOND,
    "untethered_resting_timeout_ns": 5 * SECOND,
}
ASKED = "left asks for the name right"
FIRST_SESSION = -(2**31)
LAST_SESSION = 2**31 - 1
# A channel that is refused, in as many bytes as a channel may nearly have.
TOO_LONG = f"aeron:udp?endpoint=127.0.0.1:0|alias={'x' * 4000}"


def connected(
    world: World, sends: headrace.Client, reads: headrace.Client, sent: str, received: str | None = None
) -> tuple[headrace.Publication, headrace.Subscription]:
    """A publication and a subscription that have found each other."""
    subscription = reads.add_subscription(received or sent, STREAM)
    publication = sends.add_publication(sent, STREAM)
    world.run_until(lambda: publication.is_connected and subscription.is_connected, within_s=5)
    return publication, subscription


def outrun(
    world: World, client: headrace.Client, slow_channel: str
) -> tuple[headrace.Publication, headrace.Subscription]:
    """A publication that sends for five seconds what one reader reads, and the other reader, which reads nothing."""
    publication, fast = connected(world, client, client, IPC)
    slow = client.add_subscription(slow_channel, STREAM)
    world.run_until(lambda: slow.is_connected, within_s=5)
    end_ns = world.now_ns + 5 * SECOND
    while world.now_ns < end_ns:
        publication.offer(bytes(1024 - FRAME_HEADER))
        fast.poll(lambda payload, header: None)
        world.step()
    return publication, slow


def test_the_broadcast_to_clients_is_as_long_as_its_setting() -> None:
    with World(1) as world:
        node = world.add_node("only", clients_buffer_length=BROADCAST)
        with CncFile.open(node.directory) as cnc:
            assert cnc.header.to_clients_length == BROADCAST
        assert node.connect().add_publication(IPC, STREAM), "clients find their way in it"


def test_the_loss_report_is_as_long_as_its_setting() -> None:
    with World(1) as world:
        node = world.add_node("only", loss_report_buffer_length=64 * KIB)
        assert Path(node.directory, "loss-report.dat").stat().st_size == 64 * KIB


def test_files_are_multiples_of_the_page_that_is_set() -> None:
    page = 64 * KIB
    with World(1) as world:
        node = world.add_node("only", file_page_size_bytes=page, loss_report_buffer_length=KIB)
        publication = node.connect().add_publication(IPC, STREAM)
        with CncFile.open(node.directory) as cnc:
            assert cnc.header.page_size == page
        log = Path(node.directory, "publications", f"{publication.registration_id}.logbuffer")
        assert log.stat().st_size == 3 * page + page, "three terms, and what is said of them"
        for file in ("cnc.dat", "loss-report.dat"):
            assert Path(node.directory, file).stat().st_size % page == 0


def test_a_message_over_shared_memory_is_cut_as_the_mtu_of_ipc_says() -> None:
    with World(1) as world:
        client = world.add_node("only", ipc_mtu_length=4096).connect()
        publication, subscription = connected(world, client, client, IPC)
        assert publication.max_payload_length == 4096 - FRAME_HEADER
        assert publication.offer(bytes(5000))
        lengths: list[int] = []
        while subscription.poll(lambda payload, header: lengths.append(len(payload)), assemble=False):
            pass
        assert lengths == [4096 - FRAME_HEADER, 5000 - 4096 + FRAME_HEADER]


@pytest.mark.parametrize(
    ("channel", "setting"),
    [(UDP, "publication_term_window_length"), (IPC, "ipc_publication_term_window_length")],
    ids=["udp", "ipc"],
)
def test_a_publisher_goes_ahead_as_far_as_the_window_that_is_set(channel: str, setting: str) -> None:
    with World(1) as world:
        client = world.add_node("right", **{setting: 8 * KIB}).connect()
        publication, _ = connected(world, client, client, channel)
        assert publication.position_limit == 8 * KIB


@pytest.mark.parametrize(("low", "high"), [(FIRST_SESSION, -1), (0, LAST_SESSION)])
def test_the_driver_chooses_no_session_id_that_is_reserved(low: int, high: int) -> None:
    chosen = []
    for seed in range(8):
        with World(seed) as world:
            client = world.add_node(
                "only", publication_reserved_session_id_low=low, publication_reserved_session_id_high=high
            ).connect()
            publications = [client.add_exclusive_publication(IPC, STREAM) for _ in range(4)]
            chosen += [publication.session_id for publication in publications]
            asked_for = client.add_publication(f"{IPC}|session-id={high}", STREAM)
            assert asked_for.session_id == high, "a program may"
    assert len(set(chosen)) > 4, "the ids begin anywhere"
    assert all(not low <= session_id <= high for session_id in chosen), chosen


@pytest.mark.parametrize(
    ("setting", "key", "comes_again"),
    [(None, "", True), (False, "", False), (None, "|rejoin=false", False), (False, "|rejoin=true", True)],
)
def test_a_stream_that_fell_silent_comes_again_if_it_may_rejoin(
    setting: bool | None, key: str, comes_again: bool
) -> None:
    with World(1) as world:
        left = world.add_node("left")
        right = world.add_node("right", rejoin_stream=setting, image_liveness_timeout_ns=SECOND)
        _, subscription = connected(world, left.connect(), right.connect(), UDP, UDP + key)
        world.partition([left], [right])
        world.run_until(lambda: not subscription.is_connected, within_s=20)
        world.heal()
        world.run_for(10)
        assert subscription.is_connected is comes_again


@pytest.mark.parametrize(
    ("setting", "key", "is_dropped"),
    [(None, "", False), (False, "", True), (None, "|tether=false", True), (False, "|tether=true", False)],
)
def test_a_reader_that_stands_still_loses_its_image_if_it_is_not_tethered(
    setting: bool | None, key: str, is_dropped: bool
) -> None:
    with World(1) as world:
        node = world.add_node("only", tether_subscriptions=setting, **UNTETHERED)
        publication, slow = outrun(world, node.connect(), f"{IPC}{key}")
        assert (slow.images == []) is is_dropped
        window = publication.term_length // 2
        position = publication.position or 0
        assert position > 2 * window if is_dropped else position == window


@pytest.mark.parametrize(
    ("setting", "key", "comes_again"),
    [(None, "", True), (False, "", False), (None, "|rejoin=false", False), (False, "|rejoin=true", True)],
)
def test_a_reader_that_was_dropped_gets_another_image_if_it_may_rejoin(
    setting: bool | None, key: str, comes_again: bool
) -> None:
    with World(1) as world:
        node = world.add_node("only", rejoin_stream=setting, **UNTETHERED)
        _, slow = outrun(world, node.connect(), f"{IPC}|tether=false{key}")
        assert slow.images == []
        world.run_for(10)
        assert slow.is_connected is comes_again


@pytest.mark.parametrize(("key", "is_told"), [("", True), ("|eos=false", False)])
def test_receivers_are_told_of_the_end_unless_the_channel_says_no(key: str, is_told: bool) -> None:
    with World(1) as world:
        left, right = world.add_node("left"), world.add_node("right")
        publication, subscription = connected(world, left.connect(), right.connect(), UDP + key, UDP)
        (image,) = subscription.images
        publication.close()
        world.run_until(lambda: not subscription.is_connected, within_s=30)
        assert image.is_end_of_stream is is_told


@pytest.mark.parametrize("interval_s", [1, 4])
def test_a_silent_name_is_looked_up_within_the_time_that_is_set(interval_s: int) -> None:
    assert interval_s * look_ups(interval_s, within_s=20) in range(20, 40 + 1)


def test_a_silent_name_is_not_looked_up_again_if_the_setting_is_none() -> None:
    assert look_ups(0, within_s=20) == 0


def look_ups(interval_s: int, within_s: int) -> int:
    """How often a publisher's driver looks up again the name of a receiver that is not there."""
    with World(1) as world:
        world.add_node("right")
        left = world.add_node("left", reresolution_check_interval_ns=interval_s * SECOND)
        publication = left.connect().add_publication(UDP, STREAM)
        before = world.trace().count(ASKED)
        world.run_for(within_s)
        assert not publication.is_closed
        return world.trace().count(ASKED) - before
