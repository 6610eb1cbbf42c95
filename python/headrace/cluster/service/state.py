"""Where in the log a service is, and what its member is: one state, which entries of the log and joins change."""

from __future__ import annotations

from headrace.client import LogPlace
from headrace.cluster.errors import ClusterError
from headrace.cluster.protocol.codes import ClusterTimeUnit, Role

__all__ = ["ServiceState"]


class ServiceState(LogPlace):
    """Changed by the container; read by what handlers work with.

    Attributes:
        member_id: Which member; -1 until the first log is joined.
        role: What the member is to the others.
        is_leader: Whether it leads.
        term_id: The leadership term of the last entry; -1 before the first.
        time: The time of the last entry.
        position: Of the log, after the last entry.
        silent_in: The handler that runs and may not send, if one does.
    """

    __slots__ = ("_silent_in", "_time_unit", "member_id", "role")

    def __init__(self) -> None:
        self.member_id = -1
        self.role = Role.FOLLOWER
        self._silent_in: str | None = None
        self._time_unit: ClusterTimeUnit | None = None

    @property
    def silent_in(self) -> str | None:
        """The handler that runs and may not send, if one does."""
        return self._silent_in

    @silent_in.setter
    def silent_in(self, handler: str | None) -> None:
        self._silent_in = handler
        self.is_silent = handler is not None

    @property
    def time_unit(self) -> ClusterTimeUnit:
        """The unit of time; milliseconds until it is told."""
        return self._time_unit or ClusterTimeUnit.MILLIS

    def use_time_unit(self, unit: ClusterTimeUnit) -> None:
        """Take the unit that the log or a snapshot tells.

        Raises:
            ClusterError: It was another one before.
        """
        if self._time_unit not in (None, unit):
            raise ClusterError(
                f"incompatible time unit: {unit.name}, where timestamps were in {self.time_unit.name} before: all "
                "members must always use one unit"
            )
        self._time_unit = unit

    def set_role(self, role: Role) -> bool:
        """Gives whether that changes it."""
        is_new = role is not self.role
        self.role = role
        self.is_leader = role is Role.LEADER
        return is_new

    def check_may_send(self) -> None:
        """Look whether the handler that runs may send or schedule.

        Raises:
            ClusterError: It may not.
        """
        self.note_output()
        if self.silent_in is not None:
            raise ClusterError(
                f"sending messages or scheduling timers is not allowed from {self.silent_in}: do it when an entry of "
                "the log is handled, such as a message or a timer, which every member does alike"
            )
