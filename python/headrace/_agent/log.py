"""What an agent tells of itself, in three severities: to `logging`, to its error log, to its error counter.

What a client is told of too comes here first: a program that acts on the answer finds the entry.

An entry of the error log that begins with `WARN - ` tells what a client did wrong, a limit that was reached, or what an
operator may want to know. Every other entry is a failure of the archive itself, and only these are counted as errors.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from headrace._agent.error_log import WARNING_PREFIX, ErrorLog
from headrace._agent.rate_limit import RateLimit
from headrace._base.exceptions import ClosedError, HeadraceError
from headrace.cnc.error_log import read_error_log

if TYPE_CHECKING:
    import logging

    from headrace._agent.storage import Storage
    from headrace.client import Counter
    from headrace.clock import Clock

__all__ = ["AgentLog", "save_old_errors"]


class AgentLog:
    """The log of one agent. Thread-safe. Nothing is logged for a message or a block.

    Args:
        logger: Where the texts go in this program.
        entries: The error log that tools read.
        clock: Time.
        on_error: Told of each error, and of no warning.
    """

    def __init__(
        self,
        logger: logging.Logger,
        entries: ErrorLog,
        clock: Clock,
        on_error: Callable[[str], object] | None,
    ) -> None:
        self._logger = logger
        self._entries = entries
        self._clock = clock
        self._on_error = on_error
        self._counter: Counter | None = None
        self._rate_limit = RateLimit(clock)
        self.error_count = 0

    def show_count(self, counter: Counter) -> None:
        """Show :attr:`error_count` to tools from now on."""
        self._counter = counter
        counter.value = self.error_count

    def info(self, text: str) -> None:
        """What happens in order. Kept by ``logging`` alone, if the program asks for it."""
        self._logger.info("%s", text)

    def warning(self, text: str, detail: str = "") -> None:
        """What a client did wrong, a limit that was reached, or what an operator may want to know.

        The error log keeps each distinct text. So what a client chooses, such as ids and channels, is the detail, which
        is for ``logging`` alone. A client that does the same wrong with each of its messages fills no log: ``logging``
        has the first twenty of each second, and then how many more there were.
        """
        text = WARNING_PREFIX + text
        self._entries.record(text, self._clock.epoch_ms())
        untold = self._rate_limit.take(text)
        if untold is not None:
            if untold:
                self._logger.warning("%s (and %d more like this)", text, untold)
            self._logger.warning("%s", _joined(text, detail))

    def warn_of(self, texts: Iterable[str]) -> None:
        """Several warnings, such as of variables of the environment that have no effect."""
        for text in texts:
            self.warning(text)

    def error(self, text: str, cause: BaseException | None = None, detail: str = "") -> None:
        """A failure of the agent itself; a cause that is a defect gives ``logging`` its traceback.

        The detail is as for a warning.
        """
        self._entries.record(text, self._clock.epoch_ms())
        self.error_count += 1
        if self._counter is not None:
            with contextlib.suppress(ClosedError):
                self._counter.value = self.error_count
        text = _joined(text, detail)
        is_fault_outside = isinstance(cause, (OSError, HeadraceError))
        self._logger.error("%s", text, exc_info=None if is_fault_outside else cause)
        if self._on_error is None:
            return
        try:
            self._on_error(text)
        except Exception:
            self._logger.exception("on_error raised while it handled the error above")


def _joined(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


def save_old_errors(old: bytes, owner: str, storage: Storage, now_ms: int, log: AgentLog) -> None:
    """Keep what the agent before this one noted, in a file of its own; its mark file is about to be written over.

    Args:
        old: The error log of the agent before.
        owner: What kind of agent, for the name of the file.
        storage: Where the file is made.
        now_ms: The time, in milliseconds since 1970.
        log: Told if the disk refuses.
    """
    lines = [
        f"{entry.observation_count} observations from {entry.first_observation_ms} to "
        f"{entry.last_observation_ms}: {entry.text}\n"
        for entry in read_error_log(old)
    ]
    if not lines:
        return
    day = time.strftime("%Y-%m-%d-%H-%M-%S", time.gmtime(now_ms / 1000))
    name = f"{owner}-{day}-{now_ms % 1000:03}+0000-error.log"
    try:
        file = storage.create(name, 0, may_exist=True)
        try:
            file.write(0, "".join(lines).encode())
        finally:
            file.close()
    except OSError as failure:
        # A full disk is what they most likely tell of; an agent that starts may be told to make room.
        log.error(f"cannot save the errors of the previous {owner} in {name}: {failure}")
        for line in lines:
            log.info(line)
        with contextlib.suppress(OSError):
            storage.delete(name)
