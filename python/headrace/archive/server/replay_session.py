"""Replays one recording onto a publication whose positions are those of the recording.

Its states: ``states.py``. From every state an abort or an error leads to DONE too; then the publication is revoked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from headrace._base.exceptions import HeadraceError
from headrace._base.results import OfferResult
from headrace._base.states import Life
from headrace.archive.files.frames import read_frame
from headrace.archive.protocol.codes import ErrorCode
from headrace.archive.server.duty_cycle import work_count
from headrace.archive.server.errors import SessionFailure
from headrace.archive.server.states import REPLAY, ReplayState
from headrace.positions import FRAME_ALIGNMENT, HEADER_LENGTH, align, segment_name

if TYPE_CHECKING:
    from headrace._agent.storage import Storage, StorageFile
    from headrace.archive.files.checksum import Checksum
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.archive.server.control_session import ControlSession
    from headrace.archive.server.counters import ArchiveCounters
    from headrace.client import ExclusivePublication, Pending
    from headrace.clock import Clock

__all__ = ["Limit", "LimitState", "ReplayMeans", "ReplayRequester", "ReplaySession", "ReplaySpan"]


class LimitState(NamedTuple):
    """Whether a replay's limit may still move."""

    position: int
    may_move: bool
    is_at_frame: bool
    """Whether a frame is known to end at the position; a counter's value may lie within one."""


class Limit(Protocol):
    """The position up to which a replay may go now."""

    def state(self) -> LimitState:
        """The limit, asked for again whenever the replay has reached the last one."""


class _ChecksumMismatch(Exception):
    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


@dataclass(frozen=True, slots=True)
class ReplayRequester:
    """Who asked for a replay.

    Attributes:
        session: The client's session.
        correlation_id: The id of the request.
        number: The archive's id of the replay.
    """

    session: ControlSession
    correlation_id: int
    number: int


@dataclass(frozen=True, slots=True)
class ReplaySpan:
    """The range of a replay.

    Attributes:
        position: Where it starts.
        stop: The end of what can be replayed now.
        replay_limit: Where it ends; a frame that begins before this position is still sent whole.
        limit: What may move ``stop``; ``None`` for a recording that has stopped.
    """

    position: int
    stop: int
    replay_limit: int
    limit: Limit | None


@dataclass(frozen=True, slots=True)
class ReplayMeans:
    """What a replay needs to read files.

    Attributes:
        storage: The archive's files.
        clock: The clock.
        timeout_ns: How long to wait for the first file, and for a subscriber.
        io_length: Most bytes to read at once.
        checksum: The checksum of the frames, to check them.
        counters: The counters of reads.
    """

    storage: Storage
    clock: Clock
    timeout_ns: int
    io_length: int
    checksum: Checksum | None = None
    counters: ArchiveCounters | None = None


