"""A whole member of a cluster in one process: driver, archive, consensus module, services."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._agent.invoked import OwnTurn
from headrace._base.checks import wrong
from headrace._base.closing import Closing
from headrace._base.exceptions import ActiveDriverError, HeadraceError
from headrace._base.fork import forget_in_children
from headrace._settings.config import default_directory, directory_text
from headrace.archive import ArchiveFileError, ArchiveServer
from headrace.client import Client
from headrace.client._local_driver import check_driver
from headrace.cluster.client.client import ClusterClient
from headrace.cluster.common.members import ingress_endpoints
from headrace.cluster.errors import ClusterError, ClusterFileError
from headrace.cluster.files.directory import ClusterDirectory
from headrace.cluster.member.consensus_module import ConsensusModule
from headrace.cluster.member.states import Toggle
from headrace.cluster.node.node_settings import NodeSettings
from headrace.cluster.node.turns import NodeTurns
from headrace.cluster.service.container import ServiceContainer
from headrace.cluster.service.determinism import DeterminismCheck, DeterminismError
from headrace.cluster.service.validation import check_service
from headrace.driver import MediaDriver

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self, Unpack

    from headrace._settings.keywords import ArchiveSettings, ConsensusModuleSettings
    from headrace.client._local_driver import LocalDriver
    from headrace.clock import Deadline
    from headrace.cluster.client.settings import ClusterClientSettings
    from headrace.cluster.service.clustered_service import ClusteredService

__all__ = ["ClusterNode"]

_RUNNING: weakref.WeakSet[ClusterNode] = weakref.WeakSet()
_LOOK_S = 0.001
_NAME_LENGTH = 12


class ClusterNode(Closing):
    """A member of a cluster: driver, archive, consensus module and services.

    The driver has threads of its own. All else takes turns on one thread of this node; while a handler is slow, archive
    and module go on on a second one. With ``is_invoked=True`` all take turns on your thread, which calls
    :meth:`do_work`. A context manager that closes it all. If the node has failed, and no call
    and no look at :attr:`failure` has told the program, leaving the ``with`` block raises :class:`ClusterError`.

    Args:
        *services: The services, by their ids from 0 on.
        directory: Where it keeps its files: those of the cluster in ``cluster``, recordings in ``archive``.
        driver: A driver in this process that outlives the node, and has no other node; by default the node has one
            of its own. Its directory is beside the default one and named after the node's, so that the next start
            finds and deletes what a kill left. Programs in other processes find it through the mark file.
        ingress_endpoint: ``host:port`` where clients on other machines send; without one the node serves clients of its
            own driver, over ``aeron:ipc``.
        archive_settings: See :class:`headrace.archive.ArchiveConfig`.
        is_invoked: No thread; the program calls :meth:`do_work`.
        on_error: Told of each failure of the consensus module and the services as text.
        **settings: See :class:`headrace.cluster.ConsensusModuleConfig`. What the services share with the module
            goes for them too. ``members="alpha,beta,gamma"``, the same on each node, makes this one of several members;
            ``member_id`` says which, by default the one whose host is the name of this machine. Both may come from the
            environment.

    Attributes:
        driver: The driver: the node's own, or the one that it was given. ``node.driver.directory`` is where clients in
            other processes find it.
        archive: The archive, a :class:`headrace.archive.ArchiveServer`.
        module: The consensus module, a :class:`ConsensusModule`: its state, role, commit position and counters.
        containers: The :class:`ServiceContainer` of each service, in the order of service ids.

    Raises:
        TypeError: A service is none; the text says what makes one of it.
        ConfigError: A setting is wrong, a service has a misspelt handler, or another node uses the driver.
        ClusterFileError: Another member runs on the directory, or a file is damaged.
    """

    def __init__(
        self,
        *services: ClusteredService,
        directory: str | os.PathLike[str],
        driver: LocalDriver | None = None,
        ingress_endpoint: str | None = None,
        archive_settings: ArchiveSettings | None = None,
        is_invoked: bool = False,
        on_error: Callable[[str], object] | None = None,
        **settings: Unpack[ConsensusModuleSettings],
    ) -> None:
        self._is_closed = False
        # A handler closed it: what takes the turn lets go of what is held once that is over.
        self._closes_itself = False
        self._thread: threading.Thread | None = None
        self._own_turn = OwnTurn()
        self._stop = threading.Event()
        self._has_run = threading.Event()
        self._failure: BaseException | None = None
        self._is_told = False
        # What is closed at the end, last to first.
        self._held = contextlib.ExitStack()
        self._directory = Path(directory_text(directory))
        self._checks = [service for service in services if isinstance(service, DeterminismCheck)]
        for index, service in enumerate(services):
            check_service(f"services[{index}]", service)
            if any(service is other for other in services[:index]):
                raise wrong(f"services[{index}]", service, "is given twice: each service needs its own state")
        try:
            self._open(services, driver, ingress_endpoint, archive_settings or {}, on_error, settings)
        except BaseException as failure:
            self._held.close()
            if isinstance(failure, ArchiveFileError | ClusterFileError):
                raise ClusterFileError(
                    f"the node cannot use the directory {self._directory}: {failure}"
                ) from failure
            raise
        forget_in_children(self)
        _RUNNING.add(self)
        if not is_invoked:
            self._thread = threading.Thread(target=self._run, name="cluster-node", daemon=True)
            self._thread.start()

    def _open(
        self,
        services: tuple[ClusteredService, ...],
        driver: LocalDriver | None,
        ingress_endpoint: str | None,
        archive_settings: ArchiveSettings,
        on_error: Callable[[str], object] | None,
        settings: ConsensusModuleSettings,
    ) -> None:
        directory = self._directory
        # Before anything is made: a wrong setting leaves neither a driver nor a file.
        self._parts = parts = NodeSettings.of(
            directory, len(services), ingress_endpoint, archive_settings, settings
        )
        check_driver(driver)
        _check_free(driver)
        if driver is None:
            driver = self._own_driver()
        self.driver = driver
        # A second node is told of the first one, and not of its archive.
        ClusterDirectory(parts.cluster_directory, clock=driver._clock, create=True).check_no_member_runs()
        self.archive = ArchiveServer(driver=driver, is_invoked=True, **parts.archive)
        self._held.callback(self.archive.close)
        self.module = ConsensusModule(driver=driver, is_invoked=True, on_error=on_error, **parts.module)
        self._held.callback(self.module.close)
        self.containers: list[ServiceContainer] = []
        for service_id, service in enumerate(services):
            container = ServiceContainer(
                service,
                driver=driver,
                is_invoked=True,
                on_error=on_error,
                service_id=service_id,
                **parts.shared,
            )
            self._held.callback(container.close)
            self.containers.append(container)
        self._turns = NodeTurns(self.module, self.archive, self.containers)
        self._held.callback(self._settle)

    def _own_driver(self) -> MediaDriver:
        # The same name at each start: a start deletes the directory of a driver that is dead.
        name = hashlib.sha256(os.fsencode(self._directory.resolve())).hexdigest()[:_NAME_LENGTH]
        try:
            driver = MediaDriver(
                directory=f"{default_directory()}-node-{name}",
                dir_delete_on_shutdown=True,
                threading_mode="SHARED",
            )
        except ActiveDriverError as active:
            raise ClusterFileError(f"another node runs on it: {active}") from active
        self._held.callback(driver.close)
        return driver

    @classmethod
    def embedded(
        cls,
        *services: ClusteredService,
        directory: str | os.PathLike[str] | None = None,
        driver: LocalDriver | None = None,
        ingress_endpoint: str | None = None,
        archive_settings: ArchiveSettings | None = None,
        is_invoked: bool = False,
        on_error: Callable[[str], object] | None = None,
        **settings: Unpack[ConsensusModuleSettings],
    ) -> Self:
        """A node with its files in a temporary directory, which is deleted when the node closes.

        With `directory` they are there and stay. The other arguments and the errors are those of the class.
        """
        make = functools.partial(
            cls,
            *services,
            driver=driver,
            ingress_endpoint=ingress_endpoint,
            archive_settings=archive_settings,
            is_invoked=is_invoked,
            on_error=on_error,
            **settings,
        )
        if directory is not None:
            return make(directory=directory)
        made = tempfile.mkdtemp(prefix="headrace-cluster-")
        try:
            node = make(directory=made)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
        # After all others.
        held, node._held = node._held, contextlib.ExitStack()
        node._held.callback(shutil.rmtree, made, ignore_errors=True)
        node._held.push(held)
        return node

    # --- turns -----------------------------------------------------------------------------------------------------

    def do_work(self) -> int:
        """One turn of everything; gives how much there was to do, and 0 once closed. Only with ``is_invoked=True``.

        Raises:
            HeadraceError: A part cannot go on; the others are told to end.
        """
        if self._thread is not None:
            raise ClusterError(
                "do_work: the node has its own thread; give is_invoked=True to step it yourself"
            )
        self._own_turn.check_is_over("do_work")
        if self._is_closed:
            return 0
        try:
            with self._own_turn:
                return self._turns.do_work()
        finally:
            self._let_go_if_due()

    def _let_go_if_due(self) -> None:
        if self._closes_itself:
            self._held.close()

    def _check_waits(self, what: str) -> None:
        """Refuse to wait for the thread that would have to go on meanwhile."""
        if self._is_in_handler:
            raise ClusterError(
                f"{what}: a handler of a service runs on the thread that takes the node's turns, which would wait for "
                "itself; call it from another thread"
            )

    @property
    def _is_in_handler(self) -> bool:
        is_in_turn = self._thread is threading.current_thread() or self._own_turn.is_under_way
        return is_in_turn or self._turns.is_standing_in

    def _run(self) -> None:
        try:
            self._turns.run(self._stop.is_set)
        except BaseException as failure:
            self._failure = failure
        finally:
            self._let_go_if_due()
            self._has_run.set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the node has ended: an operator ended the cluster, a part failed, or a thread closed the node.

        A signal ends the wait if its handler raises, as with :func:`headrace.exit_on_sigterm`. With ``is_invoked=True``
        the turns are taken here meanwhile.

        Args:
            timeout_s: How long, in seconds; ``None`` waits without an end.

        Returns:
            Whether it has ended; false when the time is over.

        Raises:
            ClusterError: A part has failed; its failure is the cause.
        """
        self._check_waits("wait")
        if self._thread is not None:
            self._has_run.wait(timeout_s)
        elif not self.has_ended:
            deadline = self.module._clock.deadline(timeout_s)
            try:
                with self._own_turn:
                    self._turns.run(lambda: self._is_closed or deadline.is_over)
            except Exception as failure:
                self._failure = failure
            finally:
                self._let_go_if_due()
        if self._found() is not None:
            raise self._end()
        return self.has_ended

    def wait_until_leader(self, timeout_s: float | None = 30.0) -> None:
        """Wait until clients can connect: this member leads, or follows the one that does.

        Args:
            timeout_s: How long, in seconds; ``None`` waits without an end.

        Raises:
            ClusterError: The time is over, or the node has ended.
        """
        self._wait(lambda: self.module.leader_member_id is not None, timeout_s, "knows no leader")

    def take_snapshot(self, timeout_s: float | None = 30.0) -> None:
        """Have all members take a snapshot, with which their next start begins; wait until this one has taken it.

        The member must lead.

        Args:
            timeout_s: How long, in seconds; ``None`` waits without an end.

        Raises:
            ClusterError: Another member leads, a service or the module could not take it, the time is over, or the
                node has ended.
        """
        module = self.module
        deadline = module._clock.deadline(timeout_s)
        self._wait(lambda: module.leader_member_id is not None, timeout_s, "knows no leader", deadline)
        if module.leader_member_id != module.config.member_id:
            where = f"ask its node, or `headrace cluster snapshot`; this is member {module.config.member_id}"
            raise ClusterError(f"member {module.leader_member_id} leads, and has snapshots taken: {where}")
        self._wait(
            lambda: module.takes_requests, timeout_s, "does not accept a request for a snapshot", deadline
        )
        before = module.snapshot_count
        module.request(Toggle.SNAPSHOT)
        self._wait(lambda: module.takes_requests, timeout_s, "has not taken the snapshot", deadline)
        if module.snapshot_count == before:
            raise ClusterError(
                f"the snapshot failed: the error log in {self._parts.cluster_directory} says why"
            )

    def _wait(
        self,
        is_true: Callable[[], bool],
        timeout_s: float | None,
        what: str,
        deadline: Deadline | None = None,
    ) -> None:
        """Wait for something, for the time that is told, or what is left of it."""
        self._check_waits("wait_until_leader, take_snapshot and connect")
        clock = self.module._clock
        deadline = deadline or clock.deadline(timeout_s)
        while True:
            if self.has_ended:
                raise self._end()
            if is_true():
                return
            if deadline.is_over:
                reason = self.module.election_failure
                raise ClusterError(
                    f"the node {what} after {timeout_s} s: it is in state {self.module.state.name}"
                    f"{f', as its election fails: {reason}' if reason else ''}; its error log is in "
                    f"{self._parts.cluster_directory}"
                )
            if self._thread is None:
                self.do_work()
            else:
                clock.sleep(_LOOK_S)

    def _end(self) -> ClusterError:
        self._is_told = True
        failure = self._found()
        told = "it is closed" if self._is_closed else "an operator ended the cluster"
        ended = ClusterError(f"the node has ended: {failure or told}")
        ended.__cause__ = failure
        return ended

    def connect(
        self, timeout_s: float | None = 30.0, **settings: Unpack[ClusterClientSettings]
    ) -> ClusterClient:
        """A client of the cluster in this process; in a cluster of one over ``aeron:ipc``. Waits until a member leads.

        Args:
            timeout_s: How long that may take, in seconds; ``None`` waits without an end.
            **settings: See :meth:`headrace.cluster.ClusterClient.connect`.

        Raises:
            ClusterError: The time is over, or the node has ended; or as :meth:`headrace.cluster.ClusterClient.connect`.
        """
        self.wait_until_leader(timeout_s)
        members = self.module.config.all_members
        if len(members) == 1:
            settings.setdefault("ingress_channel", "aeron:ipc")
            settings.setdefault("egress_channel", "aeron:ipc")
        elif "ingress_channel" not in settings:
            settings.setdefault("ingress_endpoints", ingress_endpoints(members))
        return ClusterClient.connect(driver=self.driver, **settings)

    def connect_driver(self) -> Client:
        """A client of the node's driver."""
        return Client.connect(driver=self.driver)

    @property
    def directory(self) -> str:
        """Where the node keeps its files."""
        return os.fspath(self._directory)

    @property
    def failure(self) -> BaseException | None:
        """Why the node ended by itself, if it failed."""
        failure = self._found()
        self._is_told = self._is_told or failure is not None
        return failure

    def _found(self) -> BaseException | None:
        failures = [self._failure, self.module.failure, *(one.failure for one in self.containers)]
        return next((one for one in failures if one is not None), None)

    @property
    def has_ended(self) -> bool:
        """Whether the node has stopped: an operator ended the cluster, a part failed, or it is closed."""
        return self._is_closed or self.module.has_terminated or self._found() is not None

    @property
    def is_closed(self) -> bool:
        """True once closed."""
        return self._is_closed

    def _settle(self) -> None:
        # What fails here has failed before, or is nothing that a start could not find out.
        with contextlib.suppress(HeadraceError, OSError):
            self._turns.settle()

    def close(self) -> None:
        """End services, consensus module, archive and the driver, if it is the node's own. Waits for the thread.

        The files stay, so the next start has the state again. Closing again does nothing. When a handler of a service
        calls it, the node closes once the handler has returned.

        Raises:
            DeterminismError: A :class:`headrace.cluster.DeterminismCheck` among the services has found something; all
                is closed then. At the end of a ``with`` block that has raised, that error goes on instead.
        """
        was_closed, self._is_closed = self._is_closed, True
        self._stop.set()
        if self._is_in_handler:
            self._closes_itself = self._closes_itself or not was_closed
            return
        if self._thread is not None:
            self._thread.join()
        self._held.close()
        checks, self._checks = self._checks, []
        for check in checks:
            check.verify()

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # What the block has raised is not hidden.
        with contextlib.suppress(*(() if exception is None else (DeterminismError,))):
            self.close()
        if exception is None and self._found() is not None and not self._is_told:
            raise self._end()

    def _forget(self) -> None:
        """In a forked child, whose node this is not: each part forgets itself."""
        self._is_closed = True
        self._thread = None
        self._held.pop_all()

    def __repr__(self) -> str:
        return f"ClusterNode({self.directory!r}{', closed' if self._is_closed else ''})"


def _check_free(driver: LocalDriver | None) -> None:
    """Refuse a driver that another node of this process uses."""
    for node in list(_RUNNING):
        if driver is not None and node.driver is driver and not node.is_closed:
            rule = f"is used by the node of {node.directory}: leave it out, or give each node its own driver"
            raise wrong("driver", driver, rule)


@atexit.register
def _close_all() -> None:
    """The parts would be closed one by one, and the node's thread would step what is closed."""
    for node in list(_RUNNING):
        # What a check found is in the error log; the others are still to be closed.
        with contextlib.suppress(DeterminismError):
            node.close()
