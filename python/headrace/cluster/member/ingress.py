"""What clients of a leader send. Cluster specification 3.5, 3.8."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._results import Action
from headrace._weak import weakly
from headrace.channel import ChannelUri
from headrace.cluster.member.states import Toggle
from headrace.cluster.protocol.codes import AdminRequestType, AdminResponseCode, CloseReason, EventCode
from headrace.cluster.protocol.header import HEADER_LENGTH, SESSION_MESSAGE, template_of, unpack_header
from headrace.cluster.protocol.messages import SCHEMA_ID, MessageError, decode
from headrace.cluster.protocol.session import (
    AdminRequest,
    ChallengeResponse,
    SessionCloseRequest,
    SessionConnectRequest,
    SessionKeepAlive,
)
from headrace.security.verdicts import described

if TYPE_CHECKING:
    from headrace.client import Header, Image, Subscription
    from headrace.cluster.member.connecting import Connecting
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.egress import Egress
    from headrace.cluster.member.log_writer import LogWriter
    from headrace.cluster.member.sessions import Session
    from headrace.security.authorisation import AuthorisationService

__all__ = ["Ingress"]

_ADMIN_REQUEST = 26
_DENIED = "Execution of the SNAPSHOT request was not authorised"
_NOT_SWITCHED = "Failed to switch ClusterControl to the ToggleState.SNAPSHOT state"


class Ingress:
    """Puts what clients send into the log. There while the member leads."""

    def __init__(
        self,
        context: Context,
        connecting: Connecting,
        egress: Egress,
        authorisation: AuthorisationService | None,
        writer: LogWriter,
    ) -> None:
        self._context = context
        self._connecting = connecting
        self._egress = egress
        self._authorisation = authorisation
        self._writer = writer
        self._sequencer = writer.sequencer()
        context.applied.sessions.lead(self._sequencer)
        self._is_closed = False
        config = context.config
        uri = ChannelUri(config.ingress_channel or "")
        if uri.media == "udp":
            endpoint = uri.get("endpoint") or config.member.ingress_endpoint
            channel = uri.with_parameters(endpoint=endpoint, rejoin="false", reliable="true")
        else:
            channel = str(config.ingress_channel)
        channels = [channel]
        if config.ingress_ipc_allowed and uri.media == "udp":
            channels.append("aeron:ipc")
        self.subscriptions: list[Subscription] = [
            context.client.add_subscription(
                one, config.ingress_stream_id, on_unavailable_image=weakly(self._image_lost)
            )
            for one in channels
        ]
        self._heard: Subscription | None = None

    def poll(self) -> int:
        """Take what has come. What the log has no room for stays, and comes again."""
        count = 0
        now, limit = self._context.now, self._context.config.ingress_fragment_limit
        for subscription in self.subscriptions:
            self._heard = subscription
            count += subscription.sequence(self._sequencer, self._take, now, limit)
        return count

    def _take(self, data: bytes, header: Header) -> Action:
        """What is no message of a session, or a message that the log can never take."""
        context = self._context
        if template_of(data) == SESSION_MESSAGE:
            self._too_long(data)
            return Action.CONTINUE
        try:
            request = decode(data)
        except MessageError as wrong:
            foreign = len(data) >= 8 and int.from_bytes(data[4:6], "little") != SCHEMA_ID
            text = (
                "a client sends messages of another schema"
                if foreign
                else "a client sends what is no message"
            )
            context.log.warning(text, str(wrong))
            return Action.CONTINUE
        if isinstance(request, SessionConnectRequest):
            addresses = [one for heard in self.subscriptions for one in heard.local_socket_addresses]
            self._connecting.request(request, header, self._image_of(header), addresses)
        elif isinstance(request, ChallengeResponse):
            self._connecting.challenge_response(request)
        elif isinstance(request, SessionKeepAlive | SessionCloseRequest | AdminRequest):
            session = context.applied.sessions.get(request.cluster_session_id)
            if (
                session is not None
                and session.is_open
                and request.leadership_term_id == context.leadership_term_id
            ):
                self._of_session(request, session, header)
        return Action.CONTINUE

    def _too_long(self, data: bytes) -> None:
        """The log never takes a message, of an open session: its client is told, if its program listens to events."""
        context, longest = self._context, self._writer.max_message_length
        length = len(data) - HEADER_LENGTH
        if length <= longest:
            self._writer.check_open()
        context.log.warning(
            "a client sends a message that is too long for the log",
            f"length={length}, and {longest} is the most",
        )
        _, session_id, _ = unpack_header(data)
        session = context.applied.sessions.get(session_id)
        if session is not None:
            text = f"a message of {length} bytes is too long for the log, which takes {longest} at most"
            self._egress.event(session, context.leadership_term_id, EventCode.ERROR, text)

    def _of_session(
        self, request: SessionKeepAlive | SessionCloseRequest | AdminRequest, session: Session, header: Header
    ) -> None:
        if isinstance(request, SessionKeepAlive):
            session.activity_ns = self._context.now_ns
            if session.ingress_image_id is None:
                image = self._image_of(header)
                session.ingress_image_id = None if image is None else image.correlation_id
        elif isinstance(request, SessionCloseRequest):
            session.disconnect()
            self._context.applied.sessions.close(session, CloseReason.CLIENT_ACTION)
        else:
            session.activity_ns = self._context.now_ns
            self._admin(request, session)

    def _admin(self, request: AdminRequest, session: Session) -> None:
        kind = request.request_type
        if kind is not AdminRequestType.SNAPSHOT:
            code, text = AdminResponseCode.ERROR, "Unknown request type: it is not SNAPSHOT"
        elif not self._is_authorised(session, kind):
            code, text = AdminResponseCode.UNAUTHORISED_ACCESS, _DENIED
        elif self._context.counters.toggle.value == Toggle.NEUTRAL:
            self._context.counters.toggle.value = Toggle.SNAPSHOT
            code, text = AdminResponseCode.OK, ""
        else:
            code, text = AdminResponseCode.ERROR, _NOT_SWITCHED
        self._egress.admin(session, request.correlation_id, kind, code, text)

    def _is_authorised(self, session: Session, kind: AdminRequestType) -> bool:
        if self._authorisation is None:
            return False
        try:
            return bool(
                self._authorisation.is_authorised(SCHEMA_ID, _ADMIN_REQUEST, int(kind), session.principal)
            )
        except Exception as failure:
            self._context.log.error(
                "the authorisation service failed, and the request is denied", None, described(failure)
            )
            return False

    def _image_of(self, header: Header) -> Image | None:
        return None if self._heard is None else self._heard.image_by_session_id(header.session_id)

    def _image_lost(self, image: Image) -> None:
        """A client's stream ended or has a gap: its session must not go on, or messages would be missing."""
        for session in self._context.applied.sessions:
            is_its = session.ingress_image_id == image.correlation_id and not self._is_closed
            if session.is_open and is_its:
                self._context.applied.sessions.close(session, CloseReason.TIMEOUT)

    def close(self) -> None:
        """Take nothing more. The streams go on, and with them their sessions, when the member leads again."""
        self._is_closed = True
        self._context.applied.sessions.lead(None)
        for subscription in self.subscriptions:
            subscription.close()
