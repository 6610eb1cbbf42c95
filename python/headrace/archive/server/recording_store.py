"""The recordings in the catalog, and the one place where a running archive changes their state.

The catalog changes first, on disk; then the event log gets the change. Only a migration changes the positions of two
recordings in the catalog itself (``files/pending_segments.py``), as the start after a kill does. A stopped recording
costs no memory here: only recordings that are being changed have a life here, the state of all others is in the
catalog.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._base.states import Life
from headrace.archive.files.catalog import STATE_DELETED, STATE_VALID, Catalog
from headrace.archive.protocol.retention import has_retention
from headrace.archive.server.states import STORED_RECORDING, StoredState

if TYPE_CHECKING:
    from headrace._base.states import EventSink
    from headrace.archive.files.catalog import CatalogEntry
    from headrace.archive.protocol.descriptor import RecordingDescriptor

__all__ = ["StoredRecordings"]

_UNDER_WAY = (StoredState.ACTIVE, StoredState.TRUNCATING, StoredState.PURGING)


@dataclass(frozen=True, slots=True)
class _SegmentWork:
    what: str
    is_at_end: bool


class StoredRecordings:
    """Recordings in the catalog, by id.

    Args:
        catalog: The catalog, open for writing.
        events: Gets each change.
    """

    def __init__(self, catalog: Catalog, events: EventSink) -> None:
        self._catalog = catalog
        self._events = events
        self._lives: dict[int, Life[StoredState]] = {}
        self._segment_work: dict[int, _SegmentWork] = {}
        self.retained = {
            entry.recording_id for entry in catalog if has_retention(entry.descriptor.original_channel)
        }
        """Recordings whose channel may have a retention; of those that are gone, ids may be left."""

    def state(self, recording_id: int) -> StoredState | None:
        """The state of a recording; ``None`` when the catalog does not have it."""
        life = self._lives.get(recording_id)
        if life is not None:
            return life.state
        entry = self._catalog.find_entry(recording_id)
        return None if entry is None else _state_of(entry)

    def has_deletion(self, recording_id: int) -> bool:
        """True while files at the end of a recording wait to be deleted, so that it cannot be extended."""
        work = self._segment_work.get(recording_id)
        is_truncated = self.state(recording_id) in (StoredState.TRUNCATING, StoredState.PURGING)
        return is_truncated or (work is not None and work.is_at_end)

    def work_under_way(self, recording_id: int) -> str | None:
        """The present change of a recording's files, in words; ``None`` when another change may begin."""
        work = self._segment_work.get(recording_id)
        if work is not None:
            return work.what
        return "another delete operation" if self.has_deletion(recording_id) else None

    def begin_segment_work(self, recording_id: int, what: str, *, is_at_end: bool = False) -> None:
        """Keep other changes away from a recording until :meth:`end_segment_work`.

        Args:
            recording_id: Which recording; it may be active.
            what: The change of its files, in words.
            is_at_end: Whether it is at the end of the recording, so that it cannot be extended.
        """
        self._segment_work[recording_id] = _SegmentWork(what, is_at_end)

    def end_segment_work(self, recording_id: int) -> None:
        """Allow other changes of a recording again."""
        self._segment_work.pop(recording_id, None)

    def latest(self, stream_id: int, session_id: int) -> RecordingDescriptor | None:
        """The latest recording of a publisher."""
        found = None
        for entry in self._catalog.valid_from(0):
            descriptor = entry.descriptor
            if (descriptor.stream_id, descriptor.session_id) == (stream_id, session_id):
                found = descriptor
        return found

    def add(self, descriptor: RecordingDescriptor) -> None:
        """Put a recording into the catalog, under the next id. Raises as :meth:`Catalog.add`."""
        recording_id = self._catalog.add(descriptor)
        self._note_retention(recording_id, descriptor.original_channel)
        life = self._lives[recording_id] = Life(STORED_RECORDING)
        life.begin(
            self._events,
            f"it begins at position={descriptor.start_position}",
            recording_id,
            stream_id=descriptor.stream_id,
            session_id=descriptor.session_id,
            detail=descriptor.original_channel,
        )

    def add_empty(self, descriptor: RecordingDescriptor) -> None:
        """Put an empty recording into the catalog, which ends where it begins. Raises as :meth:`add`."""
        self.add(descriptor)
        recording_id = descriptor.recording_id
        reason = "it is empty, to be filled by a replication"
        self._enter(self._lives[recording_id], recording_id, StoredState.STOPPED, reason)

    def refill(self, descriptor: RecordingDescriptor) -> None:
        """Replace the description of an empty recording by that of a replication. Raises as :meth:`Catalog.refill`."""
        self._catalog.refill(descriptor)
        self._note_retention(descriptor.recording_id, descriptor.original_channel)

    def extended(
        self, recording_id: int, control_session_id: int, correlation_id: int, session_id: int
    ) -> None:
        """Note that another publisher extends a recording. Raises as :meth:`Catalog.extended`."""
        life = self._life(recording_id)
        self._catalog.extended(recording_id, control_session_id, correlation_id, session_id)
        self._enter(life, recording_id, StoredState.ACTIVE, f"session_id={session_id} goes on with it")

    def stopped(self, recording_id: int, position: int, now_ms: int, reason: str) -> None:
        """Note where and when a recording ended, and why. Raises as :meth:`Catalog.stopped`."""
        life = self._life(recording_id)
        self._catalog.stopped(recording_id, position, now_ms)
        self._enter(life, recording_id, StoredState.STOPPED, f"{reason}, position={position}")

    def left_alone(self, recording_id: int, damage: str) -> None:
        """Skip a recording until the next start, because a kill does not explain its entry or its files."""
        life = self._life(recording_id)
        self._catalog.leave_alone(recording_id, damage)
        self._enter(life, recording_id, StoredState.SKIPPED, damage, is_fault=True)

    def truncate(self, recording_id: int, position: int) -> None:
        """Move the end of a stopped recording back; its files will be deleted. Raises as :meth:`Catalog.update`."""
        life = self._life(recording_id)
        self._catalog.update(recording_id, stop_position=position)
        self._enter(
            life, recording_id, StoredState.TRUNCATING, f"a client truncates it at position={position}"
        )

    def purge(self, recording_id: int, reason: str) -> None:
        """Remove a stopped recording; its files will be deleted. Raises as :meth:`Catalog.set_state`."""
        life = self._life(recording_id)
        self._catalog.set_state(recording_id, STATE_DELETED)
        self._enter(life, recording_id, StoredState.PURGING, reason)

    def replace_channel(self, recording_id: int, original: str, stripped: str) -> None:
        """Give a recording another channel. Raises as :meth:`Catalog.replace_channel`."""
        self._catalog.replace_channel(recording_id, original, stripped)
        self._note_retention(recording_id, original)

    def _note_retention(self, recording_id: int, channel: str) -> None:
        if has_retention(channel):
            self.retained.add(recording_id)
        else:
            self.retained.discard(recording_id)

    def move_start(self, recording_id: int, position: int) -> None:
        """Make a recording begin in another segment file. Raises as :meth:`Catalog.update`."""
        self._catalog.update(recording_id, start_position=position)

    def deletion_ended(self, recording_id: int, reason: str, *, is_fault: bool) -> None:
        """Note the end of a deletion; the next start deletes the files that are left."""
        life = self._life(recording_id)
        is_purged = life.state is StoredState.PURGING
        new = StoredState.DELETED if is_purged else StoredState.STOPPED
        self._enter(life, recording_id, new, reason, is_fault=is_fault)

    def _life(self, recording_id: int) -> Life[StoredState]:
        """The life of a recording that is about to change."""
        life = self._lives.get(recording_id)
        entry = self._catalog.find_entry(recording_id)
        if life is None and entry is not None:
            life, descriptor = Life(STORED_RECORDING), entry.descriptor
            life.go_on(
                _state_of(entry),
                self._events,
                recording_id,
                stream_id=descriptor.stream_id,
                session_id=descriptor.session_id,
                detail=descriptor.original_channel,
            )
        # Without an entry the catalog refuses the change.
        return life or Life(STORED_RECORDING)

    def _enter(
        self,
        life: Life[StoredState],
        recording_id: int,
        new: StoredState,
        reason: str,
        *,
        is_fault: bool = False,
    ) -> None:
        life.enter(new, reason, is_fault=is_fault)
        if life.state in _UNDER_WAY:
            self._lives[recording_id] = life
        else:
            self._lives.pop(recording_id, None)


def _state_of(entry: CatalogEntry) -> StoredState:
    """The state of an idle recording, by the catalog alone."""
    if entry.state == STATE_DELETED:
        return StoredState.DELETED
    if entry.state != STATE_VALID or entry.defect is not None:
        return StoredState.SKIPPED
    return StoredState.ACTIVE if entry.descriptor.is_active else StoredState.STOPPED