class ReplaySession:
    """One active replay.

    Args:
        requester: Who asked for it.
        descriptor: The recording.
        publication: The publication to replay to, at the first position.
        span: The range.
        means: What it needs to read files.
    """

    def __init__(
        self,
        requester: ReplayRequester,
        descriptor: RecordingDescriptor,
        publication: Pending[ExclusivePublication],
        span: ReplaySpan,
        means: ReplayMeans,
    ) -> None:
        self.session = requester.session
        self.correlation_id = requester.correlation_id
        self.replay_id: int | None = None
        """What the client knows the replay by, once there is a publication."""
        self.recording_id = descriptor.recording_id
        self.failure: SessionFailure | None = None
        self.life = Life(REPLAY)
        self._descriptor = descriptor
        self._geometry = descriptor.geometry
        self._number = requester.number
        self._pending: Pending[ExclusivePublication] | None = publication
        self._publication: ExclusivePublication
        self._position = span.position
        self._stop = span.stop
        self._replay_limit = span.replay_limit
        self._limit = span.limit
        self._storage = means.storage
        self._clock = means.clock
        self._deadline_ns = means.clock.monotonic_ns() + means.timeout_ns
        self._io_length = means.io_length
        self._checksum = means.checksum
        self._counters = means.counters
        self._file: StorageFile | None = None
        self._base = -1
        self._padding = 0
        self._is_cut = False

    @property
    def state(self) -> ReplayState:
        """See :data:`headrace.archive.server.states.REPLAY`."""
        return self.life.state

    @property
    def is_done(self) -> bool:
        """True when the replay has ended and can be closed."""
        return self.state in (ReplayState.SENT, ReplayState.DONE)

    @property
    def position(self) -> int:
        """The end of what was sent."""
        return self._position

    @property
    def segment_base(self) -> int:
        """The base of the segment file that it reads, or will read next."""
        return self._geometry.segment_base(self._position)

    def abort(self, reason: str | None = None) -> None:
        """End without sending the rest; the client gets the reason, if there is one."""
        if self.is_done:
            return
        if reason is not None:
            text = f"the replay of recording {self.recording_id} was ended at position={self._position}: {reason}"
            self._refuse(ErrorCode.GENERIC, text)
        elif self.state is ReplayState.INIT:
            # The client that asked for it still awaits an answer.
            self._refuse(
                ErrorCode.GENERIC, f"the replay of recording {self.recording_id} was stopped before it began"
            )
        self.life.enter(ReplayState.DONE, "the client stopped it")

    def do_work(self) -> int:
        """One turn: at most one block. Returns the work count, which is 0 for a few bytes (``duty_cycle.py``)."""
        if self.state is ReplayState.REPLAYING:
            return self._replay()
        if self.state is ReplayState.INIT:
            return self._init()
        if self.state is ReplayState.CONNECTING:
            return self._connect()
        return 0

    def fail(self, cause: Exception) -> None:
        """End because of a failure of the archive."""
        self._break(f"cannot replay recording {self.recording_id}: {cause}", cause)

    def _break(self, text: str, cause: Exception | None = None) -> int:
        self.failure = SessionFailure(ErrorCode.GENERIC, text, cause=cause)
        self.life.enter(ReplayState.DONE, text, is_fault=True)
        return 1

    def _refuse(self, code: ErrorCode, text: str) -> int:
        """End because of the client's request or behaviour."""
        self.failure = SessionFailure(code, text, is_clients_doing=True)
        self.life.enter(ReplayState.DONE, text)
        return 1

    def _finish(self) -> int:
        self.life.enter(ReplayState.SENT, f"all was sent, position={self._position}")
        return 1

    def _init(self) -> int:
        if self._pending is not None and not self._take_publication(self._pending):
            return 0
        is_within = self._descriptor.start_position < self._position != self._stop
        if (is_within or self._position < self._replay_limit) and not self._open_file():
            # A recording that has just begun makes its first file a moment later.
            if self._clock.monotonic_ns() < self._deadline_ns:
                return 0
            return self._break(f"recording segment file not created: {self._file_path()}")
        if is_within and not self._is_at_frame():
            text = f"replayPosition={self._position} does not point to a valid frame, {self._file_path()}"
            return self._refuse(ErrorCode.INVALID_POSITION, text)
        assert self.replay_id is not None, "the publication was added"
        self.session.send_ok(self.correlation_id, self.replay_id)
        self.life.enter(ReplayState.CONNECTING, "its publication was added")
        return 1

    def _take_publication(self, pending: Pending[ExclusivePublication]) -> bool:
        try:
            publication = pending.poll()
        except HeadraceError as refusal:
            # The driver refuses a channel, which is what the client chose.
            self._refuse(ErrorCode.GENERIC, f"cannot replay recording {self.recording_id}: {refusal}")
            return False
        if publication is None:
            return False
        self._publication, self._pending = publication, None
        self.replay_id = self._number << 32 | publication.session_id & 0xFFFF_FFFF
        return True

    def _is_at_frame(self) -> bool:
        assert self._file is not None, "opened before it is read"
        header = self._file.read(self._position - self._base, HEADER_LENGTH)
        if len(header) < HEADER_LENGTH:
            return False
        frame, geometry = read_frame(header), self._geometry
        found = frame.term_offset, frame.term_id, frame.stream_id
        position = self._position
        return found == (
            geometry.term_offset(position),
            geometry.term_id(position),
            self._descriptor.stream_id,
        )

    def _connect(self) -> int:
        if self._publication.is_connected:
            self.life.enter(ReplayState.REPLAYING, "a subscriber came")
            return 1
        if self._clock.monotonic_ns() >= self._deadline_ns:
            text = (
                f"no connection established for replayChannel={self._publication.channel}, replayStreamId="
                f"{self._publication.stream_id}: no subscriber came for the replay of recording {self.recording_id}"
            )
            return self._refuse(ErrorCode.GENERIC, text)
        return 0

    def _replay(self) -> int:
        if not self._publication.is_connected:
            self.life.enter(ReplayState.DONE, f"its subscriber left at position={self._position}")
            return 1
        if self._position >= self._replay_limit:
            return self._finish()
        if (self._is_cut or self._position >= self._stop) and not self._advance_stop():
            return 0 if self.state is ReplayState.REPLAYING else 1
        if self._padding:
            return self._send_padding()
        if self._position - self._base >= self._geometry.segment_length and not self._open_file():
            return self._break(f"recording segment not found: {self._file_path()}")
        return self._send_block()

    def _advance_stop(self) -> bool:
        """Update how far the replay may go; false when there is nothing to send now, or ever."""
        if self._limit is None:
            self._finish()
            return False
        limit = self._limit.state()
        has_moved = limit.position > self._stop
        if has_moved:
            self._stop, self._is_cut = limit.position, False
        if not limit.may_move:
            self._replay_limit = min(self._replay_limit, self._stop)
        # If the limit lies within a frame, nothing of that frame is sent; if it stays there, the replay ends before it.
        if self._position >= self._replay_limit or (self._is_cut and not limit.may_move):
            self._finish()
            return False
        return self._position < self._stop and not self._is_cut

    def _open_file(self) -> bool:
        base = self._geometry.segment_base(self._position)
        try:
            file = self._storage.open(segment_name(self.recording_id, base), read_only=True)
        except FileNotFoundError:
            return False
        self._close_file()
        self._file, self._base = file, base
        return True

    def _file_path(self) -> str:
        base = self._geometry.segment_base(self._position)
        return self._storage.describe(segment_name(self.recording_id, base))

    def _send_block(self) -> int:
        position = self._position
        wanted = min(self._stop - position, self._io_length)
        try:
            block = self._publication.offer_recorded(self._read, wanted, self._replay_limit - position)
        except _ChecksumMismatch as wrong:
            return self._break(f"CRC checksum mismatch at position={wrong.position}, {self._file_path()}")
        if isinstance(block, OfferResult):
            return 0
        if block.length == 0 and not block.padding:
            return self._stay(position, is_malformed=block.is_malformed)
        self._position += block.length
        if block.padding and self._position < self._replay_limit:
            padding = align(block.padding, FRAME_ALIGNMENT)
            if self._position + padding > self._stop:
                return max(block.length, self._stay(self._position, is_malformed=False))
            self._padding = padding
            return block.length + self._send_padding()
        # Short because it may be no longer, and not because no more was recorded: the rest is due at once.
        return (
            block.length
            if self._position < self._stop
            else work_count(block.length, self._geometry.term_length)
        )

    def _stay(self, position: int, *, is_malformed: bool) -> int:
        """Handle a frame that cannot be read whole: wait if the limit cuts it, else end because it is damaged."""
        if not is_malformed and self._limit is not None and not self._limit.state().is_at_frame:
            self._is_cut = True
            return 0
        what = "" if is_malformed else ": the file ends within the frame"
        return self._break(f"unexpected end of recording at position={position}{what}, {self._file_path()}")

    def _read(self, header: memoryview, rest: memoryview) -> int:
        file, position = self._file, self._position
        assert file is not None, "opened before it is read"
        before_ns = self._clock.monotonic_ns()
        length = file.read_into(position - self._base, header, rest)
        if self._counters is not None:
            self._counters.read(length, self._clock.monotonic_ns() - before_ns)
        if self._checksum is not None:
            block = b"".join((header, rest))[:length]
            wrong = self._checksum.first_wrong(block, min(self._replay_limit - position, length))
            if wrong is not None:
                raise _ChecksumMismatch(position + wrong)
        return length

    def _send_padding(self) -> int:
        # A gap that was not repaired may be longer than the longest message, which is what a publication pads at once.
        span = min(self._padding, self._publication.max_message_length)
        if not self._publication.append_padding(span - HEADER_LENGTH):
            return 0
        self._position += span
        self._padding -= span
        return 1

    def _close_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def close(self) -> None:
        """End the stream in order if all of it was sent, else revoke it."""
        is_whole = self.state is ReplayState.SENT
        self.life.enter(ReplayState.DONE, "its publication is closed" if is_whole else "the archive closes")
        try:
            self._close_file()
        finally:
            # Also of a file that the disk refuses to close: the subscriber waits for the end.
            self._close_publication(is_whole=is_whole)

    def _close_publication(self, *, is_whole: bool) -> None:
        if self._pending is not None:
            self._pending.cancel()
            return
        if not is_whole:
            self._publication.revoke()
        self._publication.close()
