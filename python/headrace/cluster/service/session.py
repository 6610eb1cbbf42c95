"""A client, as a service sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.client import SessionSender

if TYPE_CHECKING:
    from typing import Self

    from headrace.cluster.service.control import Control
    from headrace.cluster.service.state import ServiceState

__all__ = ["ClientSession"]


class ClientSession(SessionSender):
    """A client that is connected to the cluster. Given to handlers; used on their thread.

    :meth:`offer` sends it a message.

    Attributes:
        id: Of the session; the same on all members.
        response_channel: Where the client takes answers.
        response_stream_id: With which stream.
        principal: Who the client is, as the authenticator found.
        is_closing: Whether the service has asked for its end.
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

    def _disconnect(self) -> None:
        publication, self.publication = self.publication, None
        if publication is not None:
            publication.close()

    def __repr__(self) -> str:
        return f"ClientSession({self.id}, response_channel={self.response_channel!r})"
