"""Calls the handlers of a service. What one raises is told and goes no further."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.cluster.ground.log import AgentLog
    from headrace.cluster.service.clustered_service import ClusteredService
    from headrace.cluster.service.state import ServiceState

__all__ = ["Callbacks"]

_TEXTS_MAX = 1000


class Callbacks:
    """The handlers of one service.

    Args:
        service: Whose.
        service_id: Its number.
        state: Where in the log it is.
        log: Told of what handlers raise.
    """

    def __init__(
        self, service: ClusteredService, service_id: int, state: ServiceState, log: AgentLog
    ) -> None:
        self._service = service
        self._service_id = service_id
        self._state = state
        self._log = log
        self._first_positions: dict[str, int] = {}

    def call(self, name: str, *arguments: object) -> None:
        """Call a handler for an entry of the log."""
        try:
            getattr(self._service, name)(*arguments)
        except Exception as failure:
            self.report(name, failure)

    def call_silent(self, name: str, *arguments: object) -> None:
        """Call a handler that may not send or schedule."""
        self._state.silent_in = name
        try:
            self.call(name, *arguments)
        finally:
            self._state.silent_in = None

    def report(self, name: str, failure: Exception) -> None:
        """Tell of what a handler raised. Its entry counts as consumed.

        The error log keeps each distinct text, so that has the first position of a kind of failure alone.
        """
        position = self._state.position
        text = f"{name} of service_id={self._service_id} raised {failure!r}"
        if len(self._first_positions) >= _TEXTS_MAX:
            self._first_positions.clear()
        first = self._first_positions.setdefault(text, position)
        again = f"log_position={position}" if position != first else ""
        self._log.error(f"{text}, first at log_position={first}", failure, again)
