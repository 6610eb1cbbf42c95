"""The recorder in a separate thread, which sleeps while there is nothing to record.

A recording without a message for a while *rests*: the recorder hands it to the archive's thread, which looks at it in
each of its turns and hands it back when there is something to do. So this thread costs nothing at rest, and resting
sessions cost the archive's thread as much as in mode SHARED. A session has one owner at a time, and changes hands in a
deque.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from headrace.archive.server.recorder import Recorder

if TYPE_CHECKING:
    from headrace.archive.server.log import ArchiveLog
    from headrace.archive.server.recording_session import RecordingSession
    from headrace.clock import Clock

__all__ = ["RecorderThread"]

_REST_AFTER_NS = 100_000_000


class RecorderThread(Recorder):
    """One thread calls :meth:`do_work`, which waits; the archive's thread calls the rest."""

    def __init__(self, log: ArchiveLog, clock: Clock) -> None:
        super().__init__(log)
        self._clock = clock
        self._is_woken = threading.Event()
        self._is_over = False
        # Where each session was when it last moved, and since when it is there.
        self._last_moves: dict[RecordingSession, tuple[int, int]] = {}
        self._to_rest: deque[RecordingSession] = deque()
        self._resting: list[RecordingSession] = []

    def take(self, session: RecordingSession) -> None:
        """Step a session from now on."""
        super().take(session)
        self._is_woken.set()

    def do_work(self) -> int:
        """Wait until there is a session that does not rest, or until :meth:`wake_for_good`; then one turn."""
        if not self._sessions and not self._arrived and not self._is_over:
            self._is_woken.wait()
        # Before the look at what has arrived: what arrives after it wakes the next turn.
        self._is_woken.clear()
        work_count = super().do_work()
        self._rest()
        return work_count

    def _rest(self) -> None:
        """Hand over sessions that have not moved for a while."""
        now_ns = self._clock.monotonic_ns()
        moves, self._last_moves = self._last_moves, {}
        stepped, self._sessions = self._sessions, []
        for session in stepped:
            position, since_ns = moves.get(session, (-1, 0))
            if session.position != position:
                since_ns = now_ns
            if session.is_recording and now_ns - since_ns >= _REST_AFTER_NS:
                self._to_rest.append(session)
            else:
                self._last_moves[session] = session.position, since_ns
                self._sessions.append(session)

    def look_at_resting(self) -> int:
        """Hand sessions with work back to the recorder; returns their number."""
        while self._to_rest:
            self._resting.append(self._to_rest.popleft())
        woken = [session for session in self._resting if session.has_work]
        if woken:
            self._resting = [session for session in self._resting if session not in woken]
            for session in woken:
                self.take(session)
        return len(woken)

    def wake_for_good(self) -> None:
        """End the wait for good, because the archive ends."""
        self._is_over = True
        self._is_woken.set()
