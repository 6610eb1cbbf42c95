"""What the handlers of a service work with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace._base.checks import wrong
from headrace.cluster.errors import ClusterError

if TYPE_CHECKING:
    from headrace._base.results import OfferResult
    from headrace.client import Client
    from headrace.client._data import Data
    from headrace.cluster.protocol.codes import ClusterTimeUnit, Role
    from headrace.cluster.service.config import ContainerConfig
    from headrace.cluster.service.control import Control
    from headrace.cluster.service.message_batch import MessageBatch
    from headrace.cluster.service.session import ClientSession
    from headrace.cluster.service.state import ServiceState

__all__ = ["Cluster"]

_NO_TIMER = (1 << 63) - 1


class Cluster:
    """The cluster, as one of its services sees it. Used on the thread that calls the service's handlers.

    Attributes:
        config: The container's settings.
        client: The container's client of the driver. The container steps it; streams of a service's own are outside
            of the replicated state.
    """

    __slots__ = ("_control", "_sessions", "_state", "client", "config")

    def __init__(
        self,
        config: ContainerConfig,
        client: Client,
        control: Control,
        state: ServiceState,
        sessions: dict[int, ClientSession],
    ) -> None:
        self.config = config
        self.client = client
        self._control = control
        self._state = state
        self._sessions = sessions

    @property
    def member_id(self) -> int:
        """Which member this is; -1 until the first log is joined."""
        return self._state.member_id

    @property
    def role(self) -> Role:
        """Whether the member leads."""
        return self._state.role

    @property
    def time(self) -> int:
        """The time of the entry that is handled, or was last, in :attr:`time_unit`."""
        return self._state.time

    @property
    def time_unit(self) -> ClusterTimeUnit:
        """The unit of timestamps and deadlines."""
        return self._state.time_unit

    @property
    def log_position(self) -> int:
        """Position of the log after the entry that is handled, or was last."""
        return self._state.position

    @property
    def leadership_term_id(self) -> int:
        """The leadership term of that entry; -1 before the first."""
        return self._state.term_id

    @property
    def sessions(self) -> tuple[ClientSession, ...]:
        """The clients, in the order of their ids."""
        return tuple(self._sessions[id] for id in sorted(self._sessions))

    def session(self, session_id: int) -> ClientSession | None:
        """The client with an id, if it is connected."""
        return self._sessions.get(session_id)

    def answer(self, batch: MessageBatch, answers: Any, first: int = 0) -> int:
        """Send the sender of each message of a batch its answer, in one call; never waits.

        An answer carries the position of the log after the message that it answers. Messages of services, and of
        clients that are gone or cannot be answered, are passed over; a client whose own stream is too short for its
        answer gets an error that says so.

        Args:
            batch: What ``on_session_messages`` was given.
            answers: One for each message: a list or tuple of bytes-like objects, a numpy array of two dimensions or of
                records, or an Arrow array of binary.
            first: The index of the first message to answer.

        Returns:
            The index of the first message whose answer has no room in its client's stream: call again from there, or
            leave the rest. ``len(batch)`` when all have room, and always on a member that does not lead: state must
            not follow from what is returned.

        Raises:
            ClusterError: The handler may not send.
            ConfigError: The number of answers is not that of the messages, one is longer than any stream takes (16 MiB
                less 32 bytes), or `first` is no index.
            TypeError: The answers are none of the above. All of these are raised on every member, and in each replay,
                alike.
        """
        state = self._state
        state.check_may_send()
        if not 0 <= first <= len(batch):
            raise wrong("first", first, f"must be from 0 to {len(batch)}, the length of the batch")
        return state.answer(self._sessions, batch._columns(), answers, first)

    def close_session(self, session_id: int) -> bool:
        """Have a session closed. ``on_session_close`` follows, with ``CloseReason.SERVICE_ACTION``.

        Returns:
            True: the request waits until the consensus module has room for it.

        Raises:
            ClusterError: No session has this id, or the handler may not send.
        """
        self._state.check_may_send()
        session = self._sessions.get(session_id)
        if session is None:
            raise ClusterError(f"unknown cluster_session_id={session_id}: it was never opened, or is closed")
        return session.close()

    def schedule_timer(self, correlation_id: int, deadline: int) -> bool:
        """Have ``on_timer_event`` called once the cluster's time reaches a deadline.

        Args:
            correlation_id: Names the timer, for all services of the cluster. A timer of the same id is replaced.
            deadline: In :attr:`time_unit`.

        Returns:
            True: the request waits until the consensus module has room for it.

        Raises:
            ClusterError: Of the two, one is not a timer's; the handler may not send; or the consensus module is gone.
        """
        self._state.check_may_send()
        for name, value in (("correlation_id", correlation_id), ("deadline", deadline)):
            if value == _NO_TIMER:
                raise ClusterError(f"{name}={value}: must be below 2**63 - 1, which stands for no timer")
        self._control.schedule_timer(correlation_id, deadline)
        return True

    def cancel_timer(self, correlation_id: int) -> bool:
        """Forget a timer; one that is not scheduled is well.

        Returns:
            True: the request waits until the consensus module has room for it.

        Raises:
            ClusterError: The handler may not send, or the consensus module is gone.
        """
        self._state.check_may_send()
        self._control.cancel_timer(correlation_id)
        return True

    def offer(self, message: Data) -> int | OfferResult:
        """Send a message to the cluster itself, which reads it from the log as any message, with no session.

        Args:
            message: A bytes-like object, or a tuple or list of them sent as one message.

        Returns:
            1: the message waits until the consensus module has room for it.

        Raises:
            ClusterError: The handler may not send, or the consensus module is gone.
            ConfigError: The message is too long for the control stream, or for the log.
        """
        self._state.check_may_send()
        return self._control.offer(self._state.term_id, self._state.time, message)

    def __repr__(self) -> str:
        return (
            f"Cluster(member_id={self.member_id}, role={self.role.name}, log_position={self.log_position}, "
            f"sessions={len(self._sessions)})"
        )
