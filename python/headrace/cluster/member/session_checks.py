"""Sessions that are in the log: which are silent, which close, which are owed an event. Cluster specification 3.5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._base.exceptions import RegistrationError
from headrace.cluster.common.members import ingress_endpoints
from headrace.cluster.member.session_closes import SessionCloses
from headrace.cluster.member.states import SessionState
from headrace.cluster.protocol.codes import CloseReason, EventCode
from headrace.cluster.protocol.event_details import announcement

if TYPE_CHECKING:
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.egress import Egress
    from headrace.cluster.member.log_writer import LogWriter
    from headrace.cluster.member.sessions import Session

__all__ = ["SessionChecks"]


class SessionChecks:
    """Looks after the sessions of a leader."""

    def __init__(self, context: Context, egress: Egress) -> None:
        self._context = context
        self._egress = egress
        self._session_closes = SessionCloses(context, egress)

    def take_over(self, *, is_startup: bool) -> None:
        """The member begins to lead. A start ends all sessions, and says so; else clients hear who leads."""
        context = self._context
        for session in context.applied.sessions:
            if not session.is_open:
                continue
            if is_startup:
                why = "the member starts, and the streams of its clients have ended"
                context.applied.sessions.close(session, CloseReason.TIMEOUT, why)
                self._session_closes.add(session)
                continue
            session.requested = context.client.request_publication(
                session.response_channel, session.response_stream_id
            )
            session.is_inherited = True
            session.requested_counter = context.counters.of_session(
                session.session_id, session.response_channel
            )
            session.activity_ns = context.now_ns
            session.is_new_leader_event_pending = True

    def do_work(self, writer: LogWriter) -> int:
        """A look at each of them."""
        self._context.applied.sessions.note_heard(self._context.now_ns)
        told_count = self._session_closes.do_work()
        return told_count + sum(self._step(session, writer) for session in self._context.applied.sessions)

    def _step(self, session: Session, writer: LogWriter) -> int:
        context = self._context
        self._connect(session)
        if session.is_open and context.now_ns - session.activity_ns > context.config.session_timeout_ns:
            why = "nothing heard for the session time-out"
            context.applied.sessions.close(session, CloseReason.TIMEOUT, why, is_fault=True)
            context.counters.timed_out_clients.get_and_add(1)
        if session.state is SessionState.CLOSING:
            return self._closed(session, writer)
        if session.is_open_event_pending:
            self._tell_open(session, writer)
        elif session.is_new_leader_event_pending:
            self._tell_new_leader(session)
        return 0

    def _tell_new_leader(self, session: Session) -> None:
        context = self._context
        endpoints = ingress_endpoints(context.members.current)
        is_told = self._egress.new_leader(session, context.leadership_term_id, endpoints)
        session.is_new_leader_event_pending = not is_told

    def _tell_open(self, session: Session, writer: LogWriter) -> None:
        context = self._context
        # Not before: after a crash another client may be given the id of a session that is not in the log.
        if context.commit_position < session.opened_log_position:
            return
        # One that an election came before: its stream may have lost what was sent meanwhile. It is told the term
        # before, so that the event of the new leader follows as news, with which a client takes a new stream.
        term_id = context.leadership_term_id
        told_id = term_id - 1 if session.is_new_leader_event_pending else term_id
        text = announcement(writer.max_message_length)
        session.is_open_event_pending = not self._egress.event(session, told_id, EventCode.OK, text)

    def _connect(self, session: Session) -> None:
        """Take what the driver has made for the session."""
        try:
            session.take_publication()
        except RegistrationError as refusal:
            # The session has no answers from here until it times out.
            self._context.log.warning("the channel of a client's answers is refused", str(refusal))
        session.take_counter(self._context.log)

    def _closed(self, session: Session, writer: LogWriter) -> int:
        context, reason = self._context, session.close_reason
        assert reason is not None, "a session closes for a reason"
        position = writer.session_close(session.session_id, context.now, reason)
        if position is None:
            return 0
        if session.is_open_event_pending:
            # A service has closed it as soon as it heard of it; who waits to be let in does not listen for its end.
            self._tell_open(session, writer)
        if session.is_new_leader_event_pending:
            # A client believes a word of the term that it knows.
            self._tell_new_leader(session)
        self._egress.event(session, context.leadership_term_id, EventCode.CLOSED, reason.name)
        context.applied.sessions.closed(session, position)
        session.disconnect()
        return 1
