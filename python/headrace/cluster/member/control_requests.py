"""What services and tools ask of a module. Cluster specification 7.4, 8.3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.cluster.common.members import members_text
from headrace.cluster.protocol import control
from headrace.cluster.protocol.codes import CloseReason
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.cluster.common.members import Member
    from headrace.cluster.consensus.peers import Log, Peer
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


def service_request(
    context: Context, append_position: int, peers: Mapping[int, Peer], request: object
) -> _Answer | None:
    """Do what is asked; the answer, if there is one."""
    applied = context.applied
    if isinstance(request, control.ScheduleTimer):
        applied.timers.schedule(request.correlation_id, request.deadline)
    elif isinstance(request, control.CancelTimer):
        applied.timers.cancel(request.correlation_id)
    elif isinstance(request, control.CloseSession):
        session = applied.sessions.get(request.cluster_session_id)
        if session is not None and session.is_open:
            applied.sessions.close(session, CloseReason.SERVICE_ACTION, "a service closes it")
    elif isinstance(request, control.ClusterMembersQuery):
        return _members(context, append_position, peers, request)
    return None


def _members(
    context: Context, append_position: int, peers: Mapping[int, Peer], query: control.ClusterMembersQuery
) -> _Answer:
    config = context.config
    if not query.extended:
        return control.ClusterMembersResponse(
            correlation_id=query.correlation_id,
            leader_member_id=context.leader_member_id,
            active_members=members_text(context.members.current),
        )
    now_ns = context.time.to_ns(context.now)

    def shown(member: Member) -> control.ClusterMember:
        if member.member_id == config.member_id:
            return _shown(member, (context.leadership_term_id, append_position), now_ns)
        peer = peers.get(member.member_id)
        if peer is None or peer.log is None or peer.heard_ns is None:
            return _shown(member, (NULL_VALUE, NULL_VALUE), NULL_VALUE)
        # To a leader those that follow tell positions in its own term, to others their log before the last election.
        matched = (context.leadership_term_id, peer.matched_position)
        log = peer.log if peer.matched_position == NULL_VALUE else matched
        return _shown(member, log, now_ns - (context.now_ns - peer.heard_ns))

    return control.ClusterMembersExtendedResponse(
        correlation_id=query.correlation_id,
        current_time_ns=now_ns,
        leader_member_id=context.leader_member_id,
        member_id=config.member_id,
        active_members=tuple(map(shown, context.members.current)),
    )


def _shown(member: Member, log: Log, told_ns: int) -> control.ClusterMember:
    leadership_term_id, log_position = log
    return control.ClusterMember(
        leadership_term_id=leadership_term_id,
        log_position=log_position,
        time_of_last_append_ns=told_ns,
        member_id=member.member_id,
        ingress_endpoint=member.ingress_endpoint,
        consensus_endpoint=member.consensus_endpoint,
        log_endpoint=member.log_endpoint,
        catchup_endpoint=member.catchup_endpoint,
        archive_endpoint=member.archive_endpoint,
    )
