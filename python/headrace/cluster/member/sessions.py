"""The sessions of a member: those that connect, and those that the log knows. Cluster specification 3.4, 3.5."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace._base.exceptions import RegistrationError
from headrace._base.states import Life
from headrace.cluster.member.states import CLUSTER_SESSION, SessionState
from headrace.cluster.protocol.codes import CloseReason, EventCode
from headrace.cluster.protocol.log import SessionOpenEvent
from headrace.cluster.protocol.snapshots import ClusterSession as StoredSession
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace._base.states import EventSink
    from headrace.client import Counter, Pending, Publication, Sequencer, Subscription
    from headrace.cluster.common.log import AgentLog
    from headrace.security.verdicts import PendingVerdict

__all__ = ["IngressStream", "Session", "Sessions", "origin_of"]


class IngressStream(NamedTuple):
    """A client's stream, as the member hears it."""

    image_id: int
    """The image; a publisher that comes back has another one."""
    subscription_id: int
    session_id: int

    @classmethod
    def heard(cls, subscription: Subscription | None, session_id: int) -> IngressStream | None:
        """The stream of a message that is handled now; ``None`` once it has ended."""
        image = None if subscription is None else subscription.image_by_session_id(session_id)
        if image is None or subscription is None:
            return None
        return cls(image.correlation_id, subscription.registration_id, image.session_id)


def origin_of(subscription: Subscription | None, session_id: int) -> str:
    """Who sends what is handled now, for operators."""
    image = None if subscription is None else subscription.image_by_session_id(session_id)
    return f"sourceIdentity={'' if image is None else image.source_identity} sessionId={session_id}"


@dataclass(eq=False, slots=True)
class Session:
    """A client of the cluster, at this member.

    Attributes:
        session_id: Its id in the cluster; -1 for one that is sent to the leader.
        correlation_id: Of the client's last request, which answers echo.
        response_stream_id: Where it wants its answers, with the channel.
        response_channel: After the member's template was applied.
        life: How far it is.
        activity_ns: When it was last heard, on the clock that nobody sets.
        principal: Who it is, from the authenticator.
        ingress: The stream on which it connected, and on which alone it is heard: ids of sessions are small numbers
            that anyone can guess. Unset after an election, until its client is heard on the stream to the new leader.
        request: What a backup or a standby asks for, whose session is no client's.
    """

    session_id: int
    correlation_id: int
    response_stream_id: int
    response_channel: str
    activity_ns: int = 0
    principal: bytes = field(default=b"", repr=False)
    opened_log_position: int = NULL_VALUE
    close_reason: CloseReason | None = None
    event_code: EventCode = EventCode.OK
    detail: str = ""
    ingress: IngressStream | None = None
    request: Any = field(default=None, repr=False)
    publication: Publication | None = None
    requested: Pending[Publication] | None = None
    verdict: PendingVerdict | None = None
    challenge: Any = None
    is_challenge_sent: bool = False
    is_connected: bool = False
    is_open_event_pending: bool = False
    is_new_leader_event_pending: bool = False
    counter: Counter | None = None
    requested_counter: Pending[Counter] | None = None
    is_inherited: bool = False
    life: Life[SessionState] = field(default_factory=lambda: Life(CLUSTER_SESSION), repr=False)

    @property
    def state(self) -> SessionState:
        """How far it is."""
        return self.life.state

    def go_on(self, state: SessionState, events: EventSink) -> Session:
        """One that began before this member has it, in a state."""
        self.life.go_on(
            state,
            events,
            self.session_id,
            stream_id=self.response_stream_id,
            detail=self.response_channel,
        )
        return self

    @property
    def is_open(self) -> bool:
        """Whether its messages enter the log."""
        return self.state is SessionState.OPEN

    def take_publication(self) -> None:
        """Take the stream of answers, once the driver has added it.

        Raises:
            RegistrationError: The driver refuses it; then there will be none.
        """
        if self.requested is None:
            return
        try:
            self.publication = self.requested.poll()
        except RegistrationError:
            self.requested = None
            raise
        if self.publication is not None:
            self.requested = None

    def take_counter(self, log: AgentLog) -> None:
        """Take the counter that shows the session to operators, once the driver has made it. Specification 9."""
        if self.requested_counter is None:
            return
        try:
            self.counter = self.requested_counter.poll()
        except RegistrationError as refusal:
            # The driver may have no room for counters, which is no reason to end the member.
            log.warning("the counter that shows a session is refused", str(refusal))
            self.requested_counter = None
            return
        if self.counter is None:
            return
        self.requested_counter = None
        # Of a session of the leader before, nothing more than its label is shown.
        if not self.is_inherited and self.publication is not None:
            self.counter.value = self.session_id
            self.counter.set_reference_id(self.publication.registration_id)

    def disconnect(self) -> None:
        """Give up what it has at the driver."""
        for pending in (self.requested, self.requested_counter):
            if pending is not None:
                pending.cancel()
        for held in (self.publication, self.counter):
            if held is not None:
                held.close()
        self.requested = self.requested_counter = None
        self.publication, self.counter, self.ingress = None, None, None
        if self.verdict is not None:
            self.verdict.cancel()
            self.verdict = None

    def stored(self) -> StoredSession:
        """What a snapshot says of it."""
        return StoredSession(
            cluster_session_id=self.session_id,
            correlation_id=self.correlation_id,
            opened_log_position=self.opened_log_position,
            time_of_last_activity=NULL_VALUE,
            close_reason=self.close_reason,
            response_stream_id=self.response_stream_id,
            response_channel=self.response_channel,
        )


