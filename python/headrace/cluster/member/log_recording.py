"""The archive's recording of the log, and the terms that the recording log has. Cluster specification 4.3, 6.2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._agent.tasks import Task
from headrace._base.exceptions import HeadraceError
from headrace.archive.client import calls
from headrace.cluster.errors import ClusterError, ClusterTerminalError
from headrace.cluster.files.recording_log_entries import Entry, EntryType
from headrace.cluster.member.start_plan import find_plan, note_log
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.cluster.common.node_archive import RecordedStream, StreamToRecord
    from headrace.cluster.member.context import Context

__all__ = ["LogRecording"]

# So long the archive may take to end a recording.
_STOP_AWAITED_S = 30.0


class LogRecording:
    """One recording for the whole life of the log, which each term extends."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._stream: RecordedStream | None = None
        self._is_alone = len(context.config.all_members) == 1
        # Terms that begin before there is a recording, which the recording log names in each entry.
        self._unrecorded_terms: list[tuple[int, int]] = []

    # --- recording -------------------------------------------------------------------------------------------------

    @property
    def recording_id(self) -> int | None:
        """Which recording of the archive the log is; ``None`` before there is one."""
        if self._stream is not None:
            return self._stream.recording_id
        plan = self._context.plan
        return None if plan is None or plan.log is None else plan.log.recording_id

    @property
    def is_active(self) -> bool:
        """Whether the archive records the log now."""
        return self._stream is not None and self._stream.is_active(self._context.client)

    @property
    def has_begun(self) -> bool:
        """Whether the log is to be recorded now, be that so or not."""
        return self._stream is not None

    @property
    def position(self) -> int:
        """Up to where the archive has what it records now; 0 while it does not record."""
        return 0 if self._stream is None else self._stream.position(self._context.client)

    def begin(self, stream: StreamToRecord) -> Task[int]:
        """Have the archive record the log; returns the recording id."""
        context, known = self._context, self.recording_id
        recorded = yield from context.archive.recorded_log(stream, known)
        if known is None:
            # Before it is in the recording log: a kill in between must leave no term of a log that looks like another.
            yield from note_log(context, recorded.recording_id)
        self.is_copied_to(recorded.recording_id)
        self._stream = recorded
        return recorded.recording_id

    def is_copied_to(self, recording_id: int) -> None:
        """The log has a recording now: the terms that waited for its id are stored."""
        while self._unrecorded_terms:
            self._store_term(recording_id, *self._unrecorded_terms[0])
            self._unrecorded_terms.pop(0)

    def end(self, log_position: int) -> Task[int]:
        """End the recording of what is left; returns the position up to which the archive has the log.

        Raises:
            ClusterTerminalError: It has less than what was read before.
        """
        context = self._context
        recorded, self._stream = self._stream, None
        recording_id = self.recording_id if recorded is None else recorded.recording_id
        if recording_id is None:
            return log_position
        if recorded is not None:
            try:
                yield from context.archive.asked(calls.stop_recording_subscription(recorded.subscription_id))
            except HeadraceError as refusal:
                context.log.info(f"the recording of the log had ended: {refusal}")
            while recorded.is_active(context.client):
                yield
        position = yield from self.stopped(recording_id)
        yield from find_plan(context)
        if position < log_position:
            raise ClusterTerminalError(
                f"the archive has the log up to position {position} only, but had recorded up to {log_position}: its "
                "files were changed, or its disk has lost them; start the member again, which says what is missing"
            )
        return position

    def stopped(self, recording_id: int) -> Task[int]:
        """Where the recording ends, once it has ended.

        Raises:
            ClusterError: The archive goes on recording it.
        """
        archive = self._context.archive
        deadline = self._context.client.clock.deadline(_STOP_AWAITED_S)
        while (position := (yield from archive.asked(calls.stop_position(recording_id)))) is None:
            if deadline.is_over:
                raise ClusterError(
                    f"the archive does not end recording {recording_id}, which is the log, within "
                    f"{_STOP_AWAITED_S:.0f} s: its error log says why, or another program has it record the log"
                )
            yield
        return position

    # --- terms -----------------------------------------------------------------------------------------------------

    def store_term(self, term_id: int, base: int) -> None:
        """Store that a term begins at a position: on the medium on return, or once the log has a recording.

        No vote of another depends on a term of a cluster of one, which is stored when its log is recorded: a start that
        fails before leaves no trace.
        """
        recording_id = self.recording_id
        if recording_id is None or self._is_alone:
            self._unrecorded_terms.append((term_id, base))
        else:
            self._store_term(recording_id, term_id, base)

    def _store_term(self, recording_id: int, term_id: int, base: int) -> None:
        log, plan = self._context.recording_log, self._context.plan
        before = None
        if log.last_term is None and plan is not None and plan.last_leadership_term_id < term_id:
            # Terms of elections that failed are empty ones, at all members alike.
            before = self._entry(recording_id, plan.last_leadership_term_id, plan.last_term_base_log_position)
        log.ensure_coherent(recording_id, before, self._entry(recording_id, term_id, base))

    def _entry(self, recording_id: int, term_id: int, base: int) -> Entry:
        return Entry(
            recording_id=recording_id,
            leadership_term_id=term_id,
            term_base_log_position=base,
            log_position=NULL_VALUE,
            timestamp=self._context.now,
            type=EntryType.TERM,
        )

    def restore_term(self, term_id: int, base: int) -> None:
        """Store a term that the log has, and the recording log lacks, of which a kill has cut the end."""
        last = self._context.recording_log.last_term
        if last is not None and last.leadership_term_id < term_id:
            self._store_term(last.recording_id, term_id, base)

    def drop_terms(self, position: int) -> None:
        """Take what begins after a position out of the recording log; on the medium on return."""
        self._unrecorded_terms = [one for one in self._unrecorded_terms if one[1] <= position]
        self._context.recording_log.cut_back(position)

    def end_term(self, term_id: int, position: int) -> None:
        """Store where a term ends; on the medium on return."""
        log = self._context.recording_log
        log.commit_log_position(term_id, position)
        log.force()
