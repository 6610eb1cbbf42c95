"""The settings of an archive, as keywords.

Made by `scripts/settings.py` from :class:`headrace.archive.ArchiveConfig`; do not edit.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from headrace.security import Authenticator, AuthorisationService

__all__ = ["ArchiveSettings"]


class ArchiveSettings(TypedDict, total=False):
    """Keyword arguments of an archive; see :class:`headrace.archive.ArchiveConfig` for what they mean.

    ``None`` is as good as not given.
    """

    archive_directory: str | os.PathLike[str] | None
    mark_file_directory: str | os.PathLike[str] | None
    directory_delete_on_start: bool | None
    aeron_directory: str | os.PathLike[str] | None
    archive_id: int | None
    control_channel_enabled: bool | None
    control_channel: str | None
    control_stream_id: int | None
    local_control_channel: str | None
    local_control_stream_id: int | None
    control_term_buffer_sparse: bool | None
    control_term_buffer_length: int | None
    control_mtu_length: int | None
    recording_events_enabled: bool | None
    recording_events_channel: str | None
    recording_events_stream_id: int | None
    replication_channel: str | None
    segment_file_length: int | None
    file_io_max_length: int | None
    file_sync_level: int | None
    catalog_file_sync_level: int | None
    catalog_capacity: int | None
    low_storage_space_threshold: int | None
    max_concurrent_recordings: int | None
    max_concurrent_replays: int | None
    event_limit: int | None
    max_control_sessions: int | None
    authenticator: str | Authenticator | None
    authorisation: str | AuthorisationService | None
    connect_timeout_ns: int | None
    session_liveness_check_interval_ns: int | None
    replay_linger_timeout_ns: int | None
    conductor_cycle_threshold_ns: int | None
    threading_mode: str | None
    idle_strategy: str | None
    error_buffer_length: int | None
    record_checksum: str | None
    replay_checksum: str | None
    mark_file_liveness_timeout_ms: int | None
