"""One replication: a recording of another archive, replayed by that archive and recorded by this one.

Its states: ``states.py``; their order and the messages in each: ``docs/internals/archive.md``. It never waits: its
work is a generator that yields wherever it depends on something else, and each turn of the archive continues it. It
asks the other archive over a link, and records the arriving stream as any other extension.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from headrace._agent.storage_space import is_out_of_space
from headrace._agent.tasks import Task
from headrace._base.exceptions import HeadraceError
from headrace._base.states import Life
from headrace.archive.client import calls, steps
from headrace.archive.protocol.codes import ErrorCode, RecordingSignal, SourceLocation
from headrace.archive.protocol.requests import ExtendRecordingRequest2, ReplayRequest, StopReplayRequest
from headrace.archive.protocol.retention import without_retention
from headrace.archive.server.errors import RequestError
from headrace.archive.server.states import REPLICATION, ReplicationState
from headrace.channel import ChannelUri
from headrace.positions import NULL_VALUE, segment_name

if TYPE_CHECKING:
    from headrace.archive.client.exchange import Steps
    from headrace.archive.client.session_link import ArchiveLink
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.archive.server.context import Context
    from headrace.archive.server.deletions import ReplyTo
    from headrace.archive.server.recording_session import RecordingSession
    from headrace.archive.server.recordings import Recordings, RecordingSubscription
    from headrace.client import ExclusivePublication, Subscription

__all__ = ["Replication", "Wanted"]

T = TypeVar("T")

# While nothing is awaited from the other archive, it is looked at so often.
_LOOK_INTERVAL_NS = 100_000_000
_UNWATCHED = (ReplicationState.AWAITING, ReplicationState.REPLICATING, ReplicationState.CATCHING_UP)
# The live stream joins when the replay is so near.
_JOIN_LENGTH_MAX = 32 * 1024 * 1024
_MERGED_TRANSPORTS = 2


class _RecordingEndedError(Exception):
    """The replication's recording has ended, or was stopped, before the replication."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A client's request to replicate. ``None`` and an empty text stand for what it left open.

    Attributes:
        source_id: The recording in the other archive.
        destination_id: The recording to fill here; ``None`` for a new one.
        stop_position: Where to end.
        tags: Tags of the channel and of the subscription.
        live_destination: Where the publisher of the source sends.
        channel: Where the other archive is to replay to.
        session_id: The session id of the replay's stream.
        file_io_max_length: Most bytes that the other archive reads at once.
        timeout_s: How long an answer may take.
    """

    source_id: int
    destination_id: int | None
    stop_position: int | None
    tags: tuple[int | None, int | None]
    live_destination: str
    channel: ChannelUri
    session_id: int | None
    file_io_max_length: int
    timeout_s: float

    @property
    def has_destinations(self) -> bool:
        """Whether the subscription has destinations instead of an address."""
        return bool(self.live_destination) or self.tags != (None, None)

    def stream_session_id(self, source: RecordingDescriptor) -> int | None:
        """The session id of the stream; the replay must have the same as a live stream.

        ``None`` if the replay comes through a connection to the other archive, which carries nothing else.
        """
        if self.channel.is_response:
            return None
        if self.session_id is None or self.live_destination:
            return source.session_id
        return self.session_id

    def subscription_channel(self, session_id: int | None, replication_id: int) -> str:
        """The channel of the subscription."""
        if self.channel.is_response:
            # The tag makes it another channel than that of a second replication from the same archive.
            return self.channel.with_parameters(rejoin="false", tags=replication_id)
        alone = self.channel.with_parameters(rejoin="false", session_id=session_id)
        if not self.has_destinations:
            return alone
        tags = ",".join(str(replication_id if tag is None else tag) for tag in self.tags)
        return ChannelUri(alone).with_parameters(
            endpoint=None, interface=None, tags=tags, control_mode="manual"
        )

    @property
    def replay_destination(self) -> str:
        """The destination of the subscription for the replay."""
        plain = ChannelUri(f"aeron:{self.channel.media}")
        return plain.with_parameters(
            endpoint=self.channel.get("endpoint"), interface=self.channel.get("interface")
        )

    def replay_channel(self, session_id: int | None, endpoint: str | None) -> str:
        """The channel to which the other archive is asked to replay."""
        channel = ChannelUri(self.channel.with_parameters(session_id=session_id, endpoint=endpoint))
        if not self.live_destination:
            return channel.with_parameters()
        # The stream goes on when the replay has gone.
        return channel.with_parameters(linger=0, eos="false")


class Replication:
    """One replication, from the request to its end. Its owner calls :meth:`do_work` each turn until :attr:`is_done`."""

    def __init__(
        self, reply_to: ReplyTo, wanted: Wanted, link: ArchiveLink, context: Context, recordings: Recordings
    ) -> None:
        """`reply_to` is the session to inform, and the id of the replication."""
        self.wanted = wanted
        self.life = Life(REPLICATION)
        self.destination_id = wanted.destination_id
        """The recording that is filled, once there is one."""
        self._reply_to = reply_to
        self._link = link
        self._context = context
        self._recordings = recordings
        self._recorded: RecordingSubscription | None = None
        self._recording: RecordingSession | None = None
        self._replay: tuple[int, int] | None = None
        self._undo = contextlib.ExitStack()
        self._is_merged = False
        self._next_look_ns = 0
        self._run = self._replicate()

    @property
    def is_done(self) -> bool:
        """True when it has ended and its client knows."""
        return self.life.state is ReplicationState.DONE

    def do_work(self) -> int:
        """One turn; returns 1 if it made progress."""
        before = self.life.state
        try:
            next(self._run)
            self._look_at_source()
        except StopIteration:
            self._end("all was done")
        except _RecordingEndedError:
            self._end_with_recording()
        except RequestError as refusal:
            self._fail(refusal.code, str(refusal))
        except HeadraceError as failure:
            self._fail(ErrorCode.GENERIC, str(failure))
        except Exception as failure:
            which = f"replication {self._reply_to.correlation_id}: {failure!r}"
            self._context.log.error("a replication failed", failure, which)
            code = ErrorCode.STORAGE_SPACE if is_out_of_space(failure) else ErrorCode.GENERIC
            self._fail(code, str(failure) or repr(failure))
        return int(self.life.state is not before)

    def stop(self) -> None:
        """End it where it is, for a client."""
        self._end("a client stopped it")

    def abandon(self) -> None:
        """Leave the other archive, for an archive that ends."""
        self._run.close()
        self._undo.close()
        self._link.close()
        self.life.enter(ReplicationState.DONE, "the archive closes")

    # --- the course of things --------------------------------------------------------------------------------------

    def _replicate(self) -> Task[None]:
        wanted = self.wanted
        yield from self._connected()
        self.life.enter(ReplicationState.DESCRIBING, "the other archive serves it")
        source = yield from self._described()
        begin = self._prepared(source)
        if begin is None:
            return
        live_from = 0
        if wanted.live_destination:
            self.life.enter(ReplicationState.MEASURING, "it is to join the live stream")
            live_from = yield from self._source_position()
        self.life.enter(ReplicationState.EXTENDING, f"position={begin} of stop={source.stop_position}")
        session_id = wanted.stream_session_id(source)
        subscription = yield from self._extended(source, session_id)
        self.life.enter(ReplicationState.OPENING, "the extension was accepted")
        yield from self._replayed(subscription, source, session_id, begin)
        self.life.enter(ReplicationState.AWAITING, "the other archive replays")
        recording = self._recording = yield from self._until(self._began, "no image of the replay came")
        if wanted.live_destination:
            self.life.enter(ReplicationState.CATCHING_UP, f"recorded from position={recording.position}")
            yield from self._until(lambda: recording.position >= live_from or None)
            self.life.enter(ReplicationState.JOINING, f"position={recording.position}")
            yield from self._merged(subscription, recording)
        else:
            self.life.enter(ReplicationState.REPLICATING, f"recorded from position={recording.position}")
            yield from self._until(lambda: self._is_complete(source, recording) or None)
            if recording.position >= source.stop_position != NULL_VALUE:
                self._signal(RecordingSignal.SYNC, recording.position, subscription.registration_id)

    def _connected(self) -> Task[None]:
        while not self._link.is_ready:
            if self._link.failure is not None:
                text = f"Replication connection failed={self._link.failure}"
                raise RequestError(ErrorCode.REPLICATION_CONNECTION_FAILURE, text)
            yield

    def _described(self) -> Task[RecordingDescriptor]:
        wanted = self.wanted
        source = yield from self._answer(calls.find_recording(wanted.source_id))
        if source is None:
            text = f"unknown src recording id {wanted.source_id}"
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, text)
        defect = source.defect()
        if defect is not None:
            raise _refused(f"the source describes recording {wanted.source_id} with {defect}")
        if 0 < wanted.file_io_max_length < source.mtu_length:
            raise _refused(
                f"fileIoMaxLength={wanted.file_io_max_length} < mtuLength={source.mtu_length}: "
                "it cannot hold a whole frame"
            )
        if wanted.live_destination and not source.is_active:
            raise _refused("cannot live merge without active source recording")
        return source

    def _prepared(self, source: RecordingDescriptor) -> int | None:
        """Find or add the recording to fill, and where to continue; ``None`` when there is nothing to copy."""
        destination_id = self.destination_id
        found = None if destination_id is None else self._context.catalog.find(destination_id)
        if destination_id is not None and found is None:
            text = f"unknown destination recording id {destination_id}"
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, text)
        if found is not None and found.stop_position > found.start_position:
            begin = found.stop_position
        else:
            begin, found = source.start_position, None
        stop = self.wanted.stop_position
        is_all_there = source.stop_position in (begin, source.start_position)
        # Before a recording is made for it: what is refused leaves none behind.
        if stop is not None and stop < begin and not is_all_there:
            raise _refused(f"stopPosition={stop} is before position={begin}, where the copy goes on")
        if found is None:
            self._make_empty(source)
        elif is_all_there or stop == begin:
            # No extension follows, which would look whether it is the same stream.
            _check_same_stream(source, found)
        if is_all_there:
            self._signal(RecordingSignal.SYNC, source.stop_position)
            return None
        return None if stop == begin else begin

    def _make_empty(self, source: RecordingDescriptor) -> None:
        context = self._context
        empty = source.replace(
            control_session_id=self._reply_to.session.session_id,
            correlation_id=self._reply_to.correlation_id,
            stop_position=source.start_position,
            stop_timestamp=source.start_timestamp,
            # How long a copy keeps what it has is said where the copy is.
            original_channel=without_retention(source.original_channel),
        )
        if self.destination_id is not None:
            self._refill(empty.replace(recording_id=self.destination_id))
            return
        self.destination_id = context.catalog.next_recording_id
        context.stored.add_empty(empty.replace(recording_id=self.destination_id))
        self._signal(RecordingSignal.REPLICATE, source.start_position)

    def _refill(self, empty: RecordingDescriptor) -> None:
        context, recording_id = self._context, empty.recording_id
        work = context.stored.work_under_way(recording_id)
        if work is not None:
            raise _refused(f"cannot replicate to recording {recording_id} due to {work}")
        before = context.catalog.find(recording_id)
        assert before is not None, "looked for in this turn"
        # Nothing is in it, and it may be of another length than what comes.
        base = before.geometry.segment_base(before.start_position)
        context.storage.delete(segment_name(recording_id, base))
        if before.retention is not None:
            channel = before.retention.in_channel(empty.original_channel)
            empty = empty.replace(original_channel=channel)
        context.stored.refill(empty)

    def _source_position(self) -> Task[int]:
        position = yield from self._answer(calls.recording_position(self.wanted.source_id))
        if position is None:
            raise _refused("cannot live merge without active source recording")
        return position

    def _extended(self, source: RecordingDescriptor, session_id: int | None) -> Task[Subscription]:
        """Begin to record the arriving stream at the end of the copy."""
        wanted, replication_id = self.wanted, self._reply_to.correlation_id
        assert self.destination_id is not None, "prepared before"
        recorded = self._recorded = self._recordings.add(
            self._reply_to.session,
            ExtendRecordingRequest2(
                correlation_id=replication_id,
                recording_id=self.destination_id,
                stream_id=source.stream_id,
                source_location=SourceLocation.REMOTE,
                auto_stop=True,
                channel=wanted.subscription_channel(session_id, replication_id),
            ),
        )
        subscription = yield from self._until(lambda: recorded.subscription, "the driver did not subscribe")
        if wanted.has_destinations:
            added = subscription.request_destination(wanted.replay_destination)
            yield from self._until(added.poll, "the driver did not add the destination of the replay")
        return subscription

    def _replayed(
        self, subscription: Subscription, source: RecordingDescriptor, session_id: int | None, begin: int
    ) -> Task[None]:
        wanted = self.wanted
        way_back = (yield from self._way_back(subscription)) if wanted.channel.is_response else None
        endpoint = wanted.channel.get("endpoint")
        if wanted.channel.is_port_open:
            bound = yield from self._until(lambda: subscription.resolved_endpoint, "no port was chosen")
            host, _, _ = (endpoint or "").rpartition(":")
            endpoint = f"{host}:{bound.rpartition(':')[2]}"
        request = ReplayRequest(
            recording_id=wanted.source_id,
            position=begin,
            length=NULL_VALUE if wanted.stop_position is None else wanted.stop_position - begin,
            replay_stream_id=source.stream_id,
            replay_channel=wanted.replay_channel(session_id, endpoint),
            file_io_max_length=wanted.file_io_max_length,
        )
        self._replay = yield from self._answer(steps.replay_started(request, way_back))
        self._link.await_error(self._replay[1])

    def _way_back(self, subscription: Subscription) -> Task[ExclusivePublication]:
        """Open a connection to the other archive, through which the replay comes back to the subscription."""
        pending = self._link.request_way_back(subscription)
        self._undo.callback(pending.cancel)
        opened = yield from self._until(pending.poll, "the driver did not open the connection of the replay")
        self._undo.callback(opened.close)
        missing = "the source archive did not take the connection of the replay"
        yield from self._until(lambda: opened.is_connected or None, missing)
        return opened

    def _began(self) -> RecordingSession | None:
        assert self.destination_id is not None
        assert self._recorded is not None
        if self.destination_id not in self._recorded.recording_ids:
            return None
        return self._recordings.active(self.destination_id)

    def _is_complete(self, source: RecordingDescriptor, recording: RecordingSession) -> bool:
        ends = (source.stop_position, NULL_VALUE if (stop := self.wanted.stop_position) is None else stop)
        return any(end != NULL_VALUE and recording.position >= end for end in ends)

    def _merged(self, subscription: Subscription, recording: RecordingSession) -> Task[None]:
        """Let the live stream take over from the replay."""
        wanted, image = self.wanted, recording.image
        near, is_added = min(image.term_length // 4, _JOIN_LENGTH_MAX), False
        while True:
            behind = (yield from self._source_position()) - recording.position
            if not is_added and behind <= near:
                added = subscription.request_destination(wanted.live_destination)
                yield from self._until(added.poll, "the driver did not add the live destination")
                is_added = True
            elif is_added and behind <= 0 and image.active_transport_count >= _MERGED_TRANSPORTS:
                break
        gone = subscription.request_destination_removal(wanted.replay_destination)
        yield from self._until(gone.poll, "the driver did not remove the destination of the replay")
        self._is_merged = True
        self._signal(RecordingSignal.MERGE, recording.position)

    # --- waiting ---------------------------------------------------------------------------------------------------

    def _answer(self, what: Steps[T]) -> Task[T]:
        """Wait, at most the time-out, for an answer of the other archive."""
        asked = self._link.ask(what)
        while not asked.is_done:
            self._check_recording()
            yield
        return self._link.answer(asked)

    def _until(self, found: Callable[[], T | None], missing: str = "") -> Task[T]:
        """Continue when a condition holds; with `missing`, raise if it does not within the time-out of an answer."""
        deadline = self._context.clock.deadline(self.wanted.timeout_s if missing else None)
        while (value := found()) is None:
            self._check_recording()
            if deadline.is_over:
                raise _refused(f"{missing} within {self.wanted.timeout_s} s{self._late()}")
            yield
        return value

    def _check_recording(self) -> None:
        if self._recorded is not None and self._recorded.has_ended:
            raise _RecordingEndedError

    def _look_at_source(self) -> None:
        now_ns = self._context.clock.monotonic_ns()
        if self.life.state in _UNWATCHED and now_ns < self._next_look_ns:
            return
        self._next_look_ns = now_ns + _LOOK_INTERVAL_NS
        was_ready = self._link.is_ready
        self._link.step()
        if was_ready and not self._link.is_ready:
            raise _refused(f"the source archive is gone: {self._link.failure}")

    # --- the end ---------------------------------------------------------------------------------------------------

    def _late(self) -> str:
        """The other archive's later error about its replay, to append to a text."""
        error = None if self._replay is None else self._link.late_error(self._replay[1])
        return "" if error is None else f": {error}"

    def _end_with_recording(self) -> None:
        """End because the recording has ended. The client knows why, unless the source is the cause."""
        recording = self._recording
        if recording is None or recording.failure is not None:
            self._end("its recording failed, or a client stopped it")
            return
        image = recording.image
        if recording.is_cut_off or image.is_publication_revoked:
            text = "replication image closed unexpectedly"
        elif not image.is_end_of_stream:
            self._end("a client stopped the recording that it filled")
            return
        elif self.wanted.live_destination:
            text = "the live stream ended before it was merged"
        else:
            self._replay = None
            self._end("the source stopped")
            return
        self._fail(ErrorCode.GENERIC, f"{text}: position={recording.position}{self._late()}")

    def _fail(self, code: ErrorCode, text: str) -> None:
        reply_to = self._reply_to
        self._context.log.warning("a replication failed", f"replication {reply_to.correlation_id}: {text}")
        reply_to.session.send_error(reply_to.correlation_id, code, text)
        self._end(text, is_fault=True)

    def _end(self, reason: str, *, is_fault: bool = False) -> None:
        """Stop what it began, unless the recording continues with the live stream, and inform the client."""
        self._run.close()
        if self._recorded is not None and not self._is_merged:
            self._recordings.end(self._recorded, "its replication ended")
        try:
            if self._replay is not None:
                self._link.send(StopReplayRequest(replay_session_id=self._replay[0]))
            self._undo.close()
            self._link.close()
        except HeadraceError as failure:
            self._context.log.warning("the source archive of a replication cannot be left", str(failure))
        self._signal(RecordingSignal.REPLICATE_END, NULL_VALUE)
        self.life.enter(ReplicationState.DONE, reason, is_fault=is_fault)
        self._context.log.info(f"replication {self._reply_to.correlation_id} ended: {reason}")

    def _signal(self, signal: RecordingSignal, position: int, subscription_id: int = NULL_VALUE) -> None:
        recording_id = NULL_VALUE if self.destination_id is None else self.destination_id
        self._reply_to.session.send_signal(
            self._reply_to.correlation_id, recording_id, subscription_id, position, signal
        )


def _check_same_stream(source: RecordingDescriptor, copy: RecordingDescriptor) -> None:
    for name, found, own in (
        ("streamId", source.stream_id, copy.stream_id),
        ("initialTermId", source.initial_term_id, copy.initial_term_id),
        ("termBufferLength", source.term_buffer_length, copy.term_buffer_length),
    ):
        if found != own:
            text = f"cannot extend recording {copy.recording_id} source.{name}={found} != rec.{name}={own}"
            raise RequestError(ErrorCode.INVALID_EXTENSION, text)


def _refused(text: str) -> RequestError:
    return RequestError(ErrorCode.GENERIC, text)
