"""Publications that know when a message is safe: recorded by an archive, and by others that keep copies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headrace import aio
from headrace._base.closing import Closing
from headrace._base.exceptions import ArchiveError, ArchiveTimeoutError, ConfigError, PublicationClosedError
from headrace.archive.client.recording_progress import RecordedStream, RecordingProgress
from headrace.archive.client.session import ArchiveSession
from headrace.client import IdleStrategy

if TYPE_CHECKING:
    from headrace.client import ExclusivePublication
    from headrace.clock import Deadline

__all__ = ["DurablePublication"]

# An archive that was woken has a message within these yields, most times; one that is far away takes longer.
_YIELDS = 100
_PARK_MIN_S = 20e-6
_PARK_MAX_S = 1e-3
_IDLE = f"0-{_YIELDS}-{_PARK_MIN_S * 1e9:.0f}ns-{_PARK_MAX_S * 1e9:.0f}ns"


class DurablePublication(Closing):
    """A publication that an archive records, and that can wait until its messages are recorded.

    Made with :meth:`headrace.Archive.add_durable_publication`. Used by one thread, or by the coroutines of one event
    loop, one after the other. A context manager that closes the publication; the recording ends with it.

    ::

        with archive.add_durable_publication("aeron:ipc", 1001) as orders:
            orders.publish(b"buy")                       # returns when the archive has written it
            for order in many:
                orders.publication.offer_blocking(order)  # at full speed
            orders.wait_until_recorded()                  # all of them

    Recorded means written to the archive's files: it survives a kill of every process. With the archive's
    ``file_sync_level`` 1 or 2 it also survives a loss of power.
    """

    def __init__(self, archive: ArchiveSession, publication: ExclusivePublication, recording_id: int) -> None:
        """Called by :meth:`headrace.Archive.add_durable_publication`."""
        self._publication = publication
        self._recording_id = recording_id
        begin = publication.position or 0
        self._stream = RecordedStream(
            publication.stream_id,
            publication.session_id,
            publication.initial_term_id,
            publication.term_length,
            begin,
        )
        self._copies = [RecordingProgress(archive, recording_id)]
        self._idle = self._new_idle()

    @property
    def publication(self) -> ExclusivePublication:
        """The publication, to send messages without waiting for each. Closing it ends the recording."""
        return self._publication

    @property
    def recording_id(self) -> int:
        """The recording by the archive that made the publication."""
        return self._recording_id

    @property
    def copies(self) -> int:
        """How many archives record the stream: the one that made the publication, and those of :meth:`add_copy`."""
        return len(self._copies)

    def add_copy(self, archive: Any, recording_id: int | None = None) -> None:
        """From now on, also wait for another archive. Does not wait itself.

        Args:
            archive: A session with it, :class:`headrace.Archive` or ``AsyncArchive``. It stays open.
            recording_id: Its recording of the stream, if that is a replica. Without it, the archive must record the
                stream itself from its first byte, and is asked for the id. If the recording is of another stream, the
                next wait raises.

        Raises:
            ConfigError: It is not a session with an archive, or that archive was added already.
        """
        session = _session_of(archive)
        if any(_archive_of(session) == _archive_of(copy.session) for copy in self._copies):
            raise _refused_archive(archive, "must be of another archive: this one already counts")
        self._copies.append(RecordingProgress(session, recording_id, self._stream))
        self._idle = self._new_idle()

    def remove_copy(self, archive: Any) -> None:
        """Stop waiting for an archive of :meth:`add_copy`, for example one that is gone. Does not wait.

        Raises:
            ConfigError: The archive was not added, or made the publication.
        """
        session = _session_of(archive)
        for copy in self._copies[1:]:
            if copy.session is session:
                copy.close()
                self._copies.remove(copy)
                self._idle = self._new_idle()
                return
        raise _refused_archive(archive, "must be an archive that add_copy added")

    def publish(
        self,
        data: Any,
        /,
        *,
        copies: int | None = None,
        reserved_value: int | None = None,
        timeout_s: float | None = 5.0,
    ) -> int:
        """Send one message, and wait until it is recorded.

        Waits without the GIL; Ctrl-C ends the wait, but the message may still be recorded.

        Args:
            data: As for :meth:`headrace.Publication.offer`.
            copies: How many archives must have recorded it; ``None`` for all of :attr:`copies`.
            reserved_value: As for :meth:`headrace.Publication.offer`.
            timeout_s: How long to wait at most, in seconds, for room and for the recording; ``None`` for no limit.

        Returns:
            The stream position after the message.

        Raises:
            ArchiveTimeoutError: Fewer than `copies` archives recorded it in time. It was sent and may still be
                recorded: sending it again may record it twice. :meth:`wait_until_recorded` waits on.
            ArchiveError: `copies` archives can no longer record it: a recording has stopped, or an archive is gone.
            PublicationTimeoutError: The message was not sent, because there was no room or no subscriber.
            PublicationClosedError: The publication is closed.
            ConfigError: ``copies`` is not from 1 to :attr:`copies`; or as for :meth:`headrace.Publication.offer`.
        """
        wanted = self._wanted(copies)
        deadline = self._deadline(timeout_s)
        position = self._publication.offer_blocking(data, reserved_value=reserved_value, timeout_s=timeout_s)
        self._wait(_Wait(self._copies, position, wanted, timeout_s, deadline))
        return position

    async def publish_async(
        self,
        data: Any,
        /,
        *,
        copies: int | None = None,
        reserved_value: int | None = None,
        timeout_s: float | None = 5.0,
    ) -> int:
        """Send one message, and wait until it is recorded, without blocking the event loop. See :meth:`publish`.

        A call that is cancelled may have sent the message.
        """
        wanted = self._wanted(copies)
        deadline = self._deadline(timeout_s)
        position = await self._publication.offer_async(
            data, reserved_value=reserved_value, timeout_s=timeout_s
        )
        await self._wait_async(_Wait(self._copies, position, wanted, timeout_s, deadline))
        return position

    def wait_until_recorded(
        self, position: int | None = None, *, copies: int | None = None, timeout_s: float | None = 5.0
    ) -> int:
        """Wait until everything before a position is recorded.

        Args:
            position: The result of an offer; ``None`` for everything sent so far.
            copies: As for :meth:`publish`.
            timeout_s: As for :meth:`publish`.

        Returns:
            The position.

        Raises:
            ArchiveTimeoutError: As for :meth:`publish`.
            ArchiveError: As for :meth:`publish`.
            PublicationClosedError: `position` is ``None`` and the publication is closed.
            ConfigError: ``copies`` is not from 1 to :attr:`copies`, or the position is not in the stream.
        """
        wait = self._wait_for(position, copies, timeout_s)
        self._wait(wait)
        return wait.position

    async def wait_until_recorded_async(
        self, position: int | None = None, *, copies: int | None = None, timeout_s: float | None = 5.0
    ) -> int:
        """Wait until everything before a position is recorded, without blocking the event loop.

        See :meth:`wait_until_recorded`.
        """
        wait = self._wait_for(position, copies, timeout_s)
        await self._wait_async(wait)
        return wait.position

    def close(self) -> None:
        """Close the publication. The archive still records what was sent; then the recording ends. Does not wait."""
        self._publication.close()
        for copy in self._copies:
            copy.close()

    def __repr__(self) -> str:
        return f"DurablePublication(recording_id={self.recording_id}, copies={self.copies}, {self._publication!r})"

    def _new_idle(self) -> IdleStrategy:
        return IdleStrategy("backoff", _IDLE, [copy.subscription for copy in self._copies])

    def _deadline(self, timeout_s: float | None) -> Deadline:
        return self._copies[0].session.clock.deadline(timeout_s)

    def _wanted(self, copies: int | None) -> int:
        if copies is None:
            return len(self._copies)
        if not 1 <= copies <= len(self._copies):
            rule = f"must be from 1 to {len(self._copies)}: add_copy adds archives"
            raise ConfigError(f"copies={copies}: {rule}", "copies", str(copies), rule)
        return copies

    def _wait_for(self, position: int | None, copies: int | None, timeout_s: float | None) -> _Wait:
        wanted = self._wanted(copies)
        sent = self._publication.position
        if position is None:
            if sent is None:
                raise PublicationClosedError("the publication is closed: give the position to wait for")
            position = sent
        elif position < 0 or (sent is not None and position > sent):
            rule = f"must be from 0 to {sent}, the position sent so far"
            raise ConfigError(f"position={position}: {rule}", "position", str(position), rule)
        return _Wait(self._copies, position, wanted, timeout_s, self._deadline(timeout_s))

    def _wait(self, wait: _Wait) -> None:
        if wait.look():
            return
        wait.hasten()
        self._idle.reset()
        while not wait.look():
            self._idle.idle()

    async def _wait_async(self, wait: _Wait) -> None:
        if wait.look():
            return
        wait.hasten()
        pauses = _pauses()
        while not wait.look():
            await self._pause(next(pauses))

    async def _pause(self, pause_s: float) -> None:
        asked = [copy.subscription for copy in self._copies if not copy.is_counted]
        if asked and pause_s:
            await aio.wait_for_messages(asked[0], pause_s, *asked[1:])
        else:
            await asyncio.sleep(pause_s)


def _session_of(archive: Any) -> ArchiveSession:
    session = getattr(archive, "archive", archive)
    if not isinstance(session, ArchiveSession):
        raise _refused_archive(archive, "must be a headrace.Archive or a headrace.archive.aio.AsyncArchive")
    return session


def _archive_of(session: ArchiveSession) -> tuple[str, str, int]:
    """Identifies the archive of a session: equal for sessions with the same archive."""
    return session.client.directory, session._config.control_channel, session._config.control_stream_id


def _refused_archive(archive: Any, rule: str) -> ConfigError:
    return ConfigError(f"archive={archive!r}: {rule}", "archive", repr(archive), rule)


class _Wait:
    """One wait until enough copies have reached a position."""

    def __init__(
        self,
        copies: list[RecordingProgress],
        position: int,
        wanted: int,
        timeout_s: float | None,
        deadline: Deadline,
    ) -> None:
        self.position = position
        self._copies = copies
        self._wanted = wanted
        self._timeout_s = timeout_s
        self._deadline = deadline

    def look(self) -> bool:
        """Whether enough copies have reached the position.

        Raises:
            ArchiveError: Enough copies can no longer reach it, or did not in time.
        """
        recorded = sum([copy.look(self.position) for copy in self._copies])
        if recorded >= self._wanted:
            return True
        failures = [copy.failure for copy in self._copies if copy.failure is not None]
        if len(self._copies) - len(failures) < self._wanted:
            raise ArchiveError(f"{self._missing(recorded)}: {self._described()}") from failures[0]
        if self._deadline.is_over:
            raise ArchiveTimeoutError(
                f"{self._missing(recorded)} within {self._timeout_s} s: {self._described()}"
            )
        return False

    def hasten(self) -> None:
        """Wake the archives that show their position by a counter."""
        for copy in self._copies:
            copy.hasten()

    def _missing(self, recorded: int) -> str:
        return f"position {self.position} is recorded {recorded} of {self._wanted} times"

    def _described(self) -> str:
        return "; ".join(copy.describe() for copy in self._copies)


def _pauses() -> Iterator[float]:
    for _ in range(_YIELDS):
        yield 0
    pause_s = _PARK_MIN_S
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, _PARK_MAX_S)
