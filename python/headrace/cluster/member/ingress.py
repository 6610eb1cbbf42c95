"""What clients of a leader send. Cluster specification 3.5, 3.8."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._base.results import Action
from headrace._base.weak import weakly
from headrace.channel import ChannelUri
from headrace.cluster.member.redirects import ingress_channel
from headrace.cluster.member.sessions import IngressStream, Session, origin_of
from headrace.cluster.member.states import Toggle
from headrace.cluster.protocol.codes import AdminRequestType, AdminResponseCode, CloseReason, EventCode
from headrace.cluster.protocol.header import HEADER_LENGTH, SESSION_MESSAGE, template_of, unpack_header
from headrace.cluster.protocol.messages import SCHEMA_ID, MessageError, decode
from headrace.cluster.protocol.session import (
    AdminRequest,
    ChallengeResponse,
    ReadRequest,
    SessionCloseRequest,
    SessionConnectRequest,
    SessionKeepAlive,
)
from headrace.security.authorisation import is_allowed

if TYPE_CHECKING:
    from headrace.client import Header, Image, Publication, Subscription
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.egress import Egress
    from headrace.cluster.member.log_writer import LogWriter
    from headrace.cluster.member.reads import Reads
    from headrace.cluster.member.session_opening import SessionOpening
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
        connecting: SessionOpening,
        egress: Egress,
        authorisation: AuthorisationService | None,
        writer: LogWriter,
        reads: Reads,
    ) -> None:
        self._context = context
        self._connecting = connecting
        self._egress = egress
        self._authorisation = authorisation
        self._writer = writer
        self._reads = reads
        self._sequencer = writer.sequencer()
        context.applied.sessions.lead(self._sequencer)
        self._is_closed = False
        config = context.config
        channels = [ingress_channel(context)]
        if config.ingress_ipc_allowed and ChannelUri(channels[0]).media == "udp":
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
        """What is no message of a session, or a message that is not simply appended."""
        context = self._context
        if template_of(data) == SESSION_MESSAGE:
            return self._message(data, header)
        try:
            request = decode(data)
        except MessageError as wrong:
            foreign = len(data) >= 8 and int.from_bytes(data[4:6], "little") != SCHEMA_ID
            text = (
                "a client sends messages of another schema"
                if foreign
                else "a client sends an invalid message"
            )
            context.log.warning(text, str(wrong))
            return Action.CONTINUE
        if isinstance(request, SessionConnectRequest):
            addresses = [one for heard in self.subscriptions for one in heard.local_socket_addresses]
            origin = origin_of(self._heard, header.session_id)
            self._connecting.request(request, self._stream_of(header), origin, addresses)
        elif isinstance(request, ChallengeResponse):
            self._connecting.challenge_response(request, self._stream_of(header))
        elif isinstance(request, SessionKeepAlive | SessionCloseRequest | AdminRequest | ReadRequest):
            session = context.applied.sessions.get(request.cluster_session_id)
            if (
                session is not None
                and session.is_open
                and request.leadership_term_id == context.leadership_term_id
                and self._is_on_its_stream(session, header)
            ):
                self._of_session(request, session)
        return Action.CONTINUE

    def _message(self, data: bytes, header: Header) -> Action:
        """Of an open session: the first after an election, or one that the log never takes."""
        context, longest = self._context, self._writer.max_message_length
        _, session_id, _ = unpack_header(data)
        session = context.applied.sessions.get(session_id)
        if session is None or not self._is_on_its_stream(session, header):
            return Action.CONTINUE
        length = len(data) - HEADER_LENGTH
        if length > longest:
            self._too_long(session, length, longest)
            return Action.CONTINUE
        session.activity_ns = context.now_ns
        position = self._writer.message(session_id, context.now, data[HEADER_LENGTH:])
        return Action.ABORT if position is None else Action.CONTINUE

    def _too_long(self, session: Session, length: int, longest: int) -> None:
        """The log never takes a message: its client is told, if its program listens to events."""
        context = self._context
        context.log.warning(
            "a client sends a message that is too long for the log",
            f"length={length}, and {longest} is the most",
        )
        text = f"a message of {length} bytes is too long for the log, which takes {longest} at most"
        self._egress.event(session, context.leadership_term_id, EventCode.ERROR, text)

    def _of_session(
        self, request: SessionKeepAlive | SessionCloseRequest | AdminRequest | ReadRequest, session: Session
    ) -> None:
        if isinstance(request, SessionKeepAlive):
            session.activity_ns = self._context.now_ns
        elif isinstance(request, SessionCloseRequest):
            session.disconnect()
            self._context.applied.sessions.close(session, CloseReason.CLIENT_ACTION, "its client closes it")
        elif isinstance(request, ReadRequest):
            session.activity_ns = self._context.now_ns
            self._reads.add(request)
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
        return self._authorisation is not None and is_allowed(
            self._authorisation,
            SCHEMA_ID,
            _ADMIN_REQUEST,
            int(kind),
            session.principal,
            self._context.log.error,
        )

    def _is_on_its_stream(self, session: Session, header: Header) -> bool:
        """Whether a session is heard on this stream: the one on which it connected, or the first after an election."""
        stream = self._stream_of(header)
        if session.ingress is None and stream is not None:
            self._context.applied.sessions.link(session, stream)
        return stream is not None and session.ingress == stream

    def _stream_of(self, header: Header) -> IngressStream | None:
        """The stream of what is handled now; ``None`` once it has ended."""
        return IngressStream.heard(self._heard, header.session_id)

    def hears(self, publication: Publication) -> bool:
        """Whether the member hears a publication of its own, whatever address its channel names."""
        return any(one.image_by_session_id(publication.session_id) for one in self.subscriptions)

    def _image_lost(self, image: Image) -> None:
        """A client's stream ended or has a gap: its session must not go on, or messages would be missing."""
        if self._is_closed:
            return
        self._connecting.stream_lost(image.correlation_id)
        for session in self._context.applied.sessions:
            if (
                session.is_open
                and session.ingress is not None
                and session.ingress.image_id == image.correlation_id
            ):
                why = "the stream of its client ended or has a gap"
                self._context.applied.sessions.close(session, CloseReason.TIMEOUT, why)

    def close(self) -> None:
        """Take nothing more. The streams go on, and with them their sessions, when the member leads again."""
        self._is_closed = True
        self._context.applied.sessions.lead(None)
        for subscription in self.subscriptions:
            subscription.close()
