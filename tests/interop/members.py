"""Clusters whose members are the reference's and ours in any mix, each in a process of its own."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benches.processes import JavaPeer, fresh_directory
from click.testing import CliRunner

import headrace
from headrace.cli.app import app
from headrace.cluster import ClusterClient
from headrace.cnc.cnc_file import CncFile
from tests.helpers import TIMEOUT_S
from tests.interop.programs import Program
from tests.ports import free_endpoint

EGRESS = "aeron:udp?endpoint=127.0.0.1:0"
CONNECT_NS = int(TIMEOUT_S * 1e9)
_OURS, _JAVAS = "tests.interop.counter_member", "CounterService"
# What each kind of member runs: the class or module of a program, and its argument. The last one has the service.
_PROGRAMS = {
    "o": ((_OURS, "node"),),
    "j": ((_JAVAS, "node"),),
    "e": (("EchoMember", ""),),
    "m": ((_OURS, "module"), (_JAVAS, "container")),
    "n": ((_JAVAS, "module"), (_OURS, "container")),
}
_OTHER_KINDS = {"o": "j", "j": "o", "m": "n", "n": "m"}
_ENDPOINTS = ("id", "ingress", "consensus", "log", "catchup", "archive")
_IN_JAVA = {
    "aeron.dir.delete.on.start": "true",
    "aeron.dir.delete.on.shutdown": "true",
    "aeron.threading.mode": "SHARED",
    "aeron.archive.threading.mode": "SHARED",
    "aeron.term.buffer.sparse.file": "true",
}


class Member:
    """Driver, archive, consensus module and a service.

    Args:
        java: The reference's artifacts.
        place: Where all members keep their directories.
        number: Its id.
        kind: ``o`` for ours and ``j`` for Java's with the counting service, ``e`` for Java's that echoes; ``m`` for our
            module with a container of Java's, ``n`` for Java's with one of ours.
        members: All members, as the property has them.
        **settings: Properties of the cluster, without their prefix and with ``_`` for a dot.
    """

    def __init__(
        self, java: JavaPeer, place: Path, number: int, kind: str, members: str, **settings: str
    ) -> None:
        endpoints = dict(zip(_ENDPOINTS, members.split("|")[number].split(","), strict=False))
        self.number = number
        self.kind = kind
        self.ingress, self.consensus = endpoints["ingress"], endpoints["consensus"]
        self.directory = place / f"member-{number}"
        self.cluster_directory = self.directory / "cluster"
        self.archive_directory = self.directory / "archive"
        self.aeron_directory = fresh_directory(f"member-{number}")
        self.settings = settings
        self._java = java
        self._programs: list[Program] = []
        self._properties = {
            "aeron.dir": str(self.aeron_directory),
            "aeron.archive.dir": str(self.archive_directory),
            "aeron.archive.segment.file.length": "4m",
            "aeron.archive.control.channel": f"aeron:udp?endpoint={endpoints['archive']}",
            "aeron.archive.replication.channel": "aeron:udp?endpoint=127.0.0.1:0",
            "aeron.cluster.dir": str(self.cluster_directory),
            "aeron.cluster.member.id": str(number),
            "aeron.cluster.members": members,
            "aeron.cluster.ingress.channel": "aeron:udp?term-length=1m",
            "aeron.cluster.log.channel": "aeron:udp?term-length=1m",
            "aeron.cluster.replication.channel": "aeron:udp?endpoint=127.0.0.1:0",
            "aeron.cluster.startup.canvass.timeout": "5s",
            "aeron.cluster.leader.heartbeat.timeout": "2s",
        }

    @property
    def is_ours(self) -> bool:
        """Whether its module is."""
        return self.kind in "om"

    def _command(self, main: str, what: str) -> list[str]:
        settings = {f"aeron.cluster.{name.replace('_', '.')}": value for name, value in self.settings.items()}
        properties = self._properties | settings
        if main == _OURS:
            return [
                sys.executable,
                "-m",
                main,
                what,
                *(f"{name}={value}" for name, value in properties.items()),
            ]
        return self._java.command(main, what, properties=_IN_JAVA | properties)

    # --- its life --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Run it. The files of one that was killed must not look as if it went on."""
        for mark in (*self.cluster_directory.glob("*mark*.dat"), *self.archive_directory.glob("*mark*.dat")):
            mark.unlink()
        self._programs = []
        for program in _PROGRAMS[self.kind]:
            for earlier in self._programs:
                earlier.printed("READY")
            name = f"member {self.number}, {' '.join(program)}"
            self._programs.append(Program(self._command(*program), name))

    def restart(self) -> None:
        """Run it again, and wait until it does."""
        self.start()
        self.awaited("READY")

    def report(self) -> str:
        """What its programs have printed and where they are now, and the errors in its files."""
        for program in self._programs:
            program.print_stacks()
        errors = CliRunner().invoke(app, ["cluster", "errors", str(self.cluster_directory)]).output
        return "\n".join([*(program.report() for program in self._programs), errors])

    @property
    def process_id(self) -> int:
        """Of its module."""
        return self._programs[0].process_id

    @property
    def is_running(self) -> bool:
        """Whether none of its programs has ended."""
        return not any(program.has_ended for program in self._programs)

    @property
    def lines(self) -> list[str]:
        """What its service has said since the last start."""
        return self._programs[-1].lines

    def said(self, word: str) -> list[str]:
        """The rest of those that begin with a word."""
        return self._programs[-1].all_printed(word)

    def awaited(self, word: str) -> str:
        """The rest of the first that begins with a word, which is awaited."""
        return self._programs[-1].printed(word)

    def pause(self) -> None:
        """Stop its processes, which keep all that they have."""
        for program in self._programs:
            program.signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """After a pause."""
        for program in self._programs:
            program.signal(signal.SIGCONT)

    def kill(self) -> None:
        for program in self._programs:
            program.kill()

    def become_the_other_kind(self) -> None:
        """Run as the other kind of module and of service from the next start on, on the same directory."""
        self.kind = _OTHER_KINDS[self.kind]

    def kill_and_empty(self) -> None:
        """Kill it, and delete all that it has on its disk."""
        self.kill()
        shutil.rmtree(self.directory)

    def ended(self) -> list[int]:
        """The status of each of its programs, once they have ended."""
        return [program.ended() for program in self._programs]

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.aeron_directory, ignore_errors=True)

    def counter(self, type_id: int) -> int:
        """A counter of its driver."""
        with CncFile.open(self.aeron_directory) as cnc:
            return next(one.value for one in cnc.counters if one.type_id == type_id)


