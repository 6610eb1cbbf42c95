"""The states between a recording's history and its live stream: ``docs/design/0038-follow.md`` has the table.

The machine never waits. Its owner calls :meth:`Follower.step` again and again, and between the steps takes messages
from :attr:`Follower.source`, saying :meth:`Follower.delivered` for what it gives to the program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Literal

from headrace._exceptions import ArchiveError, ArchiveTimeoutError, AuthenticationError, HeadraceError
from headrace._logging import ARCHIVE
from headrace.archive.client import requests
from headrace.archive.client.following.sources import Address, LiveSource, ReplaySource, Source
from headrace.archive.client.pauses import Pauses
from headrace.archive.client.replay import ReplayRange
from headrace.archive.protocol.codes import ErrorCode

if TYPE_CHECKING:
    from headrace.archive.client.exchange import Exchange, Steps
    from headrace.archive.client.link import ArchiveLink
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.client import Client
    from headrace.clock import Clock

__all__ = ["FollowState", "Followed", "Follower"]

# How many dropped messages a step may take, so that it stays short.
_DROPPED_A_STEP = 4096
_LINK_INTERVAL_S = 0.1


class FollowState(Enum):
    """Where a :class:`headrace.archive.Follow` is."""

    CONNECTING = "connecting"
    """No session with the archive, and one is needed."""
    LOOKING = "looking"
    """The archive is asked how far the recording goes."""
    OPENING = "opening"
    """A replay was asked for."""
    REPLAYING = "replaying"
    """Messages come from the archive."""
    JOINING = "joining"
    """Messages come from the archive, and the live stream is about to take over."""
    LIVE = "live"
    """Messages come from the publisher."""
    WAITING = "waiting"
    """All was delivered, and the recording has stopped: it may be extended."""
    FAILED = "failed"
    """Nothing more comes; polls raise the reason."""
    CLOSED = "closed"
    """This program has closed it."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What to follow, from where, over which channels.

    Attributes:
        recording_id: Which recording.
        begin: A position, or the start of the recording, or what is published from now on.
        live: Where the publisher sends; ``None`` for where the archive recorded it.
        replay: Where the archive is to replay to.
        timeout_s: How long nothing may go on.
    """

    recording_id: int
    begin: int | Literal["start", "live"]
    live: Address | None
    replay: Address
    timeout_s: float


@dataclass(frozen=True, slots=True)
class _Extent:
    """A recording, and how far it goes."""

    descriptor: RecordingDescriptor
    end: int


def _looked(recording_id: int) -> Steps[_Extent | None]:
    found = yield from requests.find_recording(recording_id)
    if found is None:
        return None
    if not found.is_active:
        return _Extent(found, found.stop_position)
    return _Extent(found, (yield from requests.max_recorded_position(recording_id)))


class Follower:
    """Moves between the states. Used by one thread at a time."""

    def __init__(self, client: Client, link: ArchiveLink, what: Followed) -> None:
        self._client = client
        self._clock = client.clock
        self._link = link
        self._what = what
        self._state = FollowState.CONNECTING
        self._replay: ReplaySource | None = None
        self._live: LiveSource | None = None
        self._extent: _Extent | None = None
        self._question: Exchange[_Extent | None] | None = None
        self._end_question: Exchange[int] | None = None
        self._asks_end_at = 0
        self._pauses = Pauses(self._clock)
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
        """Where it is."""
        return self._state

    @property
    def recording_id(self) -> int:
        """Which recording."""
        return self._what.recording_id

    @property
    def clock(self) -> Clock:
        """Where it takes the time from."""
        return self._clock

    @property
    def source(self) -> Source | None:
        """What to take messages from now. What it gives counts only if its image has not closed meanwhile."""
        if self._state is FollowState.LIVE:
            return self._live
        return self._replay if self._state in (FollowState.REPLAYING, FollowState.JOINING) else None

    def delivered(self, position: int) -> None:
        """The program was given all messages up to a position."""
        self.position = position
        self._has_advanced = True

    def step(self) -> None:
        """Do what can be done now. Never waits."""
        step = self._steps.get(self._state)
        if step is None:
            return
        if self._state is not FollowState.LIVE or self._next_link_step.is_over:
            self._next_link_step = self._clock.deadline(_LINK_INTERVAL_S)
            self._link.step()
        needs_archive = self._state not in (FollowState.CONNECTING, FollowState.LIVE)
        if needs_archive and not self._link.is_ready:
            self._fall_back(self._link.failure, FollowState.CONNECTING)
            return
        step()

    def close(self) -> None:
        """Leave the streams and the archive."""
        if self._state is not FollowState.CLOSED:
            # First, so that a thread that reads a stream while it is left knows why that ends.
            self._state = FollowState.CLOSED
            self._leave_streams()
            self._link.close()

    # --- states ----------------------------------------------------------------------------------------------------

    def _step_connecting(self) -> None:
        if self._link.is_ready:
            self._enter(FollowState.LOOKING)
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
            elif self._pauses.is_over:
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
                self._enter(FollowState.REPLAYING)
            elif self._deadline.is_over:
                self._give_up()

    def _step_replaying(self) -> None:
        if self._ends_replay():
            return
        if self._end_question is None:
            if self._begin >= self._asks_end_at:
                self._end_question = self._link.ask(requests.max_recorded_position(self._what.recording_id))
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
                self._join_live()

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
            self._enter(FollowState.LIVE)
        elif image.position <= self._begin:
            # The replay has brought these messages already. Where the position lies, a message begins.
            if image.position < self._begin:
                image.bounded_poll(_drop, self._begin, _DROPPED_A_STEP)
            if image.position == self._begin and not image.is_closed:
                self._enter(FollowState.LIVE)

    def _step_live(self) -> None:
        assert self._live is not None
        if self._live.is_over:
            self._fall_back(None)

    def _step_waiting(self) -> None:
        if self._pauses.is_over:
            self._pauses.begin()
            self._deadline = self._clock.deadline(self._what.timeout_s)
            self._enter(FollowState.LOOKING)

    # --- between them ----------------------------------------------------------------------------------------------

    @property
    def _begin(self) -> int:
        """Where the next message begins, once that is known."""
        assert self.position is not None
        return self.position

    def _enter(self, state: FollowState) -> None:
        previous, self._state = self._state, state
        if state is FollowState.LIVE:
            self._has_advanced = True
            self._pauses.reset()
            self._leave_replay()
            ARCHIVE.info("recording %d: live from position=%d", self._what.recording_id, self._begin)
            if self.on_live is not None:
                self.on_live(self._begin)
        elif previous is FollowState.LIVE:
            ARCHIVE.info("recording %d: not live from position=%d", self._what.recording_id, self._begin)
            if self.on_left_live is not None:
                self.on_left_live(self._begin)

    def _found(self, extent: _Extent | None) -> None:
        """Go on from what the archive has said of the recording."""
        what = self._what
        if extent is None:
            text = f"unknown recording id: {what.recording_id} (UNKNOWN_RECORDING)"
            self._fail(self._error(text, ErrorCode.UNKNOWN_RECORDING))
            return
        self._extent = extent
        descriptor, end = extent.descriptor, extent.end
        if self.position is None and what.begin == "live" and descriptor.is_active:
            self._join_live()
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
            self._enter(FollowState.WAITING)
        else:
            where = ReplayRange(what.recording_id, position)
            self._replay = ReplaySource(self._client, self._link, what.replay, where)
            self._enter(FollowState.OPENING)

    def _beyond(self, extent: _Extent) -> None:
        """The position is greater than the end. After live messages the archive may only be about to record them."""
        active = extent.descriptor.is_active
        text = f"position={self.position}: recording {self._what.recording_id} goes up to {extent.end}"
        error = self._error(text, ErrorCode.INVALID_POSITION)
        if active and self.position != self._what.begin:
            self._fall_back(error)
        else:
            self._fail(error)

    def _join_live(self) -> None:
        assert self._extent is not None
        descriptor = self._extent.descriptor
        address = self._what.live or Address(descriptor.stripped_channel, descriptor.stream_id)
        self._live = LiveSource(self._client, address, descriptor.session_id)
        self._enter(FollowState.JOINING)

    def _left_by_live(self) -> None:
        """The live image has gone before it took over."""
        if self._replay is None:
            self._fall_back(None)
            return
        assert self._live is not None
        self._live.close()
        self._live = None
        self._enter(FollowState.REPLAYING)

    def _ends_replay(self) -> bool:
        """Whether the replay is over; then it goes on with what the archive says."""
        assert self._replay is not None
        if not self._replay.is_over:
            return False
        self._fall_back(self._replay.late_error)
        return True

    def _refused(self, error: ArchiveError) -> None:
        """The archive has answered with an error, or not at all."""
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
        """Leave all streams and ask the archive; the time-out begins here unless nothing has gone on since the last."""
        self._leave_streams()
        if self._has_advanced:
            self._has_advanced = False
            self._deadline = self._clock.deadline(self._what.timeout_s)
            self._fault = None
            self._pauses.reset()
        else:
            self._pauses.begin()
        if fault is not None:
            self._fault = fault
            ARCHIVE.info("recording %d: again after %s", self._what.recording_id, fault)
        self._enter(state)

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

    def _give_up(self, text: str = "nothing went on") -> None:
        """The time-out is over."""
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
        self._enter(FollowState.FAILED)

    def _error(self, text: str, code: ErrorCode) -> ArchiveError:
        return ArchiveError(text, int(code), code.name, self._what.recording_id)


def _drop(_payload: object, _header: object) -> None:
    """What the replay has delivered."""
