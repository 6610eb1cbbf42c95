"""Settings of a service's container, by keyword, property name or environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from headrace._settings.declared import duration, flag, number, size, stream_id, text
from headrace._settings.rules import whole
from headrace.cluster.common.node_config import ERROR_BUFFER_LENGTH, MIB, NS_PER_S, TEXT, NodeConfig

__all__ = ["ContainerConfig"]

_NOT_BUILT = {
    "aeron.cluster.service.class.name": ("give the service to ServiceContainer, as an object", ()),
    "aeron.cluster.service.delegating.error.handler": (
        "errors go to the error log, the logger headrace.cluster and on_error=",
        (),
    ),
}


@dataclass(frozen=True, kw_only=True)
class ContainerConfig(NodeConfig):
    """Settings of a service's container.

    Lengths are bytes, durations carry their unit in the name. A wrong value raises :class:`headrace.ConfigError` naming
    the setting, the value and the rule, before anything is started.
    """

    _owner: ClassVar[str] = "a service's container"
    _name: ClassVar[str] = "headrace.cluster.ContainerConfig"
    # Shorter ones belong to the consensus module, with which a container shares an environment.
    _environment_prefix: ClassVar[str] = "AERON_CLUSTER_SERVICE_"
    _not_built: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = _NOT_BUILT

    service_id: int = number(
        "cluster.service.id", 0, whole(0, 9), "Which of the services of the cluster this is."
    )
    service_name: str = text("cluster.service.name", "", TEXT, "Name of the service in the mark file.")
    snapshot_stream_id: int = stream_id(
        "cluster.snapshot.stream.id", 106, "Stream of the service's snapshots."
    )
    is_responding: bool = flag(
        "cluster.service.responder",
        True,
        "Whether the service sends to clients; false opens no streams to them.",
    )
    error_buffer_length: int = size(
        "cluster.service.error.buffer.length",
        MIB,
        ERROR_BUFFER_LENGTH,
        "Room for distinct errors in the mark file.",
    )
    cycle_threshold_ns: int = duration(
        "cluster.service.cycle.threshold", NS_PER_S // 10, "The container counts turns that take longer."
    )
    snapshot_threshold_ns: int = duration(
        "cluster.service.snapshot.threshold", NS_PER_S, "The container counts snapshots that take longer."
    )
