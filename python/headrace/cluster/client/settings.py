"""How a client finds a cluster, and how long it waits for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypedDict

from headrace._declared import DeclaredConfig, check, duration, flag, stream_id, text
from headrace._rules import Rule, channel, optional
from headrace.channel import ChannelUri
from headrace.cluster.client.endpoints import EndpointsError, parse_endpoints
from headrace.security.credentials import CredentialsSupplier

if TYPE_CHECKING:
    pass

__all__ = ["ClusterClientConfig", "ClusterClientSettings"]

_NAME_LENGTH_MAX = 100
_NS_PER_S = 1_000_000_000
_UNSET = -1
_EGRESS_STREAM = 102
# Far from the streams that programs choose.
_OWN_STREAMS = 1 << 30


def _has_endpoints(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(parse_endpoints(value))
    except EndpointsError:
        return False


def _is_credentials(value: object) -> bool:
    return isinstance(value, bytes) or hasattr(value, "encoded_credentials")


_ENDPOINTS = Rule("ID=HOST:PORT for each member, with commas between them", _has_endpoints)
_NAME = Rule(
    f"text of at most {_NAME_LENGTH_MAX} characters",
    lambda value: isinstance(value, str) and len(value) <= _NAME_LENGTH_MAX,
)
_CREDENTIALS = Rule("bytes, or an object such as headrace.security.UserCredentials", _is_credentials)


class ClusterClientSettings(TypedDict, total=False):
    """Keyword arguments of :meth:`headrace.cluster.ClusterClient.connect`; see :class:`ClusterClientConfig`."""

    ingress_channel: str
    ingress_stream_id: int
    ingress_endpoints: str
    egress_channel: str
    egress_stream_id: int | None
    message_timeout_ns: int
    new_leader_timeout_ns: int
    keep_alive_interval_ns: int
    is_ingress_exclusive: bool
    client_name: str
    credentials: bytes | CredentialsSupplier


@dataclass(frozen=True, kw_only=True)
class ClusterClientConfig(DeclaredConfig):
    """Where the members of a cluster take messages, where they answer, and how long to wait for them."""

    _owner: ClassVar[str] = "a cluster's client"
    _name: ClassVar[str] = "headrace.cluster.ClusterClientConfig"
    _environment_prefix: ClassVar[str] = "AERON_CLUSTER_"
    _others: ClassVar[tuple[str, ...]] = (
        "directory",
        "node_directory",
        "driver",
        "config",
        "properties",
        "on_message",
        "on_session_event",
        "on_new_leader",
        "on_admin_response",
    )

    ingress_channel: str = text(
        "cluster.ingress.channel",
        "aeron:udp",
        channel(""),
        "Where members take messages: `aeron:udp` with `ingress_endpoints`, a channel with an endpoint, or `aeron:ipc` "
        "for a cluster that takes messages over IPC on the same driver.",
    )
    ingress_stream_id: int = stream_id("cluster.ingress.stream.id", 101, "Which flow on that channel.")
    ingress_endpoints: str | None = text(
        "cluster.ingress.endpoints",
        None,
        optional(_ENDPOINTS),
        "Where each member takes messages, as `0=host:port,1=host:port`; replaces the endpoint of the channel.",
    )
    egress_channel: str = text(
        "cluster.egress.channel",
        "aeron:udp?endpoint=localhost:0",
        channel(""),
        "Where members answer; port 0 lets the system choose.",
    )
    egress_stream_id: int | None = stream_id(
        "cluster.egress.stream.id",
        None,
        "Which flow on that channel; without it 102, and over IPC one of the client's own: clients that share one wait "
        "for the slowest of them.",
    )
    message_timeout_ns: int = duration(
        "cluster.message.timeout",
        5 * _NS_PER_S,
        "How long connecting, and reaching a new leader, may take.",
        1,
    )
    new_leader_timeout_ns: int = duration(
        "cluster.client.new.leader.timeout",
        _UNSET,
        "How long to wait for a new leader once the old one is lost; -1 for twice the time after which the cluster "
        "gives up its leader.",
        _UNSET,
    )
    keep_alive_interval_ns: int = duration(
        "cluster.client.keep.alive.interval",
        _NS_PER_S,
        "After how long without a message of the program the client sends a keepalive; 0 for never. Aeron's client "
        "sends none by itself.",
    )
    is_ingress_exclusive: bool = flag(
        "cluster.client.ingress.exclusive", True, "Whether the publications to members are exclusive ones."
    )
    client_name: str = text("cluster.client.name", "", _NAME, "Shown in the cluster's counters.")
    credentials: bytes | CredentialsSupplier = field(
        default=b"",
        repr=False,
        metadata={"rule": _CREDENTIALS, "meaning": "Who this client is, for clusters that ask."},
    )

    def check(self) -> None:
        """See :meth:`DeclaredConfig.check`."""
        super().check()
        ingress, egress = ChannelUri(self.ingress_channel), ChannelUri(self.egress_channel)
        if ingress.media == "ipc":
            rule = "must be unset where ingress_channel is aeron:ipc: only members on other machines have endpoints"
            check(self.ingress_endpoints is None, "ingress_endpoints", self.ingress_endpoints, rule)
        elif self.ingress_endpoints is None:
            rule = "must have endpoint=host:port, or ingress_endpoints must name the members"
            check(ingress.get("endpoint") is not None, "ingress_channel", self.ingress_channel, rule)
        rule = "must be aeron:ipc, or have endpoint=host:port: members cannot answer through a connection to them"
        is_right = egress.media == "ipc" or (not egress.is_response and egress.get("endpoint") is not None)
        check(is_right, "egress_channel", self.egress_channel, rule)

    @property
    def message_timeout_s(self) -> float:
        """The same in seconds."""
        return self.message_timeout_ns / _NS_PER_S

    def new_leader_timeout_s(self, leader_heartbeat_timeout_ns: int) -> float:
        """How long to wait for a new leader of a cluster whose members wait so long for theirs."""
        given = self.new_leader_timeout_ns
        return (2 * leader_heartbeat_timeout_ns if given == _UNSET else given) / _NS_PER_S

    @property
    def egress(self) -> str:
        """The channel of the answers. A publisher that was lost must not come back with a gap."""
        uri = ChannelUri(self.egress_channel)
        return self.egress_channel if uri.media == "ipc" else uri.with_parameters(rejoin="false")

    def egress_stream(self, correlation_id: int) -> int:
        """The stream of the answers, for a client that has just drawn a correlation id of its driver.

        Over IPC all publishers of a stream on a channel share one log, which the slowest reader holds back.
        """
        if self.egress_stream_id is not None:
            return self.egress_stream_id
        if ChannelUri(self.egress_channel).media == "ipc":
            return _OWN_STREAMS | correlation_id & (_OWN_STREAMS - 1)
        return _EGRESS_STREAM

    def ingress_to(self, endpoint: str | None) -> str:
        """The channel to a member; ``None`` for the one channel that all have."""
        if endpoint is None:
            return self.ingress_channel
        return ChannelUri(self.ingress_channel).with_parameters(endpoint=endpoint)
