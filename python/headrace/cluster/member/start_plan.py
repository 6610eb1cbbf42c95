"""What a member would begin with now, and whether its files and its archive's belong together. Specification 6.3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._agent.tasks import Task
from headrace.archive.client import calls
from headrace.cluster.errors import ClusterFileError, ClusterTerminalError
from headrace.cluster.files.mark_file import UNKNOWN_LOG, LogIdentity
from headrace.cluster.files.missing_log import find_shortfall
from headrace.cluster.files.recovery_plan import recovery_plan

if TYPE_CHECKING:
    from headrace.archive import RecordingDescriptor
    from headrace.cluster.member.context import Context

__all__ = [
    "check_log_is_known",
    "check_log_is_whole",
    "check_nothing_is_missing",
    "check_vote",
    "find_plan",
    "note_log",
]

# So many elections in a row fail in no cluster; a flipped bit in a file makes more of them.
_FAILED_ELECTIONS_MAX = 100_000
# In the channel of the log's recording, of Aeron's members too.
_LOG_ALIAS = "alias=log"


def find_plan(context: Context) -> Task[RecordingDescriptor | None]:
    """Look what the member would begin with now; the archive says how far the log is recorded. Gives its recording."""
    log = context.recording_log
    recording = None
    if log.last_term is not None:
        recording = yield from context.archive.asked(calls.find_recording(log.last_term.recording_id))
        if recording is not None:
            _check_identity(context, recording)
    context.plan = recovery_plan(log, context.config.service_count, lambda _: recording)
    return recording


def note_log(context: Context, recording_id: int) -> Task[None]:
    """Note which recording is the log, which this member has begun; whatever was noted before is over."""
    recording = yield from context.archive.asked(calls.find_recording(recording_id))
    if recording is not None:
        context.mark_file.set_log_identity(_identity(recording))


def _identity(recording: RecordingDescriptor) -> LogIdentity:
    return LogIdentity(recording.recording_id, recording.start_timestamp)


def _check_identity(context: Context, recording: RecordingDescriptor) -> None:
    """Refuse the recording of another cluster, which may have the same id; note one that was not known.

    The mark file says which recording is the log. A member of Aeron's notes none, and leaves what is noted.

    Raises:
        ClusterFileError: The archive is not the one that has this cluster's log.
    """
    found = _identity(recording)
    noted = context.mark_file.log_identity
    if noted != UNKNOWN_LOG and noted.recording_id == found.recording_id and noted != found:
        raise ClusterFileError(
            f"recording {found.recording_id} of the archive is not the log of {context.recording_log.path}: it was "
            f"begun at start_timestamp={found.start_timestamp}, and the log at {noted.start_timestamp}. Start the "
            "archive on the directory that belongs to this cluster's directory, or restore both from one copy. If the "
            f"recording was rebuilt on purpose, delete {context.mark_file.path} first"
        )
    if noted != found:
        context.mark_file.set_log_identity(found)


def check_log_is_whole(context: Context, recording: RecordingDescriptor | None) -> None:
    """Refuse to start from a state of which a part is lost.

    Raises:
        ClusterTerminalError: The log begins after the snapshot; or after position 0, and there is no snapshot.
    """
    plan = context.plan
    assert plan is not None, "found before"
    position = plan.snapshots[0].log_position if plan.snapshots else 0
    if recording is not None and recording.start_position > position:
        start = f"from the snapshot at position {position}" if plan.snapshots else "without a snapshot"
        raise ClusterTerminalError(
            f"the archive has the log from position {recording.start_position} on only, and a start {start} needs it "
            f"from {position} on: restore recording.log with a later snapshot, or the archive's directory and the "
            "cluster's, from a copy"
        )


def check_nothing_is_missing(context: Context, recording: RecordingDescriptor | None) -> Task[None]:
    """Refuse to append to a log of which something is missing that was committed.

    Where nothing is forced to the disk, a power failure takes the end of the log, which is no reason to stay down: the
    recording log is cut back to what is there.

    Raises:
        ClusterFileError: The archive's log ends before a position that the recording log knows of.
    """
    if recording is None:
        return
    log = context.recording_log
    missing = find_shortfall(log, recording.stop_position)
    if missing is None:
        return
    text = f"{log.path}: recording {recording.recording_id}: {missing}"
    if context.config.file_sync_level > 0:
        raise ClusterFileError(
            f"{text}. The archive's directory is older than the cluster's, or was damaged: restore both from one copy. "
            "If the archive forces nothing to the disk, a power failure does that too: file_sync_level=0 of the module "
            "starts without what is missing"
        )
    context.log.error(
        f"{text}. The member continues without them, as file_sync_level=0 allows after a power failure. If there was "
        "none, the archive's directory is older than the cluster's: stop the member, and restore both from one copy"
    )
    log.cut_back(recording.stop_position)
    yield from find_plan(context)


def check_vote(context: Context) -> None:
    """Refuse a node-state file that cannot belong to the recording log, whose missing terms would be filled in.

    Raises:
        ClusterFileError: Its last vote is for a term far beyond those of the log.
    """
    plan = context.plan
    assert plan is not None, "found before"
    voted, last = context.node_state.candidate_term.term_id, plan.last_leadership_term_id
    if voted - last > _FAILED_ELECTIONS_MAX:
        path = context.node_state.path
        raise ClusterFileError(
            f"{path}: the last vote was for term {voted}, and the last term of {context.recording_log.path} is {last}: "
            f"one of the files is damaged. Restore both from one copy. Or, in a cluster of one, delete {path}, which "
            "has that vote and nothing else"
        )


def check_log_is_known(context: Context) -> Task[None]:
    """Refuse to begin a new log where the archive has one: its recording log was lost.

    A term is in the recording log before anything of it is in the log, so that one that is not there has no messages.

    Raises:
        ClusterFileError: The archive has a log.
    """
    config, log = context.config, context.recording_log
    if len(log) or config.directory_delete_on_start:
        return
    found = yield from context.archive.asked(
        calls.list_recordings(channel=_LOG_ALIAS, stream_id=config.log_stream_id)
    )
    for recording in found:
        position = yield from context.archive.asked(calls.max_recorded_position(recording.recording_id))
        if position > recording.start_position:
            raise ClusterFileError(
                f"{log.path}: has no term, and the archive has a cluster's log up to position {position} in recording "
                f"{recording.recording_id}: the recording log is lost. A start without it would lose what clients have "
                "been answered. Restore the file from a copy. To begin a new cluster, which has nothing of the old "
                "one, start with directory_delete_on_start=True, or in an empty directory with another archive"
            )
