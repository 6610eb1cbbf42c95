"""The client of a cluster."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, overload

from headrace._base.checks import wrong
from headrace._base.closing import Closing
from headrace._base.exceptions import ClosedError, PublicationTimeoutError
from headrace._base.fork import is_own
from headrace._base.results import OfferResult, accepted
from headrace.client import Client
from headrace.cluster.client.connecting import Connecting
from headrace.cluster.client.follower_reads import FollowerRead, FollowerStreams, PendingFollowerRead
from headrace.cluster.client.local_node import driver_directory, named_node
from headrace.cluster.client.pending_request import PendingRequest, result_of_read
from headrace.cluster.client.session import Answer, ClusterMessage, ClusterSession, Handlers, given
from headrace.cluster.client.settings import ClusterClientConfig, ClusterClientSettings
from headrace.cluster.client.states import ClientState, ConnectState
from headrace.cluster.errors import AdminRequestError
from headrace.cluster.protocol.codes import AdminResponseCode
from headrace.cluster.protocol.session import AdminResponse

if TYPE_CHECKING:
    from typing import Unpack

    from headrace.client import Message
    from headrace.client._data import Data
    from headrace.client._local_driver import LocalDriver
    from headrace.clock import Clock
    from headrace.cluster.protocol.session import NewLeaderEvent, SessionEvent

__all__ = ["ClusterClient", "PendingClusterClient"]

_LOOK_INTERVAL_S = 0.05
_CHANGE_INTERVAL_S = 0.001


class PendingClusterClient:
    """A client whose session is being opened, made by :meth:`ClusterClient.request`. It never waits."""

    def __init__(
        self, client: Client, config: ClusterClientConfig, handlers: Handlers, *, owns_client: bool
    ) -> None:
        """Called by :meth:`ClusterClient.request`."""
        self._client = client
        self._config = config
        self._handlers = handlers
        self._owns_client = owns_client
        self._connecting = Connecting(client, config)

    @property
    def state(self) -> ConnectState:
        """The state of the connect."""
        return self._connecting.state

    def poll(self) -> ClusterClient | None:
        """Do all work that needs no waiting; returns the client once its session is open. Call it again until then.

        Raises:
            ClusterTimeoutError: The session was not open within ``message_timeout_ns``; the text names the state.
            ClusterAuthenticationError: The cluster does not accept the credentials, or there are none.
            ClusterError: The cluster refused.
            RegistrationError: The driver refused a stream.
        """
        try:
            opened = self._connecting.step()
        except BaseException:
            self._end()
            raise
        if opened is None:
            return None
        session = ClusterSession(self._client, self._config, opened, self._handlers)
        return ClusterClient(self._client, session, self._config, owns_client=self._owns_client)

    def cancel(self) -> None:
        """Cancel the connect. Do not call it once :meth:`poll` has returned the client."""
        self._connecting.close()
        self._end()

    def _end(self) -> None:
        if self._owns_client:
            self._client.close()

    def __repr__(self) -> str:
        return f"PendingClusterClient(state={self.state.name})"


class ClusterClient(Closing):
    """A session with a cluster, made with :meth:`connect`. Works with Aeron's clusters as well.

    Each accepted offer that reaches the cluster goes into its log once; an answer of a service confirms that. If the
    leader is lost, the session continues with the next one, but messages in flight are lost. A context manager that
    closes the session, and an iterator of the services' messages.

    One thread takes messages; any thread may offer or close. The methods of the client send keepalives, see
    ``keep_alive_interval_ns``; a program that calls none for as long as the cluster's session time-out, by default 10
    s, loses its session.
    """

    def __init__(
        self, client: Client, session: ClusterSession, config: ClusterClientConfig, *, owns_client: bool
    ) -> None:
        """Called by :meth:`connect`."""
        self._client = client
        self._session = session
        self._config = config
        self._followers = FollowerStreams(client, config)
        self._owns_client = owns_client
        self._pid = os.getpid()
        # Held for each change of the session; handlers may call what holds it again.
        self._lock = threading.RLock()
        # Held by the thread that takes a message from the stream, until that is given or kept: none overtakes it. Taken
        # before the other lock, or without waiting. Handlers may take messages too.
        self._reading = threading.RLock()

    @classmethod
    def request(
        cls,
        client: Client,
        *,
        config: ClusterClientConfig | None = None,
        on_message: Callable[[ClusterMessage], object] | None = None,
        on_session_event: Callable[[SessionEvent], object] | None = None,
        on_new_leader: Callable[[NewLeaderEvent], object] | None = None,
        on_admin_response: Callable[[AdminResponse], object] | None = None,
        **settings: Unpack[ClusterClientSettings],
    ) -> PendingClusterClient:
        """Begin to open a session, without waiting: for programs whose loop must not stall.

        Arguments as for :meth:`connect`.

        Raises:
            ConfigError: A setting is wrong.
            ClosedError: The client is closed.
        """
        handlers = Handlers(on_message, on_session_event, on_new_leader, on_admin_response)
        made = ClusterClientConfig.of(config, **settings)
        return PendingClusterClient(client, made, handlers, owns_client=False)

    @classmethod
    def connect(
        cls,
        client: Client | None = None,
        *,
        directory: str | os.PathLike[str] | None = None,
        node_directory: str | os.PathLike[str] | None = None,
        driver: LocalDriver | None = None,
        config: ClusterClientConfig | None = None,
        on_message: Callable[[ClusterMessage], object] | None = None,
        on_session_event: Callable[[SessionEvent], object] | None = None,
        on_new_leader: Callable[[NewLeaderEvent], object] | None = None,
        on_admin_response: Callable[[AdminResponse], object] | None = None,
        **settings: Unpack[ClusterClientSettings],
    ) -> ClusterClient:
        """Open a session with a cluster.

        Blocks without the GIL until the leader has opened it, for at most ``message_timeout_ns``.

        Args:
            client: The client to use, with a conductor thread; without it the session makes one and closes it.
            directory: The driver's directory, if there is no `client`.
            node_directory: The directory of a node on this machine, instead of the driver's: its mark file names the
                driver. Both channels are then ``aeron:ipc`` by default.
            driver: The driver, if it runs in this process and there is no `client`.
            config: All settings as one object; keywords override it.
            on_message: The default handler of :meth:`poll`.
            on_session_event: Called with the cluster's events of the session, such as its end.
            on_new_leader: Called when the cluster has a new leader.
            on_admin_response: Called with each answer to a request for a snapshot.
            **settings: See :class:`headrace.cluster.ClusterClientConfig`: channels, endpoints, time-outs, credentials.

        The thread that takes messages calls the handlers, inside its call, which raises their exceptions.

        Raises:
            ClusterTimeoutError: The session was not open in time; the text names the state.
            ClusterAuthenticationError: The cluster does not accept the credentials, or there are none.
            ClusterError: The cluster refused.
            ConfigError: A setting is wrong.
            ClusterFileError: No node has run on `node_directory`.
        """
        handlers = Handlers(on_message, on_session_event, on_new_leader, on_admin_response)
        directory = driver_directory(node_directory, directory, client, driver, config, settings)
        made = ClusterClientConfig.of(config, **settings)
        owns_client = client is None
        if client is None:
            with named_node(node_directory):
                client = Client.connect(directory, driver=driver, client_name=made.client_name)
        pending = PendingClusterClient(client, made, handlers, owns_client=owns_client)
        try:
            while (connected := pending.poll()) is None:
                client.clock.sleep(_CHANGE_INTERVAL_S)
        except BaseException:
            pending.cancel()
            raise
        return connected

    # --- to the cluster --------------------------------------------------------------------------------------------

    def offer(self, data: Data) -> int | OfferResult:
        """Send one message to the cluster, if that can be done now. Never blocks.

        Args:
            data: A bytes-like object, or a tuple or list of them sent as one message.

        Returns:
            A stream position above zero; or why it was not sent: ``NOT_CONNECTED`` while the session waits for a new
            leader, which needs polls, ``CLOSED`` when it has ended, and the others of :class:`headrace.OfferResult`.

        Raises:
            ConfigError: The message is too long for the stream or for the cluster's log. Aeron's members do not
                announce the limit of their log, and drop the message.
        """
        session = self._session
        # All that a message needs where nothing else is to be done.
        if session.streams.is_steady and (result := session.streams.offer(data)) > 0:
            return result
        with self._lock:
            return session.offer(data)

    def offer_blocking(self, data: Data, *, timeout_s: float | None = 5.0) -> int:
        """Send one message, waiting for room, and for a new leader if there is none.

        Messages that arrive meanwhile are kept for the next poll, up to 64 MiB.

        Args:
            data: As for :meth:`offer`.
            timeout_s: How long to wait at most, in seconds; ``None`` to wait without end.

        Returns:
            The stream position after the message.

        Raises:
            ConfigError: As for :meth:`offer`.
            PublicationTimeoutError: The time is over; ``.result`` says what was missing.
            SessionClosedError: The cluster has closed the session.
            ClusterTimeoutError: The cluster no longer has a leader.
            ClosedError: This program has closed the session.
            DriverTimeoutError: The client's driver has ended.
        """
        deadline = self.clock.deadline(timeout_s)
        while not (result := self.offer(data)) > 0:
            self._check_refusal(result)
            left_s = deadline.left_s()
            if left_s == 0:
                raise PublicationTimeoutError(f"not accepted in {timeout_s} s: {result!r}: {self!r}", result)
            if result is not OfferResult.ADMIN_ACTION:
                self._hold(_CHANGE_INTERVAL_S if left_s is None else min(left_s, _CHANGE_INTERVAL_S))
        return int(result)

    def send_keep_alive(self) -> bool:
        """Send a keepalive, which :meth:`poll` and its like also do. Never blocks.

        Returns:
            Whether it was sent.
        """
        with self._lock:
            return self._session.send_keep_alive() > 0

    def send_snapshot_request(self) -> int | None:
        """Ask the cluster to take a snapshot, without waiting for the answer, which goes to `on_admin_response`.

        Returns:
            The correlation id of the answer; ``None`` if the request could not be sent now.
        """
        correlation_id = self._client.next_correlation_id()
        with self._lock:
            return correlation_id if self._session.send_snapshot_request(correlation_id) > 0 else None

    def request_snapshot(self, *, timeout_s: float | None = None) -> None:
        """Ask the cluster to take a snapshot. Clusters refuse this unless they authorise the client.

        Blocks until the cluster has agreed, not until the snapshot is taken: a member that is closed before that does
        not take it, and says so in its error log. Messages that arrive meanwhile are kept for the next poll.

        Args:
            timeout_s: How long to wait; by default ``message_timeout_ns``.

        Raises:
            AdminRequestError: The cluster refused; ``.code`` tells whether this client is not authorised.
            ClusterTimeoutError: The cluster did not answer.
            SessionClosedError: The cluster has closed the session.
            ClosedError: This program has closed the session.
        """
        answer = self._ask(self._session.send_snapshot_request, timeout_s)
        assert isinstance(answer, AdminResponse), "the answer to a request for a snapshot"
        check_answer(answer)

    def read(self, data: bytes, *, service_id: int = 0, timeout_s: float | None = None) -> bytes:
        """Ask a service what does not change it: its ``on_read`` answers, and nothing enters the log.

        The answer has all that any client was answered before this call (it is linearizable). A new leader is asked
        again. Blocks until the answer comes; what the cluster sends meanwhile is kept for the next poll. Clusters of
        Aeron do not answer.

        Args:
            data: The question.
            service_id: Which service is asked.
            timeout_s: How long to wait; ``message_timeout_ns`` if not given.

        Raises:
            ServiceError: The service raised.
            ClusterTimeoutError: The cluster did not answer.
            SessionClosedError: The cluster has closed the session.
            ClosedError: This program has closed the session.
        """
        return result_of_read(
            self._ask(lambda one: self._session.send_read(one, data, service_id), timeout_s)
        )

    def read_from_follower(
        self, data: bytes, *, max_staleness_s: float, service_id: int = 0, timeout_s: float | None = None
    ) -> FollowerRead:
        """Ask a service of a follower what does not change it: the leader has no work with it.

        The answer has all that the cluster committed until `max_staleness_s` before the service answered, and says how
        old it is. It is never older than what this session was answered before. A follower that knows nothing so young,
        such as one that is cut off from its leader, refuses; then the next one is asked, and at last the leader, whose
        answer is as that of :meth:`read`. Followers take turns. Blocks until the answer comes; what the cluster sends
        meanwhile is kept for the next poll.

        Args:
            data: The question.
            max_staleness_s: How old the answer may be, in seconds. A follower asks its leader at most once in this
                time; with less than a round trip it refuses.
            service_id: Which service is asked.
            timeout_s: How long to wait; ``message_timeout_ns`` if not given.

        Raises:
            ConfigError: `max_staleness_s` is not above 0.
            ServiceError: The service raised.
            ClusterTimeoutError: No member answered.
            SessionClosedError: The cluster has closed the session.
            ClosedError: This program has closed the session.
        """
        pending = self._follower_read(data, service_id, max_staleness_s, timeout_s)
        try:
            while True:
                with self._lock:
                    answer = pending.step(self._check_refusal)
                if answer is not None:
                    return answer
                self._check_open()
                self._hold(_CHANGE_INTERVAL_S)
        finally:
            pending.close()

    def _follower_read(
        self, data: bytes, service_id: int, max_staleness_s: float, timeout_s: float | None
    ) -> PendingFollowerRead:
        with self._lock:
            return PendingFollowerRead(
                self._session,
                self._followers,
                self._client,
                data,
                service_id=service_id,
                max_staleness_s=max_staleness_s,
                timeout_s=self._config.message_timeout_s if timeout_s is None else timeout_s,
            )

    def _ask(self, send: Callable[[int], int | OfferResult], timeout_s: float | None) -> Answer:
        timeout_s = self._config.message_timeout_s if timeout_s is None else timeout_s
        with PendingRequest(
            self._session, self._client.next_correlation_id(), send, timeout_s, self.clock
        ) as request:
            while True:
                with self._lock:
                    answer = request.step(self._check_refusal)
                if answer is not None:
                    return answer
                self._check_open()
                self._hold(_CHANGE_INTERVAL_S)

    # --- from the cluster ------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Maintain the session, as every other call does: time-outs, a new leader, keepalives. Never blocks.

        For programs that only offer; others need not call it.
        """
        with self._lock:
            self._session.step()

    def poll(self, handler: Callable[[ClusterMessage], object] | None = None, limit: int = 10) -> int:
        """Call a handler with the messages that have arrived. Never blocks.

        When the handler raises, the poll stops and raises the same exception; the message counts as consumed.

        Args:
            handler: Called with each :class:`headrace.cluster.ClusterMessage`; by default `on_message`.
            limit: Most messages to take.

        Returns:
            How many messages were taken.

        Raises:
            ServiceError: Instead of an answer: a handler of the service raised at a message of this client. The session
                stays open, and the program may continue.
            SessionClosedError: The cluster has closed the session. Raised after all its messages.
            ClusterTimeoutError: The cluster had no new leader in time, or this client could not reach it.
            ClosedError: This program has closed the session.
            ConfigError: There is no handler.
        """
        handler = handler or self._session._handlers.on_message
        if handler is None:
            raise wrong("handler", handler, "must be callable where connect() was given no on_message")
        streams = self._session.streams
        count = 0
        while count < limit:
            taken, is_all = streams.poll(handler, limit - count, self._accept, self._reading)
            count += taken
            if is_all or count == limit or (message := self.poll_message()) is None:
                break
            count += 1
            handler(message)
        return count

    def _accept(self, received: Message) -> None:
        """Handle a message that is not the program's."""
        with self._lock:
            given(self._session.accept(received))

    def poll_message(self) -> ClusterMessage | None:
        """Take one message; ``None`` if none has arrived. Never blocks. Raises as :meth:`poll`."""
        with self._lock:
            # A thread that waits for something else may have the next message, and not have kept it yet.
            is_reading = self._reading.acquire(blocking=False)
            try:
                return self._session.take(may_read=is_reading)
            finally:
                if is_reading:
                    self._reading.release()

    @overload
    def receive(self, timeout_s: None = None) -> ClusterMessage: ...

    @overload
    def receive(self, timeout_s: float) -> ClusterMessage | None: ...

    def receive(self, timeout_s: float | None = None) -> ClusterMessage | None:
        """Wait for one message, without the GIL; Ctrl-C ends the wait. Raises as :meth:`poll`.

        Args:
            timeout_s: How long to wait at most, in seconds; ``None`` to wait without end.

        Returns:
            The message; ``None`` when the time is over.
        """
        deadline = self.clock.deadline(timeout_s)
        while (message := self.poll_message()) is None:
            left_s = deadline.left_s()
            if left_s == 0:
                return None
            wait_s = self._wait_s
            self._hold(wait_s if left_s is None else min(left_s, wait_s))
        return message

    def __iter__(self) -> Iterator[ClusterMessage]:
        return self

    def __next__(self) -> ClusterMessage:
        """Wait for the next message as :meth:`receive` does; ends when this program closes the session."""
        try:
            return self.receive()
        except ClosedError:
            if self._is_closed_here:
                raise StopIteration from None
            raise

    @property
    def _wait_s(self) -> float:
        """How long the session needs no maintenance."""
        return _LOOK_INTERVAL_S if self._session.is_steady else _CHANGE_INTERVAL_S

    @property
    def _is_closed_here(self) -> bool:
        return self.state is ClientState.CLOSED and self._session.error is None

    def _hold(self, wait_s: float) -> None:
        """Wait for one message, which is kept; other threads may offer meanwhile."""
        session = self._session
        # Another thread takes what comes, or there is enough.
        if not session.has_room or not self._reading.acquire(blocking=False):
            self.clock.sleep(wait_s)
            return
        try:
            received = self._received(wait_s)
            with self._lock:
                if received is not None and (message := session.accept(received)) is not None:
                    session.hold(message)
        finally:
            self._reading.release()

    def _received(self, wait_s: float) -> ClusterMessage | Message | None:
        try:
            received: ClusterMessage | Message | None = self._session.streams.receive(wait_s)
        except ClosedError:
            self._check_open()
            raise
        return received

    def _check_open(self) -> None:
        with self._lock:
            self._session.step()
            if self.state is ClientState.CLOSED:
                raise self._session.end()

    def _check_refusal(self, result: int | OfferResult) -> None:
        """Raise the error that makes another offer pointless."""
        if result is OfferResult.CLOSED:
            self._check_open()
            # With the client went everything that it had; it says why it has ended.
            self._client.next_correlation_id()
            accepted(result)

    # --- life ------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> ClientState:
        """The state of the session."""
        return self._session.state

    @property
    def cluster_session_id(self) -> int:
        """The id of the session."""
        return self._session.cluster_session_id

    @property
    def leadership_term_id(self) -> int:
        """The term of the last known leader."""
        return self._session.leadership_term_id

    @property
    def leader_member_id(self) -> int:
        """The last known leader."""
        return self._session.leader_member_id

    @property
    def undecodable_count(self) -> int:
        """How many messages could not be decoded, and were ignored. The first is logged."""
        return self._session.undecodable_count

    @property
    def client(self) -> Client:
        """The client of the session."""
        return self._client

    @property
    def clock(self) -> Clock:
        """The clock of its client."""
        return self._client.clock

    @property
    def is_closed(self) -> bool:
        """True once the session has ended, for any reason."""
        return self._session.is_over

    def close(self) -> None:
        """End the session. Closing again does nothing, nor does closing in a forked child: it is the parent's."""
        if not is_own(self._pid):
            return
        with self._lock:
            self._followers.close()
            if self.state is not ClientState.CLOSED:
                self._session.close()
        if self._owns_client:
            self._client.close()

    def __repr__(self) -> str:
        return (
            f"ClusterClient(cluster_session_id={self.cluster_session_id}, state={self.state.name}, "
            f"leader_member_id={self.leader_member_id}, leadership_term_id={self.leadership_term_id})"
        )


def check_answer(answer: AdminResponse) -> None:
    """Raise the error if an answer is a refusal."""
    if answer.response_code is not AdminResponseCode.OK:
        text = f"the cluster refused a snapshot: {answer.message or answer.response_code.name}"
        raise AdminRequestError(text, int(answer.response_code))