@contextmanager
def running_cluster(
    java: JavaPeer, place: Path, kinds: str, *, has_archive_responses: bool = False, **settings: str
) -> Iterator[list[Member]]:
    """A cluster with a member of each kind, that is, for each letter. See :class:`Member`.

    With `has_archive_responses` their archives answer through the connections of the requests.
    """
    ports = 6 if has_archive_responses else 5
    names = "|".join(
        ",".join([str(number), *(free_endpoint() for _ in range(ports))]) for number in range(len(kinds))
    )
    with ExitStack() as stack:
        members = [Member(java, place, number, kind, names, **settings) for number, kind in enumerate(kinds)]
        for member in members:
            stack.callback(member.close)
        with _explained(members):
            for member in members:
                member.start()
            for member in members:
                member.awaited("READY")
        yield members


@contextmanager
def _explained(members: list[Member]) -> Iterator[None]:
    """Add to a failure what all members say: one that does not start may wait for another one."""
    try:
        yield
    except AssertionError as failure:
        failure.add_note("\n".join(member.report() for member in members))
        raise


def endpoints(members: list[Member]) -> str:
    """Where clients send, as they want it."""
    return ",".join(f"{member.number}={member.ingress}" for member in members)


def connect(driver: headrace.MediaDriver, members: list[Member], **settings: object) -> ClusterClient:
    """A session; a cluster that has just begun takes a while to have a leader."""
    return ClusterClient.connect(
        driver=driver,
        ingress_endpoints=endpoints(members),
        egress_channel=EGRESS,
        message_timeout_ns=CONNECT_NS,
        new_leader_timeout_ns=CONNECT_NS,
        **settings,  # type: ignore[arg-type]
    )
