"""A client's open session with a cluster: its states, and the sorting of messages. It never waits.

:class:`headrace.cluster.ClusterClient` and its asyncio form step it, and wait, each in its way.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace._base.checks import check_callable
from headrace._base.exceptions import ClosedError, HeadraceError
from headrace._base.logging import CLUSTER
from headrace._base.results import OfferResult
from headrace._base.states import Life, LoggedEvents
from headrace.client import SessionStreams
from headrace.cluster.client.endpoints import EndpointsError, parse_endpoints
from headrace.cluster.client.states import CLIENT, ClientState
from headrace.cluster.errors import ClusterTimeoutError, ServiceError, SessionClosedError
from headrace.cluster.protocol.codes import AdminRequestType, EventCode
from headrace.cluster.protocol.messages import MessageError, decode, encode
from headrace.cluster.protocol.session import (
    AdminRequest,
    AdminResponse,
    FollowerReadRequest,
    FollowerReadResponse,
    NewLeaderEvent,
    ReadRequest,
    ReadResponse,
    SessionCloseRequest,
    SessionEvent,
    SessionKeepAlive,
)

if TYPE_CHECKING:
    from headrace.client import Client, Image, Message, Subscription
    from headrace.client._data import Data
    from headrace.cluster.client.connecting import Opened
    from headrace.cluster.client.settings import ClusterClientConfig

__all__ = ["Answer", "ClusterMessage", "ClusterSession", "Handlers", "given"]

Answer = AdminResponse | ReadResponse | FollowerReadResponse
"""What ends the wait for a request."""

_CLOSE_ATTEMPTS = 3
_IGNORED_A_POLL = 64
_HELD_BYTES_MAX = 64 << 20


class ClusterMessage(NamedTuple):
    """A message of a service to this client."""

    payload: bytes
    """What the service sent."""
    timestamp: int
    """The cluster's time when the service sent it, in the cluster's unit, which is milliseconds if nothing is said."""
    leadership_term_id: int
    """The term in which the service sent it."""
    log_position: int = 0
    """Where the cluster's log was after the entry that the service handled: one order of the answers to all clients.
    0 from services of Aeron, which do not say it."""


# Without the function that a named tuple has for it, which is slower.
_MAKE: Callable[[tuple[bytes, int, int, int]], ClusterMessage] = partial(tuple.__new__, ClusterMessage)


@dataclass(frozen=True, slots=True)
class Handlers:
    """The handlers of a program. Called inside the calls that take messages from the cluster."""

    on_message: Callable[[ClusterMessage], object] | None = None
    on_session_event: Callable[[SessionEvent], object] | None = None
    on_new_leader: Callable[[NewLeaderEvent], object] | None = None
    on_admin_response: Callable[[AdminResponse], object] | None = None

    def __post_init__(self) -> None:
        for handler in fields(self):
            check_callable(handler.name, getattr(self, handler.name))


class ClusterSession:
    """Moves between the states of an open session. Used by one thread at a time."""

    def __init__(
        self, client: Client, config: ClusterClientConfig, opened: Opened, handlers: Handlers
    ) -> None:
        self._client = client
        self._clock = client.clock
        self._config = config
        self._egress = opened.egress
        self._ingress = opened.ingress
        self._endpoints = opened.endpoints
        self.cluster_session_id = opened.cluster_session_id
        self.streams = SessionStreams(
            opened.egress,
            opened.cluster_session_id,
            opened.leadership_term_id,
            _MAKE,
            # The log's terms have one length for good, whichever member leads.
            opened.max_message_length,
            config.keep_alive_interval_ns,
        )
        """What runs for each message."""
        self._new_leader_timeout_s = config.new_leader_timeout_s(opened.leader_heartbeat_timeout_ns)
        self._handlers = handlers
        self._life = Life(CLIENT)
        self._life.begin(
            LoggedEvents(CLUSTER, logging.INFO),
            f"member {opened.leader_member_id} opened the session in term {opened.leadership_term_id}",
            opened.cluster_session_id,
        )
        self._deadline = self._clock.deadline(None)
        self._held: deque[ClusterMessage | ServiceError] = deque()
        self._held_bytes = 0
        self._reason = ""
        self._answers: dict[int, Answer | None] = {}
        self._seen_position = 0
        self._lead(opened.leadership_term_id, opened.leader_member_id, opened.image)
        self._use_ingress()
        self.error: HeadraceError | None = None
        """Why it has ended, if this program has not closed it."""
        self.undecodable_count = 0
        """Messages that were not understood."""

    def _lead(self, leadership_term_id: int, leader_member_id: int, image: Image | None) -> None:
        self.leadership_term_id = leadership_term_id
        self.leader_member_id = leader_member_id
        self.streams.follow(leadership_term_id, image)

    def _use_ingress(self) -> None:
        """Send on the stream that there is now, if the session is open."""
        self.streams.publication = None if self.is_over else self._ingress.publication
        self._look()

    def _look(self) -> None:
        """Say whether all but the stream can be left alone."""
        self.streams.is_steady = self.state is ClientState.CONNECTED and not self._held

    @property
    def state(self) -> ClientState:
        """The state."""
        return self._life.state

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state in (ClientState.PENDING_CLOSE, ClientState.CLOSED)

    @property
    def is_steady(self) -> bool:
        """Whether nothing is due soon."""
        return self.state in (ClientState.CONNECTED, ClientState.AWAIT_NEW_LEADER)

    @property
    def subscription(self) -> Subscription:
        """The subscription to the cluster's messages."""
        return self._egress

    @property
    def publication(self) -> Any:
        """The publication to the leader; ``None`` while there is none."""
        return self._ingress.publication

    def step(self) -> None:
        """Maintain the streams and the time-outs, and send a keepalive that is due."""
        state = self.state
        if state is ClientState.CONNECTED:
            if not self.streams.is_connected:
                self._disconnected("the stream from the leader has ended")
            elif self.streams.is_keep_alive_due:
                self.send_keep_alive()
        elif state is ClientState.AWAIT_NEW_LEADER:
            if self._deadline.is_over:
                text = f"session {self.cluster_session_id}: no new leader within {self._new_leader_timeout_s:g} s"
                self._fail(ClusterTimeoutError(f"{text}: {self._reason}"))
        elif state is ClientState.AWAIT_NEW_LEADER_CONNECTION:
            self._connect_to_leader()
        elif state is ClientState.PENDING_CLOSE:
            self._leave("the session has ended")

    # --- to the cluster --------------------------------------------------------------------------------------------

    def offer(self, data: Data) -> int | OfferResult:
        """Send one message, if that can be done now."""
        return self._send(data, self.streams.offer)

    def send_keep_alive(self) -> int | OfferResult:
        """Send a keepalive, if that can be done now."""
        return self._send(
            encode(
                SessionKeepAlive(
                    leadership_term_id=self.leadership_term_id, cluster_session_id=self.cluster_session_id
                )
            )
        )

    def send_snapshot_request(self, correlation_id: int) -> int | OfferResult:
        """Ask the cluster to take a snapshot, if that can be done now."""
        return self._send(
            encode(
                AdminRequest(
                    leadership_term_id=self.leadership_term_id,
                    cluster_session_id=self.cluster_session_id,
                    correlation_id=correlation_id,
                    request_type=AdminRequestType.SNAPSHOT,
                )
            )
        )

    def send_read(self, correlation_id: int, data: bytes, service_id: int) -> int | OfferResult:
        """Ask a service what does not change it, if that can be done now."""
        return self._send(
            encode(
                ReadRequest(
                    leadership_term_id=self.leadership_term_id,
                    cluster_session_id=self.cluster_session_id,
                    correlation_id=correlation_id,
                    service_id=service_id,
                    payload=data,
                )
            )
        )

    def follower_read(
        self, correlation_id: int, data: bytes, service_id: int, max_staleness_ns: int
    ) -> FollowerReadRequest:
        """The request to a follower: for an answer that is no older than the ones before."""
        return FollowerReadRequest(
            cluster_session_id=self.cluster_session_id,
            correlation_id=correlation_id,
            log_position=max(self._seen_position, self.streams.seen_position),
            max_staleness_ns=max_staleness_ns,
            service_id=service_id,
            payload=data,
        )

    @property
    def follower_endpoints(self) -> dict[int, str]:
        """Where the followers take requests; empty where members have no endpoints."""
        endpoints = self._endpoints or {}
        return {one: endpoint for one, endpoint in endpoints.items() if one != self.leader_member_id}

    def await_answer(self, correlation_id: int) -> None:
        """Keep the answer to a request for :meth:`answer`, until it is forgotten."""
        self._answers[correlation_id] = None

    def answer(self, correlation_id: int) -> Answer | None:
        """The answer, once it is there."""
        return self._answers[correlation_id]

    def forget_answer(self, correlation_id: int) -> None:
        """Stop keeping an answer."""
        del self._answers[correlation_id]

    def _send(self, data: Any, send: Callable[[Any], int | OfferResult] | None = None) -> int | OfferResult:
        if self.streams.publication is None:
            self.step()
        result = (send or self.streams.send)(data)
        if result > 0:
            if self.state is ClientState.AWAIT_NEW_LEADER_CONNECTION:
                self._enter(ClientState.CONNECTED, "the new leader takes messages")
            return result
        return self._refused(result)

    def _refused(self, result: int | OfferResult) -> int | OfferResult:
        if self.is_over or self._client.is_closed:
            return OfferResult.CLOSED
        if result is OfferResult.MAX_POSITION_EXCEEDED:
            text = f"session {self.cluster_session_id}: the stream to the cluster is used up"
            self._end(SessionClosedError(text))
        elif result is OfferResult.CLOSED or (
            result is OfferResult.NOT_CONNECTED and self.state is ClientState.CONNECTED
        ):
            self._disconnected("the leader takes no messages")
            return OfferResult.NOT_CONNECTED
        return result

    def _connect_to_leader(self) -> None:
        self._ingress.step()
        self._use_ingress()
        if not self.streams.is_connected:
            self._disconnected("the stream from the new leader has ended")
        elif self._deadline.is_over:
            failures = "; ".join(map(str, self._ingress.failures)) or "it takes no messages"
            text = (
                f"session {self.cluster_session_id}: the new leader, member {self.leader_member_id}, was not reached "
                f"within {self._config.message_timeout_s:g} s"
            )
            self._fail(ClusterTimeoutError(f"{text}: {failures}"))
        elif self._config.keep_alive_interval_ns and self._ingress.publication is not None:
            # It links the session to the new stream, so that the leader sees when that is lost.
            self.send_keep_alive()

    # --- from the cluster ------------------------------------------------------------------------------------------

    def take(self, *, may_read: bool) -> ClusterMessage | None:
        """Take the next message, if one has arrived.

        Args:
            may_read: Also read the stream, and not only the held messages.

        Raises:
            ClosedError: This program has closed the session, or the client has ended.
            HeadraceError: The error in :attr:`error`, once all messages before it were taken.
            ServiceError: The service failed at a message; the session stays open.
        """
        self.step()
        if self._held:
            message = self._held.popleft()
            self._held_bytes -= _size_of(message)
            self._look()
            return given(message)
        if self.state is ClientState.CLOSED:
            raise self.end()
        for _ in range(_IGNORED_A_POLL if may_read else 0):
            received = self.streams.take()
            if received is None:
                return None
            taken = self.accept(received)
            if taken is not None:
                return given(taken)
            if self.is_over:
                return None
        return None

    def end(self) -> HeadraceError:
        """The error to raise once it has ended."""
        return self.error or ClosedError(f"the session {self.cluster_session_id} with the cluster is closed")

    @property
    def has_room(self) -> bool:
        """Whether more messages may be held."""
        return self._held_bytes < _HELD_BYTES_MAX

    def hold(self, message: ClusterMessage | ServiceError) -> None:
        """Keep a message for :meth:`take` that arrived during another wait."""
        self._held.append(message)
        self._held_bytes += _size_of(message)
        self._look()

    def accept(self, received: ClusterMessage | Message) -> ClusterMessage | ServiceError | None:
        """Handle what was taken; returns it if it is a service's message, or its failure."""
        if isinstance(received, ClusterMessage):
            return received
        try:
            message = decode(received.payload)
        except MessageError as wrong:
            self._not_understood(str(wrong))
            return None
        if getattr(message, "cluster_session_id", None) != self.cluster_session_id:
            return None
        if isinstance(message, SessionEvent):
            self._on_session_event(message)
            if message.code is EventCode.ERROR:
                return ServiceError(message.detail or "no reason given", received.reserved_value)
        elif isinstance(message, NewLeaderEvent):
            self._on_new_leader(message, received.session_id)
        elif isinstance(message, Answer) and message.correlation_id in self._answers:
            self._on_answer(message)
        if isinstance(message, AdminResponse):
            _tell(self._handlers.on_admin_response, message)
        return None

    def _on_answer(self, answer: Answer) -> None:
        before = self._answers[answer.correlation_id]
        if isinstance(answer, ReadResponse | FollowerReadResponse):
            self._seen_position = max(self._seen_position, answer.log_position)
        # Several followers may be asked one thing.
        if before is None or (isinstance(before, FollowerReadResponse) and before.is_refused):
            self._answers[answer.correlation_id] = answer

    def _on_session_event(self, event: SessionEvent) -> None:
        # A member that takes over says OK for the sessions that it inherits: that opens nothing here. In another term
        # an id may be another client's: one that was never agreed upon is used again.
        if event.code is EventCode.CLOSED and event.leadership_term_id == self.leadership_term_id:
            text = f"the cluster has closed session {self.cluster_session_id}: {event.detail or 'no reason given'}"
            self._end(SessionClosedError(text, event.detail))
        _tell(self._handlers.on_session_event, event)

    def _on_new_leader(self, event: NewLeaderEvent, image_session_id: int) -> None:
        is_known = event.leadership_term_id == self.leadership_term_id and self.state is ClientState.CONNECTED
        if self.is_over or is_known or event.leadership_term_id < self.leadership_term_id:
            return
        endpoint = None
        if self._endpoints is not None:
            try:
                endpoints = parse_endpoints(event.ingress_endpoints)
            except EndpointsError as wrong:
                self._not_understood(f"a new leader's event: {wrong}")
                return
            endpoint = endpoints.get(event.leader_member_id)
            if endpoint is None:
                text = f"member {event.leader_member_id} is not in {event.ingress_endpoints}"
                self._not_understood(f"a new leader's event: {text}")
                return
            self._endpoints = endpoints
        image = self._egress.image_by_session_id(image_session_id)
        self._lead(event.leadership_term_id, event.leader_member_id, image)
        self._ingress.close()
        self._ingress.open([endpoint])
        self._deadline = self._clock.deadline(self._config.message_timeout_s)
        self._enter(
            ClientState.AWAIT_NEW_LEADER_CONNECTION,
            f"member {event.leader_member_id} leads term {event.leadership_term_id}",
        )
        _tell(self._handlers.on_new_leader, event)

    def _not_understood(self, text: str) -> None:
        self.undecodable_count += 1
        count = self.undecodable_count
        # Hostile messages do not fill a log: the first, then each time that their number has doubled.
        if not count & (count - 1):
            CLUSTER.warning(
                "session %d: ignored message %d, which cannot be decoded: %s",
                self.cluster_session_id,
                count,
                text,
            )

    # --- life ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the session, telling the cluster if it listens."""
        publication = self._ingress.publication
        if self.state is ClientState.CONNECTED and publication is not None:
            request = encode(
                SessionCloseRequest(
                    leadership_term_id=self.leadership_term_id, cluster_session_id=self.cluster_session_id
                )
            )
            with contextlib.suppress(HeadraceError):
                for _ in range(_CLOSE_ATTEMPTS):
                    if not publication.is_connected or publication.offer(request) > 0:
                        break
        self._held.clear()
        self._leave("closed by this program")

    def _disconnected(self, reason: str) -> None:
        self._ingress.close()
        self._reason = reason
        self._deadline = self._clock.deadline(self._new_leader_timeout_s)
        self._enter(ClientState.AWAIT_NEW_LEADER, reason)

    def _enter(self, state: ClientState, reason: str) -> None:
        self._life.enter(state, reason)
        self._use_ingress()

    def _end(self, error: HeadraceError) -> None:
        if not self.is_over:
            self.error = error
            self._enter(ClientState.PENDING_CLOSE, str(error))

    def _fail(self, error: HeadraceError) -> None:
        self.error = error
        self._leave(str(error))

    def _leave(self, reason: str) -> None:
        self._enter(ClientState.CLOSED, reason)
        self._ingress.close()
        with contextlib.suppress(HeadraceError):
            self._egress.close()


def given(message: ClusterMessage | ServiceError | None) -> ClusterMessage | None:
    """A message for the program.

    Raises:
        ServiceError: It is one instead.
    """
    if isinstance(message, ServiceError):
        raise message
    return message


def _size_of(message: ClusterMessage | ServiceError) -> int:
    return len(str(message) if isinstance(message, ServiceError) else message.payload)


def _tell(handler: Callable[[Any], object] | None, event: object) -> None:
    if handler is not None:
        handler(event)
