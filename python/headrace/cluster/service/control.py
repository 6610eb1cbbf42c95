"""The two streams between a service and the consensus module of its node. Cluster specification 4.8, 7.4."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

from headrace._base.exceptions import ConfigError
from headrace._base.results import OfferResult
from headrace.cluster.errors import ClusterError
from headrace.cluster.protocol.control import (
    CancelTimer,
    CloseSession,
    JoinLog,
    RequestServiceAck,
    ScheduleTimer,
    ServiceAck,
    ServiceFollowerRead,
    ServiceRead,
    ServiceTerminationPosition,
    StateHash,
)
from headrace.cluster.protocol.header import pack_header, with_header
from headrace.cluster.protocol.messages import MessageError, decode, encode

if TYPE_CHECKING:
    from headrace.client import Client, Header
    from headrace.cluster.service.config import ContainerConfig

__all__ = ["Control"]

_PASSING = (OfferResult.BACK_PRESSURED, OfferResult.ADMIN_ACTION)
_DRAIN_LIMIT = 100
_Request = JoinLog | RequestServiceAck | ServiceTerminationPosition | ServiceRead | ServiceFollowerRead
_FOR_SERVICES = get_args(_Request)


class Control:
    """Sends requests to the consensus module, and takes what it asks of services.

    A request is never refused because the stream is full: it is held, and sent before all that follows. What a handler
    sees then does not depend on speed, so it is the same when the log is replayed.

    Args:
        client: The container's client.
        config: The streams, and which service this is.
        on_wrong: Told of what is no message.
    """

    def __init__(self, client: Client, config: ContainerConfig, on_wrong: Callable[[str], object]) -> None:
        self._service_id = config.service_id
        self._on_wrong = on_wrong
        self._taken: list[_Request] = []
        self.subscription = client.add_subscription(config.control_channel, config.service_stream_id)
        # Its session tells the consensus module which life of the service has sent something.
        self._publication = client.add_exclusive_publication(
            config.control_channel, config.consensus_module_stream_id
        )
        self._held: deque[bytes] = deque()
        self._longest = self._publication.max_message_length

    def poll(self) -> _Request | None:
        """What the consensus module asks next."""
        self.subscription.poll(self._take, 1)
        return self._taken.pop() if self._taken else None

    def pass_over(self) -> None:
        """Forget what has come: a consensus module before this one has asked it of whoever was there."""
        while self.subscription.poll(self._take, _DRAIN_LIMIT):
            self._taken.clear()

    def _take(self, data: bytes, _: Header) -> None:
        try:
            message = decode(data)
        except MessageError as wrong:
            self._on_wrong(f"a message on the control stream: {wrong}")
            return
        # Others are answers to tools.
        if isinstance(message, _FOR_SERVICES):
            self._taken.append(message)

    def send_held(self) -> int:
        """Send what is held, as far as the stream takes it; gives how much that was."""
        count, held = 0, self._held
        while held and self._publication.offer(held[0]) > 0:
            held.popleft()
            count += 1
        return count

    @property
    def holds_requests(self) -> bool:
        """Whether requests wait for the stream."""
        return bool(self._held)

    def forget_held(self) -> None:
        """Give up what is held, at the end: a replay of the log has the service ask again."""
        self._held.clear()

    def ack(self, log_position: int, timestamp: int, ack_id: int, relevant_id: int) -> bool:
        """Acknowledge a position, after all requests; false when the stream does not take it now.

        Raises:
            ClusterError: The stream is closed.
        """
        self.send_held()
        if self._held:
            return False
        message = ServiceAck(
            log_position=log_position,
            timestamp=timestamp,
            ack_id=ack_id,
            relevant_id=relevant_id,
            service_id=self._service_id,
        )
        result = self._publication.offer(encode(message))
        if result > 0:
            return True
        if result != OfferResult.NOT_CONNECTED:
            _check_passing(result)
        return False

    def close_session(self, session_id: int) -> None:
        """Ask for the end of a session."""
        self._request(encode(CloseSession(cluster_session_id=session_id)))

    def schedule_timer(self, correlation_id: int, deadline: int) -> None:
        """Ask for a timer."""
        self._request(encode(ScheduleTimer(correlation_id=correlation_id, deadline=deadline)))

    def cancel_timer(self, correlation_id: int) -> None:
        """Ask for the end of a timer."""
        self._request(encode(CancelTimer(correlation_id=correlation_id)))

    def tell_state(self, log_position: int, state_hash: int) -> None:
        """Tell a hash of the service's state at a position."""
        message = StateHash(log_position=log_position, service_id=self._service_id, hash=state_hash)
        self._request(encode(message))

    def offer(self, leadership_term_id: int, timestamp: int, message: Any) -> int:
        """Send a message to the cluster itself.

        Raises:
            ConfigError: It is too long for the stream, or for the log.
            ClusterError: The consensus module is gone.
        """
        header = pack_header(leadership_term_id, self._service_id, timestamp)
        whole = with_header(header, message)
        if type(whole) is not bytes:
            # Held messages are not to change with the buffers they came in.
            whole = b"".join(whole)
        if len(whole) > self._longest:
            in_log = self._longest < self._publication.max_message_length
            taker, setting = ("log", "log_channel") if in_log else ("control stream", "control_channel")
            advice = " of a new cluster" if in_log else ""
            raise ConfigError(
                f"message of length={len(whole) - len(header)}: must be at most {self._longest - len(header)}, which "
                f"the {taker} takes; send less, or set a greater term-length in the {setting}{advice}"
            )
        return self._request(whole)

    def limit_messages(self, max_message_length: int) -> None:
        """Messages to the cluster go into a log, which must take them too."""
        self._longest = min(self._publication.max_message_length, max_message_length)

    def _request(self, data: bytes) -> int:
        """Send or hold; returns 1, as a position of the stream is another one in each replay."""
        if not self._held:
            result = self._publication.offer(data)
            if result > 0:
                return 1
            _check_passing(result)
        self._held.append(data)
        return 1

    def close(self) -> None:
        """Leave both streams."""
        with contextlib.ExitStack() as closing:
            closing.callback(self.subscription.close)
            closing.callback(self._publication.close)


def _check_passing(result: int) -> None:
    """Look whether it can help to try again.

    Raises:
        ClusterError: It cannot.
    """
    if result not in _PASSING:
        raise ClusterError(
            f"the consensus module cannot be reached: {OfferResult(result).name}; it has ended, or is about to"
        )
