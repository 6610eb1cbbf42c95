"""Settings that the consensus module and the service containers of a node share; most must be equal."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import ClassVar

from headrace._agent.mark_file import HEADER_LENGTH
from headrace._agent.rules import IDLE_STRATEGY
from headrace._settings.declared import DeclaredConfig, duration, number, size, stream_id, text
from headrace._settings.rules import (
    CLIENT_NAME,
    DIRECTORY,
    INT_MAX,
    MTU,
    Rule,
    channel,
    optional,
    power_of_two,
    whole,
)
from headrace.cluster.common.counters import DEFAULT_STREAMS

__all__ = ["ERROR_BUFFER_LENGTH", "MIB", "NS_PER_S", "TEXT", "NodeConfig", "PartConfig"]

_KIB, MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
NS_PER_S = 1_000_000_000
TEXT = Rule("text", lambda value: isinstance(value, str))
ERROR_BUFFER_LENGTH = whole(MIB, INT_MAX - HEADER_LENGTH, "of bytes")


@dataclass(frozen=True, kw_only=True)
class PartConfig(DeclaredConfig):
    """The settings that every part of a cluster has: where its files, its driver and its archive are."""

    _others: ClassVar[tuple[str, ...]] = (
        "config",
        "properties",
        "driver",
        "is_invoked",
        "clock",
        "storage",
        "on_error",
    )

    cluster_id: int = number(
        "cluster.id",
        0,
        whole(0, INT_MAX),
        "Number of this cluster among those on one driver. Each needs its own `service_stream_id`, "
        "`consensus_module_stream_id` and, for clients over IPC, `ingress_stream_id`.",
    )
    cluster_directory: str | os.PathLike[str] = text(
        "cluster.dir", "aeron-cluster", DIRECTORY, "Where recording log, node state and mark files are kept."
    )
    mark_file_directory: str | os.PathLike[str] | None = text(
        "cluster.mark.file.dir",
        None,
        optional(DIRECTORY),
        "Where mark files are kept; unset: in `cluster_directory`.",
    )
    aeron_directory: str | os.PathLike[str] | None = text(
        "dir", None, optional(DIRECTORY), "The driver's directory; unset: the default one."
    )
    archive_control_channel: str = text(
        "archive.local.control.channel",
        "aeron:ipc?term-length=64k",
        channel("ipc"),
        "Where the node's archive takes local requests.",
    )
    archive_control_stream_id: int = stream_id(
        "archive.local.control.stream.id", 10, "Stream of requests to the node's archive."
    )
    archive_message_timeout_ns: int = duration(
        "archive.message.timeout", 10 * NS_PER_S, "How long the node's archive may take to answer.", least=1
    )
    archive_term_buffer_length: int = size(
        "archive.control.term.buffer.length",
        64 * _KIB,
        power_of_two(64 * _KIB, _GIB),
        "Term length of these streams, where the channel has none.",
    )
    archive_mtu_length: int = size(
        "archive.control.mtu.length",
        1408,
        MTU,
        "MTU of the streams to and from the node's archive, where the channel has none.",
    )
    idle_strategy: str = text(
        "cluster.idle.strategy",
        "backoff",
        IDLE_STRATEGY,
        "How the thread of the part waits for work.",
    )


@dataclass(frozen=True, kw_only=True)
class NodeConfig(PartConfig):
    """The settings that consensus module and containers have alike."""

    # Of what an archive's client may be told: where archives of other machines hear, and what is no choice here. The
    # node's own is asked over its local channel, and until its time is over.
    _without_effect: ClassVar[frozenset[str]] = frozenset(
        (
            "aeron.archive.control.channel",
            "aeron.archive.control.stream.id",
            "aeron.archive.recording.events.channel",
            "aeron.archive.recording.events.stream.id",
            "aeron.archive.control.term.buffer.sparse",
            "aeron.archive.message.retry.attempts",
        )
    )

    control_channel: str = text(
        "cluster.control.channel",
        "aeron:ipc?term-length=128k",
        channel("ipc"),
        "Channel between consensus module and services.",
    )
    service_stream_id: int = stream_id("cluster.service.stream.id", DEFAULT_STREAMS[0], "Stream to services.")
    consensus_module_stream_id: int = stream_id(
        "cluster.consensus.module.stream.id", DEFAULT_STREAMS[1], "Stream from services."
    )
    replay_channel: str = text(
        "cluster.replay.channel", "aeron:ipc", channel("ipc"), "Where the archive replays log and snapshots."
    )
    replay_stream_id: int = stream_id("cluster.replay.stream.id", 103, "Stream of replays.")
    snapshot_channel: str = text(
        "cluster.snapshot.channel", "aeron:ipc?alias=snapshot", channel("ipc"), "Channel of snapshots."
    )
    archive_response_channel: str = text(
        "archive.control.response.channel",
        "aeron:ipc",
        channel("ipc"),
        "Where the node's archive answers.",
    )
    archive_response_stream_id: int = stream_id(
        "archive.control.response.stream.id",
        20,
        "Stream of these answers, to which the node adds 100 + 100 times the cluster's id, and one more for each "
        "service.",
    )
    archive_client_name: str = text(
        "archive.client.name",
        "",
        CLIENT_NAME,
        "Name in the archive's counters; unset: `cm` for the module, `sc-0` for the first service.",
    )
    log_fragment_limit: int = number(
        "cluster.log.fragment.limit", 50, whole(1, INT_MAX), "Most fragments of the log in a turn."
    )
    # Without a property in the specification either.
    app_version: int = field(
        default=1,
        metadata={
            "rule": whole(0, INT_MAX),
            "meaning": "Version of the services: major << 16 | minor << 8 | patch. Module, services and snapshots must "
            "have the same major version.",
        },
    )

    @property
    def control_streams(self) -> dict[str, int]:
        """The streams between consensus module and services, by their settings."""
        return {
            "service_stream_id": self.service_stream_id,
            "consensus_module_stream_id": self.consensus_module_stream_id,
        }
