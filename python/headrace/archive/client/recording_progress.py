"""Finds out how far an archive has recorded a stream, step by step and without waiting.

The position counter shows this for a recording on the driver of this program. Any other archive is asked, again and
again: each answer comes as soon as the archive gets to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace._base.exceptions import ArchiveError, ArchiveTimeoutError, HeadraceError
from headrace.archive.client import calls
from headrace.archive.protocol.codes import ErrorCode
from headrace.archive.protocol.counters import RECORDING_POSITION, archive_id_of, recording_id_of

if TYPE_CHECKING:
    from headrace.archive.client.exchange import Exchange, Steps
    from headrace.archive.client.session import ArchiveSession
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.client import Subscription

__all__ = ["RecordedStream", "RecordingProgress"]

# Between two questions when the answer to the first was nothing new.
_PAUSE_MIN_NS = 50_000
_PAUSE_MAX_NS = 10_000_000


@dataclass(frozen=True, slots=True)
class RecordedStream:
    """The recorded stream: that of one publication, from a position on."""

    stream_id: int
    session_id: int
    initial_term_id: int
    term_length: int
    begin_position: int

    def defect_of(self, recording: RecordingDescriptor) -> str | None:
        """Why a recording cannot be of this stream; ``None`` if it can. A replica may have another session id."""
        for name, found, own in (
            ("stream_id", recording.stream_id, self.stream_id),
            ("initial_term_id", recording.initial_term_id, self.initial_term_id),
            ("term_length", recording.term_buffer_length, self.term_length),
        ):
            if found != own:
                return f"it has {name}={found}, and the stream {own}"
        return None


class RecordingProgress:
    """How far one archive has recorded a stream. Used by one thread at a time.

    Attributes:
        session: The session with the archive.
        recording_id: Which recording; ``None`` until the archive has answered that.
        position: The recorded position at the last look; ``None`` before the first.
        failure: Why the recording will not continue; ``None`` while it may.
    """

    def __init__(
        self, session: ArchiveSession, recording_id: int | None, unchecked: RecordedStream | None = None
    ) -> None:
        """`unchecked` is the stream, or ``None`` if the recording is known to have it from its first byte."""
        self.session = session
        self.recording_id = recording_id
        self.position: int | None = None
        self.failure: HeadraceError | None = None
        self._unchecked = unchecked
        self._counter = None if unchecked is not None else self._found_counter()
        self._exchange: Exchange[int | None] | None = None
        self._next_ask_ns = 0
        self._pause_ns = 0

    @property
    def is_counted(self) -> bool:
        """Whether a counter shows the position; a counter rings no doorbell."""
        return self._counter is not None

    @property
    def subscription(self) -> Subscription:
        """The subscription on which the archive answers."""
        return self.session._subscription

    def look(self, position: int) -> bool:
        """Whether everything before a position is known to be recorded; also continues to find out."""
        if self.position is not None and self.position >= position:
            return True
        if self.failure is None:
            try:
                self._step(position)
            except HeadraceError as failure:
                self.failure = failure
        return self.position is not None and self.position >= position

    def hasten(self) -> None:
        """Wake the archive, so that it records without finishing its pause."""
        if self.is_counted:
            self.session._nudge()

    def close(self) -> None:
        """Stop asking."""
        if self._exchange is not None:
            with self.session._lock:
                self.session._end(self._exchange)
            self._exchange = None

    def describe(self) -> str:
        """The state of the copy, for people."""
        archive = f"the archive at {self.session._publication.channel}"
        if self.failure is not None:
            return f"{archive}: {self.failure}"
        if self.recording_id is None:
            return f"{archive} has no recording of the stream"
        if self.position is None:
            return f"{archive} has not said how far recording {self.recording_id} is"
        return f"recording {self.recording_id} of {archive} is at {self.position}"

    def _step(self, position: int) -> None:
        if self._counter is not None and self._read_counter():
            assert self.position is not None, "read"
            # A driver that has died takes no counter back.
            if self.position >= position or not self.session.client.is_closed:
                return
        now_ns = self.session.clock.monotonic_ns()
        if self._exchange is None and now_ns < self._next_ask_ns:
            return
        # Held by a thread that awaits an answer of its own: it takes ours, and the next look asks.
        if not self.session._lock.acquire(blocking=False):
            return
        try:
            self._ask(now_ns, position)
        finally:
            self.session._lock.release()

    def _ask(self, now_ns: int, position: int) -> None:
        session = self.session
        exchange = self._exchange
        if exchange is None:
            exchange = self._exchange = session._begin(self._told(position))
        if exchange.to_send is not None and session._publication.offer(exchange.to_send):
            exchange.sent()
        if not session.poll():
            session._look_after(exchange)
        if not exchange.is_done:
            return
        session._end(exchange)
        self._exchange = None
        known = self.position
        try:
            told = exchange.result()
        except ArchiveTimeoutError:
            told = None  # It may be busy, and what waits has a time-out of its own.
        if told is not None:
            if known is None:
                self._counter = self._found_counter()
            self.position = told
        self._pause_ns = 0 if told != known else min(max(self._pause_ns * 2, _PAUSE_MIN_NS), _PAUSE_MAX_NS)
        self._next_ask_ns = now_ns + self._pause_ns

    def _told(self, position: int) -> Steps[int | None]:
        """The position that the archive has answered; ``None`` while it has no recording."""
        if self._unchecked is not None:
            yield from self._check(self._unchecked)
        recording_id = self.recording_id
        if recording_id is None:
            return None
        active = yield from calls.recording_position(recording_id)
        if active is not None:
            return active
        stopped = yield from calls.max_recorded_position(recording_id)
        if stopped < position:
            text = f"recording {recording_id} stopped at position {stopped}, before {position}"
            raise ArchiveError(text, recording_id=recording_id)
        return stopped

    def _check(self, stream: RecordedStream) -> Steps[None]:
        """Find the recording, unless its id is known, and check that it has the whole stream."""
        given, found = self.recording_id, self.recording_id
        if found is None:
            found = yield from calls.find_last_matching_recording("", stream.stream_id, stream.session_id)
            if found is None:
                return
        recording = yield from calls.find_recording(found)
        if recording is None:
            code = ErrorCode.UNKNOWN_RECORDING
            raise ArchiveError(f"unknown recording id: {found} ({code.name})", int(code), code.name, found)
        defect = stream.defect_of(recording)
        if defect is not None and given is None:
            return  # Of an earlier publication, which had the same session id.
        if defect is not None:
            raise ArchiveError(f"recording {found} is of another stream: {defect}", recording_id=found)
        start, begin = recording.start_position, stream.begin_position
        if start > begin:
            text = f"recording {found} begins at position {start}, and the stream at {begin}"
            advice = "begin to record before the publication is made, or give the id of a replica"
            raise ArchiveError(f"{text}; {advice}", recording_id=found)
        self.recording_id, self._unchecked = found, None

    def _found_counter(self) -> tuple[int, int] | None:
        """The id and the registration of the recording's counter, if the archive is on this driver.

        Archives on two drivers may have the same ids, and so may their recordings.
        """
        if not self.session._publication.channel.startswith("aeron:ipc"):
            return None
        for one in self.session.client.counters:
            if (
                one.type_id == RECORDING_POSITION
                and recording_id_of(one.key) == self.recording_id
                and archive_id_of(one.key) == self.session.archive_id
            ):
                return one.counter_id, one.registration_id
        return None

    def _read_counter(self) -> bool:
        """Take the counter's value; false if the counter is gone, so that the archive must be asked."""
        assert self._counter is not None
        counter_id, registration_id = self._counter
        try:
            # All of it is of one moment: a value is that of the counter's owner.
            record = self.session.client.counters[counter_id]
        except KeyError:
            record = None
        if (
            record is None
            or record.registration_id != registration_id
            or record.type_id != RECORDING_POSITION
        ):
            self._counter = None
            return False
        self.position = record.value
        return True
