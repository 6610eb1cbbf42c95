"""One client's session with the archive.

Its states: ``states.py``. While AUTHENTICATED or REJECTED the session repeats the answer to the connect request,
because a client may have missed it. It ends when the client has taken no message for the connect time-out.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from headrace._base.exceptions import HeadraceError
from headrace._base.results import OfferResult
from headrace._base.states import Life
from headrace.archive.protocol.answers import Challenge, ControlResponse, Ping, RecordingSignalEvent
from headrace.archive.protocol.codes import ErrorCode, RecordingSignal, Response
from headrace.archive.protocol.messages import PROTOCOL_VERSION, correlation_id_of, encode
from headrace.archive.server.states import CONTROL_SESSION, SessionState
from headrace.security import authentication

if TYPE_CHECKING:
    from headrace.archive.server.log import ArchiveLog
    from headrace.client import Counter, ExclusivePublication, Image, Pending
    from headrace.clock import Clock
    from headrace.security.verdicts import PendingVerdict, Verdicts

__all__ = ["ControlSession", "Listing", "Refusal", "SessionState"]

RESEND_INTERVAL_NS = 200_000_000
_SEND_ATTEMPTS = 3
_FINAL = (OfferResult.NOT_CONNECTED, OfferResult.CLOSED, OfferResult.MAX_POSITION_EXCEEDED)
_DRAIN_LIMIT = 16
_TEXT_MAX = 4096
_ENDED = (SessionState.CLOSED, SessionState.ABORTED)
_DECIDED = (SessionState.AUTHENTICATED, SessionState.REJECTED)
_LATE = {
    SessionState.CONNECTED: "the authenticator did not decide",
    SessionState.CHALLENGED: "the challenge was not answered, or the authenticator did not decide,",
    SessionState.REJECTED: "the client was refused and did not leave",
}
# Answers that wait for a client; one that asks on and on without reading what it is told is given up.
_QUEUE_MAX = 4096


class Listing(Protocol):
    """An answer of several messages, which a session sends as its client makes room."""

    def do_work(self, session: ControlSession) -> int:
        """Send until the session refuses; clears ``session.listing`` after the last message."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a client is refused: the number and the text of the answer to its connect request."""

    relevant_id: int
    text: str


_CREDENTIALS_LENGTH_MAX = 64 * 1024
_AUTHENTICATION_REJECTED = Refusal(int(ErrorCode.AUTHENTICATION_REJECTED), "authentication rejected")


def _bounded(credentials: bytes) -> bytes | Refusal:
    """The credentials, or a refusal if they are too long to be kept."""
    return credentials if len(credentials) <= _CREDENTIALS_LENGTH_MAX else _AUTHENTICATION_REJECTED


