"""A client's session with an archive: its streams, its exchanges, and the sorting of messages. It never waits.

:class:`headrace.Archive` and :class:`headrace.archive.aio.AsyncArchive` run its exchanges, and wait, each in its way.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from headrace._base.closing import Closing
from headrace._base.exceptions import (
    ArchiveError,
    ArchiveTimeoutError,
    AuthenticationError,
    ClientError,
    ClosedError,
    HeadraceError,
)
from headrace._base.fork import is_own
from headrace._base.logging import ARCHIVE
from headrace.archive.client.exchange import Exchange, Steps, Terms, Unanswered
from headrace.archive.client.signals import Signal, Signals
from headrace.archive.client.steps import answered, refusal_of
from headrace.archive.protocol.answers import Answer, Challenge, ControlResponse, RecordingSignalEvent
from headrace.archive.protocol.codes import ErrorCode, Response
from headrace.archive.protocol.counters import ERRORS, archive_id_of_errors
from headrace.archive.protocol.messages import PROTOCOL_VERSION, decode, encode
from headrace.archive.protocol.requests import (
    ArchiveIdRequest,
    AuthConnectRequest,
    ChallengeResponse,
    CloseSessionRequest,
    KeepAliveRequest,
)
from headrace.channel import ChannelUri
from headrace.client import __version__
from headrace.client._end import end_of
from headrace.positions import NULL_VALUE
from headrace.security.credentials import supplier_of
from headrace.security.verdicts import described, discarded

if TYPE_CHECKING:
    from headrace.archive.client.settings import ArchiveClientConfig
    from headrace.client import Client, ExclusivePublication, Subscription
    from headrace.clock import Clock

__all__ = ["ArchiveSession", "Signal", "Streams", "look_s", "no_archive"]

R = TypeVar("R")
_ARCHIVE_ID_SINCE = 1 << 16 | 11 << 8
# How often an owner looks whether the archive is still there, while nothing comes.
LOOK_INTERVAL_S = 0.1
_CLOSED = "the session with the archive is closed"
_ENDED = "the archive has ended this session; its error log has the reason"
# An archive that asks on and on is not one.
_CHALLENGES_MAX = 16


@dataclass(frozen=True, slots=True)
class Streams:
    """The streams of a session.

    Attributes:
        client: The client of both.
        publication: To the archive.
        subscription: From it.
        owns_client: Whether the client closes with the session.
    """

    client: Client
    publication: ExclusivePublication
    subscription: Subscription
    owns_client: bool


class ArchiveSession(Closing):
    """The state of a session. See :class:`headrace.Archive`, which has the requests."""

    def __init__(
        self,
        streams: Streams,
        config: ArchiveClientConfig,
        on_signal: Callable[[Signal], object] | None = None,
        on_error: Callable[[ArchiveError], object] | None = None,
    ) -> None:
        self._streams = streams
        self._client = streams.client
        self._publication = streams.publication
        self._subscription = streams.subscription
        self._config = config
        self._timeout_s = config.message_timeout_s
        self._signals = Signals(on_signal, on_error)
        self._exchanges: list[Exchange[Any]] = []
        # Abandoned by their owners, and not yet answered by the archive.
        self._abandoned: list[Exchange[Any]] = []
        # Held by a thread while it awaits an answer: it takes the messages for all.
        self._lock = threading.RLock()
        self._is_closed = False
        self._pid = os.getpid()
        self.control_session_id = NULL_VALUE
        self.archive_id = NULL_VALUE

    # --- exchanges -------------------------------------------------------------------------------------------------

    def _begin(self, steps: Steps[R]) -> Exchange[R]:
        """Begin an exchange, which its owner runs when it is its turn, and finally ends."""
        self._check_open()
        terms = Terms(self.control_session_id, self._client.next_correlation_id, self.clock, self._timeout_s)
        exchange = Exchange(steps, terms)
        self._exchanges.append(exchange)
        return exchange

    def _way_of(self, exchange: Exchange[Any]) -> ExclusivePublication:
        """The publication for the request of an exchange."""
        return exchange.over or self._publication

    def _check_open(self) -> None:
        if self._is_closed:
            raise ArchiveError(_CLOSED)
        loss = self._loss()
        if loss is not None:
            raise ArchiveError(loss)

    def _end(self, exchange: Exchange[R]) -> None:
        """Leave an exchange, which may not be done. What it began and did not finish is undone.

        The archive carries out a request that was sent; so no other request is sent until its answer has come or is
        overdue.
        """
        self._exchanges.remove(exchange)
        self._abandon(exchange)

    def _abandon(self, exchange: Exchange[R]) -> None:
        undo = exchange.undo()
        if undo is not None and not self._is_closed:
            with contextlib.suppress(ClientError, ClosedError):
                refusal = self._publication.offer(undo)
                if not refusal:
                    ARCHIVE.warning(
                        "the work of request correlation_id=%d continues: the request to stop it was not sent, %r",
                        exchange.correlation_id,
                        refusal,
                    )
        if exchange.is_waiting:
            self._abandoned.append(exchange)

    def _unsettled(self) -> Exchange[Any] | None:
        """An abandoned exchange whose answer is still to come, within its time-out."""
        self._abandoned = [one for one in self._abandoned if one.is_waiting]
        return self._abandoned[0] if self._abandoned else None

    def _begun(self) -> Exchange[Any] | None:
        """An abandoned exchange whose answer names something to stop before the session ends."""
        return next((one for one in self._abandoned if one.may_begin), None)

    def _take(self, payload: bytes) -> None:
        """Pass a message to the exchange that awaits it, or else to the handlers of signals and errors."""
        message = decode(payload)
        if not isinstance(message, Answer):
            return
        there = (*self._exchanges, *self._abandoned)
        exchange = next((one for one in there if one.awaits(message)), None)
        if exchange is None or isinstance(message, RecordingSignalEvent):
            self._pass_on(message)
        # A handler of the signal may have ended it.
        if exchange is None or not exchange.awaits(message):
            return
        exchange.take(message)
        # The archive is at work: those that wait for their turn may wait longer.
        for other in tuple(self._exchanges):
            other.restart_timeout()
        if exchange in self._abandoned:
            self._abandoned.remove(exchange)
            self._abandon(exchange)

    def _look_after(self, exchange: Exchange[R]) -> None:
        """End an exchange whose request can no longer be sent, or whose answer can no longer come."""
        if self._is_closed:
            exchange.fail(ArchiveError(_CLOSED, correlation_id=exchange.correlation_id))
        if exchange.to_send is not None and exchange.deadline.is_over:
            text = self._why_unsent(exchange)
            exchange.fail(ArchiveTimeoutError(text, correlation_id=exchange.correlation_id))
        exchange.check()
        if self.control_session_id == NULL_VALUE:
            if not self._publication.is_connected:
                text = (
                    "the archive does not serve this client; its error log says why: `headrace errors --once "
                    "--offset 8192 --file DIRECTORY/archive-mark.dat`, with the archive's directory"
                )
                exchange.fail(ArchiveError(text, correlation_id=exchange.correlation_id))
        elif (loss := self._loss()) is not None:
            exchange.fail(ArchiveError(loss, correlation_id=exchange.correlation_id))

    def _why_unsent(self, exchange: Exchange[Any]) -> str:
        way = self._way_of(exchange)
        if not way.is_connected:
            return no_archive(way)
        return f"the request was not sent: the archive does not read the earlier requests on {way.channel}"

    def _loss(self) -> str | None:
        """Why the archive of the session no longer answers; another archive does not know the session."""
        if self._client.is_closed:
            return f"the client of the session with the archive has ended: {end_of(self._client)}"
        if self.control_session_id == NULL_VALUE or self._subscription.is_connected:
            return None
        if self._is_local:
            return _ENDED if self._is_archive_here else "the archive is gone"
        return f"{_ENDED}, or is gone" if self._publication.is_connected else "the archive is gone"

    def _why_lost(self) -> str:
        """Why a session is not connected. At first it may only be that nothing subscribes to its requests any more."""
        return self._loss() or "the archive is gone"

    @property
    def _is_local(self) -> bool:
        """Whether the archive, whose id is known, is on the driver of this client."""
        return self.archive_id != NULL_VALUE and ChannelUri(self._publication.channel).media == "ipc"

    @property
    def _is_archive_here(self) -> bool:
        """Whether the archive of this session still runs on the driver."""
        errors = (one for one in self._client.counters if one.type_id == ERRORS)
        return any(archive_id_of_errors(one.key) == self.archive_id for one in errors)

    def _handshake(self, responses: str) -> Steps[None]:
        """The steps that open the session."""
        supplier = supplier_of(self._config.credentials)
        request = AuthConnectRequest(
            correlation_id=NULL_VALUE,
            response_stream_id=self._config.response_stream_id,
            version=PROTOCOL_VERSION,
            response_channel=responses,
            encoded_credentials=_supplied(supplier.encoded_credentials),
            client_info=f"name={self._config.client_name} version={__version__}",
        )
        answer = yield request
        self.control_session_id = answer.control_session_id
        for _ in range(_CHALLENGES_MAX):
            if not isinstance(answer, Challenge):
                break
            challenge = answer.encoded_challenge
            answer = yield ChallengeResponse(
                control_session_id=self.control_session_id,
                encoded_credentials=_supplied(lambda: supplier.on_challenge(challenge)),  # noqa: B023
            )
        response = _accepted(answer, has_credentials=bool(request.encoded_credentials))
        if response.version >= _ARCHIVE_ID_SINCE:
            self.archive_id = yield from answered(
                ArchiveIdRequest(control_session_id=self.control_session_id)
            )
        yield Unanswered(KeepAliveRequest(control_session_id=self.control_session_id))
        ARCHIVE.info(
            "control session %d with archive_id=%d on %s",
            self.control_session_id,
            self.archive_id,
            self._publication.channel,
        )

    def _nudge(self) -> None:
        """End the archive's pause. Never waits; nothing answers."""
        # Held by a thread that awaits an answer: its request has ended the pause.
        if not self._is_closed and self._lock.acquire(blocking=False):
            try:
                request = KeepAliveRequest(control_session_id=self.control_session_id)
                self._publication.offer(encode(request))
            finally:
                self._lock.release()

    # --- what comes unasked ----------------------------------------------------------------------------------------

    def _pass_on(self, message: Answer) -> None:
        if message.control_session_id != self.control_session_id:
            return
        if isinstance(message, RecordingSignalEvent):
            signal = Signal(
                message.signal,
                message.recording_id,
                message.subscription_id,
                message.position,
                message.correlation_id,
            )
            self._signals.put_signal(signal)
        elif isinstance(message, ControlResponse) and message.code is not Response.OK:
            self._signals.put_error(message.correlation_id, refusal_of(message, None))

    def poll(self) -> int:
        """Take signals and late errors, which the archive sends unasked. Never blocks.

        While another thread awaits an answer, that thread takes them, and this returns at once. Does nothing once the
        session is closed.

        Returns:
            How many messages were taken.
        """
        count = 0
        if self._lock.acquire(blocking=False):
            try:
                # Looked at each time: a handler of what was taken may close the session.
                while not self._is_closed and (received := self._subscription.poll_message()) is not None:
                    self._take(received.payload)
                    count += 1
            finally:
                self._lock.release()
        return count

    def take_signals(self) -> list[Signal]:
        """The signals since the last call, oldest first. Never blocks."""
        self.poll()
        return self._signals.take_signals()

    def late_error(self, correlation_id: int) -> ArchiveError | None:
        """The error that came after the answer to a request, or ``None``. Never blocks."""
        self.poll()
        return self._signals.take_error(correlation_id)

    # --- life ------------------------------------------------------------------------------------------------------

    @property
    def client(self) -> Client:
        """The client of the session."""
        return self._client

    @property
    def clock(self) -> Clock:
        """The clock of its client."""
        return self._client.clock

    @property
    def is_connected(self) -> bool:
        """True while the archive is connected."""
        return not self._is_closed and self._publication.is_connected and self._subscription.is_connected

    @property
    def is_closed(self) -> bool:
        """True once this program has closed the session."""
        return self._is_closed

    def close(self) -> None:
        """End the session. Closing again does nothing, nor does closing in a forked child: it is the parent's."""
        if not is_own(self._pid):
            return
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        if self.control_session_id != NULL_VALUE and self._publication.is_connected:
            with contextlib.suppress(Exception):
                self._publication.offer(
                    encode(CloseSessionRequest(control_session_id=self.control_session_id))
                )
        self._publication.close()
        self._subscription.close()
        if self._streams.owns_client:
            self._client.close()
        ARCHIVE.info("control session %d closed", self.control_session_id)

    def __repr__(self) -> str:
        closed = ", closed" if self._is_closed else ""
        return f"{type(self).__name__}(control_session_id={self.control_session_id}{closed})"


