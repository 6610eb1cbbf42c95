"""How the parts of a node take turns on one thread: for :class:`ClusterNode` and `headrace cluster node` alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._exceptions import HeadraceError
from headrace.client import IdleStrategy
from headrace.cluster.service.callbacks import held_up

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
        self._is_settled = False
        for _ in range(_PASSES_A_TURN):
            if not (moved := self._move_messages()):
                break
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
        self._is_settled = work_count == 0 and self._module.has_committed_all
        return work_count

    def _served(self, container: ServiceContainer, step: Callable[[], int]) -> int:
        try:
            return step()
        except BaseException as failure:
            self._module.note_failed_service(container.config.service_id, failure)
            raise

    def run(self, is_stopped: Callable[[], bool]) -> None:
        """Turns until stopped, or until the cluster has terminated. Pauses as the module's idle strategy says.

        Raises:
            HeadraceError: A part cannot go on.
        """
        try:
            self._run(is_stopped)
        except HeadraceError as failure:
            self._name_handler(failure)
            raise

    def _name_handler(self, failure: HeadraceError) -> None:
        """Raises in the place of a failure that a handler is to blame for one that names it."""
        slowest = max((one.slowest_handler for one in self._containers), key=len, default="")
        named = held_up(failure, slowest)
        if named is not None:
            raise named from failure

    def _run(self, is_stopped: Callable[[], bool]) -> None:
        module = self._module
        awaited: tuple[Subscription, ...] = ()
        idle = IdleStrategy(module.config.idle_strategy)
        clock, next_whole_ns = module._clock, 0
        while not is_stopped() and not module.has_terminated:
            # A message does not wait for what has time.
            work_count = self._move_messages()
            now_ns = clock.monotonic_ns()
            if now_ns >= next_whole_ns:
                whole_count = self.do_work()
                # Where there was work, the next step of it may follow at once.
                next_whole_ns = 0 if whole_count else now_ns + _WHOLE_TURN_INTERVAL_NS
                work_count += whole_count
            idle.idle(work_count)
            if module.awaited is not awaited:
                # A message to the module ends a pause; what archive and services wait for comes on this thread.
                awaited = module.awaited
                idle = IdleStrategy(module.config.idle_strategy, None, awaited)
