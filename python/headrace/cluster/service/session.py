"""A client, as a service sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._base.results import OfferResult
from headrace.client import SessionSender
from headrace.cluster.protocol.codes import EventCode
from headrace.cluster.protocol.header import HEADER_LENGTH
from headrace.cluster.protocol.messages import encode
from headrace.cluster.protocol.session import SessionEvent
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from headrace.cluster.service.control import Control
    from headrace.cluster.service.state import ServiceState

__all__ = ["ClientSession"]

# Bytes of a failure's text: the shortest stream of a client takes 8 KiB.
_DETAIL_MAX = 1000


class ClientSession(SessionSender):
    """A client that is connected to the cluster. Given to handlers; used on their thread.

    :meth:`offer` sends it a message.

    Attributes:
        id: Of the session; the same on all members.
        response_channel: Where the client takes answers.
        response_stream_id: With which stream.
        principal: Who the client is, as the authenticator found.
        is_closing: Whether the service has asked this member for its end. A start from a snapshot and a new leader do
            not know it any more: state must not follow from it.
    """

    __slots__ = (
        "_control",
        "_state",
        "id",
        "is_closing",
        "principal",
        "response_channel",
        "response_stream_id",
    )

    def __new__(
        cls,
        state: ServiceState,
        control: Control,
        id: int,
        response_channel: str,
        response_stream_id: int,
        principal: bytes,
    ) -> Self:
        """What the compiled part of a session needs; the rest is for `__init__`."""
        return super().__new__(cls, state, id)

    def __init__(
        self,
        state: ServiceState,
        control: Control,
        id: int,
        response_channel: str,
        response_stream_id: int,
        principal: bytes,
    ) -> None:
        self._state = state
        self._control = control
        self.id = id
        self.response_channel = response_channel
        self.response_stream_id = response_stream_id
        self.principal = principal
        self.is_closing = False

    def close(self) -> bool:
        """Have the session closed. ``on_session_close`` follows, with ``CloseReason.SERVICE_ACTION``.

        Returns:
            True: the request waits until the consensus module has room for it.

        Raises:
            ClusterError: The handler may not send, or the consensus module is gone.
        """
        self._state.check_may_send()
        if not self.is_closing:
            self._control.close_session(self.id)
            self.is_closing = True
        return True

    def on_refused(self, reason: str, position: int) -> int | OfferResult:
        """See :class:`SessionSender`: the client hears that an answer was too long for it, and the service does not."""
        text = f"the answer is too long for the client's stream: {reason}; ask for less, or for longer terms with "
        return self._send_error(f"{text}term-length in egress_channel", position)

    def _offer_or(self, message: bytes, instead: Callable[[int], bytes]) -> int | OfferResult:
        """Offer a message, and what stands for it where the client's stream is too short for it.

        Args:
            message: The same on every member.
            instead: Makes what stands for it, given the longest message that the stream takes.
        """
        publication = self.publication
        if publication is not None:
            longest = publication.max_message_length - HEADER_LENGTH
            if len(message) > longest:
                message = instead(longest)
        return self.offer(message)

    def _send_error(self, text: str, position: int) -> int | OfferResult:
        """Tell the client of a failure, as an event of its session, which stays open; never waits.

        A client of Aeron's gives it to its listener. The events that a consensus module sends of a session have the
        correlation id of a request; this has none.
        """
        state, publication = self._state, self.publication
        if not state.is_leader or publication is None:
            return OfferResult.NOT_CONNECTED
        event = SessionEvent(
            cluster_session_id=self.id,
            correlation_id=NULL_VALUE,
            leadership_term_id=state.term_id,
            leader_member_id=state.member_id,
            code=EventCode.ERROR,
            detail=f"log_position={position}: {text}".encode("ascii", "backslashreplace")[
                :_DETAIL_MAX
            ].decode(),
        )
        data = encode(event)
        result = publication.offer(data, reserved_value=position)
        if result is OfferResult.ADMIN_ACTION:
            # The end of a term: the next try finds the next one.
            result = publication.offer(data, reserved_value=position)
        return result

    def _disconnect(self) -> None:
        publication, self.publication = self.publication, None
        if publication is not None:
            publication.close()

    def __repr__(self) -> str:
        return f"ClientSession({self.id}, response_channel={self.response_channel!r})"
