"""The side that answers requests."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from headrace import aio
from headrace._base.checks import shown, wrong
from headrace._base.closing import EitherClosing
from headrace._base.exceptions import ClosedError, HeadraceError
from headrace._base.logging import RPC
from headrace._base.weak import weakly
from headrace.client import BlockingIdleStrategy
from headrace.rpc._layout import HEADER_LENGTH, Kind, parse
from headrace.rpc._links import Link, link
from headrace.rpc._requester_streams import Route
from headrace.rpc._server_streams import Listening
from headrace.rpc._sessions import Losses, Session

if TYPE_CHECKING:
    from headrace.client import Client, Publication, ReconnectingClient, Subscription

__all__ = ["Server"]

_POLL_LIMIT = 64
# How often to look whether the driver has made a response stream, which has no bell here.
_ANSWER_LOOK_S = 0.001
# How often an event loop looks for room for answers: less and less often while there is none.
_ROOM_LOOK_MIN_S, _ROOM_LOOK_MAX_S = 0.001, 0.016
# Publications whose room wakes a thread; it looks at the others every 20 ms.
_AWAITED_MAX = 16
# How long an idle loop waits at most before it looks for new requesters and whether it is closed.
_LOOK_S = 0.05


class Server(EitherClosing):
    """Answers the requests of any number of :class:`headrace.Requester`. See the how-to on requests.

    The server calls a plain handler for one request after another, on the thread that serves, and runs an ``async def``
    handler as a task for each request. If a handler raises, ``headrace.rpc`` logs the exception with its traceback, and
    the caller gets a :class:`headrace.RemoteError`.

    If a requester does not read its answers, the server stops reading its requests; others are not delayed. A context
    manager that closes it; ``async with`` does so without blocking the event loop.

    The constructor blocks as ``Client.add_subscription`` does. With a client made with ``reconnect=True`` it continues
    at the next driver; answers to requesters of the last driver are lost, and counted.

    Args:
        client: The client to receive and send with.
        channel: Where requests come from, such as ``"aeron:ipc"`` or ``"aeron:udp?endpoint=server:24324"``.
        stream_id: The stream of requests.
        handler: Called with the bytes of a request; returns the bytes of the answer.
        response_control: Over UDP, the ``"host:port"`` of this machine from which answers are sent. Requesters must set
            the same.
        response_stream_id: The stream id of the responses, if not the one after ``stream_id``.
        max_in_flight: Most ``async def`` handlers that run at once. While that many run, the server reads no request.

    Raises:
        RegistrationError: The driver refused the channel, with the reason.
        DriverTimeoutError: The driver did not answer.
        ClosedError: The client is closed.
        ConfigError: The channel is neither IPC nor UDP, ``response_control`` is missing or malformed, no stream id is
            left for the responses, or ``max_in_flight`` is below 1.
    """

    def __init__(
        self,
        client: Client | ReconnectingClient,
        channel: str,
        stream_id: int,
        handler: Callable[[bytes], bytes | Awaitable[bytes]],
        *,
        response_control: str | None = None,
        response_stream_id: int | None = None,
        max_in_flight: int = 1000,
    ) -> None:
        if not callable(handler):
            raise TypeError(f"handler={shown('handler', handler)}: must be callable")
        self._route = route = Route.checked(channel, stream_id, response_control, response_stream_id)
        if max_in_flight < 1:
            raise wrong("max_in_flight", max_in_flight, "must be at least 1")
        self._client = client
        self._handler = handler
        self._is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
            getattr(handler, "__call__", None)  # noqa: B004
        )
        self._max_in_flight = max_in_flight
        self._sessions: dict[int, Session] = {}
        # Those of them that had to wait in the last turn.
        self._blocked: list[Session] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._rejected_count = 0
        self._losses = Losses()
        self._are_images_new = True
        self._is_closed = False
        on_image = weakly(self._on_image)
        self._link: Link[Listening] = link(client, lambda client: Listening(client, route, on_image))
        # Whose requesters the sessions are.
        self._followed = self._link.current

    def serve(self) -> None:
        """Answer requests until another thread or a handler closes the server; Ctrl-C ends it too.

        With an ``async def`` handler it runs an event loop.

        Raises:
            DriverTimeoutError: The client ended because the driver is gone, and was not made with ``reconnect=True``.
        """
        if self._is_async:
            asyncio.run(self.serve_async())
            return
        awaited: list[Subscription | Publication] = []
        idle = BlockingIdleStrategy()
        while not self._link.is_closed:
            work_count = self._turn()
            if self._followed.is_closed:
                self._client.clock.sleep(_LOOK_S)
            elif work_count == 0 and self._is_any_asked:
                self._client.clock.sleep(_ANSWER_LOOK_S)
            else:
                now_awaited: list[Subscription | Publication] = [
                    self._followed.requests,
                    *self._blocked_responses,
                ]
                if now_awaited != awaited:
                    awaited, idle = now_awaited, BlockingIdleStrategy(*now_awaited)
                idle.idle(work_count)
        self._tell_end()

    async def serve_async(self) -> None:
        """Answer requests until the server is closed or this is cancelled, which also cancels running handlers.

        Raises:
            DriverTimeoutError: The client ended because the driver is gone, and was not made with ``reconnect=True``.
        """
        room_look_s = _ROOM_LOOK_MIN_S
        try:
            while not self._link.is_closed:
                if self._turn() > 0:
                    room_look_s = _ROOM_LOOK_MIN_S
                    await asyncio.sleep(0)
                elif self._followed.is_closed:
                    await asyncio.sleep(_LOOK_S)
                elif len(self._tasks) >= self._max_in_flight:
                    await asyncio.wait(self._tasks, timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED)
                elif self._blocked:
                    # A wait for messages would end at once for those of a requester that is not read.
                    await asyncio.sleep(room_look_s)
                    room_look_s = min(2 * room_look_s, _ROOM_LOOK_MAX_S)
                else:
                    await aio.wait_for_messages(self._followed.requests, _LOOK_S)
        finally:
            for task in self._tasks:
                task.cancel()
        self._tell_end()

    def _tell_end(self) -> None:
        """Raise why the client ended, if neither it nor the server was closed."""
        end = self._link.end_of(self)
        if not isinstance(end, ClosedError):
            raise end

    def poll(self) -> int:
        """Do the work of one turn. For programs that run their own loop and have a plain handler. Never blocks.

        Returns:
            How much was done; 0 when there was nothing to do.

        Raises:
            ClosedError: The server is closed.
            DriverTimeoutError: The client ended with its driver.
        """
        if self._is_async:
            raise wrong(
                "handler", self._handler, "must be a plain function for poll(); await serve_async() instead"
            )
        if self._link.is_closed:
            raise self._link.end_of(self)
        return self._turn()

    def _turn(self) -> int:
        listening = self._link.current
        if listening is not self._followed:
            # At another driver: those who asked at the last one have to come again.
            self._drop_all()
            self._followed, self._are_images_new = listening, True
        try:
            work_count = self._follow_images(listening) if self._are_images_new else 0
            blocked = []
            for session in list(self._sessions.values()):
                # First what holds for nearly all of them, of which there may be thousands.
                if not session.is_ready:
                    work_count += self._go_on(session)
                    if session.is_blocked:
                        blocked.append(session)
                room = self._max_in_flight - len(self._tasks)
                if room > 0 and session.is_ready:
                    work_count += self._read(session, min(room, _POLL_LIMIT))
            self._blocked = blocked
        except HeadraceError:
            # It was closed by another thread or a handler, or its driver ended: the next look at it says so.
            if not listening.is_closed:
                raise
            return 0
        return work_count

    def _on_image(self, _: object) -> None:
        """Called when a requester came or went, on the client's conductor thread."""
        self._are_images_new = True

    def _follow_images(self, listening: Listening) -> int:
        self._are_images_new = False
        images = {image.correlation_id: image for image in listening.requests.images}
        for correlation_id in [known for known in list(self._sessions) if known not in images]:
            self._drop(correlation_id)
        new = [image for correlation_id, image in images.items() if correlation_id not in self._sessions]
        for image in new:
            self._sessions[image.correlation_id] = listening.session(image, self._losses)
            if listening.is_closed:
                # By another thread, which may have looked at the sessions before this one was among them.
                self._drop(image.correlation_id)
        return len(new)

    def _go_on(self, session: Session) -> int:
        if session.is_ignored:
            count = session.discard(_POLL_LIMIT)
            self._rejected_count += count
            return count
        if session.has_left:
            return session.leave(session.discard(_POLL_LIMIT))
        try:
            return session.turn() if session.is_blocked else 0
        except HeadraceError as refusal:
            if self._followed.is_closed:
                raise
            # It does not ask for answers, or is gone.
            RPC.warning(
                "headrace rpc: cannot answer a publisher, so its messages are dropped: %r: %s",
                session.image,
                refusal,
            )
            session.ignore()
            return 1

    def _drop(self, correlation_id: int) -> None:
        session = self._sessions.pop(correlation_id, None)
        if session is not None:
            session.close()

    def _drop_all(self) -> None:
        for correlation_id in list(self._sessions):
            self._drop(correlation_id)

    def _read(self, session: Session, limit: int) -> int:
        requests: list[bytes] = []
        session.note_reader()
        session.image.poll(lambda message, _: requests.append(message), limit)
        for message in requests:
            parsed = parse(message)
            if parsed is None or parsed[0] != Kind.REQUEST:
                self._rejected_count += 1
                continue
            request = message[HEADER_LENGTH:]
            if self._is_async:
                task = asyncio.ensure_future(self._handle_async(session, parsed[1], request))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            else:
                self._handle(session, parsed[1], request)
        return len(requests)

    def _handle(self, session: Session, correlation_id: int, request: bytes) -> None:
        if self._is_closed:
            # By the handler of a request that was read with it.
            self._losses.count += 1
            return
        try:
            answer = _answer_of(self._handler(request))
        except (Exception, asyncio.CancelledError) as error:
            self._refuse(session, correlation_id, error)
        else:
            session.answer(correlation_id, answer)

    async def _handle_async(self, session: Session, correlation_id: int, request: bytes) -> None:
        if self._is_closed:
            # Since this task was made.
            self._losses.count += 1
            return
        try:
            answer = _answer_of(await self._handler(request))  # type: ignore[misc]
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                # By the server, which ends; otherwise what the handler awaited was cancelled.
                raise
            self._refuse(session, correlation_id, error)
        else:
            session.answer(correlation_id, answer)

    def _refuse(self, session: Session, correlation_id: int, error: BaseException) -> None:
        RPC.error("headrace rpc: a handler failed: correlation_id=%d", correlation_id, exc_info=error)
        session.refuse(correlation_id, f"{type(error).__name__}: {_text_of(error)}")

    @property
    def _is_any_asked(self) -> bool:
        return any(session.is_asked for session in self._blocked)

    @property
    def _blocked_responses(self) -> list[Publication]:
        blocked = (session.blocked_responses for session in self._blocked)
        return list(itertools.islice((each for each in blocked if each is not None), _AWAITED_MAX))

    @property
    def requester_count(self) -> int:
        """Requesters that are connected."""
        # Of a copy: another thread may close the server meanwhile.
        return sum(not session.is_ignored for session in list(self._sessions.values()))

    @property
    def rejected_count(self) -> int:
        """Dropped messages: not requests of a known layout, or from a publisher that asks for no responses."""
        return self._rejected_count

    @property
    def lost_count(self) -> int:
        """Requests of and answers to requesters that were gone, and requests in hand when the server was closed."""
        return self._losses.count

    def close(self) -> None:
        """Close. Calls in flight raise :class:`headrace.ServerLostError`. Closing again does nothing."""
        self._is_closed = True
        self._link.close()
        self._drop_all()

    def __repr__(self) -> str:
        return f"Server(channel={self._route.channel!r}, stream_id={self._route.stream_id})"


def _answer_of(answer: object) -> bytes:
    """The result of a handler, as bytes."""
    if isinstance(answer, (bytes, bytearray, memoryview)):
        return bytes(answer)
    raise TypeError(f"the handler returned {type(answer).__name__}: it must return bytes")


def _text_of(error: BaseException) -> str:
    """The text of a handler's error, whose class may raise when asked for it."""
    try:
        return str(error)
    except Exception as failure:
        return f"its text cannot be made: {type(failure).__name__}"
