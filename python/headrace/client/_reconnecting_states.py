"""The states of a client that outlives its driver: ``docs/reference/states.md`` shows their table."""

from __future__ import annotations

from enum import Enum

from headrace._base.states import StateTable

__all__ = ["RECONNECTING_CLIENT", "ConnectionState"]


class ConnectionState(Enum):
    """Whether a reconnecting client has a driver."""

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    CLOSED = "closed"


_C = ConnectionState
RECONNECTING_CLIENT: StateTable[ConnectionState] = StateTable(
    "reconnecting-client",
    "A client that goes on with the next driver when its driver has ended.",
    {
        _C.CONNECTED: "There is a driver, and it has all that the program has added.",
        _C.DISCONNECTED: "The driver has ended; its thread tries to connect to the next one and to add everything.",
        _C.CLOSED: "The program has closed it.",
    },
    {
        _C.CONNECTED: (_C.DISCONNECTED, _C.CLOSED),
        _C.DISCONNECTED: (_C.CONNECTED, _C.CLOSED),
        _C.CLOSED: (),
    },
)
