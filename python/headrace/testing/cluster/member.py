"""One member of a simulated cluster: a machine with a driver, an archive, a consensus module and a service."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from headrace._base.exceptions import HeadraceError
from headrace.cluster import ConsensusModule, ServiceContainer
from headrace.testing.storage import Killed

if TYPE_CHECKING:
    from headrace.archive import ArchiveServer
    from headrace.cluster import ClusteredService
    from headrace.testing.cluster.world import ClusterWorld
    from headrace.testing.world import Node

__all__ = ["DISKS", "PARTS", "ClusterMember"]

DISKS = ("archive", "cluster", "service")
"""The disks of a member: of its archive, its consensus module, and its service."""
PARTS = ("archive", "module", "container")
"""The parts of a member that take turns, besides its driver."""


_NEVER_NS = 1 << 62
# After work a part rests for so much less.
_BUSY_DIVISOR = 8
# When a member is looked at again that can take no turn.
_AWAITED_NS = 1_000_000


class _Part:
    """An agent, and until when it takes no turn."""

    __slots__ = ("agent", "until_ns")

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        self.until_ns = 0

    @property
    def has_ended(self) -> bool:
        agent = self.agent
        return bool(agent.is_closed or agent.failure is not None or getattr(agent, "has_terminated", False))


class ClusterMember:
    """A member of a :class:`ClusterWorld`. The world gives its parts their turns, and starts what has ended again.

    Attributes:
        member_id: Its id in the cluster.
        node: The machine: its disks, its clock, its links.
        service: The service of its present life; ``None`` before the first.
        settings: Of its consensus module, beside those of the cluster, from its next life on.
        failure: Why a part of it has ended last, or did not start.
        is_replacement: Its disks are new, and it has not followed a leader since: it neither votes nor stands.
        next_ns: Before then it has nothing to do.
    """

    def __init__(self, cluster: ClusterWorld, member_id: int, node: Node) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self.member_id = member_id
        self.node = node
        self.service: ClusteredService | None = None
        self.settings: dict[str, Any] = {}
        self.failure = ""
        self._chance = random.Random(f"{cluster.world.seed} member {member_id}")
        self._parts: dict[str, _Part] = {}
        self.next_ns = 0
        self._takes_turn = False
        # When what has ended is started again.
        self._due_ns: dict[str, int] = {}
        self._is_held = False
        self.is_replacement = False

    def _agent(self, name: str) -> Any:
        part = self._parts.get(name)
        return None if part is None else part.agent

    @property
    def archive(self) -> ArchiveServer | None:
        """Its archive; ``None`` while that is down."""
        archive: ArchiveServer | None = self._agent("archive")
        return archive

    @property
    def module(self) -> ConsensusModule | None:
        """Its consensus module; ``None`` while that is down."""
        module: ConsensusModule | None = self._agent("module")
        return module

    @property
    def container(self) -> ServiceContainer | None:
        """What runs its service; ``None`` while that is down."""
        container: ServiceContainer | None = self._agent("container")
        return container

    @property
    def is_up(self) -> bool:
        """Whether all its parts run."""
        is_whole = self.node.is_up and len(self._parts) == len(PARTS)
        return is_whole and not any(part.has_ended for part in self._parts.values())

    @property
    def is_leader(self) -> bool:
        """Whether it leads."""
        return self.is_up and self._agent("module").is_leader

    @property
    def is_elected(self) -> bool:
        """Whether it leads or follows, so that no election is under way."""
        return self.is_up and self._agent("module")._election.is_closed

    @property
    def leadership_term_id(self) -> int:
        """The term of the last entry that it has; -1 while it is down."""
        module = self.module
        return -1 if module is None else module.leadership_term_id

    @property
    def commit_position(self) -> int:
        """Up to where it knows the log to be agreed upon; -1 while it is down."""
        module = self.module
        return -1 if module is None else module.commit_position

    @property
    def applied_position(self) -> int:
        """Up to where its service has handled the log; -1 while it is down, or has a task of several turns."""
        container = self.container
        if container is None or not container._running.is_idle:
            return -1
        return container._position

    @property
    def segment_length(self) -> int:
        """Bytes in a segment file of its archive."""
        length: int = self._cluster.archive_settings(self)["segment_file_length"]
        return length

    # --- life ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start what is down of it. What does not start is tried again, and :attr:`failure` says why."""
        if not self.node.is_up:
            self.node.start()
        for name in PARTS:
            if name not in self._parts and not self._begin(name):
                return

    def _begin(self, name: str) -> bool:
        make = {
            "archive": self._begun_archive,
            "module": self._made_module,
            "container": self._made_container,
        }
        try:
            agent = make[name]()
        except Killed:
            self.crash()
            return False
        except (HeadraceError, OSError) as failure:
            self.failure = f"{name}: {failure!r}"
            self._note(f"does not start: {self.failure}")
            if self._cluster.is_process_each:
                self._await_restart(name)
            else:
                self._end_all()
            return False
        self._parts[name] = _Part(agent)
        self._due_ns.pop(name, None)
        self.next_ns = 0
        return True

    def _begun_archive(self) -> ArchiveServer:
        archive = self.node.run_archive(**self._cluster.archive_settings(self))
        # It takes its turns from this member.
        self.node._agents.remove(archive)
        return archive

    def _made_module(self) -> ConsensusModule:
        return ConsensusModule(
            driver=self.node,
            is_invoked=True,
            storage=self.node.disk("cluster"),
            on_error=self._note,
            is_replacement=self.is_replacement,
            **self._cluster.module_settings(self),
        )

    def _made_container(self) -> ServiceContainer:
        self.service = self._cluster.make_service()
        return ServiceContainer(
            self.service,
            driver=self.node,
            is_invoked=True,
            storage=self.node.disk("service"),
            on_error=self._note,
        )

    def _note(self, text: str) -> None:
        self._cluster.note(f"{self.node.name}: {text}")

    def crash(self) -> None:
        """End all its processes at once, by a kill."""
        self._crash(keeps_writes=True)

    def cut_power(self) -> None:
        """End all its processes; what was not forced to a disk is lost, or torn, as the seed decides."""
        if self._crash(keeps_writes=False) and self._cluster.sync_level == 0:
            self._cluster.rules.forget()

    def _crash(self, *, keeps_writes: bool) -> bool:
        if not self.node.is_up:
            return False
        self._forget()
        self.node.crash(keeps_writes=keeps_writes)
        self.next_ns = 0
        return True

    def hold(self) -> None:
        """Crash it, and keep it down until it is mended."""
        self.crash()
        self._is_held = True

    def kill(self, name: str) -> None:
        """End one part without a last word, as by a kill of its process; the driver and the others go on."""
        part = self._parts.pop(name, None)
        if part is None:
            return
        client = part.agent._client
        if client is not None and not client.is_closed:
            self.node.crash_client(client)
        part.agent._forget()
        self._await_restart(name)

    def stop(self) -> None:
        """End all its parts in good order."""
        for name in ("module", "container", "archive"):
            self._close(name)

    def _close(self, name: str) -> None:
        part = self._parts.pop(name, None)
        if part is None:
            return
        try:
            part.agent.close()
        except Killed:
            self.crash()
        except (HeadraceError, OSError) as failure:
            # Its driver or its disk is gone.
            self._note(f"{name} closes: {failure!r}")

    def empty(self) -> None:
        """Crash it, and delete all that is on its disks: a new machine in the place of a lost one."""
        self.crash()
        for name in DISKS:
            disk = self.node.disk(name)
            disk.mend()
            for file in disk.names():
                disk.delete(file)
            disk.sync()
        self.is_replacement = self._cluster.rules.committed_position > 0

    # --- turns -----------------------------------------------------------------------------------------------------

    def take_turn(self, now_ns: int) -> int:
        """A turn of each part for which it is time; returns how much there was to do."""
        if self._takes_turn or self.node.is_paused:
            # A part waits for something, in steps of the world that it makes itself.
            self.next_ns = now_ns + _AWAITED_NS
            return 0
        if self._parts and not self.node.is_up:
            self._forget()
        self._takes_turn = True
        try:
            work_count = self._work(now_ns)
        finally:
            self._takes_turn = False
        self.next_ns = self._next_turn_ns()
        return work_count

    def _work(self, now_ns: int) -> int:
        work_count = 0
        for name, part in tuple(self._parts.items()):
            if now_ns >= part.until_ns and self._parts.get(name) is part:
                work_count += self._step(name, part, now_ns)
        self._cluster.rules.check(self)
        if self.is_replacement and self.is_elected:
            self.is_replacement = False
        if self._cluster.is_supervised and not self._is_held:
            self._supervise(now_ns)
        return work_count

    def _next_turn_ns(self) -> int:
        """When a part has its next turn, or what has ended is started again."""
        return min([part.until_ns for part in self._parts.values()] + [*self._due_ns.values(), _NEVER_NS])

    def _step(self, name: str, part: _Part, now_ns: int) -> int:
        try:
            work_count: int = part.agent.do_work()
        except Killed:
            self._end_killed(name)
            return 1
        except (HeadraceError, OSError) as failure:
            # What crashed while it waited for its driver is gone, and has no last word.
            if self._parts.get(name) is part:
                part.agent._fail(failure)
            work_count = 1
        if part.has_ended:
            self._end(name, part)
        elif part.until_ns <= now_ns:
            # As an agent does that backs off.
            rest_ns = self._cluster.rest_ns // _BUSY_DIVISOR if work_count else self._cluster.rest_ns
            part.until_ns = now_ns + self._chance.randrange(rest_ns)
        return work_count

    def _end_killed(self, name: str) -> None:
        if self._cluster.is_process_each:
            self.kill(name)
        else:
            self.crash()

    def _end(self, name: str, part: _Part) -> None:
        """A part has ended: with it all do that are of the same process."""
        if self._parts.get(name) is not part:
            return
        self.failure = f"{name}: {part.agent.failure!r}"
        self._note(f"ends: {self.failure}")
        if self._cluster.is_process_each:
            self._close(name)
            self._await_restart(name)
        else:
            self._end_all()

    def _end_all(self) -> None:
        self.stop()
        self.crash()

    def _forget(self) -> None:
        parts, self._parts = self._parts, {}
        self._due_ns.clear()
        for part in parts.values():
            part.agent._forget()

    def _await_restart(self, name: str) -> None:
        self._due_ns[name] = self._world.now_ns + self._cluster.restart_delay_ns()

    def _supervise(self, now_ns: int) -> None:
        """Start what has ended, after a while."""
        if not self.node.is_up and not self._due_ns:
            self._await_restart("archive")
        elif self._due_ns and min(self._due_ns.values()) <= now_ns:
            self._due_ns.clear()
            self.start()

    # --- faults ----------------------------------------------------------------------------------------------------

    def stall(self, name: str, duration_s: float) -> None:
        """Give a part no turn for so long: ``"archive"``, ``"module"`` or ``"container"``."""
        if name in self._parts:
            self._parts[name].until_ns = self._world.now_ns + round(duration_s * 1e9)

    def mend(self) -> None:
        """Its disks and its processes are well again, and it is not paused."""
        self._is_held = False
        self.node.resume()
        for name in DISKS:
            disk = self.node.disk(name)
            disk.space = self._cluster.disk_space
            disk.mend()
        for part in self._parts.values():
            part.until_ns = 0
        self.next_ns = 0

    @property
    def description(self) -> str:
        """What it does now, and why a part of it has ended last, for the text of a failure."""
        module = self.module
        states = "" if module is None else f"module {module.state.name}"
        if module is not None and module._election.has_started:
            states += f", election {module._election.state.name} {module.election_failure}"
        return f"{self!r}: {states}; {self.failure}"

    def __repr__(self) -> str:
        state = "leads" if self.is_leader else "up" if self.is_up else "down"
        return f"ClusterMember({self.member_id}, {state})"
