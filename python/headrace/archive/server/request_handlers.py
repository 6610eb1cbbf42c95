"""Carries out the requests of control sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from headrace._agent.storage_space import is_out_of_space
from headrace._base.exceptions import ConfigError
from headrace.archive.protocol.codes import ErrorCode, Response
from headrace.archive.protocol.messages import SCHEMA_ID, template_id_of
from headrace.archive.protocol.requests import (
    ArchiveIdRequest,
    AttachSegmentsRequest,
    BoundedReplayRequest,
    DeleteDetachedSegmentsRequest,
    DetachSegmentsRequest,
    ExtendRecordingRequest,
    ExtendRecordingRequest2,
    FindLastMatchingRecordingRequest,
    KeepAliveRequest,
    ListRecordingRequest,
    ListRecordingsForUriRequest,
    ListRecordingsRequest,
    ListRecordingSubscriptionsRequest,
    MaxRecordedPositionRequest,
    MigrateSegmentsRequest,
    PurgeRecordingRequest,
    PurgeSegmentsRequest,
    RecordingPositionRequest,
    ReplayRequest,
    ReplayTokenRequest,
    ReplicateRequest,
    ReplicateRequest2,
    Request,
    StartPositionRequest,
    StartRecordingRequest,
    StartRecordingRequest2,
    StopAllReplaysRequest,
    StopPositionRequest,
    StopRecordingByIdentityRequest,
    StopRecordingRequest,
    StopRecordingSubscriptionRequest,
    StopReplayRequest,
    StopReplicationRequest,
    TaggedReplicateRequest,
    TruncateRecordingRequest,
    UpdateChannelRequest,
)
from headrace.archive.protocol.retention import Retention
from headrace.archive.server.context import Context
from headrace.archive.server.control_session import ControlSession
from headrace.archive.server.deletions import ReplyTo
from headrace.archive.server.errors import RequestError
from headrace.archive.server.listings import (
    RecordingListing,
    SubscriptionListing,
    encode_descriptor,
)
from headrace.channel import ChannelUri
from headrace.positions import NULL_VALUE
from headrace.security.authorisation import is_allowed

if TYPE_CHECKING:
    from headrace.archive.files.catalog import CatalogEntry
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.archive.server.deletions import Deletions
    from headrace.archive.server.recordings import Recordings
    from headrace.archive.server.replay_tokens import ReplayTokens
    from headrace.archive.server.replays import Replays
    from headrace.archive.server.replications import Replications
    from headrace.archive.server.segments import Segments
    from headrace.archive.server.stream_requests import StreamRequests

__all__ = ["Requests"]

R = TypeVar("R", bound=Request)

# Refusals that concern who runs the archive: limits that are reached, and clients that ask for what is not for them.
_NOTED = (
    ErrorCode.MAX_RECORDINGS,
    ErrorCode.MAX_REPLAYS,
    ErrorCode.STORAGE_SPACE,
    ErrorCode.UNAUTHORISED_ACTION,
)


class Requests:
    """Carries out requests, and answers each with one terminal answer."""

    def __init__(
        self,
        context: Context,
        recordings: Recordings,
        replays: Replays,
        deletions: Deletions,
        segments: Segments,
        replications: Replications,
        of_streams: StreamRequests,
    ) -> None:
        self._context = context
        self._catalog = context.catalog
        self._recordings = recordings
        self._replays = replays
        self._deletions = deletions
        self._segments = segments
        self._replications = replications
        self._handlers: dict[type[Request], Callable[[ControlSession, Any], None]] = {}
        self._on(KeepAliveRequest, lambda session, request: None)
        self._on(ReplayRequest, self._replays.start)
        self._on(BoundedReplayRequest, self._replays.start)
        self._on(StartRecordingRequest, self._recordings.start)
        self._on(StartRecordingRequest2, self._recordings.start)
        self._on(ExtendRecordingRequest, self._recordings.start)
        self._on(ExtendRecordingRequest2, self._recordings.start)
        self._on(StopRecordingRequest, self._stop_recording)
        self._on(StopRecordingSubscriptionRequest, self._stop_subscription)
        self._on(StopRecordingByIdentityRequest, self._stop_by_identity)
        self._on(ReplayTokenRequest, self._replay_token)
        self._on(StopReplayRequest, self._stop_replay)
        self._on(StopAllReplaysRequest, self._stop_all_replays)
        self._on(ListRecordingsRequest, self._list_recordings)
        self._on(ListRecordingsForUriRequest, self._list_recordings_for_uri)
        self._on(ListRecordingRequest, self._list_recording)
        self._on(ListRecordingSubscriptionsRequest, self._list_subscriptions)
        self._on(RecordingPositionRequest, self._recording_position)
        self._on(StopPositionRequest, self._stop_position)
        self._on(StartPositionRequest, self._start_position)
        self._on(MaxRecordedPositionRequest, self._max_recorded_position)
        self._on(FindLastMatchingRecordingRequest, self._find_last)
        self._on(ArchiveIdRequest, self._archive_id)
        self._on(TruncateRecordingRequest, self._truncate)
        self._on(PurgeRecordingRequest, self._purge)
        self._on(DetachSegmentsRequest, self._detach_segments)
        self._on(DeleteDetachedSegmentsRequest, self._delete_detached_segments)
        self._on(PurgeSegmentsRequest, self._purge_segments)
        self._on(AttachSegmentsRequest, self._attach_segments)
        self._on(MigrateSegmentsRequest, self._migrate_segments)
        self._on(UpdateChannelRequest, self._update_channel)
        self._on(ReplicateRequest, self._replications.start)
        self._on(TaggedReplicateRequest, self._replications.start)
        self._on(ReplicateRequest2, self._replications.start)
        self._on(StopReplicationRequest, self._stop_replication)
        self._handlers |= of_streams.handlers

    @property
    def tokens(self) -> ReplayTokens:
        """The tokens that prove which session asks for a replay, over any connection."""
        return self._replays.tokens

    def end_replays_of(self, session: ControlSession) -> None:
        """End the replays of a client that is no longer accepted."""
        self._replays.end_of(session)

    def _on(self, kind: type[R], handler: Callable[[ControlSession, R], None]) -> None:
        self._handlers[kind] = handler

    def handle(self, session: ControlSession, request: Request) -> None:
        """Carry out a request and answer it."""
        handler = self._handlers.get(type(request))
        try:
            self._check_authorised(session, request)
            if handler is not None:
                handler(session, request)
        except RequestError as refusal:
            self._note(request, refusal)
            session.send_error(request.correlation_id, refusal.code, str(refusal))
        except Exception as failure:
            self._context.log.error(f"{request.template}: {failure!r}", failure)
            code = ErrorCode.STORAGE_SPACE if is_out_of_space(failure) else ErrorCode.GENERIC
            session.send_error(request.correlation_id, code, str(failure) or repr(failure))

    def _check_authorised(self, session: ControlSession, request: Request) -> None:
        action_id, context = template_id_of(request), self._context
        if not is_allowed(
            context.authorisation, SCHEMA_ID, action_id, None, session.principal, context.log.error
        ):
            text = f"{request.template} (action {action_id}) is not authorised for this client"
            raise RequestError(ErrorCode.UNAUTHORISED_ACTION, text)

    def _note(self, request: Request, refusal: RequestError) -> None:
        """Log a refusal if it concerns the archive; most concern only the client, which gets them anyway."""
        text = f"{request.template} refused"
        if refusal.code in _NOTED:
            self._context.log.warning(f"{text}: {refusal.code.name}", str(refusal))
        else:
            self._context.log.info(f"{text}: {refusal}")

    # --- recording -------------------------------------------------------------------------------------------------

    def _stop_recording(self, session: ControlSession, request: StopRecordingRequest) -> None:
        self._recordings.stop_channel(request.channel, request.stream_id)
        session.send_ok(request.correlation_id)

    def _stop_subscription(self, session: ControlSession, request: StopRecordingSubscriptionRequest) -> None:
        self._recordings.stop_subscription(request.subscription_id)
        session.send_ok(request.correlation_id)

    def _stop_by_identity(self, session: ControlSession, request: StopRecordingByIdentityRequest) -> None:
        was_there = self._recordings.stop_recording(request.recording_id)
        session.send_ok(request.correlation_id, int(was_there))

    # --- replay ----------------------------------------------------------------------------------------------------

    def _replay_token(self, session: ControlSession, request: ReplayTokenRequest) -> None:
        session.send_ok(request.correlation_id, self.tokens.issue(session, request.recording_id))

    def _stop_replay(self, session: ControlSession, request: StopReplayRequest) -> None:
        self._replays.stop(request.replay_session_id, session)
        session.send_ok(request.correlation_id)

    def _stop_all_replays(self, session: ControlSession, request: StopAllReplaysRequest) -> None:
        self._replays.stop_all(request.recording_id, session)
        session.send_ok(request.correlation_id)

    # --- queries ---------------------------------------------------------------------------------------------------

    def _list_recordings(self, session: ControlSession, request: ListRecordingsRequest) -> None:
        self._begin_listing(session, request, lambda entry: True)

    def _list_recordings_for_uri(self, session: ControlSession, request: ListRecordingsForUriRequest) -> None:
        stream_id, channel = request.stream_id, request.channel

        def is_wanted(entry: CatalogEntry) -> bool:
            descriptor = entry.descriptor
            return descriptor.stream_id == stream_id and channel in descriptor.original_channel

        self._begin_listing(session, request, is_wanted)

    def _begin_listing(
        self,
        session: ControlSession,
        request: ListRecordingsRequest,
        is_wanted: Callable[[CatalogEntry], bool],
    ) -> None:
        self._check_listing(session)
        count, start = request.record_count, request.from_recording_id
        if count <= 0:
            session.send_unknown(request.correlation_id, start, Response.RECORDING_UNKNOWN)
            return
        session.listing = RecordingListing(self._catalog, request.correlation_id, start, count, is_wanted)

    @staticmethod
    def _check_listing(session: ControlSession) -> None:
        if session.listing is not None:
            raise RequestError(ErrorCode.ACTIVE_LISTING, "active listing already in progress")

    def _list_recording(self, session: ControlSession, request: ListRecordingRequest) -> None:
        self._check_listing(session)
        entry = self._catalog.find_entry(request.recording_id)
        if entry is None or not entry.is_valid:
            session.send_unknown(request.correlation_id, request.recording_id, Response.RECORDING_UNKNOWN)
            return
        message = encode_descriptor(session.session_id, request.correlation_id, entry)
        if not session.try_send(message):
            session.listing = RecordingListing(
                self._catalog, request.correlation_id, request.recording_id, 1, lambda _: True
            )

    def _list_subscriptions(
        self, session: ControlSession, request: ListRecordingSubscriptionsRequest
    ) -> None:
        self._check_listing(session)
        everything, start = self._recordings.subscriptions(), request.pseudo_index
        if not 0 <= start < len(everything) or request.subscription_count <= 0:
            session.send_unknown(request.correlation_id, 0, Response.SUBSCRIPTION_UNKNOWN)
            return
        found = [
            one
            for one in everything[start:]
            if request.channel in one[2] and (not request.apply_stream_id or one[1] == request.stream_id)
        ]
        session.listing = SubscriptionListing(request.correlation_id, found, request.subscription_count)

    def _known(self, recording_id: int) -> RecordingDescriptor:
        descriptor = self._catalog.find(recording_id)
        if descriptor is None:
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, f"unknown recording id: {recording_id}")
        return descriptor

    def _position(self, recording_id: int) -> int:
        active = self._recordings.active(recording_id)
        return active.position if active is not None else NULL_VALUE

    def _recording_position(self, session: ControlSession, request: RecordingPositionRequest) -> None:
        self._known(request.recording_id)
        session.send_ok(request.correlation_id, self._position(request.recording_id))

    def _stop_position(self, session: ControlSession, request: StopPositionRequest) -> None:
        session.send_ok(request.correlation_id, self._known(request.recording_id).stop_position)

    def _start_position(self, session: ControlSession, request: StartPositionRequest) -> None:
        session.send_ok(request.correlation_id, self._known(request.recording_id).start_position)

    def _max_recorded_position(self, session: ControlSession, request: MaxRecordedPositionRequest) -> None:
        stop_position = self._known(request.recording_id).stop_position
        position = self._position(request.recording_id)
        session.send_ok(request.correlation_id, stop_position if position == NULL_VALUE else position)

    def _find_last(self, session: ControlSession, request: FindLastMatchingRecordingRequest) -> None:
        if request.min_recording_id < 0:
            text = f"minRecordingId={request.min_recording_id} is below 0"
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, text)
        found = NULL_VALUE
        for entry in self._catalog.valid_from(request.min_recording_id):
            descriptor = entry.descriptor
            is_same = (descriptor.session_id, descriptor.stream_id) == (request.session_id, request.stream_id)
            if is_same and request.channel in descriptor.original_channel:
                found = entry.recording_id
        session.send_ok(request.correlation_id, found)

    def _archive_id(self, session: ControlSession, request: ArchiveIdRequest) -> None:
        session.send_ok(request.correlation_id, self._context.archive_id)

    # --- storage ---------------------------------------------------------------------------------------------------

    def _truncate(self, session: ControlSession, request: TruncateRecordingRequest) -> None:
        count = self._deletions.truncate(
            session, request.correlation_id, request.recording_id, request.position
        )
        session.send_ok(request.correlation_id, count)

    def _purge(self, session: ControlSession, request: PurgeRecordingRequest) -> None:
        reply_to = ReplyTo(session, request.correlation_id)
        count = self._deletions.purge(reply_to, request.recording_id, "a client purges it")
        session.send_ok(request.correlation_id, count)

    def _detach_segments(self, session: ControlSession, request: DetachSegmentsRequest) -> None:
        self._segments.detach(request.recording_id, request.new_start_position)
        session.send_ok(request.correlation_id)

    def _delete_detached_segments(
        self, session: ControlSession, request: DeleteDetachedSegmentsRequest
    ) -> None:
        reply_to = ReplyTo(session, request.correlation_id)
        session.send_ok(
            request.correlation_id, self._segments.delete_detached(reply_to, request.recording_id)
        )

    def _purge_segments(self, session: ControlSession, request: PurgeSegmentsRequest) -> None:
        reply_to = ReplyTo(session, request.correlation_id)
        count = self._segments.purge(reply_to, request.recording_id, request.new_start_position)
        session.send_ok(request.correlation_id, count)

    def _attach_segments(self, session: ControlSession, request: AttachSegmentsRequest) -> None:
        self._segments.attach(ReplyTo(session, request.correlation_id), request.recording_id)

    def _migrate_segments(self, session: ControlSession, request: MigrateSegmentsRequest) -> None:
        reply_to = ReplyTo(session, request.correlation_id)
        count = self._segments.migrate(reply_to, request.src_recording_id, request.dst_recording_id)
        session.send_ok(request.correlation_id, count)

    def _update_channel(self, session: ControlSession, request: UpdateChannelRequest) -> None:
        self._check_listing(session)
        if self._catalog.find(request.recording_id) is None:
            session.send_unknown(request.correlation_id, request.recording_id, Response.RECORDING_UNKNOWN)
            return
        try:
            stripped = ChannelUri(request.channel).stripped()
            Retention.of(request.channel)
        except ConfigError as wrong:
            raise RequestError(ErrorCode.GENERIC, str(wrong)) from None
        self._context.stored.replace_channel(request.recording_id, request.channel, stripped)
        session.send_ok(request.correlation_id)

    def _stop_replication(self, session: ControlSession, request: StopReplicationRequest) -> None:
        self._replications.stop(request.replication_id)
        session.send_ok(request.correlation_id)
