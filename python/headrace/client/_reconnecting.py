"""Clients that outlive their driver: what they made comes back with the next one.

A reconnecting client is in one of three states. Only its own thread moves it between the first two::

    CONNECTED     the driver ended            DISCONNECTED
    DISCONNECTED  everything is added again   CONNECTED
    either        close()                     CLOSED, which nothing leaves

Design note 12 says why it is so.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from headrace._arguments import checked_class
from headrace._checks import check_callable
from headrace._closing import Closing, EitherClosing
from headrace._core import BatchResult, Claim, FragmentBatch, Message, Publication, Subscription
from headrace._exceptions import (
    ClosedError,
    DriverTimeoutError,
    HeadraceError,
    PublicationClosedError,
    PublicationTimeoutError,
)
from headrace._logging import CLIENT
from headrace._results import OfferResult
from headrace.client._destinations import Destinations

if TYPE_CHECKING:
    from typing import Self

    from headrace.client._client import Client
    from headrace.client._keywords import ImageHandler
    from headrace.clock import Clock

__all__ = [
    "ConnectionState",
    "Reconnecting",
    "ReconnectingClient",
    "ReconnectingPublication",
    "ReconnectingSubscription",
]

# Between two attempts, when a driver is there but did not take everything.
_RETRY_S = 1.0
# For something to be added while there is no driver; the default of driver_timeout_ms.
_ADD_TIMEOUT_S = 10.0


class _Ending(Protocol):
    """What ends with the client of one driver."""

    @property
    def is_closed(self) -> bool: ...
    def close(self) -> None: ...


_Native = TypeVar("_Native", bound=_Ending)
_Stream = TypeVar("_Stream", bound=Publication | Subscription)
_Value = TypeVar("_Value")


class ConnectionState(Enum):
    """Whether a reconnecting client has a driver."""

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    CLOSED = "closed"


class Reconnecting(Closing, Generic[_Native]):
    """What was added once and is added again for each driver."""

    def __init__(self, owner: ReconnectingClient, add: Callable[[Client], _Native]) -> None:
        self._owner = owner
        self._add = add
        self._is_closed = False
        # Which connection of the client, and the object made with it. Replaced whole, so read together.
        self._bound: tuple[int, _Native] = owner._adopt(self)

    @property
    def current(self) -> _Native:
        """The object on the present driver, or on the last one. Another one after each reconnection."""
        return self._bound[1]

    @property
    def is_closed(self) -> bool:
        """True once closed by this program, itself or with its client. The driver's end closes nothing."""
        return self._is_closed or self._owner.is_closed

    def close(self) -> None:
        """Close it for good. Closing again does nothing."""
        self._is_closed = True
        self._owner._discard(self)
        self._bound[1].close()

    def _is_lost(self, native: _Native) -> bool:
        """True when an object closed because its driver ended, and not because this program closed it."""
        return native.is_closed and not self.is_closed

    def _closed_error(self) -> HeadraceError:
        return ClosedError(f"{self!r} is closed")

    def _raise_unless_lost(self, native: _Native, error: HeadraceError) -> None:
        if self.is_closed:
            raise self._closed_error() from error
        if not native.is_closed:
            raise error

    def _now(self, call: Callable[[_Native], _Value], without_driver: _Value) -> _Value:
        """A call that does not block."""
        native = self._bound[1]
        try:
            return call(native)
        except HeadraceError as error:
            self._raise_unless_lost(native, error)
            return without_driver

    def _waiting(
        self, call: Callable[[_Native, float | None], _Value], timeout_s: float | None
    ) -> _Value | None:
        """A call that waits, made again after each reconnection; ``None`` when no driver came in time."""
        deadline = self._owner.clock.deadline(timeout_s)
        while True:
            connection, native = self._bound
            try:
                value = call(native, deadline.left_s())
            except HeadraceError as error:
                self._raise_unless_lost(native, error)
            else:
                # Waits for a peer give False when they are closed.
                if value is not False or not self._is_lost(native):
                    return value
            if not self._owner._await_connection(self, connection, deadline.left_s()):
                return None

    async def _waiting_async(
        self, call: Callable[[_Native, float | None], Awaitable[_Value]], timeout_s: float | None
    ) -> _Value | None:
        """As :meth:`_waiting`, without blocking the event loop."""
        deadline = self._owner.clock.deadline(timeout_s)
        while True:
            connection, native = self._bound
            try:
                return await call(native, deadline.left_s())
            except HeadraceError as error:
                self._raise_unless_lost(native, error)
            if not await self._owner._await_connection_async(self, connection, deadline.left_s()):
                return None

    def _wait_for_peer(self, call: Callable[[_Native, float | None], bool], timeout_s: float | None) -> bool:
        """As :meth:`_waiting` for waits that give False when they are closed."""
        try:
            return bool(self._waiting(call, timeout_s))
        except (ClosedError, PublicationClosedError):
            return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._bound[1], name)

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else self._owner.state.value
        return f"{type(self).__name__}({self._bound[1]!r}, {state})"


