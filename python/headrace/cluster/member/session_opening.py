"""Clients that connect: from a request to a session in the log, or to a refusal. Cluster specification 3.4."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._base.exceptions import ConfigError
from headrace.cluster.member.egress import PROTOCOL_VERSION, egress_channel
from headrace.cluster.member.half_open_sessions import NO_ANSWERS, HalfOpenSessions
from headrace.cluster.member.log_writer import EntryTooLongError
from headrace.cluster.member.sessions import Session
from headrace.cluster.member.states import SessionState
from headrace.cluster.protocol.codes import EventCode
from headrace.positions import version_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headrace.client import Publication
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.egress import Egress
    from headrace.cluster.member.log_writer import LogWriter
    from headrace.cluster.member.sessions import IngressStream
    from headrace.cluster.protocol.session import SessionConnectRequest
    from headrace.security.verdicts import Verdicts

    Hears = Callable[[Publication], bool]

__all__ = ["SessionOpening"]

_LIMIT = "concurrent session limit"


class SessionOpening(HalfOpenSessions):
    """Clients that connect to the leader, until the log has their sessions."""

    def __init__(self, context: Context, egress: Egress, verdicts: Verdicts) -> None:
        super().__init__(context, egress, verdicts, context.config.ingress_stream_id)
        self._writer: LogWriter | None = None
        self._ingress_hears: Hears = lambda _: False

    def request(
        self,
        request: SessionConnectRequest,
        stream: IngressStream | None,
        origin: str,
        addresses: Iterable[str],
    ) -> None:
        """A client asks for a session.

        Args:
            request: What it says.
            stream: Where it says so.
            origin: Who that is, for operators.
            addresses: Where the member hears clients.
        """
        context = self._context
        config, sessions = context.config, context.applied.sessions
        session = Session(
            session_id=sessions.next_id,
            correlation_id=request.correlation_id,
            response_stream_id=request.response_stream_id,
            response_channel=request.response_channel,
            activity_ns=context.now_ns,
            ingress=stream,
        )
        sessions.next_id += 1
        try:
            session.response_channel = egress_channel(
                config.egress_channel, request.response_channel, config.ingress_ipc_allowed
            )
        except ConfigError as wrong:
            context.log.warning(NO_ANSWERS, str(wrong))
            return
        if not self._request_publication(session, addresses):
            return
        session.life.begin(
            context.events,
            f"a client asks to connect: {origin}",
            session.session_id,
            stream_id=session.response_stream_id,
            session_id=None if stream is None else stream.session_id,
            detail=request.client_info or session.response_channel,
        )
        if request.version >> 16 != PROTOCOL_VERSION >> 16:
            self._refuse_version(session, request.version, f"cluster is {version_text(PROTOCOL_VERSION)}")
        elif len(sessions) >= config.max_sessions:
            self._refuse(session, _LIMIT, _LIMIT)
        else:
            session.verdict = self._verdicts.on_connect(request.encoded_credentials)
            session.requested_counter = context.counters.of_session(
                session.session_id, request.client_info, origin
            )
        self._add(session)

    def stream_lost(self, image_id: int) -> None:
        """A client's stream ended: nothing that it could send would count. Told by the driver, within a handler."""
        for session in self._pending:
            # One that a step has opened or dropped just now is not to connect any more.
            is_half_open = session.state not in (SessionState.OPEN, SessionState.CLOSED)
            if is_half_open and session.ingress is not None and session.ingress.image_id == image_id:
                session.life.enter(SessionState.CLOSING, "the stream of its client ended or has a gap")

    def do_work(self, writer: LogWriter, hears: Hears) -> int:
        """A step of each of them.

        Args:
            writer: Opens sessions in the log.
            hears: Whether the member takes what one of its own publications sends for a client's.
        """
        self._writer, self._ingress_hears = writer, hears
        return self._step_all()

    def _hears(self, publication: Publication) -> bool:
        return self._ingress_hears(publication)

    def _admitted(self, session: Session) -> bool:
        """Put the session into the log; the client is told once that is agreed upon."""
        context, writer = self._context, self._writer
        assert writer is not None, "sessions are stepped with the writer of the log"
        if len(context.applied.sessions) >= context.config.max_sessions:
            self._refuse(session, _LIMIT, _LIMIT)
            return False
        try:
            position = writer.session_open(session, context.now)
        except EntryTooLongError as wrong:
            length, longest = wrong.args
            text = "the entry that would open the session is too long for the log"
            self._refuse(
                session,
                f"{text}: {length} bytes with the response channel and the principal, and {longest} is the most",
                text,
            )
            return False
        if position is None:
            return False
        session.activity_ns = context.now_ns
        context.applied.sessions.opened(session, position)
        session.take_counter(context.log)
        session.is_open_event_pending = True
        return True

    def close_all(self, leadership_term_id: int, detail: str) -> None:
        """Tell all of them that nothing comes of it."""
        for session in self._pending:
            self._egress.event(session, leadership_term_id, EventCode.CLOSED, detail)
            self._drop(session, detail)
        self._pending.clear()
