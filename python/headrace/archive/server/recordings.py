"""All recordings of an archive: their subscriptions, and a session for each image."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from headrace._agent.storage_space import is_out_of_space
from headrace._base.exceptions import ConfigError, HeadraceError
from headrace._base.states import Life
from headrace.archive.files.segment_writer import SegmentWriter
from headrace.archive.protocol.codes import ErrorCode, RecordingSignal, SourceLocation
from headrace.archive.protocol.descriptor import RecordingDescriptor
from headrace.archive.protocol.forcing import has_sound_end, least_sync_level
from headrace.archive.protocol.named_stream import StreamAddress
from headrace.archive.protocol.requests import (
    ExtendRecordingRequest,
    ExtendRecordingRequest2,
    StartRecordingRequest,
    StartRecordingRequest2,
)
from headrace.archive.protocol.retention import Retention
from headrace.archive.server.context import Context
from headrace.archive.server.counters import request_recording_position
from headrace.archive.server.errors import RequestError
from headrace.archive.server.recording_session import RecordingSession
from headrace.archive.server.states import RECORDING_SUBSCRIPTION, RecordingSubscriptionState
from headrace.channel import SPY_PREFIX, ChannelUri, recording_key
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.archive.server.control_session import ControlSession
    from headrace.archive.server.events import RecordingEvents
    from headrace.archive.server.recorder import Recorder
    from headrace.client import Counter, Image, Pending, Subscription

__all__ = ["RecordingSubscription", "Recordings"]

_STOP_RETRY_NS = 1_000_000_000
# Recordings are limited by a setting. This bounds what clients leave at the driver when they never stop what ended.
_SUBSCRIPTIONS_MAX = 10_000
_DROPPED_MAX = 1 << 16
_AWAITED = (RecordingSubscriptionState.ADDING, RecordingSubscriptionState.WAITING)
_ENDED = (
    RecordingSubscriptionState.RELEASED,
    RecordingSubscriptionState.STOPPING,
    RecordingSubscriptionState.CLOSED,
)


class Asker(Protocol):
    """Asked for a recording, and hears what becomes of it: a control session, or a declaration."""

    @property
    def session_id(self) -> int:
        """Its control session; -1 for a declaration."""

    def send_ok(self, correlation_id: int, relevant_id: int = 0) -> None:
        """See :class:`headrace.archive.server.control_session.ControlSession`."""

    def send_error(self, correlation_id: int, code: ErrorCode, text: str) -> None:
        """See :class:`headrace.archive.server.control_session.ControlSession`."""

    def send_signal(
        self,
        correlation_id: int,
        recording_id: int,
        subscription_id: int,
        position: int,
        signal: RecordingSignal,
    ) -> None:
        """See :class:`headrace.archive.server.control_session.ControlSession`."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class RecordingSubscription:
    """A subscription made for recording, and who asked for it."""

    key: str
    channel: str
    original_channel: str
    stream_id: int
    session: Asker
    correlation_id: int
    is_auto_stop: bool
    extended_id: int | None
    declared_name: str | None = None
    """Of the named stream that it records; no client stops that."""
    pending: Pending[Subscription] | None = None
    subscription: Subscription | None = None
    recording_ids: set[int] = field(default_factory=set)
    life: Life[RecordingSubscriptionState] = field(default_factory=lambda: Life(RECORDING_SUBSCRIPTION))

    @property
    def subscription_id(self) -> int:
        """Its id for clients."""
        assert self.subscription is not None, "it has an id only after it was added"
        return self.subscription.registration_id

    @property
    def is_awaited(self) -> bool:
        """True until an image has come; until then it counts as a recording."""
        return self.life.state in _AWAITED

    @property
    def has_ended(self) -> bool:
        """True when no further image is recorded."""
        return self.life.state in _ENDED


@dataclass(slots=True, eq=False)
class Active:
    """One image being recorded."""

    session: RecordingSession
    recorded: RecordingSubscription
    first_signal: RecordingSignal | None
    """What the client is told once the position can be seen; ``None`` when it was."""
    next_attempt_ns: int = 0
    """When its end is to be put into the catalog, after the disk refused it."""


def _drop(_payload: object, _header: object) -> None:
    """Handler for messages that are on the disk."""


