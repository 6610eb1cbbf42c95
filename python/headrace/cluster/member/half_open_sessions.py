"""Sessions whose clients have not been let in: they wait for a stream of answers and for the authenticator."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from typing import TYPE_CHECKING

from headrace._base.exceptions import ConfigError, RegistrationError
from headrace.cluster.member.egress import check_answers
from headrace.cluster.member.states import SessionState
from headrace.cluster.protocol.codes import EventCode
from headrace.positions import version_text
from headrace.security.authentication import Accepted, Challenge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.client import Publication
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.egress import Egress
    from headrace.cluster.member.sessions import IngressStream, Session
    from headrace.cluster.protocol.session import ChallengeResponse
    from headrace.security.verdicts import Verdicts

__all__ = ["NO_ANSWERS", "HalfOpenSessions"]

NO_ANSWERS = "a client asks for answers on a forbidden or an invalid channel"
_REJECTED = "session failed authentication"
_PRINCIPAL_MAX = 4096
# Half-open sessions beyond as many as may be open. Each has a publication: a stranger must not fill the driver.
_HALF_OPEN_MAX = 64


class HalfOpenSessions:
    """Sessions that are not let in yet. They take no place of those that are.

    A verdict is taken before the client hears: where there are too many, one that is accepted stays, and one that has
    not said who it is, or asks again and again, makes room.

    Args:
        context: What the module's parts share.
        egress: Sends to clients.
        verdicts: Of the authenticator.
        stream_id: Where the member hears such requests.
    """

    def __init__(self, context: Context, egress: Egress, verdicts: Verdicts, stream_id: int) -> None:
        self._context = context
        self._egress = egress
        self._verdicts = verdicts
        self._stream_id = stream_id
        self._pending: list[Session] = []

    def __len__(self) -> int:
        return len(self._pending)

    def _request_publication(self, session: Session, addresses: Iterable[str]) -> bool:
        """Ask for the stream of a session's answers; whether they may go where its client wants them.

        Args:
            session: Which.
            addresses: Where the member hears such requests.
        """
        context = self._context
        channel, stream_id = session.response_channel, session.response_stream_id
        try:
            check_answers(context.config, channel, stream_id, addresses)
            session.requested = context.client.request_publication(channel, stream_id)
        except ConfigError as wrong:
            context.log.warning(NO_ANSWERS, str(wrong))
            return False
        return True

    def _add(self, session: Session) -> None:
        self._make_room(session)
        self._pending.append(session)

    def _make_room(self, asking: Session) -> None:
        """Give up a half-open session if there are as many as may be: of those that ask most, the first."""
        if len(self._pending) < self._context.config.max_sessions + _HALF_OPEN_MAX:
            return
        self._context.log.warning("too many clients connect at once: some get no answer")
        counts = Counter(session.ingress for session in (*self._pending, asking))
        given_up = max(
            self._pending,
            key=lambda one: (
                one.state is not SessionState.AUTHENTICATED,
                counts[one.ingress],
                -one.session_id,
            ),
        )
        self._drop(given_up, "more clients ask to connect at once than are answered")
        self._pending.remove(given_up)

    def _refuse_version(self, session: Session, version: int, own: str) -> None:
        """Refuse a client of another major version; `own` says which one the cluster has."""
        said = f"invalid client version {version_text(version)}"
        self._refuse(session, f"{said}, {own}", f"invalid client version, {own}", said)

    def _refuse(
        self,
        session: Session,
        detail: str,
        text: str,
        chosen: str = "",
        *,
        code: EventCode = EventCode.ERROR,
    ) -> None:
        """Refuse a client with a detail. The error log, which keeps each text, gets one without what clients choose."""
        context = self._context
        session.event_code, session.detail = code, detail
        session.life.enter(SessionState.REJECTED, detail, is_fault=True)
        context.log.warning(
            f"{code.name} {text}, clusterMemberId={context.config.member_id}",
            f"id={session.session_id} {chosen}".rstrip(),
        )

    def challenge_response(self, response: ChallengeResponse, stream: IngressStream | None) -> None:
        """A client answers a challenge."""
        for session in self._pending:
            is_asked = session.state is SessionState.CHALLENGED and session.is_challenge_sent
            is_its = session.session_id == response.cluster_session_id and session.ingress == stream
            if is_asked and is_its and session.verdict is None:
                session.correlation_id = response.correlation_id
                session.activity_ns = self._context.now_ns
                session.verdict = self._verdicts.on_response(session.challenge, response.encoded_credentials)

    def _step_all(self) -> int:
        """A step of each of them; returns how many are no longer pending."""
        before = len(self._pending)
        self._pending = [session for session in self._pending if self._step(session)]
        return before - len(self._pending)

    def _step(self, session: Session) -> bool:
        """Whether the session is still to connect after its next step."""
        context = self._context
        if session.state is SessionState.CLOSING:
            self._drop(session, "it was not in the log yet")
            return False
        self._judge(session)
        if not self._is_connected(session):
            return session.state is not SessionState.CLOSED
        if session.state is SessionState.CHALLENGED and not session.is_challenge_sent:
            session.is_challenge_sent = self._egress.challenge(session, session.challenge.challenge)
        if session.state is SessionState.AUTHENTICATED:
            return not self._admitted(session)
        if session.state is SessionState.REJECTED:
            term_id = context.leadership_term_id
            leader_id = context.leader_member_id
            if self._egress.event(session, term_id, session.event_code, session.detail, leader_id):
                self._drop(session, "its client was told that it is not served")
                return False
        return True

    def _is_connected(self, session: Session) -> bool:
        """Whether the client hears; one that does not for as long as the time-out of sessions is dropped."""
        context = self._context
        if context.now_ns - session.activity_ns > context.config.session_timeout_ns:
            context.counters.timed_out_clients.get_and_add(1)
            self._drop(session, "nothing heard for the session time-out", is_fault=True)
            return False
        try:
            session.take_publication()
        except RegistrationError as refusal:
            context.log.warning("a client asks for answers on a channel that is refused", str(refusal))
            self._drop(session, f"the channel of its answers is refused: {refusal}", is_fault=True)
            return False
        publication = session.publication
        if publication is None or not publication.is_connected:
            return False
        if session.response_stream_id != self._stream_id:
            return True
        # The member may hear its own answers, whatever the channel calls its address. The driver tells of the image
        # before the publication is connected, so that the member knows it with the next turn.
        was_connected, session.is_connected = session.is_connected, True
        if was_connected and self._hears(publication):
            context.log.warning(
                NO_ANSWERS, f"response_channel={session.response_channel}: the member itself listens there"
            )
            self._drop(session, "the member itself hears on the channel of its answers", is_fault=True)
            return False
        return was_connected

    def _judge(self, session: Session) -> None:
        """Take the verdict of the authenticator, if there is one by now."""
        verdict = None if session.verdict is None else session.verdict.poll()
        if session.verdict is None or verdict is None or session.state is SessionState.REJECTED:
            return
        failure, session.verdict = session.verdict.failure, None
        if failure:
            self._context.log.error("the authenticator failed, and the client is rejected", None, failure)
        if isinstance(verdict, Accepted) and len(verdict.principal) <= _PRINCIPAL_MAX:
            session.principal = verdict.principal
            session.life.enter(SessionState.AUTHENTICATED, "the authenticator accepted the client")
        elif isinstance(verdict, Challenge):
            session.challenge, session.is_challenge_sent = verdict, False
            session.life.enter(
                SessionState.CHALLENGED, "the authenticator asks the client to prove who it is"
            )
        else:
            session.detail, session.event_code = _REJECTED, EventCode.AUTHENTICATION_REJECTED
            session.life.enter(SessionState.REJECTED, _REJECTED, is_fault=True)

    @abstractmethod
    def _hears(self, publication: Publication) -> bool:
        """Whether the member takes what one of its own publications sends for such a request."""

    @abstractmethod
    def _admitted(self, session: Session) -> bool:
        """A step of a session that the authenticator has accepted; whether it is no longer pending."""

    @staticmethod
    def _drop(session: Session, reason: str, *, is_fault: bool = False) -> None:
        session.life.enter(SessionState.CLOSED, reason, is_fault=is_fault)
        session.disconnect()
