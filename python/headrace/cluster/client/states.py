"""The states of a cluster's client: ``docs/reference/states.md`` shows their tables."""

from __future__ import annotations

from enum import Enum

from headrace._base.states import StateTable

__all__ = ["CLIENT", "CONNECT", "TABLES", "ClientState", "ConnectState"]


class ConnectState(Enum):
    """The state of a connect; the numbers are those of the specification."""

    CREATE_EGRESS_SUBSCRIPTION = -1
    CREATE_INGRESS_PUBLICATIONS = 0
    AWAIT_PUBLICATION_CONNECTED = 1
    SEND_MESSAGE = 2
    POLL_RESPONSE = 3
    CONCLUDE_CONNECT = 4
    DONE = 5


class ClientState(Enum):
    """The state of a :class:`headrace.cluster.ClusterClient`."""

    CONNECTED = "connected"
    """Its session is open, and a member takes messages."""
    AWAIT_NEW_LEADER = "await-new-leader"
    """The leader is lost; the client waits to hear of the next one."""
    AWAIT_NEW_LEADER_CONNECTION = "await-new-leader-connection"
    """The client connects to the new leader."""
    PENDING_CLOSE = "pending-close"
    """The session has ended; the next step closes the streams."""
    CLOSED = "closed"
    """The streams are closed."""


CLIENT = StateTable(
    "cluster-client",
    "A client's session with a cluster.",
    {
        ClientState.CONNECTED: "Its session is open, and a member takes messages.",
        ClientState.AWAIT_NEW_LEADER: "The leader is lost; the client waits to hear of the next one.",
        ClientState.AWAIT_NEW_LEADER_CONNECTION: "The client connects to the new leader.",
        ClientState.PENDING_CLOSE: "The session has ended; the next step closes the streams.",
        ClientState.CLOSED: "The streams are closed.",
    },
    {
        ClientState.CONNECTED: (
            ClientState.AWAIT_NEW_LEADER,
            ClientState.AWAIT_NEW_LEADER_CONNECTION,
            ClientState.PENDING_CLOSE,
            ClientState.CLOSED,
        ),
        ClientState.AWAIT_NEW_LEADER: (
            ClientState.AWAIT_NEW_LEADER_CONNECTION,
            ClientState.PENDING_CLOSE,
            ClientState.CLOSED,
        ),
        ClientState.AWAIT_NEW_LEADER_CONNECTION: (
            ClientState.CONNECTED,
            ClientState.AWAIT_NEW_LEADER,
            ClientState.PENDING_CLOSE,
            ClientState.CLOSED,
        ),
        ClientState.PENDING_CLOSE: (ClientState.CLOSED,),
        ClientState.CLOSED: (),
    },
)

_C = ConnectState
CONNECT: StateTable[ConnectState] = StateTable(
    "cluster-connect",
    "A client that opens a session. One that fails or is given up stays in the state it was in.",
    {
        _C.CREATE_EGRESS_SUBSCRIPTION: "The driver adds the subscription to the cluster's answers.",
        _C.CREATE_INGRESS_PUBLICATIONS: "The publications to the members are asked for.",
        _C.AWAIT_PUBLICATION_CONNECTED: "No member has taken the way to it yet.",
        _C.SEND_MESSAGE: "A request, or the answer to a challenge, is about to be sent.",
        _C.POLL_RESPONSE: "The member is to answer.",
        _C.CONCLUDE_CONNECT: "The session is open; the ways to other members are given up.",
        _C.DONE: "The session is its client's.",
    },
    {
        _C.CREATE_EGRESS_SUBSCRIPTION: (_C.CREATE_INGRESS_PUBLICATIONS,),
        _C.CREATE_INGRESS_PUBLICATIONS: (_C.AWAIT_PUBLICATION_CONNECTED,),
        _C.AWAIT_PUBLICATION_CONNECTED: (_C.SEND_MESSAGE,),
        _C.SEND_MESSAGE: (_C.AWAIT_PUBLICATION_CONNECTED, _C.POLL_RESPONSE),
        _C.POLL_RESPONSE: (_C.SEND_MESSAGE, _C.AWAIT_PUBLICATION_CONNECTED, _C.CONCLUDE_CONNECT),
        _C.CONCLUDE_CONNECT: (_C.DONE,),
        _C.DONE: (),
    },
)

TABLES = (CONNECT, CLIENT)
"""All of them."""
