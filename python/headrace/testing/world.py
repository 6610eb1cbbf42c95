"""Whole nodes under one seed: real drivers and clients on a simulated network, in virtual time, on one thread.

A second of virtual time takes milliseconds. The same seed gives the same run, byte for byte, so a failure that the
seed 4711 shows once is shown by it always.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import tempfile
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from headrace import _core
from headrace._base.closing import Closing
from headrace._base.exceptions import ConfigError, HeadraceError
from headrace._base.fork import is_own
from headrace._settings.keywords import DriverConfig
from headrace.client import Client
from headrace.clock import Clock
from headrace.event_log import read_events
from headrace.testing.garbage import NO_COLLECTION
from headrace.testing.loop import WorldEventLoop
from headrace.testing.seeds import choose_seed, replay_note
from headrace.testing.storage import Killed, SimulatedStorage

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Unpack

    from headrace._settings.keywords import ArchiveSettings, DriverSettings
    from headrace.archive import ArchiveServer
    from headrace.client._keywords import ClientKeywords

__all__ = ["Link", "Node", "World", "WorldTimeoutError"]

_NS_PER_S = 1_000_000_000
_END_OF_TIME_NS = 2**63 - 1
# Where logs that no one keeps cost no disk.
_SHARED_MEMORY = Path("/dev/shm")
# Of archives, where nothing is said: files are in memory, and are made in full.
_SEGMENT_LENGTH = 1024 * 1024
# Events in the text of a failure.
_SHOWN_EVENTS = 40
_SHOWN_CHANGES = 20

Program = Callable[[], int | None]
_Result = TypeVar("_Result")


class Agent(Protocol):
    """What a node gives turns: an archive, or a part of a cluster."""

    @property
    def is_closed(self) -> bool: ...
    def do_work(self) -> int: ...
    def close(self) -> None: ...
    def _forget(self) -> None: ...
    def _fail(self, failure: BaseException) -> None: ...


_Agent = TypeVar("_Agent", bound=Agent)


class NodeClock(Clock):
    """The clock of a node: the time of the world, and a wall clock that may be wrong. Sleeping steps the world."""

    def __init__(self, core: _core.Node, run_for: Callable[[float], None]) -> None:
        self._core = core
        self._run_for = run_for

    def monotonic_ns(self) -> int:
        """See :class:`headrace.clock.Clock`. The same on all nodes."""
        return self._core.clock_ns()[0]

    def epoch_ns(self) -> int:
        """See :class:`headrace.clock.Clock`. Moved by :meth:`Node.set_clock_skew`."""
        return self._core.clock_ns()[1]

    def sleep(self, duration_s: float) -> None:
        """Step the world for so many virtual seconds."""
        self._run_for(duration_s)

    def __repr__(self) -> str:
        return f"NodeClock({self._core.name!r})"


class WorldTimeoutError(HeadraceError, TimeoutError):
    """A condition did not come true in its virtual time. The text has the seed and the last events of the world."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The way from one node to another. The default is a good local network.

    Attributes:
        loss: Chance that a datagram is lost.
        duplicate: Chance that it arrives twice.
        reorder: Chance that it takes up to ten times as long, so that later ones overtake it. Others arrive in the
            order they were sent.
        delay_s: Shortest time under way.
        jitter_s: Up to this much more.
        bytes_per_second: What the link carries; ``None`` is anything. A sender whose buffer is full has to wait.
    """

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    delay_s: float = 20e-6
    jitter_s: float = 30e-6
    bytes_per_second: int | None = None

    def __post_init__(self) -> None:
        for name in ("loss", "duplicate", "reorder"):
            chance = getattr(self, name)
            if not 0.0 <= chance <= 1.0:
                raise _invalid(name, chance, "must be a chance between 0 and 1")
        for name in ("delay_s", "jitter_s"):
            time_s = getattr(self, name)
            if not 0.0 <= time_s <= 3600.0:
                raise _invalid(name, time_s, "must be between 0 and 3600 seconds")
        if self.bytes_per_second is not None and not 1 <= self.bytes_per_second < 2**63:
            raise _invalid("bytes_per_second", self.bytes_per_second, "must be at least 1, or None")

    def _values(self) -> tuple[float, float, float, int, int, int | None]:
        shortest_ns, longest_ns = _ns(self.delay_s), _ns(self.delay_s + self.jitter_s)
        return self.loss, self.duplicate, self.reorder, shortest_ns, longest_ns, self.bytes_per_second


class Node:
    """A machine of a :class:`World`: a real driver, clients, programs, a clock, an address. Made by `World.add_node`.

    It is used from the thread of its world. Wherever a driver in this process is asked for, as in
    ``headrace.connect(driver=...)``, a node will do.
    """

    def __init__(self, core: _core.Node, world: World) -> None:
        self._driver = core
        self._directory = os.fspath(core.directory)
        # A weak proxy: the world has its nodes.
        self._world = world
        self._clock: Clock = NodeClock(core, lambda duration_s: world.run_for(duration_s))
        self._disks: dict[str, SimulatedStorage] = {}
        self._agents: list[Agent] = []
        self._archive_count = 0
        self._programs: list[Program] = []
        # Those whose turn it is: they wait for something, while the world goes on.
        self._running: list[Program] = []

    @property
    def name(self) -> str:
        """Its name, which channels may use as a host."""
        return self._driver.name

    @property
    def address(self) -> str:
        """Its address in the network of the world."""
        return self._driver.address

    @property
    def address_v6(self) -> str:
        """Its IPv6 address; its name stands for the other."""
        return self._driver.address_v6

    @property
    def directory(self) -> str:
        """Where its driver keeps its files, which are real."""
        return self._directory

    @property
    def is_up(self) -> bool:
        """True while it has a driver: until it crashes or is closed, and after `start`."""
        return self._driver.is_up

    @property
    def is_paused(self) -> bool:
        """True between `pause` and `resume`."""
        return self._driver.is_paused

    @property
    def time_ns(self) -> int:
        """Nanoseconds since 1970 on the wall clock of the node."""
        return self._driver.clock_ns()[1]

    @property
    def clock(self) -> Clock:
        """What its driver and its clients go by. Sleeping on it steps the world."""
        return self._clock

    def connect(self, **keywords: Unpack[ClientKeywords]) -> Client:
        """Connect a client, which gets its turns from the world.

        Calls that wait step the world: requests such as ``add_publication``, and all with a ``timeout_s``, which
        counts virtual time. Other nodes and programs go on meanwhile.

        Args:
            **keywords: See :meth:`headrace.Client.connect`.

        Raises:
            DriverTimeoutError: The node has no driver, for ``driver_timeout_ms`` of virtual time.
            ConfigError: A setting is wrong.
        """
        return Client.connect(driver=self, **keywords)

    def disk(self, name: str = "archive") -> SimulatedStorage:
        """A disk of the machine, which is made when it is first asked for and outlives every crash."""
        if name not in self._disks:
            whole_name = f"{self.name}:{name}"
            chance = random.Random(f"{self._world.seed} disk {whole_name}")
            events = Path(f"{self._directory}.disk-{len(self._disks)}")
            events.mkdir()
            self._disks[name] = SimulatedStorage(
                chance, clock=self._clock, name=whole_name, event_directory=os.fspath(events)
            )
        return self._disks[name]

    def run_archive(self, disk: str = "archive", **settings: Unpack[ArchiveSettings]) -> ArchiveServer:
        """Start an archive on a disk of the node, as it is, which gets its turns from the world.

        Clients reach it as any archive: those of the node through ``aeron:ipc``, others through the control channel,
        by default ``aeron:udp?endpoint=NODE:8010``. A crash ends it without a last word; so does a kill before a step
        of its disk, which is a crash of the node.

        Args:
            disk: Which disk of the node; see :meth:`disk`.
            **settings: See :class:`headrace.archive.ArchiveConfig`. Segments have 1 MiB if nothing is said. Where the
                files are is the world's choice.

        Raises:
            ConfigError: A setting is wrong.
            ArchiveFileError: Another archive runs on the disk, or a file is damaged.
            DriverTimeoutError: The node has no driver.
            OSError: The disk refuses.
            Killed: The disk was to end its process before a step of this start.
        """
        from headrace.archive import ArchiveServer

        settings.setdefault("control_channel", f"aeron:udp?endpoint={self.name}:8010")
        settings.setdefault("segment_file_length", _SEGMENT_LENGTH)
        self._archive_count += 1
        self._note(f"starts archive {self._archive_count}")
        chance = random.Random(f"{self._world.seed} archive {self.name} {self._archive_count}")
        return self.host(
            lambda: ArchiveServer(
                driver=self,
                is_invoked=True,
                storage=self.disk(disk),
                chance=chance,
                on_event=self._note_event,
                **settings,
            )
        )

    def host(self, start: Callable[[], _Agent]) -> _Agent:
        """Start an agent, such as a consensus module, which gets its turns from the world as an archive does.

        A crash of the node ends it without a last word; so does a kill before a step of one of its disks.

        Args:
            start: Makes the agent, with this node as its driver, ``is_invoked=True``, and disks of the node as storage.

        Raises:
            Killed: The disk was to end its process before a step of this start.
        """
        try:
            agent = start()
        except Killed:
            self.crash(keeps_writes=True)
            raise
        self._agents.append(agent)
        return agent

    def run(self, program: Program) -> None:
        """Call `program` after each step, while the node runs. It returns how much it did, or ``None`` for nothing.

        It may call what waits: then the world goes on, with all programs but this one, and it goes on itself after
        those that began to wait later. Programs that wait for each other are for :meth:`World.run_async`. What it
        raises comes out of the step, or of the call that made the step. A crash ends the programs of the node; `start`
        does not bring them back.
        """
        self._programs.append(program)

    def start(self) -> None:
        """Launch a driver again, after a crash or `close`, on the directory as it is.

        Raises:
            ConfigError: The node is up.
            DriverError: The driver did not start.
        """
        self._driver.start()

    def crash(self, *, keeps_writes: bool = False) -> None:
        """End driver, clients, archives and programs as by a power cut: neither peers nor files are told.

        Its clients are closed. What its disks have not synced is there or is not, page by page, as the seed decides.

        Args:
            keeps_writes: As by a kill of all its processes: the disks keep what was written.

        Raises:
            ConfigError: The node is down.
        """
        self._programs.clear()
        agents, self._agents = self._agents, []
        for agent in agents:
            agent._forget()
        for name, disk in self._disks.items():
            lost_count = disk.crash(keeps_writes=keeps_writes)
            self._note(f"loses {lost_count} pages and names of disk {name}")
        self._driver.crash()

    def close(self) -> None:
        """End clients, archives and driver in good order, and the programs. Does nothing when the node is down."""
        self._programs.clear()
        agents, self._agents = self._agents, []
        try:
            for agent in agents:
                agent.close()
        except Killed as killed:
            self._note(f"is killed before a change of {killed}")
        finally:
            self._driver.close()

    def pause(self) -> None:
        """Stand still until `resume`. What peers send fills the socket buffers, and then is lost."""
        self._driver.pause()

    def resume(self) -> None:
        """Go on. For the node a moment has passed; its clocks say how long it was."""
        self._driver.resume()

    def set_clock_skew(self, skew_s: float) -> None:
        """Set how far the wall clock is ahead of that of the world. Time-outs go by the other clock, which is right."""
        self._driver.set_clock_skew_ns(_ns(skew_s))

    def jump_clock(self, by_s: float) -> None:
        """Set the wall clock forwards, or backwards, from where it is, as an operator or a time server does."""
        self._driver.jump_clock_ns(_ns(by_s))

    def set_disk_room(self, length: int | None) -> None:
        """Leave room for so many bytes of publications and images in all; ``None`` is room for anything.

        A publication that finds no room is refused with a :class:`headrace.RegistrationError`; an image comes when
        there is room.
        """
        if length is not None and not 0 <= length < 2**64:
            raise _invalid("length", length, "must be from 0 to 2**64 - 1, or None")
        self._driver.set_disk_room(length)

    def crash_client(self, client: Client) -> None:
        """End one client as by a kill of its process, while the driver and the other clients go on.

        The driver is not told, and notices it as it notices the end of a process. The client is closed; no handler
        runs.
        """
        self._driver.crash_client(client._client)

    def set_stalled(self, client: Client, stalled: bool) -> None:
        """Give one client no more turns, as when its program hangs, or its turns again.

        After the driver's ``client_liveness_timeout_ns`` without a turn the driver gives the client up, and the client
        closes itself on its next turn.
        """
        self._driver.set_stalled(client._client, stalled)

    def set_link(self, other: Node, link: Link | None) -> None:
        """Set the link to another node apart from all others, in this direction; ``None`` undoes that."""
        self._driver.set_link_to(other._driver, None if link is None else link._values())

    def cut(self, other: Node) -> None:
        """Let nothing through to another node, in this direction. See also :meth:`World.partition`."""
        self._driver.set_cut_to(other._driver, True)

    def mend(self, other: Node) -> None:
        """Undo `cut`."""
        self._driver.set_cut_to(other._driver, False)

    def _turn(self) -> int:
        # Most of a world's time passes here, in steps that have nothing to do: so these are plain loops.
        work_count = 0
        # Each of them may start others, or crash its node.
        for agent in tuple(self._agents):
            work_count += self._step_agent(agent)
        programs = self._programs
        for program in tuple(programs):
            if program in programs:
                work_count += self._step(program)
        return work_count

    def _step_agent(self, agent: Agent) -> int:
        if agent.is_closed:
            if agent in self._agents:
                self._agents.remove(agent)
            return 0
        try:
            return self._step(agent.do_work)
        except Killed as killed:
            self._note(f"is killed before a change of {killed}")
            self.crash(keeps_writes=True)
        except (HeadraceError, OSError) as failure:
            # What crashed while it waited for its driver is gone, and has no last word.
            if agent not in self._agents:
                return 0
            # As its thread does: its driver is gone, or has given it up, or a disk has refused what it needs.
            agent._fail(failure)
            self._agents.remove(agent)
            self._note(f"has an {type(agent).__name__} that stopped: {type(failure).__name__}")
        return 0

    def _step(self, program: Program) -> int:
        if self.is_paused or program in self._running:
            return 0
        self._running.append(program)
        try:
            return program() or 0
        finally:
            self._running.remove(program)

    def _note_event(self, text: str) -> None:
        """Put a change of state of an archive into the trace; where the world has its files differs from run to run."""
        self._note(text.replace(str(Path(self._directory).parent), ""))

    def _event_directories(self) -> list[str]:
        """Where its driver and its archives keep their events."""
        return [self._directory, *filter(None, (disk.event_directory for disk in self._disks.values()))]

    def _note(self, text: str) -> None:
        self._world._core.note(f"{self.name} {text}")

    def __repr__(self) -> str:
        state = "paused" if self.is_paused else "up" if self.is_up else "down"
        return f"Node({self.name!r}, {state})"


class World(Closing):
    """Nodes on one simulated network, on one thread, in virtual time.

    Each node has a real driver with real files, and real clients. Time passes only in :meth:`step`, in what calls it
    (:meth:`run_for`, :meth:`run_until`), and in calls of clients that wait. The seed decides the
    rest: how long each step is, in which order nodes take their turns, what the network loses and delays, and all ids
    that are chosen at random. Python's own ``random`` and ``time`` know nothing of the seed: a program draws from
    ``random.Random(world.seed)`` and asks the world for the time.

    A context manager that closes all nodes and deletes their files. It is used from one thread. While a world is open,
    Python does not collect cycles of garbage by itself: when it did would depend on what the process did before, and an
    object that goes may close a stream.

    Args:
        seed: A whole number from 0 to 2**64 - 1. If not given, that of the environment variable ``HEADRACE_SEED``, or a
            fresh one.
        checks: Hold drivers and logs against the rules of ``docs/internals/world.md`` after each step. A world without
            is faster, and sees no defect by itself.
    """

    def __init__(self, seed: int | None = None, *, checks: bool = True) -> None:
        chosen = choose_seed(seed)
        if not 0 <= chosen < 2**64:
            raise _invalid("seed", chosen, "must be a whole number from 0 to 2**64 - 1")
        place = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None
        directory = tempfile.mkdtemp(prefix="headrace-world-", dir=place)
        self._core = _core.World(chosen, directory, checks)
        self._nodes: dict[str, Node] = {}
        # Weak, as the world holds what calls it.
        world = weakref.proxy(self)
        self._core.set_programs(lambda: world._turn())
        NO_COLLECTION.begin()
        self._finalizer = weakref.finalize(self, _end, self._nodes, directory, os.getpid())

    @property
    def seed(self) -> int:
        """The seed that decides this world."""
        return self._core.seed

    @property
    def now_s(self) -> float:
        """Virtual seconds since the world began."""
        return self._core.now_ns / _NS_PER_S

    @property
    def now_ns(self) -> int:
        """Virtual nanoseconds since the world began."""
        return self._core.now_ns

    @property
    def nodes(self) -> Mapping[str, Node]:
        """All nodes by name."""
        return MappingProxyType(self._nodes)

    @property
    def socket_count(self) -> int:
        """Sockets that drivers of the world have open."""
        return self._core.socket_count

    def add_node(
        self, name: str, *, properties: Mapping[str, str] | None = None, **settings: Unpack[DriverSettings]
    ) -> Node:
        """Add a machine, whose driver runs when this returns.

        Args:
            name: Its host name: a letter, then letters, digits and hyphens. Another node must not have it.
            properties: Settings by the specification's property names.
            **settings: See :class:`headrace.DriverConfig`. Directory and threading mode are the world's. Terms have
                256 KiB and counters 1 MiB if nothing is said; the environment variables of drivers do not count.

        Raises:
            ConfigError: The name is taken or no host name, or a setting is wrong.
        """
        for ours in ("directory", "threading_mode"):
            if ours in settings:
                raise _invalid(ours, settings[ours], "is chosen by the world")
        config = DriverConfig(**settings, properties=dict(properties or {}))
        node = Node(self._core.add_node(name, list(config.to_properties().items())), weakref.proxy(self))
        self._nodes[name] = node
        return node

    def step(self) -> int:
        """Move time a little and give each node that runs one turn: its driver, its clients, then its programs.

        Time moves by microseconds after a step with work, and by up to a millisecond when there is none.

        Returns:
            How much work was done.

        Raises:
            DriverError: A driver broke a rule about its positions, limits, counts or queues. The text has the rule, the
                values, the seed and the last events.
        """
        return self._step(_END_OF_TIME_NS)

    def _step(self, end_ns: int) -> int:
        return self._core.step(end_ns)

    def _turn(self) -> int:
        """What follows the turns of drivers and clients in each step, whichever call makes the step."""
        work_count = 0
        for node in tuple(self._nodes.values()):
            if node._agents or node._programs:
                work_count += node._turn()
        if work_count > 0:
            self._core.note_work()
        return work_count

    def run_for(self, duration_s: float) -> None:
        """Step until `duration_s` virtual seconds have passed."""
        end_ns = self._end_ns(duration_s)
        while self.now_ns < end_ns:
            self._step(end_ns)

    def run_until(self, condition: Callable[[], object], *, within_s: float, what: str = "condition") -> None:
        """Step until `condition()` is true, which is asked between any two steps.

        Args:
            condition: What is waited for. It may do things, such as polling a subscription.
            within_s: Longest wait, in virtual seconds; ``math.inf`` waits without end.
            what: Name of what is waited for, for the error.

        Raises:
            WorldTimeoutError: It is not true yet. The text has the seed, the last events, and each node's last changes
                of state.
        """
        end_ns = self._end_ns(within_s)
        while not condition():
            if self.now_ns >= end_ns:
                raise WorldTimeoutError(
                    f"{what}: not after {within_s:g} s of virtual time; {replay_note('the world', self.seed)}\n"
                    f"{self.trace(_SHOWN_EVENTS)}\n{self._states_text()}"
                )
            self._step(end_ns)

    def _end_ns(self, duration_s: float) -> int:
        """When so much virtual time has passed, or time ends, which it does after 292 years."""
        left_ns = _END_OF_TIME_NS - self.now_ns
        return self.now_ns + (left_ns if duration_s * _NS_PER_S >= left_ns else _ns(duration_s))

    def _states_text(self) -> str:
        """The last changes of state on each node whose driver and archives keep event logs."""
        lines = []
        for node in self._nodes.values():
            for directory in node._event_directories():
                with suppress(HeadraceError):
                    lines += [f"{node.name}: {event}" for event in read_events(directory)[-_SHOWN_CHANGES:]]
        return "\n".join(lines)

    def run_async(self, main: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a coroutine, and what it starts, in the time of the world, as ``asyncio.run`` in that of the machine.

        Each turn of the event loop is a step of the world, so ``asyncio.sleep``, ``asyncio.timeout`` and the time-outs
        of clients count virtual time. What would run in a thread, as the requests of
        :class:`headrace.archive.aio.AsyncArchive`, runs at once: other coroutines wait for it, and the world goes on.

        Returns:
            What the coroutine returns.
        """
        with asyncio.Runner(loop_factory=lambda: WorldEventLoop(self)) as runner:
            return runner.run(main)

    def set_links(self, link: Link) -> None:
        """Set what all links do, but for those that were set apart."""
        self._core.set_links(link._values())

    def set_lookup_time(self, duration_s: float | None) -> None:
        """Set how long name servers take to answer, for names that are asked for from now on; ``None`` is for ever."""
        self._core.set_lookup_ns(_END_OF_TIME_NS if duration_s is None else _ns(duration_s))

    @property
    def _has_programs(self) -> bool:
        """Whether a node has something to give turns to in each step."""
        return any(node._agents or node._programs for node in self._nodes.values())

    def _let_nodes_rest(self, rest_max_ns: int) -> None:
        """Give a node no turn for a random time up to this when it has nothing to do: a faster world."""
        self._core.set_rest_ns(rest_max_ns)

    def partition(self, *groups: Iterable[Node]) -> None:
        """Cut every link between nodes of different groups, in both directions. Inside a group nothing changes."""
        for left, right in _across(groups):
            left.cut(right)
            right.cut(left)

    def heal(self) -> None:
        """Mend all cuts; what else the links do stays."""
        for left, right in _across([node] for node in self._nodes.values()):
            left.mend(right)
            right.mend(left)

    def trace(self, count: int = 10_000) -> str:
        """The last events, one a line: datagrams with their fate, and what was done to the world.

        Args:
            count: How many at most; the world keeps 10,000.
        """
        return self._core.trace(count)

    @property
    def digest(self) -> tuple[int, int]:
        """Number of events so far, and a hash over all their times and bytes. The same for the same seed."""
        return self._core.digest()

    def close(self) -> None:
        """Close all nodes, with their clients, and delete their files. Closing again does nothing."""
        self._finalizer()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if value is not None:
            value.add_note(replay_note("headrace.testing.World", self.seed))

    def __repr__(self) -> str:
        return f"World(seed={self.seed}, now_s={self.now_s:g}, nodes={list(self._nodes)})"


def _end(nodes: dict[str, Node], directory: str, pid: int) -> None:
    """Closes what a world has; a child of a fork has nothing to close."""
    NO_COLLECTION.end()
    if not is_own(pid):
        return
    try:
        for node in nodes.values():
            node.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _across(groups: Iterable[Iterable[Node]]) -> Iterator[tuple[Node, Node]]:
    """Each pair of nodes of different groups, once."""
    members = [list(group) for group in groups]
    for index, group in enumerate(members):
        for other in members[index + 1 :]:
            for left in group:
                for right in other:
                    yield left, right


def _ns(seconds: float) -> int:
    return round(seconds * _NS_PER_S)


def _invalid(name: str, value: object, rule: str) -> ConfigError:
    return ConfigError(f"{name}={value!r}: {rule}", name, repr(value), rule)
