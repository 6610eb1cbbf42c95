"""A backup copies snapshots and the log of a cluster that runs, so that a node can start from the copy."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from headrace._agent.agent import hear
from headrace._agent.tasks import RunningTask, Task, until
from headrace._base.checks import check_callable
from headrace._base.exceptions import ArchiveError, HeadraceError
from headrace.archive.client import calls
from headrace.cluster.backup.config import ClusterBackupConfig
from headrace.cluster.backup.context import Context
from headrace.cluster.backup.copying import Copying
from headrace.cluster.backup.counters import BackupCounters
from headrace.cluster.backup.queries import NoAnswerError, Queries
from headrace.cluster.backup.states import BackupState
from headrace.cluster.common.cluster_agent import ClusterAgent
from headrace.cluster.common.log import open_events
from headrace.cluster.common.marks import mark_fields
from headrace.cluster.common.node_archive import NodeArchive
from headrace.cluster.errors import ClusterTerminalError
from headrace.cluster.files.mark_file import ClusterComponentType
from headrace.cluster.files.recording_log import RecordingLog
from headrace.cluster.files.recovery_plan import log_is_gone

if TYPE_CHECKING:
    from typing import Unpack

    from headrace._agent.storage import Storage
    from headrace._settings.keywords import ClusterBackupSettings
    from headrace.client._local_driver import LocalDriver
    from headrace.clock import Clock
    from headrace.cluster.files.mark_file import MarkFields

__all__ = ["ClusterBackup"]

_NS_PER_S, _NS_PER_MS = 1_000_000_000, 1_000_000
_SLOW_TICK_NS = 10_000_000
_SYNC_ALL = 2
_STORAGE_SPACE = "STORAGE_SPACE"
_INGRESS_STREAM = 101


class ClusterBackup(ClusterAgent):
    """A backup of a cluster, on a driver and beside an archive on it, outside of the cluster's machines.

    It asks a member what there is to copy, copies the latest snapshot, and then records the log as the cluster commits
    it. After each interval it asks again, and copies a new snapshot. Its directory and its archive's are those of a
    member: a node started on them continues with all that was copied.

    Runs in a thread of its own; with ``is_invoked=True`` in yours instead, which then calls :meth:`do_work`. A context
    manager that closes it.

    Args:
        config: All settings as one object; keywords override it.
        properties: Settings by the specification's property names, such as ``{"aeron.cluster.dir": "/backup"}``.
        driver: The driver, if it runs in this process; also a node of a simulated world.
        is_invoked: No thread; the program calls :meth:`do_work`, at least every few seconds.
        clock: Where it takes the time from; by default the clock of `driver`, or of the machine.
        storage: The directory of the backup's files; by default that of ``cluster_directory``.
        chance: The order in which it asks members.
        on_error: Told of each failure as text, besides the error log in the mark file and the logger
            ``headrace.cluster``.
        on_event: Told of each change of state as text, as it happens, besides the event log in the directory.
        **settings: See :class:`headrace.cluster.ClusterBackupConfig`.

    Attributes:
        config: The settings.
        awaited: What the backup polls: a loop that idles may wait for messages on these subscriptions.

    Raises:
        ConfigError: A setting is wrong.
        ClusterFileError: Something else runs on the directory, or a file is damaged.
        DriverTimeoutError: No driver answers on the directory.
    """

    _KIND = _NAME = _owner = "backup"
    config: ClusterBackupConfig

    def __init__(
        self,
        config: ClusterBackupConfig | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        driver: LocalDriver | None = None,
        is_invoked: bool = False,
        clock: Clock | None = None,
        storage: Storage | None = None,
        chance: random.Random | None = None,
        on_error: Callable[[str], object] | None = None,
        on_event: Callable[[str], object] | None = None,
        **settings: Unpack[ClusterBackupSettings],
    ) -> None:
        super().__init__(ClusterBackupConfig.of(config, properties, **settings), driver, clock, storage)
        check_callable("on_event", on_event)
        self._on_event = on_event
        self._chance = chance or random.Random()
        self._task = RunningTask()
        self._start(driver, on_error, is_invoked=is_invoked, has_defaults=config is None)

    # --- start -----------------------------------------------------------------------------------------------------

    def _mark_fields(self, driver: LocalDriver | None) -> MarkFields:
        return mark_fields(
            self.config,
            driver,
            ClusterComponentType.BACKUP,
            self.config.error_buffer_length,
            ingress_stream_id=_INGRESS_STREAM,
        )

    def _open_parts(self) -> None:
        config = self.config
        events = open_events(self._storage, self._clock, self._log, self._on_event)
        recording_log = RecordingLog(self._storage, sync_level=_SYNC_ALL)
        self._held.callback(recording_log.close)
        counters = BackupCounters(self._client, config.cluster_id)
        self._held.callback(counters.close)
        self._log.show_count(counters.errors)
        archive = NodeArchive(self._client, config.own_archive)
        self._held.callback(archive.close)
        self._context = Context(
            config=config,
            client=self._client,
            clock=self._clock,
            archive=archive,
            counters=counters,
            log=self._log,
            recording_log=recording_log,
            events=events,
        )
        self._copying = Copying(self._context)
        self._held.callback(self._copying.leave)
        self._held.callback(self._task.close)
        self._queries = Queries(self._context, self._chance)
        self.awaited = (self._queries.subscription,)
        self._next_tick_ns = self._clock.monotonic_ns()
        self._has_archive = False
        self._task.begin(self._started())

    @property
    def _role_name(self) -> str:
        return f"cluster-backup-{self.config.cluster_id}"

    def _started(self) -> Task[None]:
        """From the files to the first query."""
        archive, recording_log = self._context.archive, self._context.recording_log
        try:
            yield from archive.connected()
            last = recording_log.last_term
            if last is not None and not (yield from archive.asked(calls.find_recording(last.recording_id))):
                raise log_is_gone(recording_log)
        except HeadraceError as failure:
            raise ClusterTerminalError(f"the backup cannot start: {failure}") from failure
        self._has_archive = True
        yield from self._backed_up()

    # --- turns -----------------------------------------------------------------------------------------------------

    def _turn(self) -> int:
        work_count = hear(self._client)
        self._context.archive.step()
        work_count += self._queries.poll()
        try:
            self._copying.step()
            now_ns = self._clock.monotonic_ns()
            if now_ns >= self._next_tick_ns:
                self._next_tick_ns = now_ns + _SLOW_TICK_NS
                self._slow_tick(now_ns)
            return work_count + self._task.step()
        except ClusterTerminalError:
            raise
        except HeadraceError as failure:
            self._check_lasts(failure)
            self._reset(failure)
            return work_count + 1

    def _slow_tick(self, now_ns: int) -> None:
        """Look whether all goes on, and show how far the log is.

        Raises:
            ClusterTerminalError: The backup's archive is gone.
            ClusterError: The log does not come any more.
        """
        self._mark(now_ns)
        archive = self._context.archive
        if self._has_archive and not archive.is_ready:
            raise ClusterTerminalError(f"local archive is not connected: {archive.failure}")
        self._copying.check()
        if self._copying.position:
            self._context.counters.live_position.value = self._copying.position

    @staticmethod
    def _check_lasts(failure: HeadraceError) -> None:
        """Refuse to try again after what the next attempt meets too."""
        if isinstance(failure, ArchiveError) and failure.code_name == _STORAGE_SPACE:
            raise ClusterTerminalError(f"the disk of the backup's archive is full: {failure}") from failure

    def _reset(self, failure: HeadraceError) -> None:
        """Give up what was begun, and try again after a pause."""
        self._log.error(f"{failure}", failure)
        self._context.enter(BackupState.RESET_BACKUP, str(failure), is_fault=True)
        self._task.close()
        self._copying.leave()
        self._queries.leave_member()
        self._task.begin(self._cooled_down())

    def _cooled_down(self) -> Task[None]:
        deadline = self._clock.deadline(self.config.cool_down_interval_ns / _NS_PER_S)
        yield from until(lambda: deadline.is_over)
        yield from self._backed_up()

    # --- what it does ----------------------------------------------------------------------------------------------

    def _backed_up(self) -> Task[None]:
        """Query and copy, again and again."""
        context = self._context
        reason = "a query is due"
        while True:
            context.enter(BackupState.BACKUP_QUERY, reason)
            try:
                answer = yield from self._queries.answered()
            except NoAnswerError as failure:
                if not self._copying.has_log:
                    raise
                # The log comes all the same, such as during an election.
                self._log.warning(str(failure))
                reason = "no member answers; the log comes as before"
            else:
                yield from self._copying.copied(answer)
                reason = "all that the member named is copied or under way"
            interval_ns = self.config.interval_ns
            context.counters.next_query_ms.value = self._clock.epoch_ms() + interval_ns // _NS_PER_MS
            context.enter(BackupState.BACKING_UP, reason)
            reason = "the next query is due"
            yield from until(lambda: self._clock.epoch_ms() >= context.counters.next_query_ms.value)

    # --- life ------------------------------------------------------------------------------------------------------

    def _on_failure(self, failure: BaseException) -> None:
        self._log.error(f"unexpected termination: {failure}", failure)
        # With its driver the counter is gone.
        with contextlib.suppress(HeadraceError):
            self._context.enter(BackupState.CLOSED, repr(failure), is_fault=True)

    @property
    def state(self) -> BackupState:
        """What the backup does."""
        return self._context.state

    @property
    def live_position(self) -> int:
        """Up to where it has the log; 0 while none comes."""
        return self._copying.position

    @property
    def snapshot_count(self) -> int:
        """Snapshots that were copied since the start."""
        return self._context.counters.snapshots.value

    def query(self) -> None:
        """Ask a member now what is new, without waiting for the interval; a later turn does it."""
        self._context.counters.next_query_ms.value = 0

    def close(self) -> None:
        """End replay and recording, and give up the directory. Waits for the backup's thread.

        In ``on_error``, which runs within a turn, it does not wait: the backup closes after that. Closing again does
        nothing.
        """
        super().close()

    def _close(self) -> None:
        if self._failure is None:
            with contextlib.suppress(HeadraceError):
                self._context.enter(BackupState.CLOSED, "closed")
        self._release()
