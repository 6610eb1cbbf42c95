"""The settings of a node's parts, made of the node's own and checked before anything starts."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from headrace._checks import wrong
from headrace.archive import ArchiveConfig
from headrace.cluster.client.endpoints import EndpointsError, parse_endpoints
from headrace.cluster.ground.node_config import NodeConfig
from headrace.cluster.member.config import ConsensusModuleConfig
from headrace.cluster.service.config import ContainerConfig

if TYPE_CHECKING:
    from typing import Any, Self

    from headrace.archive.server.keywords import ArchiveSettings
    from headrace.cluster.member.keywords import ConsensusModuleSettings

__all__ = ["NodeSettings"]

_FRAGMENTS_A_PASS = 500
_CLUSTER, _ARCHIVE = "cluster", "archive"
_SHARED = [field.name for field in dataclasses.fields(NodeConfig) if field.name != "aeron_directory"]


@dataclass(frozen=True)
class NodeSettings:
    """What each part of a node is made with.

    Attributes:
        cluster_directory: Where the cluster's files are.
        archive: Keywords of the archive.
        module: Keywords of the consensus module.
        shared: Keywords of each container, which module and services have alike.
    """

    cluster_directory: Path
    archive: ArchiveSettings
    module: ConsensusModuleSettings
    shared: dict[str, Any]

    @classmethod
    def of(
        cls,
        directory: Path,
        service_count: int,
        ingress_endpoint: str | None,
        archive_settings: ArchiveSettings,
        settings: ConsensusModuleSettings,
    ) -> Self:
        """The settings of all parts.

        Args:
            directory: The node's.
            service_count: How many services it is given.
            ingress_endpoint: Where clients on other machines send.
            archive_settings: What the program sets for the archive.
            settings: What it sets for the module, and for the services as far as they share it.

        Raises:
            ConfigError: One is wrong or unknown, or they are at odds.
        """
        # None is as good as not given.
        given = {name: value for name, value in settings.items() if value is not None}
        settings = cast("ConsensusModuleSettings", given)
        _check(service_count, ingress_endpoint, settings)
        archive: ArchiveSettings = {"archive_directory": directory / _ARCHIVE}
        if "archive_control_channel" in settings:
            archive["local_control_channel"] = settings["archive_control_channel"]
        if "archive_control_stream_id" in settings:
            archive["local_control_stream_id"] = settings["archive_control_stream_id"]
        archive |= archive_settings
        if not archive.get("control_channel"):
            archive.setdefault("control_channel_enabled", False)
        recorded = ArchiveConfig.of(**archive)
        module: ConsensusModuleSettings = {
            "cluster_directory": directory / _CLUSTER,
            "service_count": service_count,
        }
        module |= _defaults(ingress_endpoint)
        module |= settings
        module["archive_control_channel"] = recorded.local_control_channel
        module["archive_control_stream_id"] = recorded.local_control_stream_id
        agreed = ConsensusModuleConfig.of(**module)
        shared = {name: getattr(agreed, name) for name in _SHARED}
        ContainerConfig.of(**shared)
        return cls(Path(agreed.cluster_directory), archive, module, shared)


def _check(service_count: int, ingress_endpoint: str | None, settings: ConsensusModuleSettings) -> None:
    """Refuse what only a node cannot carry out, under the names that its arguments have."""
    count = settings.get("service_count")
    if not service_count and count is None:
        rule = "must have one: a node without a service answers nothing; or say service_count= of other processes"
        raise wrong("services", (), rule)
    if service_count and count not in (None, service_count):
        raise wrong("service_count", count, f"must be {service_count}, the services given, or left out")
    if "aeron_directory" in settings:
        rule = (
            "must be left out; a node has a driver of its own, or give it driver=MediaDriver(directory=...)"
        )
        raise wrong("aeron_directory", settings["aeron_directory"], rule)
    if ingress_endpoint is not None and not _is_endpoint(ingress_endpoint):
        rule = "must be host:port, such as localhost:9002 or [::1]:9002: where clients on other machines send"
        raise wrong("ingress_endpoint", ingress_endpoint, rule)


def _is_endpoint(text: str) -> bool:
    try:
        return parse_endpoints(f"0={text}") == {0: text}
    except EndpointsError:
        return False


def _defaults(ingress_endpoint: str | None) -> ConsensusModuleSettings:
    """Settings of a cluster of one; what others say of members is its own business."""
    settings: ConsensusModuleSettings = {
        "log_channel": "aeron:ipc?term-length=16m",
        # A pass over the agents costs as much as some fifty messages, which more of them share.
        "ingress_fragment_limit": _FRAGMENTS_A_PASS,
        "log_fragment_limit": _FRAGMENTS_A_PASS,
    }
    if ingress_endpoint is None:
        settings["members"] = "0,localhost:0,localhost:0,localhost:0,localhost:0,localhost:0"
        settings["ingress_channel"] = "aeron:ipc"
        return settings
    host = ingress_endpoint.rpartition(":")[0]
    settings["members"] = f"0,{ingress_endpoint},{host}:0,{host}:0,{host}:0,{host}:0"
    settings["ingress_channel"] = "aeron:udp"
    settings["ingress_ipc_allowed"] = True
    return settings
