"""The side that sends requests."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from headrace import aio
from headrace._base.checks import check_timeout, excerpt, wrong
from headrace._base.closing import EitherClosing
from headrace._base.exceptions import (
    ClosedError,
    ConfigError,
    DriverTimeoutError,
    HeadraceError,
    PublicationClosedError,
    PublicationTimeoutError,
    ReentrantError,
    RequestTimeoutError,
    ServerLostError,
)
from headrace.rpc._layout import HEADER_LENGTH, Kind, header
from headrace.rpc._links import Link, link
from headrace.rpc._pending_requests import Calls
from headrace.rpc._reader_threads import LOOK_S, SERVER_LOST, Call
from headrace.rpc._requester_streams import Exchange, Route

if TYPE_CHECKING:
    from headrace.client import Client, ReconnectingClient
    from headrace.rpc._reader_threads import ThreadReader

__all__ = ["Requester"]

_POLL_LIMIT = 256
_DRIVER_LOST = "the driver ended before the answer came; the request may have been carried out"


class Requester(EitherClosing):
    """Sends requests to a :class:`headrace.Server` and returns its answers. See the how-to on requests.

    Any number of threads may share one, or the coroutines of one event loop. A context manager that closes it;
    ``async with`` does so without blocking the event loop.

    The constructor blocks as ``Client.add_publication`` does, and needs no server yet: the first request waits for one.

    With a client made with ``reconnect=True`` it continues at the next driver: calls in flight raise
    :class:`headrace.ServerLostError` when their driver ends, and later requests wait for the next driver and server.

    Args:
        client: The client to send and receive with.
        channel: The server's channel, such as ``"aeron:ipc"`` or ``"aeron:udp?endpoint=server:24324"``.
        stream_id: The server's stream of requests.
        response_control: Over UDP, the ``"host:port"`` that the server sends answers from.
        response_stream_id: The stream id of the responses, if the server does not use the one after ``stream_id``.
        timeout_s: Default time-out of a request, in seconds; ``None`` for no limit.

    Raises:
        RegistrationError: The driver refused the channel, with the reason.
        DriverTimeoutError: The driver did not answer.
        ClosedError: The client is closed.
        ConfigError: The channel is neither IPC nor UDP, ``response_control`` is missing or malformed, or no stream id
            is left for the responses.
    """

    def __init__(
        self,
        client: Client | ReconnectingClient,
        channel: str,
        stream_id: int,
        *,
        response_control: str | None = None,
        response_stream_id: int | None = None,
        timeout_s: float | None = 5.0,
    ) -> None:
        self._route = route = Route.checked(channel, stream_id, response_control, response_stream_id)
        self._clock = client.clock
        check_timeout("timeout_s", timeout_s)
        self._timeout_s = timeout_s
        self._calls = Calls()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_shared_by_threads = False
        self._is_closed = False
        self._binding = threading.Lock()
        self._link: Link[Exchange] = link(
            client,
            lambda client: Exchange(
                client,
                route,
                self._calls,
                on_lost=self._on_lost,
                end_of=self._end_of,
            ),
        )

    def request(self, data: Any, timeout_s: float | None = None) -> bytes:
        """Send a request and wait for its answer, without the GIL; Ctrl-C ends the wait.

        Args:
            data: A bytes-like object, or a tuple or list of them as one request.
            timeout_s: How long to wait for a server, for room and for the answer, in seconds; by default the
                requester's time-out.

        Returns:
            The answer.

        Raises:
            RemoteError: The server's handler raised; the text is the server's.
            ServerLostError: The server went away before the answer came, or the driver of a reconnecting client. The
                request may have been carried out.
            RequestTimeoutError: The time is over. If a server was connected, it may have carried the request out.
            ConfigError: The request is longer than :attr:`max_request_length`.
            ClosedError: The requester, or its client, is closed.
            DriverTimeoutError: The client ended with its driver.
            ReentrantError: The requester belongs to an event loop.
        """
        call = self.submit(data, timeout_s)
        try:
            return call.result()
        finally:
            # The caller of an interrupted wait does not want the answer any more.
            call.cancel()

    def submit(self, data: Any, timeout_s: float | None = None) -> Call:
        """Send a request without waiting for the answer, which is the result of the returned call.

        Blocks only while no server is connected, or its stream has no room. Arguments and errors are those of
        :meth:`request`; ``Call.result`` raises the errors that concern the answer.
        """
        self._bind(None)
        deadline = self._clock.deadline(self._timeout_s if timeout_s is None else timeout_s)

        def send(exchange: Exchange, _: float | None) -> Call:
            call = Call(exchange.reader, deadline)
            message = (header(Kind.REQUEST, call.correlation_id), *_parts(data))
            try:
                exchange.send(message, deadline)
            except BaseException:
                call.cancel()
                raise
            self._calls.note_sent(call.correlation_id)
            return call

        try:
            call = self._link.waiting(send, deadline.left_s())
        except PublicationTimeoutError as refusal:
            missing = refusal if self.is_connected else self._link.current.missing
            raise RequestTimeoutError(f"the request was not sent: {missing}: {self!r}") from refusal
        except (ClosedError, PublicationClosedError) as refusal:
            raise self._link.end_of(self) from refusal
        except (TypeError, ConfigError) as refusal:
            raise self._refused(data, refusal) from None
        if call is None:
            raise RequestTimeoutError(f"the request was not sent: no driver came back in time: {self!r}")
        return call

    async def request_async(self, data: Any, timeout_s: float | None = None) -> bytes:
        """Send a request and wait for its answer without blocking the event loop.

        Cancelling it drops the answer; the server does not learn of it. Arguments and errors are those of
        :meth:`request`.

        Raises:
            ReentrantError: The requester belongs to threads, or to another event loop.
        """
        check_timeout("timeout_s", timeout_s)
        loop = asyncio.get_running_loop()
        self._bind(loop)
        answer: asyncio.Future[bytes] = loop.create_future()
        sent_id = None
        try:
            async with asyncio.timeout(self._timeout_s if timeout_s is None else timeout_s):
                sent_id = await self._link.waiting_async(
                    lambda exchange: self._send(exchange, answer, _parts(data))
                )
                return await answer
        except (ClosedError, PublicationClosedError) as refusal:
            raise self._link.end_of(self) from refusal
        except (TypeError, ConfigError) as refusal:
            raise self._refused(data, refusal) from None
        except DriverTimeoutError:
            raise
        except TimeoutError as late:
            raise RequestTimeoutError(f"no answer came in time: {self._missing}: {self!r}") from late
        finally:
            if sent_id is not None:
                self._calls.forget(sent_id)

    @property
    def _missing(self) -> str:
        if self._link.is_lost(self._link.current):
            return "no driver is there"
        return self._link.current.missing

    async def _send(self, exchange: Exchange, answer: asyncio.Future[bytes], parts: tuple[Any, ...]) -> int:
        """Send a request and start to read its answer; returns its correlation id."""
        correlation_id = self._calls.new_id()
        await aio.offer_async(
            exchange.requests, (header(Kind.REQUEST, correlation_id), *parts), timeout_s=None
        )
        # From the offer to here the loop reads no answers, so a call that is added has been sent.
        self._calls.add(correlation_id, answer, exchange.reader)
        reading = exchange.reading
        # The task of a loop that was closed before it ended never ends.
        if reading is None or reading.done() or reading.get_loop() is not self._loop:
            exchange.reading = asyncio.create_task(self._read(exchange), name="headrace-answers")
        return correlation_id

    def _refused(self, data: Any, refusal: TypeError | ConfigError) -> TypeError | ConfigError:
        """The error of an offer in the caller's terms: without the header, which the offer counts."""
        parts = _parts(data)
        if isinstance(refusal, ConfigError):
            length = sum(memoryview(part).nbytes for part in parts)
            return wrong("len(data)", length, f"must be at most max_request_length={self.max_request_length}")
        rule = str(refusal).rpartition(": ")[2]
        for index, part in enumerate(parts):
            try:
                memoryview(part)
            except TypeError:
                name = f"data[{index}]" if isinstance(data, (tuple, list)) else "data"
                return TypeError(f"{name}={excerpt(repr(part))}: {rule}")
        return refusal

    async def _read(self, exchange: Exchange) -> None:
        """Pass answers to their calls while there are calls."""
        try:
            while self._calls:
                await aio.wait_for_messages(exchange.responses, LOOK_S)
                if not exchange.responses.poll(self._calls.settle, _POLL_LIMIT) and exchange.is_abandoned:
                    self._calls.fail(ServerLostError(SERVER_LOST), exchange.reader)
        except HeadraceError as error:
            self._calls.fail(self._end_of(exchange, error), exchange.reader)
        except Exception as error:
            # Such as that of a process without a descriptor left to wait with: a call must not wait for it.
            self._calls.fail(error, exchange.reader)

    def _end_of(self, exchange: Exchange, error: HeadraceError) -> HeadraceError:
        """The error for calls whose answers cannot be read any more."""
        if self._link.is_lost(exchange):
            return ServerLostError(_DRIVER_LOST)
        return self._link.end_of(self) if self._link.is_closed else error

    def _bind(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Bind the requester to threads or to one event loop: only one of them reads answers."""
        if self._is_bound_to(loop):
            return
        with self._binding:
            if self._is_bound_to(loop):
                # By another thread in the meantime.
                return
            if self._is_shared_by_threads or (self._loop is not None and not self._loop.is_closed()):
                if loop is None:
                    raise ReentrantError(
                        f"{self!r} is used by an event loop, where a call must not block: use request_async there, and "
                        "make another one for threads"
                    )
                owner = "threads" if self._loop is None else "another event loop"
                raise ReentrantError(
                    f"{self!r} is used by {owner}: make one for each loop, and one for threads"
                )
            # Of a loop that was closed no coroutine goes on.
            self._calls.forget_all()
            self._loop, self._is_shared_by_threads = loop, loop is None

    def _is_bound_to(self, loop: asyncio.AbstractEventLoop | None) -> bool:
        return self._loop is loop and (loop is not None or self._is_shared_by_threads)

    def _on_lost(self, exchange: Exchange) -> None:
        """Called when a server's response stream ended, on the client's conductor thread."""
        if not self._is_closed:
            self._fail(exchange, ServerLostError(SERVER_LOST), exchange.reader)

    def _fail(self, exchange: Exchange, error: Exception, reader: ThreadReader | None) -> None:
        """End the sent calls whose answers a reader reads, or all calls. Any thread may call it."""
        loop = self._loop
        if loop is None:
            self._calls.fail(error, reader)
            exchange.reader.wake()
        elif not loop.is_closed():
            loop.call_soon_threadsafe(self._calls.fail, error, reader)

    @property
    def is_connected(self) -> bool:
        """True while a server reads the requests."""
        return self._link.current.requests.is_connected

    @property
    def max_request_length(self) -> int:
        """Longest request, in bytes."""
        return self._link.current.requests.max_message_length - HEADER_LENGTH

    @property
    def in_flight_count(self) -> int:
        """Requests that wait for their answers."""
        return len(self._calls)

    @property
    def unclaimed_count(self) -> int:
        """Late answers, answers of cancelled calls, and messages that are not answers."""
        return self._calls.unclaimed_count

    def close(self) -> None:
        """Close. Calls in flight raise :class:`headrace.ClosedError`. Closing again does nothing."""
        # First: the end of the answers is then no loss of a server.
        self._is_closed = True
        self._link.close()
        self._fail(self._link.current, ClosedError("the requester is closed"), None)

    def __repr__(self) -> str:
        return f"Requester(channel={self._route.channel!r}, stream_id={self._route.stream_id})"


def _parts(data: Any) -> tuple[Any, ...]:
    return tuple(data) if isinstance(data, (tuple, list)) else (data,)
