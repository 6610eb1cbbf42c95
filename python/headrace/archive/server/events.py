"""The stream of recording events: started, progress, stopped. For monitoring; rely on signals and queries instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.archive.protocol.answers import Event, RecordingProgress, RecordingStarted, RecordingStopped
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
        """A listener that publishes the events of one recording."""
        return _Listener(self._publication, channel)


class _Listener:
    def __init__(self, publication: Publication | None, channel: str) -> None:
        self._publication = publication
        self._channel = channel

    def on_started(self, session: RecordingSession) -> None:
        image = session.image
        started = RecordingStarted(
            recording_id=session.recording_id,
            start_position=session.join_position,
            session_id=image.session_id,
            stream_id=image.stream_id,
            channel=self._channel,
            source_identity=image.source_identity,
        )
        self._publish(started, _ATTEMPTS)

    def on_progress(self, session: RecordingSession) -> None:
        if self._publication is not None:
            progress = RecordingProgress(
                recording_id=session.recording_id,
                start_position=session.join_position,
                position=session.position,
            )
            # One that finds no room is made up for by the next.
            self._publish(progress, 1)

    def on_stopped(self, session: RecordingSession) -> None:
        stopped = RecordingStopped(
            recording_id=session.recording_id,
            start_position=session.join_position,
            stop_position=session.position,
        )
        self._publish(stopped, _ATTEMPTS)

    def _publish(self, event: Event, attempts: int) -> None:
        publication = self._publication
        if publication is None or not publication.is_connected:
            return
        message = encode(event)
        for _ in range(attempts):
            if publication.offer(message):
                return
