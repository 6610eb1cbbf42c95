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

from headrace.cluster import ClientSession, Cluster, ClusteredService, ClusterNode, Role
from headrace.cluster.files.directory import ClusterDirectory
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


class Led(Fair):
    """Keeps more where its member leads."""

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        super().on_start(cluster, snapshot)
        self.cluster = cluster

    def kept(self, message: bytes) -> bytes:
        return b"led " + message if self.cluster.role is Role.LEADER else message


class Moody(Fair):
    """Keeps what follows from the environment of its process."""

    def kept(self, message: bytes) -> bytes:
        return os.environ.get("MOOD", "fine").encode()


class Packed(Fair):
    """A later version, with another layout of the snapshot, which reads the old one too."""

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        messages = list(snapshot or ())
        packed = messages and messages[0].startswith(b"packed:")
        self.entries = messages[0][7:].split(b",") if packed else messages

    def on_take_snapshot(self) -> Iterable[bytes]:
        return [b"packed:" + b",".join(self.entries)]


class Counting(Fair):
    """Its snapshot is an event of its own, as on every member: looking at the state more often changes it."""

    looks = 0

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        super().on_start(cluster, snapshot)
        self.entries = [one for one in self.entries if not one.startswith(b"looks")]

    def on_take_snapshot(self) -> Iterable[bytes]:
        self.looks += 1
        return [*self.entries, b"looks %d" % self.looks]


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
        r"the process that replays with PYTHONHASHSEED=1 is stuck: no handler has returned for 15 s, "
        r"after log_position=(\d+), in File .* in wait; .*test_cluster_determinism.py\", line \d+ in kept; .*"
        r"in on_session_message. A handler must not wait.*\n",
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
    assert "a function that returns" in done.stderr
    assert "ObjectService(Jobs())" in done.stderr


def test_a_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    done = check(tmp_path, "Fair")
    assert done.returncode == 1
    assert "does not exist" in done.stderr


def test_what_follows_from_the_role_of_the_member_is_found(directory: Path) -> None:
    done = check(directory, "Led")
    assert done.returncode == 1
    assert "b'0'; in a second instance, in the other role, b'led 0'" in done.stdout


def with_snapshot(directory: Path, service: ClusteredService) -> Path:
    with ClusterNode(service, directory=directory) as node, node.connect() as cluster:
        for number in range(5):
            cluster.offer_blocking(b"%d" % number)
            assert cluster.receive(TIMEOUT_S)
        node.take_snapshot()
    return directory


def test_a_replay_that_parts_from_the_snapshot_of_the_member_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOD", "grim")
    with_snapshot(tmp_path, Moody())
    monkeypatch.delenv("MOOD")
    done = check(tmp_path, "Moody")
    assert done.returncode == 1, done.stdout
    assert re.search(
        r"the member and its replay part, first seen at log_position=\d+: message 0 of the state is b'grim' in the "
        r"snapshot that the member took there, and b'fine' after a replay",
        done.stdout,
    )


@pytest.mark.parametrize(("taken_by", "checked"), [(Fair, "Packed"), (Counting, "Counting")])
def test_another_layout_of_the_snapshot_is_no_difference(
    tmp_path: Path, taken_by: type[Fair], checked: str
) -> None:
    done = check(with_snapshot(tmp_path, taken_by()), checked)
    assert done.returncode == 0, done.stdout
