"""Retention, applied: segment files that their recording need not keep any longer go (design note 41)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from headrace._exceptions import ConfigError
from headrace.archive.files.retention_holds import holds_in
from headrace.archive.protocol.retention import Retention
from headrace.positions import FRAME_ALIGNMENT, segment_name

if TYPE_CHECKING:
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.archive.server.context import Context
    from headrace.archive.server.recordings import Recordings
    from headrace.archive.server.replays import Replays
    from headrace.archive.server.segments import Segments

__all__ = ["PASS_INTERVAL_NS", "Expiry"]

PASS_INTERVAL_NS = 10_000_000_000
"""How often every recording with a retention is looked at."""
# Times of so many files are looked at in a turn; the next pass goes on with those after them.
_FILES_A_TURN = 256


class Expiry:
    """Purges segment files that no retention, replay or hold keeps.

    Args:
        context: What the archive shares.
        recordings: Tells how far an active recording is.
        replays: Tells which files are being read.
        segments: Purges them.
    """

    def __init__(
        self, context: Context, recordings: Recordings, replays: Replays, segments: Segments
    ) -> None:
        self._context = context
        self._recordings = recordings
        self._replays = replays
        self._segments = segments
        self._waiting: deque[int] = deque()
        self._next_pass_ns = context.clock.monotonic_ns()
        # What was said of a recording is not said again in the next pass.
        self._told: set[tuple[int, str]] = set()

    def do_work(self) -> int:
        """One turn: one recording; gives how many were purged."""
        if not self._waiting:
            now_ns = self._context.clock.monotonic_ns()
            if now_ns >= self._next_pass_ns:
                self._next_pass_ns = now_ns + PASS_INTERVAL_NS
                self._waiting.extend(sorted(self._context.stored.retained))
            return 0
        recording_id = self._waiting.popleft()
        try:
            return int(self._apply(recording_id))
        except OSError as refusal:
            self._tell(recording_id, f"its retention cannot be applied: {refusal}", is_fault=True)
        except Exception as failure:
            self._context.log.error(f"retention of recording_id={recording_id} failed: {failure!r}", failure)
        return 0

    def _apply(self, recording_id: int) -> bool:
        """Purge what a recording need not keep; whether there was something."""
        stored, descriptor = self._context.stored, self._context.catalog.find(recording_id)
        if descriptor is None or stored.work_under_way(recording_id) is not None:
            return False
        try:
            retention = Retention.of(descriptor.original_channel)
        except ConfigError as wrong:
            self._tell(recording_id, f"it keeps everything, as its retention cannot be: {wrong}")
            return False
        if retention is None:
            return False
        first = descriptor.geometry.first_segment
        start = self._expired_before(descriptor, retention)
        if start > first:
            start = self._not_read_before(descriptor, start)
        if start <= first:
            return False
        self._segments.expire(descriptor, start)
        return True

    def _expired_before(self, descriptor: RecordingDescriptor, retention: Retention) -> int:
        """Where the first file begins that the retention keeps."""
        geometry, active = descriptor.geometry, self._recordings.active(descriptor.recording_id)
        end = descriptor.stop_position if active is None else active.position
        first = geometry.first_segment
        # The file with the newest data stays, and not an empty one after it alone.
        most = geometry.segment_base(max(first, end - FRAME_ALIGNMENT))
        if retention.bytes is not None:
            most = min(most, geometry.segment_base(max(first, end - retention.bytes)))
        if retention.time_ms is None:
            return most
        oldest_ms = self._context.clock.epoch_ms() - retention.time_ms
        for base in range(first, most, geometry.segment_length)[:_FILES_A_TURN]:
            if self._written_ms(descriptor, base) > oldest_ms:
                return base
            first = base + geometry.segment_length
        return first

    def _written_ms(self, descriptor: RecordingDescriptor, base: int) -> int:
        """When a file got its newest data: not before the recording began, whatever the file system says."""
        name = segment_name(descriptor.recording_id, base)
        return max(self._context.storage.modified_ms(name), descriptor.start_timestamp)

    def _not_read_before(self, descriptor: RecordingDescriptor, start: int) -> int:
        """Where the first file begins that a replay or a hold needs, or this start if that comes first."""
        recording_id, geometry = descriptor.recording_id, descriptor.geometry
        read = self._replays.first_segment_read(recording_id)
        if read is not None:
            start = min(start, read)
        # Looked at only now, and always: a hold may be made at any time.
        for one in holds_in(self._context.storage):
            held = geometry.segment_base(one.position)
            if one.recording_id == recording_id and held < start:
                start = held
                self._tell(
                    recording_id, f"the hold {one.name!r} keeps segment files that its retention lets go"
                )
        return start

    def _tell(self, recording_id: int, text: str, *, is_fault: bool = False) -> None:
        """Note something once."""
        if (recording_id, text) in self._told:
            return
        self._told.add((recording_id, text))
        log = self._context.log
        (log.error if is_fault else log.warning)(f"recording_id={recording_id}: {text}")
