"""A service's part of a snapshot: who is connected, then what the service itself stores. Cluster specification 6.5.

SnapshotMarker BEGIN | ClientSession, by ascending id | SnapshotMarker END | messages of the service
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace._agent.tasks import Task
from headrace.archive.client import calls
from headrace.cluster.common.snapshots import check_place, recorded
from headrace.cluster.errors import ClusterError, ClusterTerminalError
from headrace.cluster.protocol.codes import ClusterTimeUnit, SnapshotMark
from headrace.cluster.protocol.messages import MessageError, decode, encode
from headrace.cluster.protocol.snapshots import ClientSession as StoredSession
from headrace.cluster.protocol.snapshots import SnapshotMarker
from headrace.positions import version_text

if TYPE_CHECKING:
    from headrace.client import Client, Header
    from headrace.cluster.common.node_archive import NodeArchive
    from headrace.cluster.common.snapshots import SnapshotPoint
    from headrace.cluster.service.config import ContainerConfig
    from headrace.cluster.service.session import ClientSession

__all__ = ["LoadedSnapshot", "check_app_version", "loaded", "stored"]

_TYPE_ID = 2
_FRAGMENTS_A_TURN = 100


@dataclass(slots=True)
class LoadedSnapshot:
    """What a snapshot holds.

    Attributes:
        sessions: Who was connected.
        messages: What the service stored.
        time_unit: The cluster's unit of time.
        is_whole: Whether the container's part has ended.
    """

    log_position: int
    leadership_term_id: int
    sessions: list[StoredSession] = field(default_factory=list)
    messages: list[bytes] = field(default_factory=list)
    time_unit: ClusterTimeUnit | None = None
    is_whole: bool = False

    def take(self, data: bytes, app_version: int) -> None:
        """The next message.

        Raises:
            ClusterError: It does not belong there, or the snapshot is of another place in the log or version.
        """
        if self.is_whole:
            self.messages.append(data)
            return
        try:
            message = decode(data)
        except MessageError as wrong:
            raise ClusterError(f"the snapshot is damaged: {wrong}") from None
        if isinstance(message, SnapshotMarker):
            self._mark(message, app_version)
        elif self.time_unit is None:
            raise ClusterError("the snapshot is damaged: it does not start with a begin marker")
        elif isinstance(message, StoredSession):
            self.sessions.append(message)

    def _mark(self, marker: SnapshotMarker, app_version: int) -> None:
        if marker.type_id != _TYPE_ID:
            raise ClusterError(
                f"the snapshot has type_id={marker.type_id}, where {_TYPE_ID} is expected: it is not a service's"
            )
        check_place(marker, self.log_position, self.leadership_term_id)
        if marker.mark is SnapshotMark.BEGIN:
            if self.time_unit is not None:
                raise ClusterError("the snapshot is damaged: it has two begin markers")
            check_app_version(marker.app_version, app_version, "the snapshot")
            self.time_unit = marker.time_unit
        elif marker.mark is SnapshotMark.END:
            if self.time_unit is None:
                raise ClusterError("the snapshot is damaged: it has an end marker and no begin marker")
            self.is_whole = True


def check_app_version(found: int, own: int, whose: str) -> None:
    """Look whether a version of the application is one that this service can go on from.

    Raises:
        ClusterTerminalError: Its major version is another.
    """
    if found >> 16 != own >> 16:
        raise ClusterTerminalError(
            f"incompatible app_version: {whose} has {version_text(found)}, and the service {version_text(own)}: a "
            "service reads only its own major version; start the version that wrote it, or set app_version"
        )


def loaded(
    archive: NodeArchive,
    config: ContainerConfig,
    recording_id: int,
    log_position: int,
    leadership_term_id: int,
) -> Task[LoadedSnapshot]:
    """A snapshot, read whole.

    Args:
        archive: What has it.
        config: How it is replayed, and which version of the application the service is.
        recording_id: Which recording it is.
        log_position: Where in the log it must be of.
        leadership_term_id: Which term it must be of.

    Raises:
        HeadraceError: The archive does not give it, or it is damaged, or of another place in the log or version.
    """
    snapshot = LoadedSnapshot(log_position, leadership_term_id)
    yield from archive.connected()
    length = yield from archive.asked(calls.stop_position(recording_id))
    replay = yield from archive.replayed(recording_id, config.replay_channel, config.replay_stream_id)
    image = replay.image

    def take(data: bytes, _: Header) -> None:
        snapshot.take(data, config.app_version)

    try:
        while not image.is_end_of_stream and not image.is_closed:
            if image.poll(take, _FRAGMENTS_A_TURN) == 0:
                yield
    finally:
        replay.subscription.close()
    if not snapshot.is_whole:
        raise ClusterError(f"recording_id={recording_id}: the snapshot ends before its end marker")
    if length is not None and image.position < length:
        raise ClusterError(
            f"recording_id={recording_id}: the replay of the snapshot ended at {image.position} of {length}"
        )
    return snapshot


def stored(
    client: Client,
    archive: NodeArchive,
    config: ContainerConfig,
    point: SnapshotPoint,
    sessions: Iterable[ClientSession],
    messages: Iterable[Any],
) -> Task[int]:
    """Store a snapshot; gives the recording.

    Args:
        client: What sends it.
        archive: What records it; stepped by the caller.
        config: Where it is sent.
        point: Where in the log it is.
        sessions: Who is connected.
        messages: What the service stores; asked for one after the other.

    Raises:
        HeadraceError: The archive refuses, or is gone.
        ClusterError: A message of the service is none, or too long.
        Exception: What the service raises.
    """
    yield from archive.connected()

    def parts(longest: int) -> Iterator[Any]:
        yield point.marker(_TYPE_ID, SnapshotMark.BEGIN)
        for session in sessions:
            yield encode(
                StoredSession(
                    cluster_session_id=session.id,
                    response_stream_id=session.response_stream_id,
                    response_channel=session.response_channel,
                    encoded_principal=session.principal,
                )
            )
        yield point.marker(_TYPE_ID, SnapshotMark.END)
        for message in messages:
            yield _checked(message, longest)

    return (yield from recorded(client, archive, config.snapshot_channel, config.snapshot_stream_id, parts))


def _checked(message: Any, limit: int) -> Any:
    try:
        length = memoryview(message).nbytes
    except TypeError:
        kind = type(message).__name__
        raise ClusterError(
            f"on_take_snapshot returned a {kind}: each message of a snapshot must be bytes"
        ) from None
    if length > limit:
        raise ClusterError(
            f"on_take_snapshot returned a message of length={length}, above max_message_length={limit} of the snapshot "
            "channel: give the state as several messages, or set a greater term-length in snapshot_channel"
        )
    return message
