"""A driver at one moment, and following it from one moment to the next across restarts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from headrace._base.closing import Closing
from headrace._base.counter_record import CounterRecord
from headrace.clock import SYSTEM_CLOCK, Clock
from headrace.cnc.cnc_file import CncFile
from headrace.cnc.error_log import ErrorEntry, read_error_log


@dataclass(frozen=True, slots=True)
class DriverSnapshot:
    """What the driver's file said at `time_ms` (epoch). `heartbeat_age_ms` is `None` after an orderly stop.

    `is_process_dead` is always false for Aeron's drivers, which show it by their heartbeat alone.
    """

    time_ms: int
    path: Path
    version: str
    pid: int
    start_timestamp_ms: int
    driver_timeout_ms: int
    heartbeat_age_ms: int | None
    is_process_dead: bool
    counters: tuple[CounterRecord, ...]
    errors: tuple[ErrorEntry, ...]

    @property
    def is_alive(self) -> bool:
        """Whether the driver showed life within its clients' liveness time-out, and its process has not ended."""
        age_ms = self.heartbeat_age_ms
        return age_ms is not None and age_ms <= self.driver_timeout_ms and not self.is_process_dead


class DriverWatcher(Closing):
    """Takes snapshots of a directory; maps the file again when a new driver has replaced it.

    A context manager. While no driver has the directory, the last file is still shown: its heartbeat says that it
    is the past.
    """

    def __init__(
        self, directory: str | os.PathLike[str], *, timeout_s: float = 0.0, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._directory = directory
        self._clock = clock
        self._cnc = CncFile.open(directory, timeout_s=timeout_s, clock=clock)

    def snapshot(self) -> DriverSnapshot:
        """The driver now."""
        if self._cnc.is_replaced and self._cnc.path.exists():
            newer = CncFile.open(self._directory, timeout_s=1.0, clock=self._clock)
            self._cnc.close()
            self._cnc = newer
        cnc = self._cnc
        now_ms = self._clock.epoch_ms()
        return DriverSnapshot(
            time_ms=now_ms,
            path=cnc.path,
            version=cnc.header.version_text,
            pid=cnc.header.pid,
            start_timestamp_ms=cnc.header.start_timestamp_ms,
            driver_timeout_ms=cnc.header.client_liveness_timeout_ns // 1_000_000,
            heartbeat_age_ms=cnc.heartbeat_age_ms(now_ms),
            is_process_dead=cnc.has_dead_process,
            counters=tuple(cnc.counters),
            errors=tuple(read_error_log(cnc.error_log)),
        )

    def close(self) -> None:
        """Unmap the file. Closing twice is allowed."""
        self._cnc.close()
