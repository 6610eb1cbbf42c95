"""What an archive tells of itself, in three severities: to `logging`, to its error log, to its error counter.

What a client is told of too comes here first: a program that acts on the answer finds the entry.

An entry of the error log that begins with `WARN - ` tells what a client did wrong, a limit that was reached, or what an
operator may want to know. Every other entry is a failure of the archive itself, and only these are counted as errors.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace._exceptions import ClosedError, HeadraceError
from headrace._logging import ARCHIVE
from headrace.archive.server.error_log import WARNING_PREFIX, ErrorLog
from headrace.archive.server.pace import Pace

if TYPE_CHECKING:
    from headrace.archive.server.errors import SessionFailure
    from headrace.client import Counter
    from headrace.clock import Clock

__all__ = ["ArchiveLog"]


class ArchiveLog:
    """The log of one archive. Thread-safe. Nothing is logged for a message or a block.

    Args:
        entries: The error log that tools read.
        clock: Time.
        on_error: Told of each error, and of no warning.
    """

    def __init__(self, entries: ErrorLog, clock: Clock, on_error: Callable[[str], object] | None) -> None:
        self._entries = entries
        self._clock = clock
        self._on_error = on_error
        self._counter: Counter | None = None
        self._pace = Pace(clock)
        self.error_count = 0

    def show_count(self, counter: Counter) -> None:
        """Show :attr:`error_count` to tools from now on."""
        self._counter = counter
        counter.value = self.error_count

    @staticmethod
    def info(text: str) -> None:
        """What happens in order. Kept by ``logging`` alone, if the program asks for it."""
        ARCHIVE.info("%s", text)

    def warning(self, text: str, detail: str = "") -> None:
        """What a client did wrong, a limit that was reached, or what an operator may want to know.

        The error log keeps each distinct text. So what a client chooses, such as ids and channels, is the detail, which
        is for ``logging`` alone. A client that does the same wrong with each of its messages fills no log: ``logging``
        has the first twenty of each second, and then how many more there were.
        """
        text = WARNING_PREFIX + text
        self._entries.record(text, self._clock.epoch_ms())
        untold = self._pace.take(text)
        if untold is not None:
            if untold:
                ARCHIVE.warning("%s (%d more, which are not told one by one)", text, untold)
            ARCHIVE.warning("%s", _joined(text, detail))

    def failure(self, failure: SessionFailure) -> None:
        """Why a session ended: a warning where its client can do better, else an error."""
        if failure.is_clients_doing:
            self.warning("a replay ended early because of a client", failure.text)
        else:
            self.error(failure.text, failure.cause)

    def error(self, text: str, cause: BaseException | None = None, detail: str = "") -> None:
        """A failure of the archive itself; a cause that is a defect gives ``logging`` its traceback.

        The detail is as for a warning.
        """
        self._entries.record(text, self._clock.epoch_ms())
        self.error_count += 1
        if self._counter is not None:
            with contextlib.suppress(ClosedError):
                self._counter.value = self.error_count
        text = _joined(text, detail)
        is_fault_outside = isinstance(cause, (OSError, HeadraceError))
        ARCHIVE.error("%s", text, exc_info=None if is_fault_outside else cause)
        if self._on_error is not None:
            self._on_error(text)


def _joined(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text
