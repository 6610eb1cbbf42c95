"""Questions of clients that a follower has its services answer, from a state whose age is known.

A member cannot know how old a leader's message is that it reads: it may have been under way for long, or the member
may have stood still. So a follower asks its leader what is committed, and dates the answer back to the moment of the
question. The leader answers once a quorum has said that it still follows it (:mod:`headrace.cluster.member.reads`), so
nothing else was committed when the question came. Questions are asked only while clients ask.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from headrace.cluster.protocol.consensus import CommitAnswer, CommitQuery
from headrace.cluster.protocol.control import ServiceFollowerRead
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.peers import Peers
    from headrace.cluster.member.services import Services
    from headrace.cluster.protocol.session import FollowerReadRequest

__all__ = ["FollowerReads"]

# A client whose question is dropped asks elsewhere.
_WAITING_MAX = 4096
# A lost query is repeated after so long.
_REPEAT_NS = 50_000_000


class _Known(NamedTuple):
    """What was committed at a time."""

    as_of_ns: int
    log_position: int


class _Waiting(NamedTuple):
    """A question, and when it came."""

    request: FollowerReadRequest
    since_ns: int


_NOTHING = _Known(NULL_VALUE, NULL_VALUE)


class FollowerReads:
    """The questions that a follower has, and what it knows of its leader."""

    def __init__(self, context: Context, peers: Peers, services: Services) -> None:
        self._context = context
        self._peers = peers
        self._services = services
        self._waiting: deque[_Waiting] = deque()
        self._ready: deque[ServiceFollowerRead] = deque()
        self._known = _NOTHING
        # When the last query was sent, which is its id.
        self._asked_ns = NULL_VALUE

    def add(self, request: FollowerReadRequest) -> None:
        """A client asks. Of a session that the member does not have yet, it is dropped: the client asks elsewhere."""
        session = self._context.applied.sessions.get(request.cluster_session_id)
        if session is not None and session.is_open and len(self._waiting) < _WAITING_MAX:
            self._waiting.append(_Waiting(request, self._now_ns()))

    def _now_ns(self) -> int:
        # Not that of the turn's begin: a query must not be dated before it was sent, nor an age be too low.
        return self._context.clock.monotonic_ns()

    def do_work(self, followed_term_id: int) -> int:
        """Go on, as a follower; returns how many questions have gone to services.

        Args:
            followed_term_id: The term in which this member follows a leader.
        """
        if self._waiting:
            self._sort(followed_term_id)
        count = 0
        while self._ready and self._services.try_send(self._ready[0]):
            self._ready.popleft()
            count += 1
        return count

    def _sort(self, followed_term_id: int) -> None:
        """Pass on what can be answered or refused by now, and ask the leader for the others."""
        now_ns, known = self._now_ns(), self._known
        limit_ns = self._context.config.leader_heartbeat_interval_ns
        waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            request = one.request
            is_young = now_ns - known.as_of_ns <= request.max_staleness_ns and known is not _NOTHING
            if is_young and request.log_position <= known.log_position:
                self._pass_on(request, known)
            elif known.as_of_ns >= one.since_ns or now_ns - one.since_ns > limit_ns:
                # The leader has been asked since, or does not answer.
                self._pass_on(request, _NOTHING)
            else:
                self._waiting.append(one)
        is_answered = self._asked_ns <= known.as_of_ns
        if self._waiting and (is_answered or now_ns - self._asked_ns > _REPEAT_NS):
            self._asked_ns = now_ns
            self._peers.send(
                self._context.leader_member_id,
                CommitQuery(
                    leadership_term_id=followed_term_id,
                    query_id=now_ns,
                    member_id=self._context.config.member_id,
                ),
            )

    def _pass_on(self, request: FollowerReadRequest, known: _Known) -> None:
        """Have the service answer, or refuse for the member, which has no stream to the client."""
        self._ready.append(
            ServiceFollowerRead(
                cluster_session_id=request.cluster_session_id,
                correlation_id=request.correlation_id,
                log_position=known.log_position,
                as_of_ns=known.as_of_ns,
                max_staleness_ns=request.max_staleness_ns,
                service_id=request.service_id,
                payload=request.payload,
            )
        )

    def on_answer(self, answer: CommitAnswer, followed_term_id: int) -> None:
        """The leader that this member follows says what was committed after it was asked."""
        is_of_term = answer.leadership_term_id == followed_term_id
        if is_of_term and self._known.as_of_ns < answer.query_id <= self._asked_ns:
            self._known = _Known(answer.query_id, answer.log_position)

    def clear(self) -> None:
        """The member follows no more: what waits is refused. What it knows keeps its age."""
        for one in self._waiting:
            self._pass_on(one.request, _NOTHING)
        self._waiting.clear()
        while self._ready and self._services.try_send(self._ready[0]):
            self._ready.popleft()
        self._ready.clear()
