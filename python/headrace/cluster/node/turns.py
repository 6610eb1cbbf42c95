"""How the parts of a node take turns: for :class:`ClusterNode` and `headrace cluster node` alike."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from headrace._base.exceptions import HeadraceError
from headrace.client import IdleStrategy
from headrace.clock import SYSTEM_CLOCK
from headrace.cluster.node.stand_in import StandIn
from headrace.cluster.service.callbacks import held_up
from headrace.cluster.service.keep_alive import LOOK_NS, KeepAlive

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headrace.archive import ArchiveServer
    from headrace.client import Subscription
    from headrace.cluster.member.consensus_module import ConsensusModule
    from headrace.cluster.service.container import ServiceContainer

__all__ = ["NodeTurns"]

# Of the way of messages after a whole turn.
_PASSES_A_TURN = 8
_WHOLE_TURN_INTERVAL_NS = 1_000_000
# An empty pass costs about as much as a sleep that a message ends, so no turns come before the first sleep.
_BACKOFF = "0-0-50000-1000000"
# So long a node that closes tries to have another member lead.
_HAND_OVER_S = 1.0


class NodeTurns:
    """The parts of a node that run on one thread, each made with ``is_invoked=True``.

    Args:
        module: The consensus module.
        archive: The archive, if it runs here.
        containers: Those of the services that run here.
    """

    def __init__(
        self, module: ConsensusModule, archive: ArchiveServer | None, containers: Sequence[ServiceContainer]
    ) -> None:
        self._module = module
        self._archive = archive
        self._containers = containers
        self._stand_in = StandIn(self._stand_in_turns)
        # Whether all that is in the log is agreed upon and delivered.
        self._is_settled = False

    def do_work(self) -> int:
        """One turn of each; gives how much there was to do.

        Raises:
            HeadraceError: A part cannot go on.
        """
        try:
            return self._whole_turn()
        except HeadraceError as failure:
            self._name_handler(failure)
            raise

    def _whole_turn(self) -> int:
        # In the way of a message: into the log, onto the disk, to the services.
        work_count = self._module.do_work()
        if self._archive is not None:
            work_count += self._archive.do_work()
        work_count += self._module.commit()
        for container in self._containers:
            work_count += self._served(container, container.do_work)
        self._note_settled(work_count)
        moved = work_count
        for _ in range(_PASSES_A_TURN):
            if not moved:
                break
            moved = self._move_messages()
            work_count += moved
        return work_count

    def _move_messages(self) -> int:
        """What a turn does for messages, and nothing else of it."""
        work_count = self._module.sequence()
        if work_count == 0 and self._is_settled:
            return 0
        if self._archive is not None:
            work_count += self._archive.record()
        work_count += self._module.commit()
        for container in self._containers:
            work_count += self._served(container, container.deliver)
        self._note_settled(work_count)
        return work_count

    def _note_settled(self, work_count: int) -> None:
        """After all parts have taken a turn, or what a turn does for messages."""
        self._is_settled = work_count == 0 and self._module.has_committed_all

    def settle(self) -> None:
        """Have another member lead before all closes; alone, have the log recorded, so that its term has an end."""
        module, archive = self._module, self._archive
        if archive is None or not module.is_leader:
            return
        if module.hand_over():
            deadline = module._clock.deadline(_HAND_OVER_S)
            while module.is_leader and not deadline.is_over:
                self.do_work()
            return
        while archive.record():
            pass
        module.commit()

    def _served(self, container: ServiceContainer, step: Callable[[], int]) -> int:
        try:
            work_count = self._stand_in.serve(step)
        except BaseException as failure:
            self._module.note_failed_service(container.config.service_id, failure)
            raise
        self._stand_in.check()
        return work_count

    def run(self, is_stopped: Callable[[], bool]) -> None:
        """Turns until stopped, or until the cluster has terminated. Pauses as the module's idle strategy says.

        Raises:
            HeadraceError: A part cannot go on.
        """
        # Where time is a test's there are no threads.
        has_stand_in = bool(self._containers) and self._module._clock is SYSTEM_CLOCK
        try:
            with self._stand_in if has_stand_in else nullcontext():
                self._run(is_stopped)
        except HeadraceError as failure:
            self._name_handler(failure)
            raise

    @property
    def is_standing_in(self) -> bool:
        """Whether this thread takes the turns of archive and module while a handler runs on another one."""
        return self._stand_in.is_this_thread

    def _stand_in_turns(self, is_over: Callable[[], bool]) -> None:
        """Turns of archive and module; also shows the driver that the services live, whose handlers are slow."""
        module, archive = self._module, self._archive
        keeper = KeepAlive(
            [one._client for one in self._containers],
            [one._watched for one in self._containers],
        )
        clock, pauses, next_look_ns = module._clock, _Pauses(module), 0
        while not is_over() and not module.has_terminated:
            work_count = module.do_work()
            if archive is not None:
                work_count += archive.do_work()
            work_count += module.commit()
            now_ns = clock.monotonic_ns()
            if now_ns >= next_look_ns:
                next_look_ns = now_ns + LOOK_NS
                keeper.look()
            pauses.pause(work_count)

    def _name_handler(self, failure: HeadraceError) -> None:
        """Raises in the place of a failure that a handler is to blame for one that names it."""
        slowest = max((one.slowest_handler for one in self._containers), key=len, default="")
        named = held_up(failure, slowest)
        if named is not None:
            raise named from failure

    def _run(self, is_stopped: Callable[[], bool]) -> None:
        module = self._module
        clock, pauses, next_whole_ns = module._clock, _Pauses(module), 0
        while not is_stopped() and not module.has_terminated:
            # A message does not wait for what has time.
            work_count = self._move_messages()
            now_ns = clock.monotonic_ns()
            if now_ns >= next_whole_ns:
                whole_count = self.do_work()
                # Where there was work, the next step of it may follow at once.
                next_whole_ns = 0 if whole_count else now_ns + _WHOLE_TURN_INTERVAL_NS
                work_count += whole_count
            pauses.pause(work_count)


class _Pauses:
    """How a thread waits for work. A message to the module ends a pause; what others wait for comes on that thread."""

    def __init__(self, module: ConsensusModule) -> None:
        self._module = module
        self._awaited: tuple[Subscription, ...] = ()
        self._idle = self._strategy()

    def pause(self, work_count: int) -> None:
        """Wait a little if a turn found no work."""
        module = self._module
        if module.awaited is not self._awaited:
            self._awaited = module.awaited
            self._idle = self._strategy()
        self._idle.idle(work_count)

    def _strategy(self) -> IdleStrategy:
        strategy = IdleStrategy(self._module.config.idle_strategy, None, self._awaited)
        return IdleStrategy("backoff", _BACKOFF, self._awaited) if strategy.name == "backoff" else strategy
