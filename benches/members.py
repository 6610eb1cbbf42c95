"""Clusters of three members on this machine, each a process with a driver, an archive and a service that sends back.

Ours and the reference's get the same settings.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from benches.processes import READY_TIMEOUT_S, ROOT, STOP_TIMEOUT_S, fresh_directory, java_peer
from benches.used_memory import used_directory
from headrace import HeadraceError
from headrace.cluster.node.running_member import MemberStatus, RunningMember

COUNT = 3
# Some of what the members write in a row; all of it would cost a row more time than its figures.
USED = 1 << 30
CHANNEL = "aeron:udp?term-length=16m"
# For rows without a fault: no election begins because the machine has other work.
PATIENT = {"aeron.cluster.leader.heartbeat.timeout": "10s"}
_LOOK_S = 0.002
_STREAMS = {"aeron.cluster.ingress.channel": CHANNEL, "aeron.cluster.log.channel": CHANNEL}
_ANY_PORT = "aeron:udp?endpoint=127.0.0.1:0"
_ENDPOINTS = ("ingress", "consensus", "log", "catchup", "archive")

Command = Callable[["Member", Mapping[str, str]], list[str]]
T = TypeVar("T")


class Member:
    """One member; it can be started again."""

    def __init__(
        self, number: int, place: Path, members: str, command: Command, settings: Mapping[str, str]
    ) -> None:
        self.number = number
        self.place = place / str(number)
        self.driver = fresh_directory(f"member-{number}")
        self.endpoints = dict(
            zip(_ENDPOINTS, members.split("|")[number].split(",")[1:], strict=True),
        )
        shared = {"aeron.cluster.members": members, "aeron.cluster.member.id": str(number)}
        self._command = command(self, {**_STREAMS, **settings, **shared})
        self._log = place / f"member-{number}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Runs it."""
        self.place.mkdir(exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env=os.environ | {"AERON_DIR": str(self.driver)},
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None, "it runs"
        return self._process.pid

    def kill(self) -> None:
        """As ``kill -9`` does; returns before it has ended."""
        if self._process is not None:
            self._process.kill()

    def stop(self) -> None:
        """Has it end in good order."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def empty(self) -> None:
        """Deletes all of its files."""
        shutil.rmtree(self.place, ignore_errors=True)
        for directory in self.driver.parent.glob(f"{self.driver.name}*"):
            shutil.rmtree(directory, ignore_errors=True)

    @property
    def status(self) -> MemberStatus | None:
        """What it shows of itself; nothing before it has begun."""
        with contextlib.suppress(HeadraceError, OSError):
            return RunningMember(self.place / "cluster").status()
        return None

    @property
    def is_ready(self) -> bool:
        """Whether it leads or follows."""
        status = self.status
        return status is not None and status.election == "closed"

    @property
    def leads(self) -> bool:
        """Whether it leads."""
        status = self.status
        return status is not None and (status.role, status.election) == ("leader", "closed")

    @property
    def commit_position(self) -> int:
        """Up to where it has committed the log; 0 before it has begun."""
        status = self.status
        return 0 if status is None else status.commit_position or 0

    def check(self) -> None:
        """Raises if it has ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"member {self.number} has ended: {self._log.read_text(errors='replace')}")


class Members:
    """A cluster of three."""

    def __init__(self, members: list[Member]) -> None:
        self.all = members

    @property
    def ingress(self) -> str:
        """Where clients find them."""
        return ",".join(f"{one.number}={one.endpoints['ingress']}" for one in self.all)

    def await_ready(self) -> Member:
        """Waits until one leads and the others follow; returns the leader."""
        self.until(lambda: all(one.is_ready for one in self.all), "all members to lead or to follow")
        return self.until(lambda: next((one for one in self.all if one.leads), None), "a leader")

    def until(self, look: Callable[[], T | None], what: str) -> T:
        """Waits until there is something."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not (found := look()):
            for member in self.all:
                member.check()
            if time.monotonic() > deadline:
                seen = "; ".join(str(one.status) for one in self.all)
                raise RuntimeError(f"waited {READY_TIMEOUT_S:g} s for {what}: {seen}")
            time.sleep(_LOOK_S)
        return found


@contextmanager
def ours(settings: Mapping[str, str], used: int = 0) -> Iterator[Members]:
    """Ours, as `headrace cluster node` runs them; so many bytes of their files are in memory used before."""
    with cluster(our_command, settings, used) as members:
        yield members


@contextmanager
def theirs(settings: Mapping[str, str], used: int = 0) -> Iterator[Members]:
    """The reference's, each in one JVM; otherwise the same."""
    with cluster(their_command, settings, used) as members:
        yield members


@contextmanager
def cluster(command: Command, settings: Mapping[str, str], used: int) -> Iterator[Members]:
    """Three members, each run by a command."""
    names = "|".join(",".join((str(number), *_free_endpoints())) for number in range(COUNT))
    with used_directory(used) as place, ExitStack() as held:
        members = [Member(number, place, names, command, settings) for number in range(COUNT)]
        for member in members:
            held.callback(member.empty)
            held.callback(member.stop)
            member.start()
        yield Members(members)


def our_command(
    member: Member, settings: Mapping[str, str], *, service: str = "benches.peers.echoing:Echo"
) -> list[str]:
    """Runs one of ours."""
    given = [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]
    node = [sys.executable, "-m", "headrace", "cluster", "node", str(member.place)]
    return [*node, "--service", service, *given]


def their_command(member: Member, settings: Mapping[str, str]) -> list[str]:
    """Runs one of the reference's."""
    own = {
        "aeron.dir": str(member.driver),
        "aeron.dir.delete.on.start": "true",
        "aeron.dir.delete.on.shutdown": "true",
        "aeron.threading.mode": "SHARED",
        "aeron.archive.threading.mode": "SHARED",
        "aeron.archive.dir": str(member.place / "archive"),
        "aeron.archive.control.channel": f"aeron:udp?endpoint={member.endpoints['archive']}",
        "aeron.archive.replication.channel": _ANY_PORT,
        "aeron.cluster.dir": str(member.place / "cluster"),
        "aeron.cluster.replication.channel": _ANY_PORT,
    }
    return java_peer().command("EchoMember", properties={**own, **settings})


def _free_endpoints() -> list[str]:
    with ExitStack() as sockets:
        bound = [sockets.enter_context(socket.socket(type=socket.SOCK_DGRAM)) for _ in _ENDPOINTS]
        for one in bound:
            one.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in bound]
