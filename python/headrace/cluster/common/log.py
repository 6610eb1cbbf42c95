"""The logs of a cluster's parts: each writes to `logging`, to the error log in its mark file, and to its counter."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace._agent.error_log import ErrorLog
from headrace._agent.log import AgentLog, save_old_errors
from headrace._base.logging import CLUSTER
from headrace.event_log import EventRecorder

if TYPE_CHECKING:
    from headrace._agent.storage import Storage
    from headrace.clock import Clock
    from headrace.cluster.files.mark_file import ClusterMarkFile

__all__ = ["AgentLog", "open_events", "open_log"]

# Changes of state that an event log keeps, 256 bytes each.
_EVENTS_MAX = 1024


def open_log(
    mark_file: ClusterMarkFile,
    error_buffer_length: int,
    owner: str,
    storage: Storage,
    clock: Clock,
    on_error: Callable[[str], object] | None,
) -> AgentLog:
    """Open the log of a part that starts; saves the errors of the part that ran before it in a separate file.

    Args:
        mark_file: Holds the error log.
        error_buffer_length: Bytes of it.
        owner: What kind of part, for the name of the file with old errors.
        storage: Where that file is made.
        clock: Time.
        on_error: Called with each error, but with no warning.
    """
    log = AgentLog(CLUSTER, ErrorLog(mark_file.write_errors, error_buffer_length), clock, on_error)
    save_old_errors(mark_file.old_errors, owner, storage, clock.epoch_ms(), log)
    mark_file.clear_errors()
    return log


def open_events(
    storage: Storage, clock: Clock, log: AgentLog, on_event: Callable[[str], object] | None
) -> EventRecorder:
    """The event log of a part that starts, beside its files; a part without it loses nothing else.

    Args:
        storage: Where its files are.
        clock: Time.
        log: Told if the disk refuses, and what `on_event` raises.
        on_event: Called with each change of state as text.
    """
    events = EventRecorder(clock, log.error, on_event)
    directory = storage.event_directory
    if directory is not None:
        try:
            events.open(directory, _EVENTS_MAX, clock.epoch_ms())
        except OSError as failure:
            log.warning(f"no event log: {failure}")
    return events
