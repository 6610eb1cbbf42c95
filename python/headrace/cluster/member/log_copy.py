"""Makes the log what the leader's is: copies what it lacks, cuts off what no quorum has. Cluster specification 5.5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._agent.tasks import Task
from headrace.archive.client import calls
from headrace.archive.protocol.codes import RecordingSignal
from headrace.channel import ChannelUri
from headrace.cluster.common.members import single_member
from headrace.cluster.errors import ClusterError
from headrace.cluster.files.mark_file import UNKNOWN_LOG
from headrace.cluster.member.destinations import destination
from headrace.cluster.member.start_plan import find_plan, note_log
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.archive.client.replication import ReplicationSettings
    from headrace.archive.client.signals import Watch
    from headrace.cluster.common.members import Member
    from headrace.cluster.consensus.actions import ReplicateLog
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.log_recording import LogRecording

__all__ = ["LogCopy"]

_HAVE_POSITIONS = (RecordingSignal.EXTEND, RecordingSignal.SYNC, RecordingSignal.STOP)


class LogCopy:
    """Changes the recording of the log, which nothing records or reads meanwhile."""

    def __init__(self, context: Context, recording: LogRecording) -> None:
        self._context = context
        self._recording = recording
        self.position = NULL_VALUE
        """Up to where the copy under way has come; -1 without one."""

    def replicated(self, action: ReplicateLog) -> Task[int]:
        """Goes on once the log is copied up to a position, which it returns.

        Raises:
            ArchiveError: An archive refuses, or is gone.
            ClusterError: The copy ends before.
        """
        context, archive = self._context, self._context.archive
        leader = single_member(context.members.current, action.leader_member_id)
        # A recording without messages takes over when the leader's was begun; which one it is now, is noted then.
        context.mark_file.set_log_identity(UNKNOWN_LOG)
        watch = yield from archive.asked(
            archive.replication(
                action.leader_recording_id,
                destination(context.config.leader_archive_control_channel, leader.archive_endpoint),
                **self._settings(leader, action.log_position),
            )
        )
        try:
            yield from self._copied(watch)
        except BaseException:
            if archive.is_ready:
                archive.tell(calls.stop_replication(watch.correlation_id))
            raise
        finally:
            position, self.position = self.position, NULL_VALUE
        yield from find_plan(context)
        if position < action.log_position:
            raise ClusterError(
                f"the copy of the log ends at {position}, and not at {action.log_position}, where the term of member "
                f"{leader.member_id} ends"
            )
        return position

    def _settings(self, leader: Member, stop_position: int) -> ReplicationSettings:
        config = self._context.config
        settings: ReplicationSettings = {
            "source_stream_id": config.archive_control_stream_id,
            "destination_id": self._recording.recording_id,
            "stop_position": stop_position,
            "replication_channel": config.replication_channel,
        }
        if leader.archive_response_endpoint:
            channel = ChannelUri(config.replication_channel or "aeron:udp").with_parameters(
                endpoint=None, control=leader.archive_response_endpoint, control_mode="response"
            )
            settings["replication_channel"] = settings["source_response_channel"] = channel
        return settings

    def _copied(self, watch: Watch) -> Task[None]:
        context, archive, is_known = self._context, self._context.archive, False
        while True:
            if watch.error is not None:
                raise watch.error
            signals = {one.signal: one for one in watch.signals}
            recording_id = next((one.recording_id for one in watch.signals if one.recording_id >= 0), None)
            if recording_id is not None and not is_known:
                yield from note_log(context, recording_id)
                # Before a position is reported: it counts with the term that it belongs to.
                self._recording.is_copied_to(recording_id)
                is_known = True
            if is_known:
                self._note_position(watch, recording_id)
            has_stopped = RecordingSignal.STOP in signals or RecordingSignal.EXTEND not in signals
            if RecordingSignal.REPLICATE_END in signals and has_stopped:
                return
            if RecordingSignal.DELETE in signals or not archive.is_ready:
                raise ClusterError("the recording that the log is copied to is gone")
            yield

    def _note_position(self, watch: Watch, recording_id: int | None) -> None:
        said = (one.position for one in watch.signals if one.signal in _HAVE_POSITIONS)
        copy = None if recording_id is None else self._context.archive.copy_of(recording_id)
        recorded = NULL_VALUE if copy is None else copy.position(self._context.client)
        self.position = max(self.position, recorded, *said)

    def truncated(self, position: int) -> Task[int]:
        """Have the archive delete what it has of the log after a position, which it returns."""
        recording_id = self._recording.recording_id
        assert recording_id is not None, "there is a log to be cut"
        yield from self._context.archive.asked(calls.truncate_recording(recording_id, position))
        yield from find_plan(self._context)
        return position
