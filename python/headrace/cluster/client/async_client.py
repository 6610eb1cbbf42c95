"""The client of a cluster for asyncio.

::

    async with await AsyncClusterClient.connect(client, ingress_endpoints="0=localhost:20000") as cluster:
        await cluster.offer_async(b"hello")
        async for message in cluster:
            print(message.payload)

Only the look-up of names needs a thread: messages wake the event loop. Cancelling loses no message.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from headrace import aio
from headrace._base.closing import AsyncClosing
from headrace._base.exceptions import ClosedError, PublicationTimeoutError
from headrace._base.results import OfferResult
from headrace.cluster.client.client import (
    _CHANGE_INTERVAL_S,
    ClusterClient,
    PendingClusterClient,
    check_answer,
)
from headrace.cluster.client.local_node import driver_directory, named_node
from headrace.cluster.client.pending_request import PendingRequest, result_of_read
from headrace.cluster.client.session import ClusterMessage, Handlers
from headrace.cluster.client.settings import ClusterClientConfig, ClusterClientSettings
from headrace.cluster.protocol.session import AdminResponse

if TYPE_CHECKING:
    import os
    from typing import Self, Unpack

    from headrace.client import Client, Publication
    from headrace.client._data import Data
    from headrace.client._local_driver import LocalDriver
    from headrace.cluster.client.follower_reads import FollowerRead
    from headrace.cluster.client.session import Answer
    from headrace.cluster.protocol.session import AdminResponse, NewLeaderEvent, SessionEvent

__all__ = ["AsyncClusterClient", "look_up"]


class AsyncClusterClient(AsyncClosing):
    """A session with a cluster for asyncio. Used by the coroutines of one event loop; one of them takes messages.

    Attributes:
        cluster: The session, with the methods that never block.
    """

    def __init__(self, cluster: ClusterClient) -> None:
        """Called by :meth:`connect`."""
        self.cluster = cluster
        self._reader_count = 0

    @classmethod
    async def connect(
        cls,
        client: Client | None = None,
        *,
        directory: str | os.PathLike[str] | None = None,
        node_directory: str | os.PathLike[str] | None = None,
        driver: LocalDriver | None = None,
        config: ClusterClientConfig | None = None,
        on_message: Callable[[ClusterMessage], object] | None = None,
        on_session_event: Callable[[SessionEvent], object] | None = None,
        on_new_leader: Callable[[NewLeaderEvent], object] | None = None,
        on_admin_response: Callable[[AdminResponse], object] | None = None,
        **settings: Unpack[ClusterClientSettings],
    ) -> Self:
        """See :meth:`headrace.cluster.ClusterClient.connect`."""
        handlers = Handlers(on_message, on_session_event, on_new_leader, on_admin_response)
        directory = driver_directory(node_directory, directory, client, driver, config, settings)
        made = ClusterClientConfig.of(config, **settings)
        await look_up(made)
        owns_client = client is None
        if client is None:
            with named_node(node_directory):
                client = await aio.connect(directory, driver=driver, client_name=made.client_name)
        pending = PendingClusterClient(client, made, handlers, owns_client=owns_client)
        try:
            while (connected := pending.poll()) is None:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(_CHANGE_INTERVAL_S)
        except BaseException:
            pending.cancel()
            raise
        return cls(connected)

    async def offer_async(self, data: Data, *, timeout_s: float | None = 5.0) -> int:
        """Send one message, waiting for room, and for a new leader if there is none. A cancelled call sends nothing.

        Arguments and exceptions as for :meth:`headrace.cluster.ClusterClient.offer_blocking`.
        """
        cluster = self.cluster
        deadline = cluster.clock.deadline(timeout_s)
        while not (result := cluster.offer(data)) > 0:
            cluster._check_refusal(result)
            left_s = deadline.left_s()
            if left_s == 0:
                raise PublicationTimeoutError(
                    f"not accepted in {timeout_s} s: {result!r}: {cluster!r}", result
                )
            if result is OfferResult.BACK_PRESSURED:
                await self._hold(left_s, cluster._session.publication)
            elif result is not OfferResult.ADMIN_ACTION:
                await self._hold(left_s)
        return int(result)

    async def request_snapshot(self, *, timeout_s: float | None = None) -> None:
        """See :meth:`headrace.cluster.ClusterClient.request_snapshot`."""
        answer = await self._ask(self.cluster._session.send_snapshot_request, timeout_s)
        assert isinstance(answer, AdminResponse), "the answer to a request for a snapshot"
        check_answer(answer)

    async def read(self, data: bytes, *, service_id: int = 0, timeout_s: float | None = None) -> bytes:
        """See :meth:`headrace.cluster.ClusterClient.read`. Several may be awaited at once."""
        session = self.cluster._session
        return result_of_read(
            await self._ask(lambda one: session.send_read(one, data, service_id), timeout_s)
        )

    async def read_from_follower(
        self, data: bytes, *, max_staleness_s: float, service_id: int = 0, timeout_s: float | None = None
    ) -> FollowerRead:
        """See :meth:`headrace.cluster.ClusterClient.read_from_follower`. Several may be awaited at once."""
        cluster = self.cluster
        pending = cluster._follower_read(data, service_id, max_staleness_s, timeout_s)
        try:
            while (answer := pending.step(cluster._check_refusal)) is None:
                cluster._check_open()
                await self._hold(_CHANGE_INTERVAL_S)
        finally:
            pending.close()
        return answer

    async def _ask(self, send: Callable[[int], int | OfferResult], timeout_s: float | None) -> Answer:
        cluster = self.cluster
        timeout_s = cluster._config.message_timeout_s if timeout_s is None else timeout_s
        correlation_id = cluster.client.next_correlation_id()
        with PendingRequest(cluster._session, correlation_id, send, timeout_s, cluster.clock) as request:
            while (answer := request.step(cluster._check_refusal)) is None:
                cluster._check_open()
                await self._hold(request.left_s)
        return answer

    async def receive(self) -> ClusterMessage:
        """The next message. Raises as :meth:`headrace.cluster.ClusterClient.poll`."""
        cluster = self.cluster
        self._reader_count += 1
        try:
            while (message := cluster.poll_message()) is None:
                await aio.wait_for_messages(cluster._session.subscription, cluster._wait_s)
        finally:
            self._reader_count -= 1
        return message

    def __aiter__(self) -> AsyncIterator[ClusterMessage]:
        return self

    async def __anext__(self) -> ClusterMessage:
        """Wait for the next message; the iteration ends when this program closes the session."""
        try:
            return await self.receive()
        except ClosedError:
            if self.cluster._is_closed_here:
                raise StopAsyncIteration from None
            raise

    async def _hold(self, left_s: float | None, *room_in: Publication) -> None:
        """Wait for messages, which are kept for the next read, or for room. A reading coroutine takes them itself."""
        cluster, session = self.cluster, self.cluster._session
        wait_s = cluster._wait_s if left_s is None else min(left_s, cluster._wait_s)
        if self._reader_count or not session.has_room:
            await asyncio.sleep(min(wait_s, _CHANGE_INTERVAL_S))
        else:
            await aio.wait_for_messages(session.subscription, wait_s, *room_in)
        cluster._check_open()
        while not self._reader_count and session.has_room:
            received = session.streams.take()
            if received is None:
                break
            if (message := session.accept(received)) is not None:
                session.hold(message)

    async def close(self) -> None:
        """End the session."""
        cluster = self.cluster
        is_owner, cluster._owns_client = cluster._owns_client, False
        cluster.close()
        if is_owner:
            await aio.close(cluster.client)

    def __repr__(self) -> str:
        return f"Async{self.cluster!r}"


async def look_up(config: ClusterClientConfig) -> None:
    """Find the egress channel, if the settings leave it open, without blocking the event loop."""
    if config.egress_channel is None:
        await asyncio.to_thread(lambda: config.egress)
