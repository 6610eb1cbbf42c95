"""A session with an archive that is opened again whenever it is lost. It never waits."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from headrace._base.exceptions import ArchiveError, ArchiveTimeoutError, ForkError, HeadraceError
from headrace.archive.client.backoff import Backoff
from headrace.archive.client.session import ArchiveSession, Streams, no_archive
from headrace.archive.protocol.messages import encode
from headrace.channel import ChannelUri

if TYPE_CHECKING:
    from headrace.archive.client.exchange import Exchange, Steps
    from headrace.archive.client.settings import ArchiveClientConfig
    from headrace.archive.protocol.requests import Request
    from headrace.client import Client, ExclusivePublication, Pending, Subscription

__all__ = ["ArchiveLink", "added", "given_up"]

R = TypeVar("R")
T = TypeVar("T", "Subscription", "ExclusivePublication")


def added(pending: Pending[T], undo: contextlib.ExitStack) -> Generator[None, None, T]:
    """Wait, step by step, for a request to the driver; ``undo`` cancels it, or closes its result."""
    undo.callback(given_up, pending)
    while (done := pending.poll()) is None:
        yield
    undo.callback(done.close)
    return done


def given_up(pending: Pending[Any]) -> None:
    """Cancel a request. If its client has ended, so has the request."""
    with contextlib.suppress(HeadraceError):
        pending.cancel()


class ArchiveLink:
    """Sends requests to an archive over a separate session. Stepped by its owner; used by one thread at a time.

    Args:
        client: The client to use.
        config: Which archive.
        next_session_id: Makes session ids for the two streams; by default the driver does, and the call waits for it.
    """

    def __init__(
        self,
        client: Client,
        config: ArchiveClientConfig,
        next_session_id: Callable[[], int] | None = None,
    ) -> None:
        self._client = client
        self._config = config
        self._next_session_id = next_session_id or (
            lambda: client.next_available_session_id(config.control_stream_id)
        )
        self._session: ArchiveSession | None = None
        self._exchanges: list[Exchange[Any]] = []
        self._told: list[Exchange[Any]] = []
        self._connecting: Generator[None, None, ArchiveSession] | None = None
        self._backoff = Backoff(client.clock)
        self.failure: HeadraceError | None = None
        """Why the last attempt to reach the archive failed."""

    @property
    def is_ready(self) -> bool:
        """Whether the session can send a request."""
        return self._session is not None

    def step(self) -> None:
        """Do all work that needs no waiting.

        Raises:
            HeadraceError: The client has ended, or belongs to the parent of this forked process.
        """
        session = self._session
        if session is None:
            self._connect()
            return
        session.poll()
        self._advance(session)
        if not session.is_connected:
            self._drop(ArchiveError(session._why_lost()))

    def ask(self, what: Steps[R]) -> Exchange[R]:
        """Begin a question; only while it :attr:`is_ready`. Questions are sent one after the other.

        The caller takes the answer with :meth:`answer`, or calls :meth:`forget`.
        """
        assert self._session is not None
        exchange = self._session._begin(what)
        self._exchanges.append(exchange)
        return exchange

    def tell(self, what: Steps[Any]) -> None:
        """Ask without taking the answer. Does nothing if the archive is gone, which the next step notices."""
        with contextlib.suppress(ArchiveError):
            self._told.append(self.ask(what))

    def send(self, request: Request) -> None:
        """Send a request at once, or not at all; the answer is dropped."""
        session = self._session
        if session is not None:
            addressed = dataclasses.replace(request, control_session_id=session.control_session_id)
            session._publication.offer(encode(addressed))

    def answer(self, exchange: Exchange[R]) -> R:
        """The answer to a question that is done. Raises as :meth:`Exchange.result`."""
        try:
            return exchange.result()
        finally:
            self.forget(exchange)

    def forget(self, exchange: Exchange[Any]) -> None:
        """Drop a question. Undoes what it began, unless the answer was taken."""
        if exchange in self._exchanges:
            self._exchanges.remove(exchange)
            assert self._session is not None
            self._session._end(exchange)

    def request_way_back(self, subscription: Subscription) -> Pending[ExclusivePublication]:
        """Begin to open a connection through which a replay comes back to a subscription."""
        channel = self._config.replay_requests(subscription)
        return self._client.request_exclusive_publication(channel, self._config.control_stream_id)

    def await_error(self, correlation_id: int) -> None:
        """Keep errors of this request for :meth:`late_error`."""
        if self._session is not None:
            self._session._signals.await_error(correlation_id)

    def late_error(self, correlation_id: int) -> ArchiveError | None:
        """The error of a request that came after its answer, or ``None``."""
        return None if self._session is None else self._session.late_error(correlation_id)

    def close(self) -> None:
        """End the session."""
        if self._connecting is not None:
            self._connecting.close()
            self._connecting = None
        self._drop(None)

    def _advance(self, session: ArchiveSession) -> None:
        """Send and check the first question that is not answered."""
        for told in [one for one in self._told if one.is_done]:
            self._told.remove(told)
            self.forget(told)
        unsettled = session._unsettled()
        if unsettled is not None:
            session._look_after(unsettled)
            return
        first = next((one for one in self._exchanges if not one.is_done), None)
        if first is None:
            return
        if first.to_send is not None and session._way_of(first).offer(first.to_send):
            first.sent()
        session._look_after(first)

    def _connect(self) -> None:
        if self._connecting is None:
            if not self._backoff.is_over:
                return
            self._connecting = self._connected()
        try:
            next(self._connecting)
        except StopIteration as end:
            self._session, self._connecting = end.value, None
            self._backoff.reset()
        except HeadraceError as failure:
            self._connecting = None
            if isinstance(failure, ForkError) or self._client.is_closed:
                raise
            self.failure = failure
            self._backoff.begin()

    def _connected(self) -> Generator[None, None, ArchiveSession]:
        """Open a session, one step at a time."""
        client, config = self._client, self._config
        deadline = client.clock.deadline(config.message_timeout_s)
        channels = config.channels(self._next_session_id)
        with contextlib.ExitStack() as undo:
            subscription = yield from added(
                client.request_subscription(channels.responses, config.response_stream_id), undo
            )
            requests = channels.requests_of(subscription)
            publication = yield from added(
                client.request_exclusive_publication(requests, config.control_stream_id), undo
            )
            resolved = None if ChannelUri(channels.responses).is_port_open else channels.responses
            while resolved is None or not publication.is_connected:
                if deadline.is_over:
                    raise ArchiveTimeoutError(no_archive(publication))
                resolved = resolved or subscription.resolved_channel
                yield
            session = ArchiveSession(Streams(client, publication, subscription, owns_client=False), config)
            exchange = session._begin(session._handshake(resolved))
            while not exchange.is_done:
                if exchange.to_send is not None and publication.offer(exchange.to_send):
                    exchange.sent()
                session.poll()
                session._look_after(exchange)
                yield
            exchange.result()
            session._end(exchange)
            undo.pop_all()
            return session

    def _drop(self, failure: ArchiveError | None) -> None:
        """Leave a session and its questions."""
        session, self._session = self._session, None
        if failure is not None:
            self.failure = failure
        if session is None:
            return
        for exchange in self._exchanges:
            exchange.fail(failure or ArchiveError("the session with the archive is closed"))
        self._exchanges.clear()
        self._told.clear()
        session.close()
