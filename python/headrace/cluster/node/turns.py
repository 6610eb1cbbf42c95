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
# A whole turn costs as much as several passes, and of a member that only moves messages it finds little that is urgent.
_STEADY_TURN_INTERVAL_NS = 4_000_000
# Of work that a whole turn alone does, such as to read a follower's log, this much is not all.
_MUCH_WORK = 32
# An empty pass costs about as much as a sleep that a message ends, so none comes before a sleep. What was found may
# have consequences that nothing announces.
_PAUSE_NS, _SHORT_PAUSE_NS = 1_000_000, 250_000
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
        # Up to where services have what is agreed upon.
        self._delivered = -1

    def do_work(self) -> int:
        """One turn of each; gives how much there was to do.

        Raises:
            HeadraceError: A part cannot go on.
        """
        try:
            moved = work_count = self._whole_turn()
            for _ in range(_PASSES_A_TURN):
                if not moved:
                    break
                moved = self._move_messages()
                work_count += moved
        except HeadraceError as failure:
            self._name_handler(failure)
            raise
        return work_count

    def _whole_turn(self) -> int:
        # In the way of a message: into the log, onto the disk, to the services.
        work_count = self._module.do_work()
        if self._archive is not None:
            work_count += self._archive.do_work()
        work_count += self._module.commit()
        for container in self._containers:
            work_count += self._served(container, container.do_work)
        self._note_settled(work_count)
        return work_count

    def _move_messages(self) -> int:
        """What a turn does for messages, and nothing else of it."""
        module = self._module
        work_count = module.sequence()
        if work_count == 0 and self._is_settled:
            return 0
        if self._archive is not None:
            work_count += self._archive.record()
        work_count += module.commit()
        work_count += self._deliver(module.commit_position)
        self._note_settled(work_count)
        return work_count

    def _note_settled(self, work_count: int) -> None:
        """After all parts have taken a turn, or what a turn does for messages."""
        self._is_settled = work_count == 0 and self._module.has_committed_all

    def _deliver(self, committed: int) -> int:
        """Give services what is agreed upon. One that takes no more is asked again in the next whole turn."""
        if committed == self._delivered:
            return 0
        count = 0
        for container in self._containers:
            count += self._served(container, container.deliver)
        if count == 0:
            self._delivered = committed
        return count

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
        clock, pauses = module._clock, _Pauses(module)
        next_whole_ns, requests, is_steady = 0, -1, False
        while not is_stopped() and not module.has_terminated:
            # A message does not wait for what has time.
            work_count = self._move_messages()
            now_ns = clock.monotonic_ns()
            # A container takes requests in whole turns.
            if now_ns >= next_whole_ns or module.service_request_count != requests:
                requests = module.service_request_count
                whole_count = self._whole_turn()
                is_steady = module.is_steady and all(one.is_steady for one in self._containers)
                next_whole_ns = now_ns + _interval_ns(whole_count, is_steady)
                work_count += whole_count
            # The next step of a task may follow at once.
            if is_steady or work_count == 0:
                pauses.pause(work_count)


def _interval_ns(work_count: int, is_steady: bool) -> int:
    """How long after a whole turn the next one comes: at once where more of its work may follow."""
    if is_steady:
        return 0 if work_count >= _MUCH_WORK else _STEADY_TURN_INTERVAL_NS
    return 0 if work_count else _WHOLE_TURN_INTERVAL_NS


class _Pauses:
    """How a thread waits for work. A message to the module ends a pause; what others wait for comes on that thread."""

    def __init__(self, module: ConsensusModule) -> None:
        self._module = module
        self._awaited: tuple[Subscription, ...] = ()
        self._idle = self._strategy()
        self._rests = self._idle.name == "backoff"

    def pause(self, work_count: int) -> None:
        """Wait a little if a turn found no work, or so little that it took all."""
        module = self._module
        if module.awaited is not self._awaited:
            self._awaited = module.awaited
            self._idle = self._strategy()
        if not self._rests:
            self._idle.idle(work_count)
        elif work_count < _MUCH_WORK:
            self._idle.rest(work_count > 0, _PAUSE_NS if work_count == 0 else _SHORT_PAUSE_NS)

    def _strategy(self) -> IdleStrategy:
        return IdleStrategy(self._module.config.idle_strategy, None, self._awaited)
