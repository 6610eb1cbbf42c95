"""A client, as a service sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._results import OfferResult
from headrace.cluster.protocol.header import pack_header, with_header

if TYPE_CHECKING:
    from headrace.client import Publication
    from headrace.cluster.service.control import Control
    from headrace.cluster.service.state import ServiceState

__all__ = ["MOCK_SUCCESS", "ClientSession"]

MOCK_SUCCESS = 1
"""What an offer gives on a member that does not lead, and so sends nothing."""


class ClientSession:
    """A client that is connected to the cluster. Given to handlers; used on their thread.

    Attributes:
        id: Of the session; the same on all members.
        response_channel: Where the client takes answers.
        response_stream_id: With which stream.
        principal: Who the client is, as the authenticator found.
        is_closing: Whether the service has asked for its end.
    """

    __slots__ = (
        "_control",
        "_publication",
        "_state",
        "id",
        "is_closing",
        "principal",
        "response_channel",
        "response_stream_id",
    )

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
        self._publication: Publication | None = None
        self.id = id
        self.response_channel = response_channel
        self.response_stream_id = response_stream_id
        self.principal = principal
        self.is_closing = False

    def offer(self, message: Any) -> int | OfferResult:
        """Send the client a message, if this member leads; never waits.

        It carries the position of the log after the entry that is handled: ``ClusterMessage.log_position``.

        Args:
            message: A bytes-like object, or a tuple or list of them sent as one message.

        Returns:
            A number above zero when it was sent, and always on a member that does not lead: state must not follow from
            what is returned. Or why it was not sent.

        Raises:
            ClusterError: The handler may not send.
            ConfigError: The message is too long for the client's stream.
        """
        state = self._state
        if state.silent_in is not None:
            state.check_may_send()
        if not state.is_leader:
            return MOCK_SUCCESS
        publication = self._publication
        if publication is None:
            return OfferResult.NOT_CONNECTED
        whole = with_header(pack_header(state.term_id, self.id, state.time), message)
        # Programs that know nothing of it pass the reserved value over.
        return publication.offer(whole, reserved_value=state.position)

    def close(self) -> bool:
        """Have the session closed. ``on_session_close`` follows, with ``CloseReason.SERVICE_ACTION``.

        Returns:
            False when the consensus module does not take the request now: try again.

        Raises:
            ClusterError: The handler may not send, or the consensus module is gone.
        """
        self._state.check_may_send()
        if not self.is_closing:
            self.is_closing = self._control.close_session(self.id)
        return self.is_closing

    def _disconnect(self) -> None:
        publication, self._publication = self._publication, None
        if publication is not None:
            publication.close()

    def __repr__(self) -> str:
        return f"ClientSession({self.id}, response_channel={self.response_channel!r})"
