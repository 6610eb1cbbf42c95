"""The events of the drivers and archives of a test, for the report of its failure."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import headrace
from headrace.event_log import EVENT_FILE, EventFilter, EventReader
from headrace.tools.views.events import event_lines

_SHOWN_MAX = 60


class TestEvents:
    """Keeps a reader on each driver that this process starts: the events stay readable when its directory is deleted.

    Drivers of other processes are found by the files that they left in the temporary directories.
    """

    __test__ = False

    def __init__(self) -> None:
        self._readers: dict[str, EventReader] = {}
        self._start_ns = 0

    def watch_drivers(self) -> None:
        """From now on notice each driver that starts in this process."""
        begin = headrace.MediaDriver.__init__

        @functools.wraps(begin)
        def noticed(driver: headrace.MediaDriver, *arguments: Any, **settings: Any) -> None:
            begin(driver, *arguments, **settings)
            self._notice(Path(driver.directory))

        headrace.MediaDriver.__init__ = noticed  # type: ignore[method-assign]

    def _notice(self, directory: Path) -> None:
        if (directory / EVENT_FILE).is_file():
            self._readers[str(directory)] = EventReader(directory)

    def begin(self) -> None:
        """A test begins: what drivers of the tests before did is not its business, unless they still run."""
        self._start_ns = time.time_ns()
        for directory in [each for each in self._readers if not Path(each).exists()]:
            del self._readers[directory]

    def report(self, places: list[Path]) -> Iterator[str]:
        """The events since the test began, by driver; of drivers that left their files in `places` too."""
        for place in places:
            for file in place.rglob(EVENT_FILE):
                # A test may have damaged it.
                with contextlib.suppress(headrace.HeadraceError, OSError):
                    self._readers.setdefault(str(file.parent), EventReader(file))
        for directory, reader in self._readers.items():
            events = reader.poll(EventFilter(since_ns=self._start_ns))
            if events:
                left_out = max(0, len(events) - _SHOWN_MAX)
                yield f"{directory}{f', after {left_out} others' if left_out else ''}:"
                yield from (event_lines(event).plain for event in events[left_out:])
