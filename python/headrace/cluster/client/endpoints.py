"""The ingress endpoints of a cluster's members: ``0=host:port,1=host:port``."""

from __future__ import annotations

from headrace._base.exceptions import HeadraceError

__all__ = ["EndpointsError", "parse_endpoints"]

_LENGTH_MAX = 16_384
_ID_DIGITS_MAX = 9
_PORT_MAX, _PORT_DIGITS_MAX = 65_535, 5


class EndpointsError(HeadraceError):
    """A text that is not a list of endpoints; the error's text says why."""


def parse_endpoints(text: str) -> dict[int, str]:
    """The endpoint of each member, by its id.

    Raises:
        EndpointsError: The text, which may come from the network, is not such a list.
    """
    if len(text) > _LENGTH_MAX:
        raise EndpointsError(f"endpoints of {len(text)} characters: at most {_LENGTH_MAX} are allowed")
    endpoints: dict[int, str] = {}
    for part in text.split(","):
        member_id, _, endpoint = part.partition("=")
        host, colon, port = endpoint.rpartition(":")
        is_id = member_id.isascii() and member_id.isdigit() and len(member_id) <= _ID_DIGITS_MAX
        is_port = (
            port.isascii() and port.isdigit() and len(port) <= _PORT_DIGITS_MAX and int(port) <= _PORT_MAX
        )
        # What would add parameters to a channel is no host.
        if not (is_id and host and colon and is_port) or any(mark in host for mark in "|?= "):
            raise EndpointsError(f"{part[:80]!r} is not of the form ID=HOST:PORT")
        endpoints[int(member_id)] = endpoint
    return endpoints
