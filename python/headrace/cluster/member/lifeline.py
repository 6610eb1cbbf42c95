"""How a follower hears from the kernel that its leader's process has ended, long before a heartbeat is missed.

A follower has a TCP connection to its leader, on the address of the consensus stream; nothing is sent on it. When the
leader's process ends, however it does, its kernel closes the connection and answers the next attempt with a refusal.
Both are needed: a connection may be lost while the process lives. A machine that dies says nothing, and a member of
Aeron does not listen: then the heartbeats decide, as everywhere else.
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.cluster.common.log import AgentLog

__all__ = ["Lifeline", "open_lifeline"]

# Members of one cluster are few; what strangers open pushes out what strangers have opened.
_CONNECTIONS_MAX = 64
_UNDER_WAY = (errno.EINPROGRESS, errno.EAGAIN)


class _State(Enum):
    NONE = auto()
    CONNECTING = auto()
    CONNECTED = auto()
    CHECKING = auto()


class Lifeline:
    """Listens for followers, and holds the connection to a leader. Never blocks.

    Args:
        address: Where the consensus stream of this member is heard, as ``ip:port``.

    Raises:
        OSError: The address is taken.
    """

    def __init__(self, address: str) -> None:
        host, port = _parts(address)
        self._followers: list[socket.socket] = []
        self._leader: tuple[str, int] | None = None
        self._line: socket.socket | None = None
        self._state = _State.NONE
        self._events = select.epoll()
        self._listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        try:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.setblocking(False)
            self._listener.bind((host, port))
            self._listener.listen()
        except OSError:
            self.close()
            raise
        self._events.register(self._listener, select.EPOLLIN)

    def watch(self, address: str | None) -> None:
        """Watch the leader at an address, or none any more."""
        self._drop()
        self._leader = None if address is None else _parts(address)
        if self._leader is not None:
            self._connect(_State.CONNECTING)

    def poll(self) -> bool:
        """Whether the leader's process has ended, once."""
        for descriptor, _ in self._events.poll(0):
            if descriptor == self._listener.fileno():
                self._accept()
            elif self._line is not None and descriptor == self._line.fileno() and self._went_on():
                return True
        return False

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            follower, _ = self._listener.accept()
            self._followers.append(follower)
        if len(self._followers) > _CONNECTIONS_MAX:
            self._followers.pop(0).close()

    def _connect(self, state: _State) -> bool:
        """Open a connection; returns whether it is refused at once."""
        assert self._leader is not None, "a leader is watched"
        self._line = line = socket.socket(socket.AF_INET6 if ":" in self._leader[0] else socket.AF_INET)
        line.setblocking(False)
        self._state = state
        failure = line.connect_ex(self._leader)
        if failure not in (0, *_UNDER_WAY):
            self._drop()
            return failure == errno.ECONNREFUSED
        self._events.register(line, select.EPOLLOUT)
        return False

    def _went_on(self) -> bool:
        """The connection is made, refused or closed; returns whether the leader's process has ended."""
        line = self._line
        assert line is not None, "looked at before"
        if self._state is _State.CONNECTED:
            # Nothing is sent, so that what comes is its end.
            self._drop()
            return self._connect(_State.CHECKING)
        failure = line.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failure:
            was_checking = self._state is _State.CHECKING
            self._drop()
            if failure == errno.ECONNRESET:
                # A kernel closes the connections of a process before it stops to listen: it took this one in between.
                return self._connect(_State.CHECKING)
            return was_checking and failure == errno.ECONNREFUSED
        self._state = _State.CONNECTED
        self._events.modify(line, select.EPOLLIN | select.EPOLLRDHUP)
        return False

    def _drop(self) -> None:
        line, self._line = self._line, None
        self._state = _State.NONE
        if line is not None:
            # Closing takes it out of the events.
            line.close()

    def close(self) -> None:
        """Close all connections; followers take that for the end of this member."""
        self._listener.close()
        self._events.close()
        for one in self._followers:
            one.close()
        self._drop()


def open_lifeline(address: str | None, log: AgentLog, held: contextlib.ExitStack) -> Lifeline | None:
    """What followers of a member watch, closed by ``held``; where the address is taken they go without."""
    if address is None:
        return None
    try:
        lifeline = Lifeline(address)
    except OSError as failure:
        log.info(f"followers will not hear at once if this member ends: {failure}")
        return None
    held.callback(lifeline.close)
    return lifeline


def _parts(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
