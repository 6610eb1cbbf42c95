"""The client of an archive: records, finds and replays streams."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from headrace._exceptions import ArchiveError, ArchiveTimeoutError, ConfigError
from headrace.archive.channels import ChannelUri
from headrace.archive.context import RecordingSignal, SourceLocation
from headrace.archive.control_session import Response
from headrace.archive.descriptor import RecordingDescriptor
from headrace.archive.errors import ErrorCode
from headrace.archive.messages import PROTOCOL_VERSION, Message, decode, encode
from headrace.archive.positions import NULL_VALUE, signed_32
from headrace.archive.replay import Replay
from headrace.client import Client

if TYPE_CHECKING:
    import os
    from types import TracebackType
    from typing import Self

    from headrace.client import ExclusivePublication, Subscription
    from headrace.driver import MediaDriver

__all__ = ["Archive", "Signal"]

_ARCHIVE_ID_SINCE = 1 << 16 | 11 << 8
_LENGTH_MAX = (1 << 63) - 1
_COUNT_MAX = (1 << 31) - 1
_LOOK_INTERVAL_S = 0.1
_REPLAY_STREAM_ID = 1020
_SIGNALS_KEPT = 4096
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


@dataclass(frozen=True, slots=True)
class Signal:
    """What became of a recording that this client asked for."""

    signal: RecordingSignal
    recording_id: int
    subscription_id: int
    position: int
    correlation_id: int


class Archive:
    """A session with an archive, made with :meth:`connect`. Works with archives of Aeron as well.

    Thread-safe: one request at a time. A context manager that closes the session; recordings and replays go on
    without it.
    """

    def __init__(
        self,
        client: Client,
        publication: ExclusivePublication,
        subscription: Subscription,
        message_timeout_s: float,
        on_signal: Callable[[Signal], object] | None,
        on_error: Callable[[ArchiveError], object] | None,
        owns_client: bool,
    ) -> None:
        self._client = client
        self._publication = publication
        self._subscription = subscription
        self._timeout_s = message_timeout_s
        self._on_signal = on_signal
        self._on_error = on_error
        self._owns_client = owns_client
        self._lock = threading.RLock()
        self._signals: deque[Signal] = deque(maxlen=_SIGNALS_KEPT)
        self._late_errors: dict[int, ArchiveError] = {}
        self._is_closed = False
        self.control_session_id = NULL_VALUE
        self.archive_id = NULL_VALUE

    @classmethod
    def connect(
        cls,
        client: Client | None = None,
        *,
        directory: str | os.PathLike[str] | None = None,
        driver: MediaDriver | None = None,
        control_channel: str = "aeron:ipc",
        control_stream_id: int = 10,
        response_channel: str = "aeron:ipc",
        response_stream_id: int = 20,
        term_buffer_length: int = 64 * 1024,
        mtu_length: int = 1408,
        message_timeout_s: float = 10.0,
        client_name: str = "",
        credentials: bytes = b"",
        on_signal: Callable[[Signal], object] | None = None,
        on_error: Callable[[ArchiveError], object] | None = None,
    ) -> Self:
        """Open a session with an archive.

        Blocks without the GIL until the archive answers.

        Args:
            client: The client to use; without it one is made and closed with the session.
            directory: The driver's directory, when no client is given.
            driver: The driver, if it runs in this process and no client is given.
            control_channel: Where the archive takes requests: ``aeron:ipc`` for one on the same driver.
            control_stream_id: Stream of the requests; 10 by the specification.
            response_channel: Where the archive answers; port 0 lets the system choose.
            response_stream_id: Stream of the answers.
            term_buffer_length: Log length of both streams where a channel does not say.
            mtu_length: Datagram length of both streams where a channel does not say.
            message_timeout_s: How long to wait for each answer.
            client_name: Shown in the archive's counters.
            credentials: For archives that ask for some.
            on_signal: Told what becomes of recordings, from inside whatever call sees it. Without it
                :meth:`signals` gives them.
            on_error: Told of errors that come after an answer, such as a recording that fails.

        Raises:
            ArchiveTimeoutError: There is no archive, or it did not answer.
            ArchiveError: The archive refused.
        """
        owns_client = client is None
        client = client or Client.connect(directory, driver=driver, client_name=client_name)
        try:
            requests, responses = (
                _with_defaults(control_channel, term_buffer_length, mtu_length),
                _with_defaults(response_channel, term_buffer_length, mtu_length),
            )
            if ChannelUri(response_channel).is_response:
                rule = "response channels are not built: give the address where the archive is to answer"
                raise ConfigError(f"response_channel={response_channel}: {rule}", "response_channel")
            session_id = client.next_available_session_id(control_stream_id)
            responses = ChannelUri(responses).with_parameters(session_id=session_id)
            requests = ChannelUri(requests).with_parameters(session_id=session_id)
            subscription = client.add_subscription(responses, response_stream_id)
            publication = client.add_exclusive_publication(requests, control_stream_id)
            archive = cls(
                client, publication, subscription, message_timeout_s, on_signal, on_error, owns_client
            )
        except BaseException:
            if owns_client:
                client.close()
            raise
        try:
            archive._handshake(responses, response_stream_id, client_name, credentials)
        except BaseException:
            archive.close()
            raise
        return archive

    def _handshake(self, responses: str, stream_id: int, client_name: str, credentials: bytes) -> None:
        deadline = time.monotonic() + self._timeout_s
        if not self._publication.wait_until_connected(self._timeout_s):
            raise ArchiveTimeoutError(f"no archive takes requests on {self._publication.channel}")
        while ":0" in responses and (resolved := self._subscription.resolved_channel) is None:
            if time.monotonic() > deadline:
                raise ArchiveTimeoutError(f"the port of {responses} is not known")
            time.sleep(0.001)
        if ":0" in responses and resolved is not None:
            responses = resolved
        correlation_id = self._client.next_correlation_id()
        name = f"name={client_name} version={version('headrace')}"
        request = encode(
            "AuthConnectRequest",
            correlationId=correlation_id,
            responseStreamId=stream_id,
            version=PROTOCOL_VERSION,
            responseChannel=responses,
            encodedCredentials=credentials,
            clientInfo=name,
        )
        self._publication.offer_blocking(request, timeout_s=self._timeout_s)
        answer = self._await(correlation_id, None)
        self.control_session_id = answer.controlSessionId
        if answer.version >= _ARCHIVE_ID_SINCE:
            self.archive_id = self._call("ArchiveIdRequest")
        keep_alive = encode(
            "KeepAliveRequest", controlSessionId=self.control_session_id, correlationId=NULL_VALUE
        )
        self._publication.offer_blocking(keep_alive, timeout_s=self._timeout_s)

    # --- sending and waiting ---------------------------------------------------------------------------------------

    def _call(self, name: str, recording_id: int | None = None, **fields: Any) -> int:
        with self._lock:
            correlation_id = self._send(name, fields)
            answer: int = self._await(correlation_id, recording_id).relevantId
            return answer

    def _send(self, name: str, fields: dict[str, Any]) -> int:
        if self._is_closed:
            raise ArchiveError("the session with the archive is closed")
        correlation_id = self._client.next_correlation_id()
        message = encode(
            name, controlSessionId=self.control_session_id, correlationId=correlation_id, **fields
        )
        self._publication.offer_blocking(message, timeout_s=self._timeout_s)
        return correlation_id

    def _await(self, correlation_id: int, recording_id: int | None) -> Message:
        """The answer to a request."""
        for message in self._messages(correlation_id):
            if message.name == "Challenge":
                text = "the archive asks for a challenge to be answered, which is not built"
                raise ArchiveError(text, ErrorCode.AUTHENTICATION_REJECTED, "AUTHENTICATION_REJECTED")
            if message.name == "ControlResponse":
                if message.code == Response.OK:
                    return message
                raise _refusal(message, recording_id)
        raise AssertionError("messages end with an exception")

    def _messages(self, correlation_id: int) -> Iterator[Message]:
        """Messages that answer a request, as they come; everything else is passed on to whom it concerns."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise ArchiveTimeoutError(
                    f"the archive did not answer within {self._timeout_s} s", correlation_id=correlation_id
                )
            received = self._subscription.receive(timeout_s=min(left_s, _LOOK_INTERVAL_S))
            if received is None:
                if self.control_session_id != NULL_VALUE and not self._subscription.is_connected:
                    raise ArchiveError("the archive is gone", correlation_id=correlation_id)
                continue
            message = decode(received.payload)
            if message is None:
                continue
            if message.get("correlationId") == correlation_id and message.name != "RecordingSignalEvent":
                yield message
                deadline = time.monotonic() + self._timeout_s
            else:
                self._pass_on(message)

    def _pass_on(self, message: Message) -> None:
        if message.get("controlSessionId") != self.control_session_id:
            return
        if message.name == "RecordingSignalEvent":
            signal = Signal(
                RecordingSignal(int(message.signal)),
                message.recordingId,
                message.subscriptionId,
                message.position,
                message.correlationId,
            )
            if self._on_signal is not None:
                self._on_signal(signal)
            else:
                self._signals.append(signal)
        elif message.name == "ControlResponse" and message.code != Response.OK:
            error = _refusal(message, None)
            self._late_errors[message.correlationId] = error
            if self._on_error is not None:
                self._on_error(error)

    def poll(self) -> int:
        """Take what the archive says unasked: signals and late errors. Never blocks.

        Returns:
            How many messages there were.
        """
        count = 0
        with self._lock:
            while (received := self._subscription.poll_message()) is not None:
                message = decode(received.payload)
                if message is not None:
                    self._pass_on(message)
                count += 1
        return count

    def signals(self) -> list[Signal]:
        """Signals that came since the last call, oldest first. Never blocks."""
        self.poll()
        with self._lock:
            found = list(self._signals)
            self._signals.clear()
        return found

    def await_signal(
        self, signal: RecordingSignal, recording_id: int | None = None, timeout_s: float = 10.0
    ) -> Signal:
        """Wait for a signal, keeping others for :meth:`signals`."""
        deadline = time.monotonic() + timeout_s
        while True:
            self.poll()
            with self._lock:
                for one in self._signals:
                    if one.signal == signal and recording_id in (None, one.recording_id):
                        self._signals.remove(one)
                        return one
            if time.monotonic() > deadline:
                raise ArchiveTimeoutError(f"no signal {signal.name} within {timeout_s} s")
            time.sleep(0.001)

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
            channel: Where from, as the publishers have it.
            stream_id: Which flow on the channel.
            location: ``LOCAL`` when the publishers are on the archive's driver, else ``REMOTE``.
            auto_stop: Stop recording when the first of them ends.

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
        """A publication that is recorded from its first byte on, if nobody publishes before it is returned to you."""
        publication = self._client.add_exclusive_publication(channel, stream_id)
        try:
            recorded = ChannelUri(channel).with_parameters(session_id=publication.session_id)
            self.start_recording(recorded, stream_id, auto_stop=True)
        except BaseException:
            publication.close()
            raise
        return publication

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
        """Replay to a channel, where somebody subscribes.

        Args:
            recording_id: Which recording.
            channel: Where to.
            stream_id: Which flow on the channel.
            position: Where to start; ``None`` for the beginning.
            length: Bytes to replay; ``None`` for everything, following a recording that is still active.
            limit_counter_id: A counter whose value the replay may not pass.
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
            return self._await(correlation_id, recording_id).relevantId, correlation_id

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
            channel: How the messages get here: ``aeron:ipc`` from an archive on the same driver, else
                ``aeron:udp?endpoint=host:port`` with an address of this machine.
            stream_id: Which flow on the channel.
            limit_counter_id: A counter whose value the replay may not pass.
        """
        replay_id, correlation_id = self._start_replay(
            recording_id, channel, stream_id, position, length, limit_counter_id
        )
        session_channel = ChannelUri(channel).with_parameters(session_id=signed_32(replay_id))
        try:
            subscription = self._client.add_subscription(session_channel, stream_id)
        except BaseException:
            self.stop_replay(replay_id)
            raise
        expected = None
        if length is not None:
            first = self.start_position(recording_id) if position is None else position
            expected = first + length
        return Replay(self, recording_id, replay_id, correlation_id, subscription, expected, self._timeout_s)

    def stop_replay(self, replay_id: int) -> None:
        """Stop one replay; one that has ended is no error."""
        self._call("StopReplayRequest", replaySessionId=replay_id)

    def stop_all_replays(self, recording_id: int | None = None) -> None:
        """Stop all replays of a recording, or all there are."""
        self._call("StopAllReplaysRequest", recordingId=NULL_VALUE if recording_id is None else recording_id)

    def late_error(self, correlation_id: int) -> ArchiveError | None:
        """The error that came after the answer to a request, if one did."""
        self.poll()
        return self._late_errors.pop(correlation_id, None)

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
                    raise _refusal(message, None)
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
                        raise _refusal(message, None)
                    break
                found.append((message.subscriptionId, message.streamId, message.strippedChannel))
        return found

    def find_last_matching_recording(
        self, channel: str, stream_id: int, session_id: int, *, min_recording_id: int = 0
    ) -> int | None:
        """The latest recording of a publisher; ``None`` when there is none."""
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
        """Cut a stopped recording at a position; gives the number of files that this deletes."""
        return self._call(
            "TruncateRecordingRequest", recording_id, recordingId=recording_id, position=position
        )

    def purge_recording(self, recording_id: int) -> int:
        """Delete a stopped recording; gives the number of files that this deletes."""
        return self._call("PurgeRecordingRequest", recording_id, recordingId=recording_id)

    def update_channel(self, recording_id: int, channel: str) -> None:
        """Replace the channel in a recording's description."""
        self._call("UpdateChannelRequest", recording_id, recordingId=recording_id, channel=channel)

    @property
    def client(self) -> Client:
        """The client in use."""
        return self._client

    @property
    def is_connected(self) -> bool:
        """True while the archive is there."""
        return not self._is_closed and self._publication.is_connected and self._subscription.is_connected

    def close(self) -> None:
        """End the session. Closing again does nothing."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        if self.control_session_id != NULL_VALUE and self._publication.is_connected:
            with contextlib.suppress(Exception):
                self._publication.offer(
                    encode("CloseSessionRequest", controlSessionId=self.control_session_id)
                )
        self._publication.close()
        self._subscription.close()
        if self._owns_client:
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = ", closed" if self._is_closed else ""
        return f"Archive(control_session_id={self.control_session_id}{closed})"


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


def _with_defaults(channel: str, term_length: int, mtu: int) -> str:
    uri = ChannelUri(channel)
    return uri.with_parameters(
        term_length=uri.get("term-length") or term_length,
        mtu=uri.get("mtu") or mtu,
        sparse=uri.get("sparse") or "true",
    )


def _position(value: int) -> int | None:
    return None if value == NULL_VALUE else value


def _refusal(message: Message, recording_id: int | None) -> ArchiveError:
    if message.code == Response.RECORDING_UNKNOWN:
        code, text = int(ErrorCode.UNKNOWN_RECORDING), f"unknown recording id: {message.relevantId}"
    else:
        code, text = message.relevantId, message.errorMessage or "refused"
    name = ErrorCode(code).name if code in ErrorCode._value2member_map_ else str(code)
    return ArchiveError(f"{text} ({name})", code, name, recording_id, message.correlationId)
