"""Reads that followers answer: the streams to them, and one read that goes from member to member. Never waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headrace._base.checks import wrong
from headrace.cluster.client.ingress import Ingress
from headrace.cluster.errors import ClusterTimeoutError, ServiceError
from headrace.cluster.protocol.messages import encode
from headrace.cluster.protocol.session import FollowerReadResponse, ReadResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace._base.results import OfferResult
    from headrace.client import Client
    from headrace.cluster.client.session import ClusterSession
    from headrace.cluster.client.settings import ClusterClientConfig

__all__ = ["FollowerRead", "FollowerStreams", "PendingFollowerRead"]

_NS_PER_S = 1_000_000_000
# A follower that has not answered for so long is not waited for: it may be gone, or cut off.
_TRY_S = 0.25


class FollowerRead(NamedTuple):
    """The answer of a service to a read."""

    payload: bytes
    """What the service answered."""
    log_position: int
    """Up to where the service had processed the log."""
    staleness_s: float
    """The answer has all that the cluster committed up to this long before the service answered, in seconds; 0 where
    the leader answered."""
    member_id: int
    """The member that answered."""


class FollowerStreams:
    """The publications to the followers of a cluster. Used by one thread at a time."""

    def __init__(self, client: Client, config: ClusterClientConfig) -> None:
        self._ingress = Ingress(client, config)
        self._endpoints: dict[int, str] = {}
        self._first = 0

    def in_turn(self, endpoints: dict[int, str]) -> list[int]:
        """The followers, of which each comes first in its turn; opens streams to them."""
        if endpoints != self._endpoints:
            self._endpoints = dict(endpoints)
            self._ingress.open(endpoints.values())
        ids = sorted(endpoints)
        self._first += 1
        at = self._first % max(1, len(ids))
        return ids[at:] + ids[:at]

    def send(self, member_id: int, data: bytes) -> bool:
        """Send to a follower; returns whether its stream took it."""
        self._ingress.step()
        endpoint = self._endpoints.get(member_id)
        publication = None if endpoint is None else self._ingress.publication_to(endpoint)
        return publication is not None and publication.offer(data) > 0

    def close(self) -> None:
        """Close all."""
        self._ingress.close()


class PendingFollowerRead:
    """A read that waits for its answer. It asks one follower after the other, and then the leader.

    Args:
        session: Receives the answer.
        streams: Leads to the followers.
        client: Its clock, and ids of requests.
        data: The question.
        service_id: Which service is asked.
        max_staleness_s: How old the answer may be.
        timeout_s: How long the answer may take.

    Raises:
        ConfigError: The staleness is not above zero.
    """

    def __init__(
        self,
        session: ClusterSession,
        streams: FollowerStreams,
        client: Client,
        data: bytes,
        *,
        service_id: int,
        max_staleness_s: float,
        timeout_s: float,
    ) -> None:
        if not max_staleness_s > 0:
            raise wrong(
                "max_staleness_s", max_staleness_s, "must be above 0; read() asks for the latest state"
            )
        self._session = session
        self._streams = streams
        self._clock = client.clock
        self._data = data
        self._service_id = service_id
        self._correlation_id = client.next_correlation_id()
        request = session.follower_read(
            self._correlation_id, data, service_id, round(max_staleness_s * _NS_PER_S)
        )
        self._request = encode(request)
        self._timeout_s = timeout_s
        self._deadline = self._clock.deadline(timeout_s)
        self._to_ask = streams.in_turn(session.follower_endpoints)
        # Whose answer is awaited, and until when it is, or its stream.
        self._asked: int | None = None
        self._try = self._clock.deadline(_TRY_S)
        # The term of the leader that has been asked.
        self._term_id: int | None = None
        session.await_answer(self._correlation_id)

    @property
    def left_s(self) -> float | None:
        """How long the answer may still take."""
        return self._deadline.left_s()

    def close(self) -> None:
        """Forget it."""
        self._session.forget_answer(self._correlation_id)

    def step(self, check: Callable[[int | OfferResult], None]) -> FollowerRead | None:
        """The answer, once it is there; asks the next member where one refuses or is silent.

        Args:
            check: Called with the result of each send to the leader; raises if the request can no longer be sent.

        Raises:
            ServiceError: The service raised.
            ClusterTimeoutError: The time is over.
        """
        answer = self._session.answer(self._correlation_id)
        if isinstance(answer, ReadResponse | FollowerReadResponse):
            is_refused = isinstance(answer, FollowerReadResponse) and answer.is_refused
            if not is_refused:
                return _result(answer, self._session.leader_member_id)
            self._session.await_answer(self._correlation_id)
            if isinstance(answer, FollowerReadResponse) and answer.member_id == self._asked:
                self._asked = None
        if self._deadline.is_over:
            raise ClusterTimeoutError(f"the cluster did not answer to a read within {self._timeout_s:g} s")
        if self._asked is None or self._try.is_over:
            self._asked = None
            self._ask_next(check)
        return None

    def _ask_next(self, check: Callable[[int | OfferResult], None]) -> None:
        if not self._to_ask:
            self._ask_leader(check)
        elif self._streams.send(self._to_ask[0], self._request):
            self._asked = self._to_ask.pop(0)
            self._try = self._clock.deadline(_TRY_S)
        elif self._try.is_over:
            # No stream to it could be opened.
            self._to_ask.pop(0)
            self._try = self._clock.deadline(_TRY_S)

    def _ask_leader(self, check: Callable[[int | OfferResult], None]) -> None:
        session = self._session
        term_id = session.leadership_term_id
        if self._term_id == term_id:
            return
        result = session.send_read(self._correlation_id, self._data, self._service_id)
        check(result)
        if result > 0:
            self._term_id = term_id


def _result(answer: ReadResponse | FollowerReadResponse, leader_member_id: int) -> FollowerRead:
    if answer.error:
        raise ServiceError(f"on_read raised {answer.error}", answer.log_position)
    if isinstance(answer, ReadResponse):
        return FollowerRead(answer.payload, answer.log_position, 0.0, leader_member_id)
    return FollowerRead(
        answer.payload, answer.log_position, answer.staleness_ns / _NS_PER_S, answer.member_id
    )
