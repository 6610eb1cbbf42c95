"""What the parts of a running archive share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._named_number import NamedNumber
from headrace.archive.checksum import checksum_named

if TYPE_CHECKING:
    from headrace.archive._config import ArchiveConfig
    from headrace.archive.catalog import Catalog
    from headrace.archive.checksum import Checksum
    from headrace.archive.clock import Clock
    from headrace.archive.counters import ArchiveCounters
    from headrace.archive.log import ArchiveLog
    from headrace.archive.storage import Storage
    from headrace.client import Client

__all__ = ["Context", "RecordingSignal", "SourceLocation"]


class RecordingSignal(NamedNumber):
    """What became of a recording."""

    START = 0
    STOP = 1
    EXTEND = 2
    REPLICATE = 3
    MERGE = 4
    SYNC = 5
    DELETE = 6
    REPLICATE_END = 7


class SourceLocation(NamedNumber):
    """Where the recorded publisher is: LOCAL on the archive's own driver, REMOTE elsewhere."""

    LOCAL = 0
    REMOTE = 1


@dataclass(slots=True)
class Context:
    """Arguments that every part needs. Clock and storage are here so that tests can bring their own."""

    config: ArchiveConfig
    client: Client
    storage: Storage
    catalog: Catalog
    clock: Clock
    archive_id: int
    counters: ArchiveCounters
    log: ArchiveLog

    @property
    def record_checksum(self) -> Checksum | None:
        """Checksum for what is written."""
        return checksum_named(self.config.record_checksum)

    @property
    def replay_checksum(self) -> Checksum | None:
        """Checksum for what is read."""
        return checksum_named(self.config.replay_checksum)
