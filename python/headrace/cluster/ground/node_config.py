"""Settings that consensus module and service containers of a node share, and mostly must agree upon."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import ClassVar

from headrace._declared import DeclaredConfig, number, stream_id, text
from headrace._rules import DIRECTORY, INT_MAX, Rule, channel, optional, whole
from headrace.archive.server.rules import IDLE_STRATEGY

__all__ = ["ERROR_BUFFER_LENGTH", "MIB", "NS_PER_S", "TEXT", "NodeConfig"]

MIB = 1 << 20
NS_PER_S = 1_000_000_000
_HEADER_LENGTH = 8192
TEXT = Rule("text", lambda value: isinstance(value, str))
ERROR_BUFFER_LENGTH = whole(MIB, INT_MAX - _HEADER_LENGTH, "of bytes")


@dataclass(frozen=True, kw_only=True)
class NodeConfig(DeclaredConfig):
    """The settings of consensus module and containers alike."""

    _others: ClassVar[tuple[str, ...]] = (
        "config",
        "properties",
        "driver",
        "is_invoked",
        "clock",
        "storage",
        "on_error",
    )

    cluster_id: int = number("cluster.id", 0, whole(0, INT_MAX), "Tells clusters on one driver apart.")
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
    control_channel: str = text(
        "cluster.control.channel",
        "aeron:ipc?term-length=128k",
        channel("ipc"),
        "Channel between consensus module and services.",
    )
    service_stream_id: int = stream_id("cluster.service.stream.id", 104, "Stream to services.")
    consensus_module_stream_id: int = stream_id(
        "cluster.consensus.module.stream.id", 105, "Stream from services."
    )
    replay_channel: str = text(
        "cluster.replay.channel", "aeron:ipc", channel("ipc"), "Where the archive replays log and snapshots."
    )
    replay_stream_id: int = stream_id("cluster.replay.stream.id", 103, "Stream of replays.")
    snapshot_channel: str = text(
        "cluster.snapshot.channel", "aeron:ipc?alias=snapshot", channel("ipc"), "Channel of snapshots."
    )
    archive_control_channel: str = text(
        "archive.local.control.channel",
        "aeron:ipc?term-length=64k",
        channel("ipc"),
        "Where the node's archive takes requests of local clients.",
    )
    archive_control_stream_id: int = stream_id(
        "archive.local.control.stream.id", 10, "Stream of requests to the node's archive."
    )
    log_fragment_limit: int = number(
        "cluster.log.fragment.limit", 50, whole(1, INT_MAX), "Most fragments of the log in a turn."
    )
    idle_strategy: str = text(
        "cluster.idle.strategy",
        "backoff",
        IDLE_STRATEGY,
        "What the thread of module or container does when a turn found no work.",
    )
    # Without a property in the specification either.
    app_version: int = field(
        default=1,
        metadata={
            "rule": whole(0, INT_MAX),
            "meaning": "Version of the services: major << 16 | minor << 8 | patch. Consensus module, services and "
            "snapshots must have the same major version.",
        },
    )
