"""`headrace cluster check-determinism`, on the directory that a node left."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest
from benches.processes import ROOT

from headrace.cluster import ClientSession, Cluster, ClusteredService, ClusterNode
from headrace.cluster.directory import ClusterDirectory
from headrace.cluster.objects import command
from tests.helpers import TIMEOUT_S

pytestmark = pytest.mark.system


class Fair(ClusteredService):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        self.entries = list(snapshot or ())

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        self.entries.append(self.kept(message))
        if session is not None:
            session.offer(message)

    def kept(self, message: bytes) -> bytes:
        return message

    def on_take_snapshot(self) -> Iterable[bytes]:
        return list(self.entries)


class Unfair(Fair):
    """Keeps something else in each instance."""

    count = 0

    def kept(self, message: bytes) -> bytes:
        Unfair.count += 1
        return b"%d" % Unfair.count


class Dice(Fair):
    """Asks for chance."""

    def kept(self, message: bytes) -> bytes:
        return b"%d" % random.randrange(6)


class Unsorted(Fair):
    """Goes through a set of texts, in the order of their hashes."""

    def kept(self, message: bytes) -> bytes:
        return "".join({f"{letter}{message!r}" for letter in "abcdefgh"}).encode()


class UnsortedAnswer(Fair):
    """Answers in the order of a set of texts, and keeps nothing of it."""

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        if session is not None:
            session.offer("".join(list(set("abcdefgh"))).encode())


class Dying(Fair):
    """Ends its process."""

    def kept(self, message: bytes) -> bytes:
        os._exit(7)


class Leaving(Fair):
    """Ends its process as if all were done."""

    def kept(self, message: bytes) -> bytes:
        os._exit(0)


class Raising(Fair):
    """Takes no threes, in each instance alike."""

    def kept(self, message: bytes) -> bytes:
        if message == b"3":
            raise ValueError("no threes")
        return message


class Waiting(Fair):
    """Waits in a handler for what never comes."""

    def kept(self, message: bytes) -> bytes:
        if message == b"3":
            threading.Event().wait()
        return message


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with ClusterNode(Fair(), directory=tmp_path / "node") as node, node.connect() as cluster:
        for number in range(5):
            cluster.offer_blocking(b"%d" % number)
            assert cluster.receive(TIMEOUT_S)
    return tmp_path / "node"


def check(directory: Path, name: str, *options: str) -> subprocess.CompletedProcess[str]:
    service = f"tests.cli.test_cluster_determinism:{name}"
    command = [
        sys.executable,
        "-m",
        "headrace",
        "cluster",
        "check-determinism",
        str(directory),
        service,
        *options,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=ROOT)


def test_a_service_that_does_the_same_again_passes(directory: Path) -> None:
    before = sorted(path.name for path in directory.rglob("*"))
    done = check(directory, "Fair")
    assert done.returncode == 0, done.stderr
    assert "does the same again, up to log position" in done.stdout
    assert sorted(path.name for path in directory.rglob("*")) == before


@pytest.mark.parametrize("options", [(), ("--from-snapshot",)])
def test_both_replays_begin_at_the_same_position_of_a_log_with_snapshots(
    directory: Path, options: tuple[str, ...]
) -> None:
    with ClusterNode(Fair(), directory=directory) as node, node.connect() as cluster:
        for _ in range(2):
            cluster.offer_blocking(b"more")
            assert cluster.receive(TIMEOUT_S)
            node.take_snapshot()
    # The log after this snapshot has a request for another one.
    with ClusterDirectory(directory / "cluster").changed_recording_log() as log:
        assert log.invalidate_latest_snapshot()
    done = check(directory, "Fair", *options)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("name", "words"), [("Unfair", "first seen at log_position="), ("Dice", "random")])
def test_one_that_does_not_is_named_with_the_position(directory: Path, name: str, words: str) -> None:
    done = check(directory / "cluster", name)
    assert done.returncode == 1
    assert words in done.stdout


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Unsorted", "leaves another state"),
        ("UnsortedAnswer", "on_session_message asks for ('session.offer'"),
    ],
)
def test_the_order_of_a_set_is_found_by_another_hash_seed(directory: Path, name: str, words: str) -> None:
    done = check(directory, name)
    assert done.returncode == 1, done.stderr
    assert "first seen at log_position=" in done.stdout
    assert words in done.stdout
    assert "use sorted()" in done.stdout


@pytest.mark.parametrize(("name", "status"), [("Dying", 7), ("Leaving", 0)])
def test_a_replay_that_dies_is_told_with_its_position(directory: Path, name: str, status: int) -> None:
    done = check(directory, name)
    assert done.returncode == 1
    assert f"ended with exit status {status}, after log_position=" in done.stdout


def test_what_a_handler_raises_in_both_instances_is_told_and_is_no_difference(directory: Path) -> None:
    done = check(directory, "Raising")
    assert done.returncode == 0, done.stdout
    raised, same = done.stdout.splitlines()
    assert raised.startswith("on_session_message of service_id=0 raised ValueError('no threes'), first at")
    assert "does the same again" in same


@pytest.mark.slow
def test_a_replay_that_stands_still_is_told_with_its_position_and_the_line(directory: Path) -> None:
    done = check(directory, "Waiting", "--timeout", "15")
    assert done.returncode == 1, done.stderr
    told = re.fullmatch(
        r"the process that replays with PYTHONHASHSEED=1 stands still: no handler has returned for 15 s, "
        r"after log_position=(\d+), in File .* in wait; .*test_cluster_determinism.py\", line \d+ in kept; .*"
        r"in on_session_message. A handler must not wait .*\n",
        done.stdout,
    )
    assert told, done.stdout
    assert int(told[1]) > 0


class Misspelt(ClusteredService):
    """Has a handler that nothing calls."""

    def on_sesion_message(self, *_: object) -> None: ...


def test_a_misspelt_handler_is_named_before_anything_is_replayed(directory: Path) -> None:
    done = check(directory, "Misspelt")
    assert done.returncode == 1
    assert "did you mean on_session_message?" in done.stderr
    assert "Traceback" not in done.stderr


class Jobs:
    """An object, and no service."""

    @command
    def put(self) -> int:
        return 1


def test_an_object_is_told_what_makes_a_service_of_it(tmp_path: Path) -> None:
    done = check(tmp_path, "Jobs")
    assert done.returncode == 1
    assert "MODULE:CLASS=tests.cli.test_cluster_determinism:Jobs: must be" in done.stderr
    assert "a function that gives" in done.stderr
    assert "ObjectService(Jobs())" in done.stderr


def test_a_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    done = check(tmp_path, "Fair")
    assert done.returncode == 1
    assert "does not exist" in done.stderr
