"""The client of an archive for asyncio.

::

    async with await AsyncArchive.connect(client) as archive:
        async with await archive.replay(recording_id) as replay:
            async for message in replay:
                print(message.payload)

Requests need no thread: answers, like messages, wake the event loop. A cancelled request ends at once, but the archive
still carries it out if it was sent. The session then stops the recording or replay that it began, since no caller knows
its id, when the archive answers. :meth:`AsyncArchive.close` waits for such an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from headrace import aio
from headrace._base.checks import check_callable
from headrace._base.closing import AsyncClosing
from headrace._base.exceptions import (
    ArchiveTimeoutError,
    ClientError,
    ClosedError,
    HeadraceError,
    PublicationTimeoutError,
)
from headrace.archive.client import calls, steps
from headrace.archive.client.archive import REPLAY_STREAM_ID, Archive
from headrace.archive.client.durable import DurablePublication
from headrace.archive.client.replay import Replay, Replayed, ReplayRange
from headrace.archive.client.replication import Replication, ReplicationSettings, replication_begun
from headrace.archive.client.session import LOOK_INTERVAL_S, Streams, look_s, no_archive
from headrace.archive.client.settings import ArchiveClientConfig, ArchiveClientSettings
from headrace.archive.client.waits import POLL_INTERVAL_S
from headrace.archive.protocol.codes import RecordingSignal
from headrace.archive.protocol.retention import Retention, without_retention
from headrace.channel import ChannelUri
from headrace.client import Image
from headrace.positions import signed_32

if TYPE_CHECKING:
    import os
    from typing import Self, Unpack

    from headrace._base.exceptions import ArchiveError
    from headrace.archive.client.exchange import Exchange, Steps
    from headrace.archive.client.following.follow import Follow
    from headrace.archive.client.following.settings import Begin, FollowSettings
    from headrace.archive.client.following.stream_follow import StreamFollow, StreamFollowSettings
    from headrace.archive.client.signals import Signal
    from headrace.archive.protocol.place import Place
    from headrace.client import Client, ExclusivePublication, Message, Subscription
    from headrace.client._local_driver import LocalDriver

__all__ = ["AsyncArchive", "AsyncReplay"]

P = ParamSpec("P")
R = TypeVar("R")
_LOOK_INTERVAL_S = 0.05


def _awaited(
    method: Callable[Concatenate[Archive, P], R], request: Callable[P, Steps[R]]
) -> Callable[Concatenate[AsyncArchive, P], Coroutine[Any, Any, R]]:
    """Makes an async method of a request, with the documentation of the method of :class:`Archive`."""

    @functools.wraps(method)
    async def awaited(self: AsyncArchive, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._run(request(*args, **kwargs))

    return awaited


class AsyncReplay(AsyncClosing):
    """The whole messages of a recording, in order: an asynchronous iterator and context manager.

    Ends and raises as :class:`headrace.archive.Replay`, which is :attr:`replay`.
    """

    def __init__(self, archive: AsyncArchive, replay: Replay) -> None:
        self._archive = archive
        self._turns = aio.Turns()
        self.replay = replay

    @property
    def subscription(self) -> Subscription:
        """The subscription on which the messages arrive."""
        return self.replay.subscription

    def __aiter__(self) -> AsyncReplay:
        return self

    async def __anext__(self) -> Message:
        """Wait for the next message. If another coroutine closes the replay meanwhile, the iteration ends."""
        await self._turns.begin()
        try:
            message = await self._next()
        except ClosedError:
            if not self.replay.is_closed:
                raise
            message = None
        if message is None:
            raise StopAsyncIteration
        return message

    async def _next(self) -> Message | None:
        """The next message; ``None`` after the last one."""
        replay = self.replay
        while True:
            message = replay.subscription.poll_message()
            if message is not None:
                return message
            if replay.has_ended:
                await self._confirm_end()
                return None
            # The end of a replay is no message, so it is looked for from time to time.
            await aio.wait_for_messages(replay.subscription, _LOOK_INTERVAL_S)

    async def _confirm_end(self) -> None:
        replay = self.replay
        if not replay.may_confirm_end:
            return
        try:
            await self._archive.find_recording(replay.recording_id)
        except HeadraceError as silence:
            raise replay.unconfirmed_end(silence) from silence

    async def close(self) -> None:
        """Stop the replay, if it has not ended."""
        if self.replay.leave():
            await self._archive.stop_replay(self.replay.replay_id)


class AsyncArchive(AsyncClosing):
    """A session with an archive for asyncio. Each method is the one of :class:`headrace.Archive`, awaited.

    Used by the coroutines of one event loop; their requests are carried out one after the other.
    """

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self._lock = asyncio.Lock()

    @classmethod
    async def connect(
        cls,
        client: Client | None = None,
        *,
        directory: str | os.PathLike[str] | None = None,
        driver: LocalDriver | None = None,
        config: ArchiveClientConfig | None = None,
        on_signal: Callable[[Signal], object] | None = None,
        on_error: Callable[[ArchiveError], object] | None = None,
        **settings: Unpack[ArchiveClientSettings],
    ) -> Self:
        """See :meth:`headrace.Archive.connect`."""
        check_callable("on_signal", on_signal)
        check_callable("on_error", on_error)
        config = ArchiveClientConfig.of(config, **settings)
        owns_client = client is None
        if client is None:
            client = await aio.connect(directory, driver=driver, client_name=config.client_name)
        try:
            channels = config.channels(lambda: client.next_available_session_id(config.control_stream_id))
            subscription = await client.request_subscription(channels.responses, config.response_stream_id)
            publication = await client.request_exclusive_publication(
                channels.requests_of(subscription), config.control_stream_id
            )
        except BaseException:
            if owns_client:
                client.close()
            raise
        streams = Streams(client, publication, subscription, owns_client)
        archive = cls(Archive(streams, config, on_signal, on_error))
        try:
            await archive._connected(publication)
            resolved = await archive._resolved(subscription, channels.responses)
            await archive._run(archive.archive._handshake(resolved))
        except BaseException:
            await archive.close()
            raise
        return archive

    async def _connected(self, publication: ExclusivePublication) -> None:
        """Wait until an archive subscribes to the requests."""
        try:
            async with asyncio.timeout(self.archive._timeout_s):
                while not publication.is_connected:  # noqa: ASYNC110 - nothing tells of it
                    await asyncio.sleep(POLL_INTERVAL_S)
        except TimeoutError:
            raise ArchiveTimeoutError(no_archive(publication)) from None

    async def _run(self, what: Steps[R]) -> R:
        """Run an exchange to its end, awaiting each answer."""
        session = self.archive
        async with self._turn(what) as exchange:
            while (unsettled := session._unsettled()) is not None:
                await self._wait(unsettled)
            session._check_open()
            while not exchange.is_done:
                if exchange.to_send is not None:
                    await self._offer(exchange, exchange.to_send)
                else:
                    await self._wait(exchange)
            return exchange.result()

    @contextlib.asynccontextmanager
    async def _turn(self, what: Steps[R]) -> AsyncIterator[Exchange[R]]:
        """Begin an exchange, and wait, at most its time-out, until it is this coroutine's turn to run it."""
        exchange = self.archive._begin(what)
        try:
            while not await self._acquire(exchange.deadline.left_s()):
                exchange.check()
                if exchange.is_done:
                    exchange.result()
        except BaseException:
            self.archive._end(exchange)
            raise
        try:
            yield exchange
        finally:
            self.archive._end(exchange)
            self._lock.release()

    async def _acquire(self, timeout_s: float | None) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                return await self._lock.acquire()
        except TimeoutError:
            return False

    async def _offer(self, exchange: Exchange[R], request: bytes) -> None:
        """Send a request, or wait for room until it is time to check its exchange."""
        try:
            await aio.offer_async(self.archive._way_of(exchange), request, look_s(exchange))
        except PublicationTimeoutError:
            self.archive._look_after(exchange)
        else:
            exchange.sent()

    async def _wait(self, exchange: Exchange[R]) -> None:
        """Take messages from the archive; if there are none, wait, and check the exchange in time."""
        if self.archive.poll():
            return
        self.archive._look_after(exchange)
        if exchange.is_waiting:
            await aio.wait_for_messages(self.archive._subscription, LOOK_INTERVAL_S)

    async def _resolved(self, subscription: Subscription, channel: str) -> str:
        """The channel of a subscription, with port 0 replaced by the port that the system chose."""
        if not ChannelUri(channel).is_port_open:
            return channel
        try:
            async with asyncio.timeout(self.archive._timeout_s):
                while (resolved := subscription.resolved_channel) is None:  # noqa: ASYNC110 - nothing tells of it
                    await asyncio.sleep(POLL_INTERVAL_S)
        except TimeoutError:
            raise ArchiveTimeoutError(f"the port of {channel} is not known") from None
        return resolved

    start_recording = _awaited(Archive.start_recording, calls.start_recording)
    extend_recording = _awaited(Archive.extend_recording, calls.extend_recording)
    stop_recording = _awaited(Archive.stop_recording, calls.stop_recording)
    stop_recording_subscription = _awaited(
        Archive.stop_recording_subscription, calls.stop_recording_subscription
    )
    stop_recording_by_id = _awaited(Archive.stop_recording_by_id, calls.stop_recording_by_id)
    start_replay = _awaited(Archive.start_replay, calls.start_replay)
    stop_replay = _awaited(Archive.stop_replay, calls.stop_replay)
    stop_all_replays = _awaited(Archive.stop_all_replays, calls.stop_all_replays)
    stop_replication = _awaited(Archive.stop_replication, calls.stop_replication)
    list_recordings = _awaited(Archive.list_recordings, calls.list_recordings)
    find_recording = _awaited(Archive.find_recording, calls.find_recording)
    list_recording_subscriptions = _awaited(
        Archive.list_recording_subscriptions, calls.list_recording_subscriptions
    )
    find_last_matching_recording = _awaited(
        Archive.find_last_matching_recording, calls.find_last_matching_recording
    )
    start_position = _awaited(Archive.start_position, calls.start_position)
    stop_position = _awaited(Archive.stop_position, calls.stop_position)
    recording_position = _awaited(Archive.recording_position, calls.recording_position)
    max_recorded_position = _awaited(Archive.max_recorded_position, calls.max_recorded_position)
    truncate_recording = _awaited(Archive.truncate_recording, calls.truncate_recording)
    purge_recording = _awaited(Archive.purge_recording, calls.purge_recording)
    detach_segments = _awaited(Archive.detach_segments, calls.detach_segments)
    delete_detached_segments = _awaited(Archive.delete_detached_segments, calls.delete_detached_segments)
    purge_segments = _awaited(Archive.purge_segments, calls.purge_segments)
    attach_segments = _awaited(Archive.attach_segments, calls.attach_segments)
    migrate_segments = _awaited(Archive.migrate_segments, calls.migrate_segments)
    declare = _awaited(Archive.declare, calls.declare)
    undeclare = _awaited(Archive.undeclare, calls.undeclare)
    streams = _awaited(Archive.streams, calls.streams)
    set_retention = _awaited(Archive.set_retention, calls.set_retention)
    update_channel = _awaited(Archive.update_channel, calls.update_channel)

    async def add_recorded_publication(
        self, channel: str, stream_id: int, *, retention: Retention | None = None
    ) -> ExclusivePublication:
        """See :meth:`headrace.Archive.add_recorded_publication`."""
        client = self.archive.client
        publication = await client.request_exclusive_publication(without_retention(channel), stream_id)
        try:
            await self._run(steps.recorded(calls.recording_of(publication, channel, retention)))
        except BaseException:
            publication.close()
            raise
        return publication

    async def add_durable_publication(
        self, channel: str, stream_id: int, *, retention: Retention | None = None
    ) -> DurablePublication:
        """See :meth:`headrace.Archive.add_durable_publication`. Await the methods of it that end in ``_async``."""
        client = self.archive.client
        publication = await client.request_exclusive_publication(without_retention(channel), stream_id)
        try:
            recording_id = await self._run(
                steps.recorded(calls.recording_of(publication, channel, retention))
            )
            return DurablePublication(self.archive, publication, recording_id)
        except BaseException:
            publication.close()
            raise

    async def replay(
        self,
        recording_id: int,
        *,
        position: int | None = None,
        length: int | None = None,
        channel: str = "aeron:ipc",
        stream_id: int = REPLAY_STREAM_ID,
        limit_counter_id: int | None = None,
    ) -> AsyncReplay:
        """See :meth:`headrace.Archive.replay`."""
        what = ReplayRange(recording_id, position, length, limit_counter_id)
        if ChannelUri(channel).is_response:
            return await self._replay_back(what, channel, stream_id)
        client, images = self.archive.client, list[Image]()
        if ChannelUri(channel).is_port_open:
            session_id = client.next_available_session_id(stream_id)
            channel = ChannelUri(channel).with_parameters(session_id=session_id)
            subscription = await client.request_subscription(
                channel, stream_id, on_available_image=images.append
            )
            try:
                resolved = await self._resolved(subscription, channel)
                ids = await self._run(steps.replay_started(what.request(resolved, stream_id)))
            except BaseException:
                subscription.close()
                raise
        else:
            ids = await self._run(steps.replay_started(what.request(channel, stream_id)))
            session_channel = ChannelUri(channel).with_parameters(session_id=signed_32(ids[0]))
            try:
                subscription = await client.request_subscription(
                    session_channel, stream_id, on_available_image=images.append
                )
            except BaseException:
                await self.stop_replay(ids[0])
                raise
        replayed = Replayed(recording_id, *ids, subscription, images)
        return AsyncReplay(self, Replay(self.archive, self.archive, replayed))

    async def replicate(
        self, source_recording_id: int, source_channel: str, **settings: Unpack[ReplicationSettings]
    ) -> Replication:
        """See :meth:`headrace.Archive.replicate`. Await the methods of it that end in ``_async``."""
        archive = self.archive
        watch = await self._run(replication_begun(archive, source_recording_id, source_channel, **settings))
        return Replication(archive, watch)

    async def _replay_back(self, what: ReplayRange, channel: str, stream_id: int) -> AsyncReplay:
        """Replay through a connection that this program opens."""
        client, config, images = self.archive.client, self.archive._config, list[Image]()
        config.check_way_back("channel", channel)
        with contextlib.ExitStack() as undo:
            subscription = await client.request_subscription(
                channel, stream_id, on_available_image=images.append
            )
            undo.callback(subscription.close)
            over = await client.request_exclusive_publication(
                config.replay_requests(subscription), config.control_stream_id
            )
            undo.callback(over.close)
            await self._connected(over)
            ids = await self._run(steps.replay_started(what.request(channel, stream_id), over))
            undo.pop_all()
        replayed = Replayed(what.recording_id, *ids, subscription, images, over)
        return AsyncReplay(self, Replay(self.archive, self.archive, replayed))

    @overload
    def follow(
        self, recording_id: int, *, from_position: Begin = "start", **settings: Unpack[FollowSettings]
    ) -> Follow: ...

    @overload
    def follow(
        self,
        recording_id: str,
        *,
        start: Place | Literal["earliest", "latest"] = "latest",
        **settings: Unpack[StreamFollowSettings],
    ) -> StreamFollow: ...

    def follow(self, recording_id: int | str, **settings: Any) -> Follow | StreamFollow:
        """See :meth:`headrace.Archive.follow`. Read it with ``async for``."""
        return self.archive.follow(recording_id, **settings)

    async def await_signal(
        self, signal: RecordingSignal, recording_id: int | None = None, timeout_s: float = 10.0
    ) -> Signal:
        """See :meth:`headrace.Archive.await_signal`."""
        archive = self.archive
        # Not around it: a handler of what comes may raise a time-out of its own.
        deadline = archive.clock.deadline(timeout_s)
        while True:
            archive.poll()
            found = archive._signals.take_signal(signal, recording_id)
            if found is not None:
                return found
            archive._check_open()
            left_s = deadline.left_s()
            if left_s == 0:
                raise ArchiveTimeoutError(f"no signal {signal.name} within {timeout_s} s")
            wait_s = LOOK_INTERVAL_S if left_s is None else min(left_s, LOOK_INTERVAL_S)
            await aio.wait_for_messages(archive._subscription, wait_s)

    async def close(self) -> None:
        """End the session.

        If a request to record or to replay was cancelled, this waits until the archive has answered it, or its time-out
        is over, to stop what it began.
        """
        try:
            with contextlib.suppress(ClientError, ClosedError):
                while (begun := self.archive._begun()) is not None:
                    await self._wait(begun)
        finally:
            await self._close()

    async def _close(self) -> None:
        if self.archive._streams.owns_client:
            await aio.close(self.archive)
        else:
            self.archive.close()
