"""Members of a cluster in processes of their own, killed at random moments under load, over and over.

A client sends numbered commands, a service keeps them. After each kill the state must have what was answered, once and
in order.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Self

import pytest
from benches.processes import ROOT, fresh_directory

import headrace
from headrace.cluster import (
    ClientSession,
    Cluster,
    ClusterClient,
    ClusteredService,
    ClusterError,
    ClusterMessage,
    ClusterTimeoutError,
)
from tests.helpers import TIMEOUT_S, rounds
from tests.ports import free_endpoint

pytestmark = [pytest.mark.faults, pytest.mark.slow]

KILLS = 5
# Commands that are not answered yet, at most.
WINDOW = 50
# How long nothing comes any more from a process that was killed.
QUIET_S = 0.1
# After which the driver and its clients take each other for dead.
LIVENESS_S = 3

NODE = """
import sys, threading, headrace
from headrace.cluster import ClusterNode
from tests.cluster.test_kill_loops import Ledger

driver = headrace.MediaDriver(directory=sys.argv[1], dir_delete_on_start=True, threading_mode="SHARED")
node = ClusterNode(
    Ledger(), directory=sys.argv[2], ingress_endpoint=sys.argv[3], driver=driver, authorisation="ALLOW_ALL",
    # Each start gives the sessions of the lives before new time.
    max_sessions=10_000,
    on_error=lambda text: print(text, file=sys.stderr, flush=True),
)
node.wait_until_leader()
print("READY", flush=True)
threading.Event().wait()
"""

SERVICE = """
import sys
from headrace.cluster import ServiceContainer
from tests.cluster.test_kill_loops import Ledger

with ServiceContainer(Ledger(), aeron_directory=sys.argv[1], cluster_directory=sys.argv[2]) as container:
    container.join()
"""

_COMMAND = struct.Struct("<qq")
_KEEP, _LIST = 1, 2
_LISTED = 100


class Ledger(ClusteredService):
    """Numbers the commands that it keeps, from 1 on, and answers with the number; lists them from an index on."""

    def __init__(self) -> None:
        self.commands: list[int] = []

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        for message in snapshot or ():
            self.commands.extend(numbers(message))

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        kind, value = _COMMAND.unpack(message)
        if kind == _LIST:
            answer = packed(self.commands[value : value + _LISTED])
        else:
            self.commands.append(value)
            answer = _COMMAND.pack(value, len(self.commands))
        if session is not None:
            session.offer(answer)

    def on_take_snapshot(self) -> Iterable[bytes]:
        for index in range(0, len(self.commands), _LISTED):
            yield packed(self.commands[index : index + _LISTED])


def packed(values: list[int]) -> bytes:
    """Numbers as a message."""
    return struct.pack(f"<{len(values)}q", *values)


def numbers(message: bytes) -> tuple[int, ...]:
    """The numbers in a message."""
    return struct.unpack(f"<{len(message) // 8}q", message)


class Member:
    """The parts of a member, each a process of its own that is started again whenever it has ended.

    Args:
        aeron: The driver's directory.
        directory: Where all others keep their files.
        endpoint: Where clients send.
    """

    def __init__(self, aeron: str, directory: Path, endpoint: str) -> None:
        python, cluster = sys.executable, directory / "cluster"
        cluster.mkdir()
        others = ",".join(free_endpoint() for _ in range(4))
        settings = {
            "dir": cluster,
            "members": f"0,{endpoint},{others}",
            "ingress.channel": "aeron:udp",
            "log.channel": "aeron:ipc?term-length=1m",
            "max.sessions": 10_000,
            "authorisation.service.supplier": "ALLOW_ALL",
        }
        module = [
            word for name, value in settings.items() for word in ("-D", f"aeron.cluster.{name}={value}")
        ]
        headrace_command, quiet = (python, "-m", "headrace"), ("-d", aeron, "-q")
        self._commands: dict[str, list[str]] = {
            "driver": [*headrace_command, "driver", *quiet, "-m", "shared", "--delete-on-start"],
            "archive": [*headrace_command, "archive", *quiet, "-a", str(directory / "archive")],
            "module": [*headrace_command, "cluster", "node", *quiet, *module],
            "service": [python, "-c", SERVICE, aeron, str(cluster)],
        }
        self._environment = os.environ | {
            "AERON_CLIENT_LIVENESS_TIMEOUT": str(LIVENESS_S * 1_000_000_000),
            "AERON_DRIVER_TIMEOUT": str(LIVENESS_S * 1000),
        }
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    @property
    def parts(self) -> list[str]:
        """Their names."""
        return list(self._commands)

    def kill(self, part: str) -> None:
        """End a process at once."""
        with self._lock:
            kill(self._processes[part])

    def _run(self) -> None:
        while not self._stop.wait(0.01):
            with self._lock:
                for part, command in self._commands.items():
                    process = self._processes.get(part)
                    if process is None or process.poll() is not None:
                        self._processes[part] = subprocess.Popen(
                            command, stdout=subprocess.DEVNULL, text=True, cwd=ROOT, env=self._environment
                        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        for process in self._processes.values():
            kill(process)


class History:
    """What was sent and answered over all lives, and the client's driver, which outlives them."""

    def __init__(
        self, driver: headrace.MediaDriver, endpoint: str, choose: random.Random, answer_s: float = TIMEOUT_S
    ) -> None:
        self._driver = driver
        self._endpoint = endpoint
        self._choose = choose
        # How long an answer may take; of a member that is about to end none comes.
        self._answer_s = answer_s
        self._sent = 0
        # Where each command is that was answered.
        self._answered: dict[int, int] = {}
        self._state: list[int] = []

    def connect(self) -> ClusterClient:
        """A session with whatever leads."""
        return ClusterClient.connect(
            driver=self._driver,
            ingress_channel="aeron:udp",
            ingress_endpoints=f"0={self._endpoint}",
            egress_channel="aeron:udp?endpoint=127.0.0.1:0",
            message_timeout_ns=int(TIMEOUT_S * 1e9),
            new_leader_timeout_ns=int(self._answer_s * 1e9),
        )

    def load(self, cluster: ClusterClient, kill_now: Callable[[], None]) -> None:
        """Send commands until something is killed, which is soon, and at times while the member takes a snapshot."""
        choose = self._choose
        with_snapshot, before_s = choose.random() < 0.6, choose.uniform(0, 0.3)
        # A snapshot takes some tens of milliseconds.
        delay_s = choose.uniform(0, 0.1)

        def kill() -> None:
            time.sleep(before_s)
            if with_snapshot:
                cluster.send_snapshot_request()
            time.sleep(delay_s)
            kill_now()

        first, thread = self._sent, threading.Thread(target=kill)
        thread.start()
        unanswered = 0
        while thread.is_alive():
            if unanswered < WINDOW and cluster.offer(_COMMAND.pack(_KEEP, self._sent)) > 0:
                self._sent += 1
                unanswered += 1
            unanswered -= cluster.poll(self._note)
        thread.join()
        # A member that ends because one of its parts was killed closes the session.
        with contextlib.suppress(ClusterError):
            while (message := cluster.receive(QUIET_S)) is not None:
                self._note(message)
        answered = sum(value >= first for value in self._answered)
        print(f"sent={self._sent - first} answered={answered} {with_snapshot=}")

    def _note(self, message: ClusterMessage) -> None:
        value, number = _COMMAND.unpack(message.payload)
        assert value not in self._answered, f"two answers to command {value}"
        self._answered[value] = number

    def compare(self, cluster: ClusterClient) -> None:
        """Look at the state of the service."""
        state = self._listed(cluster)
        # What was seen is an answer as well.
        assert state[: len(self._state)] == self._state
        assert all(one < later for one, later in itertools.pairwise(state)), "once, in order"
        assert state[-1:] <= [self._sent - 1]
        for value, number in self._answered.items():
            assert state[number - 1 : number] == [value], f"command {value}, answered as number {number}"
        self._state = state
        self._answered.clear()

    def _listed(self, cluster: ClusterClient) -> list[int]:
        state: list[int] = []
        while True:
            cluster.offer_blocking(_COMMAND.pack(_LIST, len(state)), timeout_s=self._answer_s)
            message = cluster.receive(self._answer_s)
            if message is None:
                raise ClusterTimeoutError(f"the service does not answer in {self._answer_s} s")
            found = numbers(message.payload)
            state += found
            if len(found) < _LISTED:
                return state

    def __len__(self) -> int:
        return len(self._state)


