"""The log as the cluster commits it: a member's archive replays it, and the backup's own records that.

The replay is bounded by the member's commit position, so nothing arrives that the cluster could take back. It has the
session id that the backup chose, by which its recording is found.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from headrace._agent.tasks import Task, added, until, within
from headrace._base.exceptions import HeadraceError
from headrace.archive.client import calls
from headrace.archive.protocol.codes import SourceLocation
from headrace.archive.protocol.forcing import with_sound_end
from headrace.archive.protocol.requests import StopRecordingSubscriptionRequest, StopReplayRequest
from headrace.channel import ChannelUri
from headrace.cluster.backup.config import LATEST_SNAPSHOT
from headrace.cluster.common.node_archive import StreamToRecord
from headrace.cluster.errors import ClusterError
from headrace.positions import NULL_VALUE, signed_32

if TYPE_CHECKING:
    from headrace.client import Subscription
    from headrace.clock import Deadline
    from headrace.cluster.backup.context import Context
    from headrace.cluster.backup.source import Source
    from headrace.cluster.common.node_archive import RecordedStream
    from headrace.cluster.protocol.consensus import BackupResponse

__all__ = ["LiveLog"]

_NS_PER_S = 1_000_000_000


class LiveLog:
    """The copy of the log that grows. Made anew for each source; its owner closes it.

    Args:
        context: Settings, and what the other parts use.
        source: The member whose log it is.
        recording_id: The recording to go on with; ``None`` for a new one.
    """

    def __init__(self, context: Context, source: Source, recording_id: int | None) -> None:
        self._context = context
        self._source = source
        self._recording_id = recording_id
        self._session_id = signed_32(context.clock.epoch_ms() + context.client.next_correlation_id())
        # Holds a port that the system chose; on a stream of its own, so that it takes nothing of the log.
        self._port: Subscription | None = None
        self._channel = ""
        self._begin: int | None = None
        self._subscription_id = self._replay_id = NULL_VALUE
        self._recorded: RecordedStream | None = None

    def recorded(self) -> Task[None]:
        """Have the archive listen for the log.

        Raises:
            HeadraceError: The archive or the driver refuses.
        """
        context = self._context
        config, archive = context.config, context.archive
        if self._recording_id is not None:
            # What went before may not have ended it, such as a kill.
            yield from archive.asked(calls.stop_recording_by_id(self._recording_id))
            self._begin = yield from self._stopped(self._recording_id)
        channel = yield from self._heard()
        stream = StreamToRecord(
            with_sound_end(channel), config.log_stream_id, self._session_id, SourceLocation.REMOTE
        )
        self._subscription_id = yield from archive.recording_begun(stream, self._recording_id)

    def _stopped(self, recording_id: int) -> Task[int]:
        deadline = self._deadline()
        archive = self._context.archive
        while (position := (yield from archive.asked(calls.stop_position(recording_id)))) is None:
            if deadline.is_over:
                raise ClusterError(f"the archive does not end recording {recording_id}, which is the log")
            yield
        return position

    def _heard(self) -> Task[str]:
        """The channel that the archive records; :attr:`_channel` becomes the one that the member's sends to."""
        context = self._context
        copies = ChannelUri(context.config.copies)
        self._channel = copies.with_parameters(session_id=self._session_id)
        if not copies.is_port_open:
            return self._channel
        next_id = context.client.next_correlation_id
        tags = f"{next_id()},{next_id()}"
        self._port = yield from added(
            context.client.request_subscription(
                ChannelUri(self._channel).with_parameters(tags=tags), context.config.consensus_stream_id
            )
        )
        port = self._port
        yield from within(
            self._deadline(),
            lambda: port.resolved_channel is not None,
            lambda: ClusterError(f"no port is free for {copies.with_parameters()}"),
        )
        resolved = ChannelUri(port.resolved_channel or "").get("endpoint")
        self._channel = ChannelUri(self._channel).with_parameters(endpoint=resolved)
        return ChannelUri(self._channel).with_parameters(endpoint=None, tags=tags)

    def replayed(self, answer: BackupResponse) -> Task[None]:
        """Have the member's archive send the log, and wait for its first.

        Raises:
            HeadraceError: One of the archives refuses, or nothing arrives.
        """
        archive = self._source.archive
        yield from archive.connected()
        replay_id = yield from archive.asked(
            calls.start_replay(
                answer.log_recording_id,
                self._channel,
                self._context.config.log_stream_id,
                position=self._begin_of(answer),
                length=NULL_VALUE,
                limit_counter_id=answer.commit_position_counter_id,
            )
        )
        self._replay_id = replay_id
        self._recorded = yield from self._context.archive.recorded_session(
            signed_32(replay_id), self._subscription_id, self._deadline()
        )

    def _begin_of(self, answer: BackupResponse) -> int | None:
        """Where the copy goes on, or begins; ``None`` where the member's recording does."""
        if self._begin is not None or self._context.config.initial_replay_start != LATEST_SNAPSHOT:
            return self._begin
        return max((one.log_position for one in answer.snapshots), default=None)

    def reached(self, position: int) -> Task[None]:
        """Goes on once the log is recorded up to a position; its owner looks whether it :attr:`is_active`."""
        return until(lambda: self.position >= position)

    @property
    def recording_id(self) -> int | None:
        """Which recording it is; ``None`` before there is one."""
        return self._recording_id if self._recorded is None else self._recorded.recording_id

    @property
    def position(self) -> int:
        """Up to where it is recorded."""
        return 0 if self._recorded is None else self._recorded.position(self._context.client)

    @property
    def is_active(self) -> bool:
        """Whether the archive records it, or is about to."""
        return self._recorded is None or self._recorded.is_active(self._context.client)

    def close(self) -> None:
        """End replay and recording."""
        if self._replay_id != NULL_VALUE:
            self._source.archive.send(StopReplayRequest(replay_session_id=self._replay_id))
        if self._subscription_id != NULL_VALUE:
            self._context.archive.send(
                StopRecordingSubscriptionRequest(subscription_id=self._subscription_id)
            )
        if self._port is not None:
            with contextlib.suppress(HeadraceError):
                self._port.close()

    def _deadline(self) -> Deadline:
        return self._context.clock.deadline(self._context.config.progress_timeout_ns / _NS_PER_S)
