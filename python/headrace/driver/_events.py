"""What a driver of this process tells the logger `headrace.driver`.

Its errors and its changes of state are in its error log and its event log, in shared memory. A thread looks there every
second, if a program set up logging, and logs what is new. The driver's own threads never wait for Python.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._base.exceptions import HeadraceError
from headrace._base.logging import DRIVER

if TYPE_CHECKING:
    from headrace.event_log import Event, EventReader

__all__ = ["LogsReader", "closed", "doubts", "started"]

_INTERVAL_S = 1.0
# How a driver marks what is worth knowing and no failure.
_WARNING = "WARN"
# Texts of the error log that say what the event log says as well, there with the client's id.
_TOLD_AS_EVENTS = ("WARN - a client's process ended without closing the client",)
# States of the driver that its error log tells, and at ERROR.
_TOLD_AS_ERRORS = ("Failed",)


def started(directory: str, settings: Mapping[str, str], chosen_threading: str | None) -> None:
    """Tell that a driver runs, with which settings, and why it chose its threading mode, if it did."""
    DRIVER.info(
        "headrace driver: started: directory=%s threading_mode=%s",
        directory,
        chosen_threading or settings.get("aeron.threading.mode", ""),
    )
    if DRIVER.isEnabledFor(logging.DEBUG):
        DRIVER.debug(
            "headrace driver: settings: %s", " ".join(f"{name}={value}" for name, value in settings.items())
        )


def doubts(texts: Iterable[str]) -> None:
    """Tell of settings that look misspelt, when no reader tells what the error log says."""
    for text in texts:
        DRIVER.warning("headrace driver: %s", text)


def closed(directory: str) -> None:
    """Tell that a driver was closed."""
    DRIVER.info("headrace driver: closed: directory=%s", directory)


class LogsReader:
    """Logs what is new in the driver's logs since the last look: each observation of an error, each change of state.

    A change that is not the normal course of things is a warning. All others are for DEBUG.

    Args:
        directory: The driver's directory.
    """

    def __init__(self, directory: str) -> None:
        # Needed only where errors are logged.
        from headrace.cnc.cnc_file import CncFile
        from headrace.cnc.error_log import read_error_log
        from headrace.event_log import EventFilter

        self._read = read_error_log
        self._cnc = CncFile.open(Path(directory))
        self._counts: dict[str, int] = {}
        self._is_cut_short = False
        self._events = _event_reader(directory)
        self._condition = EventFilter(faults_only=not DRIVER.isEnabledFor(logging.DEBUG))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headrace-driver-log", daemon=True)
        self._thread.start()

    @classmethod
    def start(cls, directory: str) -> LogsReader | None:
        """A reader, if there is a handler to which a warning goes; else nothing is read."""
        is_heard = DRIVER.hasHandlers() and DRIVER.isEnabledFor(logging.WARNING)
        return cls(directory) if is_heard else None

    def _run(self) -> None:
        while not self._stop.wait(_INTERVAL_S):
            self._look()

    def _look(self) -> None:
        self._look_for_errors()
        if self._events is not None:
            self._look_for_events(self._events)

    def _look_for_events(self, reader: EventReader) -> None:
        try:
            events = reader.poll(self._condition)
        except HeadraceError as damage:
            self._events = None
            DRIVER.warning("headrace driver: its changes of state are no longer logged: %s", damage)
            return
        for event in events:
            if event.kind == "driver" and event.new in _TOLD_AS_ERRORS:
                continue
            DRIVER.log(
                logging.WARNING if event.is_fault else logging.DEBUG, "headrace driver: %s", _told(event)
            )

    def _look_for_errors(self) -> None:
        if self._is_cut_short:
            return
        try:
            entries = list(self._read(self._cnc.error_log))
        except HeadraceError as damage:
            self._is_cut_short = True
            DRIVER.warning("headrace driver: its errors are no longer logged: %s", damage)
            return
        for entry in entries:
            before = self._counts.get(entry.text, 0)
            if entry.observation_count == before:
                continue
            self._counts[entry.text] = entry.observation_count
            if self._events is not None and entry.text.startswith(_TOLD_AS_EVENTS):
                continue
            level = logging.WARNING if entry.text.startswith(_WARNING) else logging.ERROR
            DRIVER.log(level, "headrace driver: %s (times seen: %d)", entry.text, entry.observation_count)

    def close(self) -> None:
        """Look once more and stop. Waits for the thread, which looks at memory only."""
        self._stop.set()
        self._thread.join()
        self._look()
        self._cnc.close()
        if self._events is not None:
            self._events.close()


def _event_reader(directory: str) -> EventReader | None:
    """A reader of the event log, if the driver has one."""
    from headrace.cnc.faults import DriverFileMissingError
    from headrace.event_log import EventReader

    try:
        return EventReader(directory)
    except DriverFileMissingError:
        return None


def _told(event: Event) -> str:
    """What changed and why, and what tells it from others."""
    ids = (("stream_id", event.stream_id), ("session_id", event.session_id), ("of", event.parent_id))
    further = [f"{name}={number}" for name, number in ids if number is not None]
    if event.detail:
        further.append(event.detail)
    return f"{event}: {' '.join(further)}" if further else str(event)
