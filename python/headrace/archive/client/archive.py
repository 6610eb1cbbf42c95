"""The client of an archive: records, finds and replays streams."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from headrace._exceptions import HeadraceError
from headrace.archive.client.replay import Replay
from headrace.archive.client.session import ArchiveSession, refusal_of
from headrace.archive.protocol.codes import Response, SourceLocation
from headrace.archive.protocol.descriptor import RecordingDescriptor
from headrace.channel import ChannelUri
from headrace.positions import NULL_VALUE, signed_32

if TYPE_CHECKING:
    from headrace.client import ExclusivePublication, Image

__all__ = ["Archive", "extension_channel"]

_LENGTH_MAX = (1 << 63) - 1
_COUNT_MAX = (1 << 31) - 1
_REPLAY_STREAM_ID = 1020
_DESCRIPTOR_FIELDS = (
    "controlSessionId",
    "correlationId",
    "recordingId",
    "startTimestamp",
    "stopTimestamp",
    "startPosition",
    "stopPosition",
    "initialTermId",
    "segmentFileLength",
    "termBufferLength",
    "mtuLength",
    "sessionId",
    "streamId",
    "strippedChannel",
    "originalChannel",
    "sourceIdentity",
)


class Archive(ArchiveSession):
    """A session with an archive, made with :meth:`connect`. Works with archives of Aeron as well.

    Thread-safe: one request at a time. A context manager that closes the session; recordings and replays go on
    without it.
    """

    # --- recording -------------------------------------------------------------------------------------------------

    def start_recording(
        self,
        channel: str,
        stream_id: int,
        *,
        location: SourceLocation = SourceLocation.LOCAL,
        auto_stop: bool = False,
    ) -> int:
        """Record every publisher of a channel and stream, each as a recording of its own.

        Args:
            channel: The channel of the publishers.
            stream_id: Which flow on the channel.
            location: ``LOCAL`` when the publishers are on the archive's driver, else ``REMOTE``.
            auto_stop: Stop recording when the first of these publishers ends.

        Returns:
            The id of the archive's subscription.
        """
        return self._call(
            "StartRecordingRequest2",
            streamId=stream_id,
            sourceLocation=int(location),
            autoStop=int(auto_stop),
            channel=channel,
        )

    def extend_recording(
        self,
        recording_id: int,
        channel: str,
        stream_id: int,
        *,
        location: SourceLocation = SourceLocation.LOCAL,
        auto_stop: bool = False,
    ) -> int:
        """Go on with a stopped recording.

        The publisher must start at its stop position, see :func:`extension_channel`.
        """
        return self._call(
            "ExtendRecordingRequest2",
            recording_id,
            recordingId=recording_id,
            streamId=stream_id,
            sourceLocation=int(location),
            autoStop=int(auto_stop),
            channel=channel,
        )

    def stop_recording(self, channel: str, stream_id: int) -> None:
        """Stop what :meth:`start_recording` began. The stop position is known a moment later."""
        self._call("StopRecordingRequest", streamId=stream_id, channel=channel)

    def stop_recording_subscription(self, subscription_id: int) -> None:
        """Stop what :meth:`start_recording` began, by the id it gave."""
        self._call("StopRecordingSubscriptionRequest", subscriptionId=subscription_id)

    def stop_recording_by_id(self, recording_id: int) -> bool:
        """Stop one recording; false when it was not active."""
        return bool(self._call("StopRecordingByIdentityRequest", recording_id, recordingId=recording_id))

    def add_recorded_publication(self, channel: str, stream_id: int) -> ExclusivePublication:
        """Add an exclusive publication that the archive records from its first byte.

        Blocks without the GIL until its recording has begun: then the archive lists it, and it has a position counter.
        The recording stops when the publication closes.

        Args:
            channel: The channel of the publication.
            stream_id: Which flow on the channel.

        Raises:
            ArchiveError: The archive refused, or could not begin the recording.
            ArchiveTimeoutError: The recording did not begin within the session's ``message_timeout_s``.
        """
        publication = self._client.add_exclusive_publication(channel, stream_id)
        try:
            recorded = ChannelUri(channel).with_parameters(session_id=publication.session_id)
            self._record_until_end(recorded, stream_id)
        except BaseException:
            publication.close()
            raise
        return publication

    def _record_until_end(self, channel: str, stream_id: int) -> None:
        fields = {
            "streamId": stream_id,
            "sourceLocation": int(SourceLocation.LOCAL),
            "autoStop": 1,
            "channel": channel,
        }
        with self._lock:
            correlation_id = self._send("StartRecordingRequest2", fields)
            subscription_id = self._await(correlation_id, None).relevantId
            try:
                self._await_start(correlation_id)
            except BaseException:
                with contextlib.suppress(HeadraceError):
                    self.stop_recording_subscription(subscription_id)
                raise

    # --- replay ----------------------------------------------------------------------------------------------------

    def start_replay(
        self,
        recording_id: int,
        channel: str,
        stream_id: int,
        *,
        position: int | None = None,
        length: int | None = None,
        limit_counter_id: int | None = None,
        file_io_max_length: int = NULL_VALUE,
    ) -> int:
        """Replay to a channel that a subscription of any program reads.

        Args:
            recording_id: Which recording.
            channel: Where to.
            stream_id: Which flow on the channel.
            position: Where to start; ``None`` for the beginning.
            length: Bytes to replay; ``None`` for everything, following a recording that is still active.
            limit_counter_id: A counter whose value the replay may not pass: what ends after it waits until it moves.
            file_io_max_length: Most bytes the archive reads at once.

        Returns:
            The replay's id; its lowest 32 bits are the session id of the replayed stream.
        """
        return self._start_replay(
            recording_id, channel, stream_id, position, length, limit_counter_id, file_io_max_length
        )[0]

    def _start_replay(
        self,
        recording_id: int,
        channel: str,
        stream_id: int,
        position: int | None,
        length: int | None,
        limit_counter_id: int | None,
        file_io_max_length: int = NULL_VALUE,
    ) -> tuple[int, int]:
        fields: dict[str, Any] = {
            "recordingId": recording_id,
            "position": NULL_VALUE if position is None else position,
            "length": _LENGTH_MAX if length is None else length,
            "replayStreamId": stream_id,
            "fileIoMaxLength": file_io_max_length,
            "replayToken": NULL_VALUE,
            "replayChannel": channel,
        }
        name = "ReplayRequest"
        if limit_counter_id is not None:
            name, fields["limitCounterId"] = "BoundedReplayRequest", limit_counter_id
        with self._lock:
            correlation_id = self._send(name, fields)
            replay_id: int = self._await(correlation_id, recording_id).relevantId
            return replay_id, correlation_id

    def replay(
        self,
        recording_id: int,
        *,
        position: int | None = None,
        length: int | None = None,
        channel: str = "aeron:ipc",
        stream_id: int = _REPLAY_STREAM_ID,
        limit_counter_id: int | None = None,
    ) -> Replay:
        """Replay to this program: an iterator of :class:`headrace.Message`.

        ::

            with archive.replay(recording_id) as replay:
                for message in replay:
                    print(message.position, message.payload)

        Args:
            recording_id: Which recording.
            position: Where to start; ``None`` for the beginning.
            length: Bytes to replay; ``None`` for everything, following a recording that is still active.
            channel: Channel on which the archive sends the messages: ``aeron:ipc`` from one on the same driver, else
                ``aeron:udp?endpoint=host:port`` with an address of this machine; port 0 lets the system choose one.
            stream_id: Which flow on the channel.
            limit_counter_id: A counter whose value the replay may not pass: what ends after it waits until it moves.
                The replay ends in order when the counter is closed.
        """
        start = position, length, limit_counter_id
        # Told of and not looked for: a reader that takes its time over the last message may find its image gone.
        images: list[Image] = []
        if ChannelUri(channel).is_port_open:
            # The port is known only after the subscription is bound to it, so the session id is chosen before.
            session_id = self._client.next_available_session_id(stream_id)
            channel = ChannelUri(channel).with_parameters(session_id=session_id)
            subscription = self._client.add_subscription(channel, stream_id, on_available_image=images.append)
            try:
                resolved = self._resolved(subscription, channel)
                replay_id, correlation_id = self._start_replay(recording_id, resolved, stream_id, *start)
            except BaseException:
                subscription.close()
                raise
        else:
            replay_id, correlation_id = self._start_replay(recording_id, channel, stream_id, *start)
            session_channel = ChannelUri(channel).with_parameters(session_id=signed_32(replay_id))
            try:
                subscription = self._client.add_subscription(
                    session_channel, stream_id, on_available_image=images.append
                )
            except BaseException:
                self.stop_replay(replay_id)
                raise
        return Replay(self, recording_id, replay_id, correlation_id, subscription, images, self._timeout_s)

    def stop_replay(self, replay_id: int) -> None:
        """Stop one replay; one that has ended is no error."""
        self._call("StopReplayRequest", replaySessionId=replay_id)

    def stop_all_replays(self, recording_id: int | None = None) -> None:
        """Stop all replays of a recording; without an id, all replays of the archive."""
        self._call("StopAllReplaysRequest", recordingId=NULL_VALUE if recording_id is None else recording_id)

    # --- queries ---------------------------------------------------------------------------------------------------

    def list_recordings(
        self,
        from_recording_id: int = 0,
        count: int = _COUNT_MAX,
        *,
        channel: str | None = None,
        stream_id: int | None = None,
    ) -> list[RecordingDescriptor]:
        """Recordings from an id on.

        Args:
            from_recording_id: The first id.
            count: Most to give.
            channel: Only those whose channel contains this text.
            stream_id: Only those of this stream.
        """
        if count <= 0:
            return []
        if channel is None and stream_id is None:
            return self._list(
                "ListRecordingsRequest", count, fromRecordingId=from_recording_id, recordCount=count
            )
        if stream_id is None:
            found = self.list_recordings(from_recording_id)
            return [one for one in found if (channel or "") in one.original_channel][:count]
        return self._list(
            "ListRecordingsForUriRequest",
            count,
            fromRecordingId=from_recording_id,
            recordCount=count,
            streamId=stream_id,
            channel=channel or "",
        )

    def find_recording(self, recording_id: int) -> RecordingDescriptor | None:
        """One recording; ``None`` when it is unknown."""
        found = self._list("ListRecordingRequest", 1, recordingId=recording_id)
        return found[0] if found else None

    def _list(self, name: str, count: int, **fields: Any) -> list[RecordingDescriptor]:
        found: list[RecordingDescriptor] = []
        with self._lock:
            for message in self._messages(self._send(name, fields)):
                if message.name == "RecordingDescriptor":
                    found.append(
                        RecordingDescriptor(*(getattr(message, field) for field in _DESCRIPTOR_FIELDS))
                    )
                    if len(found) == count:
                        break
                elif message.code == Response.RECORDING_UNKNOWN:
                    break
                else:
                    raise refusal_of(message, None)
        return found

    def list_recording_subscriptions(
        self, channel: str = "", stream_id: int | None = None
    ) -> list[tuple[int, int, str]]:
        """What is being recorded now, as (subscription id, stream id, channel)."""
        fields = {
            "pseudoIndex": 0,
            "subscriptionCount": _COUNT_MAX,
            "applyStreamId": int(stream_id is not None),
            "streamId": stream_id or 0,
            "channel": channel,
        }
        found = []
        with self._lock:
            for message in self._messages(self._send("ListRecordingSubscriptionsRequest", fields)):
                if message.name != "RecordingSubscriptionDescriptor":
                    if message.code != Response.SUBSCRIPTION_UNKNOWN:
                        raise refusal_of(message, None)
                    break
                found.append((message.subscriptionId, message.streamId, message.strippedChannel))
        return found

    def find_last_matching_recording(
        self, channel: str, stream_id: int, session_id: int, *, min_recording_id: int = 0
    ) -> int | None:
        """The id of the latest recording of a publisher; ``None`` when the archive has none."""
        found = self._call(
            "FindLastMatchingRecordingRequest",
            minRecordingId=min_recording_id,
            sessionId=session_id,
            streamId=stream_id,
            channel=channel,
        )
        return None if found == NULL_VALUE else found

    def start_position(self, recording_id: int) -> int:
        """Where a recording begins."""
        return self._call("StartPositionRequest", recording_id, recordingId=recording_id)

    def stop_position(self, recording_id: int) -> int | None:
        """Where a recording ended; ``None`` while it is active."""
        return _position(self._call("StopPositionRequest", recording_id, recordingId=recording_id))

    def recording_position(self, recording_id: int) -> int | None:
        """How far an active recording has come; ``None`` when it is not active."""
        return _position(self._call("RecordingPositionRequest", recording_id, recordingId=recording_id))

    def max_recorded_position(self, recording_id: int) -> int:
        """How far a recording has come, active or not."""
        return self._call("MaxRecordedPositionRequest", recording_id, recordingId=recording_id)

    # --- storage ---------------------------------------------------------------------------------------------------

    def truncate_recording(self, recording_id: int, position: int) -> int:
        """Delete everything recorded after a position from a stopped recording. This cannot be undone.

        Args:
            recording_id: Which recording. Its replays are stopped.
            position: The new stop position; a frame must begin or end there.

        Returns:
            The number of segment files that the archive deletes.
        """
        return self._call(
            "TruncateRecordingRequest", recording_id, recordingId=recording_id, position=position
        )

    def purge_recording(self, recording_id: int) -> int:
        """Delete a whole recording, which must be stopped. This cannot be undone.

        Returns:
            The number of files that the archive deletes.
        """
        return self._call("PurgeRecordingRequest", recording_id, recordingId=recording_id)

    def update_channel(self, recording_id: int, channel: str) -> None:
        """Replace the channel in a recording's description."""
        self._call("UpdateChannelRequest", recording_id, recordingId=recording_id, channel=channel)


def extension_channel(channel: str, descriptor: RecordingDescriptor) -> str:
    """The channel for a publication that goes on where a recording stopped."""
    geometry, position = descriptor.geometry, descriptor.stop_position
    return ChannelUri(channel).with_parameters(
        mtu=descriptor.mtu_length,
        term_length=descriptor.term_buffer_length,
        init_term_id=descriptor.initial_term_id,
        term_id=geometry.term_id(position),
        term_offset=geometry.term_offset(position),
    )


def _position(value: int) -> int | None:
    return None if value == NULL_VALUE else value
