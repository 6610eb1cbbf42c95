"""A client, as a service sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._results import OfferResult
from headrace.cluster.protocol.header import pack_header

if TYPE_CHECKING:
    from headrace.client import Publication
    from headrace.cluster.service.cluster import Cluster

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
        "_cluster",
        "_publication",
        "id",
        "is_closing",
        "principal",
        "response_channel",
        "response_stream_id",
    )

    def __init__(
        self, cluster: Cluster, id: int, response_channel: str, response_stream_id: int, principal: bytes
    ) -> None:
        self._cluster = cluster
        self._publication: Publication | None = None
        self.id = id
        self.response_channel = response_channel
        self.response_stream_id = response_stream_id
        self.principal = principal
        self.is_closing = False

    def offer(self, message: Any) -> int | OfferResult:
        """Send the client a message, if this member leads; never waits.

        Args:
            message: A bytes-like object, or a tuple or list of them sent as one message.

        Returns:
            A number above zero when it was sent, and always on a member that does not lead: state must not follow from
            what is returned. Or why it was not sent.

        Raises:
            ClusterError: The handler may not send.
            ConfigError: The message is too long for the client's stream.
        """
        cluster = self._cluster
        if cluster._silent_in is not None:
            cluster._refuse()
        if not cluster._is_leader:
            return MOCK_SUCCESS
        publication = self._publication
        if publication is None:
            return OfferResult.NOT_CONNECTED
        header = pack_header(cluster._term_id, self.id, cluster._time)
        if isinstance(message, (tuple, list)):
            return publication.offer((header, *message))
        return publication.offer((header, message))

    def close(self) -> bool:
        """Have the session closed; see :meth:`Cluster.close_session`."""
        return self._cluster.close_session(self.id)

    def _disconnect(self) -> None:
        publication, self._publication = self._publication, None
        if publication is not None:
            publication.close()

    def __repr__(self) -> str:
        return f"ClientSession({self.id}, response_channel={self.response_channel!r})"
