"""The settings of a consensus module, as keywords.

Made by `scripts/settings.py` from :class:`headrace.cluster.ConsensusModuleConfig`; do not edit.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from headrace.security import Authenticator, AuthorisationService

__all__ = ["ConsensusModuleSettings"]


class ConsensusModuleSettings(TypedDict, total=False):
    """Keyword arguments of a consensus module; see :class:`headrace.cluster.ConsensusModuleConfig` for what they mean.

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
    member_id: int | None
    members: str | None
    member_endpoints: str | None
    appointed_leader_id: int | None
    services_directory: str | os.PathLike[str] | None
    ingress_channel: str | None
    ingress_stream_id: int | None
    ingress_fragment_limit: int | None
    ingress_ipc_allowed: bool | None
    egress_channel: str | None
    log_channel: str | None
    log_stream_id: int | None
    log_control_enabled: bool | None
    consensus_channel: str | None
    consensus_stream_id: int | None
    consensus_control_enabled: bool | None
    replication_channel: str | None
    follower_catchup_channel: str | None
    leader_archive_control_channel: str | None
    snapshot_stream_id: int | None
    archive_response_channel: str | None
    archive_response_stream_id: int | None
    service_count: int | None
    max_sessions: int | None
    session_timeout_ns: int | None
    leader_heartbeat_timeout_ns: int | None
    leader_heartbeat_interval_ns: int | None
    startup_canvass_timeout_ns: int | None
    election_timeout_ns: int | None
    election_status_interval_ns: int | None
    termination_timeout_ns: int | None
    cluster_clock: str | None
    wheel_tick_resolution_ns: int | None
    ticks_per_wheel: int | None
    authenticator: str | Authenticator | None
    authorisation: str | AuthorisationService | None
    error_buffer_length: int | None
    cycle_threshold_ns: int | None
    snapshot_threshold_ns: int | None
    agent_role_name: str | None
    file_sync_level: int | None
    standby_snapshot_delay_ns: int | None
    replication_progress_timeout_ns: int | None
    replication_progress_interval_ns: int | None
    directory_delete_on_start: bool | None
