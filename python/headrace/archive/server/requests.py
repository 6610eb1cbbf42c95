"""What each request of a control session does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace._exceptions import ConfigError
from headrace.archive.files.storage_space import is_out_of_space
from headrace.archive.protocol.codes import ErrorCode, Response
from headrace.archive.server.context import Context
from headrace.archive.server.control_session import ControlSession
from headrace.archive.server.errors import RequestError
from headrace.archive.server.listings import RecordingListing, SubscriptionListing, encode_descriptor
from headrace.channel import ChannelUri
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from headrace.archive.files.catalog import CatalogEntry
    from headrace.archive.protocol.descriptor import RecordingDescriptor
    from headrace.archive.protocol.messages import Message
    from headrace.archive.server.deletions import Deletions
    from headrace.archive.server.recordings import Recordings
    from headrace.archive.server.replays import Replays

__all__ = ["Requests"]

_NOT_BUILT = {
    "ReplicateRequest": "replication",
    "ReplicateRequest2": "replication",
    "TaggedReplicateRequest": "replication",
    "DetachSegmentsRequest": "detaching segments",
    "DeleteDetachedSegmentsRequest": "deleting detached segments",
    "PurgeSegmentsRequest": "purging segments",
    "AttachSegmentsRequest": "attaching segments",
    "MigrateSegmentsRequest": "migrating segments",
    "ReplayTokenRequest": "replay through a response channel",
}
_LIMITS = (ErrorCode.MAX_RECORDINGS, ErrorCode.MAX_REPLAYS, ErrorCode.STORAGE_SPACE)


class Requests:
    """Carries out requests and answers them, each with one terminal answer."""

    def __init__(
        self, context: Context, recordings: Recordings, replays: Replays, deletions: Deletions
    ) -> None:
        self._context = context
        self._catalog = context.catalog
        self._recordings = recordings
        self._replays = replays
        self._deletions = deletions
        self._handlers: dict[str, Callable[[ControlSession, Message], None]] = {
            "KeepAliveRequest": lambda session, request: None,
            "StartRecordingRequest": self._start_recording,
            "StartRecordingRequest2": self._start_recording,
            "ExtendRecordingRequest": self._extend_recording,
            "ExtendRecordingRequest2": self._extend_recording,
            "StopRecordingRequest": self._stop_recording,
            "StopRecordingSubscriptionRequest": self._stop_subscription,
            "StopRecordingByIdentityRequest": self._stop_by_identity,
            "ReplayRequest": lambda session, request: self._replays.start(session, request, None),
            "BoundedReplayRequest": lambda session, request: self._replays.start(
                session, request, request.limitCounterId
            ),
            "StopReplayRequest": self._stop_replay,
            "StopAllReplaysRequest": self._stop_all_replays,
            "ListRecordingsRequest": self._list_recordings,
            "ListRecordingsForUriRequest": self._list_recordings_for_uri,
            "ListRecordingRequest": self._list_recording,
            "ListRecordingSubscriptionsRequest": self._list_subscriptions,
            "RecordingPositionRequest": self._recording_position,
            "StopPositionRequest": self._stop_position,
            "StartPositionRequest": self._start_position,
            "MaxRecordedPositionRequest": self._max_recorded_position,
            "FindLastMatchingRecordingRequest": self._find_last,
            "ArchiveIdRequest": self._archive_id,
            "TruncateRecordingRequest": self._truncate,
            "PurgeRecordingRequest": self._purge,
            "UpdateChannelRequest": self._update_channel,
            "StopReplicationRequest": self._stop_replication,
        }

    def handle(self, session: ControlSession, request: Message) -> None:
        """Do what is asked and answer."""
        correlation_id = request.correlationId
        handler = self._handlers.get(request.name)
        try:
            if handler is not None:
                handler(session, request)
            elif request.name in _NOT_BUILT:
                text = f"{_NOT_BUILT[request.name]} is not built in this archive"
                raise RequestError(ErrorCode.GENERIC, text)
        except RequestError as refusal:
            self._note(request, refusal)
            session.send_error(correlation_id, refusal.code, str(refusal))
        except Exception as failure:
            self._context.log.error(f"{request.name}: {failure!r}", failure)
            code = ErrorCode.STORAGE_SPACE if is_out_of_space(failure) else ErrorCode.GENERIC
            session.send_error(correlation_id, code, str(failure) or repr(failure))

    def _note(self, request: Message, refusal: RequestError) -> None:
        """A limit concerns who runs the archive; any other refusal is for the client alone, which is told."""
        text = f"{request.name} refused"
        if refusal.code in _LIMITS:
            self._context.log.warning(f"{text}: {refusal.code.name}", str(refusal))
        else:
            self._context.log.info(f"{text}: {refusal}")

    # --- recording -------------------------------------------------------------------------------------------------

    def _start_recording(self, session: ControlSession, request: Message) -> None:
        self._recordings.start(
            session,
            request.correlationId,
            request.channel,
            request.streamId,
            request.sourceLocation,
            is_auto_stop=bool(request.get("autoStop", 0)),
        )

    def _extend_recording(self, session: ControlSession, request: Message) -> None:
        self._recordings.start(
            session,
            request.correlationId,
            request.channel,
            request.streamId,
            request.sourceLocation,
            is_auto_stop=bool(request.get("autoStop", 0)),
            extended_id=request.recordingId,
        )

    def _stop_recording(self, session: ControlSession, request: Message) -> None:
        self._recordings.stop_channel(request.channel, request.streamId)
        session.send_ok(request.correlationId)

    def _stop_subscription(self, session: ControlSession, request: Message) -> None:
        self._recordings.stop_subscription(request.subscriptionId)
        session.send_ok(request.correlationId)

    def _stop_by_identity(self, session: ControlSession, request: Message) -> None:
        was_there = self._recordings.stop_recording(request.recordingId)
        session.send_ok(request.correlationId, int(was_there))

    # --- replay ----------------------------------------------------------------------------------------------------

    def _stop_replay(self, session: ControlSession, request: Message) -> None:
        self._replays.stop(request.replaySessionId, session)
        session.send_ok(request.correlationId)

    def _stop_all_replays(self, session: ControlSession, request: Message) -> None:
        self._replays.stop_all(request.recordingId, session)
        session.send_ok(request.correlationId)

    # --- queries ---------------------------------------------------------------------------------------------------

    def _list_recordings(self, session: ControlSession, request: Message) -> None:
        self._begin_listing(session, request, lambda entry: True)

    def _list_recordings_for_uri(self, session: ControlSession, request: Message) -> None:
        stream_id, channel = request.streamId, request.channel

        def is_wanted(entry: CatalogEntry) -> bool:
            descriptor = entry.descriptor
            return descriptor.stream_id == stream_id and channel in descriptor.original_channel

        self._begin_listing(session, request, is_wanted)

    def _begin_listing(
        self, session: ControlSession, request: Message, is_wanted: Callable[[CatalogEntry], bool]
    ) -> None:
        self._check_listing(session)
        count, start = request.recordCount, request.fromRecordingId
        if count <= 0:
            session.send_unknown(request.correlationId, start, Response.RECORDING_UNKNOWN)
            return
        session.listing = RecordingListing(self._catalog, request.correlationId, start, count, is_wanted)

    @staticmethod
    def _check_listing(session: ControlSession) -> None:
        if session.listing is not None:
            raise RequestError(ErrorCode.ACTIVE_LISTING, "active listing already in progress")

    def _list_recording(self, session: ControlSession, request: Message) -> None:
        self._check_listing(session)
        entry = self._catalog.find_entry(request.recordingId)
        if entry is None or not entry.is_valid:
            session.send_unknown(request.correlationId, request.recordingId, Response.RECORDING_UNKNOWN)
            return
        message = encode_descriptor(session.session_id, request.correlationId, entry)
        if not session.try_send(message):
            session.listing = RecordingListing(
                self._catalog, request.correlationId, request.recordingId, 1, lambda _: True
            )

    def _list_subscriptions(self, session: ControlSession, request: Message) -> None:
        self._check_listing(session)
        everything, start = self._recordings.subscriptions(), request.pseudoIndex
        if not 0 <= start < len(everything) or request.subscriptionCount <= 0:
            session.send_unknown(request.correlationId, 0, Response.SUBSCRIPTION_UNKNOWN)
            return
        found = [
            one
            for one in everything[start:]
            if request.channel in one[2] and (not request.applyStreamId or one[1] == request.streamId)
        ]
        session.listing = SubscriptionListing(request.correlationId, found, request.subscriptionCount)

    def _known(self, recording_id: int) -> RecordingDescriptor:
        descriptor = self._catalog.find(recording_id)
        if descriptor is None:
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, f"unknown recording id: {recording_id}")
        return descriptor

    def _position(self, recording_id: int) -> int:
        active = self._recordings.active(recording_id)
        return active.position if active is not None else NULL_VALUE

    def _recording_position(self, session: ControlSession, request: Message) -> None:
        self._known(request.recordingId)
        session.send_ok(request.correlationId, self._position(request.recordingId))

    def _stop_position(self, session: ControlSession, request: Message) -> None:
        session.send_ok(request.correlationId, self._known(request.recordingId).stop_position)

    def _start_position(self, session: ControlSession, request: Message) -> None:
        session.send_ok(request.correlationId, self._known(request.recordingId).start_position)

    def _max_recorded_position(self, session: ControlSession, request: Message) -> None:
        stop_position = self._known(request.recordingId).stop_position
        position = self._position(request.recordingId)
        session.send_ok(request.correlationId, stop_position if position == NULL_VALUE else position)

    def _find_last(self, session: ControlSession, request: Message) -> None:
        if request.minRecordingId < 0:
            text = f"minRecordingId={request.minRecordingId} is below 0"
            raise RequestError(ErrorCode.UNKNOWN_RECORDING, text)
        found = NULL_VALUE
        for entry in self._catalog.valid_from(request.minRecordingId):
            descriptor = entry.descriptor
            is_same = (descriptor.session_id, descriptor.stream_id) == (request.sessionId, request.streamId)
            if is_same and request.channel in descriptor.original_channel:
                found = entry.recording_id
        session.send_ok(request.correlationId, found)

    def _archive_id(self, session: ControlSession, request: Message) -> None:
        session.send_ok(request.correlationId, self._context.archive_id)

    # --- storage ---------------------------------------------------------------------------------------------------

    def _truncate(self, session: ControlSession, request: Message) -> None:
        count = self._deletions.truncate(
            session, request.correlationId, request.recordingId, request.position
        )
        session.send_ok(request.correlationId, count)

    def _purge(self, session: ControlSession, request: Message) -> None:
        count = self._deletions.purge(session, request.correlationId, request.recordingId)
        session.send_ok(request.correlationId, count)

    def _update_channel(self, session: ControlSession, request: Message) -> None:
        self._check_listing(session)
        if self._catalog.find(request.recordingId) is None:
            session.send_unknown(request.correlationId, request.recordingId, Response.RECORDING_UNKNOWN)
            return
        try:
            stripped = ChannelUri(request.channel).stripped()
        except ConfigError as wrong:
            raise RequestError(ErrorCode.GENERIC, str(wrong)) from None
        self._catalog.replace_channel(request.recordingId, request.channel, stripped)
        session.send_ok(request.correlationId)

    def _stop_replication(self, session: ControlSession, request: Message) -> None:
        text = f"unknown replication id: {request.replicationId}; replication is not built in this archive"
        raise RequestError(ErrorCode.UNKNOWN_REPLICATION, text)
