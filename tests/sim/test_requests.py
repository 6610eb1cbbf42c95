"""Requests and answers over UDP between machines, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import headrace
from headrace.rpc._layout import Kind, header
from headrace.testing import Link, Node, World

pytestmark = pytest.mark.sim

CHANNEL = "aeron:udp?endpoint=server:24324|term-length=64k"
CONTROL = "server:24325"
STREAM_ID = 10
BAD = Link(loss=0.05, duplicate=0.05, reorder=0.1, jitter_s=200e-6)


async def upper(request: bytes) -> bytes:
    return request.upper()


def server_on(node: Node) -> headrace.Server:
    return headrace.Server(node.connect(), CHANNEL, STREAM_ID, upper, response_control=CONTROL)


def requester_on(node: Node) -> headrace.Requester:
    return headrace.Requester(node.connect(), CHANNEL, STREAM_ID, response_control=CONTROL, timeout_s=30)


async def ask(requester: headrace.Requester, name: str, count: int) -> None:
    requests = [b"%s-%d" % (name.encode(), number) * (1 + number % 200) for number in range(count)]
    answers = await asyncio.gather(*map(requester.request_async, requests))
    assert answers == [request.upper() for request in requests]


@pytest.mark.parametrize("seed", range(3))
def test_each_requester_reads_its_own_answers_on_a_bad_network(seed: int) -> None:
    with World(seed) as world:
        server = server_on(world.add_node("server"))
        requesters = {name: requester_on(world.add_node(name)) for name in ("one", "two")}
        world.set_links(BAD)

        async def main() -> None:
            serving = asyncio.create_task(server.serve_async())
            await asyncio.gather(*(ask(requester, name, 200) for name, requester in requesters.items()))
            serving.cancel()

        world.run_async(main())
        assert server.requester_count == 2
        assert all(requester.unclaimed_count == 0 for requester in requesters.values())


def test_when_the_machine_of_the_server_dies_calls_end_and_later_ones_go_to_the_next() -> None:
    with World(4) as world:
        node = world.add_node("server")
        server = server_on(node)
        requester = requester_on(world.add_node("one"))

        async def main() -> None:
            serving = asyncio.create_task(server.serve_async())
            await ask(requester, "first", 20)
            serving.cancel()
            node.crash()
            begun_s = world.now_s
            with pytest.raises(headrace.ServerLostError):
                await requester.request_async(b"lost")
            assert world.now_s - begun_s < 15
            node.start()
            with server_on(node) as following:
                serving = asyncio.create_task(following.serve_async())
                await ask(requester, "second", 20)
                serving.cancel()

        world.run_async(main())


def test_when_the_machine_of_the_server_starts_again_at_once_each_call_ends_and_later_ones_are_answered() -> (
    None
):
    with World(5) as world:
        node = world.add_node("server")
        server = server_on(node)
        requester = requester_on(world.add_node("one"))

        async def main() -> None:
            serving = asyncio.create_task(server.serve_async())
            await ask(requester, "first", 20)
            serving.cancel()
            node.crash()
            node.start()
            with server_on(node) as following:
                serving = asyncio.create_task(following.serve_async())
                # The streams of the first server count as live for 10 s: none of these is forgotten meanwhile.
                ends = []
                while not ends or ends[-1] != b"NEXT":
                    try:
                        ends.append(await requester.request_async(b"next", timeout_s=3))
                    except (headrace.ServerLostError, headrace.RequestTimeoutError) as end:
                        ends.append(type(end))
                    assert len(ends) < 10
                assert requester.in_flight_count == 0
                await ask(requester, "second", 20)
                serving.cancel()

        world.run_async(main())


def test_a_requester_whose_machine_dies_is_forgotten_and_the_others_go_on() -> None:
    with World(6) as world:
        server = server_on(world.add_node("server"))
        dying, other = world.add_node("dying"), world.add_node("other")
        lost, requester = requester_on(dying), requester_on(other)

        async def main() -> None:
            serving = asyncio.create_task(server.serve_async())
            await asyncio.gather(ask(lost, "lost", 20), ask(requester, "first", 20))
            assert server.requester_count == 2
            calls = [asyncio.create_task(lost.request_async(b"x")) for _ in range(50)]
            await asyncio.sleep(0)
            dying.crash()
            await ask(requester, "second", 200)
            await asyncio.sleep(30)
            assert server.requester_count == 1
            await ask(requester, "third", 20)
            serving.cancel()
            for call in calls:
                with pytest.raises(headrace.HeadraceError):
                    await call

        world.run_async(main())


@pytest.mark.parametrize("dies", [False, True])
def test_a_requester_that_goes_while_both_windows_are_full_is_forgotten(dies: bool) -> None:
    with World(8) as world:
        server = server_on(world.add_node("server"))
        node = world.add_node("one")
        client = node.connect()
        answers = client.add_subscription(f"aeron:udp?control-mode=response|control={CONTROL}", STREAM_ID + 1)
        requests = client.add_publication(
            f"{CHANNEL}|response-correlation-id={answers.registration_id}", STREAM_ID
        )

        async def main() -> None:
            serving = asyncio.create_task(server.serve_async())
            refused_s = 0.0
            while refused_s < 1:
                if requests.offer(header(Kind.REQUEST, 1) + bytes(1000)):
                    refused_s = 0.0
                else:
                    await asyncio.sleep(0.01)
                    refused_s += 0.01
            assert requests.position
            assert server.requester_count == 1
            if dies:
                node.crash()
            else:
                requests.close()
                answers.close()
            await asyncio.sleep(60)
            assert server.requester_count == 0
            assert server.lost_count > 0
            serving.cancel()

        world.run_async(main())


@pytest.mark.parametrize("make", [server_on, requester_on])
def test_names_that_no_name_server_answers_end_the_making(make: Any) -> None:
    with World(7) as world:
        node = world.add_node("one")
        world.set_lookup_time(None)
        begun_s = world.now_s
        with pytest.raises(headrace.DriverTimeoutError):
            make(node)
        assert world.now_s - begun_s < 60
