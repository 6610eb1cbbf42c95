"""Applies the entries of the log to a service. Cluster specification 2.4, 7.2, 7.3.

Messages of sessions and timers, of which there are many, take the short way in :meth:`Entries.handler`. Both have the
same form: term, session or correlation id, timestamp.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace._base.results import Action
from headrace.cluster.errors import ClusterError
from headrace.cluster.protocol.codes import ClusterAction
from headrace.cluster.protocol.header import HEADER_LENGTH, SESSION_MESSAGE
from headrace.cluster.protocol.log import (
    ClusterActionRequest,
    NewLeadershipTermEvent,
    SessionCloseEvent,
    SessionOpenEvent,
)
from headrace.cluster.protocol.messages import SCHEMA_ID, MessageError, decode
from headrace.cluster.service.session import ClientSession
from headrace.cluster.service.snapshot import check_app_version

if TYPE_CHECKING:
    from headrace.client import Header
    from headrace.cluster.common.log import AgentLog
    from headrace.cluster.service.callbacks import Callbacks
    from headrace.cluster.service.clustered_service import ClusteredService
    from headrace.cluster.service.config import ContainerConfig
    from headrace.cluster.service.control import Control
    from headrace.cluster.service.state import ServiceState

__all__ = ["ContainerError", "Entries"]

_HEADER = struct.Struct("<2xI10xqq")
# Template and schema, which stand beside each other.
_MESSAGE = SESSION_MESSAGE | SCHEMA_ID << 16
_TIMER = 20 | SCHEMA_ID << 16


class ContainerError(ClusterError):
    """What ends a container: going on would make this member differ from the others."""


class Entries:
    """The entries of the log.

    Args:
        service: What they are given to.
        config: Which version of the service, and whether it answers clients.
        control: What new sessions use.
        state: Moved by each entry.
        sessions: Who is connected, which entries change.
        callbacks: Calls the service's other handlers.
        log: Told of what is no entry.
        on_open: Told of a new session, if the service can answer it: begins to open its stream, then calls the handler.
        on_snapshot: Told of the request to take a snapshot.
    """

    def __init__(
        self,
        service: ClusteredService,
        config: ContainerConfig,
        control: Control,
        state: ServiceState,
        sessions: dict[int, ClientSession],
        callbacks: Callbacks,
        log: AgentLog,
        on_open: Callable[[ClientSession, int], object],
        on_snapshot: Callable[[ClusterActionRequest], object],
    ) -> None:
        self._service = service
        self._config = config
        self._control = control
        self._state = state
        self._sessions = sessions
        self._callbacks = callbacks
        self._log = log
        self._on_open = on_open
        self._on_snapshot = on_snapshot

    def handler(self, *, view: bool) -> Callable[[Any, Header], Action | None]:
        """What takes the log's messages, one by one. What ``on_session_message`` raises comes out of it.

        Args:
            view: They come, and are given, as memoryviews.
        """
        state = self._state
        find = self._sessions.get
        deliver = self._service.on_session_message
        unpack = _HEADER.unpack_from
        other, fired = self._other, self._fired

        def take(message: bytes, header: Header) -> Action | None:
            if len(message) < HEADER_LENGTH:
                return other(message, header)
            kind, session_id, timestamp = unpack(message)
            if kind != _MESSAGE:
                if kind == _TIMER:
                    return fired(session_id, timestamp, header)
                return other(message, header)
            state.session_id, state.time = session_id, timestamp
            state.position = position = header.position
            deliver(find(session_id), timestamp, message[HEADER_LENGTH:], position)
            return None

        def take_view(message: memoryview, header: Header) -> Action | None:
            if len(message) < HEADER_LENGTH:
                return other(bytes(message), header)
            kind, session_id, timestamp = unpack(message)
            if kind != _MESSAGE:
                if kind == _TIMER:
                    return fired(session_id, timestamp, header)
                return other(bytes(message), header)
            state.session_id, state.time = session_id, timestamp
            state.position = position = header.position
            with message[HEADER_LENGTH:] as view:
                deliver(find(session_id), timestamp, view, position)  # type: ignore[arg-type]
            return None

        return take_view if view else take

    def _fired(self, correlation_id: int, timestamp: int, header: Header) -> None:
        state = self._state
        state.time, state.position = timestamp, header.position
        self._callbacks.call("on_timer_event", correlation_id, timestamp)

    def _other(self, data: bytes, header: Header) -> Action | None:
        state = self._state
        state.position = header.position
        try:
            entry = decode(data)
        except MessageError as wrong:
            self._log.error(
                "an entry of the log does not belong to a cluster",
                wrong,
                f"log_position={header.position}: {wrong}",
            )
            return None
        if isinstance(entry, SessionOpenEvent):
            return self._opened(entry)
        if isinstance(entry, SessionCloseEvent):
            self._closed(entry)
        elif isinstance(entry, ClusterActionRequest):
            state.time = entry.timestamp
            if entry.action is ClusterAction.SNAPSHOT:
                self._on_snapshot(entry)
            # The consensus module acts at this very position too.
            return Action.BREAK
        elif isinstance(entry, NewLeadershipTermEvent):
            self._new_term(entry)
        return None

    def _opened(self, entry: SessionOpenEvent) -> Action | None:
        state = self._state
        state.time = entry.timestamp
        session_id = entry.cluster_session_id
        if session_id in self._sessions:
            raise ContainerError(
                f"cluster_session_id={session_id} is opened twice, at log_position={state.position}: this member "
                "differs from the others"
            )
        session = ClientSession(
            state,
            self._control,
            session_id,
            entry.response_channel,
            entry.response_stream_id,
            entry.encoded_principal,
        )
        self._sessions[session_id] = session
        if state.is_leader and self._config.is_responding:
            self._on_open(session, entry.timestamp)
            return Action.BREAK
        self._callbacks.call("on_session_open", session, entry.timestamp, of=session)
        return None

    def _closed(self, entry: SessionCloseEvent) -> None:
        state = self._state
        state.time = entry.timestamp
        session = self._sessions.pop(entry.cluster_session_id, None)
        if session is None:
            self._log.error(
                "a session is closed that is not open",
                detail=f"cluster_session_id={entry.cluster_session_id} log_position={state.position}",
            )
            return
        session._disconnect()
        self._callbacks.call("on_session_close", session, entry.timestamp, entry.close_reason)

    def _new_term(self, entry: NewLeadershipTermEvent) -> None:
        state = self._state
        try:
            check_app_version(entry.app_version, self._config.app_version, "the leader")
            state.use_time_unit(entry.time_unit)
        except ClusterError as wrong:
            raise ContainerError(f"{wrong}, at log_position={state.position}") from None
        state.term_id = entry.leadership_term_id
        state.time = entry.timestamp
        self._callbacks.call(
            "on_new_leadership_term",
            entry.leadership_term_id,
            entry.log_position,
            entry.timestamp,
            entry.term_base_log_position,
            entry.leader_member_id,
            entry.log_session_id,
            entry.time_unit,
            entry.app_version,
        )
