"""Connecting to a driver, for commands: no long wait for one that is not there, or a driver brought along."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cnc.faults import DriverGoneError
from headrace.tools.snapshot import DriverWatcher

if TYPE_CHECKING:
    from headrace import Client, HeadraceError

_START_TIMEOUT_S = 1.0

# What a loop does at the end of each turn, given how much it found to do.
Turn = Callable[[int], object]


@contextlib.contextmanager
def client_and_turn(
    directory: Path, command: str, *, is_embedded: bool, idle: str
) -> Iterator[tuple[Client, Turn]]:
    """A client, and what its loop does at the end of each turn: idle, or run the driver that came along.

    A driver that runs on the loop's own thread spares the hand-over to another one, which is most of a round trip
    over UDP on a machine with few cores.
    """
    import headrace

    if not is_embedded:
        with connect(directory, command) as client:
            yield client, headrace.IdleStrategy(idle).idle
        return
    with (
        headrace.MediaDriver.embedded(threading_mode="INVOKER") as driver,
        headrace.Client.connect(driver=driver, client_name=f"headrace {command}") as client,
    ):
        yield client, lambda work_count: driver.invoke()


def unless_raised(error: HeadraceError) -> None:
    """Handler of faults for commands whose next call raises that the driver has gone: its reason is printed once."""
    from headrace import DriverTimeoutError
    from headrace._base.logging import CLIENT

    if not isinstance(error, DriverTimeoutError):
        CLIENT.error("headrace client: %s", error)


def connect(
    directory: Path, command: str, on_error: Callable[[HeadraceError], object] | None = None
) -> Client:
    """A client of the directory's driver, named after the command.

    A client on its own waits ten seconds for a driver to appear, which suits a program that is started with its
    driver, and not a person at a terminal.

    Raises:
        DriverFileMissingError: no driver has used the directory.
        DriverGoneError: its driver has stopped or died.
    """
    import headrace

    with DriverWatcher(directory, timeout_s=_START_TIMEOUT_S) as watcher:
        driver = watcher.snapshot()
    if not driver.is_alive:
        raise DriverGoneError(driver.path, driver.pid, driver.heartbeat_age_ms)
    return headrace.Client.connect(directory=directory, client_name=f"headrace {command}", on_error=on_error)
