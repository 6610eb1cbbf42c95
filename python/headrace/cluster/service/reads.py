"""Has a service answer clients without the log, as its consensus module asks."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from headrace._base.results import OfferResult
from headrace.cluster.protocol.control import ServiceRead
from headrace.cluster.protocol.messages import encode
from headrace.cluster.protocol.session import ReadResponse
from headrace.cluster.service.callbacks import HandlerRaised, told
from headrace.cluster.service.follower_reads import FollowerReads

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.client import Client
    from headrace.cluster.protocol.control import ServiceFollowerRead
    from headrace.cluster.service.session import ClientSession
    from headrace.cluster.service.state import ServiceState

__all__ = ["Reads"]

_A_TURN = 256
_PASSING = (OfferResult.BACK_PRESSURED, OfferResult.ADMIN_ACTION)


class Reads:
    """The questions that wait for the service.

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
        self._of_follower = FollowerReads(client, state, sessions, answer)
        self._sessions = sessions
        self._answer = answer
        self._waiting: deque[ServiceRead] = deque()
        # An answer that the client's stream did not take.
        self._held: tuple[ClientSession, bytes] | None = None

    def add(self, read: ServiceRead | ServiceFollowerRead) -> None:
        """A client asks."""
        if isinstance(read, ServiceRead):
            self._waiting.append(read)
        else:
            self._of_follower.add(read)

    def do_work(self, log_position: int) -> int:
        """Answer what the service, which has read the log up to a position, can answer; returns how much that was."""
        count = self._of_follower.do_work(log_position)
        while count < _A_TURN and self._is_free():
            if not self._waiting or self._waiting[0].log_position > log_position:
                break
            read = self._waiting.popleft()
            count += 1
            session = self._sessions.get(read.cluster_session_id)
            if session is not None:
                self._held = session, encode(self._response(read, session, log_position))
        return count

    def _is_free(self) -> bool:
        """Whether all answers are sent; one of a client that is gone is dropped."""
        if self._held is None:
            return True
        session, response = self._held
        publication = session.publication
        if publication is not None and publication.offer(response) in _PASSING:
            return False
        self._held = None
        return True

    def _response(self, read: ServiceRead, session: ClientSession, log_position: int) -> ReadResponse:
        payload, error = b"", ""
        try:
            payload = self._answer(session, read.payload)
        except HandlerRaised as raised:
            error = told(raised.failure)
        return ReadResponse(
            cluster_session_id=read.cluster_session_id,
            correlation_id=read.correlation_id,
            log_position=log_position,
            payload=payload,
            error=error.encode("ascii", "replace").decode(),
        )

    def clear(self) -> None:
        """Another log is joined: clients ask the next leader, or elsewhere."""
        self._of_follower.clear()
        self._waiting.clear()
        self._held = None
