"""A session with an archive that continues with the next driver, and publications that are recorded again there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from headrace._base.closing import Closing
from headrace._base.exceptions import ArchiveError, ClosedError
from headrace.archive.client import calls, steps
from headrace.archive.client.extension import extension_channel
from headrace.archive.client.session import ArchiveSession
from headrace.archive.client.signals import Signal
from headrace.archive.protocol.descriptor import RecordingDescriptor
from headrace.archive.protocol.retention import Retention, without_retention
from headrace.client import Client
from headrace.client._reconnecting import ReconnectingClient
from headrace.client._reconnecting_streams import ReconnectingPublication

if TYPE_CHECKING:
    from headrace.client import ExclusivePublication

__all__ = ["ReconnectingArchive"]

Session = TypeVar("Session", bound=ArchiveSession)


class ReconnectingArchive(Closing, Generic[Session]):
    """A session with an archive that is opened again when its driver or the archive has ended and come back.

    Made by :meth:`headrace.Archive.connect` with a reconnecting client. Its methods and attributes are those of a
    :class:`headrace.Archive`: each use goes to :attr:`current`. Thread-safe, and a context manager like that one.

    A request that is in flight when the session is lost raises, since the archive may have carried it out. The next
    request opens a session first, and waits for the driver and for the archive, each at most ``message_timeout_s``; if
    an archive on another machine has just restarted, it may take one more request. Replays, follows, watched
    replications, durable publications and signals that were not taken belong to one session, and end with it. Only the
    publications of :meth:`add_recorded_publication` come back by themselves.
    """

    def __init__(
        self,
        client: ReconnectingClient,
        open_session: Callable[..., Session],
        on_signal: Callable[[Signal], object] | None,
        on_error: Callable[[ArchiveError], object] | None,
        timeout_s: float,
    ) -> None:
        """Called by :meth:`headrace.Archive.connect`; `open_session` takes the client of one driver."""
        self._reconnecting = client
        self._open_session = open_session
        self._handlers = on_signal, on_error
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._is_closed = False
        self._session = self._open()

    def _open(self) -> Session:
        native = self._reconnecting._with_driver(self._timeout_s)
        on_signal, on_error = self._handlers
        return self._open_session(native, on_signal=on_signal, on_error=on_error)

    @property
    def current(self) -> Session:
        """The session with the present archive, opened if necessary.

        Raises:
            ClosedError: This program has closed the session, or its client.
            DriverTimeoutError: No driver has come back within ``message_timeout_s``.
            ArchiveError: As for :meth:`headrace.Archive.connect`.
        """
        with self._lock:
            if self._is_closed:
                raise ClosedError("the session with the archive is closed")
            if self._is_lost:
                self._session.close()
                self._session = self._open()
            return self._session

    @property
    def _is_lost(self) -> bool:
        session = self._session
        # The streams to an archive that has ended may be connected to the next one, which does not know the session.
        return not session.is_connected or (session._is_local and not session._is_archive_here)

    def add_recorded_publication(
        self, channel: str, stream_id: int, *, retention: Retention | None = None
    ) -> ReconnectingPublication:
        """As :meth:`headrace.Archive.add_recorded_publication`, and recorded again with each next driver.

        There it continues its recording, which may end before the last message sent: messages that no archive had
        written are lost. If the archive no longer has the recording, or it cannot be extended, it begins another one.
        Until an archive takes requests, none of the client's streams comes back. If the archive ends while its driver
        lives on, the recording ends, and the publication is not recorded any more.
        """
        recorded = _RecordedAgain(self._open_session, channel, stream_id, retention)
        return ReconnectingPublication(self._reconnecting, recorded.add)

    @property
    def is_connected(self) -> bool:
        """True while a session with a running archive is open."""
        return not self._is_closed and self._session.is_connected

    @property
    def is_closed(self) -> bool:
        """True once this program has closed the session, or its client."""
        return self._is_closed or self._reconnecting.is_closed

    def close(self) -> None:
        """End the session for good. Closing again does nothing; publications and their recordings continue."""
        with self._lock:
            self._is_closed = True
            self._session.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.current, name)

    def __repr__(self) -> str:
        return f"ReconnectingArchive({self._session!r}{', closed' if self.is_closed else ''})"


class _RecordedAgain:
    """Adds and records a publication, again for each driver; the client does this for one driver after the other."""

    def __init__(
        self,
        open_session: Callable[..., Any],
        channel: str,
        stream_id: int,
        retention: Retention | None,
    ) -> None:
        self._open_session = open_session
        self._channel = channel
        self._stream_id = stream_id
        self._retention = retention
        self._recording: RecordingDescriptor | None = None

    def add(self, client: Client) -> ExclusivePublication:
        """Add the publication to the client of a driver, with the recording that it continues, or a new one."""
        with self._open_session(client) as archive:
            publication = self._extending(archive)
            if publication is None:
                publication = archive.add_recorded_publication(
                    self._channel, self._stream_id, retention=self._retention
                )
            try:
                recording_id = archive.find_last_matching_recording(
                    "", self._stream_id, publication.session_id
                )
                assert recording_id is not None, "it has begun"
                self._recording = archive.find_recording(recording_id)
            except BaseException:
                publication.close()
                raise
            return publication

    def _extending(self, archive: Any) -> ExclusivePublication | None:
        """A publication that continues the recording of the last one, if the archive still has it and agrees."""
        last = self._recording
        found = None if last is None else archive.find_recording(last.recording_id)
        if last is None or found is None or not _is_same(last, found) or found.is_active:
            return None
        channel = extension_channel(without_retention(self._channel), found)
        publication: ExclusivePublication = archive.client.add_exclusive_publication(channel, self._stream_id)
        try:
            archive._run(steps.recorded(calls.extension_of(publication, self._channel, found.recording_id)))
        except ArchiveError:
            publication.close()
            return None
        except BaseException:
            publication.close()
            raise
        return publication


def _is_same(one: RecordingDescriptor, other: RecordingDescriptor) -> bool:
    """Whether an id names the same recording at two archives, which may be one."""
    return (one.start_timestamp, one.session_id, one.stream_id, one.initial_term_id) == (
        other.start_timestamp,
        other.session_id,
        other.stream_id,
        other.initial_term_id,
    )