class _ReconnectingStream(Reconnecting[_Stream]):
    """A publication or a subscription, whose destinations come back with it."""

    def __init__(self, owner: ReconnectingClient, add: Callable[[Client], _Stream]) -> None:
        self._destinations = Destinations()
        super().__init__(owner, lambda client: self._destinations.restore(add(client)))

    def add_destination(self, channel: str, /) -> int:
        """As ``add_destination`` of :attr:`current`, on each next driver as well; waits for one, at most 10 s."""
        native_id = self._waiting(lambda native, _: native.add_destination(channel), _ADD_TIMEOUT_S)
        return self._destinations.note_added(channel, self._answered(native_id))

    def remove_destination(self, channel: str, /) -> None:
        """As ``remove_destination`` of :attr:`current`; waits for a driver, at most 10 s.

        The next driver is not given it again if the text is the one that it was added with.
        """

        def remove(native: _Stream, _: float | None) -> bool:
            native.remove_destination(channel)
            return True

        self._answered(self._waiting(remove, _ADD_TIMEOUT_S))
        self._destinations.note_removed(channel)

    def remove_destination_by_id(self, registration_id: int, /) -> None:
        """As ``remove_destination_by_id`` of :attr:`current`; waits for a driver, at most 10 s."""
        ids = self._destinations

        def remove(native: _Stream, _: float | None) -> bool:
            native.remove_destination_by_id(ids.native_id(registration_id))
            return True

        self._answered(self._waiting(remove, _ADD_TIMEOUT_S))
        ids.note_removed_by_id(registration_id)

    async def add_destination_async(self, channel: str, /) -> int:
        """As :meth:`add_destination`, without blocking the event loop."""
        native_id = await self._waiting_async(
            lambda native, _: native.add_destination_async(channel), _ADD_TIMEOUT_S
        )
        return self._destinations.note_added(channel, self._answered(native_id))

    async def remove_destination_async(self, channel: str, /) -> None:
        """As :meth:`remove_destination`, without blocking the event loop."""

        async def remove(native: _Stream, _: float | None) -> bool:
            await native.remove_destination_async(channel)
            return True

        self._answered(await self._waiting_async(remove, _ADD_TIMEOUT_S))
        self._destinations.note_removed(channel)

    async def remove_destination_by_id_async(self, registration_id: int, /) -> None:
        """As :meth:`remove_destination_by_id`, without blocking the event loop."""
        ids = self._destinations

        async def remove(native: _Stream, _: float | None) -> bool:
            await native.remove_destination_by_id_async(ids.native_id(registration_id))
            return True

        self._answered(await self._waiting_async(remove, _ADD_TIMEOUT_S))
        ids.note_removed_by_id(registration_id)

    def _answered(self, value: _Value | None) -> _Value:
        if value is None:
            directory = self._owner.directory
            raise DriverTimeoutError(f"no driver in {directory} came back within {_ADD_TIMEOUT_S} s")
        return value


