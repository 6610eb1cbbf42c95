"""What parts of a cluster tell of themselves: to `logging`, to the error log in their mark file, to their counter."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace._logging import CLUSTER
from headrace.archive.server.error_log import ErrorLog
from headrace.archive.server.log import AgentLog, save_old_errors

if TYPE_CHECKING:
    from headrace.archive.files.storage import Storage
    from headrace.clock import Clock
    from headrace.cluster.mark_file import ClusterMarkFile

__all__ = ["AgentLog", "open_log"]


def open_log(
    mark_file: ClusterMarkFile,
    error_buffer_length: int,
    owner: str,
    storage: Storage,
    clock: Clock,
    on_error: Callable[[str], object] | None,
) -> AgentLog:
    """The log of a part that starts; what the one before it noted is kept in a file of its own.

    Args:
        mark_file: Holds the error log.
        error_buffer_length: Bytes of it.
        owner: What kind of part, for the name of the file with old errors.
        storage: Where that file is made.
        clock: Time.
        on_error: Told of each error, and of no warning.
    """
    log = AgentLog(CLUSTER, ErrorLog(mark_file.write_errors, error_buffer_length), clock, on_error)
    save_old_errors(mark_file.old_errors, owner, storage, clock.epoch_ms(), log)
    mark_file.clear_errors()
    return log
