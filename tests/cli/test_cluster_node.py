"""`headrace cluster node`: a member as a process, from its start to each of its ends."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from benches.processes import ROOT, fresh_directory

import headrace
from headrace.cluster import ClientSession, Cluster, ClusterClient, ClusteredService
from headrace.cluster.common.counters import ClusterCounter, cluster_id_of
from headrace.cluster.common.members import parse_members
from headrace.cluster.files.directory import ClusterDirectory
from headrace.cnc.error_log import read_error_log
from tests.helpers import TIMEOUT_S, await_true
from tests.ports import free_endpoint, free_member

pytestmark = pytest.mark.system

CLUSTER_ID = 3
ERROR_LOG_OFFSET = 8192


class Sum(ClusteredService):
    """Adds what it is sent."""

    def __init__(self) -> None:
        self.value = 0

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        for message in snapshot or ():
            self.value = int(message)

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        self.value += int(message)
        if session is not None:
            session.offer(b"%d" % self.value)

    def on_take_snapshot(self) -> Iterable[bytes]:
        yield b"%d" % self.value


class Broken(Sum):
    """Cannot start."""

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        raise ValueError("no table of prices")


class ToldToEnd(Sum):
    """A supervisor ends the process while its modules are imported and its parts are made."""

    def __init__(self) -> None:
        super().__init__()
        os.kill(os.getpid(), int(os.environ["SIGNAL"]))


class Stuck(Sum):
    """Does not return from one message."""

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        super().on_session_message(session, timestamp, message, position)
        if message == b"13":
            threading.Event().wait()
        if message == b"17":
            # In code that is not Python's, which no signal reaches: a lock that is taken twice.
            library, lock = ctypes.CDLL(None), ctypes.create_string_buffer(128)
            library.pthread_mutex_lock(lock)
            library.pthread_mutex_lock(lock)


class Stranger:
    """No service."""


class Place:
    """A driver, and the directories of a member."""

    def __init__(self, driver: headrace.MediaDriver, directory: Path) -> None:
        self.driver = driver
        self.aeron = driver.directory
        self.cluster = directory / "cluster"
        self.archive = directory / "archive"
        self.ingress = free_endpoint()

    def command(self, *words: str, service: str = "Sum", **properties: str) -> list[str]:
        others = ",".join(free_endpoint() for _ in range(4))
        settings = {
            "aeron.cluster.id": str(CLUSTER_ID),
            "aeron.cluster.dir": str(self.cluster),
            "aeron.archive.dir": str(self.archive),
            "aeron.cluster.members": f"0,{self.ingress},{others}",
            "aeron.cluster.ingress.channel": "aeron:udp",
            "aeron.cluster.log.channel": "aeron:ipc?term-length=128k",
            "aeron.cluster.session.timeout": "5000000000",
            "aeron.archive.control.response.stream.id": "40",
        } | properties
        given = [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]
        head = [sys.executable, "-m", "headrace", "cluster", "node", "-d", self.aeron, "--archive"]
        return [*head, "--service", f"tests.cli.test_cluster_node:{service}", *given, *words]

    def counters(self) -> dict[int, int]:
        """Values of the cluster's counters, by their type."""
        with self.driver.connect() as client:
            return {
                record.type_id: record.value
                for record in client.counters
                if record.type_id in set(ClusterCounter) and cluster_id_of(record) == CLUSTER_ID
            }

    def errors(self) -> list[str]:
        """What the mark file's error log says."""
        data = (self.cluster / "cluster-mark.dat").read_bytes()
        return [entry.text for entry in read_error_log(data[ERROR_LOG_OFFSET:])]

    def sums(self, *numbers: int) -> list[int]:
        """What the service answers."""
        with ClusterClient.connect(
            driver=self.driver,
            ingress_channel="aeron:udp",
            ingress_endpoints=f"0={self.ingress}",
            egress_channel="aeron:udp?endpoint=127.0.0.1:0",
            message_timeout_ns=int(TIMEOUT_S * 1e9),
        ) as cluster:
            answers = []
            for number in numbers:
                cluster.offer_blocking(b"%d" % number)
                message = cluster.receive(TIMEOUT_S)
                assert message is not None
                answers.append(int(message.payload))
            return answers


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with headrace.MediaDriver(
        directory=fresh_directory("cluster-node"),
        dir_delete_on_shutdown=True,
        threading_mode="SHARED",
        client_liveness_timeout_ns=2_000_000_000,
    ) as driver:
        yield Place(driver, tmp_path)


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    killer = threading.Timer(2 * TIMEOUT_S, process.kill)
    killer.start()
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "Ctrl-C ends it" in line, process.communicate()
        yield process
    finally:
        killer.cancel()
        process.kill()
        process.communicate()


