"""The client of an archive: records, finds and replays streams."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, overload

from headrace._base.checks import check_callable
from headrace._base.exceptions import (
    ArchiveError,
    ArchiveTimeoutError,
    ClientError,
    ClosedError,
    PublicationTimeoutError,
)
from headrace._base.fork import is_own
from headrace.archive.client import calls, steps, waits
from headrace.archive.client.durable import DurablePublication
from headrace.archive.client.exchange import Exchange, Steps
from headrace.archive.client.named_streams import NamedStreamRequests
from headrace.archive.client.reconnecting import ReconnectingArchive
from headrace.archive.client.replay import Replay, Replayed, ReplayRange
from headrace.archive.client.replication import Replication, ReplicationSettings, replication_begun
from headrace.archive.client.session import Streams, look_s
from headrace.archive.client.settings import ArchiveClientConfig, ArchiveClientSettings
from headrace.archive.client.signals import Signal
from headrace.archive.protocol.codes import RecordingSignal, SourceLocation
from headrace.archive.protocol.descriptor import RecordingDescriptor
from headrace.archive.protocol.retention import Retention, without_retention
from headrace.channel import ChannelUri
from headrace.client import Client, ReconnectingClient
from headrace.client._reserved import check_stream
from headrace.positions import NULL_VALUE, signed_32

if TYPE_CHECKING:
    from typing import Self, Unpack

    from headrace.client import ExclusivePublication, Image
    from headrace.client._local_driver import LocalDriver

__all__ = ["Archive"]

R = TypeVar("R")
REPLAY_STREAM_ID = 1020


class Archive(NamedStreamRequests):
    """A session with an archive, made with :meth:`connect`. Works with archives of Aeron as well.

    Thread-safe: one request at a time. A context manager that closes the session; recordings and replays continue
    without it.
    """

    @overload
    @classmethod
    def connect(
        cls,
        client: Client | None = None,
        *,
        directory: str | os.PathLike[str] | None = None,
        driver: LocalDriver | None = None,
        config: ArchiveClientConfig | None = None,
        on_signal: Callable[[Signal], object] | None = None,
        on_error: Callable[[ArchiveError], object] | None = None,
        **settings: Unpack[ArchiveClientSettings],
    ) -> Self: ...

    @overload
    @classmethod
    def connect(cls, client: ReconnectingClient, **settings: Any) -> ReconnectingArchive[Self]: ...

    @classmethod  # type: ignore[misc]
    def connect(
        cls,
        client: Client | ReconnectingClient | None = None,
        *,
        directory: str | os.PathLike[str] | None = None,
        driver: LocalDriver | None = None,
        config: ArchiveClientConfig | None = None,
        on_signal: Callable[[Signal], object] | None = None,
        on_error: Callable[[ArchiveError], object] | None = None,
        **settings: Unpack[ArchiveClientSettings],
    ) -> Self | ReconnectingArchive[Self]:
        """Open a session with an archive.

        Blocks without the GIL until the archive answers.

        Args:
            client: The client to use; without it the session makes one and closes it. With a reconnecting client the
                session is a :class:`headrace.archive.ReconnectingArchive`.
            directory: The driver's directory, if there is no `client`.
            driver: The driver, if it runs in this process and there is no `client`.
            config: All settings as one object; keywords override it.
            on_signal: Called with each signal, by the call that receives it. Without it :meth:`take_signals` returns
                them.
            on_error: Called with errors that come after an answer, such as that of a failed recording. Without it they
                are logged as warnings of ``headrace.archive``, except those that a replay raises.
            **settings: See :class:`headrace.archive.ArchiveClientConfig`: channels, streams, time-out, name.

        Raises:
            ArchiveTimeoutError: No archive takes requests on the channel, or it did not answer.
            ArchiveError: The archive refused.
            ConfigError: A setting is wrong.
        """
        check_callable("on_signal", on_signal)
        check_callable("on_error", on_error)
        config = ArchiveClientConfig.of(config, **settings)
        if isinstance(client, ReconnectingClient):
            opened = functools.partial(cls.connect, config=config)
            return ReconnectingArchive(client, opened, on_signal, on_error, config.message_timeout_s)
        owns_client = client is None
        client = client or Client.connect(directory, driver=driver, client_name=config.client_name)
        try:
            channels = config.channels(lambda: client.next_available_session_id(config.control_stream_id))
            subscription = client.add_subscription(channels.responses, config.response_stream_id)
            publication = client.add_exclusive_publication(
                channels.requests_of(subscription), config.control_stream_id
            )
            archive = cls(
                Streams(client, publication, subscription, owns_client), config, on_signal, on_error
            )
        except BaseException:
            if owns_client:
                client.close()
            raise
        try:
            waits.await_archive(publication, config.message_timeout_s)
            responses = waits.resolved_channel(archive, subscription, channels.responses)
            archive._run(archive._handshake(responses))
        except BaseException:
            archive.close()
            raise
        return archive

    def _run(self, what: Steps[R]) -> R:
        """Run an exchange to its end, blocking without the GIL for each answer."""
        with self._turn(what) as exchange:
            while (unsettled := self._unsettled()) is not None:
                self._wait(unsettled)
            self._check_open()
            while not exchange.is_done:
                if exchange.to_send is not None:
                    self._offer(exchange, exchange.to_send)
                else:
                    self._wait(exchange)
            return exchange.result()

    @contextlib.contextmanager
    def _turn(self, what: Steps[R]) -> Iterator[Exchange[R]]:
        """Begin an exchange, and wait, at most its time-out, until it is this thread's turn to run it."""
        exchange = self._begin(what)
        try:
            while not self._lock.acquire(timeout=waits.lock_timeout_s(exchange.deadline.left_s())):
                exchange.check()
                if exchange.is_done:
                    exchange.result()
        except BaseException:
            self._end(exchange)
            raise
        try:
            yield exchange
        finally:
            self._end(exchange)
            self._lock.release()

    def _offer(self, exchange: Exchange[R], request: bytes) -> None:
        """Send a request, or wait for room until it is time to check its exchange."""
        try:
            self._way_of(exchange).offer_blocking(request, timeout_s=look_s(exchange))
        except PublicationTimeoutError:
            self._look_after(exchange)
        else:
            exchange.sent()

    def _wait(self, exchange: Exchange[R]) -> None:
        """Wait for one message from the archive, or until it is time to check an exchange."""
        received = self._subscription.receive(timeout_s=look_s(exchange))
        if received is None:
            self._look_after(exchange)
        else:
            self._take(received.payload)

    def close(self) -> None:
        """End the session. Closing again does nothing, nor does closing in a forked child: it is the parent's.

        If a request to record or replay was interrupted, this waits for its answer, to stop what it began.
        """
        if is_own(self._pid) and self._begun() is not None and self._lock.acquire(blocking=False):
            try:
                with contextlib.suppress(ClientError, ClosedError):
                    while (begun := self._begun()) is not None:
                        self._wait(begun)
            finally:
                self._lock.release()
                super().close()
        else:
            super().close()

    def await_signal(
        self, signal: RecordingSignal, recording_id: int | None = None, timeout_s: float = 10.0
    ) -> Signal:
        """Wait for a signal, keeping others for :meth:`take_signals`.

        Raises:
            ArchiveTimeoutError: It did not come in time.
            ArchiveError: It will not come: the archive is gone, or the session is closed.
        """
        deadline = self.clock.deadline(timeout_s)
        while True:
            self.poll()
            found = self._signals.take_signal(signal, recording_id)
            if found is not None:
                return found
            self._check_open()
            if deadline.is_over:
                raise ArchiveTimeoutError(f"no signal {signal.name} within {timeout_s} s")
            self.clock.sleep(waits.POLL_INTERVAL_S)

    # --- recording -------------------------------------------------------------------------------------------------

    def start_recording(
        self,
        channel: str,
        stream_id: int,
        *,
        location: SourceLocation = SourceLocation.LOCAL,
        auto_stop: bool = False,
        retention: Retention | None = None,
    ) -> int:
        """Record every publisher of a channel and stream, each as a separate recording.

        Args:
            channel: The channel of the publishers.
            stream_id: Which flow on the channel.
            location: ``LOCAL`` when the publishers are on the archive's driver, else ``REMOTE``.
            auto_stop: Stop recording when the first of these publishers ends.
            retention: How long each recording keeps its segment files, by default forever; see :meth:`set_retention`.

        Returns:
            The id of the archive's subscription.
        """
        check_stream(self.client.counters, channel, stream_id)
        return self._run(
            calls.start_recording(
                channel, stream_id, location=location, auto_stop=auto_stop, retention=retention
            )
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
        """Continue a stopped recording.

        The publisher must start at its stop position; see :func:`headrace.archive.extension_channel`.
        """
        return self._run(
            calls.extend_recording(recording_id, channel, stream_id, location=location, auto_stop=auto_stop)
        )

    def stop_recording(self, channel: str, stream_id: int) -> None:
        """Stop the recordings of a channel and stream. Their stop positions are known a moment later."""
        self._run(calls.stop_recording(channel, stream_id))

    def stop_recording_subscription(self, subscription_id: int) -> None:
        """Stop the recordings of an archive's subscription, by the id that :meth:`start_recording` returned."""
        self._run(calls.stop_recording_subscription(subscription_id))

    def stop_recording_by_id(self, recording_id: int) -> bool:
        """Stop one recording; false when it was not active."""
        return self._run(calls.stop_recording_by_id(recording_id))

    def add_recorded_publication(
        self, channel: str, stream_id: int, *, retention: Retention | None = None
    ) -> ExclusivePublication:
        """Add an exclusive publication that the archive records from its first byte.

        Blocks without the GIL until the recording has begun: then the archive lists it, and it has a position counter.
        The recording stops when the publication closes.

        Args:
            channel: The channel of the publication.
            stream_id: Which flow on the channel.
            retention: How long the recording keeps its segment files; by default forever.

        Raises:
            ArchiveError: The archive refused, or could not begin the recording.
            ArchiveTimeoutError: The recording did not begin within the session's ``message_timeout_s``.
        """
        publication = self._client.add_exclusive_publication(without_retention(channel), stream_id)
        try:
            self._run(steps.recorded(calls.recording_of(publication, channel, retention)))
        except BaseException:
            publication.close()
            raise
        return publication

    def add_durable_publication(
        self, channel: str, stream_id: int, *, retention: Retention | None = None
    ) -> DurablePublication:
        """As :meth:`add_recorded_publication`, but the publication can wait until its messages are recorded.

        Args:
            channel: The channel of the publication.
            stream_id: Which flow on the channel.
            retention: How long the recording keeps its segment files; by default forever.

        Raises:
            ArchiveError: As for :meth:`add_recorded_publication`.
            ArchiveTimeoutError: As for :meth:`add_recorded_publication`.
        """
        publication = self._client.add_exclusive_publication(without_retention(channel), stream_id)
        try:
            recording_id = self._run(steps.recorded(calls.recording_of(publication, channel, retention)))
            return DurablePublication(self, publication, recording_id)
        except BaseException:
            publication.close()
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
            channel: The channel to replay to.
            stream_id: Which flow on the channel.
            position: Where to start; ``None`` for the beginning.
            length: Bytes to replay; ``None`` for everything, following a recording that is still active.
            limit_counter_id: A counter whose value the replay must not pass: frames that end after it wait until it
                moves.
            file_io_max_length: Most bytes the archive reads at once.

        Returns:
            The replay's id; its lowest 32 bits are the session id of the replayed stream.
        """
        return self._run(
            calls.start_replay(
                recording_id,
                channel,
                stream_id,
                position=position,
                length=length,
                limit_counter_id=limit_counter_id,
                file_io_max_length=file_io_max_length,
            )
        )

    def replay(
        self,
        recording_id: int,
        *,
        position: int | None = None,
        length: int | None = None,
        channel: str = "aeron:ipc",
        stream_id: int = REPLAY_STREAM_ID,
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
                With ``aeron:udp?control-mode=response|control=host:port``, an address of the archive's machine, the
                messages come back through a connection that this program opens, so that it needs no address that the
                archive can reach.
            stream_id: Which flow on the channel.
            limit_counter_id: A counter whose value the replay must not pass: frames that end after it wait until it
                moves. Closing the counter ends the replay in order.
        """
        what = ReplayRange(recording_id, position, length, limit_counter_id)
        if ChannelUri(channel).is_response:
            return self._replay_back(what, channel, stream_id)
        # Told of and not looked for: a reader that takes its time over the last message may find its image gone.
        images: list[Image] = []
        if ChannelUri(channel).is_port_open:
            # The port is known only after the subscription is bound to it, so the session id is chosen before.
            session_id = self._client.next_available_session_id(stream_id)
            channel = ChannelUri(channel).with_parameters(session_id=session_id)
            subscription = self._client.add_subscription(channel, stream_id, on_available_image=images.append)
            try:
                resolved = waits.resolved_channel(self, subscription, channel)
                ids = self._run(steps.replay_started(what.request(resolved, stream_id)))
            except BaseException:
                subscription.close()
                raise
        else:
            ids = self._run(steps.replay_started(what.request(channel, stream_id)))
            session_channel = ChannelUri(channel).with_parameters(session_id=signed_32(ids[0]))
            try:
                subscription = self._client.add_subscription(
                    session_channel, stream_id, on_available_image=images.append
                )
            except BaseException:
                self.stop_replay(ids[0])
                raise
        return Replay(self, self, Replayed(recording_id, *ids, subscription, images))

    def _replay_back(self, what: ReplayRange, channel: str, stream_id: int) -> Replay:
        """Replay through a connection that this program opens."""
        config, images = self._config, list["Image"]()
        config.check_way_back("channel", channel)
        with contextlib.ExitStack() as undo:
            subscription = self._client.add_subscription(channel, stream_id, on_available_image=images.append)
            undo.callback(subscription.close)
            over = self._client.add_exclusive_publication(
                config.replay_requests(subscription), config.control_stream_id
            )
            undo.callback(over.close)
            waits.await_archive(over, self._timeout_s)
            ids = self._run(steps.replay_started(what.request(channel, stream_id), over))
            undo.pop_all()
        return Replay(self, self, Replayed(what.recording_id, *ids, subscription, images, over))

    def stop_replay(self, replay_id: int) -> None:
        """Stop one replay. Does nothing if it has ended."""
        self._run(calls.stop_replay(replay_id))

    def stop_all_replays(self, recording_id: int | None = None) -> None:
        """Stop all replays of a recording; without an id, all replays of the archive."""
        self._run(calls.stop_all_replays(recording_id))

    # --- replication -----------------------------------------------------------------------------------------------

    def replicate(
        self, source_recording_id: int, source_channel: str, **settings: Unpack[ReplicationSettings]
    ) -> Replication:
        """Have the archive copy a recording of another archive into one of its own.

        ::

            replication = standby.replicate(recording_id, "aeron:udp?endpoint=primary:8010")
            position = replication.wait(timeout_s=60)

        The two archives do this between them; this program may wait or not. To resume a replication that broke off, ask
        for it again with ``destination_id``: it continues where the copy ends.

        Args:
            source_recording_id: The recording in the other archive.
            source_channel: Where the other archive takes requests, as this archive reaches it.
            **settings: All keywords, with their defaults:

                - ``source_stream_id``: stream of the requests to the other archive; 10.
                - ``destination_id``: the recording of this archive to extend; ``None`` for a new one.
                - ``stop_position``: where the copy is to end; ``None`` for the end of the source. While the source is
                  being recorded, the copy follows it.
                - ``live_destination``: where the source's publisher sends. The copy catches up through the other
                  archive, then continues with the publisher itself, and the replication ends.
                - ``replication_channel``: address of this archive at which the copy arrives; by default the archive's
                  setting ``replication_channel``. With ``aeron:udp?control-mode=response|control=host:port``, an
                  address of the other archive's machine, the copy comes back through a connection to the other archive,
                  which needs no address of this one. Not with ``live_destination`` and tags.
                - ``session_id``: session id of the stream that carries the copy; by default a unique one. Not with
                  ``live_destination`` and response channels.
                - ``channel_tag_id``, ``subscription_tag_id``: tags for the archive's subscription.
                - ``file_io_max_length``: most bytes that the other archive reads at once.
                - ``credentials``: credentials for the other archive.
                - ``source_response_channel``: where the other archive answers this archive; by default the host of this
                  archive's control channel, or else that of ``replication_channel``, with a free port.

        Raises:
            ArchiveError: The archive refused. :meth:`Replication.wait` raises later failures.
            ConfigError: An argument is unknown or wrong.
        """
        watch = self._run(replication_begun(self, source_recording_id, source_channel, **settings))
        return Replication(self, watch)

    def stop_replication(self, replication_id: int) -> None:
        """Stop a replication, by its id. The copy so far stays.

        Raises:
            ArchiveError: The replication has ended, or none has this id.
        """
        self._run(calls.stop_replication(replication_id))

    # --- queries ---------------------------------------------------------------------------------------------------

    def list_recordings(
        self,
        from_recording_id: int = 0,
        count: int = calls.COUNT_MAX,
        *,
        channel: str | None = None,
        stream_id: int | None = None,
    ) -> list[RecordingDescriptor]:
        """List recordings from an id on.

        Args:
            from_recording_id: The first id.
            count: Most recordings to return.
            channel: Only recordings whose channel contains this text.
            stream_id: Only recordings of this stream.
        """
        return self._run(
            calls.list_recordings(from_recording_id, count, channel=channel, stream_id=stream_id)
        )

    def find_recording(self, recording_id: int) -> RecordingDescriptor | None:
        """The description of a recording; ``None`` when it is unknown."""
        return self._run(calls.find_recording(recording_id))

    def list_recording_subscriptions(
        self, channel: str = "", stream_id: int | None = None
    ) -> list[tuple[int, int, str]]:
        """The archive's subscriptions for recordings, as (subscription id, stream id, channel)."""
        return self._run(calls.list_recording_subscriptions(channel, stream_id))

    def find_last_matching_recording(
        self, channel: str, stream_id: int, session_id: int, *, min_recording_id: int = 0
    ) -> int | None:
        """The id of the latest recording of a publisher; ``None`` when the archive has none."""
        return self._run(
            calls.find_last_matching_recording(
                channel, stream_id, session_id, min_recording_id=min_recording_id
            )
        )

    def start_position(self, recording_id: int) -> int:
        """Where a recording begins."""
        return self._run(calls.start_position(recording_id))

    def stop_position(self, recording_id: int) -> int | None:
        """Where a recording ended; ``None`` while it is active."""
        return self._run(calls.stop_position(recording_id))

    def recording_position(self, recording_id: int) -> int | None:
        """The position that an active recording has reached; ``None`` when it is not active."""
        return self._run(calls.recording_position(recording_id))

    def max_recorded_position(self, recording_id: int) -> int:
        """The position that a recording has reached, active or not."""
        return self._run(calls.max_recorded_position(recording_id))

    # --- storage ---------------------------------------------------------------------------------------------------

    def truncate_recording(self, recording_id: int, position: int) -> int:
        """Delete everything recorded after a position from a stopped recording. This cannot be undone.

        Args:
            recording_id: Which recording. Its replays are stopped.
            position: The new stop position; a frame must begin or end there.

        Returns:
            The number of segment files that the archive deletes.
        """
        return self._run(calls.truncate_recording(recording_id, position))

    def purge_recording(self, recording_id: int) -> int:
        """Delete a whole recording, which must be stopped. This cannot be undone.

        Returns:
            The number of files that the archive deletes.
        """
        return self._run(calls.purge_recording(recording_id))

    def detach_segments(self, recording_id: int, new_start_position: int) -> None:
        """Make a recording begin in a later segment file. The files before it stay on disk, and belong to no recording.

        Args:
            recording_id: Which recording; it may be active. No replay may be in a file before the position.
            new_start_position: Where a segment file begins, not the first:
                ``descriptor.geometry.segment_base(position)`` is the beginning of the file that contains a position.
        """
        self._run(calls.detach_segments(recording_id, new_start_position))

    def delete_detached_segments(self, recording_id: int) -> int:
        """Delete the segment files before the start of a recording. This cannot be undone.

        Returns:
            The number of segment files that the archive deletes; it sends the signal DELETE when they are gone.
        """
        return self._run(calls.delete_detached_segments(recording_id))

    def purge_segments(self, recording_id: int, new_start_position: int) -> int:
        """Make a recording begin in a later segment file, and delete the files before it. This cannot be undone.

        Files that were detached earlier stay.

        Args:
            recording_id: As for :meth:`detach_segments`.
            new_start_position: As for :meth:`detach_segments`.

        Returns:
            The number of segment files that the archive deletes; it sends the signal DELETE when they are gone.
        """
        return self._run(calls.purge_segments(recording_id, new_start_position))

    def attach_segments(self, recording_id: int) -> int:
        """Attach the detached segment files that end where the recording begins, and those before them, again.

        The archive checks the length of each file, its first frame and its end.

        Args:
            recording_id: Which recording; it may be active.

        Returns:
            The number of segment files that belong to the recording again; 0 if there are none.

        Raises:
            ArchiveError: A file is not of the recording, or incomplete. The files after it were attached.
        """
        return self._run(calls.attach_segments(recording_id))

    def migrate_segments(self, source_id: int, destination_id: int) -> int:
        """Make all of a stopped recording the beginning, or the end, of another one. The source is empty afterwards.

        Both must be of one stream, have the same lengths of terms, segment files and MTU, and join at a position where
        segment files of both begin.

        Args:
            source_id: The recording whose segment files move. It must have no replays.
            destination_id: The recording that gets them. It may be active if the source ends where it begins.

        Returns:
            The number of segment files that moved.
        """
        return self._run(calls.migrate_segments(source_id, destination_id))

    def set_retention(self, recording_id: int, retention: Retention | None) -> None:
        """Set how long a recording keeps its segment files; the archive **permanently deletes** those it need not keep.

        It deletes only whole files at the beginning, and never the one with the newest data. It keeps a file while a
        replay reads it or one before it, and while a hold is on it (:func:`headrace.archive.files.hold`). It looks
        every ten seconds. An archive of Aeron stores the retention in the recording's channel, and does nothing else.

        Args:
            recording_id: Which recording; it may be active.
            retention: What to keep; ``None`` for everything, from now on.

        Raises:
            ArchiveError: The recording is unknown.
        """
        self._run(calls.set_retention(recording_id, retention))

    def update_channel(self, recording_id: int, channel: str) -> None:
        """Replace the channel in a recording's description, with the retention in it."""
        self._run(calls.update_channel(recording_id, channel))
