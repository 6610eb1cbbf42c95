"""What a member is to do, as :class:`~headrace.cluster.consensus.core.Consensus` decides.

Actions are carried out in the order in which they come. One that stores something is on the disk before the next one
is begun: a vote is stored before it is sent. A :data:`Task` takes its time: the member goes on meanwhile, and tells the
core when the task is done or has failed. A new task replaces the one under way, which is given up first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.consensus import (
    AppendPosition,
    CanvassPosition,
    CatchupPosition,
    CommitPosition,
    NewLeadershipTerm,
    RequestVote,
    StopCatchup,
    TransferLeadership,
    Vote,
)

__all__ = [
    "OF_ELECTIONS",
    "Action",
    "AddLiveLog",
    "AppendTerm",
    "CreateLog",
    "DropTerms",
    "Follow",
    "JoinLog",
    "Lead",
    "LeaveLog",
    "Message",
    "OpenLog",
    "RecordTerm",
    "RemoveCatchup",
    "ReplayLog",
    "ReplicateLog",
    "Send",
    "SetCommitPosition",
    "StartCatchup",
    "StopReplay",
    "Store",
    "StoreVote",
    "Task",
    "TruncateLog",
]

Message = (
    CanvassPosition
    | RequestVote
    | Vote
    | NewLeadershipTerm
    | AppendPosition
    | CommitPosition
    | CatchupPosition
    | StopCatchup
    | TransferLeadership
)
"""What members send each other about terms and positions."""

OF_ELECTIONS = get_args(Message)
"""The same, for a look at what came."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message to a member. A lost one is sent again, as long as it is of use."""

    member_id: int
    message: Message


@dataclass(frozen=True, slots=True)
class StoreVote:
    """Store the highest term that the member stands for or votes in, before anything else of it."""

    candidate_term_id: int
    log_position: int


@dataclass(frozen=True, slots=True)
class RecordTerm:
    """Store in the recording log that a term begins at a position; terms skipped before it are empty ones there."""

    leadership_term_id: int
    term_base_log_position: int


@dataclass(frozen=True, slots=True)
class DropTerms:
    """Take terms that begin after a position out of the recording log, and end the last one there."""

    log_position: int


@dataclass(frozen=True, slots=True)
class SetCommitPosition:
    """Let services read the log up to here."""

    log_position: int


@dataclass(frozen=True, slots=True)
class AddLiveLog:
    """Receive the leader's live log beside its replay."""


@dataclass(frozen=True, slots=True)
class RemoveCatchup:
    """Receive the leader's replay no more."""


@dataclass(frozen=True, slots=True)
class StartCatchup:
    """Replay the log to a follower."""

    member_id: int
    log_position: int
    endpoint: str


@dataclass(frozen=True, slots=True)
class StopReplay:
    """End the replay to a follower."""

    member_id: int


@dataclass(frozen=True, slots=True)
class Lead:
    """The term has begun: take ingress."""

    leadership_term_id: int
    log_position: int
    is_startup: bool


@dataclass(frozen=True, slots=True)
class Follow:
    """The member follows a leader: redirect clients to it."""

    leadership_term_id: int
    log_position: int
    leader_member_id: int


@dataclass(frozen=True, slots=True)
class LeaveLog:
    """Take no ingress, undo what was not committed, give up the log; done with the position that the archive has."""

    log_position: int


@dataclass(frozen=True, slots=True)
class TruncateLog:
    """Leave the log, and have the archive delete everything recorded after a position."""

    log_position: int


@dataclass(frozen=True, slots=True)
class ReplicateLog:
    """Copy the leader's recording up to a position."""

    leader_member_id: int
    leader_recording_id: int
    log_position: int


@dataclass(frozen=True, slots=True)
class CreateLog:
    """Make the leader's publication, which continues at a position; done with its session id."""

    log_position: int


@dataclass(frozen=True, slots=True)
class ReplayLog:
    """Replay the member's own log to the module and its services."""

    log_position: int
    end_position: int


@dataclass(frozen=True, slots=True)
class OpenLog:
    """Subscribe to the leader's log, or to a replay of it; done with the endpoint of the replay."""

    log_session_id: int
    log_position: int
    is_catchup: bool


@dataclass(frozen=True, slots=True)
class JoinLog:
    """Have the archive record the log and services join it; done with the recording id."""

    role: Role
    leadership_term_id: int
    log_position: int
    is_startup: bool


@dataclass(frozen=True, slots=True)
class AppendTerm:
    """Append the first entry of the term; done with the position after it."""

    leadership_term_id: int
    log_position: int


Task = LeaveLog | TruncateLog | ReplicateLog | CreateLog | ReplayLog | OpenLog | JoinLog | AppendTerm
"""What takes its time."""

Store = StoreVote | RecordTerm | DropTerms
"""What is on the disk before the next action is begun."""

Action = (
    Send
    | Store
    | SetCommitPosition
    | AddLiveLog
    | RemoveCatchup
    | StartCatchup
    | StopReplay
    | Lead
    | Follow
    | Task
)
