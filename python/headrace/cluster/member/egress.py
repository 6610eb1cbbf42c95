"""What a member sends to clients. Cluster specification 3.4, 3.8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._base.checks import wrong
from headrace._base.results import OfferResult
from headrace.channel import ChannelUri, format_duration, parse_duration_ns, parse_size
from headrace.cluster.protocol.messages import encode
from headrace.cluster.protocol.session import (
    AdminResponse,
    Challenge,
    NewLeaderEvent,
    SessionEvent,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.cluster.member.config import ConsensusModuleConfig
    from headrace.cluster.member.sessions import Session
    from headrace.cluster.protocol.codes import AdminRequestType, AdminResponseCode, EventCode

__all__ = ["Egress", "check_answers", "egress_channel"]

PROTOCOL_VERSION = 0 << 16 | 3 << 8
_ATTEMPTS = 3
# The longest that a driver makes by itself.
_TERM_LENGTH_MAX = 64 << 20
# As long as a driver keeps a stream that is given up by itself.
_LINGER_MAX_NS = 5_000_000_000


def egress_channel(template: str | None, wanted: str, is_ipc_allowed: bool) -> str:
    """The channel of a client's answers: what it wants, with the parameters of the member's template.

    A client chooses it before it has said who it is: of the log that the member makes for it, no more memory is taken
    than is used, and no more and no longer than a driver's own default has.
    """
    uri = ChannelUri(wanted)
    if template is not None:
        if uri.media == "ipc":
            uri = uri if is_ipc_allowed else ChannelUri(template)
        else:
            names = {name.replace("-", "_"): value for name, value in ChannelUri(template).parameters.items()}
            uri = ChannelUri(uri.with_parameters(**names))
    return _with_a_modest_log(uri)


def check_answers(
    config: ConsensusModuleConfig, channel: str, stream_id: int, addresses: Iterable[str]
) -> None:
    """Look whether answers may go to a stream that a client has chosen, before it has said who it is.

    Those that go to the member itself it would take for messages of its services or, as ingress, carry out anew.

    Args:
        config: The member's streams and endpoints.
        channel: Where a client wants its answers, as :func:`egress_channel` gives it.
        stream_id: Its stream.
        addresses: Where the member hears clients, each as ``ip:port``.

    Raises:
        ConfigError: They may not.
    """
    uri = ChannelUri(channel)
    if uri.media == "ipc":
        if not config.serves_ipc:
            raise wrong(
                "response_channel",
                channel,
                "aeron:ipc is for clients of the member's driver, to which ingress_ipc_allowed=True lets it listen",
            )
        if stream_id in config.own_streams:
            rule = f"{stream_id} is a stream of the member itself: choose another one, such as 102"
            raise wrong("response_stream_id", stream_id, rule)
        return
    endpoint = (uri.get("endpoint") or "").lower()
    ingress = ChannelUri(config.ingress_channel or "").get("endpoint") or ""
    if endpoint in {one.lower() for one in (*config.member.endpoints, ingress, *addresses)}:
        raise wrong(
            "response_channel", channel, "is where the member listens; choose another endpoint for the client"
        )


def _with_a_modest_log(uri: ChannelUri) -> str:
    changes: dict[str, str | int | None] = {}
    if uri.get("sparse") is not None:
        changes["sparse"] = "true"
    length = uri.get("term-length")
    if length is not None and parse_size(length, "term-length") > _TERM_LENGTH_MAX:
        changes["term_length"] = _TERM_LENGTH_MAX
    linger = uri.get("linger")
    if linger is not None and parse_duration_ns(linger, "linger") > _LINGER_MAX_NS:
        changes["linger"] = format_duration(_LINGER_MAX_NS)
    return uri.with_parameters(**changes)


class Egress:
    """Sends events. Each gives whether the client's stream took it."""

    def __init__(self, member_id: int, heartbeat_timeout_ns: int) -> None:
        self._member_id = member_id
        self._heartbeat_timeout_ns = heartbeat_timeout_ns

    def event(
        self,
        session: Session,
        leadership_term_id: int,
        code: EventCode,
        detail: str = "",
        leader_member_id: int | None = None,
    ) -> bool:
        """What became of a session."""
        return self.send(
            session,
            SessionEvent(
                cluster_session_id=session.session_id,
                correlation_id=session.correlation_id,
                leadership_term_id=leadership_term_id,
                leader_member_id=self._member_id if leader_member_id is None else leader_member_id,
                code=code,
                version=PROTOCOL_VERSION,
                leader_heartbeat_timeout_ns=self._heartbeat_timeout_ns,
                detail=detail,
            ),
        )

    def new_leader(self, session: Session, leadership_term_id: int, endpoints: str) -> bool:
        """This member leads now."""
        return self.send(
            session,
            NewLeaderEvent(
                leadership_term_id=leadership_term_id,
                cluster_session_id=session.session_id,
                leader_member_id=self._member_id,
                ingress_endpoints=endpoints,
            ),
        )

    def challenge(self, session: Session, challenge: bytes) -> bool:
        """The client is to prove who it is."""
        return self.send(
            session,
            Challenge(
                correlation_id=session.correlation_id,
                cluster_session_id=session.session_id,
                encoded_challenge=challenge,
            ),
        )

    def admin(
        self,
        session: Session,
        correlation_id: int,
        request: AdminRequestType | None,
        code: AdminResponseCode,
        message: str = "",
    ) -> bool:
        """The answer to an admin request."""
        return self.send(
            session,
            AdminResponse(
                cluster_session_id=session.session_id,
                correlation_id=correlation_id,
                request_type=request,
                response_code=code,
                message=message,
            ),
        )

    @staticmethod
    def send(session: Session, message: Any) -> bool:
        """Any other message."""
        publication = session.publication
        if publication is None:
            return False
        data = encode(message)
        for _ in range(_ATTEMPTS):
            result = publication.offer(data)
            if result > 0:
                return True
            if result != OfferResult.ADMIN_ACTION:
                return False
        return False
