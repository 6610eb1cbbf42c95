"""Calls the handlers of a service. What one raises is told and goes no further; so is one that holds the member up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from headrace._base.exceptions import HeadraceError
from headrace.cluster.errors import ClusterError

if TYPE_CHECKING:
    from headrace.clock import Clock
    from headrace.cluster.common.log import AgentLog
    from headrace.cluster.service.clustered_service import ClusteredService
    from headrace.cluster.service.session import ClientSession
    from headrace.cluster.service.state import ServiceState

__all__ = ["Callbacks", "CheckFinding", "HandlerRaised", "handled", "held_up", "told"]

T = TypeVar("T")

_TEXTS_MAX = 1000
# What follows when a client was not stepped for too long: it says so itself, or the consensus module about a service's.
_HELD_UP = ("service interval exceeded", "client in service closed unexpectedly")
_ADVICE = (
    "the service handles nothing else until it returns. A leader ends if a handler sends nothing for longer than "
    "its driver waits for a client (aeron.client.liveness.timeout), and its next start waits until the entry has been "
    "handled again. Move long work to a thread, and send its result to the cluster as a message"
)


class CheckFinding(ClusterError):
    """What a check of a service has found: its program is told, and no client."""


class HandlerRaised(Exception):
    """What a handler raised, where more than its own code runs.

    Attributes:
        failure: It.
    """

    def __init__(self, failure: BaseException) -> None:
        super().__init__(failure)
        self.failure = failure


@contextmanager
def handled() -> Iterator[None]:
    """Code of a handler: whatever it raises, also what is no ``Exception``, is its failure, and not the member's.

    An entry of the log whose handler ended the member would end it again at each start. Only Ctrl-C goes through.

    Raises:
        HandlerRaised: It has raised.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as failure:
        raise HandlerRaised(failure) from failure


def told(failure: BaseException) -> str:
    """A failure as text. Its own code makes that, which may fail as well."""
    try:
        return repr(failure)
    except Exception as another:
        return f"{type(failure).__name__}, without text: its repr() raises {type(another).__name__}"


class Callbacks:
    """The handlers of one service.

    Args:
        service: Whose.
        service_id: Its number.
        state: Where in the log it is.
        log: Told of what handlers raise, and of those that take long.
        clock: Tells how long they take.
        threshold_ns: What is long.
    """

    def __init__(
        self,
        service: ClusteredService,
        service_id: int,
        state: ServiceState,
        log: AgentLog,
        clock: Clock,
        threshold_ns: int,
    ) -> None:
        self._service = service
        self._service_id = service_id
        self._state = state
        self._log = log
        self._clock = clock
        self._threshold_ns = threshold_ns
        self._first_positions: dict[str, int] = {}
        self._slow_count = 0
        self.running_since_ns: int | None = None
        """Since when a handler runs; ``None`` while none does."""
        self.slowest = ""
        """What is to be told of the handler that took longest, of those that took too long."""
        self._slowest_ns = 0

    def call(self, name: str, *arguments: object, of: ClientSession | None = None) -> None:
        """Call a handler for an entry of the log, which may be a client's."""
        outer_ns, begin_ns = self.running_since_ns, self._clock.monotonic_ns()
        self.running_since_ns = begin_ns
        try:
            with handled():
                getattr(self._service, name)(*arguments)
        except HandlerRaised as raised:
            self.report(name, raised.failure, of=of)
        finally:
            self.running_since_ns = outer_ns
            self._look_at(name, self._clock.monotonic_ns() - begin_ns)

    def watched(self, name: str, deliver: Callable[[], T]) -> T:
        """Have messages delivered to a handler; if that takes too long, and no other call did, it was the handler."""
        outer_ns, begin_ns, slow_count = self.running_since_ns, self._clock.monotonic_ns(), self._slow_count
        self.running_since_ns = begin_ns
        try:
            return deliver()
        finally:
            self.running_since_ns = outer_ns
            if self._slow_count == slow_count:
                self._look_at(name, self._clock.monotonic_ns() - begin_ns)

    def each(self, name: str, give: Callable[[], Iterable[Any]]) -> Iterator[Any]:
        """Call a handler now; gives what it gives, one by one as that is asked for. It takes its time over both.

        Raises:
            HandlerRaised: It has raised.
        """
        with handled():
            iterator = iter(self.watched(name, give))
        return self._rest(name, iterator)

    def _rest(self, name: str, iterator: Iterator[Any]) -> Iterator[Any]:
        end = object()
        while True:
            with handled():
                value = self.watched(name, lambda: next(iterator, end))
            if value is end:
                return
            yield value

    def _look_at(self, name: str, duration_ns: int) -> None:
        """Warn of a handler that takes too long: the service handles nothing else meanwhile."""
        if duration_ns <= self._threshold_ns:
            return
        self._slow_count += 1
        position = self._state.position
        text = f"{name} of service_id={self._service_id} takes too long"
        first = self._first_positions.setdefault(text, position)
        took = f"log_position={position}, after {duration_ns / 1e9:.3f} s"
        self._log.warning(f"{text}, first at log_position={first}: {_ADVICE}", took)
        if duration_ns > self._slowest_ns:
            self._slowest_ns, self.slowest = duration_ns, f"{text}: {took}; {_ADVICE}"

    def call_silent(self, name: str, *arguments: object) -> None:
        """Call a handler that may not send or schedule."""
        self._state.silent_in = name
        try:
            self.call(name, *arguments)
        finally:
            self._state.silent_in = None

    def report(self, name: str, failure: BaseException, *, of: ClientSession | None = None) -> None:
        """Tell of what a handler raised, also the client whose entry it was. The entry counts as consumed.

        The error log keeps each distinct text, so that has the first position of a kind of failure alone.
        """
        position = self._state.position
        text = f"{name} of service_id={self._service_id} raised {told(failure)}"
        if len(self._first_positions) >= _TEXTS_MAX:
            self._first_positions.clear()
        first = self._first_positions.setdefault(text, position)
        again = f"log_position={position}" if position != first else ""
        self._log.error(f"{text}, first at log_position={first}", failure, again)
        if of is not None and not isinstance(failure, CheckFinding):
            of._send_error(f"{name} raised {told(failure)}", position)


def held_up(failure: BaseException, slowest: str) -> ClusterError | None:
    """The failure of what waits for a client to be stepped, with the handler that held it up, if one is known."""
    text = str(failure)
    is_held_up = isinstance(failure, HeadraceError) and any(one in text for one in _HELD_UP)
    if not is_held_up or not slowest or slowest in text:
        return None
    return ClusterError(f"{text}: {slowest}")