def kill(process: subprocess.Popen[str]) -> None:
    """End a process at once, and wait until it is gone."""
    process.send_signal(signal.SIGKILL)
    process.wait()


def seeded(name: str) -> random.Random:
    """What chooses in a test."""
    seed = int(os.environ.get("HEADRACE_SEED", "20266"))
    print(f"seed={seed}; again with HEADRACE_SEED={seed}")
    return random.Random(f"{seed} {name}")


@contextlib.contextmanager
def place() -> Iterator[str]:
    """The directory of a driver that is killed, and so cannot delete it."""
    directory = fresh_directory("cluster-kills")
    try:
        yield str(directory)
    finally:
        shutil.rmtree(directory)


def test_a_node_that_is_killed_starts_again_with_all_that_was_answered(tmp_path: Path) -> None:
    choose, endpoint = seeded("node"), free_endpoint()
    with place() as aeron, headrace.MediaDriver.embedded(threading_mode="SHARED") as driver:
        arguments = [aeron, str(tmp_path / "node"), endpoint]
        history = History(driver, endpoint, choose)
        for _ in range(rounds(KILLS) + 1):
            with subprocess.Popen(
                [sys.executable, "-c", NODE, *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT
            ) as process:
                try:
                    assert process.stdout is not None
                    assert process.stdout.readline() == "READY\n", "it must start without a person"
                    with history.connect() as cluster:
                        history.compare(cluster)
                        history.load(cluster, functools.partial(kill, process))
                finally:
                    process.kill()
        assert len(history) > 0


def test_a_member_of_four_processes_one_of_which_is_killed_has_all_that_was_answered(tmp_path: Path) -> None:
    choose, endpoint = seeded("processes"), free_endpoint()
    with place() as aeron, headrace.MediaDriver.embedded(threading_mode="SHARED") as driver:
        with Member(aeron, tmp_path, endpoint) as member:
            history = History(driver, endpoint, choose, answer_s=2 * LIVENESS_S)
            for _ in range(rounds(KILLS) + 1):
                part = choose.choice(member.parts)
                with until_it_answers(history) as cluster:
                    print(part, end=" ", flush=True)
                    history.load(cluster, functools.partial(member.kill, part))
        assert len(history) > 0


@contextlib.contextmanager
def until_it_answers(history: History) -> Iterator[ClusterClient]:
    """A session with a member whose state is as it must be; one that is about to end may still open sessions."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        with history.connect() as cluster:
            try:
                history.compare(cluster)
            except (ClusterError, headrace.PublicationTimeoutError):
                if time.monotonic() > deadline:
                    raise
                continue
            yield cluster
            return
