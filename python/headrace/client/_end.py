"""Why a client has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._base.exceptions import ClosedError, HeadraceError

if TYPE_CHECKING:
    from headrace.client._client import Client

__all__ = ["end_of"]


def end_of(client: Client) -> HeadraceError:
    """Why a client has ended: the error that each of its calls raises."""
    try:
        client.next_correlation_id()
    except HeadraceError as reason:
        return reason
    return ClosedError("client is closed")
