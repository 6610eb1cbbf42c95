"""The fields that the mark files of a cluster's parts have in common. Cluster specification 6.6."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from headrace._settings.config import default_directory
from headrace.cluster.common.counters import DEFAULT_STREAMS
from headrace.cluster.files.mark_file import ClusterComponentType, MarkFields
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.client._local_driver import LocalDriver
    from headrace.cluster.common.node_config import PartConfig

__all__ = ["mark_fields"]


def mark_fields(
    config: PartConfig,
    driver: LocalDriver | None,
    component_type: ClusterComponentType,
    error_buffer_length: int,
    *,
    streams: tuple[int, int] = DEFAULT_STREAMS,
    control_channel: str = "",
    ingress_stream_id: int = NULL_VALUE,
    member_id: int = NULL_VALUE,
    service_id: int = NULL_VALUE,
    ingress_channel: str = "",
    service_name: str = "",
    authenticator: str = "",
    services_cluster_directory: str = "",
) -> MarkFields:
    """The fields of a starting component's mark file; the file itself adds times and versions.

    ``streams`` are the streams to and from services.
    """
    directory = config.aeron_directory or default_directory()
    return MarkFields(
        version=0,
        component_type=component_type,
        activity_timestamp=0,
        start_timestamp=0,
        pid=os.getpid(),
        candidate_term_id=NULL_VALUE,
        archive_stream_id=config.archive_control_stream_id,
        service_stream_id=streams[0],
        consensus_module_stream_id=streams[1],
        ingress_stream_id=ingress_stream_id,
        member_id=member_id,
        service_id=service_id,
        header_length=0,
        error_buffer_length=error_buffer_length,
        cluster_id=config.cluster_id,
        aeron_directory=os.fspath(directory) if driver is None else driver.directory,
        control_channel=control_channel,
        ingress_channel=ingress_channel,
        service_name=service_name,
        authenticator=authenticator,
        services_cluster_directory=services_cluster_directory,
    )
