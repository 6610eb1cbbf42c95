"""A member's services, as its consensus module sees them: the two control streams. Cluster specification 4.8, 8.3."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from headrace._results import Action, OfferResult
from headrace.cluster.errors import ClusterError, ClusterTerminalError
from headrace.cluster.ground.courses import Course
from headrace.cluster.protocol.control import RequestServiceAck, ServiceAck
from headrace.cluster.protocol.header import HEADER_LENGTH, SESSION_MESSAGE, template_of, unpack_header
from headrace.cluster.protocol.messages import MessageError, decode, encode
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.client import Client, Header, Subscription
    from headrace.cluster.member.config import ConsensusModuleConfig

__all__ = ["Services"]

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
        self._acks: list[deque[ServiceAck]] = [deque() for _ in range(self.count)]
        self._ack_id = 0
        # The clients of the services, from their first acknowledgements.
        self._client_ids: list[int] = []
        # Positions to be acknowledged: the last is waited for, those before were when the wait was given up.
        self._due: deque[int] = deque()

    def poll(self) -> int:
        """Take what has come; stops after an acknowledgement, which may change what is done next."""
        return self.subscription.controlled_poll(self._take, _FRAGMENT_LIMIT)

    def _take(self, data: bytes, _: Header) -> Action:
        if template_of(data) == SESSION_MESSAGE:
            self._on_message(unpack_header(data)[1], data[HEADER_LENGTH:])
            return Action.CONTINUE
        try:
            message = decode(data)
        except MessageError as wrong:
            self._on_wrong(f"a message on the control stream: {wrong}")
            return Action.CONTINUE
        if isinstance(message, ServiceAck):
            if not 0 <= message.service_id < self.count:
                self._on_wrong(
                    f"an acknowledgement of service_id={message.service_id}, where service_count={self.count}"
                )
                return Action.CONTINUE
            self._acks[message.service_id].append(message)
            return Action.BREAK
        if message is not None:
            self._on_request(message)
        return Action.CONTINUE

    def send(self, message: Any) -> None:
        """Send to all services, and to tools.

        Raises:
            ClusterError: No service is there, or none takes it.
        """
        data = encode(message)
        result = 0
        for _ in range(_ATTEMPTS):
            result = self._publication.offer(data)
            if result > 0:
                return
        name = type(message).__name__
        raise ClusterError(f"{name} cannot be sent to the services: {OfferResult(result).name}")

    def answer(self, message: Any) -> None:
        """Send to a tool, which asks again if it does not get it."""
        self._publication.offer(encode(message))

    def acked(self, log_position: int) -> Course[tuple[ServiceAck, ...]]:
        """The acknowledgements of all services of a position, which are the next of each.

        Raises:
            ClusterTerminalError: A service acknowledges something else.
        """
        self._due.append(log_position)
        while True:
            while not all(self._acks):
                self._check_heads()
                yield
            self._check_heads()
            self._due.popleft()
            self._ack_id += 1
            acks = tuple(acks.popleft() for acks in self._acks)
            if self._ack_id == 1:
                self._client_ids = [ack.relevant_id for ack in acks]
            if not self._due:
                return acks

    def forget_after(self, log_position: int) -> None:
        """Wait for no acknowledgement of a position after one where an election goes on: no service has read so far."""
        while self._due and self._due[-1] > log_position:
            self._due.pop()

    def read_up_to(self, log_position: int) -> Course[None]:
        """Goes on once all services have read the log up to there, and their requests until then are taken.

        Raises:
            ClusterTerminalError: A service acknowledges something else.
            ClusterError: No service is there, or none takes the request.
        """
        if self.count:
            self.send(RequestServiceAck(log_position=log_position))
        yield from self.acked(log_position)

    def _check_heads(self) -> None:
        due = self._ack_id, self._due[0]
        for acks in self._acks:
            ack = acks[0] if acks else None
            if ack is None or (ack.ack_id, ack.log_position) == due:
                continue
            if ack.ack_id == 0 and self._ack_id:
                raise ClusterTerminalError(
                    f"service_id={ack.service_id} has two containers, of the clients "
                    f"{self._client_ids[ack.service_id]} and {ack.relevant_id}: each service_id must have one; stop "
                    "one of them, or give it another service_id= and the module a greater service_count="
                )
            raise ClusterTerminalError(
                f"ack out of sequence: service_id={ack.service_id} acknowledges position {ack.log_position} with "
                f"ack_id={ack.ack_id}, where log_position={due[1]} and ack_id={due[0]} are due"
            )

    @staticmethod
    def failed(acks: Iterable[ServiceAck]) -> tuple[int, ...]:
        """The services whose acknowledgement says that they failed."""
        return tuple(ack.service_id for ack in acks if ack.relevant_id == NULL_VALUE)
