"""Requests and answers over UDP between machines, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

import headrace
from headrace.testing import Link, Node, World

pytestmark = pytest.mark.sim

CHANNEL = "aeron:udp?endpoint=server:24324|term-length=64k"
CONTROL = "server:24325"
STREAM_ID = 10
BAD = Link(loss=0.05, duplicate=0.05, reorder=0.1, jitter_s=200e-6)


async def upper(request: bytes) -> bytes:
    return request.upper()


def server_on(node: Node) -> headrace.Server:
    return headrace.Server(node.connect(), CHANNEL, STREAM_ID, upper, answers_control=CONTROL)


def requester_on(node: Node) -> headrace.Requester:
    return headrace.Requester(node.connect(), CHANNEL, STREAM_ID, answers_control=CONTROL, timeout_s=30)


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
