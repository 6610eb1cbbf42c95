"""Clients that connect: from a request to a session in the log, or to a refusal. Cluster specification 3.4."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._exceptions import ConfigError, RegistrationError
from headrace.cluster.member.egress import PROTOCOL_VERSION, check_answers, egress_channel
from headrace.cluster.member.sessions import Session, SessionState
from headrace.cluster.protocol.codes import EventCode
from headrace.positions import version_text
from headrace.security.authentication import Accepted, Challenge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.client import Header, Image
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.egress import Egress
    from headrace.cluster.member.log_writer import LogWriter
    from headrace.cluster.protocol.session import ChallengeResponse, SessionConnectRequest
    from headrace.security.verdicts import Verdicts

__all__ = ["Connecting"]

_REJECTED = "session failed authentication"
_NO_ANSWERS = "a client asks for answers where none may go, or on a channel that is none"
_PRINCIPAL_MAX = 4096
# Requests of which each has a publication until it is answered: a stranger must not fill the driver with them.
_WAITING_MAX = 64


class Connecting:
    """Sessions that are not in the log yet."""

    def __init__(self, context: Context, egress: Egress, verdicts: Verdicts) -> None:
        self._context = context
        self._egress = egress
        self._verdicts = verdicts
        self._pending: list[Session] = []

    def __len__(self) -> int:
        return len(self._pending)

    def request(
        self, request: SessionConnectRequest, header: Header, image: Image | None, addresses: Iterable[str]
    ) -> None:
        """A client asks for a session. The addresses are those where the member hears clients."""
        context = self._context
        config, sessions = context.config, context.applied.sessions
        if len(self._pending) >= config.max_sessions + _WAITING_MAX:
            context.log.warning("more clients ask to connect at once than are answered")
            return
        session = Session(
            session_id=sessions.next_id,
            correlation_id=request.correlation_id,
            response_stream_id=request.response_stream_id,
            response_channel=request.response_channel,
            state=SessionState.CONNECTING,
            activity_ns=context.now_ns,
        )
        sessions.next_id += 1
        try:
            session.response_channel = egress_channel(
                config.egress_channel, request.response_channel, config.ingress_ipc_allowed
            )
            check_answers(config, session.response_channel, session.response_stream_id, addresses)
            session.requested = context.client.request_publication(
                session.response_channel, session.response_stream_id
            )
        except ConfigError as wrong:
            context.log.warning(_NO_ANSWERS, str(wrong))
            return
        if request.version >> 16 != PROTOCOL_VERSION >> 16:
            own = version_text(PROTOCOL_VERSION)
            version = f"invalid client version {version_text(request.version)}"
            self._refuse(
                session, f"{version}, cluster is {own}", f"invalid client version, cluster is {own}", version
            )
        elif self._hopeful_count() + len(sessions) >= config.max_sessions:
            self._refuse(session, "concurrent session limit", "concurrent session limit")
        else:
            session.ingress_image_id = None if image is None else image.correlation_id
            session.verdict = self._verdicts.on_connect(request.encoded_credentials)
            source = "" if image is None else image.source_identity
            origin = f"sourceIdentity={source} sessionId={header.session_id}"
            session.requested_counter = context.counters.of_session(
                session.session_id, request.client_info, origin
            )
        self._pending.append(session)

    def _hopeful_count(self) -> int:
        """Of those that are to connect, how many may; one that is refused only waits to be told."""
        return sum(session.state is not SessionState.REJECTED for session in self._pending)

    def _refuse(self, session: Session, detail: str, text: str, chosen: str = "") -> None:
        """Refuse a client with a detail. The error log, which keeps each text, gets one without what clients choose."""
        context = self._context
        session.state, session.event_code, session.detail = SessionState.REJECTED, EventCode.ERROR, detail
        context.log.warning(
            f"{EventCode.ERROR.name} {text}, clusterMemberId={context.config.member_id}",
            f"id={session.session_id} {chosen}".rstrip(),
        )

    def challenge_response(self, response: ChallengeResponse) -> None:
        """A client answers a challenge."""
        for session in self._pending:
            is_asked = session.state is SessionState.CHALLENGED and session.is_challenge_sent
            if is_asked and session.session_id == response.cluster_session_id and session.verdict is None:
                session.correlation_id = response.correlation_id
                session.activity_ns = self._context.now_ns
                session.verdict = self._verdicts.on_response(session.challenge, response.encoded_credentials)

    def do_work(self, writer: LogWriter) -> int:
        """A step of each of them."""
        before = len(self._pending)
        self._pending = [session for session in self._pending if self._step(session, writer)]
        return before - len(self._pending)

    def _step(self, session: Session, writer: LogWriter) -> bool:
        """Whether the session is still to connect after its next step."""
        context = self._context
        if not self._is_connected(session):
            return session.state is not SessionState.CLOSED
        self._judge(session)
        if session.state is SessionState.AUTHENTICATED:
            return not self._opened(session, writer)
        if session.state is SessionState.REJECTED:
            term_id = context.leadership_term_id
            if self._egress.event(session, term_id, session.event_code, session.detail):
                self._drop(session)
                return False
        return True

    def _is_connected(self, session: Session) -> bool:
        """Whether the client hears; one that does not for as long as the time-out of sessions is dropped."""
        context = self._context
        if context.now_ns - session.activity_ns > context.config.session_timeout_ns:
            context.counters.timed_out_clients.get_and_add(1)
            self._drop(session)
            return False
        try:
            session.take_publication()
        except RegistrationError as refusal:
            context.log.warning("a client asks for answers on a channel that is refused", str(refusal))
            self._drop(session)
            return False
        return session.publication is not None and session.publication.is_connected

    def _judge(self, session: Session) -> None:
        """Take the verdict of the authenticator, if there is one by now."""
        if session.state is SessionState.CHALLENGED and not session.is_challenge_sent:
            session.is_challenge_sent = self._egress.challenge(session, session.challenge.challenge)
        verdict = None if session.verdict is None else session.verdict.poll()
        if session.verdict is None or verdict is None or session.state is SessionState.REJECTED:
            return
        failure, session.verdict = session.verdict.failure, None
        if failure:
            self._context.log.error("the authenticator failed, and the client is rejected", None, failure)
        if isinstance(verdict, Accepted) and len(verdict.principal) <= _PRINCIPAL_MAX:
            session.principal, session.state = verdict.principal, SessionState.AUTHENTICATED
        elif isinstance(verdict, Challenge):
            session.challenge, session.state = verdict, SessionState.CHALLENGED
            session.is_challenge_sent = self._egress.challenge(session, verdict.challenge)
        else:
            session.state, session.detail = SessionState.REJECTED, _REJECTED
            session.event_code = EventCode.AUTHENTICATION_REJECTED

    def _opened(self, session: Session, writer: LogWriter) -> bool:
        """Put the session into the log; the client is told once that is agreed upon."""
        context = self._context
        position = writer.session_open(session, context.now)
        if position is None:
            return False
        session.activity_ns = context.now_ns
        context.applied.sessions.opened(session, position)
        session.take_counter(context.log)
        session.is_open_event_pending = True
        return True

    @staticmethod
    def _drop(session: Session) -> None:
        session.state = SessionState.CLOSED
        session.disconnect()

    def close_all(self, leadership_term_id: int, detail: str) -> None:
        """Tell all of them that nothing comes of it."""
        for session in self._pending:
            self._egress.event(session, leadership_term_id, EventCode.CLOSED, detail)
            self._drop(session)
        self._pending.clear()
