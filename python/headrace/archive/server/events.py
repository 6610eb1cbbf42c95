"""The stream of recording events: started, progress, stopped. For watching; signals and queries are for bookkeeping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.archive.protocol.messages import encode

if TYPE_CHECKING:
    from headrace.archive.server.recording_session import RecordingSession
    from headrace.client import Publication

__all__ = ["RecordingEvents"]

_ATTEMPTS = 3


class RecordingEvents:
    """Publishes events, or nothing when there is no publication for them."""

    def __init__(self, publication: Publication | None) -> None:
        self._publication = publication

    def listener(self, channel: str) -> _Listener:
        """Hears one recording and publishes what it hears."""
        return _Listener(self._publication, channel)


class _Listener:
    def __init__(self, publication: Publication | None, channel: str) -> None:
        self._publication = publication
        self._channel = channel

    def on_started(self, session: RecordingSession) -> None:
        self._publish(
            _ATTEMPTS,
            "RecordingStarted",
            recordingId=session.recording_id,
            startPosition=session.join_position,
            sessionId=session.image.session_id,
            streamId=session.image.stream_id,
            channel=self._channel,
            sourceIdentity=session.image.source_identity,
        )

    def on_progress(self, session: RecordingSession) -> None:
        if self._publication is not None:
            # One that finds no room is made up for by the next.
            self._publish(
                1,
                "RecordingProgress",
                recordingId=session.recording_id,
                startPosition=session.join_position,
                position=session.position,
            )

    def on_stopped(self, session: RecordingSession) -> None:
        self._publish(
            _ATTEMPTS,
            "RecordingStopped",
            recordingId=session.recording_id,
            startPosition=session.join_position,
            stopPosition=session.position,
        )

    def _publish(self, attempts: int, name: str, **values: object) -> None:
        publication = self._publication
        if publication is None or not publication.is_connected:
            return
        message = encode(name, **values)
        for _ in range(attempts):
            if publication.offer(message):
                return
