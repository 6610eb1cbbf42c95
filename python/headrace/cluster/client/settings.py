"""How a client finds a cluster, and how long it waits for it."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, TypedDict

from headrace._base.own_address import own_address
from headrace._settings.declared import DeclaredConfig, check, duration, flag, stream_id, text
from headrace._settings.rules import CLIENT_NAME, Rule, channel, optional
from headrace.channel import ChannelUri
from headrace.cluster.client.endpoints import EndpointsError, parse_endpoints
from headrace.cluster.common.members import MEMBERS, parse_members
from headrace.security.credentials import CredentialsSupplier

__all__ = ["CREDENTIALS", "ClusterClientConfig", "ClusterClientSettings"]

_NS_PER_S = 1_000_000_000
# An election on a busy machine may take seconds, whatever the cluster's time-out for heartbeats.
_NEW_LEADER_TIMEOUT_MIN_NS = 10_000_000_000
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
CREDENTIALS = Rule("bytes, or an object such as headrace.security.UserCredentials", _is_credentials)


class ClusterClientSettings(TypedDict, total=False):
    """Keyword arguments of :meth:`headrace.cluster.ClusterClient.connect`; see :class:`ClusterClientConfig`."""

    members: str | os.PathLike[str] | None
    ingress_channel: str
    ingress_stream_id: int
    ingress_endpoints: str | None
    egress_channel: str | None
    egress_stream_id: int | None
    message_timeout_ns: int
    new_leader_timeout_ns: int
    keep_alive_interval_ns: int
    is_ingress_exclusive: bool
    client_name: str
    credentials: bytes | CredentialsSupplier


@dataclass(frozen=True, kw_only=True)
class ClusterClientConfig(DeclaredConfig):
    """The channels of a cluster's members and of their answers, and how long to wait for them."""

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

    members: str | os.PathLike[str] | None = text(
        "cluster.members",
        None,
        optional(MEMBERS),
        "All members, as the members themselves list them: the hosts, as `alpha,beta,gamma`, or a `.toml` file.",
    )
    ingress_channel: str = text(
        "cluster.ingress.channel",
        "aeron:udp",
        channel(""),
        "Where members take messages: `aeron:udp` with `members` or `ingress_endpoints`, a channel with an endpoint, "
        "or `aeron:ipc` for a cluster on the same driver that allows it.",
    )
    ingress_stream_id: int = stream_id("cluster.ingress.stream.id", 101, "Stream on that channel.")
    ingress_endpoints: str | None = text(
        "cluster.ingress.endpoints",
        None,
        optional(_ENDPOINTS),
        "Where each member takes messages; unset: as `members` says. Replaces the endpoint of the channel.",
    )
    egress_channel: str | None = text(
        "cluster.egress.channel",
        None,
        optional(channel("")),
        "Where members answer; with port 0 the system chooses. Unset: the address of this machine on the way to the "
        "first member whose name has an address.",
    )
    egress_stream_id: int | None = stream_id(
        "cluster.egress.stream.id",
        None,
        "Stream on that channel; unset: 102, and over IPC one for this client alone, since clients that share a stream "
        "wait for the slowest.",
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
        "How long to wait for a new leader; -1: twice the cluster's `leader_heartbeat_timeout_ns`, and at least 10 s.",
        _UNSET,
    )
    keep_alive_interval_ns: int = duration(
        "cluster.client.keep.alive.interval",
        _NS_PER_S,
        "The client sends a keepalive after this time without a message; 0: never.",
    )
    is_ingress_exclusive: bool = flag(
        "cluster.client.ingress.exclusive", True, "Whether the publications to members are exclusive."
    )
    client_name: str = text("cluster.client.name", "", CLIENT_NAME, "Name in the cluster's counters.")
    credentials: bytes | CredentialsSupplier = field(
        default=b"",
        repr=False,
        metadata={"rule": CREDENTIALS, "meaning": "Who this client is, for a cluster that asks."},
    )

    def check(self) -> None:
        """See :meth:`DeclaredConfig.check`."""
        super().check()
        ingress = ChannelUri(self.ingress_channel)
        if ingress.media == "ipc":
            rule = "must be unset where ingress_channel is aeron:ipc: only members on other machines have endpoints"
            check(self.ingress_endpoints is None, "ingress_endpoints", self.ingress_endpoints, rule)
        elif self.endpoints is None:
            rule = "must have endpoint=host:port, or members must name the members"
            check(ingress.get("endpoint") is not None, "ingress_channel", self.ingress_channel, rule)
        if self.egress_channel is None:
            return
        egress = ChannelUri(self.egress_channel)
        rule = "must be aeron:ipc, or have endpoint=host:port: members cannot answer through a connection to them"
        is_right = egress.media == "ipc" or (not egress.is_response and egress.get("endpoint") is not None)
        check(is_right, "egress_channel", self.egress_channel, rule)

    @cached_property
    def endpoints(self) -> dict[int, str] | None:
        """The ingress endpoint of each member; ``None`` if all share one channel."""
        if self.ingress_endpoints is not None:
            return parse_endpoints(self.ingress_endpoints)
        if self.members is None or ChannelUri(self.ingress_channel).media == "ipc":
            return None
        return {member.member_id: member.ingress_endpoint for member in parse_members(self.members)}

    @property
    def lists_all(self) -> bool:
        """Whether its endpoints should be those of all members."""
        return self.members is not None and self.ingress_endpoints is None

    @property
    def message_timeout_s(self) -> float:
        """The same in seconds."""
        return self.message_timeout_ns / _NS_PER_S

    def new_leader_timeout_s(self, leader_heartbeat_timeout_ns: int) -> float:
        """How long to wait for a new leader, given how long the members wait for theirs."""
        given = self.new_leader_timeout_ns
        unset = max(2 * leader_heartbeat_timeout_ns, _NEW_LEADER_TIMEOUT_MIN_NS)
        return (unset if given == _UNSET else given) / _NS_PER_S

    @cached_property
    def egress(self) -> str:
        """The channel of the answers. If the settings leave it open, this looks up names of members once, and waits.

        A lost publisher must not come back with a gap.
        """
        uri = ChannelUri(self.egress_channel or f"aeron:udp?endpoint={self._own_address()}:0")
        return str(self.egress_channel) if uri.media == "ipc" else uri.with_parameters(rejoin="false")

    def _own_address(self) -> str:
        ingress = ChannelUri(self.ingress_channel).get("endpoint")
        for endpoint in [ingress or ""] if self.endpoints is None else self.endpoints.values():
            with contextlib.suppress(OSError, ValueError):
                return own_address(endpoint)
        # The driver says which name has no address.
        return "localhost"

    def egress_stream(self, correlation_id: int) -> int:
        """The stream id of the answers, made from a fresh correlation id of the driver.

        Over IPC all publishers of a stream on a channel share one log, which the slowest reader holds back.
        """
        if self.egress_stream_id is not None:
            return self.egress_stream_id
        if ChannelUri(self.egress).media == "ipc":
            return _OWN_STREAMS | correlation_id & (_OWN_STREAMS - 1)
        return _EGRESS_STREAM

    def ingress_to(self, endpoint: str | None) -> str:
        """The channel to a member; ``None`` stands for the one channel of all members."""
        if endpoint is None:
            return self.ingress_channel
        return ChannelUri(self.ingress_channel).with_parameters(endpoint=endpoint)
