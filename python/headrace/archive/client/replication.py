"""The client's view of a replication: waits for the signals and the error that the archive sends about it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from headrace import aio
from headrace._base.checks import check_names, wrong
from headrace._base.exceptions import ArchiveError, ArchiveTimeoutError
from headrace.archive.client import steps
from headrace.archive.client.recording_progress import RecordingProgress
from headrace.archive.protocol.codes import RecordingSignal
from headrace.archive.protocol.requests import ReplicateRequest2
from headrace.channel import ChannelUri
from headrace.positions import NULL_VALUE, signed_32

if TYPE_CHECKING:
    from typing import Unpack

    from headrace.archive.client.exchange import Steps
    from headrace.archive.client.session import ArchiveSession
    from headrace.archive.client.signals import Signal, Watch
    from headrace.clock import Deadline

__all__ = ["Replication", "ReplicationSettings", "replication_begun"]

_RULE = "is not an argument of replicate, see headrace.Archive.replicate"
_PAUSE_S = 0.001
_LOOK_INTERVAL_S = 0.01
_ENDS = (RecordingSignal.STOP, RecordingSignal.MERGE)
_REACHED = (*_ENDS, RecordingSignal.SYNC)


class ReplicationSettings(TypedDict, total=False):
    """Keyword arguments of :meth:`headrace.Archive.replicate`."""

    source_stream_id: int
    destination_id: int | None
    stop_position: int | None
    live_destination: str | None
    replication_channel: str | None
    session_id: int | None
    channel_tag_id: int | None
    subscription_tag_id: int | None
    file_io_max_length: int | None
    credentials: bytes
    source_response_channel: str | None


@dataclass(frozen=True, slots=True)
class _Settings:
    source_stream_id: int = 10
    destination_id: int | None = None
    stop_position: int | None = None
    live_destination: str | None = None
    replication_channel: str | None = None
    session_id: int | None = None
    channel_tag_id: int | None = None
    subscription_tag_id: int | None = None
    file_io_max_length: int | None = None
    credentials: bytes = field(default=b"", repr=False)
    source_response_channel: str | None = None


def replication_begun(
    session: ArchiveSession,
    source_recording_id: int,
    source_channel: str,
    **settings: Unpack[ReplicationSettings],
) -> Steps[Watch]:
    """Ask for a replication, and keep all signals and errors that the archive sends about it.

    Raises:
        ConfigError: An argument is unknown or wrong.
    """
    names = [field.name for field in dataclasses.fields(_Settings)]
    check_names(settings, names, _RULE, others=("source_recording_id", "source_channel"))
    request = _request(session, source_recording_id, source_channel, _Settings(**settings))

    def begun() -> Steps[Watch]:
        # Within the step that takes the answer: the next message may be of the replication already.
        return session._signals.watch((yield from steps.replication_started(request)))

    return begun()


def _request(
    session: ArchiveSession, source_recording_id: int, source_channel: str, chosen: _Settings
) -> ReplicateRequest2:
    ChannelUri(source_channel)
    for channel in (chosen.live_destination, chosen.replication_channel, chosen.source_response_channel):
        if channel is not None:
            ChannelUri(channel)
    session_id = chosen.session_id
    if chosen.live_destination is not None and session_id is not None:
        rule = "must not be given with live_destination: the replay has the session id of the live stream"
        raise wrong("session_id", session_id, rule)
    is_response = (
        chosen.replication_channel is not None and ChannelUri(chosen.replication_channel).is_response
    )
    if is_response and session_id is not None:
        rule = "must not be given with a response channel: the other archive names the stream"
        raise wrong("session_id", session_id, rule)
    if chosen.live_destination is None and not is_response and session_id is None:
        # A stream that is being closed somewhere may still have the id of the source.
        session_id = signed_32(session.clock.epoch_ms() + session.client.next_correlation_id())
    return ReplicateRequest2(
        src_recording_id=source_recording_id,
        dst_recording_id=_or_null(chosen.destination_id),
        stop_position=_or_null(chosen.stop_position),
        channel_tag_id=_or_null(chosen.channel_tag_id),
        subscription_tag_id=_or_null(chosen.subscription_tag_id),
        src_control_stream_id=chosen.source_stream_id,
        file_io_max_length=_or_null(chosen.file_io_max_length),
        replication_session_id=_or_null(session_id),
        src_control_channel=source_channel,
        live_destination=chosen.live_destination or "",
        replication_channel=chosen.replication_channel or "",
        encoded_credentials=chosen.credentials,
        src_response_channel=chosen.source_response_channel or "",
    )


def _or_null(value: int | None) -> int:
    return NULL_VALUE if value is None else value


@dataclass(frozen=True, slots=True)
class _Goal:
    """The goal of a wait: whether it is reached, whether it can no longer be, and what is missing meanwhile."""

    is_reached: Callable[[], bool]
    is_vain: Callable[[], bool]
    missing: str


class Replication:
    """A replication, started with :meth:`headrace.Archive.replicate`.

    The archives continue it whether or not this program waits for it; :meth:`headrace.Archive.stop_replication` stops
    it. Used by one thread at a time, or by the coroutines of one event loop.
    """

    def __init__(self, archive: ArchiveSession, watch: Watch) -> None:
        """Called by :meth:`headrace.Archive.replicate`."""
        self._archive = archive
        self._watch = watch
        self._copy: RecordingProgress | None = None

    def __repr__(self) -> str:
        return f"Replication(replication_id={self.replication_id}, signals={len(self._watch.signals)})"

    @property
    def replication_id(self) -> int:
        """The archive's id of the replication, which is the ``correlation_id`` of its signals."""
        return self._watch.correlation_id

    @property
    def signals(self) -> list[Signal]:
        """All signals of the replication so far, oldest first. Never blocks."""
        self._archive.poll()
        return list(self._watch.signals)

    @property
    def recording_id(self) -> int | None:
        """The recording with the copy; ``None`` until the archive has sent its id."""
        known = (one.recording_id for one in self.signals if one.recording_id != NULL_VALUE)
        return next(known, None)

    @property
    def has_ended(self) -> bool:
        """True once the replication has ended, in order or not, and its recording has a stop position."""
        found = [one.signal for one in self.signals]
        if RecordingSignal.REPLICATE_END not in found:
            return False
        return RecordingSignal.EXTEND not in found or any(end in found for end in _ENDS)

    @property
    def error(self) -> ArchiveError | None:
        """The error of a replication that has failed, else ``None``. Never blocks."""
        self._archive.poll()
        return self._watch.error

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait until it has ended. Ctrl-C ends the wait, but not the replication.

        Args:
            timeout_s: How long to wait at most, in seconds; ``None`` to wait without end.

        Returns:
            The position at which the copy ends; after a merge, the position at which the live stream took over.
            ``None`` if nothing had to be copied and the archive did not send the end of the copy.

        Raises:
            ArchiveError: It failed: the source is unknown, refuses or is gone, or the copy could not be recorded. The
                copy so far stays. Or the session with the archive is lost.
            ArchiveTimeoutError: It has not ended in time, and continues.
        """
        self._block(self._goal_end(), timeout_s)
        return self._end_position()

    async def wait_async(self, timeout_s: float | None = None) -> int | None:
        """As :meth:`wait`, without blocking the event loop. Cancelling it does not stop the replication."""
        await self._sleep(self._goal_end(), timeout_s)
        return self._end_position()

    def wait_for(self, signal: RecordingSignal, timeout_s: float | None = None) -> Signal:
        """Wait for a signal, which may have arrived before; signals stay in :attr:`signals`.

        Args:
            signal: ``REPLICATE`` when the copy is in the catalog, ``EXTEND`` when the first bytes are recorded,
                ``SYNC`` when the copy is as long as a stopped source, ``MERGE`` when the live stream has taken over,
                ``REPLICATE_END`` at the end.
            timeout_s: How long to wait at most, in seconds; ``None`` to wait without end.

        Raises:
            ArchiveError: It failed, or it has ended without this signal.
            ArchiveTimeoutError: The signal did not come in time.
        """
        self._block(self._goal_signal(signal), timeout_s)
        return self._found(signal)

    async def wait_for_async(self, signal: RecordingSignal, timeout_s: float | None = None) -> Signal:
        """As :meth:`wait_for`, without blocking the event loop."""
        await self._sleep(self._goal_signal(signal), timeout_s)
        return self._found(signal)

    def wait_for_position(self, position: int, timeout_s: float | None = None) -> None:
        """Wait until everything before a position is in the copy, also after a merge.

        Raises:
            ArchiveError: It failed, or the copy has ended before that position.
            ArchiveTimeoutError: The copy did not reach the position in time.
        """
        self._block(self._goal_position(position), timeout_s)

    async def wait_for_position_async(self, position: int, timeout_s: float | None = None) -> None:
        """As :meth:`wait_for_position`, without blocking the event loop."""
        await self._sleep(self._goal_position(position), timeout_s)

    # --- waiting ---------------------------------------------------------------------------------------------------

    def _goal_end(self) -> _Goal:
        return _Goal(lambda: self.has_ended, lambda: False, "it has not ended")

    def _goal_signal(self, signal: RecordingSignal) -> _Goal:
        missing = f"no signal {signal.name}"
        return _Goal(lambda: self._find(signal) is not None, lambda: self.has_ended, missing)

    def _goal_position(self, position: int) -> _Goal:
        missing = f"the copy is not at position={position}"
        return _Goal(lambda: self._has(position), lambda: self._has_stopped, missing)

    def _block(self, goal: _Goal, timeout_s: float | None) -> None:
        clock = self._archive.clock
        deadline = clock.deadline(timeout_s)
        try:
            while not self._look(goal, deadline):
                clock.sleep(_PAUSE_S)
        finally:
            self._leave_copy()

    async def _sleep(self, goal: _Goal, timeout_s: float | None) -> None:
        deadline = self._archive.clock.deadline(timeout_s)
        try:
            while not self._look(goal, deadline):
                await aio.wait_for_messages(self._archive._subscription, _LOOK_INTERVAL_S)
        finally:
            self._leave_copy()

    def _look(self, goal: _Goal, deadline: Deadline) -> bool:
        """Whether the goal is reached; raises if it can no longer be, or was not in time."""
        # First, so that an end does not overtake what came before it.
        is_vain = goal.is_vain()
        if goal.is_reached():
            return True
        text = f"replication {self.replication_id}: {goal.missing}"
        if is_vain:
            raise self.error or ArchiveError(f"{text}, and it has ended", recording_id=self.recording_id)
        self._archive._check_open()
        if deadline.is_over:
            raise ArchiveTimeoutError(f"{text} in time, and continues", recording_id=self.recording_id)
        return False

    @property
    def _has_stopped(self) -> bool:
        """Whether the copy no longer grows."""
        return self.has_ended and self._find(RecordingSignal.MERGE) is None

    def _has(self, position: int) -> bool:
        if any(one.position >= position for one in self.signals if one.signal in _REACHED):
            return True
        copy, extended = self._copy, self._find(RecordingSignal.EXTEND)
        if copy is None and extended is not None:
            copy = self._copy = RecordingProgress(self._archive, extended.recording_id)
        if copy is None:
            return False
        if not copy.look(position) and copy.failure is not None:
            raise self.error or copy.failure
        return copy.position is not None and copy.position >= position

    def _leave_copy(self) -> None:
        """Stop asking for the position of the copy."""
        if self._copy is not None:
            self._copy.close()
            self._copy = None

    def _find(self, signal: RecordingSignal) -> Signal | None:
        return next((one for one in self.signals if one.signal is signal), None)

    def _found(self, signal: RecordingSignal) -> Signal:
        found = self._find(signal)
        assert found is not None, "waited for"
        return found

    def _end_position(self) -> int | None:
        """The end of the copy by the archive's last signals."""
        if self._watch.error is not None:
            raise self._watch.error
        said = (one.position for one in reversed(self.signals) if one.signal in _REACHED)
        return next(said, None)
