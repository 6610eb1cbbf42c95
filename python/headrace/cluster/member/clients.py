"""What clients send to a member: a leader takes it into the log, a follower tells them who leads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cluster.member.egress import Egress
from headrace.cluster.member.follower_reads import FollowerReads
from headrace.cluster.member.ingress import Ingress
from headrace.cluster.member.reads import OF_READS, Reads
from headrace.cluster.member.redirects import Redirects
from headrace.cluster.member.rollback import roll_back
from headrace.cluster.member.session_checks import SessionChecks
from headrace.cluster.member.session_opening import SessionOpening
from headrace.cluster.member.states import ModuleState
from headrace.cluster.protocol.consensus import CommitAnswer

if TYPE_CHECKING:
    from headrace._agent.tasks import RunningTask
    from headrace.client import Subscription
    from headrace.cluster.consensus.actions import Follow, Lead
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.leader_log import LeaderLog
    from headrace.cluster.member.peers import Peers
    from headrace.cluster.member.services import Services
    from headrace.security.authorisation import AuthorisationService
    from headrace.security.verdicts import Verdicts

__all__ = ["OF_CLIENTS", "Clients"]

OF_CLIENTS = (*OF_READS, CommitAnswer)
"""What members send each other for reads."""


class Clients:
    """Sessions, ingress, egress and reads of a member.

    Args:
        context: What the module's parts share.
        peers: The other members, which a read asks who leads.
        services: Answer reads.
        leader_log: Takes what clients send.
        task: What the module is on; meanwhile a leader takes nothing.
        verdicts: Say who a client is.
        authorisation: Says what it may do.

    Attributes:
        ingress: Where a leader hears clients; ``None`` while the member does not lead.
        redirects: Where a follower hears them; ``None`` while the member does not follow.
        egress: The streams to clients.
        opening: Sessions that are not open yet.
        checks: Closes sessions whose clients are gone.
        reads: Questions to the leader's services.
        follower_reads: Questions to a follower's services.
    """

    def __init__(
        self,
        context: Context,
        peers: Peers,
        services: Services,
        leader_log: LeaderLog,
        task: RunningTask,
        verdicts: Verdicts,
        authorisation: AuthorisationService | None,
    ) -> None:
        config = context.config
        self._context = context
        self._log = leader_log
        self._task = task
        self._authorisation = authorisation
        self.ingress: Ingress | None = None
        self.redirects: Redirects | None = None
        self.egress = Egress(config.member_id, config.leader_heartbeat_timeout_ns)
        self.opening = SessionOpening(context, self.egress, verdicts)
        self.checks = SessionChecks(context, self.egress)
        self.reads = Reads(context, peers, services)
        self.follower_reads = FollowerReads(context, peers, services)

    @property
    def subscriptions(self) -> list[Subscription]:
        """Where clients are heard now."""
        return [
            one for part in (self.ingress, self.redirects) if part is not None for one in part.subscriptions
        ]

    # --- terms -----------------------------------------------------------------------------------------------------

    def lead(self, lead: Lead) -> None:
        """Take what clients send, from now on."""
        writer = self._log.writer
        assert writer is not None, "the log is joined before the member leads"
        self.close()
        self._context.begin_turn()
        self.checks.take_over(is_startup=lead.is_startup)
        self.ingress = Ingress(
            self._context, self.opening, self.egress, self._authorisation, writer, self.reads
        )

    def follow(self, follow: Follow) -> None:
        """Tell clients who leads, from now on."""
        self.close()
        self.redirects = Redirects(self._context, self.egress, follow, self.follower_reads)

    def leave(self) -> None:
        """Hear clients no more: the member leaves the log."""
        self.close()
        self.reads.clear()
        self.follower_reads.clear()

    def roll_back(self) -> None:
        """Undo what is not in the log on which members agree."""
        roll_back(self._context, self.egress, self.opening)

    def close(self) -> None:
        """Close the streams from clients."""
        parts = self.ingress, self.redirects
        self.ingress = self.redirects = None
        for part in parts:
            if part is not None:
                part.close()

    # --- turns -----------------------------------------------------------------------------------------------------

    def poll(self) -> int:
        """Take what clients send: as a leader into the log, with what services send and the timers that are due."""
        if self.redirects is not None:
            return self.redirects.poll()
        context, writer, ingress = self._context, self._log.writer, self.ingress
        if ingress is None or writer is None:
            return 0
        work_count = 0
        if context.state is ModuleState.ACTIVE and self._task.is_idle:
            now = context.now
            work_count += context.applied.timers.poll(now, lambda timer_id: writer.timer(timer_id, now))
            for pending in context.applied.pending:
                if pending.has_unsent:
                    work_count += pending.poll(
                        lambda session_id, payload: writer.message(session_id, now, payload)
                    )
            work_count += ingress.poll()
        return work_count + self.reads.do_work()

    def check(self) -> int:
        """What a leader does for sessions from time to time, while it takes what clients send."""
        writer, ingress = self._log.writer, self.ingress
        if writer is None or ingress is None or self._context.state is not ModuleState.ACTIVE:
            return 0
        return self.opening.do_work(writer, ingress.hears) + self.checks.do_work(writer)

    def on_member(self, message: Any, term_id: int) -> None:
        """Another member has sent one of :data:`OF_CLIENTS`.

        Args:
            message: The message.
            term_id: The term in which this member follows a leader; -1 if it does not.
        """
        if isinstance(message, CommitAnswer):
            self.follower_reads.on_answer(message, term_id)
        else:
            self.reads.on_message(message, term_id)
