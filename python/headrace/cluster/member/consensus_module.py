"""The consensus module: puts what clients send into one log, and has services read it. Cluster specification 5.1."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from headrace._arguments import checked_class
from headrace._exceptions import HeadraceError
from headrace._weak import weakly
from headrace.archive.client import requests
from headrace.archive.files.storage import DirectoryStorage, Storage
from headrace.client._agent import hear
from headrace.client._local_driver import check_driver
from headrace.clock import SYSTEM_CLOCK, Clock
from headrace.cluster.errors import ClusterTerminalError
from headrace.cluster.ground.cluster_time import ClusterTime
from headrace.cluster.ground.courses import Course, Running
from headrace.cluster.ground.log import AgentLog, open_log
from headrace.cluster.ground.marks import mark_fields
from headrace.cluster.ground.node_archive import NodeArchive, node_archive_config
from headrace.cluster.ground.stepped import SteppedAgent
from headrace.cluster.log.recording_log import RECORDING_LOG_NAME, RecordingLog
from headrace.cluster.mark_file import MARK_NAME, ClusterComponentType, ClusterMarkFile, MarkFields
from headrace.cluster.member.applied import Applied
from headrace.cluster.member.checking import Checking
from headrace.cluster.member.config import ConsensusModuleConfig
from headrace.cluster.member.connecting import Connecting
from headrace.cluster.member.context import Context
from headrace.cluster.member.counters import ModuleCounters
from headrace.cluster.member.egress import Egress
from headrace.cluster.member.electing import Electing
from headrace.cluster.member.election import Lead
from headrace.cluster.member.ingress import Ingress
from headrace.cluster.member.leadership import Leadership
from headrace.cluster.member.operating import Operating
from headrace.cluster.member.planning import check_log_is_known, check_log_is_whole, check_vote, find_plan
from headrace.cluster.member.requests import service_message, service_request
from headrace.cluster.member.services import Services
from headrace.cluster.member.snapshotting import Snapshotting
from headrace.cluster.member.states import ElectionState, ModuleState, NodeToggle, Toggle
from headrace.cluster.node_state import NODE_STATE_NAME, NodeStateFile
from headrace.cluster.protocol import control
from headrace.positions import NULL_VALUE
from headrace.security.named import authenticator_named, authorisation_named
from headrace.security.verdicts import Verdicts

if TYPE_CHECKING:
    from typing import Unpack

    from headrace.client import Subscription
    from headrace.client._local_driver import LocalDriver
    from headrace.cluster.member.keywords import ConsensusModuleSettings

__all__ = ["ConsensusModule"]

_SLOW_TICK_NS = 10_000_000


@checked_class
class ConsensusModule(SteppedAgent):
    """The consensus module of a cluster's member, on a driver and beside an archive on it.

    Runs in a thread of its own; with ``is_invoked=True`` in yours instead, which then calls :meth:`do_work`. It begins
    with the latest snapshot and the log after it, waits for its services, and leads. A context manager that closes it.

    Args:
        config: All settings as one object; keywords override it.
        properties: Settings by the specification's property names, such as ``{"aeron.cluster.dir": "/data"}``.
        driver: The driver, if it runs in this process; also a node of a simulated world.
        is_invoked: No thread; the program calls :meth:`do_work`, at least every few seconds.
        clock: Where it takes the time from; by default the clock of `driver`, or of the machine.
        storage: The directory of the cluster's files; by default that of ``cluster_directory``.
        on_error: Told of each failure of the module as text, besides the error log in the mark file and the logger
            ``headrace.cluster``.
        **settings: See :class:`headrace.cluster.ConsensusModuleConfig`.

    Attributes:
        config: The settings.
        awaited: What the module polls now: a loop that idles may wait for messages on these subscriptions.

    Raises:
        ConfigError: A setting is wrong.
        ClusterError: Another module of the cluster runs on the driver.
        ClusterFileError: Another module runs on the directory, or a file is damaged.
        DriverTimeoutError: No driver answers on the directory.
    """

    _KIND = "module"
    _log: AgentLog
    _mark_file: ClusterMarkFile

    def __init__(
        self,
        config: ConsensusModuleConfig | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        driver: LocalDriver | None = None,
        is_invoked: bool = False,
        clock: Clock | None = None,
        storage: Storage | None = None,
        on_error: Callable[[str], object] | None = None,
        **settings: Unpack[ConsensusModuleSettings],
    ) -> None:
        super().__init__()
        check_driver(driver)
        doubts = ConsensusModuleConfig.environment_doubts(os.environ) if config is None else []
        self.config = config = ConsensusModuleConfig.of(config, properties, **settings)
        authenticator = config.authenticator
        if authenticator is not None:
            authenticator = authenticator_named("authenticator", authenticator)
        self._verdicts = Verdicts(authenticator)
        self._authorisation = (
            None
            if config.authorisation is None
            else authorisation_named("authorisation", config.authorisation)
        )
        self._clock = clock or (SYSTEM_CLOCK if driver is None else driver._clock)
        self._storage = storage or DirectoryStorage(config.cluster_directory)
        # The driver tells what is gone from the first moment on, of clients before this module too.
        self._service_clients: dict[int, int] = {}
        self._lost_service: int | None = None
        # What is to be closed at the end, last to first.
        self._held = contextlib.ExitStack()
        try:
            self._open(driver, on_error)
            self._log.warn_of([*doubts, *self._mark_file.warnings])
        except BaseException:
            self._release()
            raise
        self._begins()
        if not is_invoked:
            self._begin_thread(self._role_name, self.do_work, config.idle_strategy, lambda: self.awaited)

    # --- start -----------------------------------------------------------------------------------------------------

    def _open(self, driver: LocalDriver | None, on_error: Callable[[str], object] | None) -> None:
        config = self.config
        now_ms = self._clock.epoch_ms()
        self._mark_file = ClusterMarkFile(
            self._storage,
            MARK_NAME,
            self._mark_fields(driver),
            now_ms,
            elsewhere=config.mark_file_directory,
        )
        self._held.callback(self._mark_file.close)
        self._forgets()
        if config.directory_delete_on_start:
            # Not before: with the mark file taken, no other member runs on them. The mark file itself says all anew.
            for name in (RECORDING_LOG_NAME, NODE_STATE_NAME):
                self._storage.delete(name)
        self._log = open_log(
            self._mark_file, config.error_buffer_length, "cluster", self._storage, self._clock, on_error
        )
        try:
            self._client = self._connect(
                driver, config.aeron_directory, self._role_name, weakly(self._counter_gone)
            )
            self._held.callback(self._client.close)
            self._open_parts()
        except BaseException as failure:
            self._log.error(f"the consensus module cannot start: {failure}", failure)
            self._mark_file.failed()
            raise
        self._mark_file.ready(now_ms)

    def _mark_fields(self, driver: LocalDriver | None) -> MarkFields:
        config = self.config
        return mark_fields(
            config,
            driver,
            ClusterComponentType.CONSENSUS_MODULE,
            config.error_buffer_length,
            ingress_stream_id=config.ingress_stream_id,
            member_id=config.member_id,
            ingress_channel=config.ingress_channel or "",
            authenticator=config.authenticator if isinstance(config.authenticator, str) else "",
            services_cluster_directory=os.fspath(config.services_directory or config.cluster_directory),
        )

    def _open_parts(self) -> None:
        config = self.config
        before = NULL_VALUE if config.directory_delete_on_start else self._mark_file.candidate_term_id
        node_state = NodeStateFile(self._storage, sync_level=config.file_sync_level, candidate_term_id=before)
        self._held.callback(node_state.close)
        recording_log = RecordingLog(self._storage, sync_level=config.file_sync_level)
        self._held.callback(recording_log.close)
        counters = ModuleCounters(self._client, config)
        self._held.callback(counters.close)
        self._log.show_count(counters.errors)
        archive = NodeArchive(
            self._client,
            node_archive_config(
                config.archive_control_channel,
                config.archive_control_stream_id,
                config.cluster_id,
                "cm",
                0,
                config.archive_response_channel,
                config.archive_response_stream_id,
            ),
        )
        self._held.callback(archive.close)
        self._context = Context(
            config=config,
            client=self._client,
            time=ClusterTime(self._clock, config.time_unit),
            archive=archive,
            counters=counters,
            log=self._log,
            recording_log=recording_log,
            node_state=node_state,
            mark_file=self._mark_file,
            applied=Applied(config.service_count),
        )
        self._make_parts()
        self._ingress: Ingress | None = None
        self._course.begin(self._started())
        self.awaited: tuple[Subscription, ...] = (self._services.subscription,)
        self._next_tick_ns = self._clock.monotonic_ns()

    def _make_parts(self) -> None:
        context = self._context
        config = self.config
        self._egress = Egress(config.member_id, config.leader_heartbeat_timeout_ns)
        self._services = Services(
            self._client,
            config,
            lambda service_id, payload: service_message(context, service_id, payload),
            self._service_request,
            self._log.warning,
        )
        self._snapshotting = Snapshotting(context, self._services)
        self._course = Running()
        self._operating = Operating(context, self._services, self._snapshotting, self._course)
        self._leadership = Leadership(context, self._services, self._snapshotting)
        self._connecting = Connecting(context, self._egress, self._verdicts)
        self._checking = Checking(context, self._egress)
        self._electing = Electing(context, self._leadership, self._connecting, self._egress)

    @property
    def _role_name(self) -> str:
        config = self.config
        return config.agent_role_name or f"consensus-module-{config.cluster_id}-{config.member_id}"

    def _started(self) -> Course[None]:
        """From the files to the first election."""
        context = self._context
        yield from context.archive.connected()
        last = context.recording_log.last_term
        if last is not None:
            # Before the archive is asked to stop what may be another cluster's recording.
            yield from find_plan(context)
            yield from context.archive.asked(requests.stop_recording_by_id(last.recording_id))
            yield from self._leadership.stopped(last.recording_id)
        yield from check_log_is_known(context)
        check_log_is_whole(context, (yield from find_plan(context)))
        check_vote(context)
        plan = context.plan
        assert plan is not None, "there is a plan once it was found"
        module = plan.snapshots[0] if plan.snapshots else None
        position = 0 if module is None else module.log_position
        recovery = context.counters.add_recovery(
            NULL_VALUE if module is None else module.leadership_term_id,
            position,
            0 if module is None else module.timestamp,
            tuple(entry.recording_id for entry in plan.snapshots[1:]),
        )
        if module is not None:
            yield from self._snapshotting.loaded(module)
        context.commit_position = position
        acks = yield from self._services.acked(position)
        recovery.close()
        failed = self._services.failed(acks)
        if failed:
            raise ClusterTerminalError(
                f"failed to start clustered service(s): service_id={', '.join(map(str, failed))}; the error log of the "
                "service says why"
            )
        self._service_clients = {ack.relevant_id: ack.service_id for ack in acks}
        context.enter(ModuleState.ACTIVE, "snapshot and services are loaded")
        append_position = max(plan.appended_log_position, position)
        yield from self._led(plan.last_leadership_term_id, append_position, is_startup=True)

    # --- turns -----------------------------------------------------------------------------------------------------

    def do_work(self) -> int:
        """One turn of everything; gives how much there was to do. Only with ``is_invoked=True``.

        Raises:
            HeadraceError: The module cannot go on; it has told its services to end.
        """
        if self._is_closed or self.has_terminated:
            return 0
        return self._taken(lambda: self._guarded(self._turn))

    def note_failed_service(self, service_id: int, failure: BaseException) -> None:
        """The node ends, since a service that runs in it has failed: operators look into this error log first."""
        if self._failure is None and not self._is_closed:
            self._context.log.error(
                f"failed to start clustered service(s), or one has failed: service_id={service_id}: {failure}",
                failure,
            )

    def _guarded(self, step: Callable[[], int]) -> int:
        try:
            return step()
        except BaseException as failure:
            self._fail(failure)
            raise

    def _turn(self) -> int:
        begin_ns = self._clock.monotonic_ns()
        context = self._context
        context.now_ns = context.time.now_ns()
        work_count = self._hear_driver()
        context.archive.step()
        if begin_ns >= self._next_tick_ns:
            self._next_tick_ns = begin_ns + _SLOW_TICK_NS
            work_count += self._slow_tick(begin_ns)
        # An acknowledgement is taken before the course that waits for it goes on.
        work_count += self._services.poll() + self._course.step()
        if self._operating.has_ended:
            self._stop_turns()
            return work_count
        work_count += self._lead() + self.commit()
        context.counters.note_cycle(self._clock.monotonic_ns() - begin_ns, self.config.cycle_threshold_ns)
        return work_count

    def _hear_driver(self) -> int:
        work_count = hear(self._client)
        if self._lost_service is not None:
            raise ClusterTerminalError(
                f"Aeron client in service closed unexpectedly: serviceId={self._lost_service}"
            )
        return work_count

    def _counter_gone(self, registration_id: int, _: int) -> None:
        """The heartbeat of a service's client is gone with the client."""
        if registration_id in self._service_clients and self._context.state is not ModuleState.TERMINATING:
            self._lost_service = self._service_clients[registration_id]

    def _slow_tick(self, now_ns: int) -> int:
        context = self._context
        self._mark(now_ns)
        writer = self._leadership.writer
        if self._ingress is None or writer is None:
            return 0
        if not context.archive.is_ready:
            raise ClusterTerminalError(f"local archive is not connected: {context.archive.failure}")
        if not self._leadership.is_recorded and self._may_leave():
            self._enter_election("log recording stopped")
            return 1
        if not self._course.is_idle:
            return 0
        if self._operating.do_work(writer):
            return 1
        if context.state is not ModuleState.ACTIVE:
            return 0
        return self._connecting.do_work(writer) + self._checking.do_work(writer)

    def _lead(self) -> int:
        """What a leader does in each turn."""
        context, writer, ingress = self._context, self._leadership.writer, self._ingress
        if ingress is None or writer is None:
            return 0
        work_count = 0
        if context.state is ModuleState.ACTIVE and self._course.is_idle:
            now = context.now
            work_count += context.applied.timers.poll(now, lambda timer_id: writer.timer(timer_id, now))
            for pending in context.applied.pending:
                if pending.has_unsent:
                    work_count += pending.poll(
                        lambda session_id, payload: writer.message(session_id, now, payload)
                    )
            work_count += ingress.poll()
        return work_count

    def sequence(self) -> int:
        """Put what clients and services have sent into the log, as a part of a turn; gives how much that was."""
        if self._ingress is None or self._is_closed or self.has_terminated:
            return 0
        self._context.now_ns = self._context.time.now_ns()
        return self._taken(lambda: self._guarded(lambda: self._lead() + self._services.poll()))

    def commit(self) -> int:
        """Look how far the archive has the log, which a cluster of one agrees upon; gives 1 if that is further.

        A part of a turn. Call it after a step of the archive, so that services need not wait for the next turn.
        """
        if self._ingress is None or self._is_closed or self.has_terminated:
            return 0
        context = self._context
        position = self._leadership.recorded_entries()
        if position <= context.commit_position:
            return 0
        context.commit_position = position
        context.applied.committed(position)
        return 1

    # --- elections -------------------------------------------------------------------------------------------------

    def _may_leave(self) -> bool:
        """Whether the module can give up what it does.

        Services take a snapshot that is agreed upon, whatever comes; and what has begun to end comes to its end.
        """
        if self._context.state is ModuleState.TERMINATING:
            return False
        return self._course.is_idle or self._operating.action_position > self._context.commit_position

    def _enter_election(self, reason: str) -> None:
        """Leave the leadership, and stand again."""
        context = self._context
        self._log.warning(f"{reason}: a new election")
        ingress, self._ingress = self._ingress, None
        if ingress is not None:
            ingress.close()
        self.awaited = (self._services.subscription,)
        self._course.close()
        self._services.forget_after(context.commit_position)
        self._course.begin(self._led(context.leadership_term_id, context.commit_position, is_startup=False))

    def _led(self, leadership_term_id: int, append_position: int, *, is_startup: bool) -> Course[None]:
        """Goes on once the member leads."""
        lead = yield from self._electing.elected(leadership_term_id, append_position, is_startup=is_startup)
        self._begin_to_lead(lead)
        self._context.counters.election_state.value = ElectionState.CLOSED

    def _begin_to_lead(self, action: Lead) -> None:
        context, writer = self._context, self._leadership.writer
        assert writer is not None, "the log is joined before the member leads"
        context.now_ns = context.time.now_ns()
        self._checking.take_over(is_startup=action.is_startup)
        self._ingress = Ingress(context, self._connecting, self._egress, self._authorisation, writer)
        self.awaited = (self._services.subscription, *self._ingress.subscriptions)
        context.counters.toggle.value = Toggle.NEUTRAL
        context.counters.node_toggle.value = NodeToggle.NEUTRAL
        self._log.info(
            f"member {self.config.member_id} leads term {action.leadership_term_id} from {action.log_position}"
        )

    def _service_request(self, request: object) -> None:
        position = self._leadership.append_position or self._context.commit_position
        answer = service_request(self._context, position, request)
        if answer is not None:
            self._services.answer(answer)

    # --- life ------------------------------------------------------------------------------------------------------

    def _on_failure(self, failure: BaseException) -> None:
        """Services end at once."""
        context = self._context
        self._log.error(f"unexpected termination: {failure}", failure)
        # With its driver all of these are gone.
        with contextlib.suppress(HeadraceError):
            context.enter(ModuleState.CLOSED, repr(failure))
            self._services.send(control.ServiceTerminationPosition(log_position=0, ack_required=True))

    @property
    def directory(self) -> str:
        """Where the files are."""
        return self._storage.describe()

    @property
    def state(self) -> ModuleState:
        """What the module does."""
        return self._context.state

    @property
    def election_failure(self) -> str:
        """Why the election that runs failed last, and is tried again; empty once the member leads."""
        return self._context.election_failure

    @property
    def is_leader(self) -> bool:
        """Whether the member leads, so that clients can connect."""
        return self._ingress is not None and not self.has_terminated and not self._is_closed

    @property
    def leadership_term_id(self) -> int:
        """The term that the member leads or has read; -1 before the first."""
        return self._context.leadership_term_id

    @property
    def has_committed_all(self) -> bool:
        """Whether all that the member has appended to the log is agreed upon."""
        return self._leadership.has_appended_up_to(self._context.commit_position)

    @property
    def commit_position(self) -> int:
        """Up to where the log is agreed upon."""
        return self._context.commit_position

    @property
    def snapshot_count(self) -> int:
        """Snapshots that module and services have taken since the start."""
        return self._context.counters.snapshot_count.value

    @property
    def takes_requests(self) -> bool:
        """Whether an operator may ask for more than to resume: the member leads, and has done what was asked before.

        While it is suspended it would leave the request where it is, and take none to resume.
        """
        context = self._context
        is_active = context.state is ModuleState.ACTIVE
        return self.is_leader and is_active and context.counters.toggle.value == Toggle.NEUTRAL

    def request(self, toggle: Toggle) -> None:
        """Ask for something as an operator, while the module :attr:`takes_requests`; a later turn begins it."""
        self._context.counters.toggle.value = toggle

    @property
    def has_terminated(self) -> bool:
        """Whether the module has ended by itself: an operator asked for it, or it failed."""
        return self._operating.has_ended or self._failure is not None

    def close(self) -> None:
        """Have services end where the log is agreed upon, and give up the directory. Waits for the module's thread.

        In ``on_error``, which runs within a turn, it does not wait: the module closes after that. The log goes on with
        the next start. Closing again does nothing.
        """
        super().close()

    def _close(self) -> None:
        context = self._context
        if not self.has_terminated:
            with contextlib.suppress(HeadraceError):
                self._services.send(
                    control.ServiceTerminationPosition(
                        log_position=context.commit_position, ack_required=False
                    )
                )
            with contextlib.suppress(HeadraceError):
                self._operating.give_up()
                context.enter(ModuleState.CLOSED, "closed")
        self._course.close()
        self._release()

    def _release(self) -> None:
        self._is_closed = True
        self._verdicts.close()
        self._held.close()

    def __repr__(self) -> str:
        return f"ConsensusModule({self.directory!r}{', closed' if self._is_closed else ''})"
