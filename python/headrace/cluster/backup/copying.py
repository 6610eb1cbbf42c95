"""Copying what a member has answered: new snapshots, the log, and what the recording log says of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cluster.backup.live_log import LiveLog
from headrace.cluster.backup.source import Source
from headrace.cluster.backup.states import BackupState
from headrace.cluster.common.node_config import NS_PER_S
from headrace.cluster.common.recording_copies import RecordingCopies
from headrace.cluster.errors import ClusterError, ClusterTerminalError
from headrace.cluster.files.recording_log_entries import Entry, EntryType
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace._agent.tasks import Task
    from headrace.cluster.backup.context import Context
    from headrace.cluster.protocol.consensus import BackupResponse, SnapshotRecording

__all__ = ["Copying"]


class Copying:
    """The copies from one member at a time. Stepped by its owner, who also looks whether the log still comes."""

    def __init__(self, context: Context) -> None:
        self._context = context
        config = context.config
        self._copies = RecordingCopies(
            context.client,
            context.archive,
            config.copies,
            progress_timeout_s=config.replication_progress_timeout_ns / NS_PER_S,
            progress_interval_s=config.replication_progress_interval_ns / NS_PER_S,
        )
        self._source: Source | None = None
        self._live_log: LiveLog | None = None

    def step(self) -> None:
        """Part of a turn.

        Raises:
            ClusterError: The member's archive is gone.
        """
        if self._source is not None:
            self._source.step()

    def check(self) -> None:
        """Look whether the log still comes.

        Raises:
            ClusterError: It does not.
        """
        if self._live_log is not None and not self._live_log.is_active:
            raise ClusterError("the member's archive sends the log no more")

    @property
    def has_log(self) -> bool:
        """Whether the log comes, or is about to."""
        return self._live_log is not None

    @property
    def position(self) -> int:
        """Up to where the log is copied; 0 while none comes."""
        return 0 if self._live_log is None else self._live_log.position

    def leave(self) -> None:
        """Give up the member."""
        live_log, self._live_log = self._live_log, None
        if live_log is not None:
            live_log.close()
        source, self._source = self._source, None
        if source is not None:
            source.close()

    def copied(self, answer: BackupResponse) -> Task[None]:
        """Copy what is new of an answer; goes on once a node can start with it.

        Raises:
            HeadraceError: The answer is another member's, an archive or the driver refuses, or nothing arrives.
            ClusterTerminalError: The recording log cannot be written.
        """
        context = self._context
        if self._source is None:
            self._source = Source(context.client, context.config, answer)
        source = self._source
        if source.member_id != answer.member_id:
            raise ClusterError(
                f"member {answer.member_id} answers now, and the log comes from member {source.member_id}"
            )
        snapshots = self._unknown(answer)
        entries: list[Entry] = []
        if snapshots:
            position = snapshots[-1].log_position
            context.enter(BackupState.SNAPSHOT_RETRIEVE, f"the snapshot at log_position={position} is new")
            entries = yield from self._retrieved(source, snapshots)
        if self._live_log is None:
            context.enter(BackupState.LIVE_LOG_RECORD, f"member {source.member_id} has the log")
            self._live_log = LiveLog(context, source, context.recording_log.log_recording_id)
            yield from self._live_log.recorded()
            context.enter(BackupState.LIVE_LOG_REPLAY, "the archive listens for the log")
            yield from self._live_log.replayed(answer)
        context.enter(BackupState.UPDATE_RECORDING_LOG, "the log arrives")
        yield from self._noted(self._live_log, answer, entries)

    def _unknown(self, answer: BackupResponse) -> list[SnapshotRecording]:
        """The parts of the member's snapshot that are not in the recording log, the module's last."""
        known = {
            (one.leadership_term_id, one.log_position, one.service_id)
            for one in self._context.recording_log
            if one.is_snapshot
        }
        return [
            one
            for one in sorted(answer.snapshots, key=lambda one: -one.service_id)
            if (one.leadership_term_id, one.log_position, one.service_id) not in known
        ]

    def _retrieved(self, source: Source, snapshots: list[SnapshotRecording]) -> Task[list[Entry]]:
        """Copy parts of a snapshot; returns the entries for the recording log."""
        yield from self._copies.cleared()
        entries = []
        for one in snapshots:
            recording_id = yield from self._copies.copied(source.address, one.recording_id)
            entries.append(
                Entry(
                    recording_id=recording_id,
                    leadership_term_id=one.leadership_term_id,
                    term_base_log_position=one.term_base_log_position,
                    log_position=one.log_position,
                    timestamp=one.timestamp,
                    service_id=one.service_id,
                    type=EntryType.SNAPSHOT,
                )
            )
        return entries

    def _noted(self, live_log: LiveLog, answer: BackupResponse, entries: list[Entry]) -> Task[None]:
        """Note the term at once, by which a next attempt goes on; the snapshot once a start could begin with it."""
        context = self._context
        recording_log, recording_id = context.recording_log, live_log.recording_id
        term_id, base = answer.last_leadership_term_id, answer.last_term_base_log_position
        assert recording_id is not None, "the log arrives"
        try:
            if recording_log.term(term_id) is None:
                recording_log.append_term(recording_id, term_id, base, NULL_VALUE)
                recording_log.force()
            yield from live_log.reached(max([base, *(one.log_position for one in entries)]))
            for entry in entries:
                recording_log.append_snapshot(entry)
            recording_log.force()
        except (OSError, ClusterError) as failure:
            raise ClusterTerminalError(f"the recording log cannot be written: {failure}") from failure
        self._copies.keep(entry.recording_id for entry in entries)
        if entries:
            context.counters.snapshots.get_and_add(1)
            context.log.info(f"the snapshot at log_position={entries[-1].log_position} is copied")