class ReconnectingPublication(_ReconnectingStream[Publication]):
    """A publication that comes back with the next driver; see :class:`headrace.Publication`.

    Without a driver it is not connected: ``offer`` gives ``NOT_CONNECTED``, and what waits waits for a driver too.
    Its destinations come back with it. Methods and attributes that are not here are those of :attr:`current`.
    """

    def offer(self, data: Any, /, *, reserved_value: int | None = None) -> int | OfferResult:
        """As ``Publication.offer``; ``NOT_CONNECTED`` while there is no driver."""
        native = self._bound[1]
        return self._refusal(native, native.offer(data, reserved_value=reserved_value))

    def try_claim(self, length: int, /) -> Claim | OfferResult:
        """As ``Publication.try_claim``; ``NOT_CONNECTED`` while there is no driver."""
        native = self._bound[1]
        return self._refusal(native, native.try_claim(length))

    def offer_batch(self, messages: Any, /) -> BatchResult:
        """As ``Publication.offer_batch``; stopped by ``NOT_CONNECTED`` while there is no driver."""
        native = self._bound[1]
        result = native.offer_batch(messages)
        if result.stopped_by is None:
            return result
        return BatchResult(
            result.accepted,
            result.requested,
            position=result.position,
            stopped_by=self._refusal(native, result.stopped_by),
        )

    def offer_blocking(
        self,
        data: Any,
        /,
        *,
        reserved_value: int | None = None,
        timeout_s: float | None = 5.0,
        idle: Any = None,
    ) -> int:
        """As ``Publication.offer_blocking``, waiting for a driver as well."""
        position = self._waiting(
            lambda native, left_s: native.offer_blocking(
                data, reserved_value=reserved_value, timeout_s=left_s, idle=idle
            ),
            timeout_s,
        )
        return self._in_time(position, timeout_s)

    def claim_blocking(self, length: int, /, *, timeout_s: float | None = 5.0, idle: Any = None) -> Claim:
        """As ``Publication.claim_blocking``, waiting for a driver as well."""
        claim = self._waiting(
            lambda native, left_s: native.claim_blocking(length, timeout_s=left_s, idle=idle), timeout_s
        )
        return self._in_time(claim, timeout_s)

    async def offer_async(
        self, data: Any, /, *, reserved_value: int | None = None, timeout_s: float | None = None
    ) -> int:
        """As ``Publication.offer_async``, waiting for a driver as well."""
        position = await self._waiting_async(
            lambda native, left_s: native.offer_async(data, reserved_value=reserved_value, timeout_s=left_s),
            timeout_s,
        )
        return self._in_time(position, timeout_s)

    def wait_until_connected(self, timeout_s: float | None = 5.0, *, idle: Any = None) -> bool:
        """As ``Publication.wait_until_connected``, waiting for a driver as well."""
        call = lambda native, left_s: native.wait_until_connected(left_s, idle=idle)  # noqa: E731
        return self._wait_for_peer(call, timeout_s)

    def wait_for_subscribers(self, count: int, /, timeout_s: float | None = 5.0, *, idle: Any = None) -> bool:
        """As ``Publication.wait_for_subscribers``, waiting for a driver as well."""
        call = lambda native, left_s: native.wait_for_subscribers(count, left_s, idle=idle)  # noqa: E731
        return self._wait_for_peer(call, timeout_s)

    def _closed_error(self) -> HeadraceError:
        return PublicationClosedError(f"publication is closed: {self!r}", OfferResult.CLOSED)

    def _refusal(self, native: Publication, result: _Value) -> _Value | OfferResult:
        is_lost = result is OfferResult.CLOSED and self._is_lost(native)
        return OfferResult.NOT_CONNECTED if is_lost else result

    def _in_time(self, value: _Value | None, timeout_s: float | None) -> _Value:
        if value is None:
            text = f"no driver came within {timeout_s} s: {self!r}"
            raise PublicationTimeoutError(text, OfferResult.NOT_CONNECTED)
        return value