class Sessions:
    """The sessions that the log knows, and the ids of the next ones."""

    def __init__(self, events: EventSink) -> None:
        self._events = events
        self._by_id: dict[int, Session] = {}
        # Closed, in the order of the log positions at which that is committed.
        self._uncommitted: deque[tuple[int, Session]] = deque()
        self._uncommitted_opens: deque[tuple[int, int]] = deque()
        self.next_id = 1
        """The id that the next request to connect gets."""
        self.next_committed_id = 1
        """One more than the highest id of a session whose opening is committed; snapshots have it."""

        self._sequencer: Sequencer | None = None

    def lead(self, sequencer: Sequencer | None) -> None:
        """Messages of open sessions enter the log through a sequencer from now on, or do not any more."""
        self._sequencer = sequencer
        for session in self:
            if session.is_open:
                self._sequence(session)

    def _sequence(self, session: Session) -> None:
        if self._sequencer is not None:
            stream = session.ingress
            self._sequencer.open(
                session.session_id, None if stream is None else (stream.subscription_id, stream.session_id)
            )

    def link(self, session: Session, stream: IngressStream) -> None:
        """An open session is heard on a stream from now on, and on no other."""
        session.ingress = stream
        self._sequence(session)

    def note_heard(self, now_ns: int) -> None:
        """Note which sessions have sent messages since the last call."""
        for session_id in () if self._sequencer is None else self._sequencer.take_heard():
            session = self._by_id.get(session_id)
            if session is not None:
                session.activity_ns = now_ns

    def close(self, session: Session, reason: CloseReason, why: str, *, is_fault: bool = False) -> None:
        """Begin to close one: it is heard no more, and the next check appends the event.

        Args:
            session: Which.
            reason: What the log says of it.
            why: What the event log says of it.
            is_fault: Whether a person may want to look.
        """
        session.life.enter(SessionState.CLOSING, why, is_fault=is_fault)
        session.close_reason = reason
        if self._sequencer is not None:
            self._sequencer.close(session.session_id)

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Session]:
        return iter(tuple(self._by_id.values()))

    def get(self, session_id: int) -> Session | None:
        """A session by its id."""
        return self._by_id.get(session_id)

    def opened(self, session: Session, log_position: int) -> None:
        """The leader has appended that a session is open."""
        session.life.enter(SessionState.OPEN, f"the log opens it at position={log_position}")
        session.opened_log_position = log_position
        self._by_id[session.session_id] = session
        self._uncommitted_opens.append((log_position, session.session_id))
        self._sequence(session)

    def closed(self, session: Session, log_position: int) -> None:
        """The leader has appended that a session is closed."""
        session.life.enter(SessionState.CLOSED, f"the log closes it at position={log_position}")
        del self._by_id[session.session_id]
        self._uncommitted.append((log_position, session))

    def logged_open(self, event: SessionOpenEvent, log_position: int) -> None:
        """The log, which is read or replayed, opens a session."""
        self._by_id[event.cluster_session_id] = Session(
            session_id=event.cluster_session_id,
            correlation_id=event.correlation_id,
            response_stream_id=event.response_stream_id,
            response_channel=event.response_channel,
            opened_log_position=log_position,
            is_open_event_pending=True,
        ).go_on(SessionState.OPEN, self._events)
        self.next_id = max(self.next_id, event.cluster_session_id + 1)
        self.next_committed_id = max(self.next_committed_id, event.cluster_session_id + 1)

    def logged_close(self, session_id: int) -> None:
        """The log closes a session."""
        session = self._by_id.pop(session_id, None)
        if session is not None:
            session.life.enter(SessionState.CLOSED, "the log of the leader closes it")
            session.disconnect()

    def load(self, stored: StoredSession) -> None:
        """A session of a snapshot."""
        self._by_id[stored.cluster_session_id] = Session(
            session_id=stored.cluster_session_id,
            correlation_id=stored.correlation_id,
            response_stream_id=stored.response_stream_id,
            response_channel=stored.response_channel,
            opened_log_position=stored.opened_log_position,
            close_reason=stored.close_reason,
            is_open_event_pending=True,
        ).go_on(SessionState.OPEN if stored.close_reason is None else SessionState.CLOSING, self._events)

    def committed(self, log_position: int) -> None:
        """The log is agreed upon up to a position."""
        while self._uncommitted and self._uncommitted[0][0] <= log_position:
            self._uncommitted.popleft()
        while self._uncommitted_opens and self._uncommitted_opens[0][0] <= log_position:
            _, session_id = self._uncommitted_opens.popleft()
            self.next_committed_id = max(self.next_committed_id, session_id + 1)

    def restore_uncommitted(self, log_position: int) -> list[Session]:
        """Undo what was not committed at a position; gives the sessions that were never opened, which are gone."""
        while self._uncommitted:
            _, session = self._uncommitted.popleft()
            session.life.enter(SessionState.CLOSING, "its end was not agreed upon before an election")
            self._by_id[session.session_id] = session
        self._uncommitted_opens.clear()
        gone = [session for session in self if session.opened_log_position > log_position]
        for session in gone:
            session.life.enter(SessionState.CLOSED, "its opening was not agreed upon before an election")
            del self._by_id[session.session_id]
        self._by_id = dict(sorted(self._by_id.items()))
        return gone
