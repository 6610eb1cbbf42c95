"""What clients send to a follower: it tells them who leads, and answers reads. Cluster specification 3.4."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from headrace._base.exceptions import ConfigError, RegistrationError
from headrace.channel import ChannelUri
from headrace.cluster.common.members import ingress_endpoints
from headrace.cluster.member.egress import check_answers, egress_channel
from headrace.cluster.member.sessions import Session
from headrace.cluster.protocol.codes import EventCode
from headrace.cluster.protocol.messages import MessageError, decode
from headrace.cluster.protocol.session import FollowerReadRequest, SessionConnectRequest
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.client import Header, Subscription
    from headrace.cluster.consensus.actions import Follow
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.egress import Egress
    from headrace.cluster.member.follower_reads import FollowerReads

__all__ = ["Redirects", "ingress_channel"]

_FRAGMENT_LIMIT = 50
# Each has a publication: a stranger must not fill the driver.
_CLIENTS_MAX = 64


def ingress_channel(context: Context) -> str:
    """Where the member hears its clients."""
    config = context.config
    uri = ChannelUri(config.ingress_channel or "")
    if uri.media != "udp":
        return str(config.ingress_channel)
    endpoint = uri.get("endpoint") or config.member.ingress_endpoint
    return uri.with_parameters(endpoint=endpoint, rejoin="false", reliable="true")


class Redirects:
    """Clients that ask this member to connect, until they are told. There while the member follows.

    Args:
        context: What the module's parts share.
        egress: Sends to clients.
        follow: Which leader, of which term.
        reads: Answers what clients ask a follower.
    """

    def __init__(self, context: Context, egress: Egress, follow: Follow, reads: FollowerReads) -> None:
        self._context = context
        self._egress = egress
        self._follow = follow
        self._reads = reads
        self._clients: deque[Session] = deque()
        # With one channel for all members, which a template with an endpoint names, the leader alone listens.
        uri = ChannelUri(context.config.ingress_channel or "")
        self.subscriptions: list[Subscription] = []
        if uri.media == "udp" and uri.get("endpoint") is None:
            channel = ingress_channel(context)
            self.subscriptions.append(
                context.client.add_subscription(channel, context.config.ingress_stream_id)
            )

    def poll(self) -> int:
        """Take what clients send."""
        taken = sum(one.poll(self._take, _FRAGMENT_LIMIT) for one in self.subscriptions)
        return taken + self._reads.do_work(self._follow.leadership_term_id)

    def _take(self, data: bytes, _: Header) -> None:
        try:
            request = decode(data)
        except MessageError:
            return
        if isinstance(request, SessionConnectRequest):
            self._connect(request)
        elif isinstance(request, FollowerReadRequest):
            self._reads.add(request)

    def _connect(self, request: SessionConnectRequest) -> None:
        context, config = self._context, self._context.config
        try:
            channel = egress_channel(config.egress_channel, request.response_channel, False)
            addresses = [one for heard in self.subscriptions for one in heard.local_socket_addresses]
            check_answers(config, channel, request.response_stream_id, addresses)
            requested = context.client.request_publication(channel, request.response_stream_id)
        except ConfigError as wrong:
            context.log.warning("a client asks for answers on a forbidden or an invalid channel", str(wrong))
            return
        session = Session(
            session_id=NULL_VALUE,
            correlation_id=request.correlation_id,
            response_stream_id=request.response_stream_id,
            response_channel=channel,
            activity_ns=context.now_ns,
            requested=requested,
        )
        self._clients.append(session)
        if len(self._clients) > _CLIENTS_MAX:
            self._clients.popleft().disconnect()

    def do_work(self) -> int:
        """Tell those that hear by now; returns how many have gone."""
        before = len(self._clients)
        self._clients = deque(session for session in self._clients if not self._is_done(session))
        return before - len(self._clients)

    def _is_done(self, session: Session) -> bool:
        context = self._context
        is_over = context.now_ns - session.activity_ns > context.config.session_timeout_ns
        if not is_over:
            try:
                session.take_publication()
            except RegistrationError as refusal:
                context.log.warning("the channel of a client's answers is refused", str(refusal))
                return True
            if not self._egress.event(
                session,
                self._follow.leadership_term_id,
                EventCode.REDIRECT,
                ingress_endpoints(context.members.current),
                self._follow.leader_member_id,
            ):
                return False
        session.disconnect()
        return True

    def close(self) -> None:
        """Take nothing more."""
        for session in self._clients:
            session.disconnect()
        for subscription in self.subscriptions:
            subscription.close()
