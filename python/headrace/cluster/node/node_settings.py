"""The settings of a node's parts, made of the node's own and checked before anything starts."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from headrace._base.checks import wrong
from headrace.archive import ArchiveConfig
from headrace.cluster.client.endpoints import EndpointsError, parse_endpoints
from headrace.cluster.common.members import member_here, members_text, parse_members, single_member
from headrace.cluster.common.node_config import NodeConfig
from headrace.cluster.member.config import ConsensusModuleConfig
from headrace.cluster.service.config import ContainerConfig

if TYPE_CHECKING:
    from typing import Any, Self

    from headrace._settings.keywords import ArchiveSettings, ConsensusModuleSettings

__all__ = ["NodeSettings"]

_FRAGMENTS_A_PASS = 500
_LOG_ALONE = "aeron:ipc?term-length=16m"
_OVER_UDP: ConsensusModuleSettings = {"ingress_channel": "aeron:udp", "ingress_ipc_allowed": True}
# The machine knows these, the program does not. The defaults of a node come before the rest of the environment.
_OF_MACHINE = ("members", "member_id")
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
        environment = ConsensusModuleConfig.from_environment(os.environ)
        given = {name: environment[name] for name in _OF_MACHINE if name in environment} | given
        settings = cast("ConsensusModuleSettings", given)
        _check(service_count, ingress_endpoint, settings)
        place = _listed_place(settings) if "members" in settings else _place_alone(ingress_endpoint)
        archive: ArchiveSettings = {"archive_directory": directory / _ARCHIVE, **place.archive}
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
            # A pass over the agents costs as much as some fifty messages, which more of them share.
            "ingress_fragment_limit": _FRAGMENTS_A_PASS,
            "log_fragment_limit": _FRAGMENTS_A_PASS,
            **place.module,
        }
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
        rule = "must have one, as a node without a service answers nothing; for other processes, give service_count="
        raise wrong("services", (), rule)
    if service_count and count not in (None, service_count):
        raise wrong("service_count", count, f"must be {service_count}, the services given, or left out")
    if "aeron_directory" in settings:
        rule = "must be left out: a node starts its own driver; to use another, give driver=MediaDriver(directory=...)"
        raise wrong("aeron_directory", settings["aeron_directory"], rule)
    if ingress_endpoint is None:
        return
    if "members" in settings:
        rule = "must be left out where members says where clients send"
        raise wrong("ingress_endpoint", ingress_endpoint, rule)
    if not _is_endpoint(ingress_endpoint):
        rule = "must be host:port, such as localhost:9002 or [::1]:9002: where clients on other machines send"
        raise wrong("ingress_endpoint", ingress_endpoint, rule)


def _is_endpoint(text: str) -> bool:
    try:
        return parse_endpoints(f"0={text}") == {0: text}
    except EndpointsError:
        return False


@dataclass(frozen=True)
class _Place:
    """What follows from where the members of a cluster are."""

    module: ConsensusModuleSettings
    archive: ArchiveSettings


def _place_alone(ingress_endpoint: str | None) -> _Place:
    """In a cluster of one; what others say of members is its own business."""
    module: ConsensusModuleSettings = {"log_channel": _LOG_ALONE, "ingress_channel": "aeron:ipc"}
    if ingress_endpoint is None:
        module["members"] = "0,localhost:0,localhost:0,localhost:0,localhost:0,localhost:0"
        return _Place(module, {})
    host = ingress_endpoint.rpartition(":")[0]
    module["members"] = f"0,{ingress_endpoint},{host}:0,{host}:0,{host}:0,{host}:0"
    return _Place(module | _OVER_UDP, {})


def _listed_place(settings: ConsensusModuleSettings) -> _Place:
    """Among listed members. Takes the list and the member's id out of the settings: the list is read once."""
    members = parse_members(settings.pop("members") or "")
    member_id = settings.pop("member_id", None)
    if member_id is not None:
        own = single_member(members, member_id)
    else:
        own = members[0] if len(members) == 1 else member_here(members)
    module: ConsensusModuleSettings = {
        "members": members_text(members),
        "member_id": own.member_id,
        **_OVER_UDP,
    }
    # Other members, and backups, ask the archive there. With a free port they could not know where that is.
    archive: ArchiveSettings = {}
    if not own.archive_endpoint.endswith(":0"):
        archive["control_channel"] = f"aeron:udp?endpoint={own.archive_endpoint}"
    if len(members) == 1:
        return _Place(module | {"log_channel": _LOG_ALONE}, archive)
    module["replication_channel"] = f"aeron:udp?endpoint={own.host}:0"
    return _Place(module, archive)
