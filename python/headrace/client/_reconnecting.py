"""Clients that outlive their driver: what they made comes back with the next one.

A reconnecting client is in one of three states. Only its own thread moves it between the first two::

    CONNECTED     the driver ended            DISCONNECTED
    DISCONNECTED  everything is added again   CONNECTED
    either        close()                     CLOSED, which nothing leaves

Design note 12 says why it is so.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from headrace._arguments import checked_class
from headrace._checks import check_callable
from headrace._closing import EitherClosing
from headrace._exceptions import ClosedError, DriverTimeoutError, HeadraceError
from headrace._logging import CLIENT
from headrace.client._reconnecting_streams import (
    ADD_TIMEOUT_S,
    ConnectionState,
    Ending,
    Reconnecting,
    ReconnectingPublication,
    ReconnectingSubscription,
)

if TYPE_CHECKING:
    from headrace.client._client import Client
    from headrace.client._keywords import ImageHandler
    from headrace.clock import Clock

__all__ = ["ReconnectingClient"]

# Between two attempts, when a driver is there but did not take everything.
_RETRY_S = 1.0

_Native = TypeVar("_Native", bound=Ending)
_Value = TypeVar("_Value")


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
        # Counts the changes of what a driver is given; one that was given something else is given all again.
        self._revision = 0
        # Why not everything is back: what the last driver said, or a fault of what was to come back.
        self._refusal: Exception | None = None
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
                if not self._await_connection(None, connection, ADD_TIMEOUT_S):
                    raise DriverTimeoutError(self._absence(ADD_TIMEOUT_S)) from error
                continue
            with self._changed:
                # Made for a driver that is gone by now otherwise; the thread does not know of it yet.
                if connection == self._connection:
                    with self._revising():
                        self._added.append(added)
                    return connection, native

    def _discard(self, added: Reconnecting[Any]) -> None:
        with self._revising():
            if added in self._added:
                self._added.remove(added)
        self._notify()

    @contextlib.contextmanager
    def _revising(self) -> Iterator[None]:
        """For a change of what a driver is given."""
        with self._changed:
            yield
            self._revision += 1

    def _absence(self, timeout_s: float | None) -> str:
        """What a call was told that waited in vain."""
        if self._refusal is None:
            return f"no driver in {self.directory} came back within {timeout_s} s"
        return f"the driver in {self.directory} did not take everything back within {timeout_s} s: {self._refusal}"

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
            # A loop that has closed, in whatever moment, has nothing that waits.
            with contextlib.suppress(RuntimeError):
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
                added, revision = list(self._added), self._revision
            natives = [each._add(client) for each in added]
        except Exception as error:
            # Without a driver all is as it should be; what a driver refuses may need a person. Any other fault is told
            # of with its traceback, and must not end the thread that brings everything back.
            is_absent = isinstance(error, DriverTimeoutError)
            self._refusal = None if is_absent else error
            level = logging.INFO if is_absent else logging.WARNING
            is_fault = not isinstance(error, HeadraceError)
            CLIENT.log(
                level, "not connected again yet: directory=%s: %s", self.directory, error, exc_info=is_fault
            )
            if client is not None:
                client.close()
            return False
        with self._changed:
            is_taken = not self.is_closed and self._revision == revision
            if is_taken:
                self._state, self._client = ConnectionState.CONNECTED, client
                self._refusal = None
                self._connection += 1
                for each, native in zip(added, natives, strict=True):
                    each._bound = (self._connection, native)
        if not is_taken:
            client.close()
        self._notify()
        return is_taken


def _tell(handler: Callable[[_Value], object] | None, value: _Value) -> None:
    """What a handler raises, also to exit, has no caller, and must not end the thread that brings everything back."""
    if handler is not None:
        try:
            handler(value)
        except BaseException:
            CLIENT.exception("a handler raised: %r", handler)


def _end_of(client: Client) -> HeadraceError:
    """Why a client ended."""
    try:
        client.next_correlation_id()
    except HeadraceError as reason:
        return reason
    return ClosedError("client is closed")
