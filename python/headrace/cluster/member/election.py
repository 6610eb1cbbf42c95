"""How a member comes to lead: events in, actions out. Cluster specification 5.

No clock, socket, file or thread is in here, and nothing waits. The module carries out the action that stands in
:attr:`Election.action` and tells what came of it. A cluster of one stands for the next term, goes on with its own log,
replays it, and leads. Several members add states of ``states.py``, their messages as events, and votes as actions.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace._states import Life
from headrace.cluster.member.states import ELECTION, ElectionState

__all__ = [
    "Action",
    "AppendTerm",
    "CreateLog",
    "Election",
    "JoinLog",
    "Lead",
    "LeaveTerm",
    "Progress",
    "ReplayLog",
    "StandForTerm",
]


@dataclass(frozen=True, slots=True)
class LeaveTerm:
    """Undo what was not committed before a position, and give up the log; done gives the appended position."""

    log_position: int


@dataclass(frozen=True, slots=True)
class StandForTerm:
    """Note a term in the node-state file before anything else of it; done gives the term."""

    candidate_term_id: int
    append_position: int


@dataclass(frozen=True, slots=True)
class CreateLog:
    """Make the publication of the log, which goes on at a position."""

    append_position: int


@dataclass(frozen=True, slots=True)
class ReplayLog:
    """Replay the member's own log to module and services."""

    log_position: int
    append_position: int


@dataclass(frozen=True, slots=True)
class JoinLog:
    """Have the log recorded, services join it, and the term in the recording log."""

    leadership_term_id: int
    log_position: int
    is_startup: bool


@dataclass(frozen=True, slots=True)
class AppendTerm:
    """Begin the term with its first entry."""

    leadership_term_id: int
    log_position: int


@dataclass(frozen=True, slots=True)
class Lead:
    """The election is over: take ingress."""

    leadership_term_id: int
    log_position: int
    is_startup: bool


Action = LeaveTerm | StandForTerm | CreateLog | ReplayLog | JoinLog | AppendTerm | Lead


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a member stands when it enters an election.

    Attributes:
        leadership_term_id: The last term of its log; -1 before the first.
        log_position: Up to where it has applied its log.
        append_position: Up to where it has recorded it.
        candidate_term_id: The last term that it voted or stood in.
        is_startup: Whether the member has just started.
    """

    leadership_term_id: int
    log_position: int
    append_position: int
    candidate_term_id: int
    is_startup: bool


class Election:
    """One election of a cluster of one member."""

    def __init__(self, progress: Progress) -> None:
        self._life = Life(ELECTION)
        self._is_startup = progress.is_startup
        self.log_leadership_term_id = progress.leadership_term_id
        """The last term of the log."""
        self.leadership_term_id = progress.leadership_term_id
        """The term that the member stands for, or leads."""
        self.candidate_term_id = max(progress.candidate_term_id, progress.leadership_term_id)
        """The last term that it stood for."""
        self.log_position = progress.log_position
        """Up to where the log is applied."""
        self.append_position = progress.append_position
        """Up to where it is recorded."""
        # The last term that it stood for was not begun, and is the next one too.
        self._stands_again = self._has_stood = False
        self.action: Action = self._stand() if progress.is_startup else LeaveTerm(progress.log_position)
        """What is to be done now."""

    @property
    def state(self) -> ElectionState:
        """Where it is."""
        return self._life.state

    @property
    def is_closed(self) -> bool:
        """Whether the member leads, and has been told so."""
        return self.state is ElectionState.CLOSED

    def _stand(self) -> StandForTerm:
        following = self.candidate_term_id if self._stands_again else self.candidate_term_id + 1
        return StandForTerm(following, self.append_position)

    def left_term(self, append_position: int) -> None:
        """What came before is undone, and the log ends here."""
        self.append_position = append_position
        self.action = self._stand()

    def stood(self, term_id: int) -> None:
        """The term is noted; the only member has all votes."""
        self.candidate_term_id = self.leadership_term_id = term_id
        self._has_stood = True
        self._life.enter(ElectionState.LEADER_LOG_REPLICATION, "a cluster of one has all votes")
        self.action = CreateLog(self.append_position)

    def log_created(self) -> None:
        """There is a publication; a quorum of one has the log up to there."""
        self._life.enter(ElectionState.LEADER_REPLAY, "a quorum has the log")
        if self.log_position < self.append_position:
            self.action = ReplayLog(self.log_position, self.append_position)
        else:
            self.replayed(self.log_position)

    def replayed(self, log_position: int) -> None:
        """Module and services have applied the log up to there."""
        self.log_position = log_position
        self._life.enter(ElectionState.LEADER_INIT, "the log is replayed")
        self.action = JoinLog(self.leadership_term_id, log_position, self._is_startup)

    def joined(self) -> None:
        """The log is recorded, and services read it."""
        self.log_leadership_term_id = self.leadership_term_id
        self._life.enter(ElectionState.LEADER_READY, "the log is recorded and read")
        self.action = AppendTerm(self.leadership_term_id, self.log_position)

    def term_appended(self) -> None:
        """The first entry of the term is in the log."""
        self._life.enter(ElectionState.CLOSED, "the term has begun")
        self.action = Lead(self.leadership_term_id, self.log_position, self._is_startup)

    def failed(self, log_position: int, reason: str, *, is_begun: bool) -> None:
        """Something of it could not be done: begin anew from what is committed.

        Args:
            log_position: Up to where that is.
            reason: What failed.
            is_begun: Whether a file has the term that the member stood for. Of one that was not begun the log has
                nothing, and there is no other member who could: the member stands for it again. Otherwise a full disk
                would have it note a term with each try.
        """
        self._stands_again = self._has_stood and not is_begun
        if self.state is not ElectionState.INIT:
            self._life.enter(ElectionState.INIT, reason, is_fault=True)
        self.log_position = log_position
        self.append_position = max(log_position, self.append_position)
        self.action = LeaveTerm(log_position)
