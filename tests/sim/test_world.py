"""Programs on simulated nodes: what a user of `headrace.testing.World` can rely on."""

from __future__ import annotations

import gc
import math
from pathlib import Path

import pytest

import headrace
from headrace.testing import Link, Node, World, WorldTimeoutError

pytestmark = pytest.mark.sim

CHANNEL = "aeron:udp?endpoint=right:40123|term-length=64k"
BAD = Link(loss=0.05, duplicate=0.05, reorder=0.1, jitter_s=200e-6)


def pair(world: World) -> tuple[Node, Node, headrace.Publication, headrace.Subscription]:
    left, right = world.add_node("left"), world.add_node("right")
    subscription = right.connect().add_subscription(CHANNEL, 10)
    publication = left.connect().add_publication(CHANNEL, 10)
    world.run_until(lambda: publication.is_connected, within_s=5, what="a connection")
    return left, right, publication, subscription


def take(subscription: headrace.Subscription, into: list[bytes]) -> None:
    while (message := subscription.poll_message()) is not None:
        into.append(bytes(message))


def exchange(world: World, count: int) -> list[bytes]:
    """What the subscriber on the right reads of `count` messages from the left."""
    world.set_links(BAD)
    left, _, publication, subscription = pair(world)
    unsent = [b"%d" % number * (1 + number % 700) for number in reversed(range(count))]
    received: list[bytes] = []

    def publish() -> int:
        if not unsent or publication.offer(unsent[-1]) < 0:
            return 0
        unsent.pop()
        return 1

    def is_all_here() -> bool:
        take(subscription, received)
        return len(received) >= count

    left.run(publish)
    world.run_until(is_all_here, within_s=60, what="all messages")
    return received


@pytest.mark.parametrize("seed", range(5))
def test_messages_arrive_in_order_and_once_on_a_bad_network(seed: int) -> None:
    with World(seed) as world:
        assert exchange(world, 200) == [b"%d" % number * (1 + number % 700) for number in range(200)]
        trace = world.trace()
    assert "NAK" in trace
    assert ": lost" in trace


def test_the_same_seed_gives_the_same_run() -> None:
    def run(seed: int) -> tuple[tuple[int, int], str, int]:
        with World(seed) as world:
            exchange(world, 100)
            return world.digest, world.trace(), world.now_ns

    first = run(4711)
    assert run(4711) == first
    assert run(4712)[0] != first[0]


def test_a_partition_holds_messages_back_until_it_heals() -> None:
    with World(1) as world:
        left, right, publication, subscription = pair(world)
        received: list[bytes] = []
        world.partition([left], [right])
        assert publication.offer(b"later") > 0
        world.run_for(2)
        take(subscription, received)
        assert received == []
        world.heal()
        world.run_until(lambda: take(subscription, received) or received, within_s=5)
        assert received == [b"later"]


def test_one_direction_can_be_cut() -> None:
    with World(2) as world:
        left, right, publication, subscription = pair(world)
        right.cut(left)
        # Without status messages the publisher loses its subscriber, and the subscriber keeps its publisher.
        world.run_until(lambda: not publication.is_connected, within_s=10)
        assert subscription.is_connected
        right.mend(left)
        world.run_until(lambda: publication.is_connected, within_s=10)


def test_a_node_crashes_and_starts_again() -> None:
    with World(3) as world:
        _, right, publication, subscription = pair(world)
        turns: list[int] = []
        right.run(lambda: turns.append(1))
        world.step()
        assert turns == [1]
        right.crash()
        assert not right.is_up
        assert subscription.is_closed
        world.run_until(lambda: not publication.is_connected, within_s=20)
        assert turns == [1], "its programs end with it"
        right.start()
        again = right.connect().add_subscription(CHANNEL, 10)
        world.run_until(lambda: publication.is_connected and again.is_connected, within_s=20)


def test_a_paused_node_and_its_programs_stand_still() -> None:
    with World(4) as world:
        _, right, publication, subscription = pair(world)
        turns: list[int] = []
        right.run(lambda: turns.append(1))
        right.pause()
        assert publication.offer(b"x") > 0
        world.run_for(1)
        assert turns == []
        assert subscription.poll_message() is None
        right.resume()
        world.run_until(subscription.poll_message, within_s=5)
        assert turns


def test_a_slow_link_makes_a_publisher_wait() -> None:
    with World(5) as world:
        left, right, publication, subscription = pair(world)
        left.set_link(right, Link(bytes_per_second=100_000))
        received: list[bytes] = []
        right.run(lambda: take(subscription, received))
        begun_s = world.now_s
        for _ in range(100):
            world.run_until(lambda: publication.offer(bytes(1_000)) > 0, within_s=10)
        world.run_until(lambda: len(received) == 100, within_s=10)
        assert world.now_s - begun_s > 1


