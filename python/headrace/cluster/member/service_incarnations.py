"""Which life of a service an acknowledgement is from, and which acknowledgements are due. Specification 4.7, 4.8.

No clock, socket or thread is in here. A service that is killed and started again has another client, and a publication
of its own: what its lives before have sent may still lie on the stream. So a life begins with acknowledgement 0, which
names its client, and all else that comes counts only on a session of a life that counts. Services of Aeron share one
session for all that are on a driver; of those, the driver ends the session with the last.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from headrace.cluster.errors import ClusterTerminalError
from headrace.cluster.protocol.control import ServiceAck
from headrace.positions import NULL_VALUE

__all__ = ["ServiceIncarnations"]


@dataclass(slots=True)
class _Life:
    """Of one service; without a client when it says that it could not start."""

    client_id: int
    session_id: int
    acks: deque[ServiceAck] = field(default_factory=deque)


class ServiceIncarnations:
    """The services of a member, as far as they have acknowledged.

    Args:
        count: How many there are.
    """

    def __init__(self, count: int) -> None:
        self._lives: list[_Life | None] = [None] * count
        # Sessions of lives in whose place others have come.
        self._replaced: set[int] = set()
        self._is_open = False
        self._ack_id = 0
        # Positions to be acknowledged: the last is waited for, those before were when the wait was given up.
        self._due: deque[int] = deque()

    # --- what comes ------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """From now on services can know of this module. What came before was meant for one before it."""
        self._is_open = True

    def take(self, ack: ServiceAck, session_id: int) -> bool:
        """An acknowledgement; false when it is from a life that does not count.

        Raises:
            ClusterTerminalError: Two containers of the service live.
        """
        if not self._is_open:
            return False
        life = self._lives[ack.service_id]
        if ack.ack_id == 0:
            if life is not None and self._ack_id:
                raise _two_containers(ack.service_id, life.client_id, ack.relevant_id)
            if life is not None and life.session_id != session_id:
                # The one before was killed, and the driver has not noticed; or it goes on, and acknowledges later.
                self._replaced.add(life.session_id)
            life = self._lives[ack.service_id] = _Life(ack.relevant_id, session_id)
        elif life is None or life.session_id != session_id:
            if session_id in self._replaced and not self.counts(session_id):
                client_id = NULL_VALUE if life is None else life.client_id
                raise _two_containers(ack.service_id, client_id, NULL_VALUE)
            return False
        life.acks.append(ack)
        return True

    def gone(self, client_id: int) -> int | None:
        """A client has ended; gives the service that it was, if there is one."""
        for service_id, life in enumerate(self._lives):
            if life is not None and life.client_id == client_id:
                if self._ack_id == 0:
                    # Not all have started, so that another life can take the same state over.
                    self._lives[service_id] = None
                return service_id
        return None

    def counts(self, session_id: int) -> bool:
        """Whether requests on a session are from a service of this member, in the life that counts."""
        return any(life is not None and life.session_id == session_id for life in self._lives)

    @property
    def have_started(self) -> bool:
        """Whether all have acknowledged the state at which the member recovers."""
        return self._ack_id > 0

    # --- what is waited for ----------------------------------------------------------------------------------------

    def await_position(self, log_position: int) -> None:
        """All services are to acknowledge a position next."""
        self._due.append(log_position)

    def forget_after(self, log_position: int) -> None:
        """Wait for no acknowledgement of a position after one where an election goes on: no service has read so far."""
        while self._due and self._due[-1] > log_position:
            self._due.pop()

    @property
    def missing(self) -> tuple[int, ...]:
        """The services of which the acknowledgement that is due has not come."""
        return tuple(number for number, life in enumerate(self._lives) if life is None or not life.acks)

    def taken(self) -> tuple[ServiceAck, ...] | None:
        """The acknowledgements of the last position that is due, once all are there.

        Raises:
            ClusterTerminalError: A service acknowledges something else.
        """
        while True:
            self._check_heads()
            if self.missing:
                return None
            acks = tuple(life.acks.popleft() for life in self._lives if life is not None)
            self._due.popleft()
            self._ack_id += 1
            if not self._due:
                return acks

    def _check_heads(self) -> None:
        due = self._ack_id, self._due[0]
        for life in self._lives:
            if life is None or not life.acks:
                continue
            ack = life.acks[0]
            if (ack.ack_id, ack.log_position) != due:
                raise ClusterTerminalError(
                    f"ack out of sequence: service_id={ack.service_id} acknowledges position {ack.log_position} with "
                    f"ack_id={ack.ack_id}, where log_position={due[1]} and ack_id={due[0]} are due"
                )


def _two_containers(service_id: int, client_id: int, other_id: int) -> ClusterTerminalError:
    other = "another" if other_id == NULL_VALUE else str(other_id)
    return ClusterTerminalError(
        f"service_id={service_id} has two containers, of the clients {client_id} and {other}: each service_id must "
        "have one; stop one of them, or give it another service_id= and the module a greater service_count="
    )
