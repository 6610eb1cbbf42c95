"""A session with an archive that is opened again whenever it is lost. It never waits."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from headrace._exceptions import ArchiveError, ArchiveTimeoutError, ForkError, HeadraceError
from headrace.archive.client.pauses import Pauses
from headrace.archive.client.session import ArchiveSession, Streams
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
    """What was asked of the driver, once it has added it; whatever comes of it is taken back by ``undo``."""
    undo.callback(given_up, pending)
    while (done := pending.poll()) is None:
        yield
    undo.callback(done.close)
    return done


def given_up(pending: Pending[Any]) -> None:
    """Want it no more; with a client that has ended it went."""
    with contextlib.suppress(HeadraceError):
        pending.cancel()


class ArchiveLink:
    """Asks an archive, over a session of its own. Stepped by its owner; used by one thread at a time.

    Args:
        client: The client to use.
        config: Which archive.
        next_session_id: Makes session ids for the two streams; by default the driver, which is waited for.
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
        self._pauses = Pauses(client.clock)
        self.failure: HeadraceError | None = None
        """Why the last attempt to reach the archive failed."""

    @property
    def is_ready(self) -> bool:
        """Whether the archive can be asked."""
        return self._session is not None

    def step(self) -> None:
        """Go on with what can go on now.

        Raises:
            HeadraceError: The client has ended, or is that of a process which this one was forked from.
        """
        session = self._session
        if session is None:
            self._connect()
            return
        session.poll()
        self._advance(session)
        if not session.is_connected:
            self._drop(ArchiveError("the archive is gone"))

    def ask(self, what: Steps[R]) -> Exchange[R]:
        """Begin to ask; only while it :attr:`is_ready`. Questions are sent one after the other.

        The one who asks takes the answer with :meth:`answer`, or says :meth:`forget`.
        """
        assert self._session is not None
        exchange = self._session._begin(what)
        self._exchanges.append(exchange)
        return exchange

    def tell(self, what: Steps[Any]) -> None:
        """Ask without wanting the answer; of an archive that is gone, which the next step sees, nothing is asked."""
        with contextlib.suppress(ArchiveError):
            self._told.append(self.ask(what))

    def send(self, request: Request) -> None:
        """Send a request at once, or not at all; what the archive answers is passed over."""
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
        """Leave a question: what it began is taken back, unless the answer was taken."""
        if exchange in self._exchanges:
            self._exchanges.remove(exchange)
            assert self._session is not None
            self._session._end(exchange)

    def request_way_back(self, subscription: Subscription) -> Pending[ExclusivePublication]:
        """Begin to open a connection through which a replay comes back to a subscription."""
        channel = self._config.replay_requests(subscription)
        return self._client.request_exclusive_publication(channel, self._config.control_stream_id)

    def await_error(self, correlation_id: int) -> None:
        """From now on :meth:`late_error` is asked for this request."""
        if self._session is not None:
            self._session._notices.await_error(correlation_id)

    def late_error(self, correlation_id: int) -> ArchiveError | None:
        """What the archive has said of a request after its answer."""
        return None if self._session is None else self._session.late_error(correlation_id)

    def close(self) -> None:
        """End the session."""
        if self._connecting is not None:
            self._connecting.close()
            self._connecting = None
        self._drop(None)

    def _advance(self, session: ArchiveSession) -> None:
        """Send, and look after, the first question that is not answered."""
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
            if not self._pauses.is_over:
                return
            self._connecting = self._connected()
        try:
            next(self._connecting)
        except StopIteration as end:
            self._session, self._connecting = end.value, None
            self._pauses.reset()
        except HeadraceError as failure:
            self._connecting = None
            if isinstance(failure, ForkError) or self._client.is_closed:
                raise
            self.failure = failure
            self._pauses.begin()

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
                    raise ArchiveTimeoutError(f"no archive takes requests on {publication.channel}")
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
        """Leave a session, with what was asked on it."""
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
