"""Questions of clients that change nothing, which a leader has its services answer without the log.

An answer must have all that was answered before the question came. So the leader notes the commit position, and asks
the others whether they still follow it: if a quorum does, no other member has committed anything since. Questions that
come meanwhile wait for the next round. A follower's query, for which that very position is the answer, takes part.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from headrace.cluster.consensus.peers import quorum_of
from headrace.cluster.member.roll_call import RollCall
from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.consensus import CommitAnswer, CommitQuery, LeaderProbe, LeaderProbeAck
from headrace.cluster.protocol.control import ServiceRead

if TYPE_CHECKING:
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.peers import Peers
    from headrace.cluster.member.services import Services
    from headrace.cluster.protocol.session import ReadRequest

__all__ = ["OF_READS", "Reads"]

OF_READS = (LeaderProbe, LeaderProbeAck, CommitQuery)
"""What members send each other for reads, but the answer to a follower's query."""

# A client whose question is lost asks again.
_WAITING_MAX = 4096
# A lost probe is repeated after so long.
_REPEAT_NS = 50_000_000


class Reads:
    """The questions that a leader has, and a follower's part in answering them."""

    def __init__(self, context: Context, peers: Peers, services: Services) -> None:
        self._context = context
        self._peers = peers
        self._services = services
        self._new: deque[ReadRequest | CommitQuery] = deque()
        # Those of the round under way, and the commit position before it.
        self._asked: list[ReadRequest | CommitQuery] = []
        self._log_position = 0
        self._probe_id = 0
        self._repeat_ns = 0
        self._acked: set[int] = set()
        self.roll_call = RollCall(context, peers)
        """Finds out which members are ours, by the same question."""
        self._ready: deque[ServiceRead] = deque()

    def on_message(self, message: LeaderProbe | LeaderProbeAck | CommitQuery, followed_term_id: int) -> None:
        """Another member has sent a message.

        Args:
            message: Which.
            followed_term_id: The term in which this member follows a leader; -1 if it does not.
        """
        if isinstance(message, LeaderProbe):
            self._on_probe(message, followed_term_id)
        elif isinstance(message, LeaderProbeAck):
            self._on_ack(message)
        else:
            self._on_query(message)

    def add(self, request: ReadRequest) -> None:
        """A client of an open session asks."""
        self._add(request)

    def _on_query(self, query: CommitQuery) -> None:
        """A follower asks; of another leader, it hears nothing from this one."""
        context = self._context
        if context.role is Role.LEADER and query.leadership_term_id == context.leadership_term_id:
            self._add(query)

    def _add(self, request: ReadRequest | CommitQuery) -> None:
        if len(self._new) < _WAITING_MAX:
            self._new.append(request)

    def do_work(self) -> int:
        """Go on, as a leader; returns how many questions have gone to services."""
        if self._asked:
            self._go_on()
        elif self._new:
            self._begin()
        count = 0
        while self._ready and self._services.try_send(self._ready[0]):
            self._ready.popleft()
            count += 1
        return count

    def _begin(self) -> None:
        self._asked, self._new = list(self._new), deque()
        self._log_position = self._context.commit_position
        self._probe_id += 1
        self._acked.clear()
        self._ask()
        self._go_on()

    def _ask(self) -> None:
        context = self._context
        self._repeat_ns = context.now_ns + _REPEAT_NS
        self._peers.send_all(
            LeaderProbe(
                leadership_term_id=context.leadership_term_id,
                probe_id=self._probe_id,
                leader_member_id=context.config.member_id,
            )
        )

    def _go_on(self) -> None:
        if 1 + len(self._acked) >= quorum_of(len(self._peers) + 1):
            for one in self._asked:
                self._answer(one)
            self._asked = []
        elif self._context.now_ns >= self._repeat_ns:
            self._ask()

    def _answer(self, one: ReadRequest | CommitQuery) -> None:
        if isinstance(one, CommitQuery):
            self._peers.send(
                one.member_id,
                CommitAnswer(
                    leadership_term_id=one.leadership_term_id,
                    query_id=one.query_id,
                    log_position=self._log_position,
                ),
            )
            return
        self._ready.append(
            ServiceRead(
                cluster_session_id=one.cluster_session_id,
                correlation_id=one.correlation_id,
                log_position=self._log_position,
                service_id=one.service_id,
                payload=one.payload,
            )
        )

    def _on_ack(self, ack: LeaderProbeAck) -> None:
        """A member follows this one."""
        self.roll_call.on_ack(ack)
        if (ack.leadership_term_id, ack.probe_id) == (self._context.leadership_term_id, self._probe_id):
            self._acked.add(ack.member_id)

    def _on_probe(self, probe: LeaderProbe, followed_term_id: int) -> None:
        """A leader asks; a member that follows another, or stands, says nothing."""
        context = self._context
        is_its = probe.leader_member_id == context.leader_member_id and context.role is Role.FOLLOWER
        if is_its and probe.leadership_term_id == followed_term_id:
            self._peers.send(
                probe.leader_member_id,
                LeaderProbeAck(
                    leadership_term_id=probe.leadership_term_id,
                    probe_id=probe.probe_id,
                    member_id=context.config.member_id,
                ),
            )

    def clear(self) -> None:
        """The member leads no more: clients ask the next leader."""
        self._new.clear()
        self._asked.clear()
        self._ready.clear()
