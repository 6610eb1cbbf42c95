"""A client of a simulated cluster that sends, connects again, and notes what it was answered."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from headrace._base.exceptions import HeadraceError
from headrace.cluster import ClusterClient, PendingClusterClient
from headrace.testing.cluster.rules import ClusterRuleError, LoggedMessage

if TYPE_CHECKING:
    from headrace.cluster import ClusterMessage
    from headrace.testing.cluster.world import ClusterWorld
    from headrace.testing.world import Node

__all__ = ["Answer", "SentCommand", "SimulatedClient"]

# So many commands it sends at once after a time in which it could not.
_BACKLOG_MAX = 8.0
# At a time scale of 1.
_POLL_INTERVAL_NS = 20_000_000
_MESSAGE_TIMEOUT_NS = 3_000_000_000
_KEEP_ALIVE_NS = 500_000_000


@dataclass(slots=True)
class SentCommand:
    """A command that the client's stream has taken.

    Attributes:
        session_id: The session that sent it.
        leadership_term_id: The term in which it was sent.
        payload: The command.
        sent_ns: When, in virtual time.
    """

    session_id: int
    leadership_term_id: int
    payload: bytes
    sent_ns: int


class Answer(NamedTuple):
    """What a service has sent.

    Attributes:
        position: Of the log, after the command that it answers.
        session_id: The session that got it.
        payload: The answer.
        received_ns: When, in virtual time.
    """

    position: int
    session_id: int
    payload: bytes
    received_ns: int


class SimulatedClient:
    """A client of a :class:`ClusterWorld`: it sends each command once, and connects again when its session is gone.

    Args:
        cluster: The cluster.
        node: The machine that it runs on.
        make_command: Makes the next command.
        rate: Commands a virtual second.

    Attributes:
        node: The machine that it runs on.
        rate: Commands a virtual second; 0 has it listen only.
        sent: The commands that its stream to the cluster has taken, in order.
        answers: All answers, in order.
        next_ns: Before then it does nothing.
    """

    def __init__(
        self,
        cluster: ClusterWorld,
        node: Node,
        make_command: Callable[[random.Random], bytes],
        *,
        rate: float,
    ) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self.node = node
        self._make_command = make_command
        self.rate = rate
        self._chance = random.Random(f"{self._world.seed} client {len(cluster.clients)}")
        self._client = node.connect()
        self._pending: PendingClusterClient | None = None
        self._session: ClusterClient | None = None
        self.next_ns = 0
        # How many commands it is to send now.
        self._due = 0.0
        self._looked_ns = self._world.now_ns
        self.sent: list[SentCommand] = []
        self.answers: list[Answer] = []

    # --- turns -----------------------------------------------------------------------------------------------------

    def take_turn(self, now_ns: int) -> int:
        """Send and receive what can be sent and received now; returns how much that was."""
        # As programs do that have more to do than to poll.
        self.next_ns = now_ns + self._chance.randrange(self._scaled(_POLL_INTERVAL_NS))
        self._due = min(self._due + self.rate * (now_ns - self._looked_ns) / 1e9, _BACKLOG_MAX)
        self._looked_ns = now_ns
        try:
            return self._work()
        except HeadraceError:
            self.disconnect()
            return 0

    def _scaled(self, time_ns: int) -> int:
        return round(time_ns * self._cluster.time_scale)

    def _work(self) -> int:
        if self._session is None:
            if self._pending is None:
                self._pending = ClusterClient.request(
                    self._client,
                    ingress_endpoints=self._cluster.ingress_endpoints,
                    ingress_channel="aeron:udp",
                    egress_channel=f"aeron:udp?endpoint={self.node.name}:0",
                    message_timeout_ns=self._scaled(_MESSAGE_TIMEOUT_NS),
                    keep_alive_interval_ns=self._scaled(_KEEP_ALIVE_NS),
                )
            self._session = self._pending.poll()
            if self._session is None:
                return 0
            self._pending = None
        session = self._session
        count = session.poll(self._take)
        while self._due >= 1.0:
            self._due -= 1.0
            count += self._send(session)
        return count

    def _send(self, session: ClusterClient) -> int:
        payload = self._make_command(self._chance)
        session_id, term_id = session.cluster_session_id, session.leadership_term_id
        if session.offer(payload) <= 0:
            return 0
        self.sent.append(SentCommand(session_id, term_id, payload, self._world.now_ns))
        return 1

    def _take(self, message: ClusterMessage) -> None:
        assert self._session is not None, "an open session takes messages"
        session_id = self._session.cluster_session_id
        self.answers.append(
            Answer(message.log_position, session_id, bytes(message.payload), self._world.now_ns)
        )

    # --- faults ----------------------------------------------------------------------------------------------------

    def disconnect(self) -> None:
        """Leave the cluster in good order; it connects again."""
        if self._session is not None:
            self._session.close()
        if self._pending is not None:
            self._pending.cancel()
        self._session = self._pending = None

    def crash(self) -> None:
        """Its process is killed, and starts again."""
        self._session = self._pending = None
        if self.node.is_up:
            self.node.crash_client(self._client)
            self._client = self.node.connect()

    def sleep(self, duration_s: float) -> None:
        """Neither send nor take anything for so long; 0 ends that."""
        self.next_ns = self._world.now_ns + round(duration_s * 1e9)

    # --- checks ----------------------------------------------------------------------------------------------------

    def check(self, log: Iterable[LoggedMessage]) -> None:
        """Hold what it sent, and was answered, against the log that is agreed upon.

        Raises:
            ClusterRuleError: An answered command is not in the log, one is there twice, or they have changed places.
        """
        sent: dict[tuple[int, int], list[bytes]] = defaultdict(list)
        for one in self.sent:
            sent[one.session_id, one.leadership_term_id].append(one.payload)
        sessions = {session_id for session_id, _ in sent}
        logged: dict[tuple[int, int], list[bytes]] = defaultdict(list)
        owners: dict[int, int] = {}
        for message in log:
            owners[message.position] = message.session_id
            if message.session_id in sessions:
                logged[message.session_id, message.leadership_term_id].append(message.payload)
        for stream, payloads in logged.items():
            # What a session sends in one term is a stream without gaps.
            if payloads != sent[stream][: len(payloads)]:
                raise ClusterRuleError(
                    f"session {stream[0]} sent {sent[stream]} in term {stream[1]}, and the log has {payloads}"
                )
        for answer in self.answers:
            if owners.get(answer.position) != answer.session_id:
                raise ClusterRuleError(f"the log has nothing of this session at the position of {answer}")
