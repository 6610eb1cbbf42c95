"""What the handlers of a service work with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cluster.errors import ClusterError
from headrace.cluster.protocol.codes import ClusterTimeUnit, Role

if TYPE_CHECKING:
    from headrace._results import OfferResult
    from headrace.client import Client
    from headrace.cluster.service.config import ContainerConfig
    from headrace.cluster.service.control import Control
    from headrace.cluster.service.session import ClientSession

__all__ = ["Cluster"]

_NO_TIMER = (1 << 63) - 1


class Cluster:
    """The cluster, as one of its services sees it. Used on the thread that calls the service's handlers.

    Attributes:
        config: The container's settings.
        client: The container's client of the driver. The container steps it; streams of a service's own are outside
            of the replicated state.
    """

    __slots__ = (
        "_control",
        "_is_leader",
        "_member_id",
        "_position",
        "_role",
        "_sessions",
        "_silent_in",
        "_term_id",
        "_time",
        "_time_unit",
        "client",
        "config",
    )

    def __init__(self, config: ContainerConfig, client: Client, control: Control) -> None:
        self.config = config
        self.client = client
        self._control = control
        self._sessions: dict[int, ClientSession] = {}
        self._member_id = -1
        self._role = Role.FOLLOWER
        self._is_leader = False
        self._term_id = -1
        self._time = 0
        self._time_unit: ClusterTimeUnit | None = None
        self._position = 0
        # The handler that runs and may not send, if one does.
        self._silent_in: str | None = None

    @property
    def member_id(self) -> int:
        """Which member this is; -1 until the first log is joined."""
        return self._member_id

    @property
    def role(self) -> Role:
        """Whether the member leads."""
        return self._role

    @property
    def time(self) -> int:
        """The time of the entry that is handled, or was last, in :attr:`time_unit`."""
        return self._time

    @property
    def time_unit(self) -> ClusterTimeUnit:
        """The unit of timestamps and deadlines."""
        return self._time_unit or ClusterTimeUnit.MILLIS

    @property
    def log_position(self) -> int:
        """Position of the log after the entry that is handled, or was last."""
        return self._position

    @property
    def leadership_term_id(self) -> int:
        """The leadership term of that entry; -1 before the first."""
        return self._term_id

    @property
    def sessions(self) -> tuple[ClientSession, ...]:
        """The clients, in the order of their ids."""
        return tuple(self._sessions[id] for id in sorted(self._sessions))

    def session(self, session_id: int) -> ClientSession | None:
        """The client with an id, if it is connected."""
        return self._sessions.get(session_id)

    def close_session(self, session_id: int) -> bool:
        """Have a session closed. ``on_session_close`` follows, with ``CloseReason.SERVICE_ACTION``.

        Returns:
            False when the consensus module does not take the request now: try again.

        Raises:
            ClusterError: No session has this id, or the handler may not send.
        """
        if self._silent_in is not None:
            self._refuse()
        session = self._sessions.get(session_id)
        if session is None:
            raise ClusterError(f"unknown cluster_session_id={session_id}: it was never opened, or is closed")
        if not session.is_closing:
            session.is_closing = self._control.close_session(session_id)
        return session.is_closing

    def schedule_timer(self, correlation_id: int, deadline: int) -> bool:
        """Have ``on_timer_event`` called once the cluster's time reaches a deadline.

        Args:
            correlation_id: Names the timer, for all services of the cluster. A timer of the same id is replaced.
            deadline: In :attr:`time_unit`.

        Returns:
            False when the consensus module does not take the request now: try again.

        Raises:
            ClusterError: Of the two, one is not a timer's; the handler may not send; or the consensus module is gone.
        """
        if self._silent_in is not None:
            self._refuse()
        for name, value in (("correlation_id", correlation_id), ("deadline", deadline)):
            if value == _NO_TIMER:
                raise ClusterError(f"{name}={value}: must be below 2**63 - 1, which stands for no timer")
        return self._control.schedule_timer(correlation_id, deadline)

    def cancel_timer(self, correlation_id: int) -> bool:
        """Forget a timer; one that is not scheduled is well.

        Returns:
            False when the consensus module does not take the request now: try again.

        Raises:
            ClusterError: The handler may not send, or the consensus module is gone.
        """
        if self._silent_in is not None:
            self._refuse()
        return self._control.cancel_timer(correlation_id)

    def offer(self, message: Any) -> int | OfferResult:
        """Send a message to the cluster itself, which reads it from the log as any message, with no session.

        Args:
            message: A bytes-like object, or a tuple or list of them sent as one message.

        Returns:
            A number above zero when the consensus module took it; or why it did not.

        Raises:
            ClusterError: The handler may not send.
            ConfigError: The message is too long for the control stream.
        """
        if self._silent_in is not None:
            self._refuse()
        return self._control.offer(self._term_id, self._time, message)

    def _refuse(self) -> None:
        raise ClusterError(
            f"sending messages or scheduling timers is not allowed from {self._silent_in}: do it when an entry of the "
            "log is handled, such as a message or a timer, which every member does alike"
        )

    def _use_time_unit(self, unit: ClusterTimeUnit) -> None:
        """Take the unit that the log or a snapshot tells.

        Raises:
            ClusterError: It was another one before.
        """
        if self._time_unit not in (None, unit):
            raise ClusterError(
                f"incompatible time unit: {unit.name}, where timestamps were in {self.time_unit.name} before: all "
                "members and all their life have one unit"
            )
        self._time_unit = unit

    def _set_role(self, role: Role) -> bool:
        """Gives whether that changes it."""
        is_new = role is not self._role
        self._role = role
        self._is_leader = role is Role.LEADER
        return is_new

    def __repr__(self) -> str:
        return (
            f"Cluster(member_id={self._member_id}, role={self._role.name}, log_position={self._position}, "
            f"sessions={len(self._sessions)})"
        )