class ControlSession:
    """A client's session, and the publication to it."""

    def __init__(
        self,
        session_id: int,
        correlation_id: int,
        image: Image,
        publication: Pending[ExclusivePublication],
        counter: Pending[Counter],
        clock: Clock,
        connect_timeout_ns: int,
        liveness_interval_ns: int,
        log: ArchiveLog,
        verdicts: Verdicts,
        credentials: bytes | Refusal,
    ) -> None:
        """`credentials` are what the client sent, or the reason to refuse it."""
        self.session_id = session_id
        self.image = image
        self.life = Life(CONTROL_SESSION)
        self.listing: Listing | None = None
        self.end_reason = ""
        self.is_revoked = False
        """Whether it was ended because its client is not accepted any more."""
        self._accepted = authentication.Accepted()
        self._connect_correlation_id = correlation_id
        self._pending_publication = publication
        self._pending_counter = counter
        self._publication: ExclusivePublication | None = None
        self._counter: Counter | None = None
        self._clock = clock
        self._connect_timeout_ns = connect_timeout_ns
        self._liveness_interval_ns = liveness_interval_ns
        self._log = log
        self._verdicts = verdicts
        self._credentials = credentials if isinstance(credentials, Refusal) else _bounded(credentials)
        self._pending_verdict: PendingVerdict | None = None
        # The challenge that the client must respond to, and whether it was sent.
        self._challenge: authentication.Challenge | None = None
        self._is_challenge_sent = False
        self._refusal: Refusal | None = None
        self._queue: deque[bytes] = deque()
        now_ns = clock.monotonic_ns()
        self._deadline_ns: int | None = now_ns + connect_timeout_ns
        self._next_resend_ns = now_ns
        self._next_ping_ns = now_ns + liveness_interval_ns

    @property
    def state(self) -> SessionState:
        """See :data:`headrace.archive.server.states.CONTROL_SESSION`."""
        return self.life.state

    @property
    def is_done(self) -> bool:
        """True when the session has ended and can be closed."""
        return self.state in _ENDED

    @property
    def is_authenticated(self) -> bool:
        """Whether the authenticator has accepted the client."""
        return self.state in (SessionState.AUTHENTICATED, SessionState.ACTIVE)

    @property
    def principal(self) -> bytes:
        """The client's principal, once it is authenticated."""
        return self._accepted.principal

    def activate(self) -> None:
        """Note a request of the client, which therefore knows that it is connected."""
        if self.state is SessionState.AUTHENTICATED:
            self.life.enter(SessionState.ACTIVE, "its first request came")
            self._deadline_ns = None
            self._next_ping_ns = self._clock.monotonic_ns() + self._liveness_interval_ns

    def abort(self, reason: str) -> None:
        """End the session of a client that cannot be served any longer."""
        self._end(SessionState.ABORTED, reason)

    def leave(self, how: str) -> None:
        """End the session of a client that has left, without a warning."""
        self._end(SessionState.CLOSED, how)

    def _end(self, how: SessionState, reason: str) -> None:
        if not self.is_done:
            self.life.enter(how, reason, is_fault=how is SessionState.ABORTED)
            self.end_reason = reason
            if self._pending_verdict is not None:
                self._pending_verdict.cancel()

    def do_work(self) -> int:
        """One turn: repeat, drain, ping, time out."""
        now_ns = self._clock.monotonic_ns()
        work_count = 0
        if self.state is SessionState.INIT:
            work_count += self._init(now_ns)
        if self.state is SessionState.CONNECTING and self._is_heard:
            self._begin_authentication()
            work_count += 1
        if self.state in (SessionState.CONNECTED, SessionState.CHALLENGED):
            work_count += self._authenticate(now_ns)
        if self.state in _DECIDED and now_ns >= self._next_resend_ns:
            self._next_resend_ns = now_ns + RESEND_INTERVAL_NS
            self._answer_connect()
            work_count += 1
        if self.state is SessionState.ACTIVE:
            work_count += self._serve(now_ns)
        if self._deadline_ns is not None and now_ns >= self._deadline_ns:
            what = _LATE.get(self.state, "the client did not read the answers")
            self.abort(f"{what} within {self._connect_timeout_ns} ns")
        return work_count

    def _init(self, now_ns: int) -> int:
        try:
            self._publication = self._publication or self._pending_publication.poll()
            self._counter = self._counter or self._pending_counter.poll()
        except HeadraceError as refusal:
            self.abort(f"cannot answer the client: {refusal}")
            return 1
        if self._publication is None or self._counter is None:
            return 0
        self._counter.value = self.session_id
        self._counter.set_reference_id(self._publication.registration_id)
        self.life.enter(SessionState.CONNECTING, "its stream and counter were added")
        self._deadline_ns = now_ns + self._connect_timeout_ns
        return 1

    @property
    def _is_heard(self) -> bool:
        return self._publication is not None and self._publication.is_connected

    def _begin_authentication(self) -> None:
        credentials, self._credentials = self._credentials, b""
        if isinstance(credentials, Refusal):
            self._reject(credentials)
        else:
            self.life.enter(SessionState.CONNECTED, "the client subscribed")
            self._pending_verdict = self._verdicts.on_connect(credentials)

    def on_challenge_response(self, correlation_id: int, response: bytes) -> bool:
        """Take the client's response to a challenge; false if it was not challenged."""
        challenge = self._challenge
        if self.state is not SessionState.CHALLENGED or challenge is None or not self._is_challenge_sent:
            return False
        self._challenge = None
        self._connect_correlation_id = correlation_id
        bounded = _bounded(response)
        if isinstance(bounded, Refusal):
            self._reject(bounded)
        else:
            self._pending_verdict = self._verdicts.on_response(challenge, bounded)
        return True

    def _authenticate(self, now_ns: int) -> int:
        pending = self._pending_verdict
        is_late = self._deadline_ns is not None and now_ns >= self._deadline_ns
        verdict = None if pending is None else pending.verdict if is_late else pending.poll()
        if pending is not None and verdict is not None:
            self._pending_verdict = None
            if pending.failure:
                which = f"control session {self.session_id}"
                self._log.error(f"the authenticator failed: {pending.failure}", None, which)
            if isinstance(verdict, authentication.Accepted):
                self._accepted = verdict
                self.life.enter(SessionState.AUTHENTICATED, "the authenticator accepted the client")
                # The client is now to send its first request.
                self._deadline_ns = now_ns + self._connect_timeout_ns
            elif isinstance(verdict, authentication.Rejected):
                self._reject(_AUTHENTICATION_REJECTED)
            else:
                self._challenge, self._is_challenge_sent = verdict, False
        if self._challenge is not None and not self._is_challenge_sent:
            self._send_challenge(self._challenge)
        return int(verdict is not None)

    def _send_challenge(self, challenge: authentication.Challenge) -> None:
        message = Challenge(
            control_session_id=self.session_id,
            correlation_id=self._connect_correlation_id,
            encoded_challenge=challenge.challenge,
            version=PROTOCOL_VERSION,
        )
        self._is_challenge_sent = self._offer(encode(message))
        if self._is_challenge_sent and self.state is SessionState.CONNECTED:
            self.life.enter(SessionState.CHALLENGED, "the authenticator asks the client to prove who it is")

    def _reject(self, refusal: Refusal) -> None:
        self._refusal = refusal
        self._log.warning("a client was refused", f"control session {self.session_id}: {refusal.text}")
        self.life.enter(SessionState.REJECTED, refusal.text, is_fault=True)

    def _answer_connect(self) -> None:
        correlation_id, refusal = self._connect_correlation_id, self._refusal
        if refusal is not None:
            self._offer(self._response(correlation_id, refusal.relevant_id, Response.ERROR, refusal.text))
        else:
            self._offer(self._response(correlation_id, self.session_id, Response.OK, ""))

    def _serve(self, now_ns: int) -> int:
        work_count = 0
        while self._queue and work_count < _DRAIN_LIMIT and self._offer(self._queue[0]):
            self._queue.popleft()
            work_count += 1
        if now_ns >= self._next_ping_ns:
            self._next_ping_ns = now_ns + self._liveness_interval_ns
            self._offer(encode(Ping(control_session_id=self.session_id)))
            self._pending_verdict = self._pending_verdict or self._verdicts.recheck(self._accepted)
        if self._pending_verdict is not None:
            self._hear_recheck(self._pending_verdict)
        if self.state is SessionState.ACTIVE and not self._is_heard:
            self.leave("its response stream is gone")
        if self.listing is not None and not self._queue:
            work_count += self.listing.do_work(self)
        return work_count

    def _hear_recheck(self, pending: PendingVerdict) -> None:
        verdict = pending.poll()
        if verdict is None:
            return
        self._pending_verdict = None
        if pending.failure:
            # Of a file that is damaged no one is to lose a session.
            self._log.warning(
                f"a client stays accepted, because it cannot be checked again: {pending.failure}"
            )
        elif isinstance(verdict, authentication.Rejected):
            self.is_revoked = True
            reason = verdict.reason or "the client is not accepted any more"
            self._log.warning(f"a session ends: {reason}", f"control session {self.session_id}")
            self.abort(reason)

    def _response(self, correlation_id: int, relevant_id: int, code: Response, text: str) -> bytes:
        response = ControlResponse(
            control_session_id=self.session_id,
            correlation_id=correlation_id,
            relevant_id=relevant_id,
            code=code,
            version=PROTOCOL_VERSION,
            error_message=text.encode("ascii", "replace").decode("ascii")[:_TEXT_MAX],
        )
        return encode(response)

    def send_ok(self, correlation_id: int, relevant_id: int = 0) -> None:
        """Answer a request with a number."""
        self._send(self._response(correlation_id, relevant_id, Response.OK, ""))

    def send_error(self, correlation_id: int, code: ErrorCode, text: str) -> None:
        """Refuse a request."""
        self._send(self._response(correlation_id, int(code), Response.ERROR, text))

    def send_unknown(self, correlation_id: int, relevant_id: int, code: Response) -> None:
        """Answer a request for something that does not exist, or end a listing."""
        self._send(self._response(correlation_id, relevant_id, code, ""))

    def send_signal(
        self,
        correlation_id: int,
        recording_id: int,
        subscription_id: int,
        position: int,
        signal: RecordingSignal,
    ) -> None:
        """Send the client a signal of a recording."""
        event = RecordingSignalEvent(
            control_session_id=self.session_id,
            correlation_id=correlation_id,
            recording_id=recording_id,
            subscription_id=subscription_id,
            position=position,
            signal=signal,
        )
        self._send(encode(event))

    def send(self, message: bytes) -> None:
        """Send an answer of another kind."""
        self._send(message)

    def try_send(self, message: bytes) -> bool:
        """Send without queueing, for a listing, which can wait. False when there is no room."""
        return not self._queue and self._offer(message)

    def _send(self, message: bytes) -> None:
        if self.is_done:
            return
        if self._queue or not self._offer(message):
            self._queue.append(message)
            if len(self._queue) > _QUEUE_MAX:
                self.abort(f"the client left {_QUEUE_MAX} answers unread")

    def _offer(self, message: bytes) -> bool:
        assert self._publication is not None, "nothing is sent before it was added"
        if len(message) > self._publication.max_message_length:
            message = self._too_long(message, self._publication.max_message_length)
        for _ in range(_SEND_ATTEMPTS):
            result = self._publication.offer(message)
            if not isinstance(result, OfferResult):
                if self.state is SessionState.ACTIVE:
                    self._deadline_ns = None
                return True
            if result in _FINAL:
                self._lose(result)
                return False
        if self._deadline_ns is None:
            self._deadline_ns = self._clock.monotonic_ns() + self._connect_timeout_ns
        return False

    def _lose(self, result: OfferResult) -> None:
        """Note that the client can no longer be reached."""
        if result is OfferResult.NOT_CONNECTED:
            self.leave("its response stream is gone")
        else:
            self.abort(f"the response stream cannot be written to: {result!r}")

    def _too_long(self, message: bytes, longest: int) -> bytes:
        text = (
            f"the answer has length={len(message)}, above max_message_length={longest} of the response channel: "
            "connect with a longer term"
        )
        return self._response(correlation_id_of(message), int(ErrorCode.GENERIC), Response.ERROR, text)

    def close(self) -> None:
        """Close the publication to the client."""
        self.leave("the archive closes")
        if self._publication is None:
            self._pending_publication.cancel()
        else:
            self._publication.revoke()
            self._publication.close()
        if self._counter is None:
            self._pending_counter.cancel()
        else:
            self._counter.close()
        self._queue.clear()
        self.listing = None
