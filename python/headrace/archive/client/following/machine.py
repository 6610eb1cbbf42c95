"""Moves from a recording's history to its live stream and back.

The machine never waits. Its owner calls :meth:`Follower.step` again and again, and between the steps takes messages
from :attr:`Follower.source`, calling :meth:`Follower.delivered` for those that it passes to the program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from headrace._base.exceptions import ArchiveError, ArchiveTimeoutError, AuthenticationError, HeadraceError
from headrace._base.logging import ARCHIVE
from headrace._base.states import Life, LoggedEvents
from headrace.archive.client import calls
from headrace.archive.client.backoff import Backoff
from headrace.archive.client.following.sources import Address, LiveSource, ReplaySource, Source
from headrace.archive.client.following.states import FOLLOW, FollowState
from headrace.archive.client.replay import ReplayRange
from headrace.archive.protocol.codes import ErrorCode

if TYPE_CHECKING:
    from headrace.archive.client.exchange import Exchange, Steps
    from headrace.archive.client.session_link import ArchiveLink
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.client import Client
    from headrace.clock import Clock

__all__ = ["Followed", "Follower"]

# How many dropped messages a step may take, so that it stays short.
_DROPPED_A_STEP = 4096
_LINK_INTERVAL_S = 0.1


@dataclass(frozen=True, slots=True)
class Followed:
    """What to follow, from where, over which channels.

    Attributes:
        recording_id: Which recording.
        begin: A position, the start of the recording, or the present end of the live stream.
        live: Where the publisher sends; ``None`` for the recorded channel.
        replay: Where the archive is to replay to.
        timeout_s: How long it may make no progress; ``None`` for as long as it takes.
    """

    recording_id: int
    begin: int | Literal["start", "live"]
    live: Address | None
    replay: Address
    timeout_s: float | None


@dataclass(frozen=True, slots=True)
class _Extent:
    """A recording, and its extent."""

    descriptor: RecordingDescriptor
    end: int


def _looked(recording_id: int) -> Steps[_Extent | None]:
    found = yield from calls.find_recording(recording_id)
    if found is None:
        return None
    if not found.is_active:
        return _Extent(found, found.stop_position)
    return _Extent(found, (yield from calls.max_recorded_position(recording_id)))


class Follower:
    """Moves between the states. Used by one thread at a time."""

    def __init__(self, client: Client, link: ArchiveLink, what: Followed) -> None:
        self._client = client
        self._clock = client.clock
        self._link = link
        self._what = what
        self._life = Life(FOLLOW)
        self._life.begin(LoggedEvents(ARCHIVE), "the program follows it", what.recording_id)
        self._replay: ReplaySource | None = None
        self._live: LiveSource | None = None
        self._extent: _Extent | None = None
        self._question: Exchange[_Extent | None] | None = None
        self._end_question: Exchange[int] | None = None
        self._asks_end_at = 0
        self._backoff = Backoff(self._clock)
        self._deadline = self._clock.deadline(what.timeout_s)
        self._next_link_step = self._clock.deadline(0)
        # A fault later begins a time-out of its own.
        self._has_advanced = False
        self._fault: HeadraceError | None = None
        self.position: int | None = what.begin if isinstance(what.begin, int) else None
        """Where the last message that was delivered ends; ``None`` until the begin is known."""
        self.on_live: Callable[[int], object] | None = None
        self.on_left_live: Callable[[int], object] | None = None
        self.error: HeadraceError | None = None
        """Why it has failed."""
        self._steps: dict[FollowState, Callable[[], None]] = {
            FollowState.CONNECTING: self._step_connecting,
            FollowState.LOOKING: self._step_looking,
            FollowState.OPENING: self._step_opening,
            FollowState.REPLAYING: self._step_replaying,
            FollowState.JOINING: self._step_joining,
            FollowState.LIVE: self._step_live,
            FollowState.WAITING: self._step_waiting,
        }

    @property
    def state(self) -> FollowState:
        """The state."""
        return self._life.state

    @property
    def recording_id(self) -> int:
        """Which recording."""
        return self._what.recording_id

    @property
    def clock(self) -> Clock:
        """The clock."""
        return self._clock

    @property
    def source(self) -> Source | None:
        """The source to take messages from now. A message counts only if the image has not closed meanwhile."""
        if self.state is FollowState.LIVE:
            return self._live
        return self._replay if self.state in (FollowState.REPLAYING, FollowState.JOINING) else None

    def delivered(self, position: int) -> None:
        """Note that the program has all messages up to a position."""
        self.position = position
        self._has_advanced = True

    def step(self) -> None:
        """Do all work that needs no waiting."""
        step = self._steps.get(self.state)
        if step is None:
            return
        if self.state is not FollowState.LIVE or self._next_link_step.is_over:
            self._next_link_step = self._clock.deadline(_LINK_INTERVAL_S)
            self._link.step()
        needs_archive = self.state not in (FollowState.CONNECTING, FollowState.LIVE)
        if needs_archive and not self._link.is_ready:
            self._fall_back(self._link.failure, FollowState.CONNECTING)
            return
        step()

    def close(self) -> None:
        """Leave the streams and the archive."""
        if self.state is not FollowState.CLOSED:
            # First, so that a thread that reads a stream while it is left knows why that ends.
            self._life.enter(FollowState.CLOSED, "the program closes it")
            self._leave_streams()
            self._link.close()

    # --- states ----------------------------------------------------------------------------------------------------

    def _step_connecting(self) -> None:
        if self._link.is_ready:
            self._enter(FollowState.LOOKING, "the archive answers")
        elif isinstance(self._link.failure, AuthenticationError):
            # Another attempt would be rejected as well.
            self._fail(self._link.failure)
        elif self._deadline.is_over:
            reason = self._fault or self._link.failure
            text = f"recording {self._what.recording_id}: no archive for {self._what.timeout_s} s"
            self._fail(ArchiveTimeoutError(f"{text}: {reason}", recording_id=self._what.recording_id))

    def _step_looking(self) -> None:
        if self._question is None:
            if self._deadline.is_over:
                self._give_up()
            elif self._backoff.is_over:
                self._question = self._link.ask(_looked(self._what.recording_id))
            return
        if self._question.is_done:
            question, self._question = self._question, None
            try:
                extent = self._link.answer(question)
            except ArchiveError as error:
                self._refused(error)
            else:
                self._found(extent)

    def _step_opening(self) -> None:
        assert self._replay is not None
        try:
            self._replay.step()
        except ArchiveError as refusal:
            self._refused(refusal)
        except HeadraceError as failure:
            self._fall_back(failure)
        else:
            if self._replay.image is not None:
                self._asks_end_at = self._begin
                self._enter(FollowState.REPLAYING, f"from position={self._begin}")
            elif self._deadline.is_over:
                self._give_up()

    def _step_replaying(self) -> None:
        if self._ends_replay():
            return
        if self._end_question is None:
            if self._begin >= self._asks_end_at:
                self._end_question = self._link.ask(calls.max_recorded_position(self._what.recording_id))
        elif self._end_question.is_done:
            question, self._end_question = self._end_question, None
            try:
                self._asks_end_at = self._link.answer(question)
            except ArchiveError as error:
                self._refused(error)
                return
            assert self._extent is not None
            if self._begin >= self._asks_end_at - self._extent.descriptor.term_buffer_length // 4:
                self._has_advanced = True
                self._join_live("there is little left to replay")

    def _step_joining(self) -> None:
        if self._replay is not None and self._ends_replay():
            return
        assert self._live is not None
        try:
            self._live.step()
        except HeadraceError as failure:
            self._fail(failure)
            return
        image = self._live.image
        if image is None:
            if self._replay is None and self._deadline.is_over:
                self._give_up("no publisher on the live channel")
        elif self._live.is_over:
            self._left_by_live()
        elif self._replay is None:
            self.position = image.join_position
            self._enter(FollowState.LIVE, "it begins with the live stream")
        elif image.position <= self._begin:
            # The replay has brought these messages already. Where the position lies, a message begins.
            if image.position < self._begin:
                image.bounded_poll(_drop, self._begin, _DROPPED_A_STEP)
            if image.position == self._begin and not image.is_closed:
                self._enter(FollowState.LIVE, "the live stream has the next message")

    def _step_live(self) -> None:
        assert self._live is not None
        if self._live.is_over:
            self._fall_back(None)

    def _step_waiting(self) -> None:
        if self._backoff.is_over:
            self._backoff.begin()
            self._deadline = self._clock.deadline(self._what.timeout_s)
            self._enter(FollowState.LOOKING, "it may be extended by now")

    # --- between them ----------------------------------------------------------------------------------------------

    @property
    def _begin(self) -> int:
        """The position of the next message, which must be known."""
        assert self.position is not None
        return self.position

    def _enter(self, state: FollowState, reason: str) -> None:
        previous = self.state
        self._life.enter(state, reason)
        if state is FollowState.LIVE:
            self._has_advanced = True
            self._backoff.reset()
            self._leave_replay()
            ARCHIVE.info("recording %d: live from position=%d", self._what.recording_id, self._begin)
            if self.on_live is not None:
                self.on_live(self._begin)
        elif previous is FollowState.LIVE:
            ARCHIVE.info("recording %d: not live from position=%d", self._what.recording_id, self._begin)
            if self.on_left_live is not None:
                self.on_left_live(self._begin)

    def _found(self, extent: _Extent | None) -> None:
        """Continue with the archive's description of the recording."""
        what = self._what
        if extent is None:
            text = f"unknown recording id: {what.recording_id} (UNKNOWN_RECORDING)"
            self._fail(self._error(text, ErrorCode.UNKNOWN_RECORDING))
            return
        self._extent = extent
        descriptor, end = extent.descriptor, extent.end
        if self.position is None and what.begin == "live" and descriptor.is_active:
            self._join_live("it begins with what is published from now on")
            return
        if self.position is None:
            self.position = end if what.begin == "live" else descriptor.start_position
        position = self.position
        if position < descriptor.start_position:
            text = f"position={position}: recording {what.recording_id} begins at {descriptor.start_position}"
            self._fail(self._error(text, ErrorCode.INVALID_POSITION))
        elif position > end:
            self._beyond(extent)
        elif position == end and not descriptor.is_active:
            self._has_advanced = True
            self._enter(FollowState.WAITING, f"the recording has stopped at position={end}")
        else:
            where = ReplayRange(what.recording_id, position)
            self._replay = ReplaySource(self._client, self._link, what.replay, where)
            self._enter(FollowState.OPENING, f"from position={position} of {end}")

    def _beyond(self, extent: _Extent) -> None:
        """Handle a position after the end. After live messages the archive may only be about to record them."""
        active = extent.descriptor.is_active
        text = f"position={self.position}: recording {self._what.recording_id} goes up to {extent.end}"
        error = self._error(text, ErrorCode.INVALID_POSITION)
        if active and self.position != self._what.begin:
            self._fall_back(error)
        else:
            self._fail(error)

    def _join_live(self, reason: str) -> None:
        assert self._extent is not None
        descriptor = self._extent.descriptor
        address = self._what.live or Address(descriptor.stripped_channel, descriptor.stream_id)
        self._live = LiveSource(self._client, address, descriptor.session_id)
        self._enter(FollowState.JOINING, reason)

    def _left_by_live(self) -> None:
        """Handle a live image that ended before it took over."""
        if self._replay is None:
            self._fall_back(None)
            return
        assert self._live is not None
        self._live.close()
        self._live = None
        self._enter(FollowState.REPLAYING, "the live stream has gone before it took over")

    def _ends_replay(self) -> bool:
        """Whether the replay is over; if so, continues with the archive's next description."""
        assert self._replay is not None
        if not self._replay.is_over:
            return False
        image = self._replay.image
        if image is not None and image.is_end_of_stream and not image.is_closed:
            # All of it was delivered; after the last message there may be padding, such as of an aborted claim.
            self.position = image.position
        self._fall_back(self._replay.late_error)
        return True

    def _refused(self, error: ArchiveError) -> None:
        """Handle an error, or a missing answer, of the archive."""
        lasts = (ErrorCode.UNKNOWN_RECORDING, ErrorCode.UNAUTHORISED_ACTION)
        at_begin = self.position == self._what.begin and error.code in (
            ErrorCode.INVALID_POSITION,
            ErrorCode.GENERIC,
        )
        if error.code in lasts or at_begin:
            self._fail(error)
        else:
            self._fall_back(error)

    def _fall_back(self, fault: HeadraceError | None, state: FollowState = FollowState.LOOKING) -> None:
        """Leave all streams and ask the archive. Begins the time-out if it has advanced since the last one."""
        self._leave_streams()
        if self._has_advanced:
            self._has_advanced = False
            self._deadline = self._clock.deadline(self._what.timeout_s)
            self._fault = None
            self._backoff.reset()
        else:
            self._backoff.begin()
        if fault is not None:
            self._fault = fault
            ARCHIVE.info("recording %d: again after %s", self._what.recording_id, fault)
        self._enter(state, "a stream ended" if fault is None else str(fault))

    def _leave_replay(self) -> None:
        if self._end_question is not None:
            self._link.forget(self._end_question)
            self._end_question = None
        if self._replay is not None:
            self._replay.close()
            self._replay = None

    def _leave_streams(self) -> None:
        if self._question is not None:
            self._link.forget(self._question)
            self._question = None
        self._leave_replay()
        if self._live is not None:
            self._live.close()
            self._live = None

    def _give_up(self, text: str = "no progress") -> None:
        """Raise the error when the time-out is over."""
        if self._fault is not None and not isinstance(self._fault, ArchiveTimeoutError):
            self._fail(self._fault)
            return
        reason = "" if self._fault is None else f": {self._fault}"
        text = f"recording {self._what.recording_id}: {text} for {self._what.timeout_s} s{reason}"
        self._fail(ArchiveTimeoutError(text, recording_id=self._what.recording_id))

    def _fail(self, error: HeadraceError) -> None:
        self.error = error
        self._leave_streams()
        self._link.close()
        self._enter(FollowState.FAILED, str(error))

    def _error(self, text: str, code: ErrorCode) -> ArchiveError:
        return ArchiveError(text, int(code), code.name, self._what.recording_id)


def _drop(_payload: object, _header: object) -> None:
    """Handler for messages that the replay has delivered."""
