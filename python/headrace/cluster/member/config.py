"""Settings of a consensus module, by keyword, property name or environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from headrace._agent.rules import AUTHENTICATOR, AUTHORISATION
from headrace._settings.declared import check, duration, flag, number, size, stream_id, text
from headrace._settings.rules import BOOLEAN, DIRECTORY, INT_MAX, channel, one_of, optional, whole
from headrace.channel import ChannelUri
from headrace.cluster.common.members import MEMBERS, Member, check_endpoints, parse_members, single_member
from headrace.cluster.common.node_config import ERROR_BUFFER_LENGTH, MIB, NS_PER_S, TEXT, NodeConfig
from headrace.cluster.protocol.codes import ClusterTimeUnit
from headrace.security import Authenticator, AuthorisationService

__all__ = ["ConsensusModuleConfig"]

_PACKAGE = "io.aeron.cluster."
_CLOCKS = {
    "ms": ClusterTimeUnit.MILLIS,
    "us": ClusterTimeUnit.MICROS,
    "ns": ClusterTimeUnit.NANOS,
    f"{_PACKAGE}MillisecondClusterClock": ClusterTimeUnit.MILLIS,
    f"{_PACKAGE}NanosecondClusterClock": ClusterTimeUnit.NANOS,
}
_ONE_TIMER_SERVICE = (
    "timers fire in the order of their deadlines, which fulfils both suppliers of the specification"
)
_NOT_BUILT: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "aeron.cluster.timer.service.supplier": (
        _ONE_TIMER_SERVICE,
        (f"{_PACKAGE}WheelTimerServiceSupplier", f"{_PACKAGE}PriorityHeapTimerServiceSupplier"),
    ),
    "aeron.cluster.consensus.module.extension": ("extensions of the module are not built", ("",)),
    "aeron.cluster.file.sync.level": (
        "has no effect in Aeron's consensus module either: set aeron.archive.file.sync.level, which both read",
        ("0",),
    ),
}


@dataclass(frozen=True, kw_only=True)
class ConsensusModuleConfig(NodeConfig):
    """Settings of a consensus module.

    Lengths are bytes, durations carry their unit in the name. A wrong value raises :class:`headrace.ConfigError` naming
    the setting, the value and the rule, before anything is started.
    """

    _owner: ClassVar[str] = "a consensus module"
    _name: ClassVar[str] = "headrace.cluster.ConsensusModuleConfig"
    _environment_prefix: ClassVar[str] = "AERON_CLUSTER_"
    _not_built: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = _NOT_BUILT
    # Of Aeron's timer wheel, and of backups, whose copies these are.
    _without_effect: ClassVar[frozenset[str]] = NodeConfig._without_effect | {
        "aeron.cluster.replication.progress.timeout",
        "aeron.cluster.replication.progress.interval",
        "aeron.cluster.wheel.tick.resolution",
        "aeron.cluster.ticks.per.wheel",
    }

    member_id: int = number("cluster.member.id", 0, whole(0, INT_MAX), "Which of the members this is.")
    members: str | os.PathLike[str] = text(
        "cluster.members",
        None,
        MEMBERS,
        "All members: their hosts, as `alpha,beta,gamma`; a `.toml` file with such a list; or "
        "`id,ingress,consensus,log,catchup,archive` of each, an id and five `host:port`, separated by `|`.",
    )
    member_endpoints: str = text(
        "cluster.member.endpoints",
        "",
        TEXT,
        "This member's five endpoints, which must equal those in `members`.",
    )
    is_replacement: bool = flag(
        "cluster.member.replacement",
        False,
        "Whether the member has lost its files: it neither votes nor stands until it has followed a leader.",
    )
    appointed_leader_id: int = number(
        "cluster.appointed.leader.id", -1, whole(-1, INT_MAX), "The only member that may lead; -1: any."
    )
    services_directory: str | os.PathLike[str] | None = text(
        "cluster.services.dir",
        None,
        optional(DIRECTORY),
        "Where services keep their mark files; unset: `cluster_directory`.",
    )
    ingress_channel: str | None = text(
        "cluster.ingress.channel",
        None,
        optional(channel("")),
        "Where clients send; without an endpoint, to the member's. Required.",
    )
    ingress_stream_id: int = stream_id("cluster.ingress.stream.id", 101, "Stream of ingress.")
    ingress_fragment_limit: int = number(
        "cluster.ingress.fragment.limit", 50, whole(1, INT_MAX), "Most fragments of ingress in a turn."
    )
    ingress_ipc_allowed: bool = flag(
        "cluster.ingress.ipc.allowed",
        False,
        "Whether clients on the member's own driver may use `aeron:ipc`.",
    )
    egress_channel: str | None = text(
        "cluster.egress.channel",
        None,
        optional(channel("")),
        "Parameters that replace those in the clients' egress channels.",
    )
    log_channel: str = text(
        "cluster.log.channel", "aeron:udp?term-length=64m", channel(""), "Channel of the log."
    )
    log_stream_id: int = stream_id("cluster.log.stream.id", 100, "Stream of the log.")
    log_control_enabled: bool = flag(
        "cluster.log.control.enable",
        True,
        "Whether the member sends the log from the address of its log endpoint.",
    )
    consensus_channel: str = text(
        "cluster.consensus.channel", "aeron:udp", channel(""), "Channel on which members agree."
    )
    consensus_stream_id: int = stream_id("cluster.consensus.stream.id", 108, "Stream on which members agree.")
    consensus_control_enabled: bool = flag(
        "cluster.consensus.control.enable",
        True,
        "Whether the member sends there from the address of its consensus endpoint.",
    )
    replication_channel: str | None = text(
        "cluster.replication.channel",
        None,
        optional(channel("")),
        "Where the member receives recordings of others; required in a cluster of several.",
    )
    follower_catchup_channel: str = text(
        "cluster.follower.catchup.channel",
        "aeron:udp",
        channel(""),
        "Where a member catches up with the leader.",
    )
    leader_archive_control_channel: str = text(
        "cluster.leader.archive.control.channel",
        "aeron:udp?term-length=64k",
        channel("udp"),
        "Medium and interface for requests to other members' archives.",
    )
    snapshot_stream_id: int = stream_id(
        "cluster.snapshot.stream.id", 107, "Stream of the module's snapshots."
    )
    service_count: int = number("cluster.service.count", 1, whole(0, 10), "How many services the member has.")
    max_sessions: int = number(
        "cluster.max.sessions",
        10,
        whole(1, INT_MAX),
        "How many clients may be connected at once.",
    )
    session_timeout_ns: int = duration(
        "cluster.session.timeout", 10 * NS_PER_S, "How long a client may be silent.", least=1
    )
    leader_heartbeat_timeout_ns: int = duration(
        "cluster.leader.heartbeat.timeout",
        3 * NS_PER_S,
        "How long a leader may be silent; Aeron's default is 10 s. The end of its process is heard at once.",
        least=1,
    )
    leader_heartbeat_interval_ns: int = duration(
        "cluster.leader.heartbeat.interval",
        NS_PER_S // 5,
        "How often a leader sends a heartbeat.",
        least=1,
    )
    startup_canvass_timeout_ns: int = duration(
        "cluster.startup.canvass.timeout",
        60 * NS_PER_S,
        "How long a starting member waits for all others, and for a container of each service.",
        least=1,
    )
    election_timeout_ns: int = duration(
        "cluster.election.timeout", NS_PER_S, "How long a candidate waits for votes.", least=1
    )
    election_status_interval_ns: int = duration(
        "cluster.election.status.interval",
        NS_PER_S // 10,
        "How often members without a leader exchange positions.",
        least=1,
    )
    termination_timeout_ns: int = duration(
        "cluster.termination.timeout",
        10 * NS_PER_S,
        "How long a leader that shuts down waits for the others.",
        least=1,
    )
    cluster_clock: str = text(
        "cluster.clock",
        "ms",
        one_of(*_CLOCKS),
        "Unit of the cluster's time, counted since 1970.",
    )
    authenticator: str | Authenticator | None = text(
        "cluster.authenticator.supplier",
        None,
        optional(AUTHENTICATOR),
        "Decides who a client is; unset: the cluster accepts every client.",
    )
    authorisation: str | AuthorisationService | None = text(
        "cluster.authorisation.service.supplier",
        None,
        optional(AUTHORISATION),
        "Decides which requests besides messages a client may send; unset: only those of backups.",
    )
    accept_standby_snapshots: bool = flag(
        "cluster.accept.standby.snapshots",
        False,
        "Whether the member notes snapshots that standbys have taken, and copies the latest when it starts.",
    )
    standby_snapshot_delay_ns: int = duration(
        "cluster.standby.snapshot.notification.processing.delay",
        0,
        "How long the member waits, once the cluster has come so far, before it notes a standby's snapshot.",
    )
    error_buffer_length: int = size(
        "cluster.error.buffer.length",
        MIB,
        ERROR_BUFFER_LENGTH,
        "Room for distinct errors in the mark file.",
    )
    cycle_threshold_ns: int = duration(
        "cluster.cycle.threshold", NS_PER_S // 10, "The module counts turns that take longer."
    )
    snapshot_threshold_ns: int = duration(
        "cluster.total.snapshot.threshold", NS_PER_S, "The module counts snapshots that take longer."
    )
    agent_role_name: str | None = text(
        "cluster.consensus.module.agent.role.name",
        None,
        optional(TEXT),
        "Name of the module's thread and client.",
    )
    file_sync_level: int = number(
        "archive.file.sync.level",
        0,
        one_of(0, 1, 2),
        "What the module forces to the disk after a change of a file: data (0, 1) or metadata too (2). After a power "
        "failure, a start goes on without the lost part of the log (0), or names it and ends (1, 2).",
    )
    # Without a property in the specification either.
    directory_delete_on_start: bool = field(
        default=False,
        metadata={
            "rule": BOOLEAN,
            "meaning": "Delete recording log, node state and mark file at the start. They cannot be restored.",
        },
    )

    @property
    def serves_ipc(self) -> bool:
        """Whether it hears clients over ``aeron:ipc``."""
        return self.ingress_ipc_allowed or ChannelUri(self.ingress_channel or "").media == "ipc"

    @property
    def lone_streams(self) -> dict[str, int]:
        """The streams over ``aeron:ipc`` that no other module on the driver may have, by their settings."""
        ingress = {"ingress_stream_id": self.ingress_stream_id} if self.serves_ipc else {}
        return self.control_streams | ingress

    @property
    def own_streams(self) -> frozenset[int]:
        """The streams over ``aeron:ipc`` of module, services and archive, where no client's answers may go."""
        answers = self.cluster_id * 100 + 100 + self.archive_response_stream_id
        return frozenset(
            (
                self.ingress_stream_id,
                self.log_stream_id,
                self.replay_stream_id,
                self.service_stream_id,
                self.consensus_module_stream_id,
                self.snapshot_stream_id,
                self.archive_control_stream_id,
                # Of the archive, to the module and to each service: see `node_archive_config`.
                *range(answers, answers + self.service_count + 1),
            )
        )

    def check(self) -> None:
        """Look for values that are wrong, or at odds.

        Raises:
            ConfigError: There is one; the text names it, its value and the rule.
        """
        check(
            self.members is not None,
            "members",
            self.members,
            "is required: the hosts of all members, such as alpha,beta,gamma",
        )
        super().check()
        check(
            self.ingress_channel is not None,
            "ingress_channel",
            self.ingress_channel,
            "is required: the channel on which clients send, such as aeron:udp",
        )
        check_endpoints(self.member, self.member_endpoints)
        check(
            len(self.all_members) == 1 or self.replication_channel is not None,
            "replication_channel",
            self.replication_channel,
            "is required in a cluster of several: where this member receives recordings of the others, such as "
            "aeron:udp?endpoint=host:0",
        )
        check(
            len(self.all_members) > 1 or not self.is_replacement,
            "is_replacement",
            self.is_replacement,
            "must be False in a cluster of one, where no other member has the log",
        )
        check(
            self.startup_canvass_timeout_ns // self.leader_heartbeat_timeout_ns >= 2,
            "startup_canvass_timeout_ns",
            self.startup_canvass_timeout_ns,
            f"must be at least twice leader_heartbeat_timeout_ns={self.leader_heartbeat_timeout_ns}",
        )
        for name in ("init-term-id", "term-id", "term-offset"):
            check(
                ChannelUri(self.log_channel).get(name) is None,
                "log_channel",
                self.log_channel,
                f"must not have {name}, which follows from the log",
            )

    @cached_property
    def all_members(self) -> tuple[Member, ...]:
        """The members, as they were listed when the config was made."""
        return parse_members(self.members)

    @property
    def member(self) -> Member:
        """This member."""
        return single_member(self.all_members, self.member_id)

    @property
    def time_unit(self) -> ClusterTimeUnit:
        """The unit of the cluster's time."""
        return _CLOCKS[self.cluster_clock]
