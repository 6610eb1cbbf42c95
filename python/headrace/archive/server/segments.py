"""Segment files that leave and join recordings: detached, deleted, attached, migrated.

All checks come before any change. Files are attached one a turn; ``deletions.py`` deletes them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.archive.errors import SegmentError
from headrace.archive.files.pending_segments import SegmentPurge
from headrace.archive.files.segment_rules import (
    attached_start,
    check_moves,
    check_new_start,
    planned_migration,
)
from headrace.archive.protocol.codes import ErrorCode
from headrace.archive.server.errors import RequestError, refused_as

if TYPE_CHECKING:
    from headrace._agent.storage import Storage
    from headrace.archive.files.pending_segments import Migration
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.archive.server.context import Context
    from headrace.archive.server.deletions import Deletions, ReplyTo
    from headrace.archive.server.recordings import Recordings
    from headrace.archive.server.replays import Replays

__all__ = ["Segments"]


@dataclass(slots=True, eq=False)
class _Attachment:
    reply_to: ReplyTo
    recording_id: int
    count: int = 0


class Segments:
    """Changes which segment files belong to a recording.

    Args:
        context: The context of the archive.
        recordings: Knows the positions of active recordings.
        replays: Knows which files are being read.
        deletions: Deletes files.
    """

    def __init__(
        self, context: Context, recordings: Recordings, replays: Replays, deletions: Deletions
    ) -> None:
        self._context = context
        self._recordings = recordings
        self._replays = replays
        self._deletions = deletions
        self._attachments: list[_Attachment] = []

    # --- detach, delete --------------------------------------------------------------------------------------------

    def detach(self, recording_id: int, position: int) -> None:
        """Make a recording begin in a later segment file; the files before it stay where they are."""
        descriptor = self._free(recording_id)
        self._check_new_start(descriptor, position)
        SegmentPurge.forget(self._context.storage, recording_id)
        self._context.stored.move_start(recording_id, position)
        self._note(recording_id, f"begins at position={position}; the segment files before are detached")

    def purge(self, reply_to: ReplyTo, recording_id: int, position: int) -> int:
        """Make a recording begin in a later segment file, and delete the files before it; returns how many."""
        descriptor = self._free(recording_id)
        self._check_new_start(descriptor, position)
        return self._purge(reply_to, descriptor, position, "a client asked for it")

    def expire(self, descriptor: RecordingDescriptor, position: int) -> None:
        """As :meth:`purge`, for the retention of a recording whose files nothing else changes.

        Raises:
            OSError: The disk refuses.
        """
        self._purge(None, descriptor, position, f"its retention {descriptor.retention} no longer keeps them")

    def _purge(
        self, reply_to: ReplyTo | None, descriptor: RecordingDescriptor, position: int, why: str
    ) -> int:
        context, recording_id = self._context, descriptor.recording_id
        # With the files that the disk has not deleted in earlier purges.
        left = SegmentPurge.left(context.storage, recording_id)
        first = min([descriptor.geometry.first_segment, *(one.first for one in left)])
        purge = SegmentPurge(recording_id, first, position)
        purge.begin(context.storage, context.config.file_sync_level)
        try:
            context.stored.move_start(recording_id, position)
        except OSError:
            # Otherwise a later detachment at this position would be taken for its decision.
            with contextlib.suppress(OSError):
                purge.end(context.storage, context.config.file_sync_level)
            raise
        what = f"begins at position={position}; the segment files before are deleted: {why}"
        self._note(recording_id, what)
        return self._delete(reply_to, purge, descriptor, f"it {what}", left)

    def delete_detached(self, reply_to: ReplyTo, recording_id: int) -> int:
        """Delete the segment files before the start of a recording; returns how many."""
        descriptor, context = self._free(recording_id), self._context
        purge = SegmentPurge.of_detached(context.storage, descriptor)
        if purge is None:
            first = descriptor.geometry.first_segment
            purge = SegmentPurge(recording_id, first, first)
        purge.begin(context.storage, context.config.file_sync_level)
        return self._delete(
            reply_to, purge, descriptor, "a client asked to delete its detached segment files"
        )

    def _delete(
        self,
        reply_to: ReplyTo | None,
        purge: SegmentPurge,
        descriptor: RecordingDescriptor,
        reason: str,
        left: Sequence[SegmentPurge] = (),
    ) -> int:
        names = purge.files(self._context.storage, descriptor.segment_file_length)

        def end(storage: Storage, sync_level: int) -> None:
            purge.end(storage, sync_level)
            for one in left:
                storage.delete(one.name)

        self._context.stored.begin_segment_work(purge.recording_id, "another delete operation")
        self._deletions.delete_segments(reply_to, purge.recording_id, names, end, reason)
        return len(names)

    def _check_new_start(self, descriptor: RecordingDescriptor, position: int) -> None:
        recording_id = descriptor.recording_id
        active = self._recordings.active(recording_id)
        with refused_as(ErrorCode.GENERIC):
            check_new_start(
                descriptor, position, descriptor.stop_position if active is None else active.position
            )
        if self._replays.reads_before(recording_id, position):
            text = (
                f"a replay reads a segment file before newStartPosition={position} for recording {recording_id}: "
                "stop it first"
            )
            raise RequestError(ErrorCode.GENERIC, text)

    # --- attach ----------------------------------------------------------------------------------------------------

    def attach(self, reply_to: ReplyTo, recording_id: int) -> None:
        """Attach the files that end where a recording begins, from the last on; answers when all are checked."""
        self._free(recording_id)
        self._context.stored.begin_segment_work(recording_id, "attaching segments")
        self._attachments.append(_Attachment(reply_to, recording_id))

    def do_work(self) -> int:
        """One turn: at most one file of each attachment."""
        work_count = 0
        for attachment in list(self._attachments):
            work_count += 1
            try:
                is_over = not self._attach_one(attachment)
            except Exception as failure:
                self._end(attachment)
                self._refuse(attachment, failure)
                continue
            if is_over:
                self._end(attachment)
                attachment.reply_to.session.send_ok(attachment.reply_to.correlation_id, attachment.count)
        return work_count

    def _end(self, attachment: _Attachment) -> None:
        self._attachments.remove(attachment)
        self._context.stored.end_segment_work(attachment.recording_id)

    def _refuse(self, attachment: _Attachment, failure: Exception) -> None:
        text = f"cannot attach segments to recording {attachment.recording_id}, {attachment.count} were: {failure}"
        if isinstance(failure, SegmentError):
            self._context.log.info(text)
        else:
            self._context.log.error(text, failure)
        attachment.reply_to.session.send_error(attachment.reply_to.correlation_id, ErrorCode.GENERIC, text)

    def _attach_one(self, attachment: _Attachment) -> bool:
        """Attach the file before the first; false if there is none that can come before it."""
        context, recording_id = self._context, attachment.recording_id
        descriptor = context.catalog.find(recording_id)
        assert descriptor is not None, "nothing else changes it meanwhile"
        first = attached_start(context.storage, descriptor, context.record_checksum)
        if first is None:
            return False
        context.stored.move_start(recording_id, first)
        attachment.count += 1
        self._note(recording_id, f"begins at position={first}; a segment file was attached")
        return True

    # --- migrate ---------------------------------------------------------------------------------------------------

    def migrate(self, reply_to: ReplyTo, source_id: int, destination_id: int) -> int:
        """Make all of a stopped recording the beginning, or the end, of another; returns how many files moved."""
        migration = self._planned(self._free(source_id), self._free(destination_id))
        context, sync_level = self._context, self._context.config.file_sync_level
        source = self._known(source_id)
        moves = migration.moves(source.geometry)
        left = migration.left_files(context.storage, source.geometry)
        if not moves and not left:
            return 0
        migration.begin(context.storage, sync_level)
        try:
            migration.carry_out(context.catalog, context.storage)
        except OSError as refusal:
            self._take_back(migration, refusal)
            raise
        where = "before" if migration.is_before else "after"
        self._note(
            source_id, f"is empty: its {len(moves)} segment files are {where} recording_id={destination_id}"
        )
        context.stored.begin_segment_work(source_id, "another delete operation", is_at_end=True)
        reason = f"its segment files have moved to recording_id={destination_id}"
        self._deletions.delete_segments(reply_to, source_id, left, migration.end, reason)
        return len(moves)

    def _planned(self, source: RecordingDescriptor, destination: RecordingDescriptor) -> Migration:
        """The migration, if all checks pass."""
        with refused_as(ErrorCode.GENERIC):
            migration = planned_migration(source, destination)
        if self._replays.has_replays(source.recording_id):
            text = f"cannot migrate recording with active replay {source.recording_id}: stop it first"
            raise RequestError(ErrorCode.GENERIC, text)
        with refused_as(ErrorCode.GENERIC):
            check_moves(self._context.storage, migration, source)
        return migration

    def _take_back(self, migration: Migration, refusal: OSError) -> None:
        """Undo a migration that the disk refused; if this fails too, the next start finishes the migration."""
        context, source_id = self._context, migration.source_id
        try:
            migration.take_back(context.catalog, context.storage, context.config.file_sync_level)
        except OSError as failure:
            text = (
                f"the disk refused a migration to recording_id={migration.destination_id}, {refusal}, and does not let "
                f"the archive undo it, {failure}; the next start of the archive finishes it"
            )
            context.log.error(f"recording_id={source_id}: {text}", failure)
            context.stored.left_alone(source_id, text)
            if not migration.is_before:
                # It would be extended where files of the source may be.
                context.stored.left_alone(migration.destination_id, text)

    # --- all -------------------------------------------------------------------------------------------------------

    def _known(self, recording_id: int) -> RecordingDescriptor:
        descriptor = self._context.catalog.find(recording_id)
        if descriptor is None:
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, f"unknown recording id: {recording_id}")
        return descriptor

    def _free(self, recording_id: int) -> RecordingDescriptor:
        """A recording whose files nothing else changes."""
        descriptor = self._known(recording_id)
        work = self._context.stored.work_under_way(recording_id)
        if work is not None:
            raise RequestError(ErrorCode.GENERIC, f"{work} in progress for recording id: {recording_id}")
        return descriptor

    def _note(self, recording_id: int, what: str) -> None:
        self._context.log.info(f"recording_id={recording_id} {what}")
