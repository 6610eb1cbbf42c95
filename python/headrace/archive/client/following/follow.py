"""A recording and its publisher's live stream as one endless stream."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING

from headrace import aio
from headrace._base.closing import EitherClosing
from headrace._base.exceptions import ClosedError
from headrace._base.fork import is_own
from headrace.archive.client.following.machine import Follower
from headrace.archive.client.following.states import FollowState
from headrace.client import FragmentBatch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from headrace.client import Message

__all__ = ["Follow"]

# A look at the streams costs more than a message, and they change seldom.
_MESSAGES_A_STEP = 256
_STEADY_WAIT_S = 0.05
_CHANGE_WAIT_S = 0.001


class Follow(EitherClosing):
    """The messages of a recording and then those of its publisher, each once, in order, endlessly.

    Made with :meth:`headrace.Archive.follow`. An iterator, also with ``async for``, and a context manager. It returns
    to the archive when the live stream is lost, and then to the live stream, as often as that happens. Used by one
    thread at a time, or by the coroutines of one event loop; any thread may close it, which ends the iteration.
    """

    def __init__(self, follower: Follower) -> None:
        """Called by :meth:`headrace.Archive.follow`."""
        self._follower = follower
        self._until_step = 0
        self._turns = aio.Turns()
        self._pid = os.getpid()
        # Held for a step, so that another thread that closes it waits for the end of that; callbacks may close it too.
        self._lock = threading.RLock()

    @property
    def state(self) -> FollowState:
        """The state."""
        return self._follower.state

    @property
    def is_live(self) -> bool:
        """Whether messages come from the publisher now, and not from the archive."""
        return self._follower.state is FollowState.LIVE

    @property
    def position(self) -> int | None:
        """The end of the last delivered message: following from there again misses nothing.

        If `from_position` was not a number, ``None`` until the archive has sent the start of the recording.
        """
        return self._follower.position

    def poll_message(self) -> Message | None:
        """Take one message; ``None`` if none has arrived. Never blocks.

        Raises:
            ArchiveError: The recording is unknown, or does not have the position; ``code`` tells which. Each later poll
                raises it again.
            ArchiveTimeoutError: The archive could not be reached for ``timeout_s`` while it was needed.
            ClosedError: This, or its client, is closed.
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
            ArchiveError: As :meth:`poll_message`, which also raises others.
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
            ArchiveError: As :meth:`poll_message`, which also raises others.
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
        """Wait for the next message as :meth:`receive` does; the iteration ends when this program closes it."""
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
        """Wait for the next message without blocking the event loop. Cancelling loses no message."""
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
        """The message, unless it may come from a stream that began after the followed one had ended."""
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
