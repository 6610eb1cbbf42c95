"""Publications that say when a message is safe: recorded by an archive, and by others that keep copies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headrace import aio
from headrace._arguments import checked_class
from headrace._closing import Closing
from headrace._exceptions import ArchiveError, ArchiveTimeoutError, ConfigError, PublicationClosedError
from headrace.archive.client.copies import Copy, RecordedStream
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


@checked_class
class DurablePublication(Closing):
    """A publication that an archive records, and that waits until what it published is recorded.

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
        """What :meth:`headrace.Archive.add_durable_publication` calls."""
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
        self._copies = [Copy(archive, recording_id)]
        self._idle = self._new_idle()

    @property
    def publication(self) -> ExclusivePublication:
        """For messages whose recording is not waited for one by one. Closing it ends the recording."""
        return self._publication

    @property
    def recording_id(self) -> int:
        """The recording by the archive that the publication was made with."""
        return self._recording_id

    @property
    def copies(self) -> int:
        """How many archives record the stream: the one it was made with, and those of :meth:`add_copy`."""
        return len(self._copies)

    def add_copy(self, archive: Any, recording_id: int | None = None) -> None:
        """Wait for another archive too from now on. Does not wait itself.

        Args:
            archive: A session with it, :class:`headrace.Archive` or ``AsyncArchive``. It stays open.
            recording_id: Its recording of the stream, when that is a replica. Without it the archive records the stream
                itself, from its first byte, and is asked which recording that is. A recording of another stream is an
                error of the next wait.

        Raises:
            ConfigError: It is no session with an archive, or with one that is waited for already.
        """
        session = _session_of(archive)
        if any(_archive_of(session) == _archive_of(copy.session) for copy in self._copies):
            raise _refused_archive(
                archive, "must be of another archive: this one is waited for already, and counts once"
            )
        self._copies.append(Copy(session, recording_id, self._stream))
        self._idle = self._new_idle()

    def remove_copy(self, archive: Any) -> None:
        """Wait no more for an archive that :meth:`add_copy` was given: one that is gone, for example. Does not wait.

        Raises:
            ConfigError: It was not added, or the publication was made with it.
        """
        session = _session_of(archive)
        for copy in self._copies[1:]:
            if copy.session is session:
                copy.close()
                self._copies.remove(copy)
                self._idle = self._new_idle()
                return
        raise _refused_archive(archive, "must be one that add_copy was given")

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

        Waits without the GIL; Ctrl-C ends the wait, and the message may be recorded all the same.

        Args:
            data: As for :meth:`headrace.Publication.offer`.
            copies: How many archives have to have recorded it; ``None`` for all of :attr:`copies`.
            reserved_value: As for :meth:`headrace.Publication.offer`.
            timeout_s: How long to wait at most, in seconds, for room and for the recording; ``None`` without end.

        Returns:
            The stream position after the message.

        Raises:
            ArchiveTimeoutError: Not so many archives have recorded it in time. It was sent and may still be recorded:
                sending it again may record it twice. :meth:`wait_until_recorded` waits on.
            ArchiveError: So many archives cannot record it any more: a recording has stopped, or an archive is gone.
            PublicationTimeoutError: The message was not sent, for want of room or of a subscriber.
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
            position: What an offer returned; ``None`` for all that was sent by now.
            copies: As for :meth:`publish`.
            timeout_s: As for :meth:`publish`.

        Returns:
            The position.

        Raises:
            ArchiveTimeoutError: As for :meth:`publish`.
            ArchiveError: As for :meth:`publish`.
            PublicationClosedError: No position is given and the publication is closed.
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
        """Close the publication. What was sent is still recorded; then the recording ends. Does not wait."""
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
            rule = f"must be from 0 to {sent}, what was sent by now"
            raise ConfigError(f"position={position}: {rule}", "position", str(position), rule)
        return _Wait(self._copies, position, wanted, timeout_s, self._deadline(timeout_s))

    def _wait(self, wait: _Wait) -> None:
        if wait.is_over():
            return
        wait.hasten()
        self._idle.reset()
        while not wait.is_over():
            self._idle.idle()

    async def _wait_async(self, wait: _Wait) -> None:
        if wait.is_over():
            return
        wait.hasten()
        pauses = _pauses()
        while not wait.is_over():
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
    """Sessions that have this in common are with one archive."""
    return session.client.directory, session._config.control_channel, session._config.control_stream_id


def _refused_archive(archive: Any, rule: str) -> ConfigError:
    return ConfigError(f"archive={archive!r}: {rule}", "archive", repr(archive), rule)


class _Wait:
    """One wait until so many of the copies are at a position."""

    def __init__(
        self, copies: list[Copy], position: int, wanted: int, timeout_s: float | None, deadline: Deadline
    ) -> None:
        self.position = position
        self._copies = copies
        self._wanted = wanted
        self._timeout_s = timeout_s
        self._deadline = deadline

    def is_over(self) -> bool:
        """Look at the copies, and whether there are enough.

        Raises:
            ArchiveError: There cannot be enough any more, or not in time.
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
        """Wake the archives that are not asked."""
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
