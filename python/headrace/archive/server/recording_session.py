"""Records one image: takes blocks of whole frames from the log and writes them, until the stream ends or is stopped.

Its states: ``states.py``. Only the recorder's thread changes it. Others read :attr:`RecordingSession.position` and
whether it has stopped, and may ask for its end.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Protocol

from headrace._agent.storage_space import is_out_of_space
from headrace._base.exceptions import ClientError, HeadraceError
from headrace._base.states import Life
from headrace.archive.errors import SegmentError
from headrace.archive.files.frames import TYPE_PADDING, read_frame
from headrace.archive.protocol.codes import ErrorCode
from headrace.archive.server.duty_cycle import work_count
from headrace.archive.server.errors import SessionFailure
from headrace.archive.server.states import RECORDING, RecordingState
from headrace.positions import HEADER_LENGTH

if TYPE_CHECKING:
    from headrace.archive.files.segment_writer import SegmentWriter
    from headrace.archive.server.counters import ArchiveCounters
    from headrace.client import Counter, Image, Pending
    from headrace.clock import Clock

__all__ = ["RecordingSession"]


class RecordingListener(Protocol):
    """Called with the progress of a recording."""

    def on_started(self, session: RecordingSession) -> None:
        """Called when the first file is open."""

    def on_progress(self, session: RecordingSession) -> None:
        """Called when the recorded position has moved."""

    def on_stopped(self, session: RecordingSession) -> None:
        """Called when nothing more will be written."""


class _BlockThere(Exception):
    """Raised by a handler that only looks whether there is a block to record."""


def _leave(*_: object) -> None:
    """A handler that refuses the block, so that it stays in the log."""
    raise _BlockThere


class RecordingSession:
    """One image on its way into segment files."""

    def __init__(
        self,
        recording_id: int,
        image: Image,
        writer: SegmentWriter,
        position: Pending[Counter],
        listener: RecordingListener,
        clock: Clock,
        counters: ArchiveCounters | None,
        block_length: int,
    ) -> None:
        self.recording_id = recording_id
        self.image = image
        self.join_position = writer.position
        self.failure: SessionFailure | None = None
        self.is_cut_off = False
        """Whether the image went before the end of its stream."""
        self.end_reason = "the archive closes"
        self.life = Life(RECORDING)
        self._is_aborted = False
        self._fault: Exception | None = None
        self._writer = writer
        self._pending: Pending[Counter] | None = position
        self._counter: Counter
        self._listener = listener
        self._clock = clock
        self._counters = counters
        self._block_length = min(block_length, image.term_length)
        self.position = writer.position

    @property
    def state(self) -> RecordingState:
        """See :data:`headrace.archive.server.states.RECORDING`."""
        return self.life.state

    @property
    def is_awaiting_counter(self) -> bool:
        """True while the recording has no position counter yet."""
        return self._pending is not None and self.state is RecordingState.INIT

    @property
    def is_stopped(self) -> bool:
        """True when nothing more will be written and the files are closed."""
        return self.state is RecordingState.STOPPED

    @property
    def is_recording(self) -> bool:
        """True while it writes arriving messages."""
        return self.state is RecordingState.RECORDING

    @property
    def has_work(self) -> bool:
        """Whether a turn of a recording session would do something. Only for the thread that may step it."""
        if self._is_aborted or self._fault is not None:
            return True
        try:
            self.image.block_poll(_leave, self._block_length, view=True)
        except (_BlockThere, ClientError):
            return True
        return self.image.is_closed or self.image.is_end_of_stream

    def abort(self) -> None:
        """Stop writing; the next turn closes the files. From any thread."""
        self._is_aborted = True

    def break_off(self, fault: Exception) -> None:
        """Fail because of an unexpected exception. From any thread."""
        self._fault = fault

    def do_work(self) -> int:
        """One turn: at most one block. Returns the work count, which is 0 for a few bytes (``duty_cycle.py``)."""
        if self.state in (RecordingState.INIT, RecordingState.RECORDING):
            if self._fault is not None:
                self.fail(self._fault)
            elif self._is_aborted:
                self._end("a client stopped it")
        if self.state is RecordingState.RECORDING:
            return self._record()
        if self.state is RecordingState.INIT:
            return self._start()
        if self.state is RecordingState.INACTIVE:
            self.life.enter(RecordingState.STOPPED, f"closed at position={self.position}")
            self._end_file()
            self._listener.on_stopped(self)
            return 1
        return 0

    def _start(self) -> int:
        try:
            if self._pending is not None:
                counter = self._pending.poll()
                if counter is None:
                    return 0
                counter.value = self.position
                self._counter, self._pending = counter, None
            self._writer.open()
        except (OSError, HeadraceError) as failure:
            self.fail(failure)
            return 1
        self.life.enter(RecordingState.RECORDING, f"counter and file are there, position={self.position}")
        self._listener.on_started(self)
        return 1

    def _record(self) -> int:
        image = self.image
        try:
            consumed = image.block_poll(self._write, self._block_length, view=True)
        except (OSError, SegmentError, ClientError) as failure:
            self.fail(failure)
            return 1
        if consumed:
            self.position = self._writer.position
            self._counter.value = self.position
            self._listener.on_progress(self)
            return work_count(consumed, image.term_length)
        if image.is_closed or image.is_end_of_stream:
            self._note_end(image)
            return 1
        return 0

    def _note_end(self, image: Image) -> None:
        """Note why the image ended: if it was closed before the end of its stream, it was lost."""
        if image.is_end_of_stream:
            reason = "the stream ended"
        elif image.is_publication_revoked:
            reason = "the stream was revoked"
        else:
            reason, self.is_cut_off = "the image was lost before the end of its stream", True
        self._end(reason, is_fault=self.is_cut_off)

    def _end(self, reason: str, *, is_fault: bool = False) -> None:
        self.end_reason = reason
        self.life.enter(RecordingState.INACTIVE, reason, is_fault=is_fault)

    def _write(self, block: memoryview, session_id: int, term_id: int, term_offset: int) -> None:
        length = len(block)
        if length == HEADER_LENGTH:
            frame = read_frame(block)
            if frame.type == TYPE_PADDING:
                length = frame.span
        before_ns = self._clock.monotonic_ns()
        self._writer.write(block, length)
        if self._counters is not None:
            self._counters.wrote(len(block), self._clock.monotonic_ns() - before_ns)

    def fail(self, failure: Exception) -> None:
        """Stop at the recorded position, and truncate the file there."""
        code = ErrorCode.STORAGE_SPACE if is_out_of_space(failure) else ErrorCode.GENERIC
        self._end(f"failed: {failure}", is_fault=True)
        self.position = self._writer.position
        text = f"recording_id={self.recording_id} stopped at position={self.position}: {failure}"
        self.failure = SessionFailure(code, text, cause=failure)
        with contextlib.suppress(OSError):
            self._writer.truncate()
        if self._pending is None:
            self._counter.value = self.position

    def close(self) -> None:
        """Stop writing now, for an archive that ends."""
        self.life.enter(RecordingState.STOPPED, "closed where it is")
        self._end_file()

    def _end_file(self) -> None:
        try:
            self._writer.end()
        except OSError as failure:
            if self.failure is None:
                text = f"recording_id={self.recording_id} has ended, and could not be forced to the disk: {failure}"
                self.failure = SessionFailure(ErrorCode.GENERIC, text, cause=failure)

    def close_counter(self) -> None:
        """Free the position counter: the last step, after the catalog has the stop position."""
        if self._pending is not None:
            self._pending.cancel()
        else:
            self._counter.close()
