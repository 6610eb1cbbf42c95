"""Settings of a backup, by keyword, property name or environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import ClassVar

from headrace._settings.declared import check, duration, size, stream_id, text
from headrace._settings.rules import channel, one_of, optional
from headrace.archive import ArchiveClientConfig
from headrace.channel import ChannelUri
from headrace.cluster.client.settings import CREDENTIALS
from headrace.cluster.common.members import MEMBERS, parse_members
from headrace.cluster.common.node_config import ERROR_BUFFER_LENGTH, MIB, NS_PER_S, TEXT, PartConfig
from headrace.security.credentials import CredentialsSupplier

__all__ = ["ClusterBackupConfig"]

ANY, LEADER, FOLLOWER = "ANY", "LEADER", "FOLLOWER"
BEGINNING, LATEST_SNAPSHOT = "BEGINNING", "LATEST_SNAPSHOT"
_NAME = "backup"


@dataclass(frozen=True, kw_only=True)
class ClusterBackupConfig(PartConfig):
    """Settings of a backup.

    Lengths are bytes, durations carry their unit in the name. A wrong value raises :class:`headrace.ConfigError` naming
    the setting, the value and the rule, before anything is started.
    """

    _owner: ClassVar[str] = "a cluster's backup"
    _name: ClassVar[str] = "headrace.cluster.ClusterBackupConfig"
    _environment_prefix: ClassVar[str] = "AERON_CLUSTER_BACKUP_"
    _others: ClassVar[tuple[str, ...]] = (*PartConfig._others, "on_event")

    members: str | os.PathLike[str] | None = text(
        "cluster.members",
        None,
        optional(MEMBERS),
        "The members of the cluster, as they have them; they, or `consensus_endpoints`, are required.",
    )
    consensus_endpoints: str = text(
        "cluster.consensus.endpoints",
        "",
        TEXT,
        "Consensus endpoints of members, `host:port` with commas between them; unset: those of `members`.",
    )
    consensus_channel: str = text(
        "cluster.consensus.channel",
        "aeron:udp",
        channel("udp"),
        "Where members answer the backup: its endpoint is an address of the backup that they reach. Required.",
    )
    consensus_stream_id: int = stream_id("cluster.consensus.stream.id", 108, "Stream of queries and answers.")
    catchup_endpoint: str | None = text(
        "cluster.backup.catchup.endpoint",
        None,
        optional(TEXT),
        "Where the log and snapshots arrive, `host:port`; unset: a free port on the host of `consensus_channel`.",
    )
    catchup_channel: str = text(
        "cluster.backup.catchup.channel",
        "aeron:udp?alias=backup|cc=cubic|so-sndbuf=512k|so-rcvbuf=512k|rcv-wnd=512k",
        channel("udp"),
        "Channel of the log and of snapshots, without an endpoint.",
    )
    log_stream_id: int = stream_id("cluster.log.stream.id", 100, "Stream of the log.")
    source_type: str = text(
        "cluster.backup.source.type",
        ANY,
        one_of(ANY, LEADER, FOLLOWER),
        "Which members the backup copies from.",
    )
    initial_replay_start: str = field(
        default=BEGINNING,
        metadata={
            # The only one of the specification's properties that does not begin with `aeron.`.
            "property": "cluster.backup.initial.replay.start",
            "kind": "text",
            "rule": one_of(BEGINNING, LATEST_SNAPSHOT),
            "meaning": "Where the first copy of the log begins: where the member's does, or at its latest snapshot.",
        },
    )
    interval_ns: int = duration(
        "cluster.backup.interval",
        3600 * NS_PER_S,
        "How often the backup asks for new snapshots and terms; the log it copies all the time.",
        least=1,
    )
    response_timeout_ns: int = duration(
        "cluster.backup.response.timeout",
        5 * NS_PER_S,
        "How long a member may take to answer before the backup asks the next one.",
        least=1,
    )
    progress_timeout_ns: int = duration(
        "cluster.backup.progress.timeout",
        10 * NS_PER_S,
        "How long the backup waits for the first of the log.",
        least=1,
    )
    cool_down_interval_ns: int = duration(
        "cluster.backup.cool.down.interval", 30 * NS_PER_S, "The pause after an attempt that failed."
    )
    replication_progress_timeout_ns: int = duration(
        "cluster.replication.progress.timeout",
        10 * NS_PER_S,
        "How long the copy of a snapshot may stand still.",
        least=1,
    )
    replication_progress_interval_ns: int = duration(
        "cluster.replication.progress.interval",
        NS_PER_S,
        "How often the backup looks whether that copy grows.",
        least=1,
    )
    source_control_channel: str = text(
        "archive.control.channel",
        "aeron:udp",
        channel("udp"),
        "Channel of requests to members' archives; members say the endpoints.",
    )
    source_control_stream_id: int = stream_id(
        "archive.control.stream.id", 10, "Stream of requests to members' archives."
    )
    source_response_channel: str | None = text(
        "archive.control.response.channel",
        None,
        optional(channel("udp")),
        "Where members' archives answer; unset: a free port on the host of `consensus_channel`.",
    )
    source_response_stream_id: int = stream_id(
        "archive.control.response.stream.id", 20, "Stream of archives' answers, also of the backup's own."
    )
    error_buffer_length: int = size(
        "cluster.error.buffer.length",
        MIB,
        ERROR_BUFFER_LENGTH,
        "Room for distinct errors in the mark file.",
    )
    # Without a property in the specification either.
    credentials: bytes | CredentialsSupplier = field(
        default=b"",
        repr=False,
        metadata={"rule": CREDENTIALS, "meaning": "Who the backup is, for a cluster that asks."},
    )
    archive_credentials: bytes | CredentialsSupplier = field(
        default=b"",
        repr=False,
        metadata={"rule": CREDENTIALS, "meaning": "Who it is for members' archives, where they ask."},
    )

    def check(self) -> None:
        """Look for values that are wrong, or at odds.

        Raises:
            ConfigError: There is one; the text names it, its value and the rule.
        """
        super().check()
        check(
            all(_is_endpoint(endpoint) for endpoint in self.endpoints) and bool(self.endpoints),
            "consensus_endpoints",
            self.consensus_endpoints,
            "must name the consensus endpoints of members, as host:port with commas between them; or give members",
        )
        check(
            _is_endpoint(self._own_endpoint),
            "consensus_channel",
            self.consensus_channel,
            "must have endpoint=host:port, an address of this machine on which members reach the backup; port 0 for "
            "any free port",
        )
        check(
            _is_endpoint(self.own_catchup_endpoint),
            "catchup_endpoint",
            self.catchup_endpoint,
            "must be host:port, an address of this machine on which members' archives reach it; port 0 for any free "
            "port",
        )

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Where the backup asks members."""
        if self.members is not None and not self.consensus_endpoints:
            return tuple(one.consensus_endpoint for one in parse_members(self.members))
        return tuple(one.strip() for one in self.consensus_endpoints.split(",") if one.strip())

    @property
    def _own_endpoint(self) -> str:
        return ChannelUri(self.consensus_channel).get("endpoint") or ""

    @property
    def _host(self) -> str:
        return self._own_endpoint.rpartition(":")[0]

    def queries_to(self, endpoint: str) -> str:
        """The channel of queries to a member."""
        return ChannelUri(self.consensus_channel).with_parameters(endpoint=endpoint)

    @property
    def own_catchup_endpoint(self) -> str:
        """Where the log and snapshots arrive."""
        return self.catchup_endpoint or f"{self._host}:0"

    @property
    def copies(self) -> str:
        """The channel on which snapshots arrive, and the log if its port is fixed."""
        return ChannelUri(self.catchup_channel).with_parameters(endpoint=self.own_catchup_endpoint)

    @property
    def own_archive(self) -> ArchiveClientConfig:
        """How the backup reaches its own archive."""
        return ArchiveClientConfig(
            control_channel=self.archive_control_channel,
            control_stream_id=self.archive_control_stream_id,
            response_stream_id=self.source_response_stream_id,
            term_buffer_length=self.archive_term_buffer_length,
            mtu_length=self.archive_mtu_length,
            message_timeout_s=self.archive_message_timeout_ns / NS_PER_S,
            client_name=_NAME,
        )

    def source_archive(self, endpoint: str, response_endpoint: str) -> ArchiveClientConfig:
        """How the backup reaches a member's archive.

        Args:
            endpoint: Where that takes requests.
            response_endpoint: Where the member's archive answers through the connection of the requests, if it does.
        """
        responses = ChannelUri(self.source_response_channel or f"aeron:udp?endpoint={self._host}:0")
        if response_endpoint:
            answers = responses.with_parameters(
                endpoint=None, control_mode="response", control=response_endpoint
            )
        else:
            answers = responses.with_parameters()
        return ArchiveClientConfig(
            control_channel=ChannelUri(self.source_control_channel).with_parameters(endpoint=endpoint),
            control_stream_id=self.source_control_stream_id,
            response_channel=answers,
            response_stream_id=self.source_response_stream_id,
            term_buffer_length=self.archive_term_buffer_length,
            mtu_length=self.archive_mtu_length,
            message_timeout_s=self.archive_message_timeout_ns / NS_PER_S,
            client_name=_NAME,
            credentials=self.archive_credentials,
        )


def _is_endpoint(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and port.isdigit() and int(port) < 1 << 16