class Recordings:
    """Starts and stops recordings, and steps their sessions."""

    def __init__(self, context: Context, recorder: Recorder, events: RecordingEvents) -> None:
        self._context = context
        self._recorder = recorder
        self._events = events
        self._by_key: dict[str, RecordingSubscription] = {}
        self._active: dict[int, Active] = {}
        # A turn looks only at subscriptions with something to do, so idle ones cost nothing.
        self._pending: list[RecordingSubscription] = []
        self._arrived: deque[tuple[RecordingSubscription | None, Image]] = deque()
        self._closing: list[RecordingSubscription] = []

    def active(self, recording_id: int) -> RecordingSession | None:
        """The session that is recording now."""
        found = self._active.get(recording_id)
        return found.session if found is not None else None

    def subscriptions(self) -> list[tuple[int, int, str]]:
        """(subscription id, stream id, channel) of each subscription for recordings."""
        added = [one for one in self._by_key.values() if one.subscription is not None]
        return [(one.subscription_id, one.stream_id, one.channel) for one in added]

    # --- requests --------------------------------------------------------------------------------------------------

    def start(self, session: ControlSession, request: StartRecordingRequest | ExtendRecordingRequest) -> None:
        """Record the publishers of a channel and stream, as new recordings or as an extension of one.

        The session gets the id of the subscription when the driver has added it.

        Raises:
            RequestError: A limit is reached, space is low, the recording cannot be extended, or the channel is recorded
                already.
        """
        self.add(session, request)

    def add_declared(self, asker: Asker, request: StartRecordingRequest, name: str) -> RecordingSubscription:
        """Record the publishers of a named stream; one that goes on extends its recording.

        Raises:
            RequestError: As :meth:`start`.
        """
        recorded = self.add(asker, request)
        recorded.declared_name = name
        return recorded

    def add(
        self, session: Asker, request: StartRecordingRequest | ExtendRecordingRequest
    ) -> RecordingSubscription:
        """As :meth:`start`; returns the outcome of the request."""
        channel, stream_id = request.channel, request.stream_id
        extended_id = request.recording_id if isinstance(request, ExtendRecordingRequest) else None
        self._check_limit()
        if extended_id is not None:
            self._check_extension(extended_id, stream_id)
        self._check_space()
        try:
            key, stripped = recording_key(channel, stream_id), ChannelUri(channel).stripped()
            retention = Retention.of(channel)
        except ConfigError as wrong:
            raise RequestError(ErrorCode.GENERIC, str(wrong)) from None
        if extended_id is not None:
            self._check_retention(extended_id, retention)
        if key in self._by_key:
            text = f"recording exists for streamId={stream_id} channel={channel}"
            raise RequestError(ErrorCode.ACTIVE_SUBSCRIPTION, text)
        self._check_undeclared(channel, stream_id)
        is_spied = request.source_location is SourceLocation.LOCAL and ChannelUri(channel).media == "udp"
        subscribed = SPY_PREFIX + stripped if is_spied else stripped
        # Older clients cannot ask for it.
        with_auto_stop = StartRecordingRequest2 | ExtendRecordingRequest2
        recorded = RecordingSubscription(
            key=key,
            channel=subscribed,
            original_channel=channel,
            stream_id=stream_id,
            session=session,
            correlation_id=request.correlation_id,
            is_auto_stop=isinstance(request, with_auto_stop) and request.auto_stop,
            extended_id=extended_id,
        )
        # The client holds the handler, which would hold the session and with it the archive, see _weak.py.
        arrived, held = self._arrived, weakref.ref(recorded)
        try:
            recorded.pending = self._context.client.request_subscription(
                subscribed,
                stream_id,
                on_available_image=lambda image: arrived.append((held(), image)),
            )
        except HeadraceError as refusal:
            raise RequestError(ErrorCode.GENERIC, f"cannot subscribe to {subscribed}: {refusal}") from None
        self._by_key[key] = recorded
        self._pending.append(recorded)
        is_asked = session.session_id != NULL_VALUE
        recorded.life.begin(
            self._context.events,
            f"control session {session.session_id} asked for it" if is_asked else "its stream is declared",
            request.correlation_id,
            parent_id=extended_id,
            stream_id=stream_id,
            detail=channel,
        )
        return recorded

    def end(self, recorded: RecordingSubscription, reason: str) -> None:
        """Stop what :meth:`add` began, unless it has ended."""
        if not recorded.has_ended:
            self._stop(recorded, reason)

    def _check_limit(self) -> None:
        """Check the number of active recordings and of subscriptions that wait for their first image."""
        limit = self._context.config.max_concurrent_recordings
        awaited = sum(one.is_awaited and one.declared_name is None for one in self._by_key.values())
        if len(self._active) + awaited >= limit:
            raise RequestError(ErrorCode.MAX_RECORDINGS, f"max concurrent recordings reached {limit}")
        if len(self._by_key) >= _SUBSCRIPTIONS_MAX:
            text = (
                f"max recording subscriptions reached {_SUBSCRIPTIONS_MAX}: "
                "stop those whose recordings have ended"
            )
            raise RequestError(ErrorCode.MAX_RECORDINGS, text)

    def _check_undeclared(self, channel: str, stream_id: int) -> None:
        """Refuse what a declaration records anyway: a reader of the stream would have it twice."""
        if ChannelUri(channel).get("session-id") is None:
            return
        recorded = self._by_key.get(StreamAddress.of(channel, stream_id).key)
        if recorded is not None and recorded.declared_name is not None:
            text = (
                f"the archive records all publishers of streamId={stream_id} channel={channel}, as stream "
                f"{recorded.declared_name}: publish with add_publication({recorded.declared_name!r}) of the archive"
            )
            raise RequestError(ErrorCode.ACTIVE_SUBSCRIPTION, text)

    @staticmethod
    def _check_stoppable(recorded: RecordingSubscription) -> None:
        if recorded.declared_name is not None:
            text = f"stream {recorded.declared_name} is declared, which ends with undeclare and not before"
            raise RequestError(ErrorCode.GENERIC, text)

    def _check_extension(self, recording_id: int, stream_id: int) -> None:
        descriptor = self._context.catalog.find(recording_id)
        if descriptor is None:
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, f"unknown recording id: {recording_id}")
        if descriptor.stream_id != stream_id:
            text = f"cannot extend recording {recording_id} with streamId={stream_id} for existing streamId="
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, text + str(descriptor.stream_id))
        self._check_free(recording_id)

    def _check_retention(self, recording_id: int, retention: Retention | None) -> None:
        """An extension leaves the recording's channel as it is, so another retention would be lost silently."""
        descriptor = self._context.catalog.find(recording_id)
        if descriptor is not None and retention not in (None, descriptor.retention):
            text = (
                f"cannot extend recording {recording_id} with {retention}: it has {descriptor.retention or 'none'}; "
                "leave it out, and change it with set_retention"
            )
            raise RequestError(ErrorCode.GENERIC, text)

    def _check_free(self, recording_id: int) -> None:
        """Refuse a recording whose files are being changed; a deletion may begin after the request to extend it."""
        if recording_id in self._active:
            raise RequestError(ErrorCode.ACTIVE_RECORDING, f"cannot extend active recording {recording_id}")
        if self._context.stored.has_deletion(recording_id):
            text = f"cannot extend recording {recording_id} due to an outstanding delete operation"
            raise RequestError(ErrorCode.GENERIC, text)

    def _check_space(self) -> None:
        threshold = self._context.config.low_storage_space_threshold
        usable = self._context.storage.usable_bytes()
        if usable <= threshold:
            text = f"low storage threshold={threshold} >= usableSpace={usable}"
            raise RequestError(ErrorCode.STORAGE_SPACE, text)

    def stop_channel(self, channel: str, stream_id: int) -> None:
        """Stop the recordings of a channel and stream."""
        try:
            recorded = self._by_key.get(recording_key(channel, stream_id))
        except ConfigError as wrong:
            raise RequestError(ErrorCode.GENERIC, str(wrong)) from None
        if recorded is None:
            text = f"no recording found for streamId={stream_id} channel={channel}"
            raise RequestError(ErrorCode.UNKNOWN_SUBSCRIPTION, text)
        self._check_stoppable(recorded)
        self._stop(recorded)

    def stop_subscription(self, subscription_id: int) -> None:
        """Stop the recordings of a subscription."""
        for recorded in list(self._by_key.values()):
            if recorded.subscription is not None and recorded.subscription_id == subscription_id:
                self._check_stoppable(recorded)
                self._stop(recorded)
                return
        text = f"no recording subscription found for subscriptionId={subscription_id}"
        raise RequestError(ErrorCode.UNKNOWN_SUBSCRIPTION, text)

    def stop_recording(self, recording_id: int) -> bool:
        """Stop one recording; true if its subscription still existed.

        Other recordings of the subscription continue, also of new images; it is closed when none is left. That of a
        named stream goes on.
        """
        if self._context.catalog.find(recording_id) is None:
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, f"unknown recording id: {recording_id}")
        active = self._active.get(recording_id)
        if active is None:
            return False
        active.session.abort()
        if active.recorded.declared_name is not None:
            return True
        return self._release(
            active.recorded, RecordingSubscriptionState.RELEASED, "a client stopped one of its recordings"
        )

    def _release(self, recorded: RecordingSubscription, new: RecordingSubscriptionState, reason: str) -> bool:
        """Withdraw a request from a subscription; false if it was withdrawn before."""
        is_wanted = self._by_key.get(recorded.key) is recorded
        if is_wanted:
            del self._by_key[recorded.key]
            self._closing.append(recorded)
        if is_wanted or new is not RecordingSubscriptionState.RELEASED:
            recorded.life.enter(new, reason)
        return is_wanted

    def _stop(self, recorded: RecordingSubscription, reason: str = "a client stopped it") -> None:
        self._release(recorded, RecordingSubscriptionState.STOPPING, reason)
        for recording_id in recorded.recording_ids:
            self._active[recording_id].session.abort()

    # --- duty cycle ------------------------------------------------------------------------------------------------

    def do_work(self) -> int:
        """One turn: begin what has arrived, finish what has stopped."""
        work_count = sum(self._guarded(self._subscribe, recorded) for recorded in list(self._pending))
        for _ in range(len(self._arrived)):
            recorded, image = self._arrived.popleft()
            if recorded is None:
                continue
            if recorded.subscription is None:
                # The client hears of the subscription before it hears of a recording.
                self._arrived.append((recorded, image))
            else:
                work_count += self._guarded(partial(self._on_image, image=image), recorded)
        work_count += sum(self._look_after(active) for active in list(self._active.values()))
        for recorded in [one for one in self._closing if not one.recording_ids]:
            work_count += self._guarded(self._close, recorded)
        return work_count

    def _guarded(self, step: Callable[[RecordingSubscription], int], recorded: RecordingSubscription) -> int:
        """A step of one subscription. An unexpected exception ends only its request, with one note."""
        try:
            return step(recorded)
        except Exception as failure:
            for waiting in (self._pending, self._closing):
                if recorded in waiting:
                    waiting.remove(recorded)
            if self._by_key.get(recorded.key) is recorded:
                del self._by_key[recorded.key]
            recorded.life.enter(RecordingSubscriptionState.CLOSED, f"failed: {failure!r}", is_fault=True)
            which = f"stream_id={recorded.stream_id} of {recorded.original_channel}"
            self._context.log.error(f"a request to record failed: {failure!r}", failure, which)
            return 1

    def _look_after(self, active: Active) -> int:
        """Report a recording that has begun; end one that has stopped. An unexpected exception ends only this one."""
        session = active.session
        try:
            if active.first_signal is not None and not session.is_awaiting_counter:
                signal, active.first_signal = active.first_signal, None
                self._signal(active, session.join_position, signal)
            # After a refusal there is nothing to do until the next attempt.
            if not session.is_stopped or self._context.clock.monotonic_ns() < active.next_attempt_ns:
                return 0
            if self._note_stop(active):
                self._finish(active)
        except Exception as failure:
            if session.is_stopped or session.failure is not None:
                text = f"recording_id={session.recording_id} cannot end cleanly: {failure!r}"
                self._context.log.error(text, failure)
            else:
                session.break_off(failure)
        return 1

    def _subscribe(self, recorded: RecordingSubscription) -> int:
        """Answer the session that asked for the subscription, once the driver has added it."""
        assert recorded.pending is not None, "asked for before it is looked at"
        try:
            recorded.subscription = recorded.pending.poll()
        except HeadraceError as refusal:
            self._pending.remove(recorded)
            text = f"cannot subscribe to {recorded.channel}: {refusal}"
            self._release(recorded, RecordingSubscriptionState.CLOSED, text)
            self._closing.remove(recorded)
            recorded.session.send_error(recorded.correlation_id, ErrorCode.GENERIC, text)
            return 1
        if recorded.subscription is None:
            return 0
        self._pending.remove(recorded)
        if recorded.life.state is RecordingSubscriptionState.ADDING:
            recorded.life.enter(RecordingSubscriptionState.WAITING, "its subscription was added")
        recorded.session.send_ok(recorded.correlation_id, recorded.subscription_id)
        return 1

    def _close(self, recorded: RecordingSubscription) -> int:
        if recorded.subscription is None:
            return 0
        self._closing.remove(recorded)
        recorded.subscription.close()
        recorded.life.enter(RecordingSubscriptionState.CLOSED, "none of its recordings is left")
        return 1

    def _on_image(self, recorded: RecordingSubscription, image: Image) -> int:
        if recorded.life.state is RecordingSubscriptionState.STOPPING:
            return 1
        if recorded.life.state is RecordingSubscriptionState.WAITING:
            recorded.life.enter(RecordingSubscriptionState.RECORDING, "an image came")
        log = self._context.log
        try:
            if recorded.declared_name is not None:
                self._go_on(recorded, image)
            elif recorded.extended_id is None:
                self._begin(recorded, image)
            else:
                self._extend(recorded, image, recorded.extended_id)
        except RequestError as refusal:
            log.warning("a publisher cannot be recorded", str(refusal))
            recorded.session.send_error(recorded.correlation_id, refusal.code, str(refusal))
            if recorded.is_auto_stop:
                self._stop(recorded, str(refusal))
        except Exception as failure:
            code = ErrorCode.STORAGE_SPACE if is_out_of_space(failure) else ErrorCode.GENERIC
            which = f"session_id={image.session_id} of {recorded.original_channel}"
            log.error(f"cannot record a publisher: {failure}", failure, which)
            recorded.session.send_error(recorded.correlation_id, code, f"cannot record {which}: {failure}")
        return 1

    def _begin(self, recorded: RecordingSubscription, image: Image) -> None:
        context = self._context
        descriptor = RecordingDescriptor(
            control_session_id=0,
            correlation_id=0,
            recording_id=NULL_VALUE,
            start_timestamp=context.clock.epoch_ms(),
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
        defect = descriptor.defect()
        if defect is not None:
            text = f"cannot record session_id={image.session_id} of {recorded.original_channel}: {defect}"
            raise RequestError(ErrorCode.GENERIC, text)
        descriptor = descriptor.replace(recording_id=context.catalog.next_recording_id)
        self._add_session(
            recorded, image, descriptor, RecordingSignal.START, lambda: context.stored.add(descriptor)
        )

    def _go_on(self, recorded: RecordingSubscription, image: Image) -> None:
        """Record a publisher of a named stream: in its recording, if it goes on where that stopped."""
        session_channel = ChannelUri(recorded.original_channel).with_parameters(session_id=image.session_id)
        if recording_key(session_channel, recorded.stream_id) in self._by_key:
            return  # A client's request, made before the declaration, records it.
        former = self._context.stored.latest(recorded.stream_id, image.session_id)
        before = None if former is None else self._active.get(former.recording_id)
        if before is not None and before.session.image.is_closed:
            self._arrived.append((recorded, image))  # The catalog is about to have its end.
            return
        if (
            former is None
            or former.is_active
            or not StreamAddress.of(recorded.original_channel, recorded.stream_id).has(former)
            or (image.initial_term_id, image.term_length, image.mtu_length)
            != (former.initial_term_id, former.term_buffer_length, former.mtu_length)
            or not former.start_position <= image.join_position <= former.stop_position
            or self._context.stored.has_deletion(former.recording_id)
        ):
            self._begin(recorded, image)
            return
        # Of an archive that was killed, the driver may know less than is on the disk: that is not recorded twice.
        image.bounded_poll(_drop, former.stop_position, _DROPPED_MAX)
        if image.position != former.stop_position:
            self._arrived.append((recorded, image))
            return
        self._add_session(
            recorded,
            image,
            former,
            RecordingSignal.EXTEND,
            lambda: self._context.stored.extended(
                former.recording_id, NULL_VALUE, NULL_VALUE, image.session_id
            ),
        )

    def _extend(self, recorded: RecordingSubscription, image: Image, recording_id: int) -> None:
        descriptor = self._context.catalog.find(recording_id)
        if descriptor is None:
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, f"unknown recording id: {recording_id}")
        self._check_free(recording_id)
        expected = (
            ("joinPosition", image.join_position, "stopPosition", descriptor.stop_position),
            ("initialTermId", image.initial_term_id, "initialTermId", descriptor.initial_term_id),
            ("termBufferLength", image.term_length, "termBufferLength", descriptor.term_buffer_length),
            ("mtuLength", image.mtu_length, "mtuLength", descriptor.mtu_length),
        )
        for name, found, recorded_name, wanted in expected:
            if found != wanted:
                text = f"cannot extend recording {recording_id} image.{name}={found} != rec.{recorded_name}={wanted}"
                raise RequestError(ErrorCode.INVALID_EXTENSION, text)
        control_session_id = recorded.session.session_id
        self._add_session(
            recorded,
            image,
            descriptor,
            RecordingSignal.EXTEND,
            lambda: self._context.stored.extended(
                recording_id, control_session_id, recorded.correlation_id, image.session_id
            ),
        )

    def _request_counter(
        self, recorded: RecordingSubscription, image: Image, descriptor: RecordingDescriptor
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
        recorded: RecordingSubscription,
        image: Image,
        descriptor: RecordingDescriptor,
        first_signal: RecordingSignal,
        note_start: Callable[[], object],
    ) -> None:
        """Begin to record an image. All checks come before the changes: the counter, then the catalog."""
        context, recording_id = self._context, descriptor.recording_id
        position = image.position
        writer = SegmentWriter(
            context.storage,
            recording_id,
            descriptor.geometry,
            position,
            sync_level=max(context.config.file_sync_level, least_sync_level(recorded.original_channel)),
            forces_end=has_sound_end(recorded.original_channel),
            checksum=context.record_checksum,
            on_note=context.log.warning,
        )
        counter = self._request_counter(recorded, image, descriptor)
        try:
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
            note_start()
        except BaseException:
            counter.cancel()
            raise
        self._active[recording_id] = Active(session, recorded, first_signal)
        self._recorder.take(session)
        recorded.recording_ids.add(recording_id)
        session.life.begin(
            context.events,
            f"{first_signal.name} at position={position}",
            recording_id,
            stream_id=recorded.stream_id,
            session_id=image.session_id,
            detail=recorded.original_channel,
        )
        context.counters.recording_sessions.get_and_add(1)
        context.log.info(
            f"recording_id={recording_id} {first_signal.name} at position={position}: session_id="
            f"{image.session_id} stream_id={recorded.stream_id} of {recorded.original_channel}"
        )

    def _note_stop(self, active: Active) -> bool:
        """Put a recording's end into the catalog; until that succeeds, the recording has not ended for clients."""
        session, context = active.session, self._context
        try:
            context.stored.stopped(
                session.recording_id, session.position, context.clock.epoch_ms(), session.end_reason
            )
        except Exception as failure:
            active.next_attempt_ns = context.clock.monotonic_ns() + _STOP_RETRY_NS
            text = f"recording_id={session.recording_id} cannot be noted as stopped: {failure}; the archive tries again"
            context.log.error(text)
            return False
        return True

    def _finish(self, active: Active) -> None:
        """Report the end of a recording, which the catalog has."""
        context, session, recorded = self._context, active.session, active.recorded
        recording_id = session.recording_id
        del self._active[recording_id]
        recorded.recording_ids.discard(recording_id)
        context.counters.recording_sessions.get_and_add(-1)
        failure = session.failure
        if failure is not None:
            context.log.failure(failure)
            recorded.session.send_error(recorded.correlation_id, failure.code, failure.text)
        elif session.is_cut_off:
            which = (
                f"recording_id={recording_id} at position={session.position}, of {recorded.original_channel}"
            )
            context.log.warning("a recording stopped before the end of its stream: its image was lost", which)
        context.log.info(f"recording_id={recording_id} STOP at position={session.position}")
        self._signal(active, session.position, RecordingSignal.STOP)
        session.close_counter()
        if recorded.is_auto_stop:
            self._stop(recorded, "its recording ended, and it stops with it")

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
        for active in self._active.values():
            try:
                active.session.close()
            except OSError as failure:
                text = f"recording_id={active.session.recording_id}: its file cannot be closed: {failure}"
                self._context.log.error(text)
            active.next_attempt_ns = 0
            self._note_stop(active)
        self._active.clear()
