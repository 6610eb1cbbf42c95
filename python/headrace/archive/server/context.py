"""The context that the parts of a running archive share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.archive.files.checksum import checksum_named

if TYPE_CHECKING:
    from headrace._agent.storage import Storage
    from headrace.archive.files.catalog import Catalog
    from headrace.archive.files.checksum import Checksum
    from headrace.archive.server.config import ArchiveConfig
    from headrace.archive.server.counters import ArchiveCounters
    from headrace.archive.server.log import ArchiveLog
    from headrace.archive.server.recording_store import StoredRecordings
    from headrace.client import Client
    from headrace.clock import Clock
    from headrace.event_log import EventRecorder
    from headrace.security.authorisation import AuthorisationService

__all__ = ["Context"]


@dataclass(slots=True)
class Context:
    """Arguments that every part needs. Clock and storage are here so that tests can bring their own."""

    config: ArchiveConfig
    client: Client
    storage: Storage
    catalog: Catalog
    stored: StoredRecordings
    clock: Clock
    archive_id: int
    counters: ArchiveCounters
    log: ArchiveLog
    events: EventRecorder
    authorisation: AuthorisationService

    @property
    def record_checksum(self) -> Checksum | None:
        """Checksum for frames that are written."""
        return checksum_named(self.config.record_checksum)

    @property
    def replay_checksum(self) -> Checksum | None:
        """Checksum for frames that are read."""
        return checksum_named(self.config.replay_checksum)
