"""asyncio over clients, publications and subscriptions.

::

    async with await aio.connect() as client:
        subscription = await client.request_subscription("aeron:ipc", 10)
        publication = await client.request_publication("aeron:ipc", 10)
        await publication.offer_async(b"hello")
        async for message in subscription:
            ...

``await`` of a request, ``offer_async`` and ``async for`` come from here. Nothing busy-waits
in the event loop: a native thread, one for each loop, watches what coroutines wait for and wakes the loop through a
socket. That thread never takes a message, so cancelling a coroutine loses none.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, overload

from headrace._exceptions import (
    ClosedError,
    MaxPositionExceededError,
    PublicationClosedError,
    PublicationTimeoutError,
)
from headrace._results import OfferResult

if TYPE_CHECKING:
    import os
    from typing import Unpack

    from headrace._closing import Closing
    from headrace._config import ClientSettings
    from headrace._exceptions import HeadraceError
    from headrace.client import Client, Message, Pending, Publication, ReconnectingClient, Subscription
    from headrace.driver import MediaDriver

__all__ = ["Messages", "added", "close", "connect", "offer", "receive", "wait_for_messages"]

_Added = TypeVar("_Added")
_Result = TypeVar("_Result")

# Messages taken without a pause before other coroutines get a turn.
_TURN_LENGTH = 64

# A driver answers within a turn of its conductor and of the client's, which may be asleep; so it is asked for the
# answer at once, then every few milliseconds.
_ANSWER_DELAYS_S = (0.0, 0.001, 0.002, 0.004)


async def _in_thread(call: Callable[[], _Result], unclaimed: Callable[[_Result], object]) -> _Result:
    """The result of a call that blocks, made in a thread that no loop and no interpreter waits for at its end.

    What it gives after this was cancelled goes to `unclaimed`, in a thread as well.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Result] = loop.create_future()

    def fail(error: Exception) -> None:
        if not future.done():
            future.set_exception(error)

    def give(result: _Result) -> None:
        if future.done():
            threading.Thread(target=unclaimed, args=(result,), daemon=True).start()
        else:
            future.set_result(result)

    def run() -> None:
        try:
            result = call()
        except Exception as error:
            report: Callable[[], object] = functools.partial(fail, error)
            late = None
        else:
            report = functools.partial(give, result)
            late = functools.partial(unclaimed, result)
        try:
            loop.call_soon_threadsafe(report)
        except RuntimeError:
            # The loop is closed, so it was cancelled.
            if late is not None:
                late()

    threading.Thread(target=run, name="headrace-aio", daemon=True).start()
    return await future


