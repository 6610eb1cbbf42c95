"""Settings of a service's container, by keyword, property name or environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from headrace._declared import DeclaredConfig, duration, flag, number, size, stream_id, text
from headrace._rules import DIRECTORY, INT_MAX, Rule, accepts, channel, optional, whole
from headrace.client import IdleStrategy

__all__ = ["ContainerConfig"]

_MIB = 1 << 20
_S = 1_000_000_000
_HEADER_LENGTH = 8192
_TEXT = Rule("text", lambda value: isinstance(value, str))
_IDLE_STRATEGY = Rule(
    "backoff, yield, spin, noop, sleep-ns or sleep-ms, or a class of the reference",
    lambda value: isinstance(value, str) and accepts(IdleStrategy, value),
)
_NOT_BUILT = {
    "aeron.cluster.service.class.name": ("give the service to ServiceContainer, as an object", ()),
    "aeron.cluster.service.delegating.error.handler": (
        "errors go to the error log, the logger headrace.cluster and on_error=",
        (),
    ),
}


@dataclass(frozen=True, kw_only=True)
class ContainerConfig(DeclaredConfig):
    """Settings of a service's container.

    Lengths are bytes, durations carry their unit in the name. A wrong value raises :class:`headrace.ConfigError` naming
    the setting, the value and the rule, before anything is started.
    """

    _owner: ClassVar[str] = "a service's container"
    _name: ClassVar[str] = "headrace.cluster.ContainerConfig"
    # Shorter ones belong to the consensus module, with which a container shares an environment.
    _environment_prefix: ClassVar[str] = "AERON_CLUSTER_SERVICE_"
    _others: ClassVar[tuple[str, ...]] = (
        "config",
        "properties",
        "driver",
        "is_invoked",
        "clock",
        "storage",
        "on_error",
    )
    _not_built: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = _NOT_BUILT

    cluster_id: int = number("cluster.id", 0, whole(0, INT_MAX), "Tells clusters on one driver apart.")
    service_id: int = number(
        "cluster.service.id", 0, whole(0, 9), "Which of the services of the cluster this is."
    )
    service_name: str = text("cluster.service.name", "", _TEXT, "Name of the service in the mark file.")
    cluster_directory: str | os.PathLike[str] = text(
        "cluster.dir", "aeron-cluster", DIRECTORY, "Where the container's files are kept."
    )
    mark_file_directory: str | os.PathLike[str] | None = text(
        "cluster.mark.file.dir",
        None,
        optional(DIRECTORY),
        "Where the mark file is kept; unset: in `cluster_directory`.",
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
        "cluster.replay.channel", "aeron:ipc", channel("ipc"), "Where the archive replays snapshots."
    )
    replay_stream_id: int = stream_id("cluster.replay.stream.id", 103, "Stream of replays.")
    snapshot_channel: str = text(
        "cluster.snapshot.channel", "aeron:ipc?alias=snapshot", channel("ipc"), "Channel of snapshots."
    )
    snapshot_stream_id: int = stream_id(
        "cluster.snapshot.stream.id", 106, "Stream of the service's snapshots."
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
    is_responding: bool = flag(
        "cluster.service.responder",
        True,
        "Whether the service sends to clients; false opens no streams to them.",
    )
    error_buffer_length: int = size(
        "cluster.service.error.buffer.length",
        _MIB,
        whole(_MIB, INT_MAX - _HEADER_LENGTH, "of bytes"),
        "Room for distinct errors in the mark file.",
    )
    cycle_threshold_ns: int = duration(
        "cluster.service.cycle.threshold", _S // 10, "The container counts turns that take longer."
    )
    snapshot_threshold_ns: int = duration(
        "cluster.service.snapshot.threshold", _S, "The container counts snapshots that take longer."
    )
    idle_strategy: str = text(
        "cluster.idle.strategy",
        "backoff",
        _IDLE_STRATEGY,
        "What the container's thread does when a turn found no work.",
    )
    # Without a property in the specification either.
    app_version: int = field(
        default=1,
        metadata={
            "rule": whole(0, INT_MAX),
            "meaning": "Version of the service: major << 16 | minor << 8 | patch. The consensus module must have the "
            "same major version, and so must snapshots.",
        },
    )

    @classmethod
    def of(
        cls,
        config: ContainerConfig | None = None,
        properties: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> ContainerConfig:
        """Settings from the environment, overridden by a config, by properties and by keywords, and checked.

        Raises:
            ConfigError: A setting is wrong or unknown.
        """
        return cls._made(config, properties, environment, settings)
