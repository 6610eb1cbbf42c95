"""Applies the entries of a log that is read: the member's own when it starts, or a leader's. Specification 4.6."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace._base.results import Action
from headrace.cluster.common.members import wire_members
from headrace.cluster.common.snapshots import as_before
from headrace.cluster.errors import ClusterError, ClusterTerminalError
from headrace.cluster.member.pending_messages import service_id_of
from headrace.cluster.protocol.header import SESSION_MESSAGE, template_of, unpack_header
from headrace.cluster.protocol.log import (
    ClusterActionRequest,
    MemberReplacement,
    NewLeadershipTermEvent,
    SessionCloseEvent,
    SessionOpenEvent,
    TimerEvent,
)
from headrace.cluster.protocol.messages import MessageError, decode

if TYPE_CHECKING:
    from headrace.client import Header, Image
    from headrace.cluster.member.context import Context

__all__ = ["LogReader"]


class LogReader:
    """Reads one image of the log.

    Args:
        context: What the module's parts share.
        image: The log, from where it stands.
        on_term: Called with the first entry of each term.
    """

    def __init__(
        self, context: Context, image: Image, on_term: Callable[[NewLeadershipTermEvent], object]
    ) -> None:
        self._context = context
        self._image = image
        self._on_term = on_term
        self._actions: list[tuple[ClusterActionRequest, int]] = []
        # Of the entry at which the image stands.
        self._awaits_services = False
        self._services_are_there = False

    @property
    def position(self) -> int:
        """Up to where the log is read, which may be within a message of several fragments."""
        return self._image.position

    @property
    def is_closed(self) -> bool:
        """Whether nothing follows."""
        return self._image.is_closed

    def poll(self, limit_position: int) -> int:
        """Apply entries that begin before a position.

        Stops after an action of the cluster, see :meth:`take_action`, and before the event of a timer, see
        :attr:`awaits_services`.
        """
        image = self._image
        # Not so much at once that the stream, which waits for services, ends before the next entry does.
        near = image.position + image.term_length // 8
        return image.follow_entries(
            self._apply, self._context.config.log_fragment_limit, min(limit_position, near)
        )

    @property
    def awaits_services(self) -> bool:
        """Whether the next entry is applied only once services have read all before it, and the module their requests.

        A timer's event: whether a request of the service scheduled the timer before, or schedules it anew, only the
        request's place in the log can tell.
        """
        return self._awaits_services

    def services_are_there(self) -> None:
        """Services have read all before the next entry, and the module has their requests."""
        self._awaits_services = False
        self._services_are_there = True

    def take_action(self) -> tuple[ClusterActionRequest, int] | None:
        """The action that the last poll stopped after, and the position after it; once."""
        return self._actions.pop() if self._actions else None

    def _apply(self, data: bytes, header: Header) -> Action:
        if template_of(data) == SESSION_MESSAGE:
            _, session_id, _ = unpack_header(data)
            if session_id < 0:
                self._message_of_service(session_id)
            return Action.CONTINUE
        try:
            entry = decode(data)
        except MessageError as wrong:
            raise ClusterError(
                f"the entry of the log before position {header.position} is damaged: {wrong}"
            ) from None
        return self._entry(entry, header.position)

    def _message_of_service(self, session_id: int) -> None:
        pending = self._context.applied.pending
        service_id = service_id_of(session_id)
        if service_id < len(pending):
            pending[service_id].logged(session_id)

    def _entry(self, entry: Any, log_position: int) -> Action:
        context, applied = self._context, self._context.applied
        if isinstance(entry, TimerEvent):
            if not self._services_are_there:
                self._awaits_services = True
                return Action.ABORT
            self._services_are_there = False
            applied.timers.fired(entry.correlation_id, entry.timestamp)
        elif isinstance(entry, SessionOpenEvent):
            applied.sessions.logged_open(entry, log_position)
        elif isinstance(entry, SessionCloseEvent):
            applied.sessions.logged_close(entry.cluster_session_id)
        elif isinstance(entry, NewLeadershipTermEvent):
            self._new_term(entry)
        elif isinstance(entry, MemberReplacement):
            context.members.adopt(log_position, wire_members(entry.members))
        elif (
            isinstance(entry, ClusterActionRequest) and entry.leadership_term_id == context.leadership_term_id
        ):
            self._actions.append((entry, log_position))
            return Action.BREAK
        return Action.CONTINUE

    def _new_term(self, entry: NewLeadershipTermEvent) -> None:
        config = self._context.config
        place = f"at log_position={entry.log_position}"
        if entry.time_unit is not config.time_unit:
            raise ClusterTerminalError(
                f"incompatible timestamp units: {config.time_unit.name} log={entry.time_unit.name}: the log was "
                f"written with another clock setting than cluster_clock={config.cluster_clock}, {place}; "
                f"{as_before(clock=entry.time_unit)}"
            )
        if entry.app_version >> 16 != config.app_version >> 16:
            raise ClusterTerminalError(
                f"incompatible version: {config.app_version} log={entry.app_version}: the log was written with another "
                f"major app_version, {place}; {as_before(app_version=entry.app_version)}"
            )
        self._context.leadership_term_id = entry.leadership_term_id
        self._on_term(entry)
