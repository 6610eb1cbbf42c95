"""Finds the member whose service has parted from the others: a service that does not follow from the log alone."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from headrace.cluster.consensus.peers import quorum_of
from headrace.cluster.errors import ClusterTerminalError
from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.consensus import Divergence, MemberStateHash

if TYPE_CHECKING:
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.peers import Peers
    from headrace.cluster.protocol.control import StateHash

__all__ = ["StateComparison"]

# A member that is further behind is not compared at these positions.
_PLACES_MAX = 256


class StateComparison:
    """Compares hashes of the services' states. The leader does; each member tells it what its services have said."""

    def __init__(self, context: Context, peers: Peers) -> None:
        self._context = context
        self._peers = peers
        # By position and service: the hash of each member.
        self._hashes: dict[tuple[int, int], dict[int, int]] = {}

    def on_service(self, state: StateHash) -> None:
        """A service of this member has told a hash.

        Raises:
            ClusterTerminalError: This member leads, and its service has another state than those of a majority.
        """
        context = self._context
        if not self._peers:
            return
        message = MemberStateHash(
            leadership_term_id=context.leadership_term_id,
            log_position=state.log_position,
            hash=state.hash,
            member_id=context.config.member_id,
            service_id=state.service_id,
        )
        if context.role is Role.LEADER:
            self.on_member(message)
        else:
            self._peers.send(context.leader_member_id, message)

    def on_member(self, message: MemberStateHash) -> None:
        """A member has told a hash.

        Raises:
            ClusterTerminalError: As :meth:`on_service`.
        """
        if self._context.role is not Role.LEADER:
            return
        place = message.log_position, message.service_id
        hashes = self._hashes.setdefault(place, {})
        hashes[message.member_id] = message.hash
        while len(self._hashes) > _PLACES_MAX:
            del self._hashes[next(iter(self._hashes))]
        agreed, count = Counter(hashes.values()).most_common(1)[0]
        if count < quorum_of(len(self._peers) + 1):
            return
        for member_id in [one for one, found in hashes.items() if found != agreed]:
            del hashes[member_id]
            self._tell(member_id, place)

    def _tell(self, member_id: int, place: tuple[int, int]) -> None:
        """Tell a member that it is alone."""
        context, (position, service_id) = self._context, place
        context.log.error(
            f"service_id={service_id} of member {member_id} has another state than those of a majority, at "
            f"log_position={position}; the member stops"
        )
        message = Divergence(
            leadership_term_id=context.leadership_term_id, log_position=position, service_id=service_id
        )
        if member_id == context.config.member_id:
            self.on_divergence(message)
        else:
            self._peers.send(member_id, message)

    def on_divergence(self, message: Divergence) -> None:
        """This member is alone.

        Raises:
            ClusterTerminalError: Always: it stops, and the cluster goes on without it.
        """
        raise ClusterTerminalError(
            f"service_id={message.service_id} of this member has another state than those of a majority, at "
            f"log_position={message.log_position}: something in it does not follow from the log, such as a clock, a "
            "random number or the order of a set. `headrace cluster check-determinism` looks for that. A start replays "
            "the log"
        )
