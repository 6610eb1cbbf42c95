"""Opening a session with a cluster, one step at a time. It never waits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace._base.exceptions import HeadraceError
from headrace._base.logging import CLUSTER
from headrace._base.results import OfferResult
from headrace._base.states import Life, LoggedEvents
from headrace.channel import ChannelUri
from headrace.client import __commit__, __version__
from headrace.client._reserved import reserved_streams
from headrace.cluster.client.endpoints import EndpointsError, parse_endpoints
from headrace.cluster.client.ingress import Ingress
from headrace.cluster.client.states import CONNECT, ConnectState
from headrace.cluster.common.members import difference
from headrace.cluster.errors import ClusterAuthenticationError, ClusterError, ClusterTimeoutError
from headrace.cluster.protocol.codes import EventCode
from headrace.cluster.protocol.event_details import announced_length
from headrace.cluster.protocol.messages import MessageError, decode, encode
from headrace.cluster.protocol.session import (
    Challenge,
    ChallengeResponse,
    SessionConnectRequest,
    SessionEvent,
)
from headrace.positions import NULL_VALUE
from headrace.security.credentials import supplier_of
from headrace.security.verdicts import described, discarded

if TYPE_CHECKING:
    from headrace.client import Client, Image, Subscription
    from headrace.cluster.client.settings import ClusterClientConfig

__all__ = ["PROTOCOL_VERSION", "Connecting", "Opened", "supplied"]

PROTOCOL_VERSION = 0 << 16 | 3 << 8
"""Version 0.3.0 of what clients and clusters say to each other."""
_DEFAULT_HEARTBEAT_TIMEOUT_NS = 10_000_000_000
_ANSWERS_A_STEP = 16
# Members that send a client to each other, or take it and go, are asked ever more rarely.
_FIRST_PAUSE_S = 0.016
_LONGEST_PAUSE_S = 0.5
# How long a leader that another member names may take to listen, before others are asked.
_PATIENCE_S = 1.0
# A cluster that asks on and on is not one.
_CHALLENGES_MAX = 16


@dataclass(frozen=True, slots=True)
class Opened:
    """A session that is open, and its streams.

    Attributes:
        cluster_session_id: Its id.
        leadership_term_id: The term of the leader that has opened it.
        leader_member_id: The leader that has opened it.
        leader_heartbeat_timeout_ns: How long members wait for their leader.
        egress: The subscription on which the cluster answers.
        image: The leader's image in it; ``None`` if it has gone already.
        ingress: The publication to the leader.
        endpoints: Those of the members, if the cluster announces them.
        max_message_length: The longest message of the cluster's log; ``None`` if unknown, as with Aeron's clusters.
    """

    cluster_session_id: int
    leadership_term_id: int
    leader_member_id: int
    leader_heartbeat_timeout_ns: int
    egress: Subscription
    image: Image | None
    ingress: Ingress
    endpoints: dict[int, str] | None
    max_message_length: int | None


Task = Generator[None, None, Any]


class Connecting:
    """Opens a session. Its owner steps it, and closes it to cancel; used by one thread at a time."""

    def __init__(self, client: Client, config: ClusterClientConfig) -> None:
        self._client = client
        self._config = config
        self._deadline = client.clock.deadline(config.message_timeout_s)
        self._undo = contextlib.ExitStack()
        self._ingress = Ingress(client, config)
        self._undo.callback(self._ingress.close)
        self._egress: Subscription | None = None
        attempt = client.next_correlation_id()
        self._egress_stream_id = config.egress_stream(attempt)
        self._correlation_id = NULL_VALUE
        self._endpoints = config.endpoints
        self._is_redirected = False
        self._last_word = ""
        self._task = self._steps()
        self._life = Life(CONNECT)
        self._life.begin(LoggedEvents(CLUSTER), "the program connects", attempt)

    @property
    def state(self) -> ConnectState:
        """The state of the connect."""
        return self._life.state

    @property
    def subscription(self) -> Subscription | None:
        """The subscription on which the cluster answers, once there is one."""
        return self._egress

    def step(self) -> Opened | None:
        """Do all work that needs no waiting; at the end returns the session, which then belongs to the owner.

        Raises:
            ClusterTimeoutError: The time is over; the text names the state.
            ClusterAuthenticationError: The cluster does not accept the credentials, or there are none.
            ClusterError: The cluster refused.
            RegistrationError: The driver refused a stream.
        """
        try:
            if self._deadline.is_over:
                raise self._too_late()
            next(self._task)
        except StopIteration as end:
            self._undo.pop_all()
            self._life.enter(ConnectState.DONE, "the session is handed over")
            opened: Opened = end.value
            return opened
        except BaseException:
            self.close()
            raise
        return None

    def close(self) -> None:
        """Cancel the connect."""
        self._task.close()
        self._undo.close()

    # --- the steps -------------------------------------------------------------------------------------------------

    def _steps(self) -> Generator[None, None, Opened]:
        egress = self._egress = yield from self._subscribed()
        self._life.enter(ConnectState.CREATE_INGRESS_PUBLICATIONS, "the subscription was added")
        self._ingress.open_all()
        challenges = 0
        pause_s = 0.0
        to_send: Callable[[], bytes] | None = None
        reason = "the publications were asked for"
        while True:
            if to_send is None:
                self._life.enter(ConnectState.AWAIT_PUBLICATION_CONNECTED, reason)
                yield from self._paused(pause_s)
                pause_s = min(max(2 * pause_s, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
                channel = yield from self._reachable(egress)
                to_send, reason = self._connect_request(channel), "a member takes messages"
            self._life.enter(ConnectState.SEND_MESSAGE, reason)
            if not (yield from self._sent(to_send())):
                to_send, reason = None, "the member has gone"
                continue
            self._life.enter(ConnectState.POLL_RESPONSE, "the member has taken it")
            answer, image = yield from self._answered(egress)
            if isinstance(answer, Challenge):
                challenges += 1
                if challenges > _CHALLENGES_MAX:
                    raise ClusterAuthenticationError(
                        f"the cluster has sent {challenges} challenges, above {_CHALLENGES_MAX}"
                    )
                to_send, reason = self._challenge_response(answer), "the cluster sends a challenge"
            elif isinstance(answer, SessionEvent) and answer.code is EventCode.OK:
                return self._concluded(answer, egress, image)
            else:
                # Redirected, or the member has gone or cannot say who leads: another one is looked for.
                to_send, reason = None, "the member does not lead, or has gone"

    def _subscribed(self) -> Generator[None, None, Subscription]:
        config = self._config
        with reserved_streams():
            pending = self._client.request_subscription(config.egress, self._egress_stream_id)
        with contextlib.ExitStack() as undo:
            undo.callback(_given_up, pending)
            while (egress := pending.poll()) is None:
                yield
            undo.pop_all()
        self._undo.callback(egress.close)
        return egress

    def _paused(self, pause_s: float) -> Task:
        deadline = self._client.clock.deadline(pause_s)
        while not deadline.is_over:
            yield

    def _reachable(self, egress: Subscription) -> Generator[None, None, str]:
        """Wait for a member that listens, and for the channel on which it will answer."""
        channel = None if ChannelUri(self._config.egress).is_port_open else self._config.egress
        patience = self._client.clock.deadline(_PATIENCE_S)
        while True:
            self._ingress.step()
            channel = channel or egress.resolved_channel
            if channel is not None and self._ingress.publication is not None:
                return channel
            is_hopeless = self._ingress.is_hopeless
            if self._is_redirected and (is_hopeless or patience.is_over):
                why = self._failures or "it takes no messages"
                self._look_elsewhere(f"the leader of a redirect cannot be reached: {why}")
                yield from self._paused(_LONGEST_PAUSE_S)
            elif is_hopeless:
                raise ClusterError(f"no member can be reached: {self._failures}")
            yield

    def _sent(self, message: bytes) -> Generator[None, None, bool]:
        """Send a message; false when the member has gone."""
        while True:
            publication = self._ingress.publication
            assert publication is not None
            result = publication.offer(message)
            if result > 0:
                return True
            if result in (OfferResult.CLOSED, OfferResult.NOT_CONNECTED):
                self._look_elsewhere("the member has gone")
                return False
            if result is OfferResult.MAX_POSITION_EXCEEDED:
                raise ClusterError(
                    f"the stream to the cluster has reached its greatest position: {publication!r}; connect again"
                )
            yield

    def _answered(self, egress: Subscription) -> Generator[None, None, tuple[Any, Image | None]]:
        """Wait for the decisive answer; returns it with its image, or ``None`` twice when the member has gone."""
        while True:
            for _ in range(_ANSWERS_A_STEP):
                received = egress.poll_message()
                if received is None:
                    break
                answer = self._understood(received.payload)
                if answer is not None and self._counts(answer):
                    return answer, egress.image_by_session_id(received.session_id)
            publication = self._ingress.publication
            if publication is None or not publication.is_connected:
                self._look_elsewhere("the member has gone")
                return None, None
            yield

    def _counts(self, answer: Challenge | SessionEvent) -> bool:
        """Whether an answer is decisive. Raises if it is a refusal."""
        if answer.correlation_id != self._correlation_id:
            return False
        if isinstance(answer, Challenge) or answer.code is EventCode.OK:
            return True
        if answer.code is EventCode.REDIRECT:
            self._redirected(answer)
            return True
        if answer.code is EventCode.CLOSED:
            # Such as "election": the request is lost, and so is this attempt.
            self._note(f"member {answer.leader_member_id} has closed the session: {answer.detail}")
            return False
        if answer.code is EventCode.AUTHENTICATION_REJECTED:
            raise _rejected(answer, self._config)
        raise ClusterError(f"the cluster refused the session: {answer.detail or answer.code.name}")

    def _redirected(self, answer: SessionEvent) -> None:
        """Follow a redirect to the leader, or if it makes no sense, try any other member."""
        try:
            endpoints = parse_endpoints(answer.detail)
        except EndpointsError as wrong:
            self._look_elsewhere(f"a redirect cannot be decoded: {wrong}")
            return
        leader = endpoints.get(answer.leader_member_id)
        if leader is None or ChannelUri(self._config.ingress_channel).media == "ipc":
            text = f"a redirect to member {answer.leader_member_id} cannot be followed: {answer.detail}"
            self._look_elsewhere(text)
            return
        if self._config.lists_all and (other := difference(self._config.endpoints or {}, endpoints)):
            CLUSTER.warning("members= is another list than that of the cluster: %s", other)
        CLUSTER.info("redirected to member %d on %s", answer.leader_member_id, leader)
        self._endpoints = endpoints
        self._is_redirected = True
        self._ingress.open([leader])

    def _look_elsewhere(self, why: str) -> None:
        """Leave a member that is of no use now: any other that listens knows the leader."""
        self._note(why)
        self._is_redirected = False
        self._ingress.close()
        self._ingress.open_all()

    def _concluded(self, answer: SessionEvent, egress: Subscription, image: Image | None) -> Opened:
        self._life.enter(ConnectState.CONCLUDE_CONNECT, "the leader has opened the session")
        self._ingress.keep_used()
        heartbeat_ns = answer.leader_heartbeat_timeout_ns
        return Opened(
            answer.cluster_session_id,
            answer.leadership_term_id,
            answer.leader_member_id,
            heartbeat_ns if heartbeat_ns > 0 else _DEFAULT_HEARTBEAT_TIMEOUT_NS,
            egress,
            image,
            self._ingress,
            self._endpoints,
            announced_length(answer.detail),
        )

    # --- what is said ----------------------------------------------------------------------------------------------

    def _understood(self, payload: bytes) -> Challenge | SessionEvent | None:
        try:
            message = decode(payload)
        except MessageError as wrong:
            self._note(f"a message cannot be decoded: {wrong}")
            return None
        return message if isinstance(message, Challenge | SessionEvent) else None

    def _connect_request(self, channel: str) -> Callable[[], bytes]:
        config = self._config
        return lambda: encode(
            SessionConnectRequest(
                correlation_id=self._next_correlation_id(),
                response_stream_id=self._egress_stream_id,
                version=PROTOCOL_VERSION,
                response_channel=channel,
                encoded_credentials=supplied(supplier_of(config.credentials).encoded_credentials),
                client_info=f"name={config.client_name} version={__version__} commit={__commit__}",
            )
        )

    def _challenge_response(self, challenge: Challenge) -> Callable[[], bytes]:
        supplier = supplier_of(self._config.credentials)
        return lambda: encode(
            ChallengeResponse(
                correlation_id=self._next_correlation_id(),
                cluster_session_id=challenge.cluster_session_id,
                encoded_credentials=supplied(lambda: supplier.on_challenge(challenge.encoded_challenge)),
            )
        )

    def _next_correlation_id(self) -> int:
        self._correlation_id = self._client.next_correlation_id()
        return self._correlation_id

    def _note(self, text: str) -> None:
        CLUSTER.debug("connecting: %s", text)
        self._last_word = text

    @property
    def _failures(self) -> str:
        return "; ".join(map(str, self._ingress.failures))

    def _too_late(self) -> ClusterTimeoutError:
        config = self._config
        where = (
            ",".join(f"{one}={at}" for one, at in (config.endpoints or {}).items()) or config.ingress_channel
        )
        text = (
            f"no session within {config.message_timeout_s:g} s, in state {self.state.name}: {_WAITS[self.state]}; "
            f"ingress: {where}, egress: {config.egress}"
        )
        words = filter(None, (self._last_word, self._failures))
        return ClusterTimeoutError("; ".join((text, *words)))


_WAITS = {
    ConnectState.CREATE_EGRESS_SUBSCRIPTION: "the driver has not added the subscription",
    ConnectState.CREATE_INGRESS_PUBLICATIONS: "the driver has not added the publications",
    ConnectState.AWAIT_PUBLICATION_CONNECTED: "no member takes messages; a cluster without a leader does not",
    ConnectState.SEND_MESSAGE: "the member has no room for the request",
    ConnectState.POLL_RESPONSE: "the member has not answered: it is suspended, or does not reach the egress channel",
    ConnectState.CONCLUDE_CONNECT: "the session is open",
}


def _given_up(pending: Any) -> None:
    with contextlib.suppress(HeadraceError):
        pending.cancel()


def supplied(supply: Callable[[], object]) -> bytes:
    """The result of a supplier of credentials. Its exception may have a secret in its text, so it is only the cause."""
    try:
        credentials = supply()
    except HeadraceError as failure:
        raise ClusterAuthenticationError(str(failure)) from failure
    except Exception as failure:
        text = f"the supplier of credentials failed: {described(failure)}"
        raise ClusterAuthenticationError(text) from failure
    if not isinstance(credentials, bytes):
        text = f"the supplier of credentials must return bytes: {discarded(credentials)}"
        raise ClusterAuthenticationError(text)
    return credentials


def _rejected(answer: SessionEvent, config: ClusterClientConfig) -> ClusterAuthenticationError:
    advice = (
        "the cluster requires credentials: give credentials="
        if config.credentials == b""
        else "the cluster does not accept these credentials="
    )
    return ClusterAuthenticationError(f"{answer.detail or answer.code.name}: {advice}")
