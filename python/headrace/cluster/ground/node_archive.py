"""A node's own archive, as its consensus module and its services use it: over IPC, and never waiting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from headrace._exceptions import ArchiveError, HeadraceError
from headrace.archive import ArchiveClientConfig
from headrace.archive.client import requests
from headrace.archive.client.link import ArchiveLink
from headrace.archive.protocol.counters import (
    RECORDING_POSITION,
    archive_id_of,
    recording_id_of,
    session_id_of,
)
from headrace.channel import ChannelUri
from headrace.cluster.errors import ClusterError
from headrace.cluster.ground.courses import Course, added, within
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace._counter_record import CounterRecord
    from headrace.archive.client.exchange import Steps
    from headrace.client import Client, ExclusivePublication, Image, Subscription

__all__ = ["NodeArchive", "RecordedStream", "ReplayedStream", "node_archive_config"]

R = TypeVar("R")
_UNSIGNED = (1 << 32) - 1
_RESPONSE_STREAM_ID = 20


def node_archive_config(
    control_channel: str,
    control_stream_id: int,
    cluster_id: int,
    purpose: str,
    response_offset: int,
    response_channel: str = "aeron:ipc",
    response_stream_id: int = _RESPONSE_STREAM_ID,
) -> ArchiveClientConfig:
    """How a part of a node reaches its archive. Each part has a response stream of its own.

    Args:
        control_channel: The archive's channel for local clients.
        control_stream_id: Its stream.
        cluster_id: Which cluster; several may share a driver.
        purpose: What the part is, for the alias of its streams.
        response_offset: Of the part: 0 for the consensus module, one more for each service.
        response_channel: Where the archive answers.
        response_stream_id: Its stream, to which the cluster's share and the offset are added.
    """
    channel, response = ChannelUri(control_channel), ChannelUri(response_channel)
    alias = channel.get("alias")
    return ArchiveClientConfig(
        control_channel=channel.with_parameters(
            alias=alias or f"{purpose}-archive-ctrl-req-cluster-{cluster_id}"
        ),
        control_stream_id=control_stream_id,
        response_channel=response.with_parameters(
            alias=response.get("alias") or f"{purpose}-archive-ctrl-resp-cluster-{cluster_id}"
        ),
        response_stream_id=cluster_id * 100 + 100 + response_stream_id + response_offset,
        client_name=purpose,
    )


@dataclass(frozen=True, slots=True)
class RecordedStream:
    """A publication that the archive records.

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
        """Up to where it is recorded; 0 once its counter is gone.

        Each time this looks whose counter it is: a wall clock that is set forwards has the driver use the id of a freed
        counter again at once, and what another counter has must not count as recorded.
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
        replay_id: What the archive knows it by.
        subscription: Where it arrives; to be closed at the end.
        image: The stream.
    """

    replay_id: int
    subscription: Subscription
    image: Image


class NodeArchive(ArchiveLink):
    """A session with the archive of this node. Its owner steps it each turn."""

    def __init__(self, client: Client, config: ArchiveClientConfig) -> None:
        super().__init__(client, config)
        self._timeout_s = config.message_timeout_s

    def connected(self) -> Course[None]:
        """Goes on once the archive can be asked; its owner steps it meanwhile.

        Raises:
            HeadraceError: It refuses, or does not answer.
        """
        while not self.is_ready:
            if self.failure is not None:
                raise self.failure
            yield

    def asked(self, what: Steps[R]) -> Course[R]:
        """The archive's answer.

        Raises:
            ArchiveError: It refuses, or is gone.
        """
        if not self.is_ready:
            raise ArchiveError("the archive of the node is gone")
        exchange = self.ask(what)
        try:
            while not exchange.is_done:
                yield
        except GeneratorExit:
            self.forget(exchange)
            raise
        return self.answer(exchange)

    def recorded(
        self, publication: ExclusivePublication, channel: str, recording_id: int | None = None
    ) -> Course[RecordedStream]:
        """Have a publication of this program recorded until it ends, into a new recording or on from an old one.

        Args:
            publication: What is recorded.
            channel: Where the archive hears it, without the session.
            recording_id: The recording to go on with.

        Raises:
            ArchiveError: The archive refuses, or is gone.
        """
        session_id = publication.session_id
        heard = ChannelUri(channel).with_parameters(session_id=session_id)
        if recording_id is None:
            begin = requests.start_recording(heard, publication.stream_id, auto_stop=True)
        else:
            begin = requests.extend_recording(recording_id, heard, publication.stream_id, auto_stop=True)
        subscription_id = yield from self.asked(begin)
        found: list[CounterRecord] = []

        def is_there() -> bool:
            found[:] = [one for one in self._client.counters if self._is_position_of(one, session_id)]
            return bool(found)

        deadline = self._client.clock.deadline(self._timeout_s)
        yield from within(
            deadline,
            is_there,
            lambda: ClusterError(f"the archive does not record session_id={session_id} of channel={heard}"),
        )
        record = found[0]
        return RecordedStream(
            recording_id_of(record.key), record.counter_id, record.registration_id, subscription_id
        )

    def _is_position_of(self, record: CounterRecord, session_id: int) -> bool:
        """Whether a counter shows how far this archive has recorded a session; it is whole once it is registered."""
        if record.type_id != RECORDING_POSITION or not record.registration_id:
            return False
        archive_id = NULL_VALUE if self._session is None else self._session.archive_id
        is_own = archive_id in (NULL_VALUE, archive_id_of(record.key))
        return (
            session_id_of(record.key) == session_id and recording_id_of(record.key) != NULL_VALUE and is_own
        )

    def replayed(
        self,
        recording_id: int,
        channel: str,
        stream_id: int,
        *,
        position: int = 0,
        length: int | None = NULL_VALUE,
    ) -> Course[ReplayedStream]:
        """Have a recording replayed to this program.

        Args:
            recording_id: Which.
            channel: Where the replay arrives.
            stream_id: With which stream.
            position: From where.
            length: How many bytes; by default up to the end that the recording has now.

        Raises:
            ArchiveError: The archive refuses, or is gone.
        """
        client = self._client
        replay_id = yield from self.asked(
            requests.start_replay(recording_id, channel, stream_id, position=position, length=length)
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

    def stopped_replay(self, replay: ReplayedStream) -> Course[None]:
        """End a replay; one that has ended already is well."""
        replay.subscription.close()
        try:
            yield from self.asked(requests.stop_replay(replay.replay_id))
        except HeadraceError:
            return


def _signed(value: int) -> int:
    """The low 32 bits, as a session id has them."""
    low = value & _UNSIGNED
    return low - (1 << 32) if low >> 31 else low