class ReconnectingSubscription(_ReconnectingStream[Subscription]):
    """A subscription that comes back with the next driver; see :class:`headrace.Subscription`.

    Without a driver nothing arrives: polls take nothing, and what waits waits for a driver too. The publishers that
    come after a reconnection are new images, whose streams begin where they are then. Methods and attributes that are
    not here are those of :attr:`current`. Its destinations come back with it.
    """

    def poll(self, handler: Any, limit: int = 10, *, assemble: bool = True, view: bool = False) -> int:
        """As ``Subscription.poll``; takes nothing while there is no driver."""
        return self._now(lambda native: native.poll(handler, limit, assemble=assemble, view=view), 0)

    def controlled_poll(
        self, handler: Any, limit: int = 10, *, assemble: bool = True, view: bool = False
    ) -> int:
        """As ``Subscription.controlled_poll``; takes nothing while there is no driver."""
        return self._now(
            lambda native: native.controlled_poll(handler, limit, assemble=assemble, view=view), 0
        )

    def poll_batch(self, limit: int = 4096, *, assemble: bool = True) -> FragmentBatch:
        """As ``Subscription.poll_batch``; empty while there is no driver."""
        return self._now(lambda native: native.poll_batch(limit, assemble=assemble), FragmentBatch())

    def poll_native(self, handler: Any, context: int = 0, limit: int = 4096, *, assemble: bool = True) -> int:
        """As ``Subscription.poll_native``; takes nothing while there is no driver."""
        return self._now(lambda native: native.poll_native(handler, context, limit, assemble=assemble), 0)

    def poll_message(self) -> Message | None:
        """As ``Subscription.poll_message``; ``None`` while there is no driver."""
        return self._now(lambda native: native.poll_message(), None)

    def receive(self, timeout_s: float | None = None, *, idle: Any = None) -> Message | None:
        """As ``Subscription.receive``, waiting for a driver as well."""
        return self._waiting(lambda native, left_s: native.receive(left_s, idle=idle), timeout_s)

    def wait_until_connected(self, timeout_s: float | None = 5.0, *, idle: Any = None) -> bool:
        """As ``Subscription.wait_until_connected``, waiting for a driver as well."""
        call = lambda native, left_s: native.wait_until_connected(left_s, idle=idle)  # noqa: E731
        return self._wait_for_peer(call, timeout_s)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        """The next message, of this driver or of the next one; ends when this program closes the subscription."""
        try:
            message = self.receive()
        except ClosedError:
            raise StopIteration from None
        assert message is not None, "a wait without a time limit does not run out"
        return message

    def __aiter__(self) -> AsyncIterator[Message]:
        return _ReconnectingMessages(self)


class _ReconnectingMessages(AsyncIterator[Message]):
    """The messages of a subscription over all its drivers, awaited."""

    def __init__(self, subscription: ReconnectingSubscription) -> None:
        self._subscription = subscription
        self._connection, native = subscription._bound
        self._messages = aiter(native)

    async def __anext__(self) -> Message:
        subscription = self._subscription
        while True:
            connection, native = subscription._bound
            if connection != self._connection:
                self._connection, self._messages = connection, aiter(native)
            try:
                return await anext(self._messages)
            except StopAsyncIteration:
                if not subscription._is_lost(native):
                    raise
            except HeadraceError as error:
                if subscription.is_closed:
                    raise StopAsyncIteration from None
                subscription._raise_unless_lost(native, error)
            try:
                await subscription._owner._await_connection_async(subscription, connection, None)
            except ClosedError:
                raise StopAsyncIteration from None


