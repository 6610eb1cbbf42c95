"""The side that answers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from headrace import aio
from headrace._arguments import checked_class
from headrace._checks import wrong
from headrace._closing import EitherClosing
from headrace._exceptions import ClosedError, HeadraceError
from headrace._logging import RPC
from headrace.client import BlockingIdleStrategy
from headrace.rpc._channels import answers_channel, answers_stream, prototype_of, with_params
from headrace.rpc._layout import HEADER_LENGTH, Kind, parse
from headrace.rpc._sessions import Session

if TYPE_CHECKING:
    from headrace.client import Client

__all__ = ["Server"]

_POLL_LIMIT = 64
# How often to look for room for answers, which has no bell here.
_ROOM_LOOK_S = 0.001
# How long an idle loop waits at most before it looks for new requesters and whether it is closed.
_LOOK_S = 0.05


@checked_class
class Server(EitherClosing):
    """Answers the requests of any number of :class:`headrace.Requester`. See the how-to on requests.

    A plain handler is called for one request after another, on the thread that serves. An ``async def`` handler runs
    as a task for each request. What a handler raises is logged with its traceback by ``headrace.rpc``, and raised at
    the caller as :class:`headrace.RemoteError`.

    A requester that does not read its answers is not read either, and holds up no other one. A context manager that
    closes it; ``async with`` does so without blocking the event loop.

    Making one blocks as ``Client.add_subscription``.

    Args:
        client: The client to receive and send with.
        channel: Where requests come from, such as ``"aeron:ipc"`` or ``"aeron:udp?endpoint=server:24324"``.
        stream_id: The stream of requests.
        handler: Called with the bytes of a request; gives the bytes of the answer.
        answers_control: Over UDP, the ``"host:port"`` of this machine that answers are sent from. Requesters give the
            same.
        answers_stream_id: The stream of answers, if not the one after that.
        max_in_flight: For ``async def`` handlers: how many run at once. While so many run, no request is read.

    Raises:
        RegistrationError: The driver refused the channel, with the reason.
        DriverTimeoutError: The driver did not answer.
        ClosedError: The client is closed.
        ConfigError: The channel is neither of IPC nor of UDP, ``answers_control`` is missing or malformed, no stream is
            left for the answers, or ``max_in_flight`` is below 1.
    """

    def __init__(
        self,
        client: Client,
        channel: str,
        stream_id: int,
        handler: Callable[[bytes], bytes | Awaitable[bytes]],
        *,
        answers_control: str | None = None,
        answers_stream_id: int | None = None,
        max_in_flight: int = 1000,
    ) -> None:
        self._answers_channel = answers_channel(channel, answers_control)
        if max_in_flight < 1:
            raise wrong("max_in_flight", max_in_flight, "must be at least 1")
        self._client = client
        self._handler = handler
        self._is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
            getattr(handler, "__call__", None)  # noqa: B004
        )
        self._answers_stream_id = answers_stream(stream_id, answers_stream_id)
        self._max_in_flight = max_in_flight
        self._sessions: dict[int, Session] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._rejected_count = 0
        self._lost_count = 0
        self._are_images_new = True
        # First: an address that cannot be had is told here.
        prototype = prototype_of(self._answers_channel)
        self._prototype = prototype and client.add_publication(prototype, self._answers_stream_id)
        try:
            self._requests = client.add_subscription(
                channel, stream_id, on_available_image=self._on_image, on_unavailable_image=self._on_image
            )
        except BaseException:
            self._close_prototype()
            raise

    def serve(self) -> None:
        """Answer requests until the server is closed, by another thread or a handler; Ctrl-C ends it too.

        With an ``async def`` handler it runs an event loop.

        Raises:
            DriverTimeoutError: The client ended because the driver is gone.
        """
        if self._is_async:
            asyncio.run(self.serve_async())
            return
        idle = BlockingIdleStrategy(self._requests)
        while not self._requests.is_closed:
            work_count = self._turn()
            if work_count == 0 and self._is_any_blocked:
                self._client.clock.sleep(_ROOM_LOOK_S)
            else:
                idle.idle(work_count)

    async def serve_async(self) -> None:
        """Answer requests until the server is closed, or this is cancelled: handlers that run are cancelled too.

        Raises:
            DriverTimeoutError: The client ended because the driver is gone.
        """
        try:
            while not self._requests.is_closed:
                if self._turn() > 0:
                    await asyncio.sleep(0)
                elif len(self._tasks) >= self._max_in_flight:
                    await asyncio.wait(self._tasks, timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED)
                elif self._is_any_blocked:
                    await asyncio.sleep(_ROOM_LOOK_S)
                else:
                    await aio.wait_for_messages(self._requests, _LOOK_S)
        finally:
            for task in self._tasks:
                task.cancel()

    def poll(self) -> int:
        """Do what can be done now, for programs with a loop of their own and a plain handler. Never blocks.

        Returns:
            How much was done; 0 when there was nothing to do.

        Raises:
            ClosedError: The server is closed.
        """
        if self._is_async:
            raise wrong(
                "handler", self._handler, "must be a plain function for poll(); await serve_async() instead"
            )
        if self._requests.is_closed:
            raise ClosedError(f"{self!r} is closed")
        return self._turn()

    def _turn(self) -> int:
        try:
            work_count = self._follow_images() if self._are_images_new else 0
            for session in list(self._sessions.values()):
                work_count += self._go_on(session)
                room = self._max_in_flight - len(self._tasks)
                if session.is_ready and room > 0:
                    work_count += self._read(session, min(room, _POLL_LIMIT))
        except ClosedError:
            # By another thread, or a handler: the next look at it says so.
            if not self._requests.is_closed:
                raise
            return 0
        return work_count

    def _on_image(self, _: object) -> None:
        """A requester came or went. Runs on the client's conductor thread."""
        self._are_images_new = True

    def _follow_images(self) -> int:
        self._are_images_new = False
        images = {image.correlation_id: image for image in self._requests.images}
        for correlation_id in [known for known in list(self._sessions) if known not in images]:
            self._drop(correlation_id)
        new = [image for correlation_id, image in images.items() if correlation_id not in self._sessions]
        for image in new:
            channel = with_params(self._answers_channel, f"response-correlation-id={image.correlation_id}")
            asked = self._client.request_publication(channel, self._answers_stream_id)
            self._sessions[image.correlation_id] = Session(image, asked)
        return len(new)

    def _go_on(self, session: Session) -> int:
        try:
            return session.turn() if session.is_blocked else 0
        except ClosedError:
            raise
        except HeadraceError as refusal:
            # It does not ask for answers, or is gone. Its requests are left alone.
            RPC.warning("headrace rpc: a requester cannot be answered: %r: %s", session.image, refusal)
            session.close()
            return 1

    def _drop(self, correlation_id: int) -> None:
        session = self._sessions.pop(correlation_id, None)
        if session is not None:
            session.close()
            self._lost_count += session.lost_count

    def _read(self, session: Session, limit: int) -> int:
        requests: list[bytes] = []
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
        try:
            answer = self._handler(request)
        except Exception as error:
            self._refuse(session, correlation_id, error)
        else:
            self._answer(session, correlation_id, answer)

    async def _handle_async(self, session: Session, correlation_id: int, request: bytes) -> None:
        try:
            answer = await self._handler(request)  # type: ignore[misc]
        except Exception as error:
            self._refuse(session, correlation_id, error)
        else:
            self._answer(session, correlation_id, answer)

    def _answer(self, session: Session, correlation_id: int, answer: object) -> None:
        if isinstance(answer, (bytes, bytearray, memoryview)):
            session.answer(correlation_id, bytes(answer))
        else:
            error = TypeError(f"the handler gave {type(answer).__name__}: it must give bytes")
            self._refuse(session, correlation_id, error)

    def _refuse(self, session: Session, correlation_id: int, error: Exception) -> None:
        RPC.error("headrace rpc: a handler failed: correlation_id=%d", correlation_id, exc_info=error)
        session.refuse(correlation_id, f"{type(error).__name__}: {error}")

    @property
    def _is_any_blocked(self) -> bool:
        # Of a copy, here and below: another thread may close the server meanwhile.
        return any(session.is_blocked for session in list(self._sessions.values()))

    @property
    def requester_count(self) -> int:
        """Requesters that are connected."""
        return len(self._sessions)

    @property
    def rejected_count(self) -> int:
        """Messages that are no requests of a layout that this version knows. They are dropped."""
        return self._rejected_count

    @property
    def lost_count(self) -> int:
        """Answers to requesters that were gone."""
        return self._lost_count + sum(session.lost_count for session in list(self._sessions.values()))

    def close(self) -> None:
        """Stop answering. Calls in flight raise :class:`headrace.ServerLostError`. Closing again does nothing."""
        self._requests.close()
        for correlation_id in list(self._sessions):
            self._drop(correlation_id)
        self._close_prototype()

    def _close_prototype(self) -> None:
        if self._prototype:
            self._prototype.close()

    def __repr__(self) -> str:
        return f"Server(channel={self._requests.channel!r}, stream_id={self._requests.stream_id})"
