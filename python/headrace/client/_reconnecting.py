"""Clients that outlive their driver: what they made comes back with the next one.

Only a client's own thread moves it from connected to disconnected and back. ``docs/internals/client.md`` says why.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from headrace._base.checks import check_callable
from headrace._base.closing import EitherClosing
from headrace._base.exceptions import ClosedError, DriverTimeoutError, HeadraceError
from headrace._base.logging import CLIENT
from headrace._base.states import Life, LoggedEvents
from headrace.client._end import end_of
from headrace.client._reconnecting_states import RECONNECTING_CLIENT, ConnectionState
from headrace.client._reconnecting_streams import (
    ADD_TIMEOUT_S,
    Ending,
    Reconnecting,
    ReconnectingPublication,
    ReconnectingSubscription,
)

if TYPE_CHECKING:
    from headrace.client._client import Client
    from headrace.client._keywords import ImageHandler
    from headrace.client._start import Start
    from headrace.clock import Clock

__all__ = ["ReconnectingClient"]

# Between two attempts, when a driver is there but did not take everything.
_RETRY_S = 1.0

_Native = TypeVar("_Native", bound=Ending)
_Value = TypeVar("_Value")


class ReconnectingClient(EitherClosing):
    """A client that connects again when its driver ended and another one has started in the directory.

    Made by ``headrace.connect(..., reconnect=True)``. Its publications and subscriptions come back by themselves.
    Thread-safe. A context manager that closes it.

    Its publications and subscriptions follow it to the next driver, also those in a :class:`headrace.Server`, a
    :class:`headrace.Requester` or a :class:`headrace.Poller`, and so does a session of
    :meth:`headrace.Archive.connect`. Nothing else does: counters, images and claims belong to the client of one driver,
    :attr:`current`, and end with it. Make them again in ``on_reconnect``.

    A thread of the client waits, without a time limit, for the driver's end and for the next driver, and calls the
    handlers. It ends after :meth:`close`, at the latest when ``driver_timeout_ms`` is over.
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
        # Counts the changes of the streams; a driver that has an older count gets all streams again.
        self._revision = 0
        # Why not everything is back: the last driver's refusal, or a failure of a stream.
        self._refusal: Exception | None = None
        self._life = Life(RECONNECTING_CLIENT)
        self._connection = 0
        self._client = connect(self._notify)
        self._life.begin(LoggedEvents(CLIENT), "the driver answers", self._client.client_id)
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
        start: Start | None = None,
    ) -> ReconnectingSubscription:
        """As ``Client.add_subscription``, waiting for a driver as well, at most 10 s.

        With ``start="now"`` it skips on each driver what was published before.
        """
        return ReconnectingSubscription(
            self,
            lambda client: client.add_subscription(
                channel,
                stream_id,
                on_available_image=on_available_image,
                on_unavailable_image=on_unavailable_image,
                start=start,
            ),
        )

    @property
    def current(self) -> Client:
        """The client of the present driver, or of the last one. Replaced at each reconnection."""
        return self._client

    @property
    def clock(self) -> Clock:
        """The clock of this client: the machine's."""
        return self._client.clock

    @property
    def state(self) -> ConnectionState:
        """Whether the client has a driver."""
        return self._life.state

    @property
    def reconnect_count(self) -> int:
        """How many times the client has reconnected."""
        return self._connection

    @property
    def directory(self) -> str:
        """Directory of the driver."""
        return self._client.directory

    @property
    def is_closed(self) -> bool:
        """True once closed by this program. The driver's end closes nothing."""
        return self.state is ConnectionState.CLOSED

    def close(self) -> None:
        """Close everything made with this client, for good. Closing again does nothing."""
        with self._changed:
            self._life.enter(ConnectionState.CLOSED, "the program closes it")
            client = self._client
        self._notify()
        client.close()

    def __repr__(self) -> str:
        return f"ReconnectingClient(directory={self.directory!r}, {self.state.value})"

    def _with_driver(self, timeout_s: float | None) -> Client:
        """The client of the present driver, waiting for one.

        Raises:
            ClosedError: This program has closed the client.
            DriverTimeoutError: No driver came back in time.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.is_closed or not self._client.is_closed, timeout_s)
            if self.is_closed:
                raise ClosedError("client is closed")
            if self._client.is_closed:
                raise DriverTimeoutError(self._absence(timeout_s))
            return self._client

    # For its publications and subscriptions.

    def _adopt(self, added: Reconnecting[_Native]) -> tuple[int, _Native]:
        """Add a stream now, and again on each next driver."""
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
                # Otherwise it was made for a driver that is gone by now; the thread does not know that yet.
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
        """Held while the streams to add on a driver change."""
        with self._changed:
            yield
            self._revision += 1

    def _absence(self, timeout_s: float | None) -> str:
        """The error of a call that waited in vain for a driver."""
        if self._refusal is None:
            return f"no driver in {self.directory} came back within {timeout_s} s"
        return f"the driver in {self.directory} did not accept all streams again within {timeout_s} s: {self._refusal}"

    def _await_connection(
        self, added: Reconnecting[Any] | None, connection: int, timeout_s: float | None
    ) -> bool:
        """Wait for a later connection; the client's thread ends the wait. False when the time is over."""
        with self._changed:
            return self._changed.wait_for(lambda: self._is_later(added, connection), timeout_s)

    async def _await_connection_async(
        self, added: Reconnecting[Any], connection: int, timeout_s: float | None
    ) -> bool:
        import asyncio

        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            # In a loop that has closed nothing waits any more.
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
            reason = end_of(self._client)
            # The client that ended has logged the reason.
            CLIENT.warning("headrace client: connecting again: directory=%s", self.directory)
            _tell(self._on_disconnect, reason)
            while not self._restore():
                with self._changed:
                    self._changed.wait_for(lambda: self.is_closed, _RETRY_S)
                if self.is_closed:
                    return
            CLIENT.info(
                "headrace client: connected again: directory=%s count=%d",
                self.directory,
                self.reconnect_count,
            )
            _tell(self._on_reconnect, self)

    def _await_end(self) -> bool:
        """Wait for the driver's end and note it; false when the program closed the client."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_closed or self._client.is_closed)
            if not self.is_closed:
                self._life.enter(ConnectionState.DISCONNECTED, "the driver ended")
            return not self.is_closed

    def _restore(self) -> bool:
        """Connect and add everything again; false when this must be tried again, or the program closed the client."""
        client = None
        try:
            client = self._connect(self._notify)
            with self._changed:
                added, revision = list(self._added), self._revision
            natives = [each._add(client) for each in added]
        except Exception as error:
            # A missing driver is expected; a driver's refusal may need a person. Any other failure is logged with its
            # traceback, and must not end the thread that reconnects.
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
                self._client = client
                self._life.enter(ConnectionState.CONNECTED, "the next driver has everything")
                self._refusal = None
                self._connection += 1
                for each, native in zip(added, natives, strict=True):
                    each._bound = (self._connection, native)
        if not is_taken:
            client.close()
        self._notify()
        return is_taken


def _tell(handler: Callable[[_Value], object] | None, value: _Value) -> None:
    """Call a handler. Its exceptions have no caller and must not end the thread that reconnects, not even an exit."""
    if handler is not None:
        try:
            handler(value)
        except BaseException:
            CLIENT.exception("a handler raised: %r", handler)
