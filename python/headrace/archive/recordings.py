"""All recordings of an archive: what is subscribed to for them, and a session for each image."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace._exceptions import ConfigError, HeadraceError
from headrace.archive.channels import SPY_PREFIX, ChannelUri, recording_key
from headrace.archive.context import Context, RecordingSignal, SourceLocation
from headrace.archive.counters import add_recording_position
from headrace.archive.descriptor import RecordingDescriptor
from headrace.archive.errors import ArchiveFileError, ErrorCode, RequestError
from headrace.archive.positions import NULL_VALUE
from headrace.archive.recording_session import RecordingSession
from headrace.archive.segment_writer import SegmentWriter

if TYPE_CHECKING:
    from headrace.archive.control_session import ControlSession
    from headrace.archive.deletions import Deletions
    from headrace.archive.events import RecordingEvents
    from headrace.client import Image, Subscription

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
    subscription: Subscription
    arrived: deque[Image] = field(default_factory=deque)
    recording_ids: set[int] = field(default_factory=set)
    is_stopping: bool = False

    @property
    def subscription_id(self) -> int:
        """What clients know it by."""
        return self.subscription.registration_id


class Recordings:
    """Starts and stops recordings, and steps their sessions."""

    def __init__(self, context: Context, events: RecordingEvents, deletions: Deletions) -> None:
        self._context = context
        self._events = events
        self._deletions = deletions
        self._by_key: dict[str, Recorded] = {}
        self._recorded: list[Recorded] = []
        self._sessions: dict[int, tuple[RecordingSession, Recorded]] = {}

    def active(self, recording_id: int) -> RecordingSession | None:
        """The session that is recording now."""
        found = self._sessions.get(recording_id)
        return found[0] if found is not None else None

    def subscriptions(self) -> list[tuple[int, int, str]]:
        """(subscription id, stream id, channel) of what is being recorded."""
        return [(one.subscription_id, one.stream_id, one.channel) for one in self._by_key.values()]

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
    ) -> int:
        """Record what arrives on a channel and stream, as new recordings or as the rest of one.

        Returns:
            The id of the subscription.

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
            subscription = self._context.client.add_subscription(
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
            subscription,
            arrived,
        )
        self._by_key[key] = recorded
        self._recorded.append(recorded)
        return recorded.subscription_id

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
        if recording_id in self._sessions:
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
            if recorded.subscription_id == subscription_id:
                self._stop(recorded)
                return
        text = f"no recording subscription found for subscriptionId={subscription_id}"
        raise RequestError(ErrorCode.UNKNOWN_SUBSCRIPTION, text)

    def stop_recording(self, recording_id: int) -> bool:
        """Stop one recording; true when its subscription was still there."""
        if self._context.catalog.find(recording_id) is None:
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, f"unknown recording id: {recording_id}")
        found = self._sessions.get(recording_id)
        if found is None:
            return False
        session, recorded = found
        session.abort()
        if self._by_key.pop(recorded.key, None) is None:
            return False
        recorded.is_stopping = True
        return True

    def _stop(self, recorded: Recorded) -> None:
        self._by_key.pop(recorded.key, None)
        recorded.is_stopping = True
        for recording_id in recorded.recording_ids:
            self._sessions[recording_id][0].abort()

    # --- duty cycle ------------------------------------------------------------------------------------------------

    def do_work(self) -> int:
        """One turn: begin what has arrived, a block for each session, finish what has stopped."""
        work_count = 0
        for recorded in self._recorded:
            while recorded.arrived:
                self._on_image(recorded, recorded.arrived.popleft())
                work_count += 1
        for session, recorded in list(self._sessions.values()):
            work_count += session.do_work()
            if session.is_stopped:
                self._finish(session, recorded)
        for recorded in [one for one in self._recorded if one.is_stopping and not one.recording_ids]:
            self._recorded.remove(recorded)
            recorded.subscription.close()
            work_count += 1
        return work_count

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
            self._context.on_error(str(refusal))
            if recorded.is_auto_stop:
                self._stop(recorded)
        except (ArchiveFileError, OSError, HeadraceError) as failure:
            text = f"cannot record session_id={image.session_id} of {recorded.original_channel}: {failure}"
            recorded.session.send_error(recorded.correlation_id, ErrorCode.GENERIC, text)
            self._context.on_error(text)

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
        recording_id = context.catalog.add(descriptor)
        self._add_session(recorded, image, descriptor.replace(recording_id=recording_id))
        self._signal(recorded, recording_id, image.join_position, RecordingSignal.START)

    def _extend(self, recorded: Recorded, image: Image, recording_id: int) -> None:
        descriptor = self._context.catalog.find(recording_id)
        if descriptor is None:
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, f"unknown recording id: {recording_id}")
        if recording_id in self._sessions:
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
        session = recorded.session.session_id
        self._context.catalog.extended(recording_id, session, recorded.correlation_id, image.session_id)
        self._add_session(recorded, image, descriptor)
        self._signal(recorded, recording_id, image.join_position, RecordingSignal.EXTEND)

    def _add_session(self, recorded: Recorded, image: Image, descriptor: RecordingDescriptor) -> None:
        context, recording_id = self._context, descriptor.recording_id
        counter = add_recording_position(
            context.client,
            context.archive_id,
            recording_id,
            image.session_id,
            recorded.stream_id,
            descriptor.stripped_channel,
            image.source_identity,
        )
        writer = SegmentWriter(
            context.storage,
            recording_id,
            descriptor.geometry,
            image.join_position,
            sync_level=context.config.file_sync_level,
            checksum=context.record_checksum,
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
        self._sessions[recording_id] = session, recorded
        recorded.recording_ids.add(recording_id)
        context.counters.recording_sessions.get_and_add(1)

    def _finish(self, session: RecordingSession, recorded: Recorded) -> None:
        context, recording_id = self._context, session.recording_id
        del self._sessions[recording_id]
        recorded.recording_ids.discard(recording_id)
        context.catalog.stopped(recording_id, session.position, context.clock.now_ms())
        if session.error is not None:
            code, text = session.error
            context.on_error(text)
            recorded.session.send_error(recorded.correlation_id, code, text)
        self._signal(recorded, recording_id, session.position, RecordingSignal.STOP)
        session.close_counter()
        context.counters.recording_sessions.get_and_add(-1)
        if recorded.is_auto_stop:
            self._stop(recorded)

    def _signal(self, recorded: Recorded, recording_id: int, position: int, signal: RecordingSignal) -> None:
        recorded.session.send_signal(
            recorded.correlation_id, recording_id, recorded.subscription_id, position, signal
        )

    def close(self) -> None:
        """Stop everything where it is, for an archive that ends: nothing needs to be recovered after it."""
        now_ms = self._context.clock.now_ms()
        for session, _ in self._sessions.values():
            session.close()
            self._context.catalog.stopped(session.recording_id, session.position, now_ms)
        self._sessions.clear()
