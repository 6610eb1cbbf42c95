"""The settings of a service's container, as keywords.

Made by `scripts/settings.py` from :class:`headrace.cluster.ContainerConfig`; do not edit.
"""

from __future__ import annotations

import os
from typing import TypedDict

__all__ = ["ContainerSettings"]


class ContainerSettings(TypedDict, total=False):
    """Keyword arguments of a service's container; see :class:`headrace.cluster.ContainerConfig` for what they mean.

    ``None`` is as good as not given.
    """

    cluster_id: int | None
    cluster_directory: str | os.PathLike[str] | None
    mark_file_directory: str | os.PathLike[str] | None
    aeron_directory: str | os.PathLike[str] | None
    control_channel: str | None
    service_stream_id: int | None
    consensus_module_stream_id: int | None
    replay_channel: str | None
    replay_stream_id: int | None
    snapshot_channel: str | None
    archive_control_channel: str | None
    archive_control_stream_id: int | None
    log_fragment_limit: int | None
    idle_strategy: str | None
    app_version: int | None
    service_id: int | None
    service_name: str | None
    snapshot_stream_id: int | None
    is_responding: bool | None
    error_buffer_length: int | None
    cycle_threshold_ns: int | None
    snapshot_threshold_ns: int | None
