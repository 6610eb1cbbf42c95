"""Asks which members are ours: those of Aeron skip the question, as they skip all messages of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._agent.tasks import Task
from headrace.cluster.protocol.consensus import LeaderProbe, LeaderProbeAck

if TYPE_CHECKING:
    from collections.abc import Collection

    from headrace.cluster.member.context import Context
    from headrace.cluster.member.peers import Peers

__all__ = ["RollCall"]

_REPEAT_NS = 50_000_000
# So many intervals of heartbeats a member has for its answer.
_INTERVALS = 5


class RollCall:
    """The question of a leader, and the answers. Its ids are below zero: those of rounds for reads are above."""

    def __init__(self, context: Context, peers: Peers) -> None:
        self._context = context
        self._peers = peers
        self._id = 0
        self._present: set[int] = set()

    def answered(self, wanted: Collection[int]) -> Task[frozenset[int]]:
        """Who follows this leader and is ours: of those that are wanted, once all have answered or the time is over."""
        context = self._context
        self._id -= 1
        self._present.clear()
        deadline = context.clock.deadline(_INTERVALS * context.config.leader_heartbeat_interval_ns / 1e9)
        repeat_ns = 0
        while not (deadline.is_over or self._present.issuperset(wanted)):
            if context.now_ns >= repeat_ns:
                repeat_ns = context.now_ns + _REPEAT_NS
                self._peers.send_all(
                    LeaderProbe(
                        leadership_term_id=context.leadership_term_id,
                        probe_id=self._id,
                        leader_member_id=context.config.member_id,
                    )
                )
            yield
        return frozenset(self._present)

    def on_ack(self, ack: LeaderProbeAck) -> None:
        """A member follows this one."""
        if (ack.leadership_term_id, ack.probe_id) == (self._context.leadership_term_id, self._id):
            self._present.add(ack.member_id)
