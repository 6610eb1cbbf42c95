"""All recordings of an archive: what is subscribed to for them, and a session for each image."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace._exceptions import ConfigError, HeadraceError
from headrace.archive.channels import SPY_PREFIX, ChannelUri, recording_key
from headrace.archive.context import Context, RecordingSignal, SourceLocation
from headrace.archive.counters import request_recording_position
from headrace.archive.descriptor import RecordingDescriptor
from headrace.archive.errors import ArchiveFileError, ErrorCode, RequestError
from headrace.archive.positions import NULL_VALUE
from headrace.archive.recording_session import RecordingSession
from headrace.archive.segment_writer import SegmentWriter
from headrace.archive.storage_space import is_out_of_space

if TYPE_CHECKING:
    from headrace.archive.control_session import ControlSession
    from headrace.archive.deletions import Deletions
    from headrace.archive.events import RecordingEvents
    from headrace.client import Counter, Image, Pending, Subscription

__all__ = ["Recordings"]


@dataclass(slots=True, eq=False)
class Recorded:
    """A subscription made for recording, and who asked for it."""

    key: str
    channel: str
    original_channel: str
    stream_id: int
    session: ControlSession
    correlation_id: int
    is_auto_stop: bool
    extended_id: int | None
    pending: Pending[Subscription]
    arrived: deque[Image]
    subscription: Subscription | None = None
    recording_ids: set[int] = field(default_factory=set)
    is_stopping: bool = False

    @property
    def subscription_id(self) -> int:
        """What clients know it by."""
        assert self.subscription is not None, "nobody knows it before it was added"
        return self.subscription.registration_id


@dataclass(slots=True, eq=False)
class Active:
    """One image being recorded."""

    session: RecordingSession
    recorded: Recorded
    first_signal: RecordingSignal | None
    """What the client is told once the position can be seen; ``None`` when it was."""


class Recordings:
    """Starts and stops recordings, and steps their sessions."""

    def __init__(self, context: Context, events: RecordingEvents, deletions: Deletions) -> None:
        self._context = context
        self._events = events
        self._deletions = deletions
        self._by_key: dict[str, Recorded] = {}
        self._recorded: list[Recorded] = []
        self._active: dict[int, Active] = {}

    def active(self, recording_id: int) -> RecordingSession | None:
        """The session that is recording now."""
        found = self._active.get(recording_id)
        return found.session if found is not None else None

    def subscriptions(self) -> list[tuple[int, int, str]]:
        """(subscription id, stream id, channel) of what is being recorded."""
        added = [one for one in self._by_key.values() if one.subscription is not None]
        return [(one.subscription_id, one.stream_id, one.channel) for one in added]

    # --- requests --------------------------------------------------------------------------------------------------

    def start(
        self,
        session: ControlSession,
        correlation_id: int,
        channel: str,
        stream_id: int,
        location: int,
        *,
        is_auto_stop: bool,
        extended_id: int | None = None,
    ) -> None:
        """Record what arrives on a channel and stream, as new recordings or as the rest of one.

        The session is answered with the id of the subscription when the driver has added it.

        Raises:
            RequestError: Limits, space, a recording that cannot be extended, or the channel is recorded already.
        """
        self._check_limit()
        if extended_id is not None:
            self._check_extension(extended_id, stream_id)
        self._check_space()
        try:
            key, stripped = recording_key(channel, stream_id), ChannelUri(channel).stripped()
        except ConfigError as wrong:
            raise RequestError(ErrorCode.GENERIC, str(wrong)) from None
        if key in self._by_key:
            text = f"recording exists for streamId={stream_id} channel={channel}"
            raise RequestError(ErrorCode.ACTIVE_SUBSCRIPTION, text)
        is_spied = location == SourceLocation.LOCAL and ChannelUri(channel).media == "udp"
        subscribed = SPY_PREFIX + stripped if is_spied else stripped
        arrived: deque[Image] = deque()
        try:
            pending = self._context.client.request_subscription(
                subscribed, stream_id, on_available_image=arrived.append
            )
        except HeadraceError as refusal:
            raise RequestError(ErrorCode.GENERIC, f"cannot subscribe to {subscribed}: {refusal}") from None
        recorded = Recorded(
            key,
            subscribed,
            channel,
            stream_id,
            session,
            correlation_id,
            is_auto_stop,
            extended_id,
            pending,
            arrived,
        )
        self._by_key[key] = recorded
        self._recorded.append(recorded)

    def _check_limit(self) -> None:
        limit = self._context.config.max_concurrent_recordings
        if sum(max(1, len(one.recording_ids)) for one in self._recorded) >= limit:
            text = f"max concurrent recordings reached {limit}"
            raise RequestError(ErrorCode.MAX_RECORDINGS, text)

    def _check_extension(self, recording_id: int, stream_id: int) -> None:
        descriptor = self._context.catalog.find(recording_id)
        if descriptor is None:
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, f"unknown recording id: {recording_id}")
        if descriptor.stream_id != stream_id:
            text = f"cannot extend recording {recording_id} with streamId={stream_id} for existing streamId="
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, text + str(descriptor.stream_id))
        if recording_id in self._active:
            raise RequestError(ErrorCode.ACTIVE_RECORDING, f"cannot extend active recording: {recording_id}")
        if self._deletions.is_busy(recording_id):
            text = f"cannot extend recording {recording_id} while its files are being deleted"
            raise RequestError(ErrorCode.GENERIC, text)

    def _check_space(self) -> None:
        threshold = self._context.config.low_storage_space_threshold
        usable = self._context.storage.usable_bytes()
        if usable <= threshold:
            text = f"insufficient usable storage space={usable} threshold={threshold}"
            raise RequestError(ErrorCode.STORAGE_SPACE, text)

    def stop_channel(self, channel: str, stream_id: int) -> None:
        """Stop what was started with a channel and stream."""
        try:
            recorded = self._by_key.get(recording_key(channel, stream_id))
        except ConfigError as wrong:
            raise RequestError(ErrorCode.GENERIC, str(wrong)) from None
        if recorded is None:
            text = f"no recording found for streamId={stream_id} channel={channel}"
            raise RequestError(ErrorCode.UNKNOWN_SUBSCRIPTION, text)
        self._stop(recorded)

    def stop_subscription(self, subscription_id: int) -> None:
        """Stop what was started under an id."""
        for recorded in list(self._by_key.values()):
            if recorded.subscription is not None and recorded.subscription_id == subscription_id:
                self._stop(recorded)
                return
        text = f"no recording subscription found for subscriptionId={subscription_id}"
        raise RequestError(ErrorCode.UNKNOWN_SUBSCRIPTION, text)

    def stop_recording(self, recording_id: int) -> bool:
        """Stop one recording; true when its subscription was still there."""
        if self._context.catalog.find(recording_id) is None:
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, f"unknown recording id: {recording_id}")
        active = self._active.get(recording_id)
        if active is None:
            return False
        active.session.abort()
        if self._by_key.pop(active.recorded.key, None) is None:
            return False
        active.recorded.is_stopping = True
        return True

    def _stop(self, recorded: Recorded) -> None:
        self._by_key.pop(recorded.key, None)
        recorded.is_stopping = True
        for recording_id in recorded.recording_ids:
            self._active[recording_id].session.abort()

    # --- duty cycle ------------------------------------------------------------------------------------------------

    def do_work(self) -> int:
        """One turn: begin what has arrived, a block for each session, finish what has stopped."""
        work_count = 0
        for recorded in list(self._recorded):
            if recorded.subscription is None:
                work_count += self._subscribe(recorded)
            while recorded.subscription is not None and recorded.arrived:
                self._on_image(recorded, recorded.arrived.popleft())
                work_count += 1
        for active in list(self._active.values()):
            work_count += active.session.do_work()
            if active.first_signal is not None and not active.session.is_awaiting_counter:
                self._signal(active, active.session.join_position, active.first_signal)
                active.first_signal = None
            if active.session.is_stopped:
                self._finish(active)
        for recorded in [one for one in self._recorded if one.is_stopping and not one.recording_ids]:
            if recorded.subscription is not None:
                self._recorded.remove(recorded)
                recorded.subscription.close()
                work_count += 1
        return work_count

    def _subscribe(self, recorded: Recorded) -> int:
        """Look whether the driver has added the subscription, and answer who asked for it."""
        try:
            recorded.subscription = recorded.pending.poll()
        except HeadraceError as refusal:
            self._by_key.pop(recorded.key, None)
            self._recorded.remove(recorded)
            text = f"cannot subscribe to {recorded.channel}: {refusal}"
            recorded.session.send_error(recorded.correlation_id, ErrorCode.GENERIC, text)
            return 1
        if recorded.subscription is None:
            return 0
        recorded.session.send_ok(recorded.correlation_id, recorded.subscription_id)
        return 1

    def _on_image(self, recorded: Recorded, image: Image) -> None:
        if recorded.is_stopping:
            return
        try:
            if recorded.extended_id is None:
                self._begin(recorded, image)
            else:
                self._extend(recorded, image, recorded.extended_id)
        except RequestError as refusal:
            recorded.session.send_error(recorded.correlation_id, refusal.code, str(refusal))
            self._context.log.error(str(refusal))
            if recorded.is_auto_stop:
                self._stop(recorded)
        except (ArchiveFileError, OSError, HeadraceError) as failure:
            code = ErrorCode.STORAGE_SPACE if is_out_of_space(failure) else ErrorCode.GENERIC
            text = f"cannot record session_id={image.session_id} of {recorded.original_channel}: {failure}"
            recorded.session.send_error(recorded.correlation_id, code, text)
            self._context.log.error(text)

    def _begin(self, recorded: Recorded, image: Image) -> None:
        context = self._context
        descriptor = RecordingDescriptor(
            control_session_id=0,
            correlation_id=0,
            recording_id=NULL_VALUE,
            start_timestamp=context.clock.now_ms(),
            stop_timestamp=NULL_VALUE,
            start_position=image.join_position,
            stop_position=NULL_VALUE,
            initial_term_id=image.initial_term_id,
            segment_file_length=max(context.config.segment_file_length, image.term_length),
            term_buffer_length=image.term_length,
            mtu_length=image.mtu_length,
            session_id=image.session_id,
            stream_id=recorded.stream_id,
            stripped_channel=ChannelUri(recorded.original_channel).stripped(),
            original_channel=recorded.original_channel,
            source_identity=image.source_identity,
        )
        # The counter first: where it cannot be asked for, nothing has begun.
        descriptor = descriptor.replace(recording_id=context.catalog.next_recording_id)
        counter = self._request_counter(recorded, image, descriptor)
        try:
            context.catalog.add(descriptor)
        except (ArchiveFileError, OSError):
            counter.cancel()
            raise
        self._add_session(recorded, image, descriptor, counter, RecordingSignal.START)

    def _extend(self, recorded: Recorded, image: Image, recording_id: int) -> None:
        descriptor = self._context.catalog.find(recording_id)
        if descriptor is None:
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, f"unknown recording id: {recording_id}")
        if recording_id in self._active:
            raise RequestError(ErrorCode.ACTIVE_RECORDING, f"cannot extend active recording: {recording_id}")
        expected = (
            ("joinPosition", image.join_position, descriptor.stop_position),
            ("initialTermId", image.initial_term_id, descriptor.initial_term_id),
            ("termBufferLength", image.term_length, descriptor.term_buffer_length),
            ("mtuLength", image.mtu_length, descriptor.mtu_length),
        )
        for name, found, wanted in expected:
            if found != wanted:
                text = f"cannot extend recording {recording_id}: image {name}={found} recording has {wanted}"
                raise RequestError(ErrorCode.INVALID_EXTENSION, text)
        counter = self._request_counter(recorded, image, descriptor)
        session = recorded.session.session_id
        try:
            self._context.catalog.extended(recording_id, session, recorded.correlation_id, image.session_id)
        except OSError:
            counter.cancel()
            raise
        self._add_session(recorded, image, descriptor, counter, RecordingSignal.EXTEND)

    def _request_counter(
        self, recorded: Recorded, image: Image, descriptor: RecordingDescriptor
    ) -> Pending[Counter]:
        return request_recording_position(
            self._context.client,
            self._context.archive_id,
            descriptor.recording_id,
            image.session_id,
            recorded.stream_id,
            descriptor.stripped_channel,
            image.source_identity,
        )

    def _add_session(
        self,
        recorded: Recorded,
        image: Image,
        descriptor: RecordingDescriptor,
        counter: Pending[Counter],
        first_signal: RecordingSignal,
    ) -> None:
        context, recording_id = self._context, descriptor.recording_id
        writer = SegmentWriter(
            context.storage,
            recording_id,
            descriptor.geometry,
            image.join_position,
            sync_level=context.config.file_sync_level,
            checksum=context.record_checksum,
            on_note=context.log.warning,
        )
        session = RecordingSession(
            recording_id,
            image,
            writer,
            counter,
            self._events.listener(recorded.original_channel),
            context.clock,
            context.counters,
            context.config.file_io_max_length,
        )
        self._active[recording_id] = Active(session, recorded, first_signal)
        recorded.recording_ids.add(recording_id)
        context.counters.recording_sessions.get_and_add(1)

    def _finish(self, active: Active) -> None:
        context, session, recorded = self._context, active.session, active.recorded
        recording_id = session.recording_id
        del self._active[recording_id]
        recorded.recording_ids.discard(recording_id)
        self._note_stop(session, context.clock.now_ms())
        if session.error is not None:
            code, text = session.error
            context.log.error(text)
            recorded.session.send_error(recorded.correlation_id, code, text)
        self._signal(active, session.position, RecordingSignal.STOP)
        session.close_counter()
        context.counters.recording_sessions.get_and_add(-1)
        if recorded.is_auto_stop:
            self._stop(recorded)

    def _note_stop(self, session: RecordingSession, now_ms: int) -> None:
        try:
            self._context.catalog.stopped(session.recording_id, session.position, now_ms)
        except OSError as failure:
            # Others go on. On disk the recording is still active, and its end is found again at the next start.
            self._context.log.error(
                f"recording_id={session.recording_id} cannot be noted as stopped: {failure}"
            )

    @staticmethod
    def _signal(active: Active, position: int, signal: RecordingSignal) -> None:
        recorded = active.recorded
        recorded.session.send_signal(
            recorded.correlation_id,
            active.session.recording_id,
            recorded.subscription_id,
            position,
            signal,
        )

    def close(self) -> None:
        """Stop everything where it is, for an archive that ends: nothing needs to be recovered after it."""
        now_ms = self._context.clock.now_ms()
        for active in self._active.values():
            active.session.close()
            self._note_stop(active.session, now_ms)
        self._active.clear()
