"""A node's own archive, as its consensus module and its services use it: over IPC. It never waits."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._agent.tasks import Task, added, within
from headrace._base.exceptions import HeadraceError
from headrace.archive import ArchiveClientConfig
from headrace.archive.client import calls
from headrace.archive.client.replication import replication_begun
from headrace.archive.protocol.codes import SourceLocation
from headrace.archive.protocol.counters import (
    RECORDING_POSITION,
    archive_id_of,
    recording_id_of,
    session_id_of,
)
from headrace.archive.protocol.forcing import with_sound_end
from headrace.channel import ChannelUri
from headrace.cluster.common.asked_archive import AskedArchive
from headrace.cluster.common.node_config import NS_PER_S
from headrace.cluster.errors import ClusterError
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from typing import Unpack

    from headrace._base.counter_record import CounterRecord
    from headrace.archive.client.exchange import Steps
    from headrace.archive.client.replication import ReplicationSettings
    from headrace.archive.client.signals import Watch
    from headrace.client import Client, Image, Subscription
    from headrace.clock import Deadline
    from headrace.cluster.common.node_config import NodeConfig

__all__ = ["NodeArchive", "RecordedStream", "ReplayedStream", "StreamToRecord", "node_archive_config"]

_UNSIGNED = (1 << 32) - 1


def node_archive_config(config: NodeConfig, purpose: str, response_offset: int) -> ArchiveClientConfig:
    """How a part of a node connects to its archive. Each part has its own response stream.

    Args:
        config: Channels, streams and time-outs.
        purpose: What the part is, for the alias of its streams.
        response_offset: Of the part's response stream: 0 for the consensus module, one more for each service.
    """
    cluster_id = config.cluster_id
    channel, response = (
        ChannelUri(config.archive_control_channel),
        ChannelUri(config.archive_response_channel),
    )
    return ArchiveClientConfig(
        control_channel=channel.with_parameters(
            alias=channel.get("alias") or f"{purpose}-archive-ctrl-req-cluster-{cluster_id}"
        ),
        control_stream_id=config.archive_control_stream_id,
        response_channel=response.with_parameters(
            alias=response.get("alias") or f"{purpose}-archive-ctrl-resp-cluster-{cluster_id}"
        ),
        response_stream_id=cluster_id * 100 + 100 + config.archive_response_stream_id + response_offset,
        term_buffer_length=config.archive_term_buffer_length,
        mtu_length=config.archive_mtu_length,
        message_timeout_s=config.archive_message_timeout_ns / NS_PER_S,
        client_name=config.archive_client_name or purpose,
    )


@dataclass(frozen=True, slots=True)
class StreamToRecord:
    """One session of a stream that the archive is to record.

    Attributes:
        channel: The channel on which the archive subscribes to it, without the session id.
        stream_id: Its stream id.
        session_id: Its session id.
        location: Whether its publisher is on this driver.
    """

    channel: str
    stream_id: int
    session_id: int
    location: SourceLocation = SourceLocation.LOCAL


@dataclass(frozen=True, slots=True)
class RecordedStream:
    """A stream that the archive records.

    Attributes:
        recording_id: Which recording.
        counter_id: The counter with the position up to which it is recorded.
        registration_id: Of that counter; its id may be another counter's later.
        subscription_id: What the archive records it by.
    """

    recording_id: int
    counter_id: int
    registration_id: int
    subscription_id: int

    def position(self, client: Client) -> int:
        """The position up to which it is recorded; 0 once its counter is gone.

        Each call checks whose counter it is: if the wall clock is set forwards, the driver reuses the id of a freed
        counter at once, and the value of another counter must not count as recorded.
        """
        counters = client.counters
        try:
            position = counters.value(self.counter_id)
        except KeyError:
            return 0
        return position if self.is_active(client) else 0

    def is_active(self, client: Client) -> bool:
        """Whether the archive still records it."""
        return client.counters.find(RECORDING_POSITION, self.registration_id) == self.counter_id


@dataclass(frozen=True, slots=True)
class ReplayedStream:
    """A replay of a recording to this program.

    Attributes:
        replay_id: Its id at the archive.
        subscription: Receives it; the user closes it at the end.
        image: The replayed stream.
    """

    replay_id: int
    subscription: Subscription
    image: Image


class NodeArchive(AskedArchive):
    """A session with the archive of this node. Its owner steps it each turn."""

    def __init__(self, client: Client, config: ArchiveClientConfig) -> None:
        super().__init__(client, config, "the archive of the node")

    def recorded_log(self, stream: StreamToRecord, recording_id: int | None) -> Task[RecordedStream]:
        """As :meth:`recorded`, for a log: a power failure may take its end, and nothing else."""
        return self.recorded(
            dataclasses.replace(stream, channel=with_sound_end(stream.channel)), recording_id
        )

    def recorded(self, stream: StreamToRecord, recording_id: int | None = None) -> Task[RecordedStream]:
        """Have a stream recorded until it ends, into a new recording or on from an old one.

        Args:
            stream: What is recorded.
            recording_id: The recording to extend.

        Raises:
            ArchiveError: The archive refuses, or is gone.
        """
        subscription_id = yield from self.recording_begun(stream, recording_id)
        return (yield from self.recorded_session(stream.session_id, subscription_id))

    def recording_begun(self, stream: StreamToRecord, recording_id: int | None) -> Task[int]:
        """Have the archive subscribe to a stream; returns the id of its subscription.

        Raises:
            ArchiveError: The archive refuses, or is gone.
        """
        channel = ChannelUri(stream.channel).with_parameters(session_id=stream.session_id)
        stream_id = stream.stream_id
        if recording_id is None:
            begin = calls.start_recording(channel, stream_id, location=stream.location, auto_stop=True)
        else:
            begin = calls.extend_recording(
                recording_id, channel, stream_id, location=stream.location, auto_stop=True
            )
        return (yield from self.asked(begin))

    def recorded_session(
        self, session_id: int, subscription_id: int, deadline: Deadline | None = None
    ) -> Task[RecordedStream]:
        """Wait for the recording of a session to begin, and return it.

        Args:
            session_id: The session.
            subscription_id: From :meth:`recording_begun`.
            deadline: Until when it must arrive; by default as long as the archive may take to answer.

        Raises:
            ClusterError: It does not arrive in time.
        """
        found: list[CounterRecord] = []

        def is_there() -> bool:
            found[:] = [one for one in self._client.counters if self._is_position_of(one, session_id)]
            return bool(found)

        yield from within(
            deadline or self._client.clock.deadline(self._timeout_s),
            is_there,
            lambda: ClusterError(
                f"the archive does not record session_id={session_id}: no such stream arrives"
            ),
        )
        return _recorded_stream(found[0], subscription_id)

    def copy_of(self, recording_id: int) -> RecordedStream | None:
        """The recording that the archive writes now by a replication, if its counter is there."""
        for record in self._client.counters:
            if self._is_active(record) and recording_id_of(record.key) == recording_id:
                return _recorded_stream(record, NULL_VALUE)
        return None

    def _is_position_of(self, record: CounterRecord, session_id: int) -> bool:
        """Whether a counter shows how far this archive has recorded a session."""
        return (
            self._is_active(record)
            and session_id_of(record.key) == session_id
            and recording_id_of(record.key) != NULL_VALUE
        )

    def _is_active(self, record: CounterRecord) -> bool:
        """Whether a counter shows how far this archive has recorded something; complete once it is registered."""
        if record.type_id != RECORDING_POSITION or not record.registration_id:
            return False
        archive_id = NULL_VALUE if self._session is None else self._session.archive_id
        return archive_id in (NULL_VALUE, archive_id_of(record.key))

    def replication(
        self, source_recording_id: int, source_channel: str, **settings: Unpack[ReplicationSettings]
    ) -> Steps[Watch]:
        """The request for a copy of another archive's recording, see :func:`replication_begun`.

        Raises:
            ArchiveError: The archive is gone.
        """
        if self._session is None:
            raise self._gone()
        return replication_begun(self._session, source_recording_id, source_channel, **settings)

    def replayed(
        self,
        recording_id: int,
        channel: str,
        stream_id: int,
        *,
        position: int = 0,
        length: int | None = NULL_VALUE,
    ) -> Task[ReplayedStream]:
        """Have a recording replayed to this program.

        Args:
            recording_id: The recording.
            channel: The channel on which the replay arrives.
            stream_id: The stream id on that channel.
            position: The position to replay from.
            length: How many bytes; by default up to the present end of the recording.

        Raises:
            ArchiveError: The archive refuses, or is gone.
        """
        client = self._client
        replay_id = yield from self.asked(
            calls.start_replay(recording_id, channel, stream_id, position=position, length=length)
        )
        session_id = _signed(replay_id)
        heard = ChannelUri(channel).with_parameters(session_id=session_id)
        subscription = yield from added(client.request_subscription(heard, stream_id))
        try:
            deadline = client.clock.deadline(self._timeout_s)
            yield from within(
                deadline,
                lambda: subscription.image_by_session_id(session_id),
                lambda: (
                    self.late_error(replay_id)
                    or ClusterError(f"no replay of recording_id={recording_id} arrives")
                ),
            )
            image = subscription.image_by_session_id(session_id)
            assert image is not None
        except BaseException:
            subscription.close()
            raise
        return ReplayedStream(replay_id, subscription, image)

    def stopped_replay(self, replay: ReplayedStream) -> Task[None]:
        """End a replay; ending one that has already ended does nothing."""
        replay.subscription.close()
        try:
            yield from self.asked(calls.stop_replay(replay.replay_id))
        except HeadraceError:
            return


def _recorded_stream(record: CounterRecord, subscription_id: int) -> RecordedStream:
    return RecordedStream(
        recording_id_of(record.key), record.counter_id, record.registration_id, subscription_id
    )


def _signed(value: int) -> int:
    """The low 32 bits, as a session id has them."""
    low = value & _UNSIGNED
    return low - (1 << 32) if low >> 31 else low
