"""How a client finds an archive and waits for it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from headrace._base.checks import check_names, check_timeout, wrong
from headrace.channel import ChannelUri
from headrace.security.credentials import CredentialsSupplier

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from headrace.client import Subscription

__all__ = ["ArchiveClientConfig", "ArchiveClientSettings", "ControlChannels"]

# Further keywords of `connect`, to suggest for a misspelt one.
_OTHERS = ("directory", "driver", "config", "on_signal", "on_error")


class ArchiveClientSettings(TypedDict, total=False):
    """Keyword arguments of :meth:`headrace.Archive.connect`; see :class:`headrace.archive.ArchiveClientConfig`."""

    control_channel: str
    control_stream_id: int
    response_channel: str
    response_stream_id: int
    term_buffer_length: int
    mtu_length: int
    message_timeout_s: float
    client_name: str
    credentials: bytes | CredentialsSupplier


@dataclass(frozen=True, kw_only=True)
class ArchiveClientConfig:
    """Where an archive takes requests, where it answers, and how long the client waits for an answer."""

    control_channel: str = "aeron:ipc"
    """Where the archive takes requests: ``aeron:ipc`` for one on the same driver."""
    control_stream_id: int = 10
    """Stream of the requests; 10 by the specification."""
    response_channel: str = "aeron:ipc"
    """Where the archive answers; port 0 lets the system choose. ``control-mode=response`` has the answers come back
    through the connection of the requests."""
    response_stream_id: int = 20
    """Stream of the answers."""
    term_buffer_length: int = 64 * 1024
    """Log length of both streams where a channel does not say."""
    mtu_length: int = 1408
    """Datagram length of both streams where a channel does not say."""
    message_timeout_s: float = 10.0
    """How long to wait for each answer."""
    client_name: str = ""
    """Shown in the archive's counters."""
    credentials: bytes | CredentialsSupplier = field(default=b"", repr=False)
    """Who this client is, for archives that ask: bytes, or an object such as
    :class:`headrace.security.UserCredentials`."""

    def __post_init__(self) -> None:
        check_timeout("message_timeout_s", self.message_timeout_s)
        if not (isinstance(self.credentials, bytes) or hasattr(self.credentials, "encoded_credentials")):
            raise wrong("credentials", self.credentials, "must be bytes or a CredentialsSupplier")

    @classmethod
    def of(
        cls, config: ArchiveClientConfig | None, **settings: Unpack[ArchiveClientSettings]
    ) -> ArchiveClientConfig:
        """A config with some settings changed.

        Raises:
            ConfigError: A setting is unknown, or the response channel does not fit the control channel.
        """
        rule = "is not a setting of an archive's client, see headrace.archive.ArchiveClientConfig"
        check_names(settings, cls.__dataclass_fields__, rule, others=_OTHERS)
        made = dataclasses.replace(config or cls(), **settings)
        made.check_way_back("response_channel", made.response_channel)
        return made

    def check_way_back(self, name: str, channel: str) -> None:
        """Check that the archive can send to a response channel.

        Raises:
            ConfigError: It cannot.
        """
        uri = ChannelUri(channel)
        if not uri.is_response:
            return
        media = ChannelUri(self.control_channel).media
        if uri.media != media:
            requests = f"control_channel={self.control_channel}"
            rule = f"must be of aeron:{media}, as {requests}, whose connection the answers use"
            raise wrong(name, channel, rule)
        if media == "udp" and uri.get("control") is None:
            rule = "must have control=host:port, an address of the archive's machine that it sends from"
            raise wrong(name, channel, rule)

    def channels(self, next_session_id: Callable[[], int]) -> ControlChannels:
        """The channels of a new session, whose two streams may need a separate session id."""
        if ChannelUri(self.response_channel).is_response:
            requests, session_id = self._completed(self.control_channel), None
        else:
            session_id = next_session_id()
            requests = self._completed(self.control_channel, session_id=session_id)
        return ControlChannels(requests, self._completed(self.response_channel, session_id=session_id))

    def replay_requests(self, subscription: Subscription) -> str:
        """The channel of a connection through which a replay comes back to a subscription."""
        return self._completed(
            self.control_channel,
            session_id=None,
            term_id=None,
            init_term_id=None,
            term_offset=None,
            ssc="false",
            response_correlation_id=subscription.registration_id,
        )

    def _completed(self, channel: str, **changes: str | int | None) -> str:
        uri = ChannelUri(channel)
        return uri.with_parameters(
            term_length=uri.get("term-length") or self.term_buffer_length,
            mtu=uri.get("mtu") or self.mtu_length,
            sparse=uri.get("sparse") or "true",
            **changes,
        )


@dataclass(frozen=True, slots=True)
class ControlChannels:
    """The channels of a session's requests and answers."""

    requests: str
    responses: str

    def requests_of(self, subscription: Subscription) -> str:
        """The channel of the requests, which must name the subscription to the answers of a response channel."""
        if not ChannelUri(self.responses).is_response:
            return self.requests
        return ChannelUri(self.requests).with_parameters(response_correlation_id=subscription.registration_id)
