"""How a cluster ends: services, and then the module, at a position on which all members agree. Specification 8.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace._agent.tasks import Task
from headrace.cluster.member.states import ModuleState
from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.consensus import TerminationAck, TerminationPosition
from headrace.cluster.protocol.control import ServiceTerminationPosition

if TYPE_CHECKING:
    from headrace.clock import Deadline
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.log_recording import LogRecording
    from headrace.cluster.member.peers import Peers
    from headrace.cluster.member.services import Services

__all__ = ["Termination"]


class Termination:
    """Ends this member, and a leader's followers before it.

    Args:
        context: What the module's parts share.
        services: End at the position.
        peers: The other members.
        recording: Notes where the term ends.
    """

    def __init__(self, context: Context, services: Services, peers: Peers, recording: LogRecording) -> None:
        self._context = context
        self._services = services
        self._peers = peers
        self._recording = recording
        # What the leader that is followed has asked for.
        self._asked: TerminationPosition | None = None
        self._acked: set[int] = set()
        self.has_ended = False
        """Whether the module is to end: services have ended, and a leader's followers, or the time for it is over."""

    # --- messages --------------------------------------------------------------------------------------------------

    def announce(self, log_position: int) -> None:
        """Tell all followers where they end."""
        self._acked.clear()
        term_id = self._context.leadership_term_id
        self._peers.send_all(TerminationPosition(leadership_term_id=term_id, log_position=log_position))

    def on_position(self, message: TerminationPosition) -> None:
        """The leader that the member follows tells where it ends."""
        context = self._context
        if context.role is Role.FOLLOWER and message.leadership_term_id == context.leadership_term_id:
            self._asked = message

    def on_ack(self, message: TerminationAck) -> None:
        """A follower has ended."""
        if message.leadership_term_id == self._context.leadership_term_id:
            self._acked.add(message.member_id)

    def forget(self) -> None:
        """Another term begins: its leader knows nothing of a termination."""
        self._asked = None

    @property
    def is_pending(self) -> bool:
        """Whether a leader has told where this follower ends."""
        return self._asked is not None

    @property
    def is_due(self) -> bool:
        """Whether the member has read as far, and takes no snapshot there."""
        context, asked = self._context, self._asked
        has_read = asked is not None and context.commit_position >= asked.log_position
        return has_read and context.state in (ModuleState.ACTIVE, ModuleState.SUSPENDED)

    # --- the end ---------------------------------------------------------------------------------------------------

    def followed(self) -> Task[None]:
        """End as the leader asked; it is told."""
        asked, self._asked = self._asked, None
        assert asked is not None, "it is due"
        context = self._context
        deadline = self._begin("the leader requested it")
        yield from self._end_services(asked.log_position, deadline)
        if context.leadership_term_id == asked.leadership_term_id:
            ack = TerminationAck(
                leadership_term_id=asked.leadership_term_id,
                log_position=asked.log_position,
                member_id=context.config.member_id,
            )
            self._peers.send(context.leader_member_id, ack)
        else:
            context.log.error("termination ack not sent - different leadership term to request")
        self._end(asked.log_position)

    def led(self, log_position: int) -> Task[None]:
        """End as an operator asked."""
        context = self._context
        deadline = self._begin("an operator requested it")
        yield from self._end_services(log_position, deadline)
        yield from _until_or(
            deadline,
            lambda: context.commit_position >= log_position and len(self._acked) >= len(self._peers),
        )
        self._end(log_position)

    def _begin(self, reason: str) -> Deadline:
        context = self._context
        context.enter(ModuleState.TERMINATING, reason)
        return context.client.clock.deadline(context.config.termination_timeout_ns / 1e9)

    def _end_services(self, log_position: int, deadline: Deadline) -> Task[None]:
        services = self._services
        if not services.count:
            return
        services.send(ServiceTerminationPosition(log_position=log_position, ack_required=True))
        for _ in services.acked(log_position):
            if deadline.is_over:
                self._context.log.error(f"not all services have ended at log position {log_position} in time")
                return
            yield

    def _end(self, log_position: int) -> None:
        context = self._context
        if context.commit_position >= log_position:
            self._recording.end_term(context.leadership_term_id, log_position)
        else:
            # The next term begins where this one is said to end; without a word the next start asks the archive.
            context.log.error(
                f"the log is agreed upon up to {context.commit_position} only, and not up to {log_position}, where the "
                "term was to end: the next start takes its end from the archive"
            )
        context.enter(ModuleState.CLOSED, "expected termination")
        context.log.warning("expected termination")
        self.has_ended = True


def _until_or(deadline: Deadline, is_true: Callable[[], bool]) -> Task[None]:
    while not (is_true() or deadline.is_over):
        yield
