"""Carries an election through: does what `election.py` decides, one action after the other. Specification 5.4, 5.9."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._exceptions import ArchiveError
from headrace.cluster.errors import ClusterFileError, ClusterTerminalError
from headrace.cluster.ground.courses import Course
from headrace.cluster.member.election import (
    AppendTerm,
    CreateLog,
    Election,
    JoinLog,
    Lead,
    LeaveTerm,
    Progress,
    ReplayLog,
    StandForTerm,
)
from headrace.cluster.protocol.codes import EventCode
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.cluster.member.connecting import Connecting
    from headrace.cluster.member.context import Context
    from headrace.cluster.member.egress import Egress
    from headrace.cluster.member.leadership import Leadership

__all__ = ["Electing"]

_STORAGE_SPACE = "STORAGE_SPACE"
# A replay may be lost on a busy machine, and goes on from where it came to. One that comes no further never will.
_REPLAYS_MAX = 3


class Electing:
    """The way of a member from one term to the next.

    Args:
        context: What the module's parts share.
        leadership: Does to the log what an election wants.
        connecting: Clients that are not in the log yet: an election turns them away.
        egress: Tells clients what the election has undone.
    """

    def __init__(
        self, context: Context, leadership: Leadership, connecting: Connecting, egress: Egress
    ) -> None:
        self._context = context
        self._leadership = leadership
        self._connecting = connecting
        self._egress = egress

    def elected(self, leadership_term_id: int, append_position: int, *, is_startup: bool) -> Course[Lead]:
        """Goes on once the member is to lead. What goes wrong is logged, and the member stands again.

        Raises:
            ClusterTerminalError: The member cannot go on, or its log is damaged.
            ClusterFileError: Its recording log is damaged.
            HeadraceError: The archive is gone, or has no room.
        """
        context = self._context
        progress = Progress(
            leadership_term_id,
            context.commit_position,
            append_position,
            context.node_state.candidate_term.term_id,
            is_startup,
        )
        election = Election(progress)
        context.counters.election_count.get_and_add(1)
        replay_count, replayed_position = 0, NULL_VALUE
        while not isinstance(election.action, Lead):
            context.counters.election_state.value = election.state
            try:
                yield from self._carried_out(election)
            except (ClusterTerminalError, ClusterFileError):
                raise
            except Exception as failure:
                if not context.archive.is_ready or _is_out_of_space(failure):
                    raise
                if isinstance(election.action, ReplayLog):
                    is_further = context.commit_position > replayed_position
                    replay_count = 1 if is_further else replay_count + 1
                    replayed_position = context.commit_position
                    if replay_count == _REPLAYS_MAX:
                        raise _damaged_log(
                            replayed_position, election.action.append_position, failure
                        ) from failure
                context.election_failure = str(failure)
                context.log.error(f"election in state {election.state.name}: {failure}", failure)
                last = context.recording_log.last_term
                is_begun = last is not None and last.leadership_term_id >= election.candidate_term_id
                election.failed(context.commit_position, str(failure), is_begun=is_begun)
                deadline = context.client.clock.deadline(context.config.election_status_interval_ns / 1e9)
                while not deadline.is_over:
                    yield
        context.election_failure = ""
        return election.action

    def _carried_out(self, election: Election) -> Course[None]:
        """Do what the election wants, and tell it what came of it."""
        action, leadership = election.action, self._leadership
        if isinstance(action, LeaveTerm):
            position = yield from leadership.left(action)
            self._undo_uncommitted()
            election.left_term(position)
        elif isinstance(action, StandForTerm):
            leadership.stood(action)
            election.stood(action.candidate_term_id)
        elif isinstance(action, CreateLog):
            yield from leadership.created(action)
            election.log_created()
        elif isinstance(action, ReplayLog):
            election.replayed((yield from leadership.replayed(action)))
        elif isinstance(action, JoinLog):
            yield from leadership.joined(action)
            election.joined()
        elif isinstance(action, AppendTerm):
            yield from leadership.term_appended(action)
            election.term_appended()

    def _undo_uncommitted(self) -> None:
        context = self._context
        gone, state = context.applied.restore_uncommitted(context.commit_position)
        for session in gone:
            self._egress.event(session, context.leadership_term_id, EventCode.CLOSED, "election")
            session.disconnect()
        self._connecting.close_all(context.leadership_term_id, "election")
        for session in context.applied.sessions:
            session.disconnect()
        if state is not None:
            context.enter(state, "what was not agreed upon is undone")


def _damaged_log(position: int, end: int, failure: Exception) -> ClusterTerminalError:
    return ClusterTerminalError(
        f"the log is damaged after position {position} of {end}: {_REPLAYS_MAX} replays came no further: {failure}; "
        "restore the archive's directory and the cluster's from one copy"
    )


def _is_out_of_space(failure: Exception) -> bool:
    """Whether the archive has no room for the log, so that trying again cannot help."""
    return isinstance(failure, ArchiveError) and failure.code_name == _STORAGE_SPACE
