"""A recording as one stream without an end: what is recorded, then what is published."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING

from headrace import aio
from headrace._arguments import checked_class
from headrace._closing import EitherClosing
from headrace._exceptions import ClosedError
from headrace._fork import is_own
from headrace.archive.client.following.machine import Follower, FollowState
from headrace.client import FragmentBatch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from headrace.client import Message

__all__ = ["Follow"]

# A look at the streams costs more than a message, and they change seldom.
_MESSAGES_A_STEP = 256
_STEADY_WAIT_S = 0.05
_CHANGE_WAIT_S = 0.001


@checked_class
class Follow(EitherClosing):
    """The messages of a recording and then those of its publisher, each once, in order, without an end.

    Made with :meth:`headrace.Archive.follow`. An iterator, also with ``async for``, and a context manager. It goes back
    to the archive when the live stream is lost, and then to the live stream, as often as that happens. Used by one
    thread at a time, or by the coroutines of one event loop; any thread may close it, which ends the iteration.
    """

    def __init__(self, follower: Follower) -> None:
        """What :meth:`headrace.Archive.follow` calls."""
        self._follower = follower
        self._until_step = 0
        self._turns = aio.Turns()
        self._pid = os.getpid()
        # Held for a step, so that another thread that closes it waits for the end of that; callbacks may close it too.
        self._lock = threading.RLock()

    @property
    def state(self) -> FollowState:
        """What it does now."""
        return self._follower.state

    @property
    def is_live(self) -> bool:
        """Whether messages come from the publisher now, and not from the archive."""
        return self._follower.state is FollowState.LIVE

    @property
    def position(self) -> int | None:
        """Where the last message ends that was given: following from there again misses nothing.

        ``None`` until the archive has said where the recording begins, if no position was given.
        """
        return self._follower.position

    def poll_message(self) -> Message | None:
        """Take one message; ``None`` if none has arrived. Never blocks.

        Raises:
            ArchiveError: The recording is unknown, or does not have the position, as its ``code`` says; each poll from
                then on raises it.
            ArchiveTimeoutError: The archive was needed and could not be reached for ``timeout_s``.
            ClosedError: It is closed, or its client is.
        """
        follower = self._follower
        if self._until_step <= 0:
            self._step()
        source = follower.source
        if source is None or source.subscription is None:
            self._until_step = 0
            return None
        message = source.subscription.poll_message()
        if message is None:
            self._until_step = 0
            return None
        return self._accepted(message)

    def poll_batch(self, limit: int = 4096) -> FragmentBatch:
        """Take what has arrived, copied out in one call, as :meth:`headrace.Subscription.poll_batch` does. Never waits.

        A batch comes from the archive or from the publisher, never from both.

        Args:
            limit: Most fragments to take.

        Raises:
            ConfigError: The limit is below 0.
            ArchiveError: As :meth:`poll_message`. Other exceptions too.
        """
        self._step()
        source = self._follower.source
        if source is None or source.subscription is None:
            return FragmentBatch()
        batch = source.subscription.poll_batch(limit)
        if not len(batch) or source.image is None or source.image.is_closed:
            return FragmentBatch()
        self._follower.delivered(int(batch.positions[-1]))
        return batch

    def receive(self, timeout_s: float | None = None) -> Message | None:
        """Wait for one message, without the GIL; Ctrl-C ends the wait.

        Args:
            timeout_s: How long to wait at most, in seconds; ``None`` to wait without end.

        Returns:
            The message; ``None`` when the time is over.

        Raises:
            ArchiveError: As :meth:`poll_message`. Other exceptions too.
        """
        clock = self._follower.clock
        deadline = clock.deadline(timeout_s)
        while (message := self.poll_message()) is None:
            left_s = deadline.left_s()
            if left_s == 0:
                return None
            wait_s = self._wait_s if left_s is None else min(left_s, self._wait_s)
            source = self._follower.source
            if source is None or source.subscription is None:
                clock.sleep(wait_s)
                continue
            received = source.subscription.receive(timeout_s=wait_s)
            if received is not None and (message := self._accepted(received)) is not None:
                return message
        return message

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        """The next message, waited for as :meth:`receive` does; ends when this program has closed it."""
        try:
            message = self.receive()
        except ClosedError:
            if self.state is FollowState.CLOSED:
                raise StopIteration from None
            raise
        assert message is not None
        return message

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        """The next message, without blocking the event loop. Cancelling it takes nothing."""
        await self._turns.begin()
        try:
            while (message := self.poll_message()) is None:
                source = self._follower.source
                if source is None or source.subscription is None:
                    await asyncio.sleep(self._wait_s)
                else:
                    await aio.wait_for_messages(source.subscription, self._wait_s)
        except ClosedError:
            if self.state is FollowState.CLOSED:
                raise StopAsyncIteration from None
            raise
        return message

    def close(self) -> None:
        """Leave the streams, stop the replay. Closing again does nothing, nor does closing in a forked child.

        Any thread may close it.
        """
        if is_own(self._pid):
            with self._lock:
                self._follower.close()

    @property
    def _wait_s(self) -> float:
        steady = FollowState.LIVE, FollowState.WAITING
        return _STEADY_WAIT_S if self._follower.state in steady else _CHANGE_WAIT_S

    def _step(self) -> None:
        follower = self._follower
        with self._lock:
            follower.step()
        if follower.error is not None:
            raise follower.error
        if follower.state is FollowState.CLOSED:
            raise ClosedError(f"{self!r} is closed")
        is_steady = follower.state in (FollowState.REPLAYING, FollowState.LIVE)
        self._until_step = _MESSAGES_A_STEP if is_steady else 0

    def _accepted(self, message: Message) -> Message | None:
        """A message, unless it may come from a stream that began after the one that is followed had gone."""
        self._until_step -= 1
        source = self._follower.source
        if source is None or source.image is None or source.image.is_closed:
            self._until_step = 0
            return None
        self._follower.delivered(message.position)
        return message

    def __repr__(self) -> str:
        what = self._follower.recording_id
        return f"Follow(recording_id={what}, state={self.state.name}, position={self.position})"
