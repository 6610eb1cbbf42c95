"""Snapshots that others take for the member: noted, and copied when the member starts or an operator asks.

Cluster specification 6.7. A message of a standby names the recordings of one snapshot in the standby's archive. They
enter the recording log as entries that no start uses; their copies enter it as the member's own snapshot. One that
another member has taken alone is copied at once.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from typing import TYPE_CHECKING

from headrace._agent.tasks import RunningTask, Task
from headrace._base.exceptions import HeadraceError
from headrace.cluster.common.node_config import NS_PER_S
from headrace.cluster.common.recording_copies import OtherArchive, RecordingCopies
from headrace.cluster.errors import ClusterError, ClusterFileError
from headrace.cluster.files.recording_log_entries import Entry, EntryType
from headrace.cluster.member.destinations import destination
from headrace.cluster.member.start_plan import find_plan
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.clock import Deadline
    from headrace.cluster.member.context import Context
    from headrace.cluster.protocol.consensus import StandbySnapshotRecording

__all__ = ["StandbySnapshots"]

# Messages whose snapshots are not agreed upon yet.
_NOTICES_MAX = 64


class StandbySnapshots:
    """What the member knows of standbys' snapshots. Stepped on slow ticks."""

    def __init__(self, context: Context) -> None:
        self._context = context
        # The recordings of each, and whether they are of a member, to be copied at once.
        self._notices: deque[tuple[Sequence[StandbySnapshotRecording], bool]] = deque()
        self._is_copy_due = False
        # Of the first of them, once the log is agreed upon up to its snapshot.
        self._due: Deadline | None = None
        self._task = RunningTask()
        config, timeout_s = context.config, 2 * context.config.archive_message_timeout_ns / NS_PER_S
        self._copies = RecordingCopies(
            context.client,
            context.archive,
            config.replication_channel or "",
            progress_timeout_s=timeout_s,
            progress_interval_s=timeout_s / 10,
        )

    def notice(self, snapshots: Sequence[StandbySnapshotRecording], *, is_of_member: bool = False) -> None:
        """A standby has taken a snapshot, in these recordings; or another member, whose is copied at once."""
        if not snapshots or (snapshots, is_of_member) in self._notices:
            return
        if len(self._notices) == _NOTICES_MAX:
            self._notices.popleft()
            self._due = None
            self._context.log.warning(
                "standbys take more snapshots than the cluster agrees upon: one is left out"
            )
        self._notices.append((snapshots, is_of_member))

    def do_work(self) -> int:
        """Note what is agreed upon, and go on copying."""
        work_count = self._note_due() + self._task.step()
        if self._is_copy_due and self._task.is_idle:
            self._is_copy_due = False
            self.begin_copying()
        return work_count

    def _note_due(self) -> int:
        context = self._context
        if not self._notices or self._notices[0][0][0].log_position > context.commit_position:
            return 0
        snapshots, is_of_member = self._notices[0]
        if is_of_member:
            self._notices.popleft()
            self._is_copy_due = True
            if not self._is_noted(snapshots):
                self._note(snapshots)
            return 1
        if self._due is None:
            delay_s = context.config.standby_snapshot_delay_ns / NS_PER_S
            self._due = context.client.clock.deadline(delay_s)
        if not self._due.is_over:
            return 0
        self._due = None
        self._notices.popleft()
        self._note(snapshots)
        context.counters.note_standby_snapshot()
        return 1

    def _is_noted(self, snapshots: Sequence[StandbySnapshotRecording]) -> bool:
        first = _entry(snapshots[0])
        return any(
            (one.log_position, one.archive_endpoint, one.recording_id)
            == (first.log_position, first.archive_endpoint, first.recording_id)
            for one in self._context.recording_log
        )

    def _note(self, snapshots: Sequence[StandbySnapshotRecording]) -> None:
        log = self._context.recording_log
        try:
            for one in snapshots:
                log.append_snapshot(_entry(one))
        except ClusterFileError as wrong:
            self._context.log.warning("a standby's snapshot cannot be noted", str(wrong))
        log.force()

    def begin_copying(self) -> None:
        """Copy what is newer than the member's own, unless that is under way; later steps do it."""
        if self._task.is_idle:
            self._task.begin(self.copied(self._context.commit_position))

    def copied(self, end: int) -> Task[None]:
        """Copy the latest snapshot of a standby that is newer than the member's own; failures are logged.

        Args:
            end: Up to where the member has the log. A start needs the log from its snapshot on.
        """
        context = self._context
        found = self._newer(end)
        failures = []
        for entries in found:
            try:
                yield from self._copied(entries)
            except HeadraceError as failure:
                failures.append(f"{entries[0].archive_endpoint}: {failure}")
            else:
                yield from find_plan(context)
                return
        if failures:
            context.log.warning("no snapshot of a standby can be copied", "; ".join(failures))

    def _newer(self, end: int) -> list[list[Entry]]:
        """The latest whole snapshot of each standby's archive that is newer than the member's own, the latest first."""
        context = self._context
        parts = range(context.config.service_count - 1, NULL_VALUE - 1, -1)
        own = max((one.log_position for one in context.recording_log if one.is_snapshot), default=NULL_VALUE)
        sets: dict[tuple[int, str], dict[int, Entry]] = {}
        for one in context.recording_log:
            if one.is_valid and one.archive_endpoint and own < one.log_position <= end:
                sets.setdefault((one.log_position, one.archive_endpoint), {})[one.service_id] = one
        latest: dict[str, list[Entry]] = {}
        for (_, endpoint), taken in sorted(sets.items()):
            if taken.keys() == set(parts):
                latest[endpoint] = [taken[part] for part in parts]
        return sorted(
            latest.values(), key=lambda entries: (-entries[0].log_position, entries[0].archive_endpoint)
        )

    def _copied(self, entries: list[Entry]) -> Task[None]:
        """Copy one of them; the module's part is last, and with it the copy counts."""
        context, config = self._context, self._context.config
        endpoint = entries[0].archive_endpoint
        assert endpoint is not None, "of standbys alone"
        if config.replication_channel is None:
            raise ClusterError("replication_channel is not set: the address at which the copy arrives")
        yield from self._copies.cleared()
        other = OtherArchive(
            destination(config.leader_archive_control_channel, endpoint), config.archive_control_stream_id
        )
        own = []
        for entry in entries:
            recording_id = yield from self._copies.copied(other, entry.recording_id)
            own.append(
                dataclasses.replace(
                    entry, recording_id=recording_id, type=EntryType.SNAPSHOT, archive_endpoint=None
                )
            )
        for entry in own:
            context.recording_log.append_snapshot(entry)
        context.recording_log.force()
        self._copies.keep(entry.recording_id for entry in own)
        context.counters.snapshot_count.get_and_add(1)
        context.log.info(f"the snapshot at log_position={own[-1].log_position} is copied from {endpoint}")


def _entry(one: StandbySnapshotRecording) -> Entry:
    return Entry(
        recording_id=one.recording_id,
        leadership_term_id=one.leadership_term_id,
        term_base_log_position=one.term_base_log_position,
        log_position=one.log_position,
        timestamp=one.timestamp,
        service_id=one.service_id,
        type=EntryType.STANDBY_SNAPSHOT,
        archive_endpoint=one.archive_endpoint,
    )