def no_archive(publication: ExclusivePublication) -> str:
    """The error when nothing subscribes to requests, with advice."""
    return (
        f"no archive takes requests on {publication.channel} stream {publication.stream_id}: start one, with "
        "`headrace archive` or headrace.ArchivingMediaDriver, or name the channel and stream of one that runs"
    )


def look_s(exchange: Exchange[Any]) -> float:
    """How long an owner may wait before it checks an exchange again, in seconds."""
    left_s = exchange.deadline.left_s()
    return LOOK_INTERVAL_S if left_s is None else min(left_s, LOOK_INTERVAL_S)


def _supplied(supply: Callable[[], object]) -> bytes:
    """The result of a supplier of credentials. Its exception may have a secret in its text, so it is only the cause."""
    try:
        credentials = supply()
    except HeadraceError:
        raise
    except Exception as failure:
        text = f"the supplier of credentials failed: {described(failure)}"
        raise AuthenticationError(text) from failure
    if not isinstance(credentials, bytes):
        raise AuthenticationError(f"the supplier of credentials must return bytes: {discarded(credentials)}")
    return credentials


def _accepted(answer: Answer, *, has_credentials: bool) -> ControlResponse:
    """The answer that opens the session."""
    if not isinstance(answer, ControlResponse):
        raise AuthenticationError(f"the archive answered a connect request with {type(answer).__name__}")
    if answer.code is Response.OK:
        return answer
    refusal = refusal_of(answer, None)
    if refusal.code != ErrorCode.AUTHENTICATION_REJECTED:
        raise refusal
    advice = (
        "the archive does not accept these credentials="
        if has_credentials
        else "the archive requires credentials: give credentials="
    )
    text = f"{refusal}: {advice}"
    raise AuthenticationError(text, refusal.code, refusal.code_name, None, refusal.correlation_id)
