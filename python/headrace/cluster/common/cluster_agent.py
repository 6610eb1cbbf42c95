"""A part of a cluster that runs: it takes its mark file, opens the rest under that lock, and closes all in order."""

from __future__ import annotations

import contextlib
import os
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from headrace._agent.invoked import SteppedAgent
from headrace._agent.storage import DirectoryStorage
from headrace._base.checks import check_callable
from headrace.client._local_driver import check_driver
from headrace.clock import SYSTEM_CLOCK
from headrace.cluster.common.log import AgentLog, open_log
from headrace.cluster.files.mark_file import MARK_NAME, ClusterMarkFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace._agent.storage import Storage
    from headrace.client import Client, Subscription
    from headrace.client._local_driver import LocalDriver
    from headrace.clock import Clock
    from headrace.cluster.common.node_config import PartConfig
    from headrace.cluster.files.mark_file import MarkFields

__all__ = ["ClusterAgent"]


class ClusterAgent(SteppedAgent):
    """What consensus module, container and backup have in common.

    Its ``__init__`` sets what the rest needs, then a class calls :meth:`_start`, which opens mark file, log and client,
    calls :meth:`_open_parts`, and begins a thread. What it opens it adds to ``_held``, which closes it, last to first.

    Args:
        config: The settings.
        driver: The driver, if it runs in this process; also a node of a simulated world.
        clock: Where it takes the time from; by default the clock of `driver`, or of the machine.
        storage: The directory of its files; by default that of ``cluster_directory``.
    """

    _NAME: ClassVar[str]
    """What its log calls it."""
    _owner: str
    """Names the file with the errors of the part that ran before it."""
    _log: AgentLog
    _mark_file: ClusterMarkFile
    _client: Client

    awaited: tuple[Subscription, ...]

    def __init__(
        self, config: PartConfig, driver: LocalDriver | None, clock: Clock | None, storage: Storage | None
    ) -> None:
        super().__init__()
        check_driver(driver)
        self.config = config
        self._clock = clock or (SYSTEM_CLOCK if driver is None else driver._clock)
        self._storage = storage or DirectoryStorage(config.cluster_directory)
        self._held = contextlib.ExitStack()

    # --- start -----------------------------------------------------------------------------------------------------

    def _start(
        self,
        driver: LocalDriver | None,
        on_error: Callable[[str], object] | None,
        *,
        is_invoked: bool,
        has_defaults: bool,
    ) -> None:
        """Open all, and begin; ``has_defaults`` if the environment may have set something."""
        check_callable("on_error", on_error)
        try:
            self._open(driver, on_error)
            doubts = self.config.environment_doubts(os.environ) if has_defaults else []
            self._log.warn_of([*doubts, *self._mark_file.warnings])
        except BaseException:
            self._release()
            raise
        self._begins()
        if not is_invoked:
            self._begin_turns()

    def _open(self, driver: LocalDriver | None, on_error: Callable[[str], object] | None) -> None:
        config, fields = self.config, self._mark_fields(driver)
        self._mark_file = ClusterMarkFile(
            self._storage,
            self._mark_name,
            fields,
            self._clock.epoch_ms(),
            elsewhere=config.mark_file_directory,
        )
        self._held.callback(self._mark_file.close)
        self._forgets()
        self._prepare()
        self._log = open_log(
            self._mark_file, fields.error_buffer_length, self._owner, self._storage, self._clock, on_error
        )
        try:
            self._client = self._connect(
                driver, config.aeron_directory, self._role_name, self._on_unavailable_counter()
            )
            self._held.callback(self._client.close)
            self._open_parts()
        except BaseException as failure:
            self._log.error(f"the {self._NAME} cannot start: {failure}", failure)
            self._mark_file.failed()
            raise
        self._mark_file.ready(self._clock.epoch_ms())

    @property
    @abstractmethod
    def _role_name(self) -> str:
        """The name of its client, and of its thread."""

    @abstractmethod
    def _mark_fields(self, driver: LocalDriver | None) -> MarkFields:
        """What its mark file says."""

    @property
    def _mark_name(self) -> str:
        return MARK_NAME

    def _prepare(self) -> None:
        """Nothing else runs on the directory, and nothing of it is open."""

    def _on_unavailable_counter(self) -> Callable[[int, int], object] | None:
        """What hears which counters the driver has freed."""
        return None

    @abstractmethod
    def _open_parts(self) -> None:
        """Open what the agent has beside log and client."""

    def _begin_turns(self) -> None:
        self._begin_thread(self._role_name, self.do_work, self.config.idle_strategy, lambda: self.awaited)

    # --- turns -----------------------------------------------------------------------------------------------------

    def do_work(self) -> int:
        """One turn of everything; returns how much there was to do, and 0 after the end. Only with ``is_invoked=True``.

        Raises:
            HeadraceError: It cannot go on.
        """
        if self._is_closed or self._has_stopped:
            return 0
        return self._taken(lambda: self._guarded(self._turn))

    @property
    def _has_stopped(self) -> bool:
        """Whether it has ended by itself."""
        return self._failure is not None

    def _guarded(self, step: Callable[[], int]) -> int:
        try:
            return step()
        except BaseException as failure:
            self._fail(failure)
            raise

    @abstractmethod
    def _turn(self) -> int:
        """Do what there is to do, without waiting; returns how much that was."""

    # --- end -------------------------------------------------------------------------------------------------------

    @property
    def directory(self) -> str:
        """Where the files are."""
        return self._storage.describe()

    def _release(self) -> None:
        self._is_closed = True
        self._held.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.directory!r}{', closed' if self._is_closed else ''})"
