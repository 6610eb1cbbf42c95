"""The waits of a blocking session besides those for answers: for the archive, for its port, for its turn."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from headrace._base.exceptions import ArchiveTimeoutError
from headrace.archive.client.session import ArchiveSession, no_archive
from headrace.channel import ChannelUri

if TYPE_CHECKING:
    from headrace.client import ExclusivePublication, Subscription

__all__ = ["POLL_INTERVAL_S", "await_archive", "lock_timeout_s", "resolved_channel"]

POLL_INTERVAL_S = 0.001


def await_archive(publication: ExclusivePublication, timeout_s: float) -> None:
    """Wait until an archive takes requests.

    Raises:
        ArchiveTimeoutError: No archive does in time.
    """
    if not publication.wait_until_connected(timeout_s):
        raise ArchiveTimeoutError(no_archive(publication))


def resolved_channel(session: ArchiveSession, subscription: Subscription, channel: str) -> str:
    """The channel of a subscription, with port 0 replaced by the port that the system chose.

    Raises:
        ArchiveTimeoutError: The driver did not report the port in time.
    """
    if not ChannelUri(channel).is_port_open:
        return channel
    deadline = session.clock.deadline(session._timeout_s)
    while (resolved := subscription.resolved_channel) is None:
        if deadline.is_over:
            raise ArchiveTimeoutError(f"the port of {channel} is not known")
        session.clock.sleep(POLL_INTERVAL_S)
    return resolved


def lock_timeout_s(left_s: float | None) -> float:
    """How long to wait for a lock."""
    return threading.TIMEOUT_MAX if left_s is None else min(left_s, threading.TIMEOUT_MAX)