def test_wall_clocks_can_be_wrong_and_time_outs_do_not_mind() -> None:
    with World(6) as world:
        left, right, publication, _ = pair(world)
        assert left.time_ns == right.time_ns
        left.set_clock_skew(-3600)
        assert right.time_ns - left.time_ns == 3_600_000_000_000
        world.run_for(1)
        assert publication.is_connected


def test_a_clock_that_is_set_ends_no_client() -> None:
    with World(9) as world:
        left, _, publication, subscription = pair(world)
        left.jump_clock(7200)
        world.run_for(15)
        left.jump_clock(-14400)
        world.run_for(15)
        assert publication.is_connected
        assert subscription.is_connected


def test_one_client_is_killed_or_hangs() -> None:
    with World(10) as world:
        node = world.add_node("only")
        killed, hanging, other = (node.connect() for _ in range(3))
        for client in (killed, hanging, other):
            client.add_publication("aeron:ipc", 1)
        node.crash_client(killed)
        node.set_stalled(hanging, True)
        world.run_for(15)
        assert killed.is_closed
        node.set_stalled(hanging, False)
        world.run_until(lambda: hanging.is_closed, within_s=1)
        assert not other.is_closed


def test_a_disk_is_full_and_a_name_server_silent() -> None:
    with World(11) as world:
        node = world.add_node("only")
        client = node.connect()
        node.set_disk_room(0)
        with pytest.raises(headrace.RegistrationError, match="insufficient usable storage"):
            client.add_publication("aeron:ipc", 1)
        node.set_disk_room(None)
        world.set_lookup_time(None)
        with pytest.raises(headrace.DriverTimeoutError):
            client.add_publication("aeron:udp?endpoint=only:40123", 1)
        assert client.add_publication(f"aeron:udp?endpoint=[{node.address_v6}]:40123", 1)


def test_a_condition_that_does_not_come_true_tells_how_to_replay_it() -> None:
    with World(99) as world:
        world.add_node("only")
        with pytest.raises(
            WorldTimeoutError, match=r"(?s)a miracle: not after 2 s.*HEADRACE_SEED=99.*only starts"
        ):
            world.run_until(lambda: False, within_s=2, what="a miracle")
        assert world.now_s == pytest.approx(2)


def test_what_a_program_raises_comes_out_of_the_step() -> None:
    with World(7) as world:
        world.add_node("only").run(lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            world.step()


def test_connecting_to_a_node_that_is_down_takes_virtual_time() -> None:
    with World(8) as world:
        node = world.add_node("only")
        node.crash()
        with pytest.raises(headrace.ConfigError, match="must be up"):
            node.crash()
        with pytest.raises(headrace.DriverTimeoutError):
            node.connect(driver_timeout_ms=5_000)
        assert world.now_s >= 5


def test_nothing_is_left_of_a_world() -> None:
    world = World(9)
    _, _, publication, subscription = pair(world)
    directories = [Path(node.directory) for node in world.nodes.values()]
    assert all(directory.is_dir() for directory in directories)
    assert world.socket_count == 2
    world.close()
    world.close()
    assert publication.is_closed
    assert subscription.is_closed
    assert world.socket_count == 0
    assert not any(directory.exists() for directory in directories)
    forgotten = Path(World(10).add_node("only").directory)
    gc.collect()
    assert not forgotten.exists()


def test_python_collects_again_once_the_last_world_is_closed() -> None:
    assert gc.isenabled()
    first, second = World(13), World(14)
    first.close()
    first.close()
    assert not gc.isenabled()
    second.close()
    assert gc.isenabled()
    gc.disable()
    try:
        World(15).close()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_wait_may_have_no_end() -> None:
    with World(16) as world:
        node = world.add_node("only")
        world.run_until(lambda: world.now_s > 1, within_s=math.inf)
        node.run(lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            world.run_for(1e300)
        with pytest.raises(ValueError, match="NaN"):
            world.run_for(math.nan)


def test_wrong_settings_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (-1, 2**64):
        with pytest.raises(headrace.ConfigError, match="seed="):
            World(value)
    for wrong in ({"loss": 1.5}, {"delay_s": -1.0}, {"bytes_per_second": 0}, {"jitter_s": float("nan")}):
        with pytest.raises(headrace.ConfigError, match=next(iter(wrong))):
            Link(**wrong)  # type: ignore[arg-type]
    monkeypatch.setenv("HEADRACE_SEED", "17")
    with World() as world:
        assert world.seed == 17
        world.add_node("only")
        for name in ("only", "two words", ""):
            with pytest.raises(headrace.ConfigError, match="node="):
                world.add_node(name)
        with pytest.raises(headrace.ConfigError, match=r"aeron\.mtu\.length"):
            world.add_node("other", mtu_length=17)
        with pytest.raises(headrace.ConfigError, match="threading_mode"):
            world.add_node("other", threading_mode="SHARED")
        assert list(world.nodes) == ["only"]
