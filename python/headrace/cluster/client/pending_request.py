"""A request of a client that the cluster answers: for a snapshot, or a read. Sent again to each leader; never waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cluster.errors import ClusterTimeoutError, ServiceError
from headrace.cluster.protocol.session import ReadResponse

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from headrace._base.results import OfferResult
    from headrace.clock import Clock
    from headrace.cluster.client.session import Answer, ClusterSession

__all__ = ["PendingRequest", "result_of_read"]


class PendingRequest:
    """A request that waits for its answer, as a context manager that forgets it at the end.

    Args:
        session: Receives the answer.
        correlation_id: Of the request.
        send: Sends it, if that can be done now.
        timeout_s: How long the answer may take.
        clock: Time.
    """

    def __init__(
        self,
        session: ClusterSession,
        correlation_id: int,
        send: Callable[[int], int | OfferResult],
        timeout_s: float,
        clock: Clock,
    ) -> None:
        self._session = session
        self._correlation_id = correlation_id
        self._send = send
        self._timeout_s = timeout_s
        self._deadline = clock.deadline(timeout_s)
        # The term of the leader that has been asked.
        self._term_id: int | None = None

    def __enter__(self) -> Self:
        self._session.await_answer(self._correlation_id)
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._session.forget_answer(self._correlation_id)

    @property
    def left_s(self) -> float | None:
        """How long the answer may still take."""
        return self._deadline.left_s()

    def step(self, check: Callable[[int | OfferResult], None]) -> Answer | None:
        """The answer, once it is there; asks the leader that has not been asked.

        Args:
            check: Called with the result of each `send`; raises if the request can no longer be sent.

        Raises:
            ClusterTimeoutError: The time is over.
        """
        answer = self._session.answer(self._correlation_id)
        if answer is not None:
            return answer
        if self._deadline.is_over:
            raise ClusterTimeoutError(f"the cluster did not answer to a request within {self._timeout_s:g} s")
        if self._term_id != self._session.leadership_term_id:
            term_id = self._session.leadership_term_id
            result = self._send(self._correlation_id)
            check(result)
            if result > 0:
                self._term_id = term_id
        return None


def result_of_read(response: Answer) -> bytes:
    """The answer of a service to a read.

    Raises:
        ServiceError: Its handler has raised.
    """
    assert isinstance(response, ReadResponse), "the answer to a read"
    if response.error:
        raise ServiceError(f"on_read raised {response.error}", response.log_position)
    return response.payload
