"""The client of an archive: records, finds and replays streams."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from headrace._arguments import checked_class
from headrace._exceptions import (
    ArchiveError,
    ArchiveTimeoutError,
    ClientError,
    ClosedError,
    PublicationTimeoutError,
)
from headrace._fork import is_own
from headrace.archive.client import requests, steps
from headrace.archive.client.durable import DurablePublication
from headrace.archive.client.exchange import Exchange, Steps
from headrace.archive.client.following.follow import Follow
from headrace.archive.client.following.settings import Begin, FollowSettings, follow
from headrace.archive.client.notices import Signal
from headrace.archive.client.replay import Replay, Replayed, ReplayRange
from headrace.archive.client.replication import Replication, ReplicationSettings, replication_begun
from headrace.archive.client.session import ArchiveSession, Streams, look_s
from headrace.archive.client.settings import ArchiveClientConfig, ArchiveClientSettings
from headrace.archive.protocol.codes import RecordingSignal, SourceLocation
from headrace.archive.protocol.descriptor import RecordingDescriptor
from headrace.archive.protocol.retention import Retention, without_retention
from headrace.channel import ChannelUri
from headrace.client import Client
from headrace.positions import NULL_VALUE, signed_32

if TYPE_CHECKING:
    from typing import Self, Unpack

    from headrace.client import ExclusivePublication, Image, Subscription
    from headrace.client._local_driver import LocalDriver

__all__ = ["Archive"]

R = TypeVar("R")
REPLAY_STREAM_ID = 1020
POLL_INTERVAL_S = 0.001


@checked_class
class Archive(ArchiveSession):
    """A session with an archive, made with :meth:`connect`. Works with archives of Aeron as well.

    Thread-safe: one request at a time. A context manager that closes the session; recordings and replays go on
    without it.
    """

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
    ) -> Self:
        """Open a session with an archive.

        Blocks without the GIL until the archive answers.

        Args:
            client: The client to use; without it one is made and closed with the session.
            directory: The driver's directory, when no client is given.
            driver: The driver, if it runs in this process and no client is given.
            config: All settings as one object; keywords override it.
            on_signal: Called with each signal of a recording, inside the call of this session that receives it.
                Without it :meth:`signals` gives them.
            on_error: Called with errors that come after an answer, such as a recording that fails. Without it they are
                logged as warnings of ``headrace.archive``, except those that a replay raises.
            **settings: See :class:`headrace.archive.ArchiveClientConfig`: channels, streams, time-out, name.

        Raises:
            ArchiveTimeoutError: No archive takes requests on the channel, or it did not answer.
            ArchiveError: The archive refused.
            ConfigError: A setting is wrong.
        """
        config = ArchiveClientConfig.of(config, **settings)
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
            archive._await_connection(publication)
            archive._run(archive._handshake(archive._resolved(subscription, channels.responses)))
        except BaseException:
            archive.close()
            raise
        return archive

    def _await_connection(self, publication: ExclusivePublication) -> None:
        if not publication.wait_until_connected(self._timeout_s):
            raise ArchiveTimeoutError(f"no archive takes requests on {publication.channel}")

    def _run(self, what: Steps[R]) -> R:
        """Step an exchange to its end, blocking without the GIL for each answer."""
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
        """Begin an exchange, and wait until this thread may step it, for as long as its answer may take."""
        exchange = self._begin(what)
        try:
            while not self._lock.acquire(timeout=_lock_timeout_s(exchange.deadline.left_s())):
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
        """Send a request, or wait with it until it is time to look after its exchange."""
        try:
            self._way_of(exchange).offer_blocking(request, timeout_s=look_s(exchange))
        except PublicationTimeoutError:
            self._look_after(exchange)
        else:
            exchange.sent()

    def _wait(self, exchange: Exchange[R]) -> None:
        """Wait for one message from the archive, or until it is time to look after an exchange."""
        received = self._subscription.receive(timeout_s=look_s(exchange))
        if received is None:
            self._look_after(exchange)
        else:
            self._take(received.payload)

    def close(self) -> None:
        """End the session. Closing again does nothing, nor does closing in a forked child: it is the parent's.

        When a request to record or to replay was interrupted, blocks until the archive has answered it, or its
        time-out is over: what it began is stopped.
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

    def _resolved(self, subscription: Subscription, channel: str) -> str:
        """The channel of a subscription with the port that the system chose, if it was to choose one."""
        if not ChannelUri(channel).is_port_open:
            return channel
        deadline = self.clock.deadline(self._timeout_s)
        while (resolved := subscription.resolved_channel) is None:
            if deadline.is_over:
                raise ArchiveTimeoutError(f"the port of {channel} is not known")
            self.clock.sleep(POLL_INTERVAL_S)
        return resolved

    def await_signal(
        self, signal: RecordingSignal, recording_id: int | None = None, timeout_s: float = 10.0
    ) -> Signal:
        """Wait for a signal, keeping others for :meth:`signals`.

        Raises:
            ArchiveTimeoutError: It did not come in time.
            ArchiveError: It will not come: the archive is gone, or the session is closed.
        """
        deadline = self.clock.deadline(timeout_s)
        while True:
            self.poll()
            found = self._notices.take_signal(signal, recording_id)
            if found is not None:
                return found
            self._check_open()
            if deadline.is_over:
                raise ArchiveTimeoutError(f"no signal {signal.name} within {timeout_s} s")
            self.clock.sleep(POLL_INTERVAL_S)

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
        """Record every publisher of a channel and stream, each as a recording of its own.

        Args:
            channel: The channel of the publishers.
            stream_id: Which flow on the channel.
            location: ``LOCAL`` when the publishers are on the archive's driver, else ``REMOTE``.
            auto_stop: Stop recording when the first of these publishers ends.
            retention: How long each recording keeps its segment files; by default for good. :meth:`set_retention`
                changes it.

        Returns:
            The id of the archive's subscription.
        """
        return self._run(
            requests.start_recording(
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
        """Go on with a stopped recording.

        The publisher must start at its stop position, see :func:`headrace.archive.extension_channel`.
        """
        return self._run(
            requests.extend_recording(
                recording_id, channel, stream_id, location=location, auto_stop=auto_stop
            )
        )

    def stop_recording(self, channel: str, stream_id: int) -> None:
        """Stop what :meth:`start_recording` began. The stop position is known a moment later."""
        self._run(requests.stop_recording(channel, stream_id))

    def stop_recording_subscription(self, subscription_id: int) -> None:
        """Stop what :meth:`start_recording` began, by the id it gave."""
        self._run(requests.stop_recording_subscription(subscription_id))

    def stop_recording_by_id(self, recording_id: int) -> bool:
        """Stop one recording; false when it was not active."""
        return self._run(requests.stop_recording_by_id(recording_id))

    def add_recorded_publication(
        self, channel: str, stream_id: int, *, retention: Retention | None = None
    ) -> ExclusivePublication:
        """Add an exclusive publication that the archive records from its first byte.

        Blocks without the GIL until its recording has begun: then the archive lists it, and it has a position counter.
        The recording stops when the publication closes.

        Args:
            channel: The channel of the publication.
            stream_id: Which flow on the channel.
            retention: How long the recording keeps its segment files; by default for good.

        Raises:
            ArchiveError: The archive refused, or could not begin the recording.
            ArchiveTimeoutError: The recording did not begin within the session's ``message_timeout_s``.
        """
        publication = self._client.add_exclusive_publication(without_retention(channel), stream_id)
        try:
            self._run(steps.recorded(requests.recording_of(publication, channel, retention)))
        except BaseException:
            publication.close()
            raise
        return publication

    def add_durable_publication(
        self, channel: str, stream_id: int, *, retention: Retention | None = None
    ) -> DurablePublication:
        """As :meth:`add_recorded_publication`, and it can wait until what it published is recorded.

        Args:
            channel: The channel of the publication.
            stream_id: Which flow on the channel.
            retention: How long the recording keeps its segment files; by default for good.

        Raises:
            ArchiveError: As for :meth:`add_recorded_publication`.
            ArchiveTimeoutError: As for :meth:`add_recorded_publication`.
        """
        publication = self._client.add_exclusive_publication(without_retention(channel), stream_id)
        try:
            recording_id = self._run(steps.recorded(requests.recording_of(publication, channel, retention)))
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
            channel: Where to.
            stream_id: Which flow on the channel.
            position: Where to start; ``None`` for the beginning.
            length: Bytes to replay; ``None`` for everything, following a recording that is still active.
            limit_counter_id: A counter whose value the replay may not pass: what ends after it waits until it moves.
            file_io_max_length: Most bytes the archive reads at once.

        Returns:
            The replay's id; its lowest 32 bits are the session id of the replayed stream.
        """
        return self._run(
            requests.start_replay(
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
                With ``aeron:udp?control-mode=response|control=host:port``, an address of the archive's, the messages
                come back through a connection that this program opens: it needs no address that others reach.
            stream_id: Which flow on the channel.
            limit_counter_id: A counter whose value the replay may not pass: what ends after it waits until it moves.
                The replay ends in order when the counter is closed.
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
                resolved = self._resolved(subscription, channel)
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
            self._await_connection(over)
            ids = self._run(steps.replay_started(what.request(channel, stream_id), over))
            undo.pop_all()
        return Replay(self, self, Replayed(what.recording_id, *ids, subscription, images, over))

    def follow(
        self, recording_id: int, *, from_position: Begin = "start", **settings: Unpack[FollowSettings]
    ) -> Follow:
        """Read a recording and then its publisher's stream: each message once, in order, without an end.

        ::

            with archive.follow(recording_id, from_position=last) as messages:
                for message in messages:
                    handle(message.payload)
                    last = message.position

        Goes back to the archive when the live stream is lost or this program was too slow for it, and to the live
        stream when it has caught up, as often as that happens. A recording that has stopped is followed on when it is
        extended. Asks over a session of its own, with the settings of this one, and opens it again whenever it is
        lost. Never waits.

        Args:
            recording_id: Which recording.
            from_position: A position where a message begins or ends, as :attr:`headrace.Message.position` is;
                ``"start"``; or ``"live"`` for what is published from now on.
            **settings: ``live_channel`` and ``live_stream_id``: where this program receives the publisher; those of the
                recording by default. ``live_destinations``: the paths by which the stream comes, channels such as
                ``aeron:udp?endpoint=me:9000``, for a ``live_channel`` with ``control-mode=manual``: it goes on while
                one of them lives. ``replay_channel`` and ``replay_stream_id``: where the archive replays to,
                ``aeron:ipc``, an address of this machine, with port 0 for any, or a response channel as for
                :meth:`replay`; by default the way on which the archive answers this session. ``timeout_s``: how long
                it may try without success before it raises; ``message_timeout_s`` of this session by default.
                ``on_live`` and ``on_left_live``: called with the position when it becomes live and when it falls back,
                on the thread that polls.

        Raises:
            ConfigError: An argument is wrong. What the archive says comes when messages are taken.
        """
        return follow(self, recording_id, from_position, **settings)

    def stop_replay(self, replay_id: int) -> None:
        """Stop one replay; one that has ended is no error."""
        self._run(requests.stop_replay(replay_id))

    def stop_all_replays(self, recording_id: int | None = None) -> None:
        """Stop all replays of a recording; without an id, all replays of the archive."""
        self._run(requests.stop_all_replays(recording_id))

    # --- replication -----------------------------------------------------------------------------------------------

    def replicate(
        self, source_recording_id: int, source_channel: str, **settings: Unpack[ReplicationSettings]
    ) -> Replication:
        """Have the archive copy a recording of another archive into one of its own.

        ::

            replication = standby.replicate(recording_id, "aeron:udp?endpoint=primary:8010")
            position = replication.wait(timeout_s=60)

        The two archives do that between them; this program only waits, if it wants to. A replication that broke off is
        asked for again with ``destination_id``, and goes on where the copy ends.

        Args:
            source_recording_id: The recording in the other archive.
            source_channel: Where the other archive takes requests, as this archive reaches it.
            **settings: All keywords, and what they are by default:

                - ``source_stream_id``: stream of the requests to the other archive; 10.
                - ``destination_id``: the recording of this archive to go on with; ``None`` for a new one.
                - ``stop_position``: where the copy is to end; ``None`` for where the source ends. While the source is
                  being recorded, the copy follows it.
                - ``live_destination``: where the source's publisher sends. The copy catches up through the other
                  archive, then goes on with the publisher itself, and the replication has ended.
                - ``replication_channel``: address of this archive at which the copy arrives; by default the archive's
                  setting ``replication_channel``. With ``aeron:udp?control-mode=response|control=host:port``, an
                  address of the other archive's, the copy comes back through a connection to the other archive, which
                  needs no address of this one. Not with ``live_destination`` and tags.
                - ``session_id``: of the stream that brings the copy; by default one that no other has. Not with
                  ``live_destination`` and response channels.
                - ``channel_tag_id``, ``subscription_tag_id``: tags for the archive's subscription.
                - ``file_io_max_length``: most bytes that the other archive reads at once.
                - ``credentials``: for the other archive.
                - ``source_response_channel``: where the other archive answers this archive; by default an address that
                  this archive chooses.

        Raises:
            ArchiveError: The archive refused. What goes wrong later, :meth:`Replication.wait` raises.
            ConfigError: An argument is unknown or wrong.
        """
        watch = self._run(replication_begun(self, source_recording_id, source_channel, **settings))
        return Replication(self, watch)

    def stop_replication(self, replication_id: int) -> None:
        """Stop a replication, by its id; what was copied stays.

        Raises:
            ArchiveError: It has ended, or there was none with this id.
        """
        self._run(requests.stop_replication(replication_id))

    # --- queries ---------------------------------------------------------------------------------------------------

    def list_recordings(
        self,
        from_recording_id: int = 0,
        count: int = requests.COUNT_MAX,
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
        return self._run(
            requests.list_recordings(from_recording_id, count, channel=channel, stream_id=stream_id)
        )

    def find_recording(self, recording_id: int) -> RecordingDescriptor | None:
        """One recording; ``None`` when it is unknown."""
        return self._run(requests.find_recording(recording_id))

    def list_recording_subscriptions(
        self, channel: str = "", stream_id: int | None = None
    ) -> list[tuple[int, int, str]]:
        """What is being recorded now, as (subscription id, stream id, channel)."""
        return self._run(requests.list_recording_subscriptions(channel, stream_id))

    def find_last_matching_recording(
        self, channel: str, stream_id: int, session_id: int, *, min_recording_id: int = 0
    ) -> int | None:
        """The id of the latest recording of a publisher; ``None`` when the archive has none."""
        return self._run(
            requests.find_last_matching_recording(
                channel, stream_id, session_id, min_recording_id=min_recording_id
            )
        )

    def start_position(self, recording_id: int) -> int:
        """Where a recording begins."""
        return self._run(requests.start_position(recording_id))

    def stop_position(self, recording_id: int) -> int | None:
        """Where a recording ended; ``None`` while it is active."""
        return self._run(requests.stop_position(recording_id))

    def recording_position(self, recording_id: int) -> int | None:
        """How far an active recording has come; ``None`` when it is not active."""
        return self._run(requests.recording_position(recording_id))

    def max_recorded_position(self, recording_id: int) -> int:
        """How far a recording has come, active or not."""
        return self._run(requests.max_recorded_position(recording_id))

    # --- storage ---------------------------------------------------------------------------------------------------

    def truncate_recording(self, recording_id: int, position: int) -> int:
        """Delete everything recorded after a position from a stopped recording. This cannot be undone.

        Args:
            recording_id: Which recording. Its replays are stopped.
            position: The new stop position; a frame must begin or end there.

        Returns:
            The number of segment files that the archive deletes.
        """
        return self._run(requests.truncate_recording(recording_id, position))

    def purge_recording(self, recording_id: int) -> int:
        """Delete a whole recording, which must be stopped. This cannot be undone.

        Returns:
            The number of files that the archive deletes.
        """
        return self._run(requests.purge_recording(recording_id))

    def detach_segments(self, recording_id: int, new_start_position: int) -> None:
        """Have a recording begin in a later segment file. The files before it stay on disk, and belong to no recording.

        Args:
            recording_id: Which recording; it may be active. No replay may be in a file before the position.
            new_start_position: Where one of its segment files begins, after the first:
                ``descriptor.geometry.segment_base(position)`` is the beginning of the one with a position.
        """
        self._run(requests.detach_segments(recording_id, new_start_position))

    def delete_detached_segments(self, recording_id: int) -> int:
        """Delete the segment files before the start of a recording. This cannot be undone.

        Returns:
            The number of segment files that the archive deletes; the signal DELETE tells when they are gone.
        """
        return self._run(requests.delete_detached_segments(recording_id))

    def purge_segments(self, recording_id: int, new_start_position: int) -> int:
        """Have a recording begin in a later segment file, and delete the files before. This cannot be undone.

        Files that were detached earlier stay.

        Args:
            recording_id: As for :meth:`detach_segments`.
            new_start_position: As for :meth:`detach_segments`.

        Returns:
            The number of segment files that the archive deletes; the signal DELETE tells when they are gone.
        """
        return self._run(requests.purge_segments(recording_id, new_start_position))

    def attach_segments(self, recording_id: int) -> int:
        """Take back segment files that were detached: those that end where the recording begins, and those before.

        The archive looks at the length of each file, its first frame and its end.

        Args:
            recording_id: Which recording; it may be active.

        Returns:
            The number of segment files that belong to the recording again; 0 if there are none.

        Raises:
            ArchiveError: A file is not of the recording, or not whole. Files after it were attached.
        """
        return self._run(requests.attach_segments(recording_id))

    def migrate_segments(self, source_id: int, destination_id: int) -> int:
        """Make all of a stopped recording the beginning, or the end, of another one. The source is empty afterwards.

        Both must be of one stream, with the same lengths of terms, segment files and MTU, and join where segment
        files of both begin.

        Args:
            source_id: The recording whose segment files move. It has no replays.
            destination_id: The recording that gets them. It may be active if the source ends where it begins.

        Returns:
            The number of segment files that have moved.
        """
        return self._run(requests.migrate_segments(source_id, destination_id))

    def set_retention(self, recording_id: int, retention: Retention | None) -> None:
        """Say how long a recording keeps its segment files; the archive **deletes for good** those it need not keep.

        Only whole files at the beginning go, and never the one with the newest data. A file stays while a replay reads
        it or one before it, and while a hold is on it (:func:`headrace.archive.files.hold`). The archive looks every
        ten seconds. An archive of Aeron notes the retention in the recording's channel, and does nothing.

        Args:
            recording_id: Which recording; it may be active.
            retention: What is kept; ``None`` for everything, from now on.

        Raises:
            ArchiveError: The recording is unknown.
        """
        self._run(requests.set_retention(recording_id, retention))

    def update_channel(self, recording_id: int, channel: str) -> None:
        """Replace the channel in a recording's description, with the retention in it."""
        self._run(requests.update_channel(recording_id, channel))


def _lock_timeout_s(left_s: float | None) -> float:
    return threading.TIMEOUT_MAX if left_s is None else min(left_s, threading.TIMEOUT_MAX)
