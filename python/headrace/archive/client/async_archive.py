"""The client of an archive for asyncio.

::

    async with await AsyncArchive.connect(client) as archive:
        async with await archive.replay(recording_id) as replay:
            async for message in replay:
                print(message.payload)

Requests wait in a thread of the event loop's pool, without the GIL. Messages of a replay are awaited like those of any
subscription.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from headrace import aio
from headrace._closing import AsyncClosing
from headrace.archive.client.archive import Archive

if TYPE_CHECKING:
    from typing import Self

    from headrace.archive.client.replay import Replay
    from headrace.client import Client, Message, Subscription

__all__ = ["AsyncArchive", "AsyncReplay"]

P = ParamSpec("P")
R = TypeVar("R")
_LOOK_INTERVAL_S = 0.05


def _in_thread(
    method: Callable[Concatenate[Archive, P], R],
) -> Callable[Concatenate[AsyncArchive, P], Coroutine[Any, Any, R]]:
    """The same request, awaited."""

    async def request(self: AsyncArchive, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self.archive, *args, **kwargs)

    request.__name__, request.__doc__ = method.__name__, method.__doc__
    return request


class AsyncReplay(AsyncClosing):
    """The messages of a recording, in order, each whole: an asynchronous iterator and context manager.

    Ends and raises as :class:`headrace.archive.Replay`, which is :attr:`replay`.
    """

    def __init__(self, replay: Replay) -> None:
        self.replay = replay

    @property
    def subscription(self) -> Subscription:
        """What the messages arrive on."""
        return self.replay.subscription

    def __aiter__(self) -> AsyncReplay:
        return self

    async def __anext__(self) -> Message:
        """The next message."""
        replay = self.replay
        while True:
            message = replay.subscription.poll_message()
            if message is not None:
                return message
            if replay.has_ended():
                await asyncio.to_thread(replay.confirm_end)
                raise StopAsyncIteration
            # The end of a replay is no message, so it is looked for from time to time.
            await aio.wait_for_messages(replay.subscription, _LOOK_INTERVAL_S)

    async def close(self) -> None:
        """Stop the replay, if it has not ended."""
        await asyncio.to_thread(self.replay.close)


class AsyncArchive(AsyncClosing):
    """A session with an archive for asyncio. Each method is the one of :class:`headrace.Archive`, awaited."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive

    @classmethod
    async def connect(cls, client: Client | None = None, **settings: Any) -> Self:
        """See :meth:`headrace.Archive.connect`."""
        return cls(await asyncio.to_thread(functools.partial(Archive.connect, client, **settings)))

    start_recording = _in_thread(Archive.start_recording)
    extend_recording = _in_thread(Archive.extend_recording)
    stop_recording = _in_thread(Archive.stop_recording)
    stop_recording_subscription = _in_thread(Archive.stop_recording_subscription)
    stop_recording_by_id = _in_thread(Archive.stop_recording_by_id)
    add_recorded_publication = _in_thread(Archive.add_recorded_publication)
    start_replay = _in_thread(Archive.start_replay)
    stop_replay = _in_thread(Archive.stop_replay)
    stop_all_replays = _in_thread(Archive.stop_all_replays)
    list_recordings = _in_thread(Archive.list_recordings)
    find_recording = _in_thread(Archive.find_recording)
    list_recording_subscriptions = _in_thread(Archive.list_recording_subscriptions)
    find_last_matching_recording = _in_thread(Archive.find_last_matching_recording)
    start_position = _in_thread(Archive.start_position)
    stop_position = _in_thread(Archive.stop_position)
    recording_position = _in_thread(Archive.recording_position)
    max_recorded_position = _in_thread(Archive.max_recorded_position)
    truncate_recording = _in_thread(Archive.truncate_recording)
    purge_recording = _in_thread(Archive.purge_recording)
    update_channel = _in_thread(Archive.update_channel)
    await_signal = _in_thread(Archive.await_signal)

    async def replay(self, recording_id: int, **settings: Any) -> AsyncReplay:
        """See :meth:`headrace.Archive.replay`."""
        return AsyncReplay(
            await asyncio.to_thread(functools.partial(self.archive.replay, recording_id, **settings))
        )

    async def close(self) -> None:
        """End the session."""
        await asyncio.to_thread(self.archive.close)
