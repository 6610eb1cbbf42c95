"""A member's services, as its consensus module sees them: the two control streams. Cluster specification 4.8, 8.3."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from headrace._agent.tasks import Task
from headrace._base.results import Action, OfferResult
from headrace.cluster.common.counters import client_is_alive
from headrace.cluster.errors import ClusterError
from headrace.cluster.member.service_incarnations import ServiceIncarnations
from headrace.cluster.protocol.control import (
    CancelTimer,
    CloseSession,
    RequestServiceAck,
    ScheduleTimer,
    ServiceAck,
)
from headrace.cluster.protocol.header import HEADER_LENGTH, SESSION_MESSAGE, template_of, unpack_header
from headrace.cluster.protocol.messages import MessageError, decode, encode
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.client import Client, Header, Subscription
    from headrace.cluster.member.config import ConsensusModuleConfig

__all__ = ["Services"]

_OF_SERVICES = (CancelTimer, CloseSession, ScheduleTimer)
_FRAGMENT_LIMIT = 25
_ATTEMPTS = 5


class Services:
    """Sends to services, and takes what they and tools send.

    Args:
        client: The module's client.
        config: Streams, and how many services there are.
        on_message: Told of a message of a service to its own cluster, with the service's id.
        on_request: Told of every other message but acknowledgements.
        on_wrong: Told of what is no message.
    """

    def __init__(
        self,
        client: Client,
        config: ConsensusModuleConfig,
        on_message: Callable[[int, bytes], object],
        on_request: Callable[[Any], object],
        on_wrong: Callable[[str], object],
    ) -> None:
        self.count = config.service_count
        self._on_message = on_message
        self._on_request = on_request
        self._on_wrong = on_wrong
        self.subscription: Subscription = client.add_subscription(
            config.control_channel, config.consensus_module_stream_id
        )
        self._publication = client.add_publication(config.control_channel, config.service_stream_id)
        self._client = client
        self._lives = ServiceIncarnations(self.count)
        self.sent_count = 0
        """How many messages the services' stream has taken."""

    def poll(self) -> int:
        """Take what has come; stops after an acknowledgement, which may change what is done next."""
        return self.subscription.controlled_poll(self._take, _FRAGMENT_LIMIT)

    def open(self) -> None:
        """From now on services can know of this module; what has come before was for another, and is passed over."""
        while self.poll():
            pass
        self._lives.open()

    def _take(self, data: bytes, header: Header) -> Action:
        is_counted = self._lives.counts(header.session_id)
        if template_of(data) == SESSION_MESSAGE:
            if is_counted:
                self._on_message(unpack_header(data)[1], data[HEADER_LENGTH:])
            return Action.CONTINUE
        try:
            message = decode(data)
        except MessageError as wrong:
            self._on_wrong(f"a message on the control stream: {wrong}")
            return Action.CONTINUE
        if isinstance(message, ServiceAck):
            return Action.BREAK if self._take_ack(message, header.session_id) else Action.CONTINUE
        if message is not None and (is_counted or not isinstance(message, _OF_SERVICES)):
            self._on_request(message)
        return Action.CONTINUE

    def _take_ack(self, ack: ServiceAck, session_id: int) -> bool:
        if not 0 <= ack.service_id < self.count:
            self._on_wrong(
                f"an acknowledgement of service_id={ack.service_id}, where service_count={self.count}"
            )
            return False
        begins = ack.ack_id == 0 and ack.relevant_id != NULL_VALUE
        if begins and not client_is_alive(self._client, ack.relevant_id):
            # It ended before this was read, so that nobody will say that it has.
            return False
        return self._lives.take(ack, session_id)

    def client_gone(self, client_id: int) -> int | None:
        """A client of the driver has ended; gives the service that it was, if there is one."""
        return self._lives.gone(client_id)

    @property
    def have_started(self) -> bool:
        """Whether all have acknowledged the state at which the member recovers."""
        return self._lives.have_started

    @property
    def missing(self) -> tuple[int, ...]:
        """The services whose acknowledgement is waited for."""
        return self._lives.missing

    def send(self, message: Any) -> None:
        """Send to all services, and to tools.

        Raises:
            ClusterError: No service is there, or none takes it.
        """
        result = self._offered(message)
        if result <= 0:
            name = type(message).__name__
            raise ClusterError(f"{name} cannot be sent to the services: {OfferResult(result).name}")

    def try_send(self, message: Any) -> bool:
        """Send to all services; returns whether the stream took it."""
        return self._offered_once(encode(message)) > 0

    def answer(self, message: Any) -> None:
        """Send to a tool, which may have gone."""
        self._offered(message)

    def _offered(self, message: Any) -> int | OfferResult:
        data, result = encode(message), 0
        # At the end of a term the first attempt is refused.
        for _ in range(_ATTEMPTS):
            result = self._offered_once(data)
            if result > 0:
                break
        return result

    def _offered_once(self, data: bytes) -> int | OfferResult:
        result = self._publication.offer(data)
        self.sent_count += result > 0
        return result

    def acked(
        self, log_position: int, check: Callable[[], object] = lambda: None
    ) -> Task[tuple[ServiceAck, ...]]:
        """The acknowledgements of all services of a position, which are the next of each.

        Args:
            log_position: The position.
            check: Called in each turn that it waits; raises if there is nothing to wait for.

        Raises:
            ClusterTerminalError: A service acknowledges something else.
            HeadraceError: What `check` raises.
        """
        self._lives.await_position(log_position)
        while (acks := self._lives.taken()) is None:
            check()
            yield
        return acks

    def forget_after(self, log_position: int) -> None:
        """Wait for no acknowledgement of a position after one where an election goes on: no service has read so far."""
        self._lives.forget_after(log_position)

    def read_up_to(self, log_position: int) -> Task[None]:
        """Goes on once all services have read the log up to there, and their requests until then are taken.

        Raises:
            ClusterTerminalError: A service acknowledges something else.
            ClusterError: No service is there, or none takes the request.
        """
        if self.count:
            self.send(RequestServiceAck(log_position=log_position))
        yield from self.acked(log_position)

    @staticmethod
    def failed(acks: Iterable[ServiceAck]) -> tuple[int, ...]:
        """The services whose acknowledgement says that they failed."""
        return tuple(ack.service_id for ack in acks if ack.relevant_id == NULL_VALUE)
