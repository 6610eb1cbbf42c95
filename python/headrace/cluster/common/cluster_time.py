"""A cluster's time: the wall clock, in ms, us or ns since 1970. Only a leader's time enters the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cluster.protocol.codes import ClusterTimeUnit

if TYPE_CHECKING:
    from headrace.clock import Clock

__all__ = ["ClusterTime"]

_NS = {ClusterTimeUnit.MILLIS: 1_000_000, ClusterTimeUnit.MICROS: 1_000, ClusterTimeUnit.NANOS: 1}


class ClusterTime:
    """Time in the unit of a cluster. Time-outs use the monotonic clock instead."""

    def __init__(self, clock: Clock, unit: ClusterTimeUnit) -> None:
        self._clock = clock
        self._ns_per_unit = _NS[unit]

    def now(self) -> int:
        """Time since 1970 in the cluster's unit."""
        return self._clock.epoch_ns() // self._ns_per_unit

    def to_ns(self, time: int) -> int:
        """A time in nanoseconds."""
        return time * self._ns_per_unit
