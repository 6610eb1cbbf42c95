"""The states of an election, as data. Cluster specification 5.4."""

from __future__ import annotations

from headrace._base.named_number import NamedNumber
from headrace._base.states import StateTable

__all__ = ["ELECTION", "LEADER_STATES", "ElectionState"]


class ElectionState(NamedNumber):
    """See :data:`ELECTION`."""

    INIT = 0
    CANVASS = 1
    NOMINATE = 2
    CANDIDATE_BALLOT = 3
    FOLLOWER_BALLOT = 4
    LEADER_LOG_REPLICATION = 5
    LEADER_REPLAY = 6
    LEADER_INIT = 7
    LEADER_READY = 8
    FOLLOWER_LOG_REPLICATION = 9
    FOLLOWER_REPLAY = 10
    FOLLOWER_CATCHUP_INIT = 11
    FOLLOWER_CATCHUP_AWAIT = 12
    FOLLOWER_CATCHUP = 13
    FOLLOWER_LOG_INIT = 14
    FOLLOWER_LOG_AWAIT = 15
    FOLLOWER_READY = 16
    CLOSED = 17


_E = ElectionState
# A member that has voted, or looks for a leader, may hear of one.
_FOLLOWING = (_E.FOLLOWER_LOG_REPLICATION, _E.FOLLOWER_REPLAY)

ELECTION: StateTable[ElectionState] = StateTable(
    "election",
    "How a member comes to lead or to follow. A cluster of one stands for the next term at once.",
    {
        _E.INIT: "The member leaves the log, and undoes what was not committed.",
        _E.CANVASS: "Members without a leader tell each other how far their logs go.",
        _E.NOMINATE: "The member has the best log that it knows of, and stands after a random delay.",
        _E.CANDIDATE_BALLOT: "The member has stored its vote for itself, and asks the others for theirs.",
        _E.FOLLOWER_BALLOT: "The member has voted for another, and waits for the leader.",
        _E.LEADER_LOG_REPLICATION: "The elected member waits until a quorum has its whole log and knows the term.",
        _E.LEADER_REPLAY: "The leader replays its log to the module and its services.",
        _E.LEADER_INIT: "The leader's archive records the log, and its services join.",
        _E.LEADER_READY: "The term begins with its first entry, once a quorum is ready for it.",
        _E.FOLLOWER_LOG_REPLICATION: "The follower copies the terms that it lacks from the leader's archive.",
        _E.FOLLOWER_REPLAY: "The follower replays its own log as far as it is committed.",
        _E.FOLLOWER_CATCHUP_INIT: "The follower asks the leader to replay the log from where its own ends.",
        _E.FOLLOWER_CATCHUP_AWAIT: "The follower waits for that replay and records it, and its services join.",
        _E.FOLLOWER_CATCHUP: "The follower reads the replay until its log is as long as the leader's.",
        _E.FOLLOWER_LOG_INIT: "The follower subscribes to the leader's log.",
        _E.FOLLOWER_LOG_AWAIT: "The follower waits for the log and records it, and its services join.",
        _E.FOLLOWER_READY: "The follower tells the leader how far its log goes.",
        _E.CLOSED: "The member leads or follows.",
    },
    {
        _E.INIT: (_E.CANVASS, _E.LEADER_LOG_REPLICATION),
        _E.CANVASS: (_E.NOMINATE, _E.FOLLOWER_BALLOT, *_FOLLOWING, _E.INIT),
        _E.NOMINATE: (_E.CANDIDATE_BALLOT, _E.FOLLOWER_BALLOT, _E.CANVASS, *_FOLLOWING, _E.INIT),
        _E.CANDIDATE_BALLOT: (
            _E.LEADER_LOG_REPLICATION,
            _E.FOLLOWER_BALLOT,
            _E.CANVASS,
            *_FOLLOWING,
            _E.INIT,
        ),
        _E.FOLLOWER_BALLOT: (_E.CANVASS, *_FOLLOWING, _E.INIT),
        _E.LEADER_LOG_REPLICATION: (_E.LEADER_REPLAY, _E.INIT),
        _E.LEADER_REPLAY: (_E.LEADER_INIT, _E.INIT),
        _E.LEADER_INIT: (_E.LEADER_READY, _E.INIT),
        _E.LEADER_READY: (_E.CLOSED, _E.INIT),
        _E.FOLLOWER_LOG_REPLICATION: (_E.CANVASS, _E.INIT),
        _E.FOLLOWER_REPLAY: (_E.FOLLOWER_CATCHUP_INIT, _E.FOLLOWER_LOG_INIT, _E.INIT),
        _E.FOLLOWER_CATCHUP_INIT: (_E.FOLLOWER_CATCHUP_AWAIT, _E.INIT),
        _E.FOLLOWER_CATCHUP_AWAIT: (_E.FOLLOWER_CATCHUP, _E.INIT),
        _E.FOLLOWER_CATCHUP: (_E.FOLLOWER_LOG_INIT, _E.INIT),
        _E.FOLLOWER_LOG_INIT: (_E.FOLLOWER_LOG_AWAIT, _E.FOLLOWER_READY, _E.INIT),
        _E.FOLLOWER_LOG_AWAIT: (_E.FOLLOWER_READY, _E.INIT),
        _E.FOLLOWER_READY: (_E.CLOSED, _E.INIT),
        _E.CLOSED: (_E.INIT,),
    },
)

LEADER_STATES = frozenset((_E.LEADER_LOG_REPLICATION, _E.LEADER_REPLAY, _E.LEADER_INIT, _E.LEADER_READY))
"""The states of an elected member whose term has not begun."""
