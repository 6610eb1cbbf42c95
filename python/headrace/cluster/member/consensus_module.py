"""The consensus module: puts what clients send into one log, and has services read it. Cluster specification 5.1."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from headrace._agent.agent import hear
from headrace._agent.tasks import RunningTask, Task, until
from headrace._base.checks import check_callable
from headrace._base.exceptions import HeadraceError
from headrace._base.weak import weakly
from headrace.clock import SYSTEM_CLOCK
from headrace.cluster.common.cluster_agent import ClusterAgent
from headrace.cluster.common.cluster_time import ClusterTime
from headrace.cluster.common.log import open_events
from headrace.cluster.common.marks import mark_fields
from headrace.cluster.common.node_archive import NodeArchive, node_archive_config
from headrace.cluster.consensus.actions import OF_ELECTIONS, Follow, Lead, LeaveLog
from headrace.cluster.errors import ClusterTerminalError
from headrace.cluster.files.mark_file import ClusterComponentType
from headrace.cluster.files.node_state import NODE_STATE_NAME, NodeStateFile
from headrace.cluster.files.recording_log import RECORDING_LOG_NAME, RecordingLog
from headrace.cluster.member.applied import Applied
from headrace.cluster.member.backup_queries import BackupQueries
from headrace.cluster.member.clients import OF_CLIENTS, Clients
from headrace.cluster.member.config import ConsensusModuleConfig
from headrace.cluster.member.context import Context
from headrace.cluster.member.control_requests import service_message, service_request
from headrace.cluster.member.counters import ModuleCounters
from headrace.cluster.member.divergence import StateComparison
from headrace.cluster.member.election import Election
from headrace.cluster.member.lifeline import open_lifeline
from headrace.cluster.member.member_table import MEMBERS_NAME, MemberTable
from headrace.cluster.member.operators import Operators
from headrace.cluster.member.peers import Peers
from headrace.cluster.member.recovery import recovered
from headrace.cluster.member.redirects import Redirects
from headrace.cluster.member.services import Services
from headrace.cluster.member.snapshots import Snapshots
from headrace.cluster.member.states import SUCCESSOR_SHIFT, ModuleState, NodeToggle, Toggle
from headrace.cluster.member.term_log import TermLog
from headrace.cluster.member.termination import Termination
from headrace.cluster.protocol import control
from headrace.cluster.protocol.consensus import (
    Divergence,
    FollowerSnapshot,
    MemberStateHash,
    TerminationAck,
    TerminationPosition,
)
from headrace.positions import NULL_VALUE
from headrace.security.plugins import authenticator_named, authorisation_named
from headrace.security.verdicts import Verdicts

if TYPE_CHECKING:
    from typing import Unpack

    from headrace._agent.storage import Storage
    from headrace._settings.keywords import ConsensusModuleSettings
    from headrace.client import Header
    from headrace.client._local_driver import LocalDriver
    from headrace.clock import Clock
    from headrace.cluster.files.mark_file import MarkFields

__all__ = ["ConsensusModule"]

_SLOW_TICK_NS = 10_000_000
# So long a module with a thread of its own waits for the archive when it closes.
_END_AWAITED_S, _LOOK_S = 1.0, 0.001


class ConsensusModule(ClusterAgent):
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
        on_event: Told of each change of state as text, as it happens, besides the event log in the directory. What it
            raises is an error of the module's log.
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

    _KIND, _NAME, _owner = "module", "consensus module", "cluster"
    config: ConsensusModuleConfig

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
        on_event: Callable[[str], object] | None = None,
        **settings: Unpack[ConsensusModuleSettings],
    ) -> None:
        super().__init__(ConsensusModuleConfig.of(config, properties, **settings), driver, clock, storage)
        check_callable("on_event", on_event)
        self._on_event = on_event
        who, what = self.config.authenticator, self.config.authorisation
        self._verdicts = Verdicts(None if who is None else authenticator_named("authenticator", who))
        self._held.callback(self._verdicts.close)
        self._authorisation = None if what is None else authorisation_named("authorisation", what)
        # The driver tells what is gone from the first moment on, before there are services whose clients they may be.
        self._gone_clients: list[int] = []
        self._start(driver, on_error, is_invoked=is_invoked, has_defaults=config is None)

    # --- start -----------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        if self.config.directory_delete_on_start:
            # The mark file itself says all anew.
            for name in (RECORDING_LOG_NAME, NODE_STATE_NAME, MEMBERS_NAME):
                self._storage.delete(name)

    def _on_unavailable_counter(self) -> Callable[[int, int], object]:
        return weakly(self._counter_gone)

    def _mark_fields(self, driver: LocalDriver | None) -> MarkFields:
        config = self.config
        return mark_fields(
            config,
            driver,
            ClusterComponentType.CONSENSUS_MODULE,
            config.error_buffer_length,
            streams=(config.service_stream_id, config.consensus_module_stream_id),
            control_channel=config.control_channel,
            ingress_stream_id=config.ingress_stream_id,
            member_id=config.member_id,
            ingress_channel=config.ingress_channel or "",
            authenticator=config.authenticator if isinstance(config.authenticator, str) else "",
            services_cluster_directory=os.fspath(config.services_directory or config.cluster_directory),
        )

    def _open_parts(self) -> None:
        config = self.config
        events = open_events(self._storage, self._clock, self._log, self._on_event)
        before = NULL_VALUE if config.directory_delete_on_start else self._mark_file.candidate_term_id
        node_state = NodeStateFile(self._storage, sync_level=config.file_sync_level, candidate_term_id=before)
        self._held.callback(node_state.close)
        recording_log = RecordingLog(self._storage, sync_level=config.file_sync_level)
        self._held.callback(recording_log.close)
        counters = ModuleCounters(self._client, config)
        self._held.callback(counters.close)
        self._log.show_count(counters.errors)
        archive = NodeArchive(self._client, node_archive_config(config, "cm", 0))
        self._held.callback(archive.close)
        self._context = Context(
            config=config,
            client=self._client,
            clock=self._clock,
            time=ClusterTime(self._clock, config.time_unit),
            archive=archive,
            counters=counters,
            log=self._log,
            recording_log=recording_log,
            node_state=node_state,
            mark_file=self._mark_file,
            applied=Applied(config.service_count, events),
            events=events,
            members=MemberTable(self._storage, config),
        )
        self._make_parts()
        self._task.begin(self._started())
        self._show_awaited()
        self._next_tick_ns = self._clock.monotonic_ns()

    def _make_parts(self) -> None:
        context = self._context
        config = self.config
        self._services = Services(
            self._client,
            config,
            lambda service_id, payload: service_message(context, service_id, payload),
            self._service_request,
            self._log.warning,
        )
        self._snapshots = Snapshots(context, self._services)
        self._task = RunningTask()
        self._peers = Peers(context, self._hear_member)
        self._held.callback(self._peers.close)
        self._term_log = TermLog(
            context, self._services, self._snapshots, lambda term: self._election.term_read(term), self._idle
        )
        recording = self._term_log.recording
        self._clients = Clients(
            context,
            self._peers,
            self._services,
            self._term_log.leader,
            self._task,
            self._verdicts,
            self._authorisation,
        )
        self._states = StateComparison(context, self._peers)
        self._termination = Termination(context, self._services, self._peers, recording)
        self._operators = Operators(
            context,
            self._peers,
            self._services,
            self._snapshots,
            self._termination,
            self._term_log.leader,
            self._clients.reads.roll_call,
            self._task,
            lambda: self._election,
        )
        self._backup_queries = BackupQueries(
            context,
            self._clients.egress,
            self._verdicts,
            self._authorisation,
            self._peers.subscription,
            self._operators.standby_snapshots.notice,
        )
        # Only where sockets are real, and others may follow.
        has_followers = self._peers and self._clock is SYSTEM_CLOCK
        self._election = Election(
            context,
            self._term_log,
            self._peers,
            open_lifeline(self._peers.own_address, self._log, self._held) if has_followers else None,
            self._on_change,
            self._clients.roll_back,
        )
        self._held.callback(self._election.close)

    def _idle(self) -> Task[None]:
        """Goes on once the module does nothing that services acknowledge."""
        yield from until(lambda: self._task.is_idle)

    def _show_awaited(self) -> None:
        """Say where messages come from now."""
        heard = [self._services.subscription, self._peers.subscription, self._term_log.follower.subscription]
        self.awaited = tuple(one for one in [*heard, *self._clients.subscriptions] if one is not None)

    @property
    def _role_name(self) -> str:
        config = self.config
        return config.agent_role_name or f"consensus-module-{config.cluster_id}-{config.member_id}"

    def _started(self) -> Task[None]:
        """From the files to the first election."""
        yield from recovered(self._context, self._services, self._snapshots, self._term_log.recording)
        self._context.enter(ModuleState.ACTIVE, "snapshot and services are loaded")
        self._election.start()

    # --- turns -----------------------------------------------------------------------------------------------------

    def note_failed_service(self, service_id: int, failure: BaseException) -> None:
        """The node ends, since a service that runs in it has failed: operators look into this error log first.

        The module may have heard of it by then, and have failed, in turns that another thread took.
        """
        if not self._is_closed:
            self._context.log.error(
                f"failed to start clustered service(s), or one has failed: service_id={service_id}: {failure}",
                failure,
            )

    def _turn(self) -> int:
        begin_ns = self._clock.monotonic_ns()
        context = self._context
        context.begin_turn()
        work_count = self._hear_driver()
        context.archive.step()
        if begin_ns >= self._next_tick_ns:
            self._next_tick_ns = begin_ns + _SLOW_TICK_NS
            work_count += self._slow_tick(begin_ns)
        # An acknowledgement is taken before the task that waits for it goes on.
        work_count += self._services.poll() + self._task.step()
        if self._termination.has_ended:
            self._stop_turns()
            return work_count
        work_count += self._peers.poll()
        if context.state is not ModuleState.CLOSED:
            work_count += self._election.do_work()
        work_count += self._clients.poll() + self.commit()
        context.counters.note_cycle(self._clock.monotonic_ns() - begin_ns, self.config.cycle_threshold_ns)
        return work_count

    def _hear_driver(self) -> int:
        work_count = hear(self._client)
        gone, self._gone_clients = self._gone_clients, []
        for client_id in gone:
            service_id = self._services.client_gone(client_id)
            if service_id is None or self._context.state is ModuleState.TERMINATING:
                continue
            if self._services.have_started:
                raise ClusterTerminalError(
                    f"Aeron client in service closed unexpectedly: serviceId={service_id}"
                )
            self._log.warning(
                f"service_id={service_id} has ended before all services had started: waiting for another container"
            )
        return work_count

    def _counter_gone(self, registration_id: int, _: int) -> None:
        """The heartbeat of a client is gone with the client; other counters have other ids."""
        self._gone_clients.append(registration_id)

    def _slow_tick(self, now_ns: int) -> int:
        context = self._context
        self._mark(now_ns)
        if not self._election.has_started:
            return 0
        self._peers.connect(now_ns)
        if self._election.is_closed:
            if not context.archive.is_ready:
                raise ClusterTerminalError(f"local archive is not connected: {context.archive.failure}")
            self._backup_queries.do_work()
            self._operators.do_work()
            if not self._is_ending:
                self._election.check_log()
        return self._lead() if self._clients.redirects is None else self._follow(self._clients.redirects)

    @property
    def _is_ending(self) -> bool:
        """Whether members end at a position, as an operator wants, with whatever becomes of the leader."""
        return self._termination.is_pending or self._context.state is ModuleState.TERMINATING

    def _follow(self, redirects: Redirects) -> int:
        if self._termination.is_due and self._task.is_idle:
            self._task.begin(self._termination.followed())
            return 1
        return redirects.do_work()

    def _lead(self) -> int:
        writer = self._term_log.leader.writer
        if self._clients.ingress is None or writer is None or not self._task.is_idle:
            return 0
        return self._operators.requests.do_work(writer) or self._clients.check()

    @property
    def _followed_term_id(self) -> int:
        """The term in which the member follows a leader; -1 if it does not."""
        return self._election.core.leadership_term_id if self._clients.redirects is not None else NULL_VALUE

    def sequence(self) -> int:
        """Take what clients, services and members have sent, as a part of a turn; returns how much that was."""
        if not self._goes_on:
            return 0
        self._context.begin_turn()
        return self._taken(
            lambda: self._guarded(lambda: self._clients.poll() + self._services.poll() + self._peers.poll())
        )

    def commit(self) -> int:
        """Look how far the archive has the log, and what of it is agreed upon; returns 1 if that is further.

        A part of a turn. Call it after a step of the archive, so that services need not wait for the next turn.
        """
        return self._election.commit() if self._goes_on else 0

    @property
    def is_steady(self) -> bool:
        """Whether the member leads or follows, and is on no task that takes turns."""
        return self._goes_on and self._task.is_idle and self._election.is_steady

    @property
    def service_request_count(self) -> int:
        """How many messages to services were sent; containers take them in whole turns."""
        return self._services.sent_count

    @property
    def _goes_on(self) -> bool:
        """Whether the member leads or follows."""
        return self._election.is_closed and not (self._is_closed or self.has_terminated)

    # --- elections -------------------------------------------------------------------------------------------------

    def _hear_member(self, message: object, header: Header) -> None:
        """Another member, or a backup, has sent a message."""
        if isinstance(message, TerminationPosition):
            self._termination.on_position(message)
        elif isinstance(message, TerminationAck):
            self._termination.on_ack(message)
        elif isinstance(message, OF_CLIENTS):
            self._clients.on_member(message, self._followed_term_id)
        elif isinstance(message, MemberStateHash):
            self._states.on_member(message)
        elif isinstance(message, FollowerSnapshot):
            self._operators.follower_snapshots.on_message(message)
        elif isinstance(message, Divergence):
            self._states.on_divergence(message)
        elif isinstance(message, OF_ELECTIONS):
            self._election.receive(message)
        elif self._election.is_closed:
            self._backup_queries.on_message(message, header)

    def _on_change(self, action: Lead | Follow | LeaveLog) -> None:
        """The member begins to lead or to follow, or leaves the log."""
        if isinstance(action, LeaveLog):
            self._leave()
        elif isinstance(action, Lead):
            self._clients.lead(action)
            self._context.counters.toggle.value = Toggle.NEUTRAL
            self._begin_term("leads", action)
        else:
            self._clients.follow(action)
            self._begin_term(f"follows member {action.leader_member_id} in", action)
        self._show_awaited()

    def _leave(self) -> None:
        """Give up what is not agreed upon. Services take a snapshot that is, whatever comes."""
        context = self._context
        self._clients.leave()
        if self._operators.requests.action_position > context.commit_position and not self._is_ending:
            self._task.close()
        if context.state is not ModuleState.TERMINATING:
            # A member that ends waits on: services have been told where they end.
            self._services.forget_after(context.commit_position)
        self._operators.leave()

    def _begin_term(self, what: str, action: Lead | Follow) -> None:
        self._termination.forget()
        self._context.counters.node_toggle.value = NodeToggle.NEUTRAL
        self._log.info(
            f"member {self.config.member_id} {what} term {action.leadership_term_id} from {action.log_position}"
        )

    def _service_request(self, request: object) -> None:
        if isinstance(request, control.StateHash):
            self._states.on_service(request)
            return
        if isinstance(request, control.OperatorRequest):
            self._operators.commands.on_request(request)
            return
        position = self._term_log.recording.position or self._context.commit_position
        peers = self._election.core.peers if self._election.has_started else {}
        answer = service_request(self._context, position, peers, request)
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
        return self._clients.ingress is not None and not self.has_terminated and not self._is_closed

    @property
    def leader_member_id(self) -> int | None:
        """The member that leads, which may be this one; ``None`` while none is known."""
        if self.is_leader:
            return self.config.member_id
        return None if self._clients.redirects is None else self._context.leader_member_id

    @property
    def leadership_term_id(self) -> int:
        """The term that the member leads or has read; -1 before the first."""
        return self._context.leadership_term_id

    @property
    def has_committed_all(self) -> bool:
        """Whether all that the member has appended to the log is agreed upon."""
        committed = self._context.commit_position
        return self._clients.redirects is None and self._term_log.leader.has_appended_up_to(committed)

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

    def request(self, toggle: Toggle, successor_id: int = NULL_VALUE) -> None:
        """Ask for something as an operator, while the module :attr:`takes_requests`; a later turn begins it.

        Args:
            toggle: What.
            successor_id: Who is to lead, where leadership is transferred; -1 for any.
        """
        self._context.counters.toggle.value = toggle | (successor_id + 1) << SUCCESSOR_SHIFT

    def hand_over(self) -> bool:
        """Have another member lead, before this one closes; returns whether there is one, and this one leads.

        Only with ``is_invoked=True``: the turns that follow do it.
        """
        if not (self.is_leader and self._peers and self._task.is_idle):
            return False
        self.request(Toggle.TRANSFER_LEADERSHIP)
        return True

    @property
    def _has_stopped(self) -> bool:
        return self.has_terminated

    @property
    def has_terminated(self) -> bool:
        """Whether the module has ended by itself: an operator asked for it, or it failed."""
        return self._termination.has_ended or self._failure is not None

    def close(self) -> None:
        """Have services end where the log is agreed upon, and give up the directory. Waits for the module's thread.

        In ``on_error``, which runs within a turn, it does not wait: the module closes after that. The log goes on with
        the next start. Closing again does nothing.
        """
        super().close()

    def _close(self) -> None:
        context = self._context
        if not self.has_terminated:
            self._note_end()
            with contextlib.suppress(HeadraceError):
                self._services.send(
                    control.ServiceTerminationPosition(
                        log_position=context.commit_position, ack_required=False
                    )
                )
            with contextlib.suppress(HeadraceError):
                self._operators.requests.give_up()
                context.enter(ModuleState.CLOSED, "closed")
        self._task.close()
        self._release()

    def _note_end(self) -> None:
        """Note where the term ends, if all that was appended is recorded: else the next start asks the archive."""
        if self._clients.ingress is None:
            return
        # Nothing is appended any more.
        with contextlib.suppress(HeadraceError, OSError):
            self._clients.close()
            deadline = self._clock.deadline(_END_AWAITED_S if self._threads else 0)
            while not (self._has_recorded_all or deadline.is_over):
                self._clock.sleep(_LOOK_S)
            recording = self._term_log.recording
            if recording.is_active and self._has_recorded_all:
                recording.end_term(self._context.leadership_term_id, recording.position)

    @property
    def _has_recorded_all(self) -> bool:
        """Whether the archive has all that was appended, or has ended its recording, so that no more comes."""
        recording = self._term_log.recording
        return not recording.is_active or self._term_log.leader.has_appended_up_to(recording.position)
