"""The states of a cluster's client: ``docs/design/0047-cluster-client.md`` has the picture."""

from __future__ import annotations

from enum import Enum

from headrace._states import StateTable

__all__ = ["CLIENT", "ClientState", "ConnectState"]


class ConnectState(Enum):
    """How far a connect has come; the numbers are those of the specification."""

    CREATE_EGRESS_SUBSCRIPTION = -1
    CREATE_INGRESS_PUBLICATIONS = 0
    AWAIT_PUBLICATION_CONNECTED = 1
    SEND_MESSAGE = 2
    POLL_RESPONSE = 3
    CONCLUDE_CONNECT = 4
    DONE = 5


class ClientState(Enum):
    """Where a :class:`headrace.cluster.ClusterClient` is."""

    CONNECTED = "connected"
    """Its session is open, and a member takes messages."""
    AWAIT_NEW_LEADER = "await-new-leader"
    """The leader is lost: the cluster is to tell of the next one."""
    AWAIT_NEW_LEADER_CONNECTION = "await-new-leader-connection"
    """A new leader is known, and has taken nothing yet."""
    PENDING_CLOSE = "pending-close"
    """The session has ended; the next step leaves the streams."""
    CLOSED = "closed"
    """The streams are left."""


CLIENT = StateTable(
    "cluster-client",
    "A client's session with a cluster.",
    {
        ClientState.CONNECTED: "its session is open, and a member takes messages",
        ClientState.AWAIT_NEW_LEADER: "the leader is lost; the cluster is to tell of the next one",
        ClientState.AWAIT_NEW_LEADER_CONNECTION: "a new leader is known, and has taken nothing yet",
        ClientState.PENDING_CLOSE: "the session has ended; the next step leaves the streams",
        ClientState.CLOSED: "the streams are left",
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
"""The table."""
