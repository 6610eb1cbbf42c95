"""The log of an archive."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace._agent.log import AgentLog
from headrace._base.logging import ARCHIVE

if TYPE_CHECKING:
    from headrace._agent.error_log import ErrorLog
    from headrace.archive.server.errors import SessionFailure
    from headrace.clock import Clock

__all__ = ["ArchiveLog"]


class ArchiveLog(AgentLog):
    """The log of an archive, see :class:`AgentLog`."""

    def __init__(self, entries: ErrorLog, clock: Clock, on_error: Callable[[str], object] | None) -> None:
        super().__init__(ARCHIVE, entries, clock, on_error)

    def failure(self, failure: SessionFailure) -> None:
        """Log why a session ended: a warning if its client is the cause, else an error."""
        if failure.is_clients_doing:
            self.warning("a replay ended early because of a client", failure.text)
        else:
            self.error(failure.text, failure.cause)
