"""Connecting to a driver, for commands: no long wait for one that is not there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headrace.tools._faults import DriverGoneError
from headrace.tools.snapshot import DriverWatcher

if TYPE_CHECKING:
    from headrace import Client

_START_TIMEOUT_S = 1.0


def connect(directory: Path, command: str) -> Client:
    """A client of the directory's driver, named after the command.

    A client on its own waits ten seconds for a driver to appear, which suits a program that is started with its
    driver, and not somebody at a terminal.

    Raises:
        DriverFileMissingError: no driver has used the directory.
        DriverGoneError: its driver has stopped or died.
    """
    import headrace

    with DriverWatcher(directory, timeout_s=_START_TIMEOUT_S) as watcher:
        driver = watcher.snapshot()
    if not driver.is_alive:
        raise DriverGoneError(driver.path, driver.pid, driver.heartbeat_age_ms)
    return headrace.Client.connect(directory=directory, client_name=f"headrace {command}")
