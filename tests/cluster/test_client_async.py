"""The client of a cluster for asyncio, in the time of a simulated world."""

from __future__ import annotations

import asyncio

import pytest

import headrace
from headrace.cluster import (
    AdminRequestError,
    AdminResponseCode,
    ClusterTimeoutError,
    EventCode,
    SessionClosedError,
)
from headrace.cluster.aio import AsyncClusterClient
from headrace.testing import Link
from tests.cluster.client_lab import Lab
from tests.cluster.test_client_session import answering

pytestmark = pytest.mark.sim

EGRESS = "aeron:udp?endpoint=app:0"


async def connect(lab: Lab, **settings: int) -> AsyncClusterClient:
    return await AsyncClusterClient.connect(
        lab.app.connect(), ingress_endpoints=lab.endpoints, egress_channel=EGRESS, **settings
    )


def test_coroutines_offer_and_read_side_by_side(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    lab.world.set_links(Link(loss=0.02, jitter_s=100e-6))
    sent = [b"%d" % number * (1 + number % 500) for number in range(500)]

    async def main() -> list[bytes]:
        async with await connect(lab) as cluster:

            async def send() -> None:
                for payload in sent:
                    await cluster.offer_async(payload)

            sending = asyncio.create_task(send())
            answers = []
            async for message in cluster:
                answers.append(message.payload)
                if len(answers) == len(sent):
                    break
            await sending
            return answers

    assert lab.world.run_async(main()) == sent == member.payloads


def test_the_session_goes_on_with_the_next_leader(lab: Lab) -> None:
    old, new = lab.add_members(2)
    new.stop_listening()

    async def main() -> None:
        async with await connect(lab) as cluster:
            old.stop_listening()
            refused = headrace.OfferResult.NOT_CONNECTED
            lab.world.run_until(lambda: cluster.cluster.offer(b"lost?") is refused, within_s=30)
            waiting = asyncio.create_task(cluster.offer_async(b"to whoever leads"))
            await asyncio.sleep(0.5)
            assert not waiting.done()
            new.listen()
            new.take_over(old, lab.endpoints)
            await waiting
            assert (await cluster.receive()).payload == b"to whoever leads"
            assert cluster.cluster.leader_member_id == 1

    lab.world.run_async(main())


def test_a_snapshot_is_requested_while_another_coroutine_reads(lab: Lab) -> None:
    (member,) = lab.add_members(1)

    async def main() -> None:
        async with await connect(lab) as cluster:
            reading = asyncio.create_task(cluster.receive())
            answering(member, AdminResponseCode.OK)
            await cluster.request_snapshot()
            answering(member, AdminResponseCode.UNAUTHORISED_ACCESS, "no")
            with pytest.raises(AdminRequestError, match="no"):
                await cluster.request_snapshot()
            member.message(b"for the reader")
            assert (await reading).payload == b"for the reader"
            answering(member, AdminResponseCode.OK)
            await cluster.request_snapshot()
            member.on_other = lambda message: None
            with pytest.raises(ClusterTimeoutError):
                await cluster.request_snapshot(timeout_s=1)

    lab.world.run_async(main())


def test_a_call_that_is_cancelled_takes_nothing(lab: Lab) -> None:
    (member,) = lab.add_members(1)

    async def main() -> None:
        async with await connect(lab) as cluster:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(cluster.receive(), 3)
            member.message(b"one")
            assert (await cluster.receive()).payload == b"one"
            assert member.keep_alive_count >= 2

    lab.world.run_async(main())


def test_a_session_that_the_cluster_closes_raises_and_one_that_the_program_closes_ends(lab: Lab) -> None:
    (member,) = lab.add_members(1)

    async def main() -> None:
        cluster = await connect(lab)
        member.event(EventCode.CLOSED, detail="TIMEOUT")
        with pytest.raises(SessionClosedError, match="TIMEOUT"):
            await anext(cluster)
        await cluster.close()
        async with await connect(lab) as other:
            reading = asyncio.create_task(anext(other, None))
            await asyncio.sleep(0.1)
            await other.close()
            assert await reading is None
            with pytest.raises(headrace.ClosedError):
                await other.offer_async(b"x")

    lab.world.run_async(main())


def test_a_connect_that_takes_too_long_or_is_cancelled_leaves_nothing(lab: Lab) -> None:
    (member,) = lab.add_members(1)
    member.ignore()

    async def main() -> None:
        before = lab.world.socket_count
        with pytest.raises(ClusterTimeoutError, match="POLL_RESPONSE"):
            await connect(lab)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(connect(lab), 1)
        member.stop_speaking()
        lab.world.run_until(lambda: lab.world.socket_count == before, within_s=60)

    lab.world.run_async(main())
