"""The archive itself: opened on a directory, stepped by one thread, closed in order."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from headrace._agent.agent import Agent, hear
from headrace._agent.error_log import ErrorLog
from headrace._agent.log import save_old_errors
from headrace._agent.mark_file import HEADER_LENGTH
from headrace._agent.storage import DirectoryStorage, Storage
from headrace._base.checks import check_callable
from headrace._base.exceptions import HeadraceError
from headrace._base.states import Life
from headrace.archive.errors import ArchiveFileError
from headrace.archive.files.catalog import Catalog
from headrace.archive.files.mark_file import ArchiveMarkFile, MarkFields
from headrace.archive.server.config import ArchiveConfig
from headrace.archive.server.context import Context
from headrace.archive.server.control import Control
from headrace.archive.server.counters import ArchiveCounters
from headrace.archive.server.deletions import Deletions
from headrace.archive.server.events import RecordingEvents
from headrace.archive.server.groups import Groups
from headrace.archive.server.log import ArchiveLog
from headrace.archive.server.named_streams import NamedStreams
from headrace.archive.server.recorder import Recorder
from headrace.archive.server.recorder_thread import RecorderThread
from headrace.archive.server.recording_store import StoredRecordings
from headrace.archive.server.recordings import Recordings
from headrace.archive.server.recovery import open_files
from headrace.archive.server.replay_tokens import ReplayTokens
from headrace.archive.server.replays import Replays
from headrace.archive.server.replications import Replications
from headrace.archive.server.request_handlers import Requests
from headrace.archive.server.retention import Expiry
from headrace.archive.server.segments import Segments
from headrace.archive.server.states import ARCHIVE, ArchiveState
from headrace.archive.server.stream_requests import StreamRequests
from headrace.channel import format_duration
from headrace.client import Client
from headrace.client._local_driver import check_driver
from headrace.clock import SYSTEM_CLOCK, Clock
from headrace.event_log import EventRecorder
from headrace.positions import NULL_VALUE
from headrace.security.plugins import authenticator_named, authorisation_named
from headrace.security.verdicts import Verdicts

if TYPE_CHECKING:
    from typing import Unpack

    from headrace._settings.keywords import ArchiveSettings
    from headrace.client._local_driver import LocalDriver

__all__ = ["ArchiveServer"]


class ArchiveServer(Agent):
    """An archive running on a driver, in this process.

    Records streams into files, answers clients (:class:`headrace.Archive`) and replays to them. Starts two threads, or
    one with ``threading_mode="SHARED"``; with ``is_invoked=True`` it starts none, and the program calls
    :meth:`do_work`.

    A context manager that closes the archive.

    Args:
        config: All settings as one object; keywords override it.
        properties: Settings by the specification's property names, such as ``{"aeron.archive.dir": "/data"}``.
        driver: The driver, if it runs in this process; also a node of a simulated world.
        is_invoked: Start no thread; the program calls :meth:`do_work`, at least every few seconds. An authenticator
            runs in that call, and must not block.
        clock: The clock; by default that of `driver`, or of the machine.
        storage: The archive's files; by default those of ``archive_directory``.
        chance: The source of numbers that others must not guess; by default the machine.
        on_error: Called with the text of each failure of the archive. The error log in the mark file and the logger
            ``headrace.archive`` also have them, and warnings as well.
        on_event: Called with the text of each change of state, which the event log also has. An exception of it becomes
            an error in the archive's log, and ends nothing.
        **settings: See :class:`headrace.archive.ArchiveConfig`.

    Attributes:
        config: The settings.
        archive_id: Identifies the archive, on the wire and in counters.

    Raises:
        ConfigError: A setting is wrong.
        MissingExtraError: A package that a setting needs is not installed.
        ArchiveFileError: Another archive runs on the directory, the disk refuses a file, or a file is damaged.
        DriverTimeoutError: No driver answers on the directory.
    """

    _KIND = "archive"
    _log: ArchiveLog
    _mark_file: ArchiveMarkFile

    def __init__(
        self,
        config: ArchiveConfig | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        driver: LocalDriver | None = None,
        is_invoked: bool = False,
        clock: Clock | None = None,
        storage: Storage | None = None,
        chance: random.Random | None = None,
        on_error: Callable[[str], object] | None = None,
        on_event: Callable[[str], object] | None = None,
        **settings: Unpack[ArchiveSettings],
    ) -> None:
        super().__init__()
        check_driver(driver)
        check_callable("on_error", on_error)
        check_callable("on_event", on_event)
        doubts = ArchiveConfig.environment_doubts(os.environ) if config is None else []
        self.config = config = ArchiveConfig.of(config, properties, **settings)
        authenticator = config.authenticator
        if authenticator is not None:
            authenticator = authenticator_named("authenticator", authenticator)
        self._verdicts = Verdicts(authenticator, has_thread=not is_invoked)
        self._authorisation = authorisation_named("authorisation", config.authorisation)
        self._clock = clock or (SYSTEM_CLOCK if driver is None else driver._clock)
        self._storage = storage or DirectoryStorage(config.archive_directory)
        self._threading_mode = "INVOKER" if is_invoked else config.threading_mode
        start_ms = self._clock.epoch_ms()
        with _naming(self._storage):
            self._mark_file = ArchiveMarkFile(
                self._storage,
                config.error_buffer_length,
                start_ms,
                config.mark_file_liveness_timeout_ms,
                config.mark_file_directory,
            )
        self._forgets()
        entries = ErrorLog(self._mark_file.write_errors, config.error_buffer_length)
        self._log = ArchiveLog(entries, self._clock, on_error)
        self._events = EventRecorder(self._clock, self._log.error, on_event)
        self._life = Life(ARCHIVE)
        self._counters: ArchiveCounters | None = None
        self._client: Client | None = None
        self._catalog: Catalog | None = None
        try:
            with _naming(self._storage):
                self._open(driver, chance or random.SystemRandom(), start_ms)
            self._log.warn_of(doubts)
        except BaseException:
            self._release()
            raise
        self._begins()
        if not is_invoked:
            self._start_threads()

    def _start_threads(self) -> None:
        # A request ends a pause, so that clients need not wait for it; a message to record does not, see duty_cycle.py.
        awaited, idle_strategy = self._control.subscriptions, self.config.idle_strategy
        self._begin_thread("archive", self.do_work, idle_strategy, lambda: awaited)
        if self._recorder_thread is not None:
            # A client that waits for its message to be recorded sends a request, which ends this pause as well.
            turn = self._recorder_thread.do_work
            self._begin_thread("archive-recorder", turn, idle_strategy, lambda: awaited)

    def _open(self, driver: LocalDriver | None, chance: random.Random, start_ms: int) -> None:
        """Open the files, then the driver, then the parts; at last the mark file says that the archive is ready."""
        save_old_errors(self._mark_file.old_errors, "archive", self._storage, start_ms, self._log)
        self._mark_file.clear_errors()
        self._open_events(start_ms)
        self._catalog = catalog = open_files(
            self.config,
            self._storage,
            start_ms,
            self._log.warning,
            events=self._events,
            on_step=self._renew_mark,
        )
        self._renew_mark()
        self._client = client = self._connect(driver, self.config.aeron_directory, "archive")
        self._make_parts(self._context(client, catalog), chance)
        self._mark_file.write_fields(self._mark_fields(start_ms))
        self._mark_file.ready(start_ms)
        self._life.begin(self._events, "started", self.archive_id, detail=client.directory)

    def _context(self, client: Client, catalog: Catalog) -> Context:
        """The context of the parts, with the archive's id and counters."""
        config = self.config
        self.archive_id = (
            config.archive_id if config.archive_id != NULL_VALUE else client.next_correlation_id()
        )
        threshold = format_duration(config.conductor_cycle_threshold_ns)
        self._counters = ArchiveCounters(client, self.archive_id, threshold, self._threading_mode)
        self._log.show_count(self._counters.errors)
        return Context(
            config=config,
            client=client,
            storage=self._storage,
            catalog=catalog,
            stored=StoredRecordings(catalog, self._events),
            clock=self._clock,
            archive_id=self.archive_id,
            counters=self._counters,
            log=self._log,
            events=self._events,
            authorisation=self._authorisation,
        )

    def _make_parts(self, context: Context, chance: random.Random) -> None:
        config, events = self.config, None
        if config.recording_events_enabled and config.recording_events_channel:
            channel = config.recording_events_channel
            events = context.client.add_exclusive_publication(channel, config.recording_events_stream_id)
        self._deletions = Deletions(
            context,
            lambda recording_id: self._replays.has_replays(recording_id),
            lambda recording_id, reason: self._replays.end_all(recording_id, reason),
        )
        self._recorder_thread: RecorderThread | None = None
        self._recorder = Recorder(context.log)
        if self._threading_mode == "DEDICATED":
            self._recorder = self._recorder_thread = RecorderThread(context.log, context.clock)
        self._recordings = Recordings(context, self._recorder, RecordingEvents(events))
        tokens = ReplayTokens(context.clock, config.connect_timeout_ns, chance)
        self._replays = Replays(context, self._recordings, tokens)
        self._segments = Segments(context, self._recordings, self._replays, self._deletions)
        ids = itertools.count(chance.randrange(1 << 31))
        self._replications = Replications(context, self._recordings, ids, chance)
        self._expiry = Expiry(
            context, self._recordings, self._replays, self._segments, self._deletions, self._replications
        )
        self._named_streams = NamedStreams(context, self._recordings)
        self._groups = Groups(context, self._named_streams)
        requests = Requests(
            context,
            self._recordings,
            self._replays,
            self._deletions,
            self._segments,
            self._replications,
            StreamRequests(self._named_streams, self._groups),
        )
        self._control = Control(context, requests, ids, self._verdicts)

    def _open_events(self, start_ms: int) -> None:
        """Make the event log, beside the files; an archive without it loses nothing else."""
        directory = self._storage.event_directory
        if self.config.event_limit == 0 or directory is None:
            return
        try:
            self._events.open(directory, self.config.event_limit, start_ms)
        except OSError as failure:
            self._log.warning(
                f"no event log: {failure}; with aeron.archive.event.limit=0 the archive makes none"
            )

    def _mark_fields(self, start_ms: int) -> MarkFields:
        config = self.config
        assert self._client is not None, "the client comes before the mark file is ready"
        return MarkFields(
            version=0,
            activity_timestamp=start_ms,
            start_timestamp=start_ms,
            pid=os.getpid(),
            control_stream_id=config.control_stream_id,
            local_control_stream_id=config.local_control_stream_id,
            events_stream_id=config.recording_events_stream_id,
            header_length=HEADER_LENGTH,
            error_buffer_length=config.error_buffer_length,
            archive_id=self.archive_id,
            control_channel=(config.control_channel or "") if config.control_channel_enabled else "",
            local_control_channel=config.local_control_channel,
            events_channel=config.recording_events_channel or "",
            aeron_directory=self._client.directory,
        )

    def do_work(self) -> int:
        """Do one turn; returns the work count. Only with ``is_invoked=True``."""
        assert self._client is not None, "open until closed"
        now_ns = self._clock.monotonic_ns()
        work_count = hear(self._client)
        if self._recorder_thread is None:
            work_count += self._recorder.do_work()
        else:
            work_count += self._recorder_thread.look_at_resting()
        # Before requests: who sees its publication connected and asks for the recording of it is to find it.
        work_count += self._named_streams.do_work() + self._recordings.do_work()
        work_count += self._control.do_work() + self._groups.do_work()
        work_count += self._replays.do_work()
        work_count += self._replications.do_work()
        work_count += self._deletions.do_work()
        work_count += self._segments.do_work()
        work_count += self._expiry.do_work()
        self._mark(now_ns)
        self._note_cycle(self._clock.monotonic_ns() - now_ns)
        return work_count

    def record(self) -> int:
        """Write messages that have arrived for running recordings; returns the work count.

        Part of a turn, for programs that wait for messages to be recorded. Only with ``is_invoked=True``.
        """
        return 0 if self._is_closed or self._recorder_thread is not None else self._recorder.do_work()

    def _renew_mark(self) -> None:
        """Renew the mark file before a step of the start that may take long."""
        self._mark_file.update(self._clock.epoch_ms())

    def _note_cycle(self, duration_ns: int) -> None:
        counters = self._counters
        assert counters is not None, "open until closed"
        if duration_ns > counters.max_cycle_time.value:
            counters.max_cycle_time.value = duration_ns
        if duration_ns > self.config.conductor_cycle_threshold_ns:
            counters.cycle_time_exceeded.get_and_add(1)

    def _stop_turns(self) -> None:
        super()._stop_turns()
        if self._recorder_thread is not None:
            self._recorder_thread.wake_for_good()

    def _on_failure(self, failure: BaseException) -> None:
        self._life.enter(ArchiveState.FAILED, repr(failure), is_fault=True)
        self._log.error(f"the archive stopped: {failure!r}", failure)

    @property
    def directory(self) -> str:
        """The directory of the archive's files."""
        return self._storage.describe()

    @property
    def aeron_directory(self) -> str:
        """The driver's directory."""
        assert self._client is not None
        return self._client.directory

    def close(self) -> None:
        """Stop recordings where they are, end replays and sessions, and release the directory.

        Waits for the archive's threads. When a handler on one of these threads calls it, the archive closes after the
        turn. Closing again does nothing.
        """
        super().close()

    def _close(self) -> None:
        try:
            self._replications.close()
            self._recordings.close()
            self._replays.close()
            if self._counters is not None:
                # Before the sessions: from the counters their clients know that the archive is gone.
                self._counters.close()
            self._control.close()
            self._life.enter(ArchiveState.CLOSED, "closed")
        finally:
            self._release()

    def _release(self) -> None:
        self._is_closed = True
        # In this order, and each whatever becomes of those before: a disk that refuses keeps no stream and no lock.
        with contextlib.ExitStack() as last:
            last.callback(self._mark_file.close)
            for held in (self._client, self._counters, self._catalog):
                if held is not None:
                    last.callback(held.close)

    def __repr__(self) -> str:
        return f"ArchiveServer({self.directory!r}{', closed' if self._is_closed else ''})"


@contextlib.contextmanager
def _naming(storage: Storage) -> Iterator[None]:
    """Name the directory in errors of the disk while the archive starts.

    Raises:
        ArchiveFileError: The disk refuses something.
    """
    try:
        yield
    except HeadraceError:
        # Some are errors of the system too, such as a time-out.
        raise
    except OSError as refusal:
        raise ArchiveFileError(
            f"an archive cannot start in {storage.describe()}: {refusal}; it must be able to create, read and write "
            "files there: name another directory, or check the owner, the permissions and the free space of this one"
        ) from refusal
