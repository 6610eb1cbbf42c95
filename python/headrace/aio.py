"""asyncio over clients, publications and subscriptions.

::

    async with await aio.connect() as client:
        subscription = await client.request_subscription("aeron:ipc", 1001)
        publication = await client.request_publication("aeron:ipc", 1001)
        await publication.offer_async(b"hello")
        async for message in subscription:
            ...

``await`` of a request, ``offer_async`` and ``async for`` come from here. Nothing busy-waits in the event loop: it
watches a descriptor, which becomes readable when a message is written or a reader makes room. Waiting takes no
message, so cancelling a coroutine loses none.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import math
import weakref
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, overload

from headrace._base.checks import check_timeout
from headrace._base.exceptions import (
    ClosedError,
    PublicationTimeoutError,
)
from headrace._base.results import OfferResult
from headrace._base.threads import run_in_thread
from headrace.client._pending import added

if TYPE_CHECKING:
    import os
    from typing import Unpack

    from headrace._base.closing import Closing
    from headrace._base.exceptions import HeadraceError
    from headrace._settings.keywords import ClientSettings
    from headrace.client import Client, Message, Publication, ReconnectingClient, Subscription
    from headrace.client._data import Data
    from headrace.client._local_driver import LocalDriver

__all__ = ["Messages", "added", "close", "connect", "offer_async", "receive", "wait_for_messages"]

_Added = TypeVar("_Added")

# What no wait changes.
_FOR_GOOD = (OfferResult.CLOSED, OfferResult.MAX_POSITION_EXCEEDED)

# Messages taken without a pause before other coroutines get a turn.
_TURN_LENGTH = 64


class Turns:
    """Counts the messages that one coroutine takes, so that others get a turn in between."""

    def __init__(self) -> None:
        self._taken = 0

    async def begin(self) -> None:
        """Called before a message is taken: a cancellation here loses none."""
        if self._taken == _TURN_LENGTH:
            self._taken = 0
            await asyncio.sleep(0)
        self._taken += 1


@overload
async def connect(
    directory: str | os.PathLike[str] | None = None,
    *,
    driver: LocalDriver | None = None,
    reconnect: Literal[False] = False,
    **settings: Unpack[ClientSettings],
) -> Client: ...
@overload
async def connect(
    directory: str | os.PathLike[str] | None = None,
    *,
    driver: LocalDriver | None = None,
    reconnect: Literal[True],
    on_disconnect: Callable[[HeadraceError], object] | None = None,
    on_reconnect: Callable[[ReconnectingClient], object] | None = None,
    **settings: Unpack[ClientSettings],
) -> ReconnectingClient: ...
async def connect(directory: str | os.PathLike[str] | None = None, **settings: Any) -> Any:
    """Connect to the driver of a directory, waiting for one to start without blocking the event loop.

    May be cancelled; the thread that waits then ends at the latest when ``driver_timeout_ms`` is over. ``async with``
    closes the client without blocking the loop either.

    Args:
        directory: As for :meth:`headrace.Client.connect`.
        **settings: As for :func:`headrace.connect`, with ``reconnect`` and its handlers, which run on a thread of the
            client and not in the loop.

    Raises:
        DriverTimeoutError: No driver answers on the directory.
        ConfigError: A setting is wrong.
        ClientError: The driver's files cannot be used.
    """
    from headrace.client import connect

    return await run_in_thread(lambda: connect(directory, **settings), lambda client: client.close())


async def close(client: Closing) -> None:
    """Close a client without blocking the event loop. It is closed even if this is cancelled.

    Raises:
        ReentrantError: Called from one of the client's handlers.
    """
    await run_in_thread(client.close, lambda _: None)


class _Wait(asyncio.Future[None]):
    """A future that can resume the one coroutine that awaits it at once, without another turn of the loop."""

    _resume: tuple[Callable[[Any], object], contextvars.Context] | None = None

    def add_done_callback(
        self, resume: Callable[[Any], object], /, *, context: contextvars.Context | None = None
    ) -> None:
        if context is None or self._resume is not None or self.done():
            super().add_done_callback(resume, context=context)
        else:
            self._resume = (resume, context)

    def remove_done_callback(self, resume: Callable[[Any], object], /) -> int:
        if self._resume is not None and self._resume[0] == resume:
            self._resume = None
            return 1
        return super().remove_done_callback(resume)

    def cancel(self, msg: Any = None) -> bool:
        self._resume_later()
        return super().cancel(msg)

    def end(self) -> None:
        """End the wait; its coroutine resumes in the loop's next turn."""
        self._resume_later()
        self.set_result(None)

    def end_now(self) -> None:
        """End the wait; its coroutine resumes before this returns. Call it from the loop, outside any task."""
        resume, self._resume = self._resume, None
        self.set_result(None)
        if resume is not None:
            resume[1].run(resume[0], self)

    def _resume_later(self) -> None:
        if self._resume is not None and not self.done():
            resume, self._resume = self._resume, None
            super().add_done_callback(resume[0], context=resume[1])


