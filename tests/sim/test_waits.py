"""Calls that wait, in virtual time: those of clients, of programs, of asyncio, and on a clock that a test moves."""

from __future__ import annotations

import asyncio

import pytest

import headrace
from headrace import aio
from headrace.testing import Link, ManualClock, World
from tests.sim.test_world import CHANNEL, pair

pytestmark = pytest.mark.sim

SLOW = Link(bytes_per_second=50_000)


def test_a_wait_for_a_message_steps_the_world_until_it_comes() -> None:
    with World(1) as world:
        left, right, publication, subscription = pair(world)
        left.set_link(right, Link(delay_s=0.2))
        assert publication.offer(b"x") > 0
        message = subscription.receive(timeout_s=5)
        assert message is not None
        assert bytes(message) == b"x"
        assert 0.2 < world.now_s < 5


def test_waits_that_find_nothing_take_the_virtual_time_they_were_given() -> None:
    with World(2) as world:
        left, _, publication, subscription = pair(world)
        lonely = left.connect().add_publication("aeron:udp?endpoint=right:40999", 1)
        poller = headrace.Poller(subscription)
        begun_s = world.now_s
        assert subscription.receive(timeout_s=6) is None
        assert poller.receive(timeout_s=6) is None
        assert not lonely.wait_until_connected(6)
        assert not lonely.wait_for_subscribers(1, 6)
        with pytest.raises(headrace.PublicationTimeoutError):
            lonely.offer_blocking(b"x", timeout_s=6)
        with pytest.raises(headrace.PublicationTimeoutError):
            lonely.claim_blocking(8, timeout_s=6)
        with pytest.raises(headrace.PublicationTimeoutError):
            lonely.offer_batch_blocking([b"x"], timeout_s=6)
        assert world.now_s - begun_s == pytest.approx(42, abs=0.1)
        assert publication.is_connected, "the world went on meanwhile"


def test_a_publisher_waits_for_room_while_the_programs_go_on() -> None:
    with World(3) as world:
        left, right, publication, subscription = pair(world)
        left.set_link(right, SLOW)
        received: list[bytes] = []

        def take() -> int:
            message = subscription.poll_message()
            if message is not None:
                received.append(bytes(message))
            return message is not None

        right.run(take)
        sent = [b"%d" % number * 500 for number in range(200)]
        for message in sent:
            publication.offer_blocking(message, timeout_s=60)
        world.run_until(lambda: len(received) == len(sent), within_s=60)
        assert received == sent


def test_a_program_may_wait_while_the_others_go_on() -> None:
    """One that waits for answers, and one that gives them when it is asked."""
    with World(4) as world:
        left, right = world.add_node("left"), world.add_node("right")
        asking, answering = left.connect(), right.connect()
        questions = answering.add_subscription("aeron:udp?endpoint=right:40200", 1)
        answers = asking.add_subscription("aeron:udp?endpoint=left:40200", 1)
        asked = asking.add_publication("aeron:udp?endpoint=right:40200", 1)
        answered = answering.add_publication("aeron:udp?endpoint=left:40200", 1)
        lines: list[bytes] = []

        def ask() -> int:
            asked.offer_blocking(b"%d?" % len(lines), timeout_s=30)
            answer = answers.receive(timeout_s=30)
            assert answer is not None
            lines.append(bytes(answer))
            return 1

        def answer() -> int:
            question = questions.poll_message()
            if question is not None:
                answered.offer_blocking(bytes(question) + b"!", timeout_s=30)
            return question is not None

        left.run(ask)
        right.run(answer)
        world.run_until(lambda: len(lines) >= 10, within_s=60)
        assert lines[:3] == [b"0?!", b"1?!", b"2?!"]


def test_what_a_program_raises_ends_the_wait_that_stepped_it() -> None:
    with World(5) as world:
        _, right, _, subscription = pair(world)
        right.run(lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            subscription.receive(timeout_s=5)
        assert world.now_s < 5


def test_waiting_with_the_clock_of_a_node_steps_the_world() -> None:
    with World(6) as world:
        left, _, publication, subscription = pair(world)
        assert left.connect().clock is left.clock
        left.run(lambda: int(publication.position == 0 and publication.offer(b"x") > 0))
        begun_ns = left.clock.monotonic_ns()
        left.clock.sleep(2)
        assert left.clock.monotonic_ns() - begun_ns == 2_000_000_000
        assert left.clock.epoch_ns() == left.time_ns
        assert subscription.poll_message() is not None


async def exchange_async(world: World, count: int) -> list[bytes]:
    """What one coroutine receives of what another one sends."""
    left, right = world.add_node("left"), world.add_node("right")
    async with await aio.connect(driver=left) as near, await aio.connect(driver=right) as far:
        subscription = await far.request_subscription(CHANNEL, 10)
        publication = await near.request_publication(CHANNEL, 10)
        left.set_link(right, SLOW)
        received: list[bytes] = []

        async def send() -> None:
            for number in range(count):
                await publication.offer_async(b"%d" % number * 300, timeout_s=60)

        async def take() -> None:
            async for message in subscription:
                received.append(bytes(message))
                if len(received) == count:
                    return

        async with asyncio.timeout(300):
            await asyncio.gather(send(), take())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(aiter(subscription)), 20)
        return received


def test_coroutines_run_in_the_time_of_the_world() -> None:
    with World(7) as world:
        begun_s = world.now_s
        received = world.run_async(exchange_async(world, 100))
        assert received == [b"%d" % number * 300 for number in range(100)]
        assert world.now_s - begun_s > 20


def test_the_same_seed_gives_the_same_run_of_coroutines() -> None:
    def run(seed: int) -> tuple[tuple[int, int], int]:
        with World(seed) as world:
            world.run_async(exchange_async(world, 50))
            return world.digest, world.now_ns

    first = run(8)
    assert run(8) == first
    assert run(9) != first


def test_what_a_program_raises_comes_out_of_a_run_of_coroutines() -> None:
    with World(10) as world:
        world.add_node("only").run(lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            world.run_async(asyncio.sleep(1))


def test_clients_of_a_node_refuse_what_a_world_cannot_give() -> None:
    with World(11) as world:
        node = world.add_node("only")
        with pytest.raises(headrace.ConfigError, match="its own clock"):
            node.connect(clock=ManualClock(), use_invoker=True)
        with pytest.raises(headrace.ConfigError, match="reconnect="):
            headrace.connect(driver=node, reconnect=True)


def test_a_client_goes_by_a_clock_that_the_test_moves() -> None:
    clock = ManualClock()
    with headrace.MediaDriver.embedded(threading_mode="INVOKER") as driver:
        with pytest.raises(headrace.ConfigError, match="use_invoker=True"):
            headrace.connect(driver=driver, clock=clock)
        with headrace.connect(driver=driver, clock=clock, use_invoker=True) as client:
            subscription = client.add_subscription("aeron:ipc", 1)
            begun_ns = clock.monotonic_ns()
            # A minute in no time: each look sleeps a millisecond on the clock.
            assert subscription.receive(timeout_s=60) is None
            assert clock.monotonic_ns() - begun_ns == pytest.approx(60e9, rel=0.01)
            publication = client.add_publication("aeron:ipc", 1)
            publication.offer_blocking(b"x")
            message = subscription.receive(timeout_s=60)
            assert message is not None
            assert bytes(message) == b"x"
