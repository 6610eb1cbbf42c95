"""All replays of an archive: checks requests for them, and steps their sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._base.exceptions import HeadraceError
from headrace.archive.protocol.codes import ErrorCode
from headrace.archive.protocol.requests import BoundedReplayRequest, ReplayRequest
from headrace.archive.server.context import Context
from headrace.archive.server.duty_cycle import Rotation
from headrace.archive.server.errors import RequestError
from headrace.archive.server.replay_session import (
    Limit,
    LimitState,
    ReplayMeans,
    ReplayRequester,
    ReplaySession,
    ReplaySpan,
)
from headrace.channel import ChannelUri, parse_duration_ns
from headrace.positions import FRAME_ALIGNMENT, NULL_VALUE

if TYPE_CHECKING:
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.archive.server.control_session import ControlSession
    from headrace.archive.server.recording_session import RecordingSession
    from headrace.archive.server.recordings import Recordings
    from headrace.archive.server.replay_tokens import ReplayTokens
    from headrace.client import Client, ExclusivePublication, Pending

__all__ = ["Replays"]

POSITION_MAX = (1 << 63) - 1
UNTIL_NOW = -2


class _RecordingLimit:
    """The recorded position of an active recording."""

    def __init__(self, session: RecordingSession) -> None:
        self._session = session

    def state(self) -> LimitState:
        # In this order: what is written in between then counts as to come.
        may_move = not self._session.is_stopped
        return LimitState(self._session.position, may_move, True)


class _StoppedLimit:
    """The stop position of a stopped recording."""

    def __init__(self, stop_position: int) -> None:
        self._state = LimitState(stop_position, False, True)

    def state(self) -> LimitState:
        return self._state


class _CounterLimit:
    """The value of a client's counter, but at most the recorded position."""

    def __init__(self, client: Client, counter_id: int, recorded: Limit) -> None:
        self._counters = client.counters
        self._counter_id = counter_id
        self._recorded = recorded
        self._registration_id = self._counters[counter_id].registration_id
        self._last = self._counters.value(counter_id)

    def state(self) -> LimitState:
        try:
            is_open = self._counters[self._counter_id].registration_id == self._registration_id
            if is_open:
                self._last = self._counters.value(self._counter_id)
        except KeyError:
            is_open = False
        recorded = self._recorded.state()
        if self._last > recorded.position:
            return recorded
        may_move = is_open and (recorded.may_move or self._last < recorded.position)
        position = self._last - self._last % FRAME_ALIGNMENT
        return LimitState(position, may_move, position == recorded.position)