@overload
async def connect(
    directory: str | os.PathLike[str] | None = None,
    *,
    driver: MediaDriver | None = None,
    reconnect: Literal[False] = False,
    **settings: Unpack[ClientSettings],
) -> Client: ...
@overload
async def connect(
    directory: str | os.PathLike[str] | None = None,
    *,
    driver: MediaDriver | None = None,
    reconnect: Literal[True],
    on_disconnect: Callable[[HeadraceError], object] | None = None,
    on_reconnect: Callable[[ReconnectingClient], object] | None = None,
    **settings: Unpack[ClientSettings],
) -> ReconnectingClient: ...
async def connect(directory: str | os.PathLike[str] | None = None, **settings: Any) -> Any:
    """Connect to the driver of a directory, waiting for one to start without blocking the event loop.

    Cancelling gives it up. ``async with`` closes the client without blocking the loop either.

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

    return await _in_thread(lambda: connect(directory, **settings), lambda client: client.close())


async def close(client: Closing) -> None:
    """Close a client without blocking the event loop. It is closed even if this is cancelled.

    Raises:
        ReentrantError: Called from one of the client's handlers.
    """
    await _in_thread(client.close, lambda _: None)


async def added(pending: Pending[_Added]) -> _Added:
    """What was asked for with ``Client.request_publication`` and its like; ``await pending`` is short for it.

    Cancelling it gives the request up.

    Raises:
        RegistrationError: The driver refused, with the reason.
        DriverTimeoutError: The driver did not answer within ``driver_timeout_ms``.
        ClosedError: The client is closed.
    """
    delays = iter(_ANSWER_DELAYS_S)
    delay_s = 0.0
    try:
        while (found := pending.poll()) is None:
            delay_s = next(delays, delay_s)
            await asyncio.sleep(delay_s)
    except asyncio.CancelledError:
        pending.cancel()
        raise
    return found


class _Waker:
    """Futures of one event loop that a watcher's tickets stand for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        from headrace.client import Watcher

        self._watcher = Watcher()
        self._futures: dict[int, asyncio.Future[None]] = {}
        loop.add_reader(self._watcher.fileno(), self._on_ready)
        # The watcher's socket must outlive the loop's interest in it, and its thread must not outlive the loop.
        weakref.finalize(loop, self._watcher.close)

    def _on_ready(self) -> None:
        for ticket in self._watcher.take_ready():
            future = self._futures.pop(ticket, None)
            if future is not None and not future.done():
                future.set_result(None)

    async def _wait(self, *tickets: int) -> None:
        """Wait for the first of several tickets."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._futures.update(dict.fromkeys(tickets, future))
        try:
            await future
        finally:
            for ticket in tickets:
                if self._futures.pop(ticket, None) is not None:
                    self._watcher.cancel(ticket)

    async def for_messages(self, *subscriptions: Subscription) -> None:
        await self._wait(*map(self._watcher.watch_subscription, subscriptions))

    async def for_room(self, publication: Publication) -> None:
        await self._wait(self._watcher.watch_publication(publication))


_wakers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Waker] = weakref.WeakKeyDictionary()


def _waker() -> _Waker:
    loop = asyncio.get_running_loop()
    waker = _wakers.get(loop)
    if waker is None:
        waker = _wakers[loop] = _Waker(loop)
    return waker


async def wait_for_messages(subscription: Subscription, timeout_s: float) -> None:
    """Wait until a poll of a subscription may find something, until it is closed, or until the time is over."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await _waker().for_messages(subscription)


async def receive(subscription: Subscription) -> Message:
    """The next message of a subscription.

    Cancelling it, as a time-out does, takes nothing from the subscription.

    Raises:
        ClosedError: The subscription, or its client, is closed.
    """
    while (message := subscription.poll_message()) is None:
        await _waker().for_messages(subscription)
    return message


_Item = TypeVar("_Item", covariant=True)


class _Source(Protocol[_Item]):
    """A subscription, or a poller of several."""

    def poll_message(self) -> _Item | None: ...


class Messages(AsyncIterator[_Item]):
    """The messages of a subscription or of a poller, ending when the program closes the subscriptions.

    Each message is taken when it is asked for: leaving the loop early leaves the rest for the next reader, and
    cancelling ``anext()``, as a time-out does, takes nothing. The iterator can be used again after that.
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
        # One that is closed would end the wait at once, again and again; when all are, the next poll says so.
        open_ones = [subscription for subscription in subscriptions if not subscription.is_closed]
        await _waker().for_messages(*(open_ones or subscriptions))


async def offer(publication: Publication, data: Any, timeout_s: float | None = None) -> int:
    """Offer one message, waiting for a subscriber and for room.

    Args:
        publication: Where to.
        data: A bytes-like object, or a tuple or list of them as one message. Not copied: leave it alone meanwhile.
        timeout_s: How long to wait, in seconds; ``None`` to wait without end.

    Returns:
        The stream position after the message.

    Raises:
        PublicationTimeoutError: The time is over.
        PublicationClosedError: The publication is closed.
        MaxPositionExceededError: The stream is used up.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        result = publication.offer(data)
        if result > 0:
            return int(result)
        if result == OfferResult.CLOSED:
            raise PublicationClosedError(f"publication is closed: {publication!r}", result)
        if result == OfferResult.MAX_POSITION_EXCEEDED:
            raise MaxPositionExceededError(f"the stream is used up: {publication!r}", result)
        if result == OfferResult.ADMIN_ACTION:
            continue
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise PublicationTimeoutError(
                f"not accepted in {timeout_s} s: {result!r}: {publication!r}", result
            )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left):
                await _waker().for_room(publication)