def refused(command: list[str]) -> str:
    """What a command that cannot start says."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=ROOT)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr


def test_a_member_runs_until_it_is_told_to_stop_and_frees_its_counters(place: Place) -> None:
    """Once more after a kill: what was answered is there."""
    with running(place.command()) as process:
        # Ready: the counters first, then the mark file.
        mark = ClusterDirectory(place.cluster).mark()
        assert (mark.pid, mark.cluster_id, mark.aeron_directory) == (process.pid, CLUSTER_ID, place.aeron)
        assert 0 < mark.start_timestamp <= mark.activity_timestamp
        assert ClusterCounter.MODULE_STATE in place.counters()
        assert place.sums(1, 2, 3) == [1, 3, 6]
        process.kill()
        process.wait(TIMEOUT_S)
    await_true(lambda: not place.counters())
    with running(place.command()) as process:
        assert place.sums(4) == [10]
        # To the process and to its group, as some send it.
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0
        assert place.counters() == {}
    assert ClusterDirectory(place.cluster).mark().activity_timestamp == -1
    assert [text for text in place.errors() if not text.startswith("WARN")] == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [13, 17], ids=["python", "native"])
def test_a_handler_that_does_not_return_does_not_keep_the_process_from_ending(
    place: Place, number: int
) -> None:
    with running(place.command(service="Stuck")) as process:
        assert place.sums(1, number) == [1, 1 + number]
        process.terminate()
        assert process.wait(TIMEOUT_S) == 143
        assert process.stderr is not None
        told = process.stderr.read()
    assert "on_session_message at " in told
    assert "test_cluster_node.py:" in told
    await_true(lambda: place.counters() == {})
    # What was acknowledged is there.
    with running(place.command()):
        assert place.sums(1) == [2 + number]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_member_that_is_told_to_end_before_it_runs_does_so(
    place: Place, number: signal.Signals, status: int
) -> None:
    done = subprocess.run(
        place.command(service="ToldToEnd"),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        cwd=ROOT,
        env=os.environ | {"SIGNAL": str(int(number))},
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")


def test_a_service_that_fails_ends_the_process_and_is_noted(place: Place) -> None:
    with running(place.command(service="Broken")) as process:
        assert process.wait(TIMEOUT_S) == 1
        assert process.stderr is not None
        assert "no table of prices" in process.stderr.read()
    assert place.counters() == {}
    (noted,) = [text for text in place.errors() if "no table of prices" in text]
    assert noted.startswith("failed to start clustered service(s), or one has failed: service_id=0: ")


def test_a_lost_archive_ends_the_process_and_is_noted(place: Place, tmp_path: Path) -> None:
    """Without `--archive` here: one in this process, which goes away."""
    archive = headrace.archive.ArchiveServer(
        driver=place.driver, archive_directory=tmp_path / "other", control_channel_enabled=False
    )
    command = place.command()
    command.remove("--archive")
    at = command.index(f"aeron.archive.dir={place.archive}")
    del command[at - 1 : at + 1]
    with archive, running(command) as process:
        assert place.sums(1) == [1]
        archive.close()
        assert process.wait(TIMEOUT_S) == 1
    assert any("unexpected termination" in text for text in place.errors())


def test_a_member_in_a_directory_has_all_its_parts(place: Place, tmp_path: Path) -> None:
    """And is found there by the other commands; what is set for one part reaches it."""
    member, directory = free_member(), tmp_path / "node"
    place.ingress = parse_members(member)[0].ingress_endpoint
    head = [sys.executable, "-m", "headrace", "cluster"]
    command = [*head, "node", str(directory), "--members", member, "-s", "tests.cli.test_cluster_node:Sum"]
    settings = [
        "-D",
        "aeron.archive.segment.file.length=64k",
        "-D",
        "aeron.cluster.log.channel=aeron:ipc?term-length=64k",
    ]
    for total in (5, 10):
        with running([*command, *settings]) as process:
            assert place.sums(5) == [total]
            assert subprocess.run([*head, "is-leader", str(directory)], check=False).returncode == 0
            process.terminate()
            assert process.wait(TIMEOUT_S) == 0
    (segment,) = (directory / "archive").glob("*.rec")
    assert segment.stat().st_size == 65536


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--driver"], "has its own driver and archive: leave out --dir, --driver and --archive"),
        (["--members", "alpha,alpha,beta"], "aeron.cluster.members='alpha,alpha,beta': has 'alpha' twice"),
        (
            ["--members", "alpha,beta", "--member", "2"],
            "aeron.cluster.member.id=2: must be an id of members: 0, 1",
        ),
        (
            ["-D", "aeron.threading.mode=SHARED"],
            "aeron.threading.mode=SHARED: is not a setting of the archive or",
        ),
        (["-D", "aeron.archive.file.sync.level=7"], "aeron.archive.file.sync.level=7: must be 0, 1 or 2"),
    ],
)
def test_a_wrong_option_of_a_member_in_a_directory_is_named(
    tmp_path: Path, words: list[str], text: str
) -> None:
    head = [sys.executable, "-m", "headrace", "cluster", "node", str(tmp_path / "node")]
    command = [*head, "--service", "tests.cli.test_cluster_node:Sum", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=ROOT)
    assert done.returncode in (1, 2)
    assert text in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_property_is_refused_by_name_or_passed_over(place: Place) -> None:
    text = refused(place.command(**{"aeron.cluster.sesion.timeout": "1"}))
    assert "aeron.cluster.sesion.timeout=1: is not a setting" in text
    command = place.command("--allow-unknown", **{"aeron.cluster.sesion.timeout": "1"})
    with running(command) as process:
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {},
            "aeron.cluster.members is required: the hosts of all members, such as alpha,beta,gamma; for example -D",
        ),
        (
            {"aeron.cluster.members": "0,a:1,a:2,a:3,a:4,a:5"},
            "aeron.cluster.ingress.channel is required: .*; for example -D aeron.cluster.ingress.channel=aeron:udp",
        ),
        (
            {
                "aeron.cluster.members": "0,a:1,a:2,a:3,a:4,a:5",
                "aeron.cluster.ingress.channel": "aeron:udp",
                "aeron.cluster.service.error.buffer.length": "1",
            },
            "aeron.cluster.service.error.buffer.length=1: must be .*; for example -D",
        ),
        (
            {"aeron.archive.file.sync.level": "7"},
            "aeron.archive.file.sync.level=7: must be 0, 1 or 2; for example",
        ),
    ],
    ids=["members", "ingress", "container", "archive"],
)
def test_a_wrong_setting_is_named_as_it_is_given_and_nothing_is_made(
    tmp_path: Path, settings: dict[str, str], words: str
) -> None:
    driver, cluster, archive = (tmp_path / name for name in ("driver", "cluster", "archive"))
    settings = {"aeron.cluster.dir": str(cluster), "aeron.archive.dir": str(archive)} | settings
    given = [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]
    head = [
        sys.executable,
        "-m",
        "headrace",
        "cluster",
        "node",
        "--dir",
        str(driver),
        "--driver",
        "--archive",
    ]
    assert re.search(words, refused([*head, "--service", "tests.cli.test_cluster_node:Sum", *given]))
    assert list(tmp_path.iterdir()) == []


def test_what_is_in_use_or_wrong_is_named(place: Place, tmp_path: Path) -> None:
    with running(place.command()):
        other = {"aeron.archive.dir": str(tmp_path / "b"), "aeron.archive.local.control.stream.id": "11"}
        assert "active mark file" in refused(place.command(**other))
        other["aeron.cluster.dir"] = str(tmp_path / "c")
        assert "another consensus module of this cluster" in refused(place.command(**other))
        # It had the directory for itself, and says there why it did not start.
        data = (tmp_path / "c" / "cluster-mark.dat").read_bytes()
        assert any("cannot start" in entry.text for entry in read_error_log(data[ERROR_LOG_OFFSET:]))
    (tmp_path / "file").touch()
    assert "file" in refused(place.command(**{"aeron.cluster.dir": str(tmp_path / "file")}))
    assert "--service=tests.cli" in refused(place.command(service="Absent"))
    assert "subclass" in refused(place.command(service="Stranger"))
