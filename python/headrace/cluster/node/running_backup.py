"""A backup that runs, ours or Aeron's, as an operator sees it. Cluster specification 8.4."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.clock import SYSTEM_CLOCK
from headrace.cluster.common.counters import ClusterCounter
from headrace.cluster.errors import ClusterError
from headrace.cluster.files.mark_file import ClusterComponentType
from headrace.cluster.node.running_member import RunningMember

if TYPE_CHECKING:
    from pathlib import Path

    from headrace._base.counter_record import CounterRecord
    from headrace.clock import Clock

__all__ = ["RunningBackup"]


class RunningBackup(RunningMember):
    """The backup of a directory.

    Raises:
        ClusterFileError: There is no mark file, or it is damaged.
        ClusterError: It is not a backup's.
    """

    def __init__(self, path: str | Path, *, clock: Clock = SYSTEM_CLOCK) -> None:
        super().__init__(path, clock=clock)
        if self.mark.component_type != ClusterComponentType.BACKUP:
            raise ClusterError(
                f"not a cluster backup node: {path} is the directory of a {self.mark.component}"
            )

    @property
    def next_query_ms(self) -> int:
        """When it asks the cluster next, in milliseconds since 1970; in the past while it does.

        Raises:
            DriverFileMissingError: There is no driver's file.
            DriverGoneError: The driver has stopped or died.
            ClusterError: The backup does not run.
        """
        return self._next_query().value

    def query_at(self, time_ms: int) -> None:
        """Have it ask the cluster at a time, in milliseconds since 1970, or at once if that is over.

        Raises:
            DriverFileMissingError: There is no driver's file.
            DriverGoneError: The driver has stopped or died.
            ClusterError: The backup does not run, or asks just now.
        """
        record = self._next_query()
        with self._connected() as client:
            if not client.counters.compare_and_set(record, time_ms):
                raise ClusterError("the backup asks the cluster now")

    def _next_query(self) -> CounterRecord:
        record = self._counter(ClusterCounter.BACKUP_NEXT_QUERY)
        if record is None:
            raise ClusterError("the backup does not run: its driver has no counter of it")
        return record
