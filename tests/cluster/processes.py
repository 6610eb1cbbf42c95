"""Clusters of members in processes of their own, and a client that never rests: for tests of real faults.

The members are those of `headrace cluster demo`: a service that counts numbered commands, and a log that says at the
end which of them each member has.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from headrace import Client, HeadraceError, MediaDriver
from headrace.cli.cluster.demo.commands import Commands, LostCommandError
from headrace.cli.cluster.demo.members import MemberProcess, Place
from headrace.clock import SYSTEM_CLOCK
from headrace.cluster import (
    ClusterClient,
    ClusterFileError,
    ClusterMessage,
    SessionClosedError,
)
from headrace.cluster.common.members import parse_members
from headrace.cluster.node.running_member import MemberStatus, RunningMember
from tests.cluster.hashed_ledger import HashedLedger
from tests.helpers import TIMEOUT_S
from tests.ports import free_member

T = TypeVar("T")

_LOOK_S = 0.02
_LAST_ANSWERS_S = 1.0
# A machine with ten times the work that it can do stands still for seconds, and nobody is to be taken for dead then.
_PATIENCE_S = 60
_DRIVER_PATIENCE = {
    "aeron.client.liveness.timeout": f"{_PATIENCE_S}s",
    "aeron.publication.unblock.timeout": f"{_PATIENCE_S + 5}s",
}
_PATIENT = [f"{name.upper().replace('.', '_')}={value}" for name, value in _DRIVER_PATIENCE.items()]
_PATIENT += [f"AERON_DRIVER_TIMEOUT={_PATIENCE_S * 1000}"]
_LINES_SHOWN = 30


class Node(MemberProcess):
    """A member in one process.

    Args:
        member_id: Which one.
        members: All of them, as hosts.
        place: Where it keeps its files.
        prefix: The beginning of the command, which runs it somewhere else.
        **settings: Properties of the cluster, without their prefix and with ``_`` for a dot.
    """

    SERVICE = f"{HashedLedger.__module__}:HashedLedger"

    def __init__(
        self,
        member_id: int,
        members: str,
        place: Place,
        prefix: Sequence[str] = (),
        **settings: str,
    ) -> None:
        super().__init__(member_id, members, place)
        self._prefix = prefix
        self._settings = {
            "authorisation_service_supplier": "ALLOW_ALL",
            "session_timeout": f"{_PATIENCE_S}s",
        } | settings

    def _command(self) -> list[str]:
        return [*self._prefix, *super()._command(), *self._given()]

    def _given(self) -> list[str]:
        given = [f"aeron.cluster.{name.replace('_', '.')}={value}" for name, value in self._settings.items()]
        return [word for one in given for word in ("-D", one)]

    def _run(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        return super()._run(["env", *_PATIENT, *command])

    @property
    def is_started(self) -> bool:
        """Whether it is meant to run."""
        return self._process is not None

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def pause(self) -> None:
        """Stop it, and let it keep its connections."""
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """After a pause."""
        os.kill(self.pid, signal.SIGCONT)

    @property
    def printed(self) -> str:
        """The end of what it has printed, in all of its lives."""
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return "\n".join(lines[-_LINES_SHOWN:])


class Parts(Node):
    """A member in four processes, each of which is started again whenever it has ended."""

    NAMES = ("driver", "archive", "module", "service")

    def __init__(self, member_id: int, members: str, place: Place) -> None:
        super().__init__(member_id, members, place)
        python, cluster = sys.executable, self.directory / "cluster"
        cluster.mkdir(parents=True)
        archive = parse_members(members)[member_id].archive_endpoint
        headrace, quiet = (python, "-m", "headrace"), ("-d", str(place.drivers / f"parts-{member_id}"), "-q")
        service = (
            "from headrace.cluster import ServiceContainer; "
            f"from {HashedLedger.__module__} import HashedLedger; "
            f"ServiceContainer(HashedLedger(), aeron_directory={quiet[1]!r}, cluster_directory={str(cluster)!r}).join()"
        )
        self._commands: dict[str, list[str]] = {
            "driver": [*headrace, "driver", *quiet, "-m", "shared", "--delete-on-start"],
            "archive": [
                *headrace,
                "archive",
                *quiet,
                *("-a", str(self.directory / "archive"), "-c", f"aeron:udp?endpoint={archive}"),
                *("-D", "aeron.archive.segment.file.length=1m"),
                *("-D", "aeron.archive.replication.channel=aeron:udp?endpoint=localhost:0"),
            ],
            "module": [
                *(*headrace, "cluster", "node", *quiet, "--members", members, "--member", str(member_id)),
                *("-D", f"aeron.cluster.dir={cluster}", "-D", "aeron.cluster.ingress.channel=aeron:udp"),
                *("-D", "aeron.cluster.log.channel=aeron:udp?term-length=1m", *self._given()),
                *("-D", "aeron.cluster.replication.channel=aeron:udp?endpoint=localhost:0"),
            ],
            "service": [python, "-c", service],
        }
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._keeper: threading.Thread | None = None

    @property
    def is_started(self) -> bool:
        return self._keeper is not None

    def start(self) -> None:
        self._stop.clear()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def _keep(self) -> None:
        while not self._stop.wait(_LOOK_S):
            with self._lock:
                for name, command in self._commands.items():
                    process = self._processes.get(name)
                    if process is None or process.poll() is not None:
                        self._processes[name] = self._run(command)

    def kill_part(self, name: str) -> None:
        """End one of the processes at once."""
        with self._lock:
            self._processes[name].kill()

    @property
    def module_pid(self) -> int:
        """The process of the consensus module, which ends with each of the others."""
        with self._lock:
            return self._processes["module"].pid

    def kill(self) -> None:
        self._keep_no_longer()
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()
        self._processes.clear()

    def stop(self) -> None:
        # In the order in which nobody misses anybody.
        self._keep_no_longer()
        for name in ("module", "service", "archive", "driver"):
            self._processes[name].terminate()
            self._processes[name].wait(TIMEOUT_S)
        self.kill()

    def _keep_no_longer(self) -> None:
        if self._keeper is not None:
            self._stop.set()
            self._keeper.join()
            self._keeper = None

    def check(self) -> None:
        """Its processes may end: they are started again."""

    def status(self) -> MemberStatus | None:
        with contextlib.suppress(ClusterFileError):
            return RunningMember(self.directory / "cluster").status()
        return None


class Load(Commands):
    """Commands at a steady rate; knows the longest time without an answer.

    A member that leads as soon as it has started ends all sessions, as the reference's does: after the loss of a
    majority the client connects again.
    """

    def __init__(self, connect: Callable[[], ClusterClient], rate: int) -> None:
        super().__init__(connect(), rate)
        self._connect = connect
        self._last_ns = SYSTEM_CLOCK.monotonic_ns()
        self._wants_snapshot = False
        self.longest_ns = 0

    def _run(self) -> None:
        super()._run()
        while isinstance(self.failure, SessionClosedError):
            self._cluster.close()
            self._cluster = self._connect()
            self.failure = None
            super()._run()

    def _send(self, now_ns: int) -> None:
        if self._wants_snapshot:
            self._wants_snapshot = self._cluster.send_snapshot_request() is None
        super()._send(now_ns)

    def _take(self, message: ClusterMessage) -> None:
        super()._take(message)
        now_ns = SYSTEM_CLOCK.monotonic_ns()
        self.longest_ns = max(self.longest_ns, now_ns - self._last_ns)
        self._last_ns = now_ns

    def check(self) -> None:
        """Raise what has ended the client."""
        if self.failure is not None and not isinstance(self.failure, SessionClosedError):
            raise self.failure

    def begin_gap(self) -> None:
        """From now on notice how long no answer comes."""
        self.longest_ns = 0
        self._last_ns = SYSTEM_CLOCK.monotonic_ns()

    def take_snapshot(self) -> None:
        """Have the client ask for one."""
        self._wants_snapshot = True


class Processes:
    """Members and a client.

    Args:
        members: The members, by their ids.
        connect: Opens a session of a client.
        rate: How many commands the client sends a second.
    """

    def __init__(
        self, members: Sequence[Node], connect: Callable[[], ClusterClient], rate: int = 500
    ) -> None:
        self.members = members
        self._connect = connect
        self._rate = rate
        self.load: Load | None = None
        self._ending: Node | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[Load]:
        """All members, and a client that sends commands; all of them end with the block."""
        with contextlib.ExitStack() as held:
            for member in self.members:
                held.callback(member.kill)
                member.start()
            self.until(lambda: self.leader, "a leader")
            self.load = held.enter_context(Load(self._connect, self._rate))
            yield self.load

    @property
    def leader(self) -> Node | None:
        """The member that leads, once one does; of two the later one, as the other has not heard of it yet."""
        terms = {}
        for member in self.members:
            status = member.status() if member.is_started else None
            if status is not None and (status.role, status.election) == ("leader", "closed"):
                terms[status.term] = member
        return terms[max(terms)] if terms else None

    def until(self, look: Callable[[], T | None], what: str) -> T:
        """Wait until there is something; fails with all that the members have printed."""
        deadline = SYSTEM_CLOCK.deadline(TIMEOUT_S)
        try:
            while not (found := look()):
                for member in self.members:
                    if member is not self._ending:
                        member.check()
                if self.load is not None:
                    self.load.check()
                assert not deadline.is_over, f"waited {TIMEOUT_S:g} s for {what}"
                SYSTEM_CLOCK.sleep(_LOOK_S)
        except (AssertionError, HeadraceError, LostCommandError) as failure:
            for one in self.members:
                failure.add_note(f"--- {one.member_id}: {one.status()}\n{one.printed}")
            raise
        return found

    def ended(self, member: Node) -> str:
        """Wait until a member has ended by itself; returns the end of what it has printed."""
        self._ending = member
        self.until(lambda: member.has_ended, f"the end of member {member.member_id}")
        self._ending = None
        member.kill()
        return member.printed

    def answered(self, count: int = 50) -> None:
        """Wait for so many more answers."""
        wanted = len(self.load.answers) + count
        self.until(lambda: len(self.load.answers) >= wanted, f"{count} more answers")

    def settled(self) -> Node:
        """Wait until one member leads, and all others have what it had when this was called; returns the leader."""
        leader = self.until(lambda: self.leader, "a leader")
        status = leader.status()
        position = 0 if status is None else status.commit_position or 0

        def has_all(member: Node) -> bool:
            status = member.status()
            return (
                status is not None
                and status.election == "closed"
                and (status.commit_position or 0) >= position
            )

        self.until(lambda: all(map(has_all, self.members)), "all members to have the log")
        return leader

    def finish(self) -> int:
        """End all, and look for each command in each log; returns how many were answered.

        Each that was answered is in each log, once, and all logs have the same commands in the same order.
        """
        load = self.load
        load.pause()
        deadline = SYSTEM_CLOCK.deadline(_LAST_ANSWERS_S)
        # What was on its way to a member that was killed has no answer, ever.
        self.until(lambda: not load.unanswered_count or deadline.is_over, "the last answers")

        def agreed() -> bool:
            found = [member.status() for member in self.members]
            positions = {
                None if one is None or one.election != "closed" else one.commit_position for one in found
            }
            return len(positions) == 1 and None not in positions

        self.until(agreed, "all members to have the same log")
        for member in self.members:
            member.stop()
        logs = [member.commands() for member in self.members]
        twice = [number for number, count in Counter(logs[0]).items() if count > 1]
        assert not twice, f"carried out twice: {twice[:10]}"
        assert not (missing := load.answers.keys() - set(logs[0])), (
            f"answered and lost: {sorted(missing)[:10]}"
        )
        assert all(log == logs[0] for log in logs), "the members' logs differ"
        return len(load.answers)


@contextlib.contextmanager
def processes(kinds: str) -> Iterator[Processes]:
    """A cluster on this machine with a member of each kind: ``n`` for one process, ``p`` for four."""
    hosts = hosts_of(len(kinds))
    with Place.made() as place, patient_client(place) as client:
        members = [
            (Parts if kind == "p" else Node)(number, hosts, place) for number, kind in enumerate(kinds)
        ]
        yield Processes(members, partial(connect, hosts, client))


@contextlib.contextmanager
def patient_client(place: Place) -> Iterator[Client]:
    """A client of a driver in this process."""
    with (
        MediaDriver(
            directory=place.drivers / "client",
            threading_mode="SHARED",
            properties=_DRIVER_PATIENCE,
        ) as driver,
        driver.connect(driver_timeout_ms=_PATIENCE_S * 1000) as client,
    ):
        yield client


def hosts_of(count: int) -> str:
    """Members on this machine."""
    return ",".join(free_member() for _ in range(count))


def connect(hosts: str, client: Client, **settings: Any) -> ClusterClient:
    """A session, whose cluster may take its time."""
    timeout_ns = int(TIMEOUT_S * 1e9)
    return ClusterClient.connect(
        client, members=hosts, message_timeout_ns=timeout_ns, new_leader_timeout_ns=timeout_ns, **settings
    )
