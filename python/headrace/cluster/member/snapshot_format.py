"""The consensus module's own part of a snapshot. Cluster specification 6.5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headrace.cluster.common.snapshots import SnapshotPoint, as_before, check_place
from headrace.cluster.errors import ClusterError, ClusterTerminalError
from headrace.cluster.member.pending_messages import PendingMessages, service_id_of
from headrace.cluster.member.sessions import Sessions
from headrace.cluster.member.timers import Timers
from headrace.cluster.protocol.codes import SnapshotMark
from headrace.cluster.protocol.header import HEADER_LENGTH, SESSION_MESSAGE, template_of, unpack_header
from headrace.cluster.protocol.messages import MessageError, decode, encode
from headrace.cluster.protocol.snapshots import (
    ClusterSession,
    ConsensusModule,
    PendingMessageTracker,
    SnapshotMarker,
    Timer,
)

__all__ = ["MODULE_TYPE_ID", "SnapshotLoader", "snapshot_messages"]

MODULE_TYPE_ID = 1


def snapshot_messages(
    point: SnapshotPoint, sessions: Sessions, timers: Timers, pending: Sequence[PendingMessages]
) -> Iterator[bytes]:
    """The messages of a snapshot, in order."""
    yield point.marker(MODULE_TYPE_ID, SnapshotMark.BEGIN)
    first = pending[0].tracker() if pending else None
    yield encode(
        ConsensusModule(
            next_session_id=sessions.next_committed_id,
            next_service_session_id=0 if first is None else first.next_service_session_id,
            log_service_session_id=0 if first is None else first.log_service_session_id,
            pending_message_capacity=0 if first is None else first.pending_message_capacity,
        )
    )
    for session in sorted(sessions, key=lambda one: one.session_id):
        yield encode(session.stored())
    for correlation_id, deadline in timers:
        yield encode(Timer(correlation_id=correlation_id, deadline=deadline))
    for messages in pending:
        yield encode(messages.tracker())
        yield from messages
    yield point.marker(MODULE_TYPE_ID, SnapshotMark.END)


class SnapshotLoader:
    """Takes the messages of a snapshot into sessions, timers and pending messages.

    Args:
        point: What the snapshot must say of itself: position, term, time unit, major version.
        sessions: Filled.
        timers: Filled.
        pending: Filled, one for each service.
    """

    def __init__(
        self, point: SnapshotPoint, sessions: Sessions, timers: Timers, pending: Sequence[PendingMessages]
    ) -> None:
        self._point = point
        self._sessions = sessions
        self._timers = timers
        self._pending = pending
        self._has_begun = False
        self.is_done = False
        """Whether the end has come."""

    def take(self, data: bytes) -> None:
        """The next message.

        Raises:
            ClusterError: It does not belong there, or the snapshot is of another version or unit of time.
        """
        if self.is_done:
            return
        if template_of(data) == SESSION_MESSAGE:
            session_id = unpack_header(data)[1]
            self._of_service(service_id_of(session_id)).load_message(session_id, data[HEADER_LENGTH:])
            return
        try:
            message = decode(data)
        except MessageError as wrong:
            raise ClusterError(f"the snapshot of the consensus module is damaged: {wrong}") from None
        if isinstance(message, SnapshotMarker):
            self._mark(message)
        elif not self._has_begun:
            raise ClusterError("the snapshot of the consensus module does not start with a begin marker")
        elif isinstance(message, ConsensusModule):
            self._sessions.next_id = self._sessions.next_committed_id = message.next_session_id
        elif isinstance(message, ClusterSession):
            self._sessions.load(message)
        elif isinstance(message, Timer):
            self._timers.schedule(message.correlation_id, message.deadline)
        elif isinstance(message, PendingMessageTracker):
            self._of_service(message.service_id).load(message)

    def _of_service(self, service_id: int) -> PendingMessages:
        if service_id >= len(self._pending):
            raise ClusterError(
                f"the snapshot has messages of service_id={service_id}, and the member is given service_count="
                f"{len(self._pending)}: start it with as many services as took the snapshot"
            )
        return self._pending[service_id]

    def _mark(self, marker: SnapshotMarker) -> None:
        check_marker(marker, self._point, MODULE_TYPE_ID, "of the consensus module")
        if marker.mark is SnapshotMark.BEGIN:
            if self._has_begun:
                raise ClusterError("the snapshot of the consensus module has two begin markers")
            self._has_begun = True
        elif marker.mark is SnapshotMark.END:
            if not self._has_begun:
                raise ClusterError(
                    "the snapshot of the consensus module has an end marker and no begin marker"
                )
            for pending in self._pending:
                pending.check_loaded()
            self.is_done = True


def check_marker(marker: SnapshotMarker, point: SnapshotPoint, type_id: int, whose: str) -> None:
    """Look whether a snapshot is the one that is to be loaded, and can be.

    Raises:
        ClusterTerminalError: It was taken with other settings, with which the log was written as well.
        ClusterError: It is not.
    """
    if marker.type_id != type_id:
        raise ClusterError(f"the snapshot {whose} has type_id={marker.type_id}, where {type_id} is expected")
    check_place(marker, point.log_position, point.leadership_term_id)
    if marker.app_version >> 16 != point.app_version >> 16:
        raise ClusterTerminalError(
            f"incompatible version: {point.app_version} snapshot={marker.app_version}: the snapshot {whose} was taken "
            f"with another major app_version, at log_position={point.log_position}; "
            f"{as_before(app_version=marker.app_version)}"
        )
    if marker.time_unit is not point.time_unit:
        raise ClusterTerminalError(
            f"incompatible time unit: {point.time_unit.name} snapshot={marker.time_unit.name}: the snapshot {whose} "
            f"was taken with another clock setting, at log_position={point.log_position}; "
            f"{as_before(clock=marker.time_unit)}"
        )
