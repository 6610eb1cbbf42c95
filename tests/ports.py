"""UDP ports for tests: no two processes of tests on this machine use the same one at the same time."""

from __future__ import annotations

import socket
from collections.abc import Iterator

# Below the ports that the kernel gives to sockets that ask for any, above those of the examples.
_FIRST, _END = 25_000, 32_000
_EACH = 1000


def _claim() -> tuple[socket.socket, Iterator[int]]:
    """A range of ports. The process that holds its first port bound has all of it; the kernel tells the others."""
    for first in range(_FIRST, _END, _EACH):
        claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            claim.bind(("127.0.0.1", first))
        except OSError:
            claim.close()
        else:
            return claim, iter(range(first + 1, first + _EACH))
    raise RuntimeError(f"every range of {_EACH} UDP ports from {_FIRST} to {_END} is in use")


_held, _free = _claim()


def free_port() -> int:
    """A port that no other test has had in this process, and that no other process of tests has."""
    port = next(_free, None)
    if port is None:
        raise RuntimeError(f"the tests use more than {_EACH} ports; raise _EACH in tests/ports.py")
    return port


def free_endpoint() -> str:
    """An address on loopback with a port of its own, as channels want it."""
    return f"127.0.0.1:{free_port()}"


def free_member(host: str = "127.0.0.1") -> str:
    """A host with five ports of its own, as a list of members has it."""
    base = free_port()
    for _ in range(4):
        free_port()
    return f"{host}:{base}"
