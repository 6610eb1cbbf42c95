"""A media driver of this process, whose directory is removed however the process ends."""

from __future__ import annotations

import os
import subprocess
import uuid

from headrace._base.fork import forget_in_children, is_own
from headrace._settings.config import default_directory
from headrace.driver import MediaDriver

__all__ = ["OwnDriver"]

# No line is ever written, so reading ends when no process holds the other end of the pipe any more.
_TIDY_UP = 'read -r line; rm -rf -- "$1"'


class OwnDriver:
    """An embedded driver, for processes that are ended by signals: Spark's Python workers.

    Its logs are in memory that outlives processes, so a shell waits to remove them.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        directory = f"{default_directory()}-{uuid.uuid4()}"
        # Before there is anything to remove, so that no moment is left in which a signal leaves it. In a session of its
        # own, out of reach of signals to the process group.
        self._janitor = subprocess.Popen(
            ["/bin/sh", "-c", _TIDY_UP, "sh", directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        forget_in_children(self)
        try:
            self.driver = MediaDriver.embedded(directory=directory, threading_mode="SHARED")
        except BaseException:
            self._janitor.communicate()
            raise

    def _forget(self) -> None:
        """In a forked child: the shell must not wait for the child's copy of the pipe."""
        assert self._janitor.stdin is not None, "made with a pipe"
        self._janitor.stdin.close()

    def close(self) -> None:
        """Stop the driver and delete its directory. Closing again does nothing, nor does closing in a forked child."""
        if not is_own(self._pid):
            return
        self.driver.close()
        self._janitor.communicate()
