"""The states of a consensus module and its sessions, as data, and what operators ask of it. Specification 2.2, 8.1."""

from __future__ import annotations

from enum import Enum, auto

from headrace._base.named_number import NamedNumber
from headrace._base.states import StateTable
from headrace.cluster.consensus.states import ELECTION

__all__ = [
    "CLUSTER_SESSION",
    "MODULE",
    "SUCCESSOR_SHIFT",
    "TABLES",
    "Command",
    "ModuleState",
    "NodeToggle",
    "SessionState",
    "Toggle",
]


class ModuleState(NamedNumber):
    """See :data:`MODULE`."""

    INIT = 0
    ACTIVE = 1
    SUSPENDED = 2
    SNAPSHOT = 3
    QUITTING = 4
    TERMINATING = 5
    CLOSED = 6


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
    TRANSFER_LEADERSHIP = 8
    """Ours alone. With the successor's id and one, or 0 for any, from bit :data:`SUCCESSOR_SHIFT` on."""


SUCCESSOR_SHIFT = 8
"""See :attr:`Toggle.TRANSFER_LEADERSHIP`."""


class NodeToggle(NamedNumber):
    """What an operator asks of one member through its own control counter. Cluster specification 8.1."""

    INACTIVE = 0
    NEUTRAL = 1
    REPLICATE_STANDBY_SNAPSHOT = 2
    VALIDATE_RECORDING_LOG = 3


class Command(NamedNumber):
    """What an operator asks of a leader by a message. Ours alone."""

    SNAPSHOT_ON_FOLLOWER = 0
    """Of the member of the request; -1: any."""
    REPLACE_MEMBER = 1
    """The member of the request, by the host or the endpoints in its text."""


class SessionState(Enum):
    """See :data:`CLUSTER_SESSION`."""

    CONNECTING = auto()
    CHALLENGED = auto()
    AUTHENTICATED = auto()
    REJECTED = auto()
    OPEN = auto()
    CLOSING = auto()
    CLOSED = auto()


_M = ModuleState
MODULE: StateTable[ModuleState] = StateTable(
    "consensus-module",
    "Puts the messages of clients into the log of a cluster.",
    {
        _M.INIT: "It starts: archive, snapshot, services.",
        _M.ACTIVE: "The log takes what clients and services send.",
        _M.SUSPENDED: "An operator has suspended the cluster; nothing enters the log until the cluster is resumed.",
        _M.SNAPSHOT: "Services and module take a snapshot; nothing enters the log meanwhile.",
        _M.QUITTING: "Reserved by the specification.",
        _M.TERMINATING: "Services end at a position, then the module.",
        _M.CLOSED: "It has ended.",
    },
    {
        _M.INIT: (_M.ACTIVE, _M.CLOSED),
        _M.ACTIVE: (_M.SUSPENDED, _M.SNAPSHOT, _M.TERMINATING, _M.CLOSED),
        _M.SUSPENDED: (_M.ACTIVE, _M.SNAPSHOT, _M.TERMINATING, _M.CLOSED),
        _M.SNAPSHOT: (_M.ACTIVE, _M.SUSPENDED, _M.TERMINATING, _M.CLOSED),
        _M.QUITTING: (_M.CLOSED,),
        _M.TERMINATING: (_M.CLOSED,),
        _M.CLOSED: (),
    },
)

_S = SessionState
CLUSTER_SESSION: StateTable[SessionState] = StateTable(
    "cluster-session",
    "A client of the cluster, at one member. The leader tells each step; the others have a session from the log, open.",
    {
        _S.CONNECTING: "It waits for its stream of answers and for the authenticator.",
        _S.CHALLENGED: "It waits for the client's answer to a challenge, and for the authenticator.",
        _S.AUTHENTICATED: "It waits for a place in the log.",
        _S.REJECTED: "The client is to hear that it is not served.",
        _S.OPEN: "The log has its opening, and takes its messages.",
        _S.CLOSING: "Its messages count no more; the log is to have its end, if it had its opening.",
        _S.CLOSED: "It has ended.",
    },
    {
        _S.CONNECTING: (_S.CHALLENGED, _S.AUTHENTICATED, _S.REJECTED, _S.CLOSING, _S.CLOSED),
        _S.CHALLENGED: (_S.AUTHENTICATED, _S.REJECTED, _S.CLOSING, _S.CLOSED),
        _S.AUTHENTICATED: (_S.OPEN, _S.REJECTED, _S.CLOSING, _S.CLOSED),
        _S.REJECTED: (_S.CLOSING, _S.CLOSED),
        _S.OPEN: (_S.CLOSING, _S.CLOSED),
        _S.CLOSING: (_S.CLOSED,),
        # An election undoes an end that was not agreed upon.
        _S.CLOSED: (_S.CLOSING,),
    },
)

TABLES = (MODULE, ELECTION, CLUSTER_SESSION)
"""All of them."""
