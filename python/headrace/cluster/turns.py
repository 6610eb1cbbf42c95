"""How the parts of a node take turns on one thread: for :class:`ClusterNode` and `headrace cluster node` alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.client import IdleStrategy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headrace.archive import ArchiveServer
    from headrace.client import Subscription
    from headrace.cluster.member.consensus_module import ConsensusModule
    from headrace.cluster.service.container import ServiceContainer

__all__ = ["NodeTurns"]


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

    def do_work(self) -> int:
        """One turn of each; gives how much there was to do.

        Raises:
            HeadraceError: A part cannot go on.
        """
        # In the way of a message: into the log, onto the disk, to the services.
        work_count = self._module.do_work()
        if self._archive is not None:
            work_count += self._archive.do_work()
        work_count += self._module.commit()
        for container in self._containers:
            work_count += container.do_work()
        return work_count

    def run(self, is_stopped: Callable[[], bool]) -> None:
        """Turns until stopped, or until the cluster has terminated. Pauses as the module's idle strategy says.

        Raises:
            HeadraceError: A part cannot go on.
        """
        module = self._module
        awaited: tuple[Subscription, ...] = ()
        idle = IdleStrategy(module.config.idle_strategy)
        while not is_stopped() and not module.has_terminated:
            idle.idle(self.do_work())
            if module.awaited is not awaited:
                # A message to the module ends a pause; what archive and services wait for comes on this thread.
                awaited = module.awaited
                idle = IdleStrategy(module.config.idle_strategy, None, awaited)
