"""What a driver of this process tells the logger `headrace.driver`.

Its errors are in its error log, in shared memory. A thread looks there every second, if a program set up logging, and
logs what is new. The driver's own threads never wait for Python.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from headrace._logging import DRIVER

__all__ = ["ErrorLogReader", "closed", "doubts", "started"]

_INTERVAL_S = 1.0
# How a driver marks what is worth knowing and no failure.
_WARNING = "WARN"


def started(directory: str, settings: Mapping[str, str]) -> None:
    """Tell that a driver runs, and with which settings."""
    DRIVER.info(
        "headrace driver: started: directory=%s threading_mode=%s",
        directory,
        settings.get("aeron.threading.mode", ""),
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


class ErrorLogReader:
    """Logs each observation of an error that is new since the last look.

    Args:
        directory: The driver's directory.
    """

    def __init__(self, directory: str) -> None:
        # Needed only where errors are logged.
        from headrace.cnc.cnc_file import CncFile
        from headrace.cnc.error_log import read_error_log

        self._read = read_error_log
        self._cnc = CncFile.open(Path(directory))
        self._counts: dict[str, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headrace-driver-log", daemon=True)
        self._thread.start()

    @classmethod
    def start(cls, directory: str) -> ErrorLogReader | None:
        """A reader, if there is a handler to which a warning goes; else nothing is read."""
        is_heard = DRIVER.hasHandlers() and DRIVER.isEnabledFor(logging.WARNING)
        return cls(directory) if is_heard else None

    def _run(self) -> None:
        while not self._stop.wait(_INTERVAL_S):
            self._look()

    def _look(self) -> None:
        for entry in self._read(self._cnc.error_log):
            before = self._counts.get(entry.text, 0)
            if entry.observation_count == before:
                continue
            self._counts[entry.text] = entry.observation_count
            level = logging.WARNING if entry.text.startswith(_WARNING) else logging.ERROR
            DRIVER.log(level, "headrace driver: %s (times seen: %d)", entry.text, entry.observation_count)

    def close(self) -> None:
        """Look once more and stop. Waits for the thread, which looks at memory only."""
        self._stop.set()
        self._thread.join()
        self._look()
        self._cnc.close()
