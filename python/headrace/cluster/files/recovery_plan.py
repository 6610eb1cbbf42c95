"""What a member begins with when it starts: the latest snapshot, and the log after it. Cluster specification 6.3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.cluster.errors import ClusterFileError
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.archive import RecordingDescriptor
    from headrace.cluster.files.recording_log import RecordingLog
    from headrace.cluster.files.recording_log_entries import Entry

__all__ = ["RecoveryPlan", "ReplayedLog", "log_is_gone", "recovery_plan"]


@dataclass(frozen=True, slots=True)
class ReplayedLog:
    """The recording of the log, and the part of it that a start replays.

    Attributes:
        recording_id: Which recording of the member's archive.
        leadership_term_id: The last term in it.
        term_base_log_position: Where that term begins.
        log_position: Where that term ends; -1 when it goes on.
        start_position: Where the replay begins: at the snapshot, or where the recording does.
        stop_position: Where the recording ends; -1 while it is active.
        initial_term_id: Of the recording, as are the others.
        term_buffer_length: Bytes of a term.
        mtu_length: Bytes of a datagram.
        session_id: Of the stream.
    """

    recording_id: int
    leadership_term_id: int
    term_base_log_position: int
    log_position: int
    start_position: int
    stop_position: int
    initial_term_id: int
    term_buffer_length: int
    mtu_length: int
    session_id: int


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """What a member begins with.

    Attributes:
        last_leadership_term_id: The latest term that it knows; -1 for none.
        last_term_base_log_position: Where that begins.
        appended_log_position: How far its log goes.
        committed_log_position: How far it knows that the log was agreed upon.
        snapshots: Of the consensus module, then of the services 0 and on; empty without a snapshot.
        log: The log; ``None`` before the first term.
    """

    last_leadership_term_id: int
    last_term_base_log_position: int
    appended_log_position: int
    committed_log_position: int
    snapshots: tuple[Entry, ...]
    log: ReplayedLog | None


def log_is_gone(log: RecordingLog) -> ClusterFileError:
    """The error for an archive that does not have the log."""
    term = log.last_term
    assert term is not None, "it names a recording"
    return ClusterFileError(
        f"{log.path}: the archive has no recording {term.recording_id}, which holds the log up to term "
        f"{term.leadership_term_id}: its directory was deleted, or is another cluster's. Restore the archive's "
        "directory from a copy, or name the right one"
    )


def recovery_plan(
    log: RecordingLog, service_count: int, find_recording: Callable[[int], RecordingDescriptor | None]
) -> RecoveryPlan:
    """What a member with so many services begins with.

    Args:
        log: Its recording log.
        service_count: How many services it has.
        find_recording: Describes a recording of its archive; ``None`` for one that is not there.

    Raises:
        ClusterFileError: The snapshot of a service is missing, or the archive does not have the log.
    """
    snapshots = tuple(log.latest_snapshot(service_count))
    module = snapshots[0] if snapshots else None
    if module is not None and len(snapshots) - 1 < service_count:
        raise ClusterFileError(
            f"{log.path}: snapshot missing for service: that at log_position={module.log_position} is of "
            f"{len(snapshots) - 1} services, and service_count={service_count}"
        )
    snapshot_position = 0 if module is None else module.log_position
    term = log.last_term
    if term is None:
        last_id, base = (
            (NULL_VALUE, 0) if module is None else (module.leadership_term_id, module.term_base_log_position)
        )
        return RecoveryPlan(last_id, base, snapshot_position, snapshot_position, snapshots, None)
    recording = find_recording(term.recording_id)
    if recording is None:
        raise log_is_gone(log)
    replayed = ReplayedLog(
        recording_id=term.recording_id,
        leadership_term_id=term.leadership_term_id,
        term_base_log_position=term.term_base_log_position,
        log_position=term.log_position,
        start_position=recording.start_position if module is None else module.log_position,
        stop_position=recording.stop_position,
        initial_term_id=recording.initial_term_id,
        term_buffer_length=recording.term_buffer_length,
        mtu_length=recording.mtu_length,
        session_id=recording.session_id,
    )
    committed = snapshot_position if term.log_position == NULL_VALUE else term.log_position
    return RecoveryPlan(
        last_leadership_term_id=term.leadership_term_id,
        last_term_base_log_position=term.term_base_log_position,
        appended_log_position=recording.stop_position,
        committed_log_position=committed,
        snapshots=snapshots,
        log=replayed,
    )