class Replays:
    """Starts and stops replays, and steps their sessions."""

    def __init__(self, context: Context, recordings: Recordings, tokens: ReplayTokens) -> None:
        self._context = context
        self.tokens = tokens
        self._recordings = recordings
        self._sessions: dict[int, ReplaySession] = {}
        self._rotation = Rotation()
        self._next_number = 1

    def start(self, session: ControlSession, request: ReplayRequest) -> None:
        """Begin a replay; the client gets its id when the driver has added the stream and the first frame was found.

        Raises:
            RequestError: See the specification's list of checks.
        """
        context = self._context
        counter_id = request.limit_counter_id if isinstance(request, BoundedReplayRequest) else None
        if counter_id is not None and not self._is_allocated(counter_id):
            raise _no_counter(counter_id)
        most = context.config.max_concurrent_replays
        if len(self._sessions) >= most:
            raise RequestError(ErrorCode.MAX_REPLAYS, f"max concurrent replays reached {most}")
        descriptor = context.catalog.find(request.recording_id)
        if descriptor is None:
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, f"unknown recording id: {request.recording_id}")
        limit = self._limit(descriptor, counter_id)
        position = self._position(descriptor, request.position)
        self._check_io_length(descriptor, request.file_io_max_length)
        stop = descriptor.stop_position if limit is None else limit.state().position
        replay_length = self._length(descriptor, request.length, position, stop, limit)
        publication = self._publication(descriptor, position, request)
        number = self._next_number
        self._next_number += 1
        self._sessions[number] = ReplaySession(
            ReplayRequester(session, request.correlation_id, number),
            descriptor,
            publication,
            ReplaySpan(position, stop, position + replay_length, limit),
            self._means(request.file_io_max_length),
        )
        self._sessions[number].life.begin(
            context.events,
            f"control session {session.session_id} asked for it, from position={position}",
            number,
            parent_id=descriptor.recording_id,
            stream_id=request.replay_stream_id,
            detail=request.replay_channel,
        )
        context.counters.replay_sessions.get_and_add(1)
        context.log.info(
            f"replay of recording_id={descriptor.recording_id} from position={position} to stream_id="
            f"{request.replay_stream_id} of {request.replay_channel}"
        )

    def _means(self, io_length: int) -> ReplayMeans:
        """What a replay needs to read files, in blocks no longer than the client asks for."""
        context, most = self._context, self._context.config.file_io_max_length
        return ReplayMeans(
            context.storage,
            context.clock,
            context.config.connect_timeout_ns,
            min(most, io_length) if io_length > 0 else most,
            context.replay_checksum,
            context.counters,
        )

    # A recording that the catalog has as active has a session until its stop is in the catalog.

    def _limit(self, descriptor: RecordingDescriptor, counter_id: int | None) -> Limit | None:
        active = self._recordings.active(descriptor.recording_id)
        recorded = _StoppedLimit(descriptor.stop_position) if active is None else _RecordingLimit(active)
        if counter_id is None:
            return None if active is None else recorded
        try:
            return _CounterLimit(self._context.client, counter_id, recorded)
        except KeyError:
            raise _no_counter(counter_id) from None

    def _is_allocated(self, counter_id: int) -> bool:
        try:
            self._context.client.counters[counter_id]
        except KeyError:
            return False
        return True

    @staticmethod
    def _position(descriptor: RecordingDescriptor, position: int) -> int:
        if position == NULL_VALUE:
            return descriptor.start_position
        if position % FRAME_ALIGNMENT:
            text = (
                f"requested replay start position={position} is not a multiple of FRAME_ALIGNMENT "
                f"({FRAME_ALIGNMENT}) for recording {descriptor.recording_id}"
            )
            raise RequestError(ErrorCode.GENERIC, text)
        recording = f"for recording {descriptor.recording_id}"
        if position < descriptor.start_position:
            text = f"requested replay start position={position} is below start={descriptor.start_position} {recording}"
            raise RequestError(ErrorCode.INVALID_POSITION, text)
        if not descriptor.is_active and position >= descriptor.stop_position:
            text = f"requested replay start position={position} is not below stop={descriptor.stop_position} "
            raise RequestError(ErrorCode.INVALID_POSITION, text + recording)
        return position

    def _check_io_length(self, descriptor: RecordingDescriptor, length: int) -> None:
        for name, value in (
            ("fileIoMaxLength", length),
            ("file.io.max.length", self._context.config.file_io_max_length),
        ):
            if 0 < value < descriptor.mtu_length:
                text = f"{name}={value} < mtuLength={descriptor.mtu_length}: it cannot hold a whole frame"
                raise RequestError(ErrorCode.GENERIC, text)

    @staticmethod
    def _length(
        descriptor: RecordingDescriptor, length: int, position: int, stop: int, limit: Limit | None
    ) -> int:
        if limit is not None and position > stop:
            text = f"requested replay start position={position} is above limit={stop}"
            raise RequestError(ErrorCode.INVALID_POSITION, text)
        longest = stop - position if limit is None else POSITION_MAX - position
        if limit is not None and not descriptor.is_active:
            longest = descriptor.stop_position - position
        if length == NULL_VALUE:
            return longest
        if length == UNTIL_NOW:
            if stop == position:
                text = (
                    "When replaying and stopping the replay length must be non-zero, recordingId="
                    f"{descriptor.recording_id}: the recording ends at position={position}"
                )
                raise RequestError(ErrorCode.EMPTY_RECORDING, text)
            return stop - position
        if length < 0:
            text = f"replay length must be positive: length={length} for recording {descriptor.recording_id}"
            raise RequestError(ErrorCode.GENERIC, text)
        return min(length, longest)

    def _publication(
        self, descriptor: RecordingDescriptor, position: int, request: ReplayRequest
    ) -> Pending[ExclusivePublication]:
        geometry = descriptor.geometry
        try:
            uri = ChannelUri(request.replay_channel)
            if uri.is_response and request.replay_token == NULL_VALUE:
                rule = "a replay through a response channel needs a replay token, and a connection that asks for it"
                raise RequestError(ErrorCode.GENERIC, f"{request.replay_channel}: {rule}")
            linger = uri.get("linger")
            linger_ns = (
                parse_duration_ns(linger, "linger")
                if linger
                else self._context.config.replay_linger_timeout_ns
            )
            channel = uri.stripped(
                mtu=descriptor.mtu_length,
                term_length=descriptor.term_buffer_length,
                init_term_id=descriptor.initial_term_id,
                term_id=geometry.term_id(position),
                term_offset=geometry.term_offset(position),
                linger=linger_ns,
                sparse=uri.get("sparse"),
                eos=uri.get("eos"),
            )
            return self._context.client.request_exclusive_publication(channel, request.replay_stream_id)
        except HeadraceError as refusal:
            text = f"cannot replay to {request.replay_channel}: {refusal}"
            raise RequestError(ErrorCode.GENERIC, text) from None

    def stop(self, replay_id: int, session: ControlSession) -> None:
        """End one replay for a client, if it is active."""
        found = self._sessions.get(replay_id >> 32)
        if found is not None and found.replay_id == replay_id:
            found.abort(self._reason_of(session, found))

    def stop_all(self, recording_id: int, session: ControlSession) -> None:
        """End all replays of a recording for a client, or with -1 all replays."""
        for one in self._sessions.values():
            if recording_id in (NULL_VALUE, one.recording_id):
                one.abort(self._reason_of(session, one))

    def end_all(self, recording_id: int, reason: str) -> None:
        """End all replays of a recording because of a change of it; their clients get the reason."""
        for one in self._sessions.values():
            if one.recording_id == recording_id:
                one.abort(reason)

    def end_of(self, session: ControlSession) -> None:
        """End the replays of a client that the archive no longer accepts."""
        for one in self._sessions.values():
            if one.session is session:
                one.abort(session.end_reason)

    @staticmethod
    def _reason_of(session: ControlSession, replay: ReplaySession) -> str | None:
        return None if session is replay.session else "another client stopped it"

    def has_replays(self, recording_id: int) -> bool:
        """True while a recording is being replayed."""
        return any(one.recording_id == recording_id for one in self._sessions.values())

    def reads_before(self, recording_id: int, position: int) -> bool:
        """True while a replay of a recording reads a segment file that begins before a position."""
        first = self.first_segment_read(recording_id)
        return first is not None and first < position

    def first_segment_read(self, recording_id: int) -> int | None:
        """The base of the first segment file that replays of a recording read; ``None`` without replays."""
        bases = [one.segment_base for one in self._sessions.values() if one.recording_id == recording_id]
        return min(bases, default=None)

    def do_work(self) -> int:
        """One turn: a block for each session in turn; closes sessions that are done."""
        return self._rotation.do_work(self._sessions.items(), self._step)

    def _step(self, numbered: tuple[int, ReplaySession]) -> int:
        number, one = numbered
        work_count = 0
        try:
            work_count = one.do_work()
        except Exception as failure:
            one.fail(failure)
        if one.is_done:
            del self._sessions[number]
            try:
                self._finish(one)
            except Exception as failure:
                text = f"a replay of recording_id={one.recording_id} cannot end cleanly: {failure!r}"
                self._context.log.error(text, failure)
        return work_count

    def _finish(self, one: ReplaySession) -> None:
        # The reason first: a client that sees its stream end looks for one.
        log, failure = self._context.log, one.failure
        if failure is not None:
            log.failure(failure)
            one.session.send_error(one.correlation_id, failure.code, failure.text)
        log.info(
            f"replay {one.replay_id} of recording_id={one.recording_id} ended at position={one.position}"
        )
        self._context.counters.replay_sessions.get_and_add(-1)
        self._close(one)

    def _close(self, one: ReplaySession) -> None:
        try:
            one.close()
        except (OSError, HeadraceError) as failure:
            self._context.log.error(
                f"replay of recording_id={one.recording_id} cannot be closed: {failure}", failure
            )

    def close(self) -> None:
        """End all replays, for an archive that ends."""
        for one in self._sessions.values():
            self._close(one)
        self._sessions.clear()


def _no_counter(counter_id: int) -> RequestError:
    text = f"unable to create replay limit counter id={counter_id}: it is not allocated"
    return RequestError(ErrorCode.GENERIC, text)
