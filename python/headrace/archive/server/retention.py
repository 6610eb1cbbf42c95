"""Applies retention: purges segment files that a recording need not keep any longer, and whole recordings.

The times of files come from clocks that may have been wrong. A time in the future must not keep its file until then:
such a file is as old as the next file with a possible time, or as the time for which this archive has known it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from headrace._base.exceptions import ConfigError
from headrace.archive.files.retention_holds import holds_in
from headrace.archive.protocol.retention import Retention
from headrace.positions import FRAME_ALIGNMENT, segment_name

if TYPE_CHECKING:
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.archive.server.context import Context
    from headrace.archive.server.deletions import Deletions
    from headrace.archive.server.recordings import Recordings
    from headrace.archive.server.replays import Replays
    from headrace.archive.server.replications import Replications
    from headrace.archive.server.segments import Segments

__all__ = ["PASS_INTERVAL_NS", "Expiry"]

PASS_INTERVAL_NS = 10_000_000_000
"""How often every recording with a retention is looked at."""
# Times of so many files are looked at in a turn; the next pass goes on with those after them.
_FILES_A_TURN = 256
# Clocks of file servers may be ahead of this machine's by as much; a time beyond is none.
_AHEAD_MAX_MS = 60_000


class Expiry:
    """Purges segment files, and whole recordings that have ended, that no retention, replay or hold keeps.

    Args:
        context: The context of the archive.
        recordings: Knows the positions of active recordings.
        replays: Knows which files are being read.
        segments: Purges files.
        deletions: Purges whole recordings.
        replications: Knows which recordings will be filled.
    """

    def __init__(
        self,
        context: Context,
        recordings: Recordings,
        replays: Replays,
        segments: Segments,
        deletions: Deletions,
        replications: Replications,
    ) -> None:
        self._context = context
        self._recordings = recordings
        self._replays = replays
        self._segments = segments
        self._deletions = deletions
        self._replications = replications
        # Since when, by the clock that never goes back, a recording is known to have a file, or an end, of no time.
        self._known_since_ns: dict[int, dict[int, int]] = {}
        self._waiting: deque[int] = deque()
        self._next_pass_ns = context.clock.monotonic_ns()
        # What was said of a recording is not said again in the next pass.
        self._told: set[tuple[int, str]] = set()

    def do_work(self) -> int:
        """One turn: one recording; returns how many were purged."""
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
        """Purge what a recording need not keep; returns whether there was something."""
        stored, descriptor = self._context.stored, self._context.catalog.find(recording_id)
        if descriptor is None or stored.work_under_way(recording_id) is not None:
            return False
        try:
            retention = Retention.of(descriptor.original_channel)
        except ConfigError as wrong:
            self._tell(recording_id, f"it keeps everything, because its retention is invalid: {wrong}")
            return False
        if retention is None:
            return False
        if retention.ended_ms is not None and self._is_over(descriptor, retention.ended_ms):
            self._known_since_ns.pop(recording_id, None)
            self._deletions.purge(None, recording_id, f"its retention {retention} no longer keeps it")
            self._context.log.info(
                f"recording_id={recording_id} is deleted: its retention {retention} no longer keeps it"
            )
            return True
        first = descriptor.geometry.first_segment
        start = first
        if retention.time_ms is not None or retention.bytes is not None:
            start = self._expired_before(descriptor, retention)
        if start > first:
            start = self._not_read_before(descriptor, start)
        if start <= first:
            return False
        known = self._known_since_ns.get(recording_id, {})
        for base in [base for base in known if base < start]:
            del known[base]
        self._segments.expire(descriptor, start)
        return True

    def _expired_before(self, descriptor: RecordingDescriptor, retention: Retention) -> int:
        """The base of the first file that the retention keeps."""
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
        bases = range(first, most, geometry.segment_length)[:_FILES_A_TURN]
        later: tuple[int, int | None] = first - 1, None
        for base in bases:
            written_ms = self._written_ms(descriptor, base)
            if written_ms is None:
                if later[0] < base:
                    later = self._next_written(descriptor, bases, base)
                written_ms = self._known_ms(descriptor.recording_id, base) if later[1] is None else later[1]
            if written_ms > oldest_ms:
                return base
            first = base + geometry.segment_length
        return first

    def _written_ms(self, descriptor: RecordingDescriptor, base: int) -> int | None:
        """When a file got its newest data: never before the recording began, even if the file system says so.

        ``None`` if the file system has a time in the future.
        """
        name = segment_name(descriptor.recording_id, base)
        modified_ms = self._context.storage.modified_ms(name)
        if not self._has_come(modified_ms):
            text = (
                "segment files were last written in the future, by the clock of this machine; its retention uses "
                "the times of later files instead, or else counts from now"
            )
            self._tell(descriptor.recording_id, text)
            return None
        start_ms = descriptor.start_timestamp
        return max(modified_ms, start_ms) if self._has_come(start_ms) else modified_ms

    def _has_come(self, time_ms: int) -> bool:
        return time_ms <= self._context.clock.epoch_ms() + _AHEAD_MAX_MS

    def _next_written(
        self, descriptor: RecordingDescriptor, bases: range, base: int
    ) -> tuple[int, int | None]:
        """The next file with a possible time, and this time; the last file and ``None`` if there is none."""
        for later in bases[bases.index(base) + 1 :]:
            written_ms = self._written_ms(descriptor, later)
            if written_ms is not None:
                return later, written_ms
        return bases[-1], None

    def _known_ms(self, recording_id: int, base: int) -> int:
        """The time of day when this archive first looked at something that has no usable time."""
        clock = self._context.clock
        known = self._known_since_ns.setdefault(recording_id, {})
        since_ns = known.setdefault(base, clock.monotonic_ns())
        return clock.epoch_ms() - (clock.monotonic_ns() - since_ns) // 1_000_000

    def _is_over(self, descriptor: RecordingDescriptor, kept_ms: int) -> bool:
        """Whether a recording ended longer ago than its retention keeps it, and nothing needs it."""
        recording_id, storage = descriptor.recording_id, self._context.storage
        if descriptor.is_active or self._recordings.active(recording_id) is not None:
            return False
        geometry = descriptor.geometry
        last = geometry.segment_base(max(geometry.first_segment, descriptor.stop_position - FRAME_ALIGNMENT))
        times = [descriptor.stop_timestamp]
        if storage.length(segment_name(recording_id, last)) is not None:
            times.append(storage.modified_ms(segment_name(recording_id, last)))
        if not self._has_come(descriptor.stop_timestamp):
            text = (
                "it ended in the future, by the clock of this machine; its retention uses the time of its last "
                "file instead, or else counts from now"
            )
            self._tell(recording_id, text)
        ended_ms = max((one for one in times if self._has_come(one)), default=None)
        if ended_ms is None:
            ended_ms = self._known_ms(recording_id, last)
        if ended_ms > self._context.clock.epoch_ms() - kept_ms:
            return False
        if self._replications.fills(recording_id) or self._replays.has_replays(recording_id):
            return False
        held = next((one for one in holds_in(storage) if one.recording_id == recording_id), None)
        if held is not None:
            self._tell(
                recording_id, f"the hold {held.name!r} keeps it, although its retention no longer does"
            )
        return held is None

    def _not_read_before(self, descriptor: RecordingDescriptor, start: int) -> int:
        """The base of the first file that a replay or a hold needs, or `start` if that comes first."""
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
                    recording_id,
                    f"the hold {one.name!r} keeps segment files that its retention no longer keeps",
                )
        return start

    def _tell(self, recording_id: int, text: str, *, is_fault: bool = False) -> None:
        """Log a text once."""
        if (recording_id, text) in self._told:
            return
        self._told.add((recording_id, text))
        log = self._context.log
        (log.error if is_fault else log.warning)(f"recording_id={recording_id}: {text}")
