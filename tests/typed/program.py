"""A user's program, checked with `mypy --strict` by `test_typing.py` and never run."""

from __future__ import annotations

from typing import assert_type

import headrace
from headrace import aio
from headrace.archive import Archive
from headrace.cluster import (
    ClientSession,
    ClusterClient,
    ClusteredService,
    ClusterMessage,
    ClusterNode,
    ConsensusModule,
    ContainerConfig,
    ServiceContainer,
)
from headrace.cluster.objects import AsyncObjectClient, ObjectClient, command


def handle(payload: bytes, header: headrace.Header) -> None:
    assert_type(header.position, int)


def look(view: memoryview, header: headrace.Header) -> headrace.Action | None:
    return headrace.Action.BREAK if len(view) > header.frame_length else None


def run(directory: str) -> None:
    with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver, driver.connect() as client:
        assert_type(client, headrace.Client)
        publication = client.add_publication("aeron:ipc", 10)
        subscription = client.add_subscription("aeron:ipc", 10, on_available_image=print)
        assert_type(publication, headrace.Publication)
        result = publication.offer(b"hello")
        assert_type(result, int | headrace.OfferResult)
        if result is headrace.OfferResult.BACK_PRESSURED:
            publication.offer_blocking([b"a", bytearray(b"b"), memoryview(b"c")], timeout_s=1.0)
        claim = publication.try_claim(16)
        if isinstance(claim, headrace.Claim):
            with claim as view:
                view[:2] = b"hi"
        assert_type(subscription.poll(handle), int)
        assert_type(subscription.controlled_poll(look, view=True), int)
        assert_type(subscription.receive(timeout_s=0.1), headrace.Message | None)
        batch = subscription.poll_batch()
        assert_type(batch[0], bytes)
        for image in subscription.images:
            assert_type(image.session_id, int)
        for record in client.counters:
            assert_type(record.label, str)
    with headrace.connect(directory, driver_timeout_ms=500) as other:
        assert_type(other.add_counter(1001).value, int)
    try:
        publication.offer_blocking(b"late")
    except headrace.PublicationTimeoutError as late:
        assert_type(late.accepted, int)
    except headrace.RegistrationError as refused:
        assert_type(refused.code_name, str)


async def serve(directory: str) -> None:
    async with await aio.connect(directory) as client:
        subscription = await client.request_subscription("aeron:ipc", 10)
        assert_type(subscription, headrace.Subscription)
        publication = await client.request_publication("aeron:ipc", 11)
        assert_type(publication, headrace.Publication)
        async for message in subscription:
            assert_type(message, headrace.Message)
            assert_type(await publication.offer_async(message.payload), int)
        assert_type(await publication.add_destination_async("aeron:udp?endpoint=127.0.0.1:5"), int)


def record(client: headrace.Client) -> None:
    with Archive.connect(client) as archive:
        for recording in archive.list_recordings():
            assert_type(recording.recording_id, int)


assert_type(headrace.__version__, str)


class Count(ClusteredService):
    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        if session is not None:
            session.offer(message)


def cluster(directory: str, driver: headrace.MediaDriver) -> None:
    with (
        ClusterNode(
            Count(),
            directory=directory,
            archive_settings={"file_sync_level": 1},
            session_timeout_ns=1_000_000_000,
            cluster_clock="ns",
        ) as node,
        node.connect(message_timeout_ns=1_000_000_000) as client,
    ):
        assert_type(client, ClusterClient)
        assert_type(client.offer([b"a", memoryview(b"b")]), int | headrace.OfferResult)
        assert_type(client.offer_blocking(bytearray(b"a")), int)
        assert_type(client.receive(), ClusterMessage)
        assert_type(client.receive(timeout_s=1.0), ClusterMessage | None)
        assert_type(next(client).payload, bytes)
    with (
        ClusterNode.embedded(Count(), is_invoked=True, max_sessions=2) as embedded,
        ConsensusModule(driver=driver, members="0,a:1,a:2,a:3,a:4,a:5", cluster_id=1),
        ServiceContainer(Count(), driver=driver, service_id=1, is_responding=False) as container,
    ):
        assert_type(embedded.do_work(), int)
        assert_type(container.config, ContainerConfig)


class Sum:
    value: int = 0

    @command
    def add(self, amount: int) -> int:
        self.value += amount
        return self.value


def call(directory: str) -> None:
    with ObjectClient.connect(Sum, directory=directory) as client:
        assert_type(client.object, Sum)
        assert_type(client.object.add(1), int)


async def call_async(directory: str) -> None:
    async with await AsyncObjectClient.connect(Sum, directory=directory) as client:
        assert_type(client, AsyncObjectClient[Sum])
        assert_type(await client.call(Sum.add, amount=1), int)
        await client.object.add(1)
