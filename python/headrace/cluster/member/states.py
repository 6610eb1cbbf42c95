"""The states of a consensus module and of its elections, as data. Cluster specification 2.2, 5.4."""

from __future__ import annotations

from headrace._named_number import NamedNumber
from headrace._states import StateTable

__all__ = ["ELECTION", "MODULE", "TABLES", "ElectionState", "ModuleState", "Toggle"]


class ModuleState(NamedNumber):
    """See :data:`MODULE`."""

    INIT = 0
    ACTIVE = 1
    SUSPENDED = 2
    SNAPSHOT = 3
    QUITTING = 4
    TERMINATING = 5
    CLOSED = 6


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


class Toggle(NamedNumber):
    """What an operator asks of a cluster through its control counter."""

    INACTIVE = 0
    NEUTRAL = 1
    SUSPEND = 2
    RESUME = 3
    SNAPSHOT = 4
    SHUTDOWN = 5
    ABORT = 6
    STANDBY_SNAPSHOT = 7


class NodeToggle(NamedNumber):
    """What an operator asks of one member through its own control counter. Cluster specification 8.1."""

    INACTIVE = 0
    NEUTRAL = 1
    REPLICATE_STANDBY_SNAPSHOT = 2
    VALIDATE_RECORDING_LOG = 3


_M = ModuleState
MODULE: StateTable[ModuleState] = StateTable(
    "Consensus module",
    "What sequences the messages of clients into the log of a cluster.",
    {
        _M.INIT: "It starts: archive, snapshot, services.",
        _M.ACTIVE: "The log takes what clients and services send.",
        _M.SUSPENDED: "An operator has suspended the cluster: nothing enters the log until it is resumed.",
        _M.SNAPSHOT: "Services and module take a snapshot; nothing enters the log meanwhile.",
        _M.QUITTING: "Reserved by the specification.",
        _M.TERMINATING: "Services end at a position, and then the module.",
        _M.CLOSED: "It has ended.",
    },
    {
        _M.INIT: (_M.ACTIVE, _M.CLOSED),
        _M.ACTIVE: (_M.SUSPENDED, _M.SNAPSHOT, _M.TERMINATING, _M.CLOSED),
        _M.SUSPENDED: (_M.ACTIVE, _M.TERMINATING, _M.CLOSED),
        _M.SNAPSHOT: (_M.ACTIVE, _M.SUSPENDED, _M.TERMINATING, _M.CLOSED),
        _M.QUITTING: (_M.CLOSED,),
        _M.TERMINATING: (_M.CLOSED,),
        _M.CLOSED: (),
    },
)

_E = ElectionState
ELECTION: StateTable[ElectionState] = StateTable(
    "Election",
    "How a member comes to lead. A cluster of one goes through these states; others come with several members.",
    {
        _E.INIT: "What came before is left behind; the member stands for the next term.",
        _E.LEADER_LOG_REPLICATION: "The member waits until a quorum has all log entries that it has appended; its log "
        "continues there.",
        _E.LEADER_REPLAY: "The member's own log is replayed to the module and its services.",
        _E.LEADER_INIT: "The archive records the log, and services join it.",
        _E.LEADER_READY: "The term begins with its first entry in the log.",
        _E.CLOSED: "The member leads.",
    },
    {
        _E.INIT: (_E.LEADER_LOG_REPLICATION,),
        _E.LEADER_LOG_REPLICATION: (_E.LEADER_REPLAY, _E.INIT),
        _E.LEADER_REPLAY: (_E.LEADER_INIT, _E.INIT),
        _E.LEADER_INIT: (_E.LEADER_READY, _E.INIT),
        _E.LEADER_READY: (_E.CLOSED, _E.INIT),
        _E.CLOSED: (_E.INIT,),
    },
)

TABLES = (MODULE, ELECTION)
"""All of them."""
