"""Sessions of before a start, whose clients are told that they are over.

A start closes them all, since the streams of their clients ended with the process. A client over UDP would not notice
for as long as the image of the member's answers lives, and then wait for a new leader. Aeron's members do not tell
them.
"""

from __future__ import annotations

import contextlib
from collections import deque
from typing import TYPE_CHECKING

from headrace._base.exceptions import ConfigError, RegistrationError
from headrace.cluster.member.sessions import Session
from headrace.cluster.member.states import SessionState
from headrace.cluster.protocol.codes import CloseReason, EventCode
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.egress import Egress

__all__ = ["SessionCloses"]

# Each has a publication while it is tried: they must not fill the driver.
_AT_ONCE_MAX = 64
# A client that is there connects within a few round trips; most are gone as well.
_TRY_NS = 2_000_000_000


class SessionCloses:
    """Tells them, some at a time, until the time-out of sessions is over."""

    def __init__(self, context: Context, egress: Egress) -> None:
        self._context = context
        self._egress = egress
        self._waiting: deque[Session] = deque()
        self._tried: list[Session] = []
        self._end_ns = 0
        self._term_id = NULL_VALUE

    def add(self, session: Session) -> None:
        """A session that is over, of a client that may be there."""
        self._end_ns = self._context.now_ns + self._context.config.session_timeout_ns
        # A client believes a word of the term that it knows.
        self._term_id = self._context.term_id_before
        self._waiting.append(
            Session(
                session_id=session.session_id,
                correlation_id=session.correlation_id,
                response_stream_id=session.response_stream_id,
                response_channel=session.response_channel,
            ).go_on(SessionState.CLOSED, self._context.events)
        )

    def do_work(self) -> int:
        """A step of each; gives how many were told."""
        if not self._waiting and not self._tried:
            return 0
        if self._context.now_ns >= self._end_ns:
            self._waiting.clear()
        while self._waiting and len(self._tried) < _AT_ONCE_MAX:
            self._tried.append(self._begun(self._waiting.popleft()))
        told = [session for session in self._tried if self._is_told(session)]
        over = [session for session in self._tried if session in told or self._is_in_vain(session)]
        for session in over:
            session.disconnect()
            self._tried.remove(session)
        return len(told)

    def _begun(self, session: Session) -> Session:
        session.activity_ns = self._context.now_ns
        # A member of another make may have let in a client with a channel that is none here.
        with contextlib.suppress(ConfigError):
            session.requested = self._context.client.request_publication(
                session.response_channel, session.response_stream_id
            )
        return session

    def _is_told(self, session: Session) -> bool:
        # No client hears on a channel that the driver refuses.
        with contextlib.suppress(RegistrationError):
            session.take_publication()
        return self._egress.event(session, self._term_id, EventCode.CLOSED, CloseReason.TIMEOUT.name)

    def _is_in_vain(self, session: Session) -> bool:
        is_refused = session.requested is None and session.publication is None
        return is_refused or self._context.now_ns - session.activity_ns >= _TRY_NS
