"""The address of this machine as another one sees it."""

from __future__ import annotations

import socket

__all__ = ["own_address"]


def own_address(endpoint: str) -> str:
    """The address of this machine on the way to ``host:port``, as channels want it. Looks up the name, sends nothing.

    Raises:
        OSError: The name has no address, or there is no way to it.
        ValueError: The endpoint is not an address and a port.
    """
    host, _, port = endpoint.rpartition(":")
    found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)
    # As the driver, which takes an address of IPv4 where a name has both.
    family, kind, protocol, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    with socket.socket(family, kind, protocol) as probe:
        # Sends nothing: the system looks up the way and the address at its beginning.
        probe.connect(address)
        own = str(probe.getsockname()[0])
    return f"[{own}]" if family == socket.AF_INET6 else own
