"""A member that does what a test says, written from the protocol alone: the other side of a cluster's client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace
from headrace.cluster import ClusterClient
from headrace.cluster.protocol.codes import EventCode
from headrace.cluster.protocol.header import (
    HEADER_LENGTH,
    SESSION_MESSAGE,
    pack_header,
    template_of,
    unpack_header,
)
from headrace.cluster.protocol.messages import decode, encode
from headrace.cluster.protocol.session import (
    ChallengeResponse,
    NewLeaderEvent,
    SessionCloseRequest,
    SessionConnectRequest,
    SessionEvent,
    SessionKeepAlive,
)
from headrace.testing import Node, World

INGRESS, EGRESS = 101, 102
HEARTBEAT_TIMEOUT_NS = 1_000_000_000
PORT = 20110


class ScriptedMember:
    """Takes what clients send, opens their sessions and echoes their messages, unless a test says otherwise."""

    def __init__(self, node: Node, member_id: int = 0, *, ingress: str = "") -> None:
        self.node = node
        self.member_id = member_id
        self.endpoint = f"{node.name}:{PORT}"
        self.client = node.connect()
        channel = ingress or f"aeron:udp?endpoint={self.endpoint}|rejoin=false"
        self.ingress: headrace.Subscription | None = self.client.add_subscription(channel, INGRESS)
        self._channel = channel
        self.egress: headrace.Publication | None = None
        self.term = 0
        self.session_id = 0
        self.heartbeat_timeout_ns = HEARTBEAT_TIMEOUT_NS
        self.received: list[Any] = []
        self.payloads: list[bytes] = []
        self.keep_alive_count = 0
        self.on_connect: Callable[[SessionConnectRequest], None] = self.accept
        self.on_other: Callable[[Any], None] = lambda message: None
        self.echoes = True
        self.is_strict = True
        """Whether what a client must not send fails the test, and so does an answer that cannot be sent."""
        node.run(self.do_work)

    def do_work(self) -> int:
        if self.ingress is None or (received := self.ingress.poll_message()) is None:
            return 0
        payload = received.payload
        if template_of(payload) == SESSION_MESSAGE:
            header = unpack_header(payload)
            if not self.is_strict and header[:2] != (self.term, self.session_id):
                # As members do.
                return 1
            assert header[:2] == (self.term, self.session_id)
            self.payloads.append(payload[HEADER_LENGTH:])
            if self.echoes:
                self.message(payload[HEADER_LENGTH:])
            return 1
        message = decode(payload)
        if isinstance(message, SessionKeepAlive):
            said = (message.leadership_term_id, message.cluster_session_id)
            assert said == (self.term, self.session_id) or not self.is_strict
            self.keep_alive_count += 1
            return 1
        self.received.append(message)
        if isinstance(message, SessionConnectRequest):
            self.reach(message.response_channel, message.response_stream_id)
            self.on_connect(message)
        else:
            self.on_other(message)
        return 1

    def reach(self, channel: str, stream_id: int) -> None:
        """Have the way to a client."""
        if self.egress is None or (self.egress.channel, self.egress.stream_id) != (channel, stream_id):
            if self.egress is not None:
                self.egress.close()
            self.egress = self.client.add_publication(channel, stream_id)
            assert self.egress.wait_until_connected(5) or not self.is_strict

    # --- what it says ----------------------------------------------------------------------------------------------

    def say(self, data: bytes | object) -> None:
        message = data if isinstance(data, bytes) else encode(data)
        if self.is_strict:
            assert self.egress is not None
            self.egress.offer_blocking(message)
        elif self.egress is not None:
            self.egress.offer(message)

    def event(self, code: EventCode, correlation_id: int = 0, *, detail: str = "", **changes: Any) -> None:
        values: dict[str, Any] = {
            "cluster_session_id": self.session_id,
            "correlation_id": correlation_id,
            "leadership_term_id": self.term,
            "leader_member_id": self.member_id,
            "leader_heartbeat_timeout_ns": self.heartbeat_timeout_ns,
        }
        self.say(SessionEvent(code=code, detail=detail, **values | changes))

    def accept(self, request: SessionConnectRequest | ChallengeResponse) -> None:
        """Open a session."""
        self.session_id += 1
        self.event(EventCode.OK, request.correlation_id)

    def refuse(self, code: EventCode, detail: str = "", **changes: Any) -> None:
        """From now on, to answer connects so."""
        self.on_connect = lambda request: self.event(code, request.correlation_id, detail=detail, **changes)

    def ignore(self) -> None:
        """From now on, to answer no connects."""
        self.on_connect = lambda request: None

    def message(self, payload: bytes, *, session_id: int | None = None, timestamp: int = 7) -> None:
        wanted = self.session_id if session_id is None else session_id
        self.say(pack_header(self.term, wanted, timestamp) + payload)

    def take_over(self, other: ScriptedMember, endpoints: str, **changes: Any) -> None:
        """Lead instead of another, whose session this inherits, and tell the client."""
        assert other.egress is not None
        self.term, self.session_id = other.term + 1, other.session_id
        self.reach(other.egress.channel, other.egress.stream_id)
        # As members do that have learnt of the session from their log: a client is not to take it for a connect.
        self.event(EventCode.OK, 1)
        event = NewLeaderEvent(
            leadership_term_id=self.term,
            cluster_session_id=self.session_id,
            leader_member_id=self.member_id,
            ingress_endpoints=endpoints,
        )
        values = {name: getattr(event, name) for name in event.__dataclass_fields__}
        self.say(NewLeaderEvent(**values | changes))

    def stop_listening(self) -> None:
        """As followers do without a leader."""
        if self.ingress is not None:
            self.ingress.close()
            self.ingress = None

    def listen(self) -> None:
        """Take ingress, again."""
        if self.ingress is None:
            self.ingress = self.client.add_subscription(self._channel, INGRESS)

    def stop_speaking(self) -> None:
        """Leave the way to the client."""
        assert self.egress is not None
        self.egress.close()
        self.egress = None

    @property
    def connects(self) -> list[SessionConnectRequest]:
        return [message for message in self.received if isinstance(message, SessionConnectRequest)]

    @property
    def is_told_of_the_end(self) -> bool:
        return any(isinstance(message, SessionCloseRequest) for message in self.received)


class Lab:
    """A world with a node for a client, and members."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.app: Node = world.add_node("app")
        self.members: list[ScriptedMember] = []

    def add_members(self, count: int) -> list[ScriptedMember]:
        self.members = [ScriptedMember(self.world.add_node(f"n{number}"), number) for number in range(count)]
        return self.members

    @property
    def endpoints(self) -> str:
        return ",".join(f"{member.member_id}={member.endpoint}" for member in self.members)

    def connect(self, **settings: Any) -> ClusterClient:
        settings.setdefault("egress_channel", "aeron:udp?endpoint=app:0")
        if "ingress_channel" not in settings:
            settings.setdefault("ingress_endpoints", self.endpoints)
        return ClusterClient.connect(driver=self.app, **settings)
