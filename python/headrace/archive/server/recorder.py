"""Steps all recordings, in the archive's turn or in a separate thread: ``docs/internals/archive.md``."""

from __future__ import annotations

import contextlib
from collections import deque
from typing import TYPE_CHECKING

from headrace.archive.server.duty_cycle import Rotation

if TYPE_CHECKING:
    from headrace.archive.server.log import ArchiveLog
    from headrace.archive.server.recording_session import RecordingSession

__all__ = ["Recorder"]


class Recorder:
    """Steps each recording until it has stopped. One thread calls :meth:`do_work`, any may call :meth:`take`."""

    def __init__(self, log: ArchiveLog) -> None:
        self._log = log
        self._arrived: deque[RecordingSession] = deque()
        self._sessions: list[RecordingSession] = []
        self._rotation = Rotation()

    def take(self, session: RecordingSession) -> None:
        """Step a session from the next turn on."""
        self._arrived.append(session)

    def do_work(self) -> int:
        """One turn: a block for each session in turn."""
        while self._arrived:
            self._sessions.append(self._arrived.popleft())
        work_count = self._rotation.do_work(self._sessions, self._step)
        if any(session.is_stopped for session in self._sessions):
            self._sessions = [session for session in self._sessions if not session.is_stopped]
        return work_count

    def _step(self, session: RecordingSession) -> int:
        """A turn of one session. An unexpected exception ends only that recording, with one note."""
        try:
            return session.do_work()
        except Exception as failure:
            self._fail(session, failure)
            return 1

    def _fail(self, session: RecordingSession, failure: Exception) -> None:
        """End a recording in order; if that fails, close it where it is."""
        if session.failure is None and not session.is_stopped:
            session.fail(failure)
            return
        self._log.error(f"recording_id={session.recording_id} cannot end cleanly: {failure!r}", failure)
        if not session.is_stopped:
            with contextlib.suppress(OSError):
                session.close()