@checked_class
class ReconnectingClient(EitherClosing):
    """A client that connects again when its driver ended and another one has started in the directory.

    Made by ``headrace.connect(..., reconnect=True)``. Its publications and subscriptions come back by themselves.
    Thread-safe. A context manager that closes it.

    Its publications and subscriptions follow it to the next driver, also those in a :class:`headrace.Server` or
    :class:`headrace.Requester`, and nothing else does: a :class:`headrace.Poller`, counters, images and claims are
    those of one driver's client, :attr:`current`, and end with it. Make them again in ``on_reconnect``.

    A thread of its own waits for the driver's end and for the next driver, without end, and calls the handlers. It ends
    after :meth:`close`, at the latest when ``driver_timeout_ms`` is over.
    """

    def __init__(
        self,
        connect: Callable[[Callable[[], object]], Client],
        *,
        on_disconnect: Callable[[HeadraceError], object] | None = None,
        on_reconnect: Callable[[ReconnectingClient], object] | None = None,
    ) -> None:
        check_callable("on_disconnect", on_disconnect)
        check_callable("on_reconnect", on_reconnect)
        self._connect = connect
        self._on_disconnect = on_disconnect
        self._on_reconnect = on_reconnect
        # Guards all that follows; its waiters are woken by every change, and by the end of a driver.
        self._changed = threading.Condition()
        self._wakers: list[Callable[[], object]] = []
        self._added: list[Reconnecting[Any]] = []
        self._state = ConnectionState.CONNECTED
        self._connection = 0
        self._client = connect(self._notify)
        self._thread = threading.Thread(target=self._run, name="headrace-reconnect", daemon=True)
        self._thread.start()

    def add_publication(self, channel: str, stream_id: int) -> ReconnectingPublication:
        """As ``Client.add_publication``, waiting for a driver as well, at most 10 s."""
        return ReconnectingPublication(self, lambda client: client.add_publication(channel, stream_id))

    def add_exclusive_publication(self, channel: str, stream_id: int) -> ReconnectingPublication:
        """As ``Client.add_exclusive_publication``, waiting for a driver as well, at most 10 s."""
        return ReconnectingPublication(
            self, lambda client: client.add_exclusive_publication(channel, stream_id)
        )

    def add_subscription(
        self,
        channel: str,
        stream_id: int,
        *,
        on_available_image: ImageHandler | None = None,
        on_unavailable_image: ImageHandler | None = None,
    ) -> ReconnectingSubscription:
        """As ``Client.add_subscription``, waiting for a driver as well, at most 10 s."""
        return ReconnectingSubscription(
            self,
            lambda client: client.add_subscription(
                channel,
                stream_id,
                on_available_image=on_available_image,
                on_unavailable_image=on_unavailable_image,
            ),
        )

    @property
    def current(self) -> Client:
        """The client of the present driver, or of the last one. Another one after each reconnection."""
        return self._client

    @property
    def clock(self) -> Clock:
        """What this client goes by: the clock of the machine."""
        return self._client.clock

    @property
    def state(self) -> ConnectionState:
        """Whether there is a driver."""
        return self._state

    @property
    def reconnect_count(self) -> int:
        """How many times everything came back."""
        return self._connection

    @property
    def directory(self) -> str:
        """Directory of the driver."""
        return self._client.directory

    @property
    def is_closed(self) -> bool:
        """True once closed by this program. The driver's end closes nothing."""
        return self._state is ConnectionState.CLOSED

    def close(self) -> None:
        """Close everything made with this client, for good. Closing again does nothing."""
        with self._changed:
            self._state = ConnectionState.CLOSED
            client = self._client
        self._notify()
        client.close()

    def __repr__(self) -> str:
        return f"ReconnectingClient(directory={self.directory!r}, {self._state.value})"

    # What publications and subscriptions ask of it.

    def _adopt(self, added: Reconnecting[_Native]) -> tuple[int, _Native]:
        """Adds it for the first time, and from now on for each driver."""
        while True:
            with self._changed:
                connection, client = self._connection, self._client
            try:
                native = added._add(client)
            except HeadraceError as error:
                if not client.is_closed:
                    raise
                if not self._await_connection(None, connection, _ADD_TIMEOUT_S):
                    text = f"no driver in {client.directory} came back within {_ADD_TIMEOUT_S} s"
                    raise DriverTimeoutError(text) from error
                continue
            with self._changed:
                # Made for a driver that is gone by now otherwise; the thread does not know of it yet.
                if connection == self._connection:
                    self._added.append(added)
                    return connection, native

    def _discard(self, added: Reconnecting[Any]) -> None:
        with self._changed:
            if added in self._added:
                self._added.remove(added)
        self._notify()

    def _await_connection(
        self, added: Reconnecting[Any] | None, connection: int, timeout_s: float | None
    ) -> bool:
        """Waits for a later connection than one; the thread wakes it. False when the time is over."""
        with self._changed:
            return self._changed.wait_for(lambda: self._is_later(added, connection), timeout_s)

    async def _await_connection_async(
        self, added: Reconnecting[Any], connection: int, timeout_s: float | None
    ) -> bool:
        import asyncio

        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(changed.set)

        with self._changed:
            self._wakers.append(wake)
        try:
            async with asyncio.timeout(timeout_s):
                while not self._is_later(added, connection):
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            return False
        finally:
            with self._changed:
                self._wakers.remove(wake)
        return True

    def _is_later(self, added: Reconnecting[Any] | None, connection: int) -> bool:
        if added is not None and added.is_closed:
            raise added._closed_error()
        if self.is_closed:
            raise ClosedError("client is closed")
        return self._connection > connection

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()
            for wake in self._wakers:
                wake()

    # The reconnecting thread.

    def _run(self) -> None:
        while self._await_end():
            reason = _end_of(self._client)
            CLIENT.warning("driver lost, connecting again: directory=%s: %s", self.directory, reason)
            _tell(self._on_disconnect, reason)
            while not self._restore():
                with self._changed:
                    self._changed.wait_for(lambda: self.is_closed, _RETRY_S)
                if self.is_closed:
                    return
            CLIENT.info("connected again: directory=%s count=%d", self.directory, self.reconnect_count)
            _tell(self._on_reconnect, self)

    def _await_end(self) -> bool:
        """Waits for the driver's end, and takes note of it; false when the program closed the client."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_closed or self._client.is_closed)
            if not self.is_closed:
                self._state = ConnectionState.DISCONNECTED
            return not self.is_closed

    def _restore(self) -> bool:
        """Connects and adds everything again; false when that has to be tried again, or the program closed."""
        client = None
        try:
            client = self._connect(self._notify)
            with self._changed:
                added = list(self._added)
            natives = [each._add(client) for each in added]
        except HeadraceError as error:
            # Without a driver all is as it should be; what a driver refuses may need a person.
            level = logging.INFO if isinstance(error, DriverTimeoutError) else logging.WARNING
            CLIENT.log(level, "not connected again yet: directory=%s: %s", self.directory, error)
            if client is not None:
                client.close()
            return False
        with self._changed:
            is_taken = not self.is_closed and self._added == added
            if is_taken:
                self._state, self._client = ConnectionState.CONNECTED, client
                self._connection += 1
                for each, native in zip(added, natives, strict=True):
                    each._bound = (self._connection, native)
        if not is_taken:
            client.close()
        self._notify()
        return is_taken


def _tell(handler: Callable[[_Value], object] | None, value: _Value) -> None:
    """What a handler raises has no caller, and must not end the thread that brings everything back."""
    if handler is not None:
        try:
            handler(value)
        except Exception:
            CLIENT.exception("a handler raised: %r", handler)


def _end_of(client: Client) -> HeadraceError:
    """Why a client ended."""
    try:
        client.next_correlation_id()
    except HeadraceError as reason:
        return reason
    return ClosedError("client is closed")
