"""Runs a service: reads the cluster's log, calls the service's handlers, takes and loads its snapshots.

    starting   waits for the consensus module's counters, loads the snapshot, acknowledges
    running    joins the logs that the module names, one after the other, and reads each up to the commit position
    ended      at the position that the module named, when the module is gone, or by a fault

What takes many turns is a task, one at a time: the log is not read meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from headrace._agent.agent import hear
from headrace._agent.tasks import RunningTask, Task, until
from headrace._base.exceptions import ArchiveError, HeadraceError
from headrace.clock import SYSTEM_CLOCK, Deadline
from headrace.cluster.common.cluster_agent import ClusterAgent
from headrace.cluster.common.counters import (
    ClusterCounter,
    check_streams,
    cluster_id_of,
    find,
    recovery_state,
)
from headrace.cluster.common.marks import mark_fields
from headrace.cluster.common.snapshots import SnapshotPoint, other_snapshot
from headrace.cluster.errors import ClusterError, ClusterTerminalError
from headrace.cluster.files.mark_file import ClusterComponentType, service_mark_name
from headrace.cluster.protocol.codes import Role
from headrace.cluster.protocol.control import (
    JoinLog,
    RequestServiceAck,
    ServiceFollowerRead,
    ServiceRead,
    ServiceTerminationPosition,
)
from headrace.cluster.protocol.log import takes_snapshot
from headrace.cluster.service import egress
from headrace.cluster.service.archive_session import ArchiveSession
from headrace.cluster.service.callbacks import Callbacks, HandlerRaised, handled, held_up, told
from headrace.cluster.service.cluster import Cluster
from headrace.cluster.service.clustered_service import ClusteredService
from headrace.cluster.service.config import ContainerConfig
from headrace.cluster.service.control import Control
from headrace.cluster.service.counters import ContainerCounters, note_duration
from headrace.cluster.service.keep_alive import KeepAlive, Watched
from headrace.cluster.service.log_adapter import ContainerError, Entries
from headrace.cluster.service.log_reader import Reading
from headrace.cluster.service.reads import Reads
from headrace.cluster.service.session import ClientSession
from headrace.cluster.service.snapshot import loaded, stored
from headrace.cluster.service.state import ServiceState
from headrace.cluster.service.state_hash import StateHashes
from headrace.cluster.service.validation import check_service
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from typing import Unpack

    from headrace._agent.storage import Storage
    from headrace._base.counter_record import CounterRecord
    from headrace._settings.keywords import ContainerSettings
    from headrace.client import Client
    from headrace.client._local_driver import LocalDriver
    from headrace.clock import Clock
    from headrace.cluster.files.mark_file import MarkFields
    from headrace.cluster.protocol.log import ClusterActionRequest

__all__ = ["ServiceContainer"]

# How long a failing do_background_work is left alone.
_BACKGROUND_RETRY_NS = 1_000_000_000
_TICK_NS = 1_000_000
# After so long without the cluster's module it may be another cluster's that is meant.
_DOUBTFUL_S = 5.0
_MODULE_AWAITED_S = 60.0
_ACK_ATTEMPTS_AT_END = 5
_STORAGE_SPACE = "STORAGE_SPACE"


class ServiceContainer(ClusterAgent):
    """A service of a cluster's member, running on the member's driver, in this process.

    Runs in a thread of its own; with ``is_invoked=True`` in yours instead, which then calls :meth:`do_work`. It waits
    for the consensus module of its cluster, up to a minute.

    A context manager that closes the container.

    Args:
        service: The service.
        config: All settings as one object; keywords override it.
        properties: Settings by the specification's property names.
        driver: The driver, if it runs in this process; also a node of a simulated world.
        is_invoked: No thread; the program calls :meth:`do_work`.
        clock: Where it takes the time from; by default the clock of `driver`, or of the machine. No handler sees it.
        storage: The directory of the cluster's files; by default that of ``cluster_directory``.
        on_error: Told of each failure as text, besides the error log in the mark file and the logger
            ``headrace.cluster``, which have warnings as well.
        **settings: See :class:`headrace.cluster.ContainerConfig`.

    Attributes:
        config: The settings.
        awaited: What the container polls: a loop that idles may wait for messages on these subscriptions.

    Raises:
        TypeError: The service is none; the text says what makes one of it.
        ConfigError: A setting is wrong, or the service has a misspelt handler.
        ClusterFileError: Another container of the service runs on the directory.
        DriverTimeoutError: No driver answers on the directory.
        OSError: The disk refuses something.
    """

    _KIND = _NAME = "container"
    config: ContainerConfig

    def __init__(
        self,
        service: ClusteredService,
        config: ContainerConfig | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        driver: LocalDriver | None = None,
        is_invoked: bool = False,
        clock: Clock | None = None,
        storage: Storage | None = None,
        on_error: Callable[[str], object] | None = None,
        **settings: Unpack[ContainerSettings],
    ) -> None:
        check_service("service", service)
        super().__init__(ContainerConfig.of(config, properties, **settings), driver, clock, storage)
        self._owner = f"service-{self.config.service_id}"
        self._service = service
        self._hashes = StateHashes(service)
        # Whether the service has taken over the state at which the node recovers, and whether it could.
        self._has_begun = self._has_started = False
        self._start(driver, on_error, is_invoked=is_invoked, has_defaults=config is None)

    @property
    def _role_name(self) -> str:
        return f"clustered-service-{self.config.cluster_id}-{self.config.service_id}"

    @property
    def _mark_name(self) -> str:
        return service_mark_name(self.config.service_id)

    def _mark_fields(self, driver: LocalDriver | None) -> MarkFields:
        config = self.config
        return mark_fields(
            config,
            driver,
            ClusterComponentType.CONTAINER,
            config.error_buffer_length,
            streams=(config.service_stream_id, config.consensus_module_stream_id),
            control_channel=config.control_channel,
            service_id=config.service_id,
            service_name=config.service_name,
        )

    def _begin_turns(self) -> None:
        config = self.config
        if self._clock is SYSTEM_CLOCK:
            self._held.enter_context(KeepAlive((self._client,), (self._watched,)))
        # The commit position wakes no thread that blocks.
        idle = "backoff" if config.idle_strategy == "blocking" else config.idle_strategy
        self._begin_thread(config.service_name or self._role_name, self.do_work, idle, lambda: self.awaited)

    def _open_parts(self) -> None:
        config, client = self.config, self._client
        self._counters = ContainerCounters(client, config)
        self._log.show_count(self._counters.errors)
        self._control = Control(client, config, lambda text: self._log.error(text))
        self._state = ServiceState()
        self._sessions: dict[int, ClientSession] = {}
        self._cluster = Cluster(config, client, self._control, self._state, self._sessions)
        self._callbacks = Callbacks(
            self._service, config.service_id, self._state, self._log, self._clock, config.cycle_threshold_ns
        )
        self._watched = Watched(self._callbacks, self._state)
        handler = Entries(
            self._service,
            config,
            self._control,
            self._state,
            self._sessions,
            self._callbacks,
            self._log,
            lambda session, timestamp: self._running.begin(self._opening(session, timestamp)),
            self._begin_snapshot,
        ).handler(view=self._service.message_views and not hasattr(self._service, "on_session_messages"))
        self._reads = Reads(client, self._state, self._sessions, self._answer)
        self._reading = Reading(
            self._service,
            config,
            client,
            self._state,
            self._sessions,
            self._callbacks,
            handler,
            lambda: self._running.is_idle,
        )
        self._archive = ArchiveSession(client, config)
        self._works_in_background = (
            type(self._service).do_background_work is not ClusteredService.do_background_work
        )
        self._running = RunningTask()
        self._commit: CounterRecord | None = None
        # To be joined one after the other; each is acknowledged.
        self._joins: deque[JoinLog] = deque()
        self._requested_acks: list[int] = []
        self._termination: ServiceTerminationPosition | None = None
        self._is_ending = self._has_ended = False
        self._is_standby = False
        self._ack_id = 0
        self._next_tick_ns = self._next_background_ns = self._clock.monotonic_ns()
        self.awaited = (self._control.subscription,)
        self._running.begin(self._starting())

    # --- Turns -------------------------------------------------------------------------------------------------

    def _guarded(self, step: Callable[[], int]) -> int:
        """Raises in the failure's place the one that names the handler that is to blame."""
        try:
            return step()
        except BaseException as failure:
            named = held_up(failure, self.slowest_handler)
            self._fail(named or failure)
            if named is not None:
                raise named from failure
            raise

    def _turn(self) -> int:
        now_ns = self._clock.monotonic_ns()
        work_count = hear(self._client)
        if now_ns >= self._next_tick_ns:
            self._next_tick_ns = now_ns + _TICK_NS
            self._tick(now_ns)
        work_count += self._take_request()
        work_count += self._archive.step()
        # Before what waits for a position of the log, so that this turn does that too.
        if self._is_reading:
            work_count += self._read_log()
            work_count += self._reads.do_work(self._position)
        if self._running.is_idle:
            self._begin_next()
        work_count += self._running.step()
        if self._works_in_background and self._has_started and not self._has_ended:
            background = self._background
            work_count += self._callbacks.watched("do_background_work", lambda: background(now_ns))
        config, counters = self.config, self._counters
        duration_ns = self._clock.monotonic_ns() - now_ns
        note_duration(duration_ns, counters.max_cycle, counters.cycles_exceeded, config.cycle_threshold_ns)
        if self._has_ended:
            self._stop_turns()
            self._release()
        return work_count

    def deliver(self) -> int:
        """Give the service the entries that are committed; gives how many. Only with ``is_invoked=True``.

        Part of a turn, for programs that step the consensus module too. Raises as :meth:`do_work`.
        """
        if self._is_closed or not self._is_reading:
            return 0
        return self._taken(lambda: self._guarded(self._read_log))

    def _tick(self, now_ns: int) -> None:
        self._mark(now_ns)
        if self._commit is None or self._is_ending or self._is_counted(self._commit):
            return
        if self._has_begun:
            self._log.warning("the consensus module is gone: its commit position is no longer counted")
            self._end(ServiceTerminationPosition(log_position=self._position, ack_required=False))
            return
        # That of a module that was killed before this container was started, as the driver has noticed by now.
        self._running.close()
        self._commit = None
        self._running.begin(self._starting())

    def _is_counted(self, counter: CounterRecord) -> bool:
        return self._client.counters.find(counter.type_id, counter.registration_id) == counter.counter_id

    def _take_request(self) -> int:
        """What the consensus module asks next; of questions of clients, as many as have come."""
        count = 0
        while isinstance(request := self._control.poll(), ServiceRead | ServiceFollowerRead):
            count += 1
            if request.service_id == self.config.service_id:
                self._reads.add(request)
        if request is None:
            return count
        if isinstance(request, JoinLog):
            self._joins.append(request)
            self._end_before_next()
        elif isinstance(request, RequestServiceAck):
            self._requested_acks.append(request.log_position)
        else:
            self._termination = request
            if request.log_position < self._position and not self._is_ending:
                # Of a module that cannot go on. What is under way may wait for it, so it is given up.
                self._end(request)
        return count + 1

    def _answer(self, session: ClientSession, question: bytes) -> bytes:
        """The service's answer to a question, which changes nothing."""
        self._state.silent_in = "on_read"
        try:
            with handled():
                return bytes(
                    self._callbacks.watched("on_read", lambda: self._service.on_read(session, question))
                )
        finally:
            self._state.silent_in = None

    @property
    def slowest_handler(self) -> str:
        """Which handler took longest, of those that took longer than the threshold, where and how long; else empty."""
        return self._callbacks.slowest

    @property
    def _position(self) -> int:
        """Up to where the log is read."""
        return self._reading.position

    @property
    def is_steady(self) -> bool:
        """Whether the service reads a log, and is on no task that takes turns."""
        return self._is_closed or self._is_reading

    @property
    def _is_reading(self) -> bool:
        """Whether the service is given the log, and nothing else goes on."""
        return self._reading.log is not None and self._running.is_idle and not self._is_ending

    def _begin_next(self) -> None:
        """Begin the task that is due, if one is."""
        if self._is_ending or not self._has_started:
            return
        if self._termination is not None and self._position >= self._termination.log_position:
            self._end(self._termination)
        elif self._requested_acks and self._position >= self._requested_acks[0]:
            self._running.begin(self._acked(self._requested_acks.pop(0), NULL_VALUE))
        elif self._joins and self._reading.log is None:
            self._running.begin(self._joining(self._joins.popleft()))

    def _end_before_next(self) -> None:
        """Read the present log up to where the next one goes on."""
        if self._joins:
            self._reading.end_at(self._joins[0].log_position)

    def _read_log(self) -> int:
        """Entries up to the commit position; none while requests of earlier ones wait for the control stream."""
        if self._control.holds_requests:
            sent_count = self._control.send_held()
            if self._control.holds_requests:
                return sent_count
        assert self._commit is not None, "found before a log is joined"
        commit_position = self._client.counters.value(self._commit.counter_id)
        # Asked last: another counter has the place of one that is gone at once where the wall clock was set forwards.
        if not self._is_counted(self._commit):
            return 0
        count = self._reading.poll(commit_position, self._hashes.limit(commit_position))
        if self._hashes.is_asked:
            self._tell_state(lambda: self._hashes.due(self._state.position))
        return count

    def _tell_state(self, find: Callable[[], int | None]) -> None:
        """Tell the consensus module a hash of the service's state, if there is one."""
        try:
            with handled():
                found = find()
        except HandlerRaised as raised:
            self._callbacks.report("state_hash", raised.failure)
            return
        if found is not None:
            self._control.tell_state(self._state.position, found)

    def _background(self, now_ns: int) -> int:
        if now_ns < self._next_background_ns:
            return 0
        state = self._state
        state.silent_in = "do_background_work"
        try:
            with handled():
                # A handler that says nothing of its work gives None.
                return int(self._service.do_background_work(now_ns) or 0)
        except HandlerRaised as raised:
            # Not in each turn: it may be called some hundred times a second.
            self._next_background_ns = now_ns + _BACKGROUND_RETRY_NS
            self._callbacks.report("do_background_work", raised.failure)
            return 0
        finally:
            state.silent_in = None

    # --- Tasks -----------------------------------------------------------------------------------------------

    def _starting(self) -> Task[None]:
        """Take over the state at which the node recovers. Cluster specification 7.1."""
        client, state, cluster_id = self._client, self._state, self.config.cluster_id
        self._commit = yield from self._found(ClusterCounter.COMMIT_POSITION)
        self._control.pass_over()
        self._joins.clear()
        self._requested_acks.clear()
        self._termination = None
        recovery = yield from self._found(ClusterCounter.RECOVERY_STATE)
        # Before the first word, which another cluster might hear.
        check_streams(client, recovery, self.config.control_streams)
        term_id, position, timestamp, recordings = recovery_state(recovery)
        state.term_id, state.position, state.time = term_id, position, timestamp
        try:
            messages: Iterable[bytes] | None = None
            if term_id != NULL_VALUE:
                messages = yield from self._loaded(recordings)
            self._has_begun = True
            state.silent_in = "on_start"
            try:
                start = self._service.on_start
                with handled():
                    self._callbacks.watched("on_start", lambda: start(self._cluster, messages))
            finally:
                state.silent_in = None
        except Exception as raised:
            if client.is_closed:
                raise
            yield from self._acked(position, NULL_VALUE)
            failure = raised.failure if isinstance(raised, HandlerRaised) else raised
            what = str(failure) if isinstance(failure, HeadraceError) else told(failure)
            # Of a service of another version no snapshot is of use.
            is_other = term_id != NULL_VALUE and not isinstance(failure, ClusterTerminalError)
            advice = f"; if that is the snapshot's fault, {other_snapshot(failure)}" if is_other else ""
            raise ContainerError(
                f"service_id={self.config.service_id} of cluster_id={cluster_id} cannot start at "
                f"log_position={position}: {what}{advice}"
            ) from failure
        self._has_started = True
        yield from self._acked(position, client.client_id)

    def _found(self, counter: ClusterCounter) -> Task[CounterRecord]:
        """A counter of the consensus module, once it is there. To look is not cheap: once a tick is enough."""
        client, clock, cluster_id = self._client, self._clock, self.config.cluster_id
        if find(client, counter, cluster_id) is None:
            self._log.info(
                f"waiting for the consensus module of cluster_id={cluster_id} to start; it takes services "
                "only at its start"
            )
        doubt: Deadline | None = clock.deadline(_DOUBTFUL_S)
        deadline = clock.deadline(_MODULE_AWAITED_S)
        while (record := find(client, counter, cluster_id)) is None:
            if doubt is not None and doubt.is_over:
                doubt = None
                self._warn_of_other_clusters(client)
            if deadline.is_over:
                raise _missing_module(counter, cluster_id)
            next_ns = clock.monotonic_ns() + _TICK_NS
            yield from until(lambda next_ns=next_ns: clock.monotonic_ns() >= next_ns)  # type: ignore[misc]
        return record

    def _warn_of_other_clusters(self, client: Client) -> None:
        modules = [one for one in client.counters if one.type_id == ClusterCounter.MODULE_STATE]
        others = ", ".join(str(one) for one in sorted({cluster_id_of(one) for one in modules}))
        if others:
            self._log.warning(
                f"still waits for the consensus module of cluster_id={self.config.cluster_id}; on this driver runs "
                f"that of cluster_id={others}: if the service belongs to it, set cluster_id (aeron.cluster.id) to that"
            )

    def _loaded(self, recordings: tuple[int, ...]) -> Task[list[bytes]]:
        config = self.config
        if config.service_id >= len(recordings):
            raise ClusterError(
                f"service_id={config.service_id}: the snapshot has parts of only {len(recordings)} services"
            )
        with self._archive as archive:
            snapshot = yield from loaded(
                archive, config, recordings[config.service_id], self._state.position, self._state.term_id
            )
        for one in snapshot.sessions:
            self._sessions[one.cluster_session_id] = ClientSession(
                self._state,
                self._control,
                one.cluster_session_id,
                one.response_channel,
                one.response_stream_id,
                one.encoded_principal,
            )
        assert snapshot.time_unit is not None, "known of a snapshot that is whole"
        self._state.use_time_unit(snapshot.time_unit)
        return snapshot.messages

    def _acked(self, log_position: int, relevant_id: int) -> Task[None]:
        """Acknowledge; goes on once the consensus module's stream has taken it."""
        while not self._control.ack(log_position, self._state.time, self._ack_id, relevant_id):
            yield
        self._ack_id += 1

    def _joining(self, join: JoinLog) -> Task[None]:
        """Join a log. Cluster specification 4.7."""
        client, state, config = self._client, self._state, self.config
        role = Role(join.role)
        self._reads.clear()
        if role is not Role.LEADER:
            self._reading.disconnect()
        state.member_id = join.member_id
        self._mark_file.set_member_id(join.member_id)
        self._is_standby = join.is_standby
        log = yield from self._reading.joined(join, lambda: bool(self._joins))
        if log is None:
            # The module counts the acknowledgement of each log that it has named.
            yield from self._acked(join.log_position, NULL_VALUE)
            return
        self._control.limit_messages(log.max_message_length)
        try:
            yield from self._acked(join.log_position, NULL_VALUE)
            if role is Role.LEADER:
                for session in self._sessions.values():
                    session.is_closing = False
                if config.is_responding and not join.is_startup:
                    yield from egress.connected(client, self._cluster.sessions, self._log)
        except BaseException:
            log.close()
            raise
        self._reading.begin(log, role)
        self._end_before_next()

    def _opening(self, session: ClientSession, timestamp: int) -> Task[None]:
        """Open the stream to a client before the service hears of it, so that its first answer finds it."""
        yield from egress.connected(self._client, (session,), self._log)
        self._callbacks.call("on_session_open", session, timestamp, of=session)

    def _begin_snapshot(self, action: ClusterActionRequest) -> None:
        # Flag 1 asks standbys alone.
        is_of_standby = action.flags == 1 and self._is_standby
        if is_of_standby or takes_snapshot(action.flags, self._state.member_id):
            self._running.begin(self._snapshot(action))

    def _snapshot(self, action: ClusterActionRequest) -> Task[None]:
        """Take a snapshot. Cluster specification 6.4."""
        client, state, config, counters = self._client, self._state, self.config, self._counters
        position, start_ns = state.position, self._clock.monotonic_ns()
        point = SnapshotPoint(position, action.leadership_term_id, state.time_unit, config.app_version)
        self._tell_state(self._hashes.now)
        failure: BaseException | None = None
        recording_id = NULL_VALUE
        try:
            # Before the archive is asked: what the handler does to the service must not go by what the archive says.
            messages = self._callbacks.each("on_take_snapshot", self._service.on_take_snapshot)
            with self._archive as archive:
                recording_id = yield from stored(
                    client, archive, config, point, self._cluster.sessions, messages
                )
        except Exception as raised:
            if client.is_closed:
                raise
            failure = raised.failure if isinstance(raised, HandlerRaised) else raised
            self._tell_of_no_snapshot(raised, position)
        duration_ns = self._clock.monotonic_ns() - start_ns
        note_duration(
            duration_ns, counters.max_snapshot, counters.snapshots_exceeded, config.snapshot_threshold_ns
        )
        yield from self._acked(position, recording_id)
        if isinstance(failure, ArchiveError) and failure.code_name == _STORAGE_SPACE:
            raise ContainerError(f"no room for a snapshot at log_position={position}: {failure}") from failure

    def _tell_of_no_snapshot(self, raised: Exception, position: int) -> None:
        if isinstance(raised, HandlerRaised):
            self._callbacks.report("on_take_snapshot", raised.failure)
            return
        what = str(raised) if isinstance(raised, HeadraceError) else told(raised)
        self._log.error(
            f"service_id={self.config.service_id} has taken no snapshot: {what}",
            raised,
            f"log_position={position}",
        )

    def _end(self, termination: ServiceTerminationPosition) -> None:
        """Begin to end; a task that runs is given up."""
        self._is_ending = True
        self._control.forget_held()
        self._running.close()
        self._running.begin(self._ending(termination))

    def _ending(self, termination: ServiceTerminationPosition) -> Task[None]:
        """End where the consensus module wants it. Cluster specification 8.2."""
        position, asked = self._position, termination.log_position
        if self._has_started:
            self._callbacks.call_silent("on_terminate", self._cluster)
        if termination.ack_required:
            for _ in range(_ACK_ATTEMPTS_AT_END):
                if self._control.ack(position, self._state.time, self._ack_id, NULL_VALUE):
                    break
                yield
        self._has_ended = True
        if position > asked:
            raise ContainerError(
                f"service_id={self.config.service_id} ends at log_position={position}, after {asked}, where it was to "
                "end: the consensus module ends unexpectedly, and its log says why"
            )

    # --- Life --------------------------------------------------------------------------------------------------

    def _on_failure(self, failure: BaseException) -> None:
        why = str(failure) if isinstance(failure, HeadraceError) else told(failure)
        self._log.error(f"the container stopped: {why}", failure)
        self._release()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait until the container has ended; false when the time is over. With a thread of its own only.

        Args:
            timeout_s: How long, in seconds; ``None`` waits without an end.
        """
        for thread in self._threads:
            thread.join(timeout_s)
        return self._is_closed

    def close(self) -> None:
        """End the container; the consensus module of its member then ends too. Closing again does nothing.

        Waits for the container's thread. In a handler of the service it does not: the container closes after the turn.
        """
        super().close()

    def _close(self) -> None:
        self._running.close()
        if self._has_started and not self._is_ending:
            self._callbacks.call_silent("on_terminate", self._cluster)
        self._release()

    def __repr__(self) -> str:
        return (
            f"ServiceContainer(service_id={self.config.service_id}, cluster_id={self.config.cluster_id}"
            f"{', closed' if self._is_closed else ''})"
        )


def _missing_module(counter: ClusterCounter, cluster_id: int) -> ContainerError:
    limit = f"within {_MODULE_AWAITED_S:.0f} s"
    if counter is ClusterCounter.COMMIT_POSITION:
        return ContainerError(
            f"no consensus module of cluster_id={cluster_id} has started on the driver {limit}: start it, and the "
            "service again"
        )
    return ContainerError(
        f"the consensus module of cluster_id={cluster_id} has taken no services {limit}: it has them already, or "
        "cannot start, as its error log says; end it, and start both again"
    )