class _Waker:
    """The waits of one event loop's coroutines.

    The loop wakes when a doorbell rings, at the latest 20 ms after it began to wait.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        from headrace.client import Watcher

        self._watcher = Watcher()
        self._waits: dict[int, _Wait] = {}
        self._look_at_s = math.inf
        # The loop keeps this, and nothing else does: what is watched goes with the loop.
        loop.add_reader(self._watcher.fileno(), self._on_ring)

    def _on_ring(self) -> None:
        tickets = self._watcher.take_rung()
        self._end(tickets)
        if not tickets:
            # After too many false wakeups the watcher has stopped listening: the next look is due sooner.
            self._plan_look(asyncio.get_running_loop())

    def _on_time(self, look_at_s: float) -> None:
        if look_at_s != self._look_at_s:
            # An earlier look was planned after this one, and has planned the next.
            return
        self._look_at_s = math.inf
        self._end(self._watcher.take_ready())
        self._plan_look(asyncio.get_running_loop())

    def _plan_look(self, loop: asyncio.AbstractEventLoop) -> None:
        look_after_s = self._watcher.look_after_s
        if look_after_s is None:
            return
        look_at_s = loop.time() + look_after_s
        if look_at_s < self._look_at_s:
            self._look_at_s = look_at_s
            loop.call_at(look_at_s, self._on_time, look_at_s)

    def _end(self, tickets: list[int]) -> None:
        waits = [wait for ticket in tickets if not (wait := self._waits.pop(ticket)).done()]
        for wait in waits[1:]:
            wait.end()
        # Last, since it may raise what ends the loop.
        for wait in waits[:1]:
            wait.end_now()

    async def wait_for(self, *awaited: Subscription | Publication) -> None:
        """Wait for a message, or for room, in the first of several."""
        loop = asyncio.get_running_loop()
        ticket = self._watcher.watch(*awaited)
        if ticket is None:
            await asyncio.sleep(0)
            return
        wait = self._waits[ticket] = _Wait(loop=loop)
        self._plan_look(loop)
        try:
            await wait
        finally:
            if self._waits.pop(ticket, None) is not None:
                self._watcher.cancel(ticket)


_wakers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.ref[_Waker]] = (
    weakref.WeakKeyDictionary()
)


def _waker() -> _Waker:
    loop = asyncio.get_running_loop()
    known = _wakers.get(loop)
    waker = None if known is None else known()
    if waker is None:
        waker = _Waker(loop)
        _wakers[loop] = weakref.ref(waker)
    return waker


async def wait_for_messages(
    subscription: Subscription, timeout_s: float, *others: Subscription | Publication
) -> None:
    """Wait until a poll of a subscription may find something, or one of the others has messages or room.

    Also ends when one is closed, or the time is over.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await _waker().wait_for(subscription, *others)


async def receive(subscription: Subscription) -> Message:
    """Wait for the next message of a subscription.

    Cancelling, as a time-out does, loses no message.

    Raises:
        ClosedError: The subscription, or its client, is closed.
    """
    while (message := subscription.poll_message()) is None:
        await _waker().wait_for(subscription)
    return message


_Item = TypeVar("_Item", covariant=True)


class _Source(Protocol[_Item]):
    """A subscription, or a poller of several."""

    def poll_message(self) -> _Item | None: ...


class Messages(AsyncIterator[_Item]):
    """The messages of a subscription or of a poller, ending when the program closes the subscriptions.

    A message is taken only when the loop asks for it: leaving the loop early leaves the rest for the next reader, and
    cancelling ``anext()``, as a time-out does, loses no message. The iterator can be used again after that.
    """

    def __init__(self, source: _Source[_Item]) -> None:
        self._source = source
        self._taken = 0

    async def __anext__(self) -> _Item:
        """The next message.

        Raises:
            ClientError: The client ended for another reason, such as the driver's end.
        """
        if self._taken == _TURN_LENGTH:
            # Before a message is taken: a cancellation here loses none.
            self._taken = 0
            await asyncio.sleep(0)
        while True:
            try:
                message = self._source.poll_message()
            except ClosedError:
                raise StopAsyncIteration from None
            if message is not None:
                self._taken += 1
                return message
            self._taken = 0
            await self._wait()

    async def _wait(self) -> None:
        source: Any = self._source
        subscriptions = getattr(source, "subscriptions", (source,))
        # A closed one would end the wait at once, again and again; if all are closed, the next poll says so.
        open_ones = [subscription for subscription in subscriptions if not subscription.is_closed]
        await _waker().wait_for(*(open_ones or subscriptions))


async def offer_async(
    publication: Publication, data: Data, timeout_s: float | None = 5.0, reserved_value: int | None = None
) -> int:
    """Offer one message, waiting for a subscriber and for room.

    Args:
        publication: Where to.
        data: A bytes-like object, or a tuple or list of them as one message. Not copied: do not change it meanwhile.
        timeout_s: How long to wait, in seconds; ``None`` to wait without end.
        reserved_value: A 64-bit number for the header of each of the message's frames.

    Returns:
        The stream position after the message.

    Raises:
        ConfigError: ``timeout_s`` is negative or not a number.
        PublicationTimeoutError: The time is over.
        PublicationClosedError: The publication is closed.
        MaxPositionExceededError: The stream is at its greatest position.
    """
    check_timeout("timeout_s", timeout_s)
    # The loop's clock, by which its time-outs go.
    loop = asyncio.get_running_loop()
    deadline = None if timeout_s is None else loop.time() + timeout_s
    while True:
        result = publication.offer(data, reserved_value=reserved_value)
        if result > 0:
            return int(result)
        if result in _FOR_GOOD:
            # Refused at once, with the reason.
            return publication.offer_blocking(data, reserved_value=reserved_value, timeout_s=0)
        if result == OfferResult.ADMIN_ACTION:
            continue
        left = None if deadline is None else deadline - loop.time()
        if left is not None and left <= 0:
            raise PublicationTimeoutError(
                f"not accepted in {timeout_s} s: {result!r}: {publication!r}", result
            )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left):
                await _waker().wait_for(publication)
