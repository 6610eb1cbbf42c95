"""Publications and subscriptions that come back with the next driver, each with its destinations.

Each stands for an object of the present driver, which the reconnecting client replaces.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from headrace._base.closing import Closing
from headrace._base.exceptions import (
    ClosedError,
    DriverTimeoutError,
    HeadraceError,
    PublicationClosedError,
    PublicationTimeoutError,
)
from headrace._base.results import OfferResult
from headrace._core import BatchResult, Claim, FragmentBatch, Message, Publication, Subscription
from headrace.client._destinations import Destinations

if TYPE_CHECKING:
    from typing import Self

    from headrace._core import Header
    from headrace.client._client import Client
    from headrace.client._data import Data
    from headrace.client._reconnecting_states import ConnectionState
    from headrace.clock import Clock

__all__ = [
    "ADD_TIMEOUT_S",
    "Ending",
    "Reconnecting",
    "ReconnectingPublication",
    "ReconnectingSubscription",
]

ADD_TIMEOUT_S = 10.0
"""For something to be added while there is no driver; the default of driver_timeout_ms."""


class Ending(Protocol):
    """Something that ends with the client of one driver."""

    @property
    def is_closed(self) -> bool: ...
    def close(self) -> None: ...


_Native = TypeVar("_Native", bound=Ending)
_Stream = TypeVar("_Stream", bound=Publication | Subscription)
_Value = TypeVar("_Value")


class Owner(Protocol):
    """The reconnecting client, as its streams see it."""

    @property
    def clock(self) -> Clock: ...
    @property
    def state(self) -> ConnectionState: ...
    @property
    def is_closed(self) -> bool: ...

    def _adopt(self, added: Reconnecting[_Native]) -> tuple[int, _Native]: ...
    def _discard(self, added: Reconnecting[Any]) -> None: ...
    def _revising(self) -> AbstractContextManager[None]: ...
    def _absence(self, timeout_s: float | None) -> str: ...
    def _await_connection(
        self, added: Reconnecting[Any] | None, connection: int, timeout_s: float | None
    ) -> bool: ...
    async def _await_connection_async(
        self, added: Reconnecting[Any], connection: int, timeout_s: float | None
    ) -> bool: ...


class Reconnecting(Closing, Generic[_Native]):
    """A stream that was added once and is added again on each driver."""

    def __init__(self, owner: Owner, add: Callable[[Client], _Native]) -> None:
        self._owner = owner
        self._add = add
        self._is_closed = False
        # Which connection of the client, and the object made with it. Replaced whole, so read together.
        self._bound: tuple[int, _Native] = owner._adopt(self)

    @property
    def current(self) -> _Native:
        """The object on the present driver, or on the last one. Replaced at each reconnection."""
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

    def _now(
        self, call: Callable[[_Native], _Value], without_driver: _Value, raised: Sequence[BaseException] = ()
    ) -> _Value:
        """Make a call that does not block. What the program's handler has `raised` never counts as the driver's end."""
        native = self._bound[1]
        try:
            return call(native)
        except HeadraceError as error:
            if not raised:
                self._raise_unless_lost(native, error)
                return without_driver
        raise raised[0]

    def _waiting(
        self, call: Callable[[_Native, float | None], _Value], timeout_s: float | None
    ) -> _Value | None:
        """Make a call that waits, again after each reconnection; ``None`` when no driver came in time."""
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
        """As :meth:`_waiting`, for waits that return False when they are closed."""
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

    def __init__(self, owner: Owner, add: Callable[[Client], _Stream]) -> None:
        self._destinations = Destinations()
        super().__init__(owner, lambda client: self._destinations.restore(add(client)))

    def add_destination(self, channel: str, /) -> int:
        """As ``add_destination`` of :attr:`current`, also on each next driver; waits for a driver, at most 10 s."""

        def add(native: _Stream, _: float | None) -> int:
            return self._note_added(native, channel, native.add_destination(channel))

        return self._unless_absent(self._waiting(add, ADD_TIMEOUT_S))

    def remove_destination(self, channel: str, /) -> None:
        """As ``remove_destination`` of :attr:`current`.

        If the text is the one that the destination was added with, it is not added on the next driver, and without a
        driver nothing else is to do. For another text this waits for a driver, at most 10 s.
        """

        def remove(native: _Stream, _: float | None) -> bool:
            with self._forgetting(native, lambda: self._destinations.note_removed(channel)):
                native.remove_destination(channel)
            return True

        self._unless_absent(self._waiting(remove, ADD_TIMEOUT_S))

    def remove_destination_by_id(self, registration_id: int, /) -> None:
        """As ``remove_destination_by_id`` of :attr:`current`; the destination is not added on the next driver.

        Without a driver nothing else is to do; for an unknown id this waits for a driver, at most 10 s.
        """
        ids = self._destinations

        def remove(native: _Stream, _: float | None) -> bool:
            with self._forgetting(native, lambda: ids.note_removed_by_id(registration_id)):
                native.remove_destination_by_id(ids.native_id(registration_id))
            return True

        self._unless_absent(self._waiting(remove, ADD_TIMEOUT_S))

    async def add_destination_async(self, channel: str, /) -> int:
        """As :meth:`add_destination`, without blocking the event loop."""

        async def add(native: _Stream, _: float | None) -> int:
            return self._note_added(native, channel, await native.add_destination_async(channel))

        return self._unless_absent(await self._waiting_async(add, ADD_TIMEOUT_S))

    async def remove_destination_async(self, channel: str, /) -> None:
        """As :meth:`remove_destination`, without blocking the event loop."""

        async def remove(native: _Stream, _: float | None) -> bool:
            with self._forgetting(native, lambda: self._destinations.note_removed(channel)):
                await native.remove_destination_async(channel)
            return True

        self._unless_absent(await self._waiting_async(remove, ADD_TIMEOUT_S))

    async def remove_destination_by_id_async(self, registration_id: int, /) -> None:
        """As :meth:`remove_destination_by_id`, without blocking the event loop."""
        ids = self._destinations

        async def remove(native: _Stream, _: float | None) -> bool:
            with self._forgetting(native, lambda: ids.note_removed_by_id(registration_id)):
                await native.remove_destination_by_id_async(ids.native_id(registration_id))
            return True

        self._unless_absent(await self._waiting_async(remove, ADD_TIMEOUT_S))

    def _note_added(self, native: _Stream, channel: str, native_id: int) -> int:
        with self._noting(native):
            return self._destinations.note_added(channel, native_id)

    @contextlib.contextmanager
    def _forgetting(self, native: _Stream, forget: Callable[[], bool]) -> Iterator[None]:
        """Forget a destination that is removed meanwhile at the driver of `native`, or that went with that driver."""
        try:
            yield
        except HeadraceError:
            if not self._is_lost(native):
                raise
            with self._noting(native):
                # A driver has to say what becomes of one that is not known here.
                if not forget():
                    raise
        else:
            with self._noting(native):
                forget()

    @contextlib.contextmanager
    def _noting(self, native: _Stream) -> Iterator[None]:
        """Held while the program notes a change that the driver of `native` has made to the destinations.

        If another driver already has the previous destinations, the change is made there too; if they are just being
        added there, all are added again.

        Raises:
            ClosedError: Another driver already has the destinations.
        """
        with self._owner._revising():
            if native is not self._bound[1]:
                raise ClosedError(f"{native!r} is closed")
            yield

    def _unless_absent(self, value: _Value | None) -> _Value:
        if value is None:
            raise DriverTimeoutError(self._owner._absence(ADD_TIMEOUT_S))
        return value


class ReconnectingPublication(_ReconnectingStream[Publication]):
    """A publication that comes back with the next driver; see :class:`headrace.Publication`.

    Without a driver it is not connected: ``offer`` returns ``NOT_CONNECTED``, and waiting calls wait for a driver too.
    Its destinations come back with it. All other methods and attributes are those of :attr:`current`.
    """

    def offer(self, data: Data, /, *, reserved_value: int | None = None) -> int | OfferResult:
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
        data: Data,
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
        self, data: Data, /, *, reserved_value: int | None = None, timeout_s: float | None = 5.0
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
            text = f"{self._owner._absence(timeout_s)}: {self!r}"
            raise PublicationTimeoutError(text, OfferResult.NOT_CONNECTED)
        return value


class ReconnectingSubscription(_ReconnectingStream[Subscription]):
    """A subscription that comes back with the next driver; see :class:`headrace.Subscription`.

    Without a driver nothing arrives: polls take nothing, and waiting calls wait for a driver too. After a reconnection
    publishers are new images, whose streams begin where they are then. All other methods and attributes are those of
    :attr:`current`. Its destinations come back with it.
    """

    def poll(self, handler: Any, limit: int = 10, *, assemble: bool = True, view: bool = False) -> int:
        """As ``Subscription.poll``; takes nothing while there is no driver.

        Exceptions of the handler are raised here, also while the driver ends.
        """
        return self._handled(
            handler, lambda native, watched: native.poll(watched, limit, assemble=assemble, view=view)
        )

    def controlled_poll(
        self, handler: Any, limit: int = 10, *, assemble: bool = True, view: bool = False
    ) -> int:
        """As ``Subscription.controlled_poll``; takes nothing while there is no driver.

        Exceptions of the handler are raised here, also while the driver ends.
        """
        return self._handled(
            handler,
            lambda native, watched: native.controlled_poll(watched, limit, assemble=assemble, view=view),
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

    def _handled(self, handler: Any, poll: Callable[[Subscription, Any], int]) -> int:
        """Poll with a handler. If it raises, so does the poll, and the message counts as consumed."""
        raised: list[BaseException] = []

        def watched(payload: Any, header: Header) -> Any:
            try:
                return handler(payload, header)
            except BaseException as error:
                raised.append(error)
                raise

        try:
            # What cannot be called is refused by the poll.
            given = watched if callable(handler) else handler
            return self._now(lambda native: poll(native, given), 0, raised)
        finally:
            # The error has this frame, and would keep itself.
            raised.clear()

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
    """The messages of a subscription over all its drivers, for ``async for``."""

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
