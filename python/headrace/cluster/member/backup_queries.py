"""What backups and standbys ask a member for, on the consensus stream. Cluster specification 8.5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._base.exceptions import ConfigError
from headrace.cluster.common.members import members_text
from headrace.cluster.member.egress import PROTOCOL_VERSION, egress_channel
from headrace.cluster.member.half_open_sessions import NO_ANSWERS, HalfOpenSessions
from headrace.cluster.member.sessions import IngressStream, Session, origin_of
from headrace.cluster.member.states import ModuleState
from headrace.cluster.protocol.codes import EventCode
from headrace.cluster.protocol.consensus import (
    BackupQuery,
    BackupResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    SnapshotRecording,
    StandbySnapshot,
)
from headrace.cluster.protocol.messages import SCHEMA_ID
from headrace.cluster.protocol.session import ChallengeResponse
from headrace.positions import NULL_VALUE, version_text
from headrace.security.authorisation import is_allowed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headrace.client import Header, Publication, Subscription
    from headrace.cluster.files.recording_log_entries import Entry
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.egress import Egress
    from headrace.cluster.protocol.consensus import StandbySnapshotRecording
    from headrace.security.authorisation import AuthorisationService
    from headrace.security.verdicts import Verdicts

__all__ = ["BackupQueries"]

Request = BackupQuery | HeartbeatRequest | StandbySnapshot

# Of each request: the template, what sessions are called for operators, and what a refusal calls it.
_KINDS: dict[type[Request], tuple[int, str, str]] = {
    BackupQuery: (77, "BACKUP", "BackupQuery"),
    HeartbeatRequest: (79, "HEARTBEAT", "Heartbeat"),
    StandbySnapshot: (81, "STANDBY_SNAPSHOT", "StandbySnapshot"),
}
_ACCEPTED_IN = (ModuleState.ACTIVE, ModuleState.SUSPENDED, ModuleState.SNAPSHOT)
_LATEST = (1 << 63) - 1
_UNSET = -(1 << 63)
_NO_STANDBYS = "Not configured to accept StandbySnapshot"


class BackupQueries(HalfOpenSessions):
    """Answers those outside of the cluster, each once: leader and followers do, between elections.

    Args:
        context: What the module's parts share.
        egress: Sends to them.
        verdicts: Of the authenticator.
        authorisation: Says which of them may ask; without one, all may.
        subscription: Where the member hears them.
        on_standby_snapshot: Called with the recordings of a snapshot that a standby has taken.
    """

    def __init__(
        self,
        context: Context,
        egress: Egress,
        verdicts: Verdicts,
        authorisation: AuthorisationService | None,
        subscription: Subscription | None,
        on_standby_snapshot: Callable[[Sequence[StandbySnapshotRecording]], object],
    ) -> None:
        super().__init__(context, egress, verdicts, context.config.consensus_stream_id)
        self._authorisation = authorisation
        self._subscription = subscription
        self._on_standby_snapshot = on_standby_snapshot

    def on_message(self, message: object, header: Header) -> None:
        """A message that is not another member's."""
        if self._context.state not in _ACCEPTED_IN:
            return
        if isinstance(message, ChallengeResponse):
            self.challenge_response(message, IngressStream.heard(self._subscription, header.session_id))
        elif isinstance(message, BackupQuery | HeartbeatRequest | StandbySnapshot):
            self._begin(message, header)

    def _begin(self, request: Request, header: Header) -> None:
        context, subscription = self._context, self._subscription
        try:
            # The template of the member's egress is for clients.
            channel = egress_channel(None, request.response_channel, False)
        except ConfigError as wrong:
            context.log.warning(NO_ANSWERS, str(wrong))
            return
        stream = IngressStream.heard(subscription, header.session_id)
        session = Session(
            session_id=NULL_VALUE,
            correlation_id=request.correlation_id,
            response_stream_id=request.response_stream_id,
            response_channel=channel,
            activity_ns=context.now_ns,
            ingress=stream,
            request=request,
        )
        addresses = () if subscription is None else subscription.local_socket_addresses
        if not self._request_publication(session, addresses):
            return
        origin = origin_of(subscription, header.session_id)
        _, name, _ = _KINDS[type(request)]
        session.life.begin(
            context.events,
            f"{name} is asked for: {origin}",
            NULL_VALUE,
            stream_id=session.response_stream_id,
            session_id=header.session_id,
            detail=channel,
        )
        session.requested_counter = context.counters.of_session(NULL_VALUE, name, origin)
        version = PROTOCOL_VERSION if isinstance(request, HeartbeatRequest) else request.version
        if version >> 16 != PROTOCOL_VERSION >> 16:
            self._refuse_version(session, version, f"cluster={version_text(PROTOCOL_VERSION)}")
        elif isinstance(request, StandbySnapshot) and not context.config.accept_standby_snapshots:
            self._refuse(session, _NO_STANDBYS, _NO_STANDBYS)
        else:
            session.verdict = self._verdicts.on_connect(request.encoded_credentials)
        self._add(session)

    def do_work(self) -> int:
        """A step of each of them; on slow ticks, while the module is active."""
        return self._step_all() if self._context.state is ModuleState.ACTIVE else 0

    def _hears(self, publication: Publication) -> bool:
        subscription = self._subscription
        return subscription is not None and bool(subscription.image_by_session_id(publication.session_id))

    def _admitted(self, session: Session) -> bool:
        """Answer, and end the session."""
        session.take_counter(self._context.log)
        action_id, _, name = _KINDS[type(session.request)]
        if not self._is_authorised(action_id, session.principal):
            denied = f"Not authorised for {name}"
            self._refuse(session, denied, denied, code=EventCode.AUTHENTICATION_REJECTED)
            return False
        if isinstance(session.request, StandbySnapshot):
            # There is no answer: the session just ends.
            self._on_standby_snapshot(session.request.snapshots)
            self._drop(session, "its snapshot is noticed")
            return True
        answer = self._answer(session)
        if answer is None or not self._egress.send(session, answer):
            return False
        self._drop(session, "it is answered")
        return True

    def _is_authorised(self, action_id: int, principal: bytes) -> bool:
        return self._authorisation is None or is_allowed(
            self._authorisation, SCHEMA_ID, action_id, None, principal, self._context.log.error
        )

    def _answer(self, session: Session) -> Any:
        """The answer; ``None`` while there is none, for as long as sessions wait."""
        request = session.request
        if isinstance(request, HeartbeatRequest):
            return HeartbeatResponse(correlation_id=session.correlation_id)
        assert isinstance(request, BackupQuery), "others have no answer"
        context, config = self._context, self._context.config
        log, term = context.recording_log, context.recording_log.last_term
        if term is None:
            return None
        position = request.log_position
        if position is None or position == _UNSET:
            position = _LATEST
        return BackupResponse(
            correlation_id=session.correlation_id,
            log_recording_id=term.recording_id,
            log_leadership_term_id=term.leadership_term_id,
            log_term_base_log_position=term.term_base_log_position,
            last_leadership_term_id=term.leadership_term_id,
            last_term_base_log_position=term.term_base_log_position,
            commit_position_counter_id=context.counters.commit_position.counter_id,
            leader_member_id=context.leader_member_id,
            member_id=config.member_id,
            snapshots=tuple(map(_snapshot, log.snapshot_up_to(position, config.service_count))),
            cluster_members=members_text(context.members.current),
        )


def _snapshot(entry: Entry) -> SnapshotRecording:
    return SnapshotRecording(
        recording_id=entry.recording_id,
        leadership_term_id=entry.leadership_term_id,
        term_base_log_position=entry.term_base_log_position,
        log_position=entry.log_position,
        timestamp=entry.timestamp,
        service_id=entry.service_id,
    )
