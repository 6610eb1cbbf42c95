"""Deletes segment files, one a turn, so that a long list never delays recordings.

The first step notes what begins (``files/pending_operations.py``), the second decides it in the catalog, and after a
kill the next start finishes it.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from headrace._base.states import Life
from headrace.archive.files.pending_operations import Purge, Truncation, purged_files
from headrace.archive.files.segment_rules import check_truncation
from headrace.archive.protocol.codes import ErrorCode, RecordingSignal
from headrace.archive.server.context import Context
from headrace.archive.server.errors import RequestError, refused_as
from headrace.archive.server.states import SEGMENT_PURGE, SegmentPurgeState
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace._agent.storage import Storage
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.archive.server.control_session import ControlSession

__all__ = ["Deletions", "ReplyTo"]


class ReplyTo(NamedTuple):
    """Whom to answer: the session that sent a request, and the request's id."""

    session: ControlSession
    correlation_id: int


@dataclass(slots=True, eq=False)
class _Deletion:
    reply_to: ReplyTo | None
    recording_id: int
    names: deque[str]
    end: Callable[[Storage, int], None]
    life: Life[SegmentPurgeState] | None = None
    """Of a deletion of segment files alone, which the recording does not need: it stays what it is."""
    is_whole: bool = True


class Deletions:
    """Truncates and purges recordings, and deletes the files that this, or a change of segments, leaves over.

    Args:
        context: The context of the archive.
        has_replays: Returns whether a recording is being replayed.
        end_replays: Ends the replays of a recording for a reason, before the next turn of this.
    """

    def __init__(
        self,
        context: Context,
        has_replays: Callable[[int], bool],
        end_replays: Callable[[int, str], object],
    ) -> None:
        self._context = context
        self._has_replays = has_replays
        self._end_replays = end_replays
        self._deletions: list[_Deletion] = []

    def truncate(self, session: ControlSession, correlation_id: int, recording_id: int, position: int) -> int:
        """Delete everything recorded after a position; returns how many files will be deleted."""
        descriptor = self._stopped(recording_id, "truncate")
        with refused_as(ErrorCode.INVALID_POSITION):
            check_truncation(self._context.storage, descriptor, position)
        self._check_free(recording_id)
        self._end_replays(recording_id, f"the recording is truncated at position={position}")
        storage, sync_level = self._context.storage, self._context.config.file_sync_level
        truncation = Truncation(recording_id, position)
        truncation.begin(storage, sync_level)
        self._context.stored.truncate(recording_id, position)
        with self._ends_if_it_fails(recording_id):
            truncation.clear(storage, descriptor, sync_level)
            names = truncation.files(storage, descriptor)
        reply_to = ReplyTo(session, correlation_id)
        self._deletions.append(_Deletion(reply_to, recording_id, deque(names), truncation.end))
        return len(names)

    def purge(self, reply_to: ReplyTo | None, recording_id: int, reason: str) -> int:
        """Delete a stopped recording, for a reason; returns how many files will be deleted."""
        self._stopped(recording_id, "purge")
        self._check_free(recording_id)
        if self._has_replays(recording_id):
            raise RequestError(
                ErrorCode.ACTIVE_RECORDING, f"cannot purge recording with active replay {recording_id}"
            )
        storage = self._context.storage
        purge = Purge(recording_id)
        purge.begin(storage, self._context.config.file_sync_level)
        self._context.stored.purge(recording_id, reason)
        with self._ends_if_it_fails(recording_id):
            names = purged_files(storage, [recording_id])
        self._deletions.append(_Deletion(reply_to, recording_id, deque(names), purge.end))
        return len(names)

    def delete_segments(
        self,
        reply_to: ReplyTo | None,
        recording_id: int,
        names: Iterable[str],
        end: Callable[[Storage, int], None],
        reason: str,
    ) -> None:
        """Delete segment files that left a recording, for a reason, then call `end`, and send the signal.

        The caller must have called :meth:`StoredRecordings.begin_segment_work`, which keeps other changes away from the
        recording meanwhile.
        """
        life = Life(SEGMENT_PURGE)
        life.begin(self._context.events, reason, recording_id)
        self._deletions.append(_Deletion(reply_to, recording_id, deque(names), end, life))

    @contextlib.contextmanager
    def _ends_if_it_fails(self, recording_id: int) -> Iterator[None]:
        """End a deletion whose further steps the disk refuses; its note makes the next start finish it."""
        try:
            yield
        except Exception as failure:
            self._context.stored.deletion_ended(recording_id, f"failed: {failure!r}", is_fault=True)
            raise

    def _stopped(self, recording_id: int, what: str) -> RecordingDescriptor:
        descriptor = self._context.catalog.find(recording_id)
        if descriptor is None:
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, f"unknown recording id: {recording_id}")
        if descriptor.is_active:
            raise RequestError(ErrorCode.ACTIVE_RECORDING, f"cannot {what} active recording {recording_id}")
        return descriptor

    def _check_free(self, recording_id: int) -> None:
        work = self._context.stored.work_under_way(recording_id)
        if work is not None:
            raise RequestError(ErrorCode.GENERIC, f"{work} in progress for recording id: {recording_id}")

    def do_work(self) -> int:
        """One turn: at most one file of each deletion."""
        work_count = 0
        for deletion in list(self._deletions):
            work_count += 1
            try:
                self._step(deletion)
            except Exception as failure:
                # An unexpected exception ends this deletion alone; its note makes the next start finish it.
                text = f"deletion of files of recording_id={deletion.recording_id} failed: {failure!r}"
                self._context.log.error(text, failure)
                if deletion in self._deletions:
                    self._deletions.remove(deletion)
                self._tell_end(deletion, f"failed: {failure!r}", is_fault=True)
        return work_count

    def _tell_end(self, deletion: _Deletion, how: str, *, is_fault: bool) -> None:
        stored = self._context.stored
        if deletion.life is not None:
            deletion.life.enter(SegmentPurgeState.DONE, how, is_fault=is_fault)
            stored.end_segment_work(deletion.recording_id)
        else:
            stored.deletion_ended(deletion.recording_id, how, is_fault=is_fault)

    def _step(self, deletion: _Deletion) -> None:
        if deletion.names:
            self._delete(deletion)
            return
        self._deletions.remove(deletion)
        self._end(deletion)
        how = "all its files were deleted" if deletion.is_whole else "the disk did not delete all its files"
        self._tell_end(deletion, how, is_fault=not deletion.is_whole)
        if deletion.reply_to is not None:
            session, correlation_id = deletion.reply_to
            session.send_signal(
                correlation_id, deletion.recording_id, NULL_VALUE, NULL_VALUE, RecordingSignal.DELETE
            )

    def _end(self, deletion: _Deletion) -> None:
        """Take the note away, unless files are left for the next start to delete."""
        if not deletion.is_whole:
            return
        try:
            deletion.end(self._context.storage, self._context.config.file_sync_level)
        except OSError as failure:
            self._context.log.error(
                f"cannot delete the note of a deletion of recording_id={deletion.recording_id}: {failure}; "
                "the next start of the archive deletes it"
            )

    def _delete(self, deletion: _Deletion) -> None:
        name = deletion.names.popleft()
        try:
            self._context.storage.delete(name)
        except OSError as failure:
            deletion.is_whole = False
            text = f"cannot delete {name}: {failure}; the next start of the archive tries again"
            self._context.log.error(text)
            if deletion.reply_to is not None:
                session, correlation_id = deletion.reply_to
                session.send_error(correlation_id, ErrorCode.GENERIC, text)
