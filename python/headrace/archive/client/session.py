"""A client's session with an archive: opening it, sending requests, and sorting what the archive says."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from headrace._closing import Closing
from headrace._exceptions import ArchiveError, ArchiveTimeoutError, ConfigError
from headrace._fork import is_own
from headrace._logging import ARCHIVE
from headrace.archive.client.notices import Notices, Signal
from headrace.archive.protocol.codes import ErrorCode, RecordingSignal, Response
from headrace.archive.protocol.messages import PROTOCOL_VERSION, Message, decode, encode
from headrace.channel import ChannelUri
from headrace.client import Client
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from typing import Self

    from headrace.client import ExclusivePublication, Subscription
    from headrace.client._local_driver import LocalDriver
    from headrace.clock import Clock

__all__ = ["ArchiveSession", "Signal", "refusal_of"]

_ARCHIVE_ID_SINCE = 1 << 16 | 11 << 8
_LOOK_INTERVAL_S = 0.1
# For what no doorbell tells.
_POLL_INTERVAL_S = 0.001


class ArchiveSession(Closing):
    """What a client and an archive know of each other. See :class:`headrace.Archive`, which has the requests."""

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
        self._notices = Notices(on_signal, on_error)
        self._owns_client = owns_client
        self._lock = threading.RLock()
        self._is_closed = False
        self._pid = os.getpid()
        self.control_session_id = NULL_VALUE
        self.archive_id = NULL_VALUE

    @classmethod
    def connect(
        cls,
        client: Client | None = None,
        *,
        directory: str | os.PathLike[str] | None = None,
        driver: LocalDriver | None = None,
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
            credentials: For archives that require them.
            on_signal: Called with each signal of a recording, inside the call of this session that receives it.
                Without it :meth:`signals` gives them.
            on_error: Called with errors that come after an answer, such as a recording that fails. Without it they are
                logged as warnings of ``headrace.archive``, except those that a replay raises.

        Raises:
            ArchiveTimeoutError: No archive takes requests on the channel, or it did not answer.
            ArchiveError: The archive refused.
        """
        owns_client = client is None
        client = client or Client.connect(directory, driver=driver, client_name=client_name)
        try:
            requests = _with_defaults(control_channel, term_buffer_length, mtu_length)
            responses = _with_defaults(response_channel, term_buffer_length, mtu_length)
            _refuse_response_mode(response_channel)
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
        if not self._publication.wait_until_connected(self._timeout_s):
            raise ArchiveTimeoutError(f"no archive takes requests on {self._publication.channel}")
        responses = self._resolved(self._subscription, responses)
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
        ARCHIVE.info(
            "control session %d with archive_id=%d on %s",
            self.control_session_id,
            self.archive_id,
            self._publication.channel,
        )

    def _resolved(self, subscription: Subscription, channel: str) -> str:
        """The channel of a subscription with the port that the system chose, if it was to choose one."""
        if not ChannelUri(channel).is_port_open:
            return channel
        deadline = self.clock.deadline(self._timeout_s)
        while (resolved := subscription.resolved_channel) is None:
            if deadline.is_over:
                raise ArchiveTimeoutError(f"the port of {channel} is not known")
            self.clock.sleep(_POLL_INTERVAL_S)
        return resolved

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
                raise refusal_of(message, recording_id)
        raise AssertionError("messages end with an exception")

    def _messages(self, correlation_id: int) -> Iterator[Message]:
        """What comes for a request: answers, later errors, signals. All else is passed on to whom it concerns."""
        deadline = self.clock.deadline(self._timeout_s)
        while True:
            left_s = deadline.left_s()
            if left_s == 0:
                raise ArchiveTimeoutError(
                    f"the archive did not answer within {self._timeout_s} s", correlation_id=correlation_id
                )
            received = self._subscription.receive(
                timeout_s=_LOOK_INTERVAL_S if left_s is None else min(left_s, _LOOK_INTERVAL_S)
            )
            if received is None:
                self._check_alive(correlation_id)
                continue
            message = decode(received.payload)
            if message is None:
                continue
            is_signal = message.name == "RecordingSignalEvent"
            is_for_request = message.get("correlationId") == correlation_id
            if is_signal or not is_for_request:
                self._pass_on(message)
            if is_for_request:
                yield message
                deadline = self.clock.deadline(self._timeout_s)

    def _check_alive(self, correlation_id: int) -> None:
        """Give up waiting for what cannot come any more."""
        if self.control_session_id == NULL_VALUE:
            if not self._publication.is_connected:
                text = (
                    "the archive does not serve this client; its error log says why: `headrace errors --once "
                    "--offset 8192 --file DIRECTORY/archive-mark.dat`, with the archive's directory"
                )
                raise ArchiveError(text, correlation_id=correlation_id)
        elif not self._subscription.is_connected:
            raise ArchiveError("the archive is gone", correlation_id=correlation_id)

    def _await_start(self, correlation_id: int) -> None:
        """Wait until what a request asked to record is being recorded."""
        for message in self._messages(correlation_id):
            if message.name == "RecordingSignalEvent":
                if message.signal == RecordingSignal.START:
                    return
            elif message.name == "ControlResponse" and message.code != Response.OK:
                raise refusal_of(message, None)

    def _pass_on(self, message: Message) -> None:
        if message.get("controlSessionId") != self.control_session_id:
            return
        if message.name == "RecordingSignalEvent":
            self._notices.put_signal(
                Signal(
                    RecordingSignal(int(message.signal)),
                    message.recordingId,
                    message.subscriptionId,
                    message.position,
                    message.correlationId,
                )
            )
        elif message.name == "ControlResponse" and message.code != Response.OK:
            self._notices.put_error(message.correlationId, refusal_of(message, None))

    def poll(self) -> int:
        """Take what the archive says unasked: signals and late errors. Never blocks.

        While another thread awaits an answer, that thread takes them, and this returns at once.

        Returns:
            How many messages there were.
        """
        count = 0
        if self._lock.acquire(blocking=False):
            try:
                while (received := self._subscription.poll_message()) is not None:
                    message = decode(received.payload)
                    if message is not None:
                        self._pass_on(message)
                    count += 1
            finally:
                self._lock.release()
        return count

    def signals(self) -> list[Signal]:
        """Signals that came since the last call, oldest first. Never blocks."""
        self.poll()
        return self._notices.take_signals()

    def await_signal(
        self, signal: RecordingSignal, recording_id: int | None = None, timeout_s: float = 10.0
    ) -> Signal:
        """Wait for a signal, keeping others for :meth:`signals`.

        Raises:
            ArchiveTimeoutError: It did not come in time.
        """
        deadline = self.clock.deadline(timeout_s)
        while True:
            self.poll()
            found = self._notices.take_signal(signal, recording_id)
            if found is not None:
                return found
            if deadline.is_over:
                raise ArchiveTimeoutError(f"no signal {signal.name} within {timeout_s} s")
            self.clock.sleep(_POLL_INTERVAL_S)

    def late_error(self, correlation_id: int) -> ArchiveError | None:
        """The error that came after the answer to a request, if one did. Never blocks."""
        self.poll()
        return self._notices.take_error(correlation_id)

    @property
    def client(self) -> Client:
        """The client in use."""
        return self._client

    @property
    def clock(self) -> Clock:
        """What it goes by: the clock of its client."""
        return self._client.clock

    @property
    def is_connected(self) -> bool:
        """True while the archive is there."""
        return not self._is_closed and self._publication.is_connected and self._subscription.is_connected

    @property
    def is_closed(self) -> bool:
        """True once this program has closed the session."""
        return self._is_closed

    def close(self) -> None:
        """End the session. Closing again does nothing, nor does closing in a forked child: it is the parent's."""
        if not is_own(self._pid):
            return
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
        ARCHIVE.info("control session %d closed", self.control_session_id)

    def __repr__(self) -> str:
        closed = ", closed" if self._is_closed else ""
        return f"{type(self).__name__}(control_session_id={self.control_session_id}{closed})"


def _refuse_response_mode(channel: str) -> None:
    if ChannelUri(channel).is_response:
        rule = "response channels are not built: give the address where the archive is to answer"
        raise ConfigError(f"response_channel={channel}: {rule}", "response_channel", channel, rule)


def _with_defaults(channel: str, term_length: int, mtu: int) -> str:
    uri = ChannelUri(channel)
    return uri.with_parameters(
        term_length=uri.get("term-length") or term_length,
        mtu=uri.get("mtu") or mtu,
        sparse=uri.get("sparse") or "true",
    )


def refusal_of(message: Message, recording_id: int | None) -> ArchiveError:
    """The exception that a refusal is."""
    if message.code == Response.RECORDING_UNKNOWN:
        code, text = int(ErrorCode.UNKNOWN_RECORDING), f"unknown recording id: {message.relevantId}"
    else:
        code, text = message.relevantId, message.errorMessage or "refused"
    name = ErrorCode(code).name if code in ErrorCode._value2member_map_ else str(code)
    return ArchiveError(f"{text} ({name})", code, name, recording_id, message.correlationId)
