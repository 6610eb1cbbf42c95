"""How a client finds an archive and waits for it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from headrace._arguments import check_fields
from headrace._checks import check_names
from headrace._exceptions import ConfigError
from headrace.channel import ChannelUri

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["ArchiveClientConfig", "ArchiveClientSettings"]

# What else `connect` takes, for a misspelt name.
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
    credentials: bytes


@dataclass(frozen=True, kw_only=True)
class ArchiveClientConfig:
    """Where an archive takes requests, where it answers, and how long the client waits for an answer."""

    control_channel: str = "aeron:ipc"
    """Where the archive takes requests: ``aeron:ipc`` for one on the same driver."""
    control_stream_id: int = 10
    """Stream of the requests; 10 by the specification."""
    response_channel: str = "aeron:ipc"
    """Where the archive answers; port 0 lets the system choose."""
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
    credentials: bytes = b""
    """For archives that require them."""

    def __post_init__(self) -> None:
        check_fields(self)

    @classmethod
    def of(
        cls, config: ArchiveClientConfig | None, **settings: Unpack[ArchiveClientSettings]
    ) -> ArchiveClientConfig:
        """A config with some settings changed.

        Raises:
            ConfigError: A setting is unknown, or the answers are to come through a response channel.
        """
        rule = "is not a setting of an archive's client, see headrace.archive.ArchiveClientConfig"
        check_names(settings, cls.__dataclass_fields__, rule, others=_OTHERS)
        made = dataclasses.replace(config or cls(), **settings)
        if ChannelUri(made.response_channel).is_response:
            rule = "response channels are not built: give the address where the archive is to answer"
            text = f"response_channel={made.response_channel}: {rule}"
            raise ConfigError(text, "response_channel", made.response_channel, rule)
        return made

    def channels(self, session_id: int) -> tuple[str, str]:
        """The channels of requests and of answers, for a session of both streams that the driver chose."""
        return self._completed(self.control_channel, session_id), self._completed(
            self.response_channel, session_id
        )

    def _completed(self, channel: str, session_id: int) -> str:
        uri = ChannelUri(channel)
        return uri.with_parameters(
            term_length=uri.get("term-length") or self.term_buffer_length,
            mtu=uri.get("mtu") or self.mtu_length,
            sparse=uri.get("sparse") or "true",
            session_id=session_id,
        )
