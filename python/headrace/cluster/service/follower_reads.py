"""Has the service of a follower answer clients, from a state whose age it states, or refuse."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from headrace._base.exceptions import HeadraceError
from headrace._base.results import OfferResult
from headrace.cluster.protocol.messages import encode
from headrace.cluster.protocol.session import FollowerReadResponse
from headrace.cluster.service.callbacks import HandlerRaised, told
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.client import Client, Pending, Publication
    from headrace.clock import Clock
    from headrace.cluster.protocol.control import ServiceFollowerRead
    from headrace.cluster.service.session import ClientSession
    from headrace.cluster.service.state import ServiceState

__all__ = ["FollowerReads"]

_A_TURN = 256
_PASSING = (OfferResult.BACK_PRESSURED, OfferResult.ADMIN_ACTION, OfferResult.NOT_CONNECTED)
# A client that does not take an answer for so long asks elsewhere.
_HELD_MAX_NS = 1_000_000_000


class _Waiting(NamedTuple):
    """A question, and when it came."""

    read: ServiceFollowerRead
    since_ns: int


class FollowerReads:
    """The questions that wait for the service, and a stream to each client that has asked.

    Args:
        client: The container's client.
        state: Which member this is.
        sessions: Who is connected.
        answer: Has the service answer a client; raises :class:`HandlerRaised` with what it raises.
    """

    def __init__(
        self,
        client: Client,
        state: ServiceState,
        sessions: dict[int, ClientSession],
        answer: Callable[[ClientSession, bytes], bytes],
    ) -> None:
        self._client = client
        self._clock: Clock = client.clock
        self._state = state
        self._sessions = sessions
        self._answer = answer
        self._waiting: deque[_Waiting] = deque()
        # An answer that the client's stream does not take yet, and until when it is offered.
        self._held: deque[tuple[int, bytes, int]] = deque()
        self._pending: dict[int, Pending[Publication]] = {}
        self._publications: dict[int, Publication] = {}

    def add(self, read: ServiceFollowerRead) -> None:
        """A client asks, at its latest when the log has its session."""
        self._waiting.append(_Waiting(read, self._clock.monotonic_ns()))

    def do_work(self, log_position: int) -> int:
        """Answer what the service, which has read the log up to a position, can answer, and refuse what is too old."""
        if not self._waiting and not self._held:
            return 0
        count = 0
        waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            is_done = count < _A_TURN and self._is_done(one, log_position)
            count += is_done
            if not is_done:
                self._waiting.append(one)
        return count + self._send_held()

    def _is_done(self, one: _Waiting, log_position: int) -> bool:
        """Whether it is answered or refused."""
        read, now_ns = one.read, self._clock.monotonic_ns()
        session = self._sessions.get(read.cluster_session_id)
        is_known = read.as_of_ns != NULL_VALUE
        staleness_ns = now_ns - read.as_of_ns if is_known else NULL_VALUE
        is_refused = not is_known or staleness_ns > read.max_staleness_ns
        if session is None or (not is_refused and read.log_position > log_position):
            # A session that the log has not yet opened here cannot be told anything.
            return session is None and now_ns - one.since_ns > _HELD_MAX_NS
        if not is_refused and not self._has_stream(session) and now_ns - one.since_ns <= _HELD_MAX_NS:
            # Not before it can be sent: its age counts meanwhile.
            return False
        self._has_stream(session)
        payload, error = b"", ""
        if not is_refused:
            try:
                payload = self._answer(session, read.payload)
            except HandlerRaised as raised:
                error = told(raised.failure)
        response = FollowerReadResponse(
            cluster_session_id=read.cluster_session_id,
            correlation_id=read.correlation_id,
            log_position=log_position,
            staleness_ns=staleness_ns,
            member_id=self._state.member_id,
            is_refused=is_refused,
            payload=payload,
            error=error.encode("ascii", "replace").decode(),
        )
        self._held.append((session.id, encode(response), now_ns + _HELD_MAX_NS))
        return True

    def _has_stream(self, session: ClientSession) -> bool:
        """Whether the client hears this member; opens a stream to one that does not."""
        publication = self._publications.get(session.id)
        if publication is not None:
            return publication.is_connected
        try:
            pending = self._pending.get(session.id)
            if pending is None:
                self._close_unused()
                pending = self._pending[session.id] = self._client.request_publication(
                    session.response_channel, session.response_stream_id
                )
            publication = pending.poll()
        except HeadraceError:
            if self._client.is_closed:
                raise
            # The client hears nothing, and asks elsewhere.
            self._pending.pop(session.id, None)
            return False
        if publication is not None:
            del self._pending[session.id]
            self._publications[session.id] = publication
        return False

    def _send_held(self) -> int:
        count, held, now_ns = 0, self._held, self._clock.monotonic_ns()
        self._held = deque()
        for session_id, data, until_ns in held:
            publication = self._publications.get(session_id)
            session = self._sessions.get(session_id)
            if session is None or now_ns > until_ns:
                continue
            if publication is None:
                self._has_stream(session)
            if publication is None or publication.offer(data) in _PASSING:
                self._held.append((session_id, data, until_ns))
            else:
                count += 1
        return count

    def _close_unused(self) -> None:
        """Close the streams to clients that have gone."""
        for session_id in [one for one in self._publications if one not in self._sessions]:
            self._publications.pop(session_id).close()
        for session_id in [one for one in self._pending if one not in self._sessions]:
            self._pending.pop(session_id).cancel()

    def clear(self) -> None:
        """The member joins another log: clients ask elsewhere."""
        self._waiting.clear()
        self._held.clear()
        for pending in self._pending.values():
            pending.cancel()
        for publication in self._publications.values():
            publication.close()
        self._pending.clear()
        self._publications.clear()
