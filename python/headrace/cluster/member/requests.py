"""What services and tools ask of a module. Cluster specification 7.4, 8.3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cluster.member.members import members_text
from headrace.cluster.protocol import control
from headrace.cluster.protocol.codes import CloseReason

if TYPE_CHECKING:
    from headrace.cluster.member.context import Context

__all__ = ["service_message", "service_request"]

_Answer = control.ClusterMembersResponse | control.ClusterMembersExtendedResponse


def service_message(context: Context, service_id: int, payload: bytes) -> None:
    """A service sends to its own cluster."""
    pending = context.applied.pending
    if not 0 <= service_id < len(pending):
        context.log.warning(f"a message of service_id={service_id}, where service_count={len(pending)}")
        return
    pending[service_id].add(payload)


def service_request(context: Context, append_position: int, request: object) -> _Answer | None:
    """Do what is asked; the answer, if there is one."""
    applied = context.applied
    if isinstance(request, control.ScheduleTimer):
        applied.timers.schedule(request.correlation_id, request.deadline)
    elif isinstance(request, control.CancelTimer):
        applied.timers.cancel(request.correlation_id)
    elif isinstance(request, control.CloseSession):
        session = applied.sessions.get(request.cluster_session_id)
        if session is not None and session.is_open:
            applied.sessions.close(session, CloseReason.SERVICE_ACTION)
    elif isinstance(request, control.ClusterMembersQuery):
        return _members(context, append_position, request)
    return None


def _members(context: Context, append_position: int, query: control.ClusterMembersQuery) -> _Answer:
    config = context.config
    if not query.extended:
        return control.ClusterMembersResponse(
            correlation_id=query.correlation_id,
            leader_member_id=config.member_id,
            active_members=members_text(config.all_members),
        )
    member = config.member
    own = control.ClusterMember(
        leadership_term_id=context.leadership_term_id,
        log_position=append_position,
        time_of_last_append_ns=context.now_ns,
        member_id=config.member_id,
        ingress_endpoint=member.ingress_endpoint,
        consensus_endpoint=member.consensus_endpoint,
        log_endpoint=member.log_endpoint,
        catchup_endpoint=member.catchup_endpoint,
        archive_endpoint=member.archive_endpoint,
    )
    return control.ClusterMembersExtendedResponse(
        correlation_id=query.correlation_id,
        current_time_ns=context.now_ns,
        leader_member_id=config.member_id,
        member_id=config.member_id,
        active_members=(own,),
    )
